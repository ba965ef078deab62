"""Keeps what is known of each ``sensors`` table, and reads one again when its log has moved."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.platform.delta_log import commit_path, list_log
from harness.platform.sql_names import is_path
from harness.platform.storage import FileStat, Storages, normalized
from harness.sense.sources.upstream_sensor.rows import RowReader, SensorRow, rows_of_commit
from harness.sense.table_locations import TableLocator

#: Further back than this the commits between two probes are not read one by one.
COMMITS_PER_PROBE = 100
#: So many finished runs are remembered of one table.
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A sensor that was finished at one version, and is perhaps already at work again."""

    #: The first version that shows it.
    version: int
    row: SensorRow

    @property
    def key(self) -> tuple[str, str]:
        """Return what distinguishes one end of one sensor's work from another."""
        return self.row.sensor_id, self.row.changed_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a table at its newest version."""

    path: str
    version: int
    fingerprint: FileStat | None
    rows: tuple[SensorRow, ...]
    #: What was finished at versions before it, oldest first.
    passed: tuple[Passed, ...]


class SensorsTables:
    """The tables of all products, for the life of the process."""

    def __init__(self, storages: Storages, locator: TableLocator, reader: RowReader) -> None:
        self._storages = storages
        self._locator = locator
        self._reader = reader
        self._known: dict[str, Known] = {}

    def known(self, table: str, since: Callable[[], int | None]) -> Known:
        """Return what is known of a table; it is read only when its log has a new commit.

        Args:
            table: Its name or path.
            since: Asked at the first reading: the version from which on commits matter.

        Raises:
            ProbeFailedError: The table is not there or cannot be read.
        """
        known = self._known.get(table)
        if known is None or not self._is_unchanged(known):
            known = self._known[table] = self._read(table, known, since)
        return known

    def _is_unchanged(self, known: Known) -> bool:
        storage = self._storages.of(known.path)
        return (
            storage.stat(commit_path(known.path, known.version + 1)) is None
            and known.fingerprint is not None
            and storage.stat(commit_path(known.path, known.version)) == known.fingerprint
        )

    def _read(self, table: str, before: Known | None, since: Callable[[], int | None]) -> Known:
        path = normalized(table) if is_path(table) else self._locator.locate(table)
        storage = self._storages.of(path)
        versions = list_log(storage, path).versions
        # Noted before the rows are read: a commit that comes in between is seen by the next probe.
        fingerprint = storage.stat(commit_path(path, versions[-1]))
        rows = tuple(self._reader.read(table, path))
        start = since() if before is None or before.path != path else before.version
        between = [] if start is None else [each for each in versions if start < each]
        passed = {each.key: each for each in before.passed} if before is not None else {}
        if 1 < len(between) <= COMMITS_PER_PROBE:
            for version in between[:-1]:
                for row in rows_of_commit(storage, path, version):
                    each = Passed(version=version, row=row)
                    if row.is_finished:
                        passed.setdefault(each.key, each)
        return Known(
            path=path,
            version=versions[-1],
            fingerprint=fingerprint,
            rows=rows,
            passed=tuple(passed.values())[-_REMEMBERED:],
        )

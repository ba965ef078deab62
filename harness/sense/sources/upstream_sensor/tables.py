"""Keeps what is known of each ``sensors`` table, and reads one again when its log has moved.

In a workspace a table is read by its name: its storage refuses all others.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.errors import ProbeFailedError
from harness.platform.delta_log import commit_path, list_log
from harness.platform.sql_names import is_path
from harness.platform.storage import FileStat, Storages, normalized
from harness.sense.catalog_tables import name_in
from harness.sense.sources.upstream_sensor.rows import RowReader, SensorRow, rows_of_commit
from harness.sense.table_locations import TableLocator

#: Further back than this the commits between two probes are not read one by one.
COMMITS_PER_PROBE = 100
#: So many of the newest versions are read of a table that is sensed by its name.
VERSIONS_PER_PROBE = 20
#: No commit of before matters: the version after which commits count is not there yet.
FROM_NOW_ON = sys.maxsize
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


#: Returns, for the rows of a table, the version after which its commits may hold more than the rows
#: show; nothing when the rows are all that matters.
Since = Callable[[Sequence[SensorRow]], int | None]


class Tables(Protocol):
    """Reads ``sensors`` tables; implemented by their logs, and by the catalogs of a workspace."""

    def known(self, table: str, since: Since) -> Known:
        """Return what is known of a table.

        Args:
            table: Its name or path.
            since: The version from which on commits matter.

        Raises:
            ProbeFailedError: The table is not there or cannot be read.
        """
        ...


class SensorsTables:
    """The tables of all products, for the life of the process."""

    def __init__(self, storages: Storages, locator: TableLocator, reader: RowReader) -> None:
        self._storages = storages
        self._locator = locator
        self._reader = reader
        self._known: dict[str, Known] = {}

    def known(self, table: str, since: Since) -> Known:
        """Return what is known of a table; it is read only when its log has a new commit."""
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

    def _read(self, table: str, before: Known | None, since: Since) -> Known:
        path = normalized(table) if is_path(table) else self._locator.locate(table)
        storage = self._storages.of(path)
        versions = list_log(storage, path).versions
        # Noted before the rows are read: a commit that comes in between is seen by the next probe.
        fingerprint = storage.stat(commit_path(path, versions[-1]))
        rows = tuple(self._reader.read(table, path))
        start = since(rows) if before is None or before.path != path else before.version
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


class NamedRowReader(Protocol):
    """Reads a table of a catalog by its name."""

    def read_by_spark(self, table: str) -> list[SensorRow]:
        """Return its rows as they are now.

        Raises:
            ProbeFailedError: It cannot be read, or is not a sensors table.
        """
        ...

    def read_versions(self, table: str, versions: Sequence[int]) -> list[tuple[int, SensorRow]]:
        """Return the rows of several versions, each with its version.

        Raises:
            ProbeFailedError: One of them cannot be read any more.
        """
        ...


class Version(Protocol):
    """One version of a table."""

    @property
    def version(self) -> int:
        """Its number."""
        ...


class Versions(Protocol):
    """Lists the versions of a table of a catalog."""

    def newest(self, table: str, count: int) -> Sequence[Version]:
        """Return that many of the newest, newest first.

        Raises:
            ProbeFailedError: The history of the table cannot be read.
        """
        ...


class CatalogSensorsTables:
    """The tables of a workspace: one statement each, two more when a sensor has moved.

    Args:
        catalog: The catalog of names that have none.
        by_path: Reads those that are named by a path.
        reader: Reads by name.
        versions: Returns the newest version.
    """

    def __init__(
        self, catalog: str, by_path: Tables, reader: NamedRowReader, versions: Versions
    ) -> None:
        self._catalog, self._by_path = catalog, by_path
        self._reader, self._versions = reader, versions

    def known(self, table: str, since: Since) -> Known:
        """Return what is known of a table."""
        if is_path(table):
            return self._by_path.known(table, since)
        name = str(name_in(self._catalog, table))
        rows = self._reader.read_by_spark(name)
        start = since(rows)
        if start is None:
            # No cursor moves, so that no version is recorded.
            return _known(name, 0, rows, ())
        newest = self._versions.newest(name, 1)[0].version
        first = max(start + 1, newest - VERSIONS_PER_PROBE + 1)
        try:
            shown = self._reader.read_versions(name, range(min(first, newest), newest + 1))
        except ProbeFailedError:
            # VACUUM has removed files of them. The version was noted before the rows are read.
            return _known(name, newest, self._reader.read_by_spark(name), ())
        finished = sorted(
            (Passed(version=version, row=row) for version, row in shown if row.is_finished),
            key=lambda each: each.version,
        )
        passed = {each.key: each for each in reversed(finished) if each.version < newest}
        now = [row for version, row in shown if version == newest]
        return _known(name, newest, now, tuple(passed.values()))


def _known(name: str, version: int, rows: Sequence[SensorRow], passed: tuple[Passed, ...]) -> Known:
    return Known(path=name, version=version, fingerprint=None, rows=tuple(rows), passed=passed)

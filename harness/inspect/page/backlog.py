"""Counts the partitions of a source that wait for a self-healing model, by the logs of two tables.

The rule is that of ``macros/partitions/selection.sql``, which the model's next run applies. Only
Spark has the hash of a partition's files that a record may have, so one that was rewritten with as
many rows as before is not counted here.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harness.platform.clock import instant_from
from harness.platform.json_file import MALFORMED
from harness.store.rows import Row, integer, text_or_none, whole_or_none

if TYPE_CHECKING:
    from deltalake import DeltaTable

_SESSION_CATALOG = "spark_catalog."
_WITH_VECTORS = "deletionVectors"
_NEVER = datetime.min.replace(tzinfo=UTC)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
#: An instant as a record has it: of midnight the date is enough.
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)(?: 00:00:00\.0{6}Z|( \d\d:\d\d:\d\d)\.0{6}(Z))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The partitions that the next run of a model takes from one source."""

    count: int
    #: The value of the oldest.
    oldest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partition:
    value: str | None
    #: What the lookback counts; numbers have none.
    at: datetime | None
    #: Unknown where deletion vectors may hide some, or a file has no statistics.
    row_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlogs:
    """Determines what waits for models whose tables are in one warehouse."""

    warehouse: Path
    #: Partitions later than this do not move the lookback.
    now: datetime

    def of(self, model: str, source: str, taken: Sequence[Row]) -> Backlog | None:
        """Return what waits in one source; nothing where a table is elsewhere or unreadable.

        Args:
            model: The model's table, with its schema.
            source: The name of the source, as the record has it.
            taken: The record of the model about that source; not empty.
        """
        from deltalake.exceptions import DeltaError

        newest = max(taken, key=lambda row: instant_from(row["taken_at"]) or _NEVER)
        days = whole_or_none(newest["look_back_days"])
        look_back = None if days is None else timedelta(days=days)
        try:
            bronze = self._table(source)
            partitions = _partitions(bronze, str(newest["partition_column"]))
            known = _known(taken, bronze, self._table(model))
        except (DeltaError, OSError, *MALFORMED):
            return None
        pending = _pending(partitions, known, look_back, self.now)
        oldest = min(pending, key=_age, default=None)
        return Backlog(
            count=len(pending),
            oldest=None if oldest is None else _INSTANT.sub(r"\1\2\3", oldest.value or "null"),
        )

    def _table(self, name: str) -> "DeltaTable":
        from deltalake import DeltaTable

        schema, _, table = name.removeprefix(_SESSION_CATALOG).rpartition(".")
        return DeltaTable(self.warehouse / f"{schema}.db" / table)


def _age(partition: _Partition) -> tuple[bool, datetime, str]:
    return partition.at is None, partition.at or _NEVER, partition.value or ""


def _partitions(source: "DeltaTable", column: str) -> list[_Partition]:
    """Return the partitions that have a file; no data file is opened."""
    import pyarrow as pa

    files = pa.table(source.get_add_actions(flatten=True))
    values = files[f"partition.{column}"].to_pylist()
    counts: defaultdict[object, list[int | None]] = defaultdict(list)
    for value, count in zip(values, files["num_records"].to_pylist(), strict=True):
        counts[value].append(count)
    hides_rows = _WITH_VECTORS in (source.protocol().reader_features or ())
    return [
        _Partition(value=_text(value), at=_at(value), row_count=None if hides_rows else _sum(each))
        for value, each in counts.items()
    ]


def _sum(counts: Sequence[int | None]) -> int | None:
    """Add up; unknown where a file has no statistics."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _text(value: object) -> str | None:
    """Return a partition's value as the record has it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%fZ")
        return str(value).rstrip("0") if value.microsecond else str(value)
    return str(value)


def _at(value: object) -> datetime | None:
    if isinstance(value, str) and _DATE.match(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    return datetime.combine(value, time(), UTC) if isinstance(value, date) else None


def _known(
    taken: Sequence[Row], source: "DeltaTable", model: "DeltaTable"
) -> Mapping[str | None, str]:
    """Return the newest stamp of each partition that still counts as taken."""
    source_id, model_id, restores = (
        str(source.metadata().id),
        str(model.metadata().id),
        _restores(model),
    )
    newest: dict[str | None, tuple[tuple[int, datetime], str]] = {}
    for row in taken:
        version = integer(row["table_version"])
        is_undone = any(to < version < at for to, at in restores)
        if (row["source_id"], row["table_id"]) != (source_id, model_id) or is_undone:
            continue
        value, order = (
            text_or_none(row["partition"]),
            (version, instant_from(row["taken_at"]) or _NEVER),
        )
        if value not in newest or newest[value][0] <= order:
            newest[value] = order, str(row["stamp"])
    return {value: stamp for value, (_, stamp) in newest.items()}


def _restores(model: "DeltaTable") -> list[tuple[int, int]]:
    """Return the RESTORE commits: the version restored, or none by its number, and the commit's."""
    found = []
    for commit in model.history():
        if commit.get("operation") == "RESTORE":
            to = (commit.get("operationParameters") or {}).get("version")
            found.append((-1 if to is None else int(to), int(commit["version"])))
    return found


def _pending(
    partitions: Sequence[_Partition],
    known: Mapping[str | None, str],
    look_back: timedelta | None,
    now: datetime,
) -> list[_Partition]:
    reached = [each.at for each in partitions if each.value in known and each.at and each.at <= now]
    begin = max(reached) - look_back if reached and look_back is not None else None
    return [
        each
        for each in partitions
        if not (begin and each.at and each.at < begin) and _is_new(each, known)
    ]


def _is_new(partition: _Partition, known: Mapping[str | None, str]) -> bool:
    if partition.value not in known:
        return True
    count = known[partition.value].partition("/")[0]
    return partition.row_count is not None and count.isdigit() and int(count) != partition.row_count

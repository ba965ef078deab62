"""Reads the commits that came after a position, one by one, and turns them into changes."""

from dataclasses import dataclass, replace

from harness.errors import LookFailedError
from harness.names import parts_of
from harness.sense.delta.classify import operation_of, partitions_of, tags_of
from harness.sense.delta.current import Current, refuse_unreadable
from harness.sense.delta.log import Commit, read_commit
from harness.sense.delta.position import Position
from harness.sense.delta.schema import Column, Table, has_plain_features, table_of
from harness.sense.storage import Storage
from harness.sense.types import DataChange, Operation, TableFormat

#: One look reads at most this many commits; the position tells the next look where to go on.
COMMITS_PER_LOOK = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event, and the commit that it tells of; none when it tells of the whole table."""

    event: DataChange
    commit: Commit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a look at the log found, before anyone asked the rows."""

    position: Position
    changes: tuple[Change, ...] = ()
    gap: str | None = None
    #: Set when the look had to find out what the table is now.
    current: Current | None = None


def follow(storage: Storage, position: Position, sensor_id: str, key_name: str | None) -> Finding:
    """Read the commits after a position until the first absence.

    A commit that cannot be read fails the look only when no good one came before it: what is good
    is told now, and the next look starts at the bad one.

    Raises:
        LookFailedError: The next commit cannot be read.
    """
    changes: list[Change] = []
    start = position
    for version in range(start.version + 1, start.version + 1 + COMMITS_PER_LOOK):
        try:
            commit = read_commit(storage, position.path, version)
            if commit is None:
                break
            position, change = _step(position, commit, sensor_id, key_name)
        except LookFailedError:
            if position is start:
                raise
            break
        if change is not None:
            changes.append(change)
    return Finding(position=position, changes=tuple(changes))


def key_of(table: Table, name: str | None) -> Column | None:
    """Find the column that ``upstream_key`` names.

    Raises:
        LookFailedError: The table has no such column.
    """
    if name is None:
        return None
    parts = parts_of(name)
    column = table.column(parts[0]) if parts else None
    if column is None:
        known = ", ".join(column.name for column in table.columns) or "no column at all"
        raise LookFailedError(f"upstream_key {name} is no column of it; it has {known}")
    if len(parts) > 1:
        # The log is not asked for fields of a structure.
        return Column(name=name, physical=name, type="field")
    return replace(column, name=name)


def event_of(
    position: Position, commit: Commit, sensor_id: str, operation: Operation
) -> DataChange:
    """Describe one commit as an event; the position is the one before it."""
    partition, partition_tags = partitions_of(commit, position.partition_columns)
    tags = {
        **tags_of(commit),
        **partition_tags,
        "table_id": position.table_id,
        "prev_version": str(commit.version - 1),
    }
    return DataChange(
        table=sensor_id,
        partition=partition,
        snapshot_id=str(commit.version),
        snapshot_ts=commit.timestamp_ms,
        prev_snapshot_id=_text(position.data_version, below=commit.version),
        table_format=TableFormat.DELTA,
        operation=operation,
        tags=tags,
        lineage=position.lineage,
    )


def _text(version: int | None, *, below: int) -> str | None:
    # A commit that was completed after it had been told is told again, and follows itself.
    return None if version is None or version >= below else str(version)


def _step(
    position: Position, commit: Commit, sensor_id: str, key_name: str | None
) -> tuple[Position, Change | None]:
    after = replace(
        _with_description(position, commit, key_name),
        version=commit.version,
        fingerprint=commit.fingerprint,
        digest=commit.digest,
    )
    operation = operation_of(commit)
    if operation is None:
        return after, None
    event = event_of(after, commit, sensor_id, operation)
    if after.has_new_schema:
        event = replace(event, tags={**event.tags, "schema_changed": "true"})
    after = replace(after, data_version=commit.version, has_new_schema=False)
    return after, Change(event=event, commit=commit)


def _with_description(position: Position, commit: Commit, key_name: str | None) -> Position:
    protocol = commit.protocol or {}
    refuse_unreadable(protocol)
    # A commit that names no protocol keeps the old one: what was not plain stays so.
    position = replace(position, is_plain=position.is_plain and has_plain_features(protocol))
    if commit.metadata is None:
        return position
    table = table_of(commit.metadata, protocol)
    return replace(
        position,
        table_id=table.table_id,
        partition_columns=table.partition_columns,
        is_plain=table.is_plain and position.is_plain,
        schema_digest=table.schema_digest,
        has_new_schema=position.has_new_schema or table.schema_digest != position.schema_digest,
        key=key_of(table, key_name),
    )

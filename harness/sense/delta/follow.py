"""Reads the commits that came after a position, one by one, and turns them into changes."""

from dataclasses import replace

from harness.errors import LookFailedError
from harness.names import parts_of
from harness.sense.delta.change import VERSIONS_PER_LOOK, Change, Finding, Subject, told
from harness.sense.delta.classify import operation_of, partitions_of, tags_of, told_partitions
from harness.sense.delta.current import refuse_unreadable
from harness.sense.delta.log import Commit, read_commit
from harness.sense.delta.position import Position
from harness.sense.delta.schema import Column, Table, has_plain_features, table_of
from harness.sense.types import DataChange, Operation, TableFormat


def follow(subject: Subject, position: Position) -> Finding:
    """Read the commits after a position until the first absence, or until it is enough.

    A commit that cannot be read fails the look only when no good one came before it: what is good
    is told now, and the next look starts at the bad one.

    Raises:
        LookFailedError: The next commit cannot be read.
    """
    changes: list[Change] = []
    start, files = position, 0
    for read in range(1, VERSIONS_PER_LOOK + 1):
        version = start.version + read
        try:
            commit = read_commit(subject.storage, position.path, version)
            if commit is None:
                break
            position, change = _step(position, commit, subject)
        except LookFailedError:
            if position is start:
                raise
            break
        if change is not None:
            changes.append(change)
            files += len(commit.adds) + len(commit.removes)
        if subject.portion.is_full(version=version, read=read, changes=len(changes), files=files):
            break
    return Finding(position=position, changes=told(changes))


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


def change_of(position: Position, commit: Commit, sensor_id: str, operation: Operation) -> Change:
    """Describe one commit as an event; the position is the one before it."""
    partitions = partitions_of(commit, position.partition_columns)
    partition, partition_tags = told_partitions(partitions)
    tags = {
        **tags_of(commit),
        **partition_tags,
        "table_id": position.table_id,
        "prev_version": str(commit.version - 1),
    }
    if position.has_new_schema:
        tags["schema_changed"] = "true"
    event = DataChange(
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
    return Change(event=event, commits=(commit,), partitions=partitions)


def _text(version: int | None, *, below: int) -> str | None:
    # A commit that was completed after it had been told is told again, and follows itself.
    return None if version is None or version >= below else str(version)


def _step(position: Position, commit: Commit, subject: Subject) -> tuple[Position, Change | None]:
    after = replace(
        _with_description(position, commit, subject.key_name),
        version=commit.version,
        fingerprint=commit.fingerprint,
        digest=commit.digest,
    )
    operation = operation_of(commit)
    if operation is None:
        return after, None
    change = change_of(after, commit, subject.sensor_id, operation)
    return replace(after, data_version=commit.version, has_new_schema=False), change


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

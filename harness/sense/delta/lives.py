"""Decides the unusual: first sight, a log cleaned past us, a table that was created again."""

from dataclasses import replace

from harness.sense.delta.change import Change, Finding, Subject
from harness.sense.delta.current import Current, current_of, list_log
from harness.sense.delta.follow import follow, key_of
from harness.sense.delta.log import (
    COMMIT_LIMIT_BYTES,
    LogFolder,
    commit_path,
    digest_of,
)
from harness.sense.delta.position import Position, first_position
from harness.sense.positions import next_lineage
from harness.sense.types import DataChange, FirstSight, Operation, TableFormat


def first_sight(subject: Subject, mode: FirstSight) -> Finding:
    """Look at a table for the first time: one listing, one event if it already holds data."""
    folder = list_log(subject.storage, subject.path, subject.portion.told)
    current = current_of(subject.storage, subject.path, folder)
    key = key_of(current.table, subject.key_name)
    position = first_position(subject.path, current.table, current.newest, key)
    if not current.holds_data:
        return Finding(position=position, current=current)
    operation = Operation.APPEND if current.only_appended else Operation.UPDATE
    event = _whole_table(position, current, subject, operation, "first_sight")
    position = replace(position, data_version=position.version)
    changes = () if mode is FirstSight.BASELINE else (Change(event=event),)
    return Finding(position=position, changes=changes, current=current)


def in_doubt(subject: Subject, position: Position) -> Finding:
    """Find out what happened to a table whose newest known commit is gone or is another one.

    The table may also be at another place now than the position says.
    """
    position = replace(position, path=subject.path)
    known = commit_path(position.path, position.version)
    fingerprint = subject.storage.stat(known)
    if fingerprint is not None:
        content = subject.storage.read(known, limit=COMMIT_LIMIT_BYTES)
        if digest_of(content) == position.digest:
            # The file was only copied or touched, perhaps with the whole table.
            return follow(subject, replace(position, fingerprint=fingerprint))
        known_length = position.fingerprint.length
        if len(content) > known_length and digest_of(content[:known_length]) == position.digest:
            # The file was half-written at a line's end when it was read: it is told again, whole.
            return follow(subject, replace(position, version=position.version - 1))
    folder = list_log(subject.storage, subject.path, subject.portion.told)
    current = current_of(subject.storage, subject.path, folder)
    is_same_table = (
        fingerprint is None
        and current.table.table_id == position.table_id
        and folder.newest > position.version
    )
    if not is_same_table:
        return _created_again(subject, position, current)
    if position.version + 1 in folder.versions:
        # The log was cleaned up to our own commit; all that is new is still there.
        return follow(subject, position)
    return _gap(subject, position, current, folder)


def _created_again(subject: Subject, position: Position, current: Current) -> Finding:
    key = key_of(current.table, subject.key_name)
    fresh = replace(
        first_position(subject.path, current.table, current.newest, key),
        lineage=next_lineage(position.lineage, current.table.table_id),
    )
    if not current.holds_data:
        return Finding(position=fresh, current=current)
    event = _whole_table(fresh, current, subject, Operation.UPDATE, "recreated")
    return Finding(
        position=replace(fresh, data_version=fresh.version),
        changes=(Change(event=event),),
        current=current,
    )


def _gap(subject: Subject, position: Position, current: Current, folder: LogFolder) -> Finding:
    key = key_of(current.table, subject.key_name)
    fresh = replace(
        first_position(subject.path, current.table, current.newest, key),
        lineage=position.lineage,
        data_version=position.data_version,
    )
    event = _whole_table(fresh, current, subject, Operation.UPDATE, "gap")
    first = position.version + 1
    event = replace(event, tags={**event.tags, "coalesced_from": str(first)})
    oldest = next(version for version in folder.versions if version >= first)
    lost = f"versions {first} to {oldest - 1}"
    return Finding(
        position=replace(fresh, data_version=fresh.version),
        changes=(Change(event=event),),
        gap=f"The log of {subject.sensor_id} was cleaned before we looked: {lost} are gone.",
        current=current,
    )


def _whole_table(
    position: Position, current: Current, subject: Subject, operation: Operation, tag: str
) -> DataChange:
    before = position.data_version
    return DataChange(
        table=subject.sensor_id,
        snapshot_id=str(current.newest.version),
        snapshot_ts=current.newest.timestamp_ms,
        prev_snapshot_id=None if before is None else str(before),
        table_format=TableFormat.DELTA,
        operation=operation,
        tags={tag: "true", "table_id": current.table.table_id},
        lineage=position.lineage,
    )

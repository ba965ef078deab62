"""Reads the commits after a cursor one by one, and turns them into changes.

Edge cases: the first observation, a truncated log, a table that was created again.
Every commit that changes data is an event of its own up to a number; a table that ran far ahead
gets one more event for the rest of the backlog.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.events.partition import Partitions, partition_fields
from harness.platform.delta_log import (
    COMMIT_LIMIT_BYTES,
    Commit,
    LogFolder,
    commit_path,
    digest_of,
    list_log,
    read_commit,
)
from harness.platform.sql_names import parts_of
from harness.platform.storage import Storage
from harness.sense.cursor import next_lineage
from harness.sense.sources.delta.classify import operation_of, partitions_of, tags_of
from harness.sense.sources.delta.cursor import Cursor, first_cursor
from harness.sense.sources.delta.schema import Column, Table, has_plain_features, table_of
from harness.sense.sources.delta.table_identity import Current, current_of, refuse_unreadable

#: So many changes of one probe are an event each; those that follow are one event together.
REPORTED_SINGLY = 500
#: One probe reads at most this many versions; the cursor is where the next probe goes on.
VERSIONS_PER_PROBE = 10_000
#: Limits of one probe past the first ``REPORTED_SINGLY`` versions.
READING_SECONDS = 20.0
FILES_PER_PROBE = 200_000

#: Tags of a commit that hold for a row of many commits, if one of them has the tag.
_FLAGS = ("schema_changed", "overwrite", "replaced", "by_history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event, and what it describes."""

    event: ChangeEvent
    #: None when it describes the whole table, or when the log was not read.
    commits: tuple[Commit, ...] = ()
    partitions: Partitions = field(default_factory=Partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a probe of the log found, before any rows were queried."""

    position: Cursor
    changes: tuple[Change, ...] = ()
    gap: str | None = None
    #: Set when the probe had to find out what the table is now.
    current: Current | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """How far one probe goes on; a probe that is made again goes exactly as far.

    A tick that dies between the events and the cursor leaves events that the next probe finds
    again. A row of many commits is the same row only if it ends with the same commit, however many
    have come since.
    """

    #: Versions with which events end that were recorded, though the cursor after them was not.
    reported: frozenset[int] = frozenset()
    has_time: Callable[[], bool] = field(default=lambda: True)

    def is_full(self, *, version: int, read: int, changes: int, files: int = 0) -> bool:
        """Return whether a probe stops at a version.

        Args:
            version: Where it has come to.
            read: The versions it has read.
            changes: How many of them changed data.
            files: The files that these added or removed.
        """
        if changes > REPORTED_SINGLY and version in self.reported:
            return True
        if any(each > version for each in self.reported):
            return False
        return read >= REPORTED_SINGLY and (files > FILES_PER_PROBE or not self.has_time())


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The table of one probe: where it is, what it is called, what matters of it."""

    storage: Storage
    path: str
    sensor_id: str
    #: The column that ``upstream_key`` names.
    key_name: str | None
    portion: Portion = field(default_factory=Portion)


def coalesced(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes of one probe: the first ones singly, the rest coalesced into one."""
    rest = changes[REPORTED_SINGLY:]
    if len(rest) < 2:
        return tuple(changes)
    return (*changes[:REPORTED_SINGLY], _as_one(rest))


def _as_one(changes: Sequence[Change]) -> Change:
    events = [change.event for change in changes]
    first, last = events[0], events[-1]
    partitions = _partitions_of(changes)
    partition, partition_tags = partition_fields(partitions)
    operations = {event.operation_type for event in events}
    tags = {
        "coalesced_from": str(first.snapshot_id),
        "coalesced_commits": str(len(changes)),
        "coalesced_operations": json.dumps(_names(events)),
        "prev_version": first.tags.get("prev_version"),
        "table_id": last.tags.get("table_id"),
        **{flag: "true" for flag in _FLAGS if any(flag in event.tags for event in events)},
        **partition_tags,
    }
    event = replace(
        last,
        partition=partition,
        prev_snapshot_id=first.prev_snapshot_id,
        operation_type=operations.pop() if len(operations) == 1 else Operation.UPDATE,
        tags={key: value for key, value in tags.items() if value is not None},
    )
    commits = tuple(commit for change in changes for commit in change.commits)
    return Change(event=event, commits=commits, partitions=partitions)


def _names(events: Sequence[ChangeEvent]) -> list[str]:
    return sorted({event.tags["operation"] for event in events if "operation" in event.tags})


def _partitions_of(changes: Sequence[Change]) -> Partitions:
    if any("schema_changed" in change.event.tags for change in changes):
        # The columns that the values belong to may have become others on the way.
        return Partitions(are_all=False)
    return Partitions(
        values=frozenset().union(*(change.partitions.values for change in changes)),
        are_all=all(change.partitions.are_all for change in changes),
    )


def follow(subject: Subject, cursor: Cursor) -> Finding:
    """Read the commits after a cursor until the first absence, or until it is enough.

    A commit that cannot be read fails the probe only when no good one came before it: what is good
    is reported now, and the next probe starts at the bad one.

    Raises:
        ProbeFailedError: The next commit cannot be read.
    """
    changes: list[Change] = []
    start, files = cursor, 0
    for read in range(1, VERSIONS_PER_PROBE + 1):
        version = start.version + read
        try:
            commit = read_commit(subject.storage, cursor.path, version)
            if commit is None:
                break
            cursor, change = _step(cursor, commit, subject)
        except ProbeFailedError:
            if cursor is start:
                raise
            break
        if change is not None:
            changes.append(change)
            files += len(commit.adds) + len(commit.removes)
        if subject.portion.is_full(version=version, read=read, changes=len(changes), files=files):
            break
    return Finding(position=cursor, changes=coalesced(changes))


def key_of(table: Table, name: str | None) -> Column | None:
    """Find the column that ``upstream_key`` names.

    Raises:
        ProbeFailedError: The table has no such column.
    """
    if name is None:
        return None
    parts = parts_of(name)
    column = table.column(parts[0]) if parts else None
    if column is None:
        known = ", ".join(column.name for column in table.columns) or "no column at all"
        raise ProbeFailedError(f"upstream_key {name} is not a column of it; it has {known}")
    if len(parts) > 1:
        # The log is not used for fields of a structure.
        return Column(name=name, physical=name, type="field")
    return replace(column, name=name)


def change_of(cursor: Cursor, commit: Commit, sensor_id: str, operation: Operation) -> Change:
    """Describe one commit as an event; the cursor is the one before it."""
    partitions = partitions_of(commit, cursor.partition_columns)
    partition, partition_tags = partition_fields(partitions)
    tags = {
        **tags_of(commit),
        **partition_tags,
        "table_id": cursor.table_id,
        "prev_version": str(commit.version - 1),
    }
    if cursor.has_new_schema:
        tags["schema_changed"] = "true"
    event = ChangeEvent(
        table=sensor_id,
        partition=partition,
        snapshot_id=str(commit.version),
        snapshot_ts=commit.timestamp_ms,
        prev_snapshot_id=_text(cursor.data_version, below=commit.version),
        table_format=TableFormat.DELTA,
        operation_type=operation,
        tags=tags,
        lineage=cursor.lineage,
    )
    return Change(event=event, commits=(commit,), partitions=partitions)


def _text(version: int | None, *, below: int) -> str | None:
    # A commit that was completed after it had been reported is reported again, and follows itself.
    return None if version is None or version >= below else str(version)


def _step(cursor: Cursor, commit: Commit, subject: Subject) -> tuple[Cursor, Change | None]:
    after = replace(
        _with_description(cursor, commit, subject.key_name),
        version=commit.version,
        fingerprint=commit.fingerprint,
        digest=commit.digest,
    )
    operation = operation_of(commit)
    if operation is None:
        return after, None
    change = change_of(after, commit, subject.sensor_id, operation)
    return replace(after, data_version=commit.version, has_new_schema=False), change


def _with_description(cursor: Cursor, commit: Commit, key_name: str | None) -> Cursor:
    protocol = commit.protocol or {}
    refuse_unreadable(protocol)
    # A commit that names no protocol keeps the old one: what was not plain stays so.
    cursor = replace(cursor, is_plain=cursor.is_plain and has_plain_features(protocol))
    if commit.metadata is None:
        return cursor
    table = table_of(commit.metadata, protocol)
    return replace(
        cursor,
        table_id=table.table_id,
        partition_columns=table.partition_columns,
        is_plain=table.is_plain and cursor.is_plain,
        schema_digest=table.schema_digest,
        has_new_schema=cursor.has_new_schema or table.schema_digest != cursor.schema_digest,
        key=key_of(table, key_name),
    )


def first_sight(subject: Subject, mode: FirstSight) -> Finding:
    """Probe a table for the first time: one listing, one event if it already holds data."""
    folder = list_log(subject.storage, subject.path, subject.portion.reported)
    current = current_of(subject.storage, subject.path, folder)
    key = key_of(current.table, subject.key_name)
    cursor = first_cursor(subject.path, current.table, current.newest, key)
    if not current.holds_data:
        return Finding(position=cursor, current=current)
    operation = Operation.APPEND if current.only_appended else Operation.UPDATE
    event = _entire_table(cursor, current, subject, operation, "first_sight")
    cursor = replace(cursor, data_version=cursor.version)
    changes = () if mode is FirstSight.BASELINE else (Change(event=event),)
    return Finding(position=cursor, changes=changes, current=current)


def in_doubt(subject: Subject, cursor: Cursor) -> Finding:
    """Find out what happened to a table whose newest known commit is gone or is another one.

    The table may also be at another place now than the cursor records.
    """
    cursor = replace(cursor, path=subject.path)
    known = commit_path(cursor.path, cursor.version)
    fingerprint = subject.storage.stat(known)
    if fingerprint is not None:
        content = subject.storage.read(known, limit=COMMIT_LIMIT_BYTES)
        if digest_of(content) == cursor.digest:
            # The file was only copied or touched, perhaps with the whole table.
            return follow(subject, replace(cursor, fingerprint=fingerprint))
        known_length = cursor.fingerprint.length
        if len(content) > known_length and digest_of(content[:known_length]) == cursor.digest:
            # The file was half-written at a line's end when it was read: it is reported again.
            return follow(subject, replace(cursor, version=cursor.version - 1))
    folder = list_log(subject.storage, subject.path, subject.portion.reported)
    current = current_of(subject.storage, subject.path, folder)
    is_same_table = (
        fingerprint is None
        and current.table.table_id == cursor.table_id
        and folder.newest > cursor.version
    )
    if not is_same_table:
        return _created_again(subject, cursor, current)
    if cursor.version + 1 in folder.versions:
        # The log was cleaned up to our own commit; all that is new is still there.
        return follow(subject, cursor)
    return _gap(subject, cursor, current, folder)


def resume(subject: Subject, cursor: Cursor) -> Finding:
    """Go on by the log from a cursor that the table's history has left.

    Raises:
        ProbeFailedError: The log does not hold the version of the cursor, or is incomplete.
    """
    folder = list_log(subject.storage, subject.path)
    current = current_of(subject.storage, subject.path, folder)
    commit = read_commit(subject.storage, subject.path, cursor.version)
    is_known = commit is not None and commit.timestamp_ms == cursor.fingerprint.mtime_ms
    if commit is None or not is_known or current.table.table_id != cursor.table_id:
        raise ProbeFailedError(f"version {cursor.version} is not in the log of {subject.path}")
    key = key_of(current.table, subject.key_name)
    known = replace(
        first_cursor(subject.path, current.table, commit, key),
        lineage=cursor.lineage,
        data_version=cursor.data_version,
    )
    return follow(subject, known)


def _created_again(subject: Subject, cursor: Cursor, current: Current) -> Finding:
    key = key_of(current.table, subject.key_name)
    fresh = replace(
        first_cursor(subject.path, current.table, current.newest, key),
        lineage=next_lineage(cursor.lineage, current.table.table_id),
    )
    if not current.holds_data:
        return Finding(position=fresh, current=current)
    event = _entire_table(fresh, current, subject, Operation.UPDATE, "recreated")
    return Finding(
        position=replace(fresh, data_version=fresh.version),
        changes=(Change(event=event),),
        current=current,
    )


def _gap(subject: Subject, cursor: Cursor, current: Current, folder: LogFolder) -> Finding:
    key = key_of(current.table, subject.key_name)
    fresh = replace(
        first_cursor(subject.path, current.table, current.newest, key),
        lineage=cursor.lineage,
        data_version=cursor.data_version,
    )
    event = _entire_table(fresh, current, subject, Operation.UPDATE, "gap")
    first = cursor.version + 1
    event = replace(event, tags={**event.tags, "coalesced_from": str(first)})
    oldest = next(version for version in folder.versions if version >= first)
    lost = f"versions {first} to {oldest - 1}"
    return Finding(
        position=replace(fresh, data_version=fresh.version),
        changes=(Change(event=event),),
        gap=f"The log of {subject.sensor_id} was cleaned before the probe: {lost} are gone.",
        current=current,
    )


def _entire_table(
    cursor: Cursor, current: Current, subject: Subject, operation: Operation, tag: str
) -> ChangeEvent:
    before = cursor.data_version
    return ChangeEvent(
        table=subject.sensor_id,
        snapshot_id=str(current.newest.version),
        # A table that was only rearranged since has not changed since.
        snapshot_ts=current.last_change.timestamp_ms,
        prev_snapshot_id=None if before is None else str(before),
        table_format=TableFormat.DELTA,
        operation_type=operation,
        tags={tag: "true", "table_id": current.table.table_id},
        lineage=cursor.lineage,
    )

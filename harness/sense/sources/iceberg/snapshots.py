"""Compares a table's metadata with the cursor of the last probe: what is new, what is lost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.cursor import next_lineage
from harness.sense.sources.iceberg.classify import change_of, event_of, operation_of
from harness.sense.sources.iceberg.cursor import Cursor, Pointer
from harness.sense.sources.iceberg.metadata import Metadata, Snapshot

#: One probe reports at most this many snapshots; the cursor is where the next probe goes on.
SNAPSHOTS_PER_PROBE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """Where the rows are that came with what a probe found."""

    #: The metadata file by which Spark reads the table.
    metadata: str
    #: The last snapshot whose rows are old; ``None`` when all rows of the table are meant.
    since: int | None
    until: int | None
    #: Those between the two that may have written rows and are no appends.
    overwrites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a probe of the metadata found, before any rows were queried."""

    position: Cursor
    events: tuple[ChangeEvent, ...] = ()
    rows: NewRows | None = None
    gap: str | None = None
    #: The snapshots that have an event of their own, which touches no more than they did.
    reported: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table of one probe."""

    sensor_id: str
    metadata: Metadata
    pointer: Pointer


class End(StrEnum):
    """Where the way back from the present snapshot ended."""

    #: At the snapshot that was looked for.
    KNOWN = "known"
    #: At a snapshot that has no parent.
    ROOT = "root"
    #: At a snapshot whose parent is expired.
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class _Line:
    #: Oldest first.
    snapshots: Sequence[Snapshot]
    end: End


def first_sight(table: Table) -> Finding:
    """Probe a table for the first time: one event if it already holds data."""
    return _all_of(table, _initial_cursor(table, f"{table.metadata.uuid}/0"), "first_sight")


def follow(table: Table, before: Cursor) -> Finding:
    """Report what happened to a table after a cursor."""
    metadata = table.metadata
    if metadata.uuid != before.uuid:
        lineage = next_lineage(before.lineage, metadata.uuid)
        return _all_of(table, _initial_cursor(table, lineage), "recreated")
    if metadata.head == before.snapshot:
        return Finding(position=replace(before, pointer=table.pointer))
    if metadata.current is None:
        return _emptied(table, before)
    return _follow_line(table, before, _line(metadata, before.snapshot))


def _follow_line(table: Table, before: Cursor, line: "_Line") -> Finding:
    if line.end is End.KNOWN:
        return _reported(table, before, line.snapshots)
    shared = [each for each in line.snapshots if not _is_newer(each, before)]
    if shared:
        return _rolled_back(table, before, shared[-1], line.snapshots[len(shared) :])
    if line.end is End.ROOT:
        return _replaced(table, before, line.snapshots)
    return _gap(table, before, line.snapshots)


def _line(metadata: Metadata, known: int | None) -> _Line:
    """Walk back from the present snapshot to the one that is known."""
    passed: dict[int, Snapshot] = {}
    at = metadata.head
    while at is not None and at != known:
        snapshot = metadata.snapshots.get(at)
        if snapshot is None or at in passed:
            return _Line(_oldest_first(passed), End.EXPIRED)
        passed[at] = snapshot
        at = snapshot.parent
    return _Line(_oldest_first(passed), End.KNOWN if at == known else End.ROOT)


def _oldest_first(passed: dict[int, Snapshot]) -> list[Snapshot]:
    return list(reversed(passed.values()))


def _is_newer(snapshot: Snapshot, before: Cursor) -> bool:
    if snapshot.sequence and before.sequence:
        return snapshot.sequence > before.sequence
    # Format 1 does not number its commits.
    return snapshot.timestamp_ms > before.timestamp_ms


def _reported(table: Table, before: Cursor, snapshots: Sequence[Snapshot]) -> Finding:
    """Report each snapshot that changed data, up to the limit of one probe."""
    cursor, events, overwrites = before, list[ChangeEvent](), list[int]()
    reported = list[Snapshot]()
    for snapshot in snapshots[:SNAPSHOTS_PER_PROBE]:
        operation = operation_of(snapshot)
        if operation is not None:
            events.append(event_of(table.sensor_id, cursor, snapshot, operation))
            cursor = _with_data(cursor, snapshot)
            reported.append(snapshot)
        if operation is Operation.UPDATE:
            overwrites.append(snapshot.id)
        cursor = _at(cursor, snapshot)
    is_all = len(snapshots) <= SNAPSHOTS_PER_PROBE
    return Finding(
        position=replace(cursor, pointer=table.pointer if is_all else None),
        events=tuple(events),
        reported=tuple(reported),
        rows=NewRows(
            metadata=table.pointer.location,
            since=before.snapshot,
            until=cursor.snapshot,
            overwrites=tuple(overwrites),
        ),
    )


def _rolled_back(
    table: Table, before: Cursor, base: Snapshot, snapshots: Sequence[Snapshot]
) -> Finding:
    """Report that snapshots were taken back, and what came on top of the one that was kept."""
    if not _rolled_back_data(table.metadata, before, base):
        return _reported(table, _at(before, base), snapshots)
    cursor = replace(before, lineage=next_lineage(before.lineage, before.uuid))
    tags = {"rolled_back": "true", "rolled_back_from": str(before.snapshot)}
    event = change_of(table.sensor_id, cursor, base, Operation.UPDATE, tags)
    cursor = _at(_with_data(cursor, base), base)
    return _with_first(_reported(table, cursor, snapshots), event)


def _rolled_back_data(metadata: Metadata, before: Cursor, base: Snapshot) -> bool:
    at = before.snapshot
    while at is not None and at != base.id:
        snapshot = metadata.snapshots.get(at)
        if snapshot is None or operation_of(snapshot) is not None:
            return True
        at = snapshot.parent
    return at is None


def _replaced(table: Table, before: Cursor, snapshots: Sequence[Snapshot]) -> Finding:
    """Report that the table was replaced by one with a history of its own."""
    first = snapshots[0]
    found = _reported(table, before, snapshots)
    tags = {"replaced": "true"}
    if found.events and found.events[0].snapshot_id == str(first.id):
        event = found.events[0]
        tags = {**event.tags, **tags}
        event = replace(event, operation_type=Operation.UPDATE, tags=tags)
        found = replace(found, events=found.events[1:], reported=found.reported[1:])
        return _with_first(found, event)
    return _with_first(found, change_of(table.sensor_id, before, first, Operation.UPDATE, tags))


def _with_first(found: Finding, event: ChangeEvent) -> Finding:
    """Put an event before the others, after which the whole table counts as new."""
    rows = None if found.rows is None else replace(found.rows, since=None)
    return replace(found, events=(event, *found.events), rows=rows)


def _emptied(table: Table, before: Cursor) -> Finding:
    """Report that the table was replaced by one without any snapshot."""
    lineage = next_lineage(before.lineage, before.uuid)
    event = ChangeEvent(
        table=table.sensor_id,
        snapshot_id=None,
        snapshot_ts=None,
        prev_snapshot_id=None if before.data is None else str(before.data),
        table_format=TableFormat.ICEBERG,
        operation_type=Operation.DELETE,
        tags={"replaced": "true", "table_id": before.uuid},
        lineage=lineage,
    )
    cursor = replace(before, snapshot=None, data=None, lineage=lineage, pointer=table.pointer)
    return Finding(position=cursor, events=() if before.data is None else (event,))


def _gap(table: Table, before: Cursor, snapshots: Sequence[Snapshot]) -> Finding:
    """Report all that came after a cursor at once, since a part of it is expired."""
    oldest, newest = snapshots[0], snapshots[-1]
    event = change_of(table.sensor_id, before, newest, Operation.UPDATE, {"gap": "true"})
    start = "the first one" if before.snapshot is None else f"{before.snapshot}"
    return Finding(
        position=replace(_at(_with_data(before, newest), newest), pointer=table.pointer),
        events=(event,),
        rows=NewRows(metadata=table.pointer.location, since=None, until=newest.id),
        gap=(
            f"Snapshots of {table.sensor_id} were expired before the probe: those between {start}"
            f" and {oldest.id} are gone."
        ),
    )


def _initial_cursor(table: Table, lineage: str) -> Cursor:
    return Cursor(
        uuid=table.metadata.uuid,
        snapshot=None,
        sequence=0,
        timestamp_ms=0,
        data=None,
        schema_id=None,
        lineage=lineage,
        pointer=table.pointer,
    )


def _all_of(table: Table, start: Cursor, tag: str) -> Finding:
    """Report a table as a whole, as it is now."""
    current = table.metadata.current
    if current is None:
        return Finding(position=start)
    line = _line(table.metadata, None)
    operations = {operation_of(each) for each in line.snapshots} - {None}
    is_complete = line.end is not End.EXPIRED
    if is_complete and not operations:
        return Finding(position=_at(start, current))
    only_appended = is_complete and tag == "first_sight" and operations == {Operation.APPEND}
    operation = Operation.APPEND if only_appended else Operation.UPDATE
    return Finding(
        position=_at(_with_data(start, current), current),
        events=(change_of(table.sensor_id, start, current, operation, {tag: "true"}),),
        rows=NewRows(metadata=table.pointer.location, since=None, until=current.id),
    )


def _at(cursor: Cursor, snapshot: Snapshot) -> Cursor:
    return replace(
        cursor,
        snapshot=snapshot.id,
        sequence=snapshot.sequence,
        timestamp_ms=snapshot.timestamp_ms,
    )


def _with_data(cursor: Cursor, snapshot: Snapshot) -> Cursor:
    return replace(cursor, data=snapshot.id, schema_id=snapshot.schema_id)

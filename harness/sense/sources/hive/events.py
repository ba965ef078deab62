"""Describes changed partitions as data-change events."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from urllib.parse import unquote

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.sources.hive.cursor import WHOLE_TABLE, Cursor, PartitionChange
from harness.sense.sources.hive.partitions import EMPTY, State

#: More partitions than this in one probe are one event that counts them.
EVENTS_PER_PROBE = 100
_PARTITIONS_LIMIT = 1000
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def events_of(
    table: str, changes: Sequence[PartitionChange], cursor: Cursor
) -> tuple[ChangeEvent, ...]:
    """Return one event per partition, or a single one for very many.

    Args:
        table: The ``sensor_id``.
        changes: The partitions.
        cursor: The one after the probe.
    """
    if len(changes) > EVENTS_PER_PROBE:
        return (_of_many(table, changes, cursor),)
    return tuple(_of_one(table, each, cursor) for each in changes)


def event_of_all(table: str, states: Mapping[str, State], cursor: Cursor, tag: str) -> ChangeEvent:
    """Describe a table as a whole, as it is now."""
    held = [state for state in states.values() if state.identity != EMPTY]
    operation = Operation.APPEND if tag == "first_sight" else Operation.UPDATE
    event = _event(table, cursor, held, operation)
    tags = {tag: "true", **event.tags}
    if WHOLE_TABLE not in states:
        tags["partitions_count"] = str(len(held))
    return replace(event, tags=tags)


def values_of(name: str) -> tuple[str | None, ...]:
    """Return the values in a partition's name, one per level; a null one has none."""
    values = [unquote(part.partition("=")[2]) for part in name.split("/")]
    return tuple(None if value == _NULL_PARTITION else value for value in values)


def _of_one(table: str, changes: PartitionChange, cursor: Cursor) -> ChangeEvent:
    states = [] if changes.state is None else [changes.state]
    event = _event(table, cursor, states, changes.operation)
    former = None if changes.former in (None, EMPTY) else changes.former
    # What is gone has no state of its own: it is named after what it was.
    is_gone = not states or states[0].identity == EMPTY
    text = f"{changes.name} gone {(changes.former or b'').hex()}" if is_gone else None
    return replace(
        event,
        partition=None if changes.name == WHOLE_TABLE else _as_json(changes.name),
        snapshot_id=event.snapshot_id if text is None else _hash(text.encode()),
        prev_snapshot_id=None if former is None else _hash(former),
        tags=event.tags
        if changes.name == WHOLE_TABLE
        else {**event.tags, "partition": changes.name},
    )


def _of_many(table: str, changes: Sequence[PartitionChange], cursor: Cursor) -> ChangeEvent:
    operations = {each.operation for each in changes}
    operation = operations.pop() if len(operations) == 1 else Operation.UPDATE
    event = _event(table, cursor, [each.state for each in changes if each.state], operation)
    formers = b"".join(each.former or b"" for each in changes)
    rows = ",".join(f"[{','.join(_as_json(each.name))}]" for each in changes[:_PARTITIONS_LIMIT])
    tags = {**event.tags, "partitions_count": str(len(changes)), "partitions": f"[{rows}]"}
    if len(changes) > _PARTITIONS_LIMIT:
        tags["partitions_truncated"] = "true"
    snapshot_id = _hash(f"{event.snapshot_id} after ".encode() + formers)
    return replace(event, snapshot_id=snapshot_id, tags=tags)


def _event(
    table: str, cursor: Cursor, states: Iterable[State], operation: Operation
) -> ChangeEvent:
    states = list(states)
    identities = sorted(state.identity for state in states)
    newest = [state.newest_ms for state in states if state.newest_ms is not None]
    return ChangeEvent(
        table=table,
        # Of a single partition it is the hash of its own identity, which the next one names.
        snapshot_id=_hash(b"".join(identities)),
        snapshot_ts=max(newest, default=None),
        prev_snapshot_id=None,
        table_format=TableFormat.HIVE,
        operation_type=operation,
        tags={
            "files": str(sum(state.files for state in states)),
            "size": str(sum(state.size for state in states)),
        },
        lineage=cursor.lineage,
    )


def _as_json(name: str) -> tuple[str, ...]:
    return tuple(json.dumps(value, ensure_ascii=False) for value in values_of(name))


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]

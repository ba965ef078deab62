"""Describes new files as data-change events."""

import json
from collections.abc import Sequence
from hashlib import sha256

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.sources.file.cursor import Cursor, NewFile
from harness.store.work_lists import Upstream

#: More files than this in one probe are one event that counts them.
EVENTS_PER_PROBE = 100


def events_of(
    upstream: Upstream, changes: Sequence[NewFile], cursor: Cursor
) -> tuple[ChangeEvent, ...]:
    """Return one event per file, or a single one for very many.

    Args:
        upstream: Where they are.
        changes: The files.
        cursor: The one after the probe.
    """
    lineage = str(cursor.departures)
    if len(changes) > EVENTS_PER_PROBE:
        return (_of_all(upstream, changes, lineage),)
    return tuple(_of_one(upstream, each, lineage) for each in changes)


def _of_one(upstream: Upstream, changes: NewFile, lineage: str) -> ChangeEvent:
    file = changes.file
    return ChangeEvent(
        table=upstream.sensor_id,
        partition=_partition(changes),
        snapshot_id=changes.identity.hex(),
        snapshot_ts=file.mtime_ns // 1_000_000,
        prev_snapshot_id=None if changes.former is None else changes.former.hex(),
        table_format=TableFormat.FILE,
        operation_type=Operation.APPEND if changes.former is None else Operation.UPDATE,
        tags={"path": _readable(file.path), "size": str(file.length)},
        lineage=lineage,
    )


def _of_all(upstream: Upstream, changes: Sequence[NewFile], lineage: str) -> ChangeEvent:
    partitions = {_partition(each) for each in changes}
    only_new = all(each.former is None for each in changes)
    return ChangeEvent(
        table=upstream.sensor_id,
        partition=partitions.pop() if len(partitions) == 1 else None,
        snapshot_id=sha256(b"".join(sorted(each.identity for each in changes))).hexdigest()[:32],
        snapshot_ts=max(each.file.mtime_ns for each in changes) // 1_000_000,
        prev_snapshot_id=None,
        table_format=TableFormat.FILE,
        operation_type=Operation.APPEND if only_new else Operation.UPDATE,
        tags={
            "files": str(len(changes)),
            "size": str(sum(each.file.length for each in changes)),
            "first_path": _readable(changes[0].file.path),
            "last_path": _readable(changes[-1].file.path),
        },
        lineage=lineage,
    )


def _partition(changes: NewFile) -> tuple[str, ...] | None:
    values = [value for _, value in changes.file.partition]
    return tuple(json.dumps(value, ensure_ascii=False) for value in values) or None


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")

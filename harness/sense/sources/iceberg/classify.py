"""Determines what one snapshot did to the data, by its summary, and describes it as an event."""

from collections.abc import Mapping

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.sources.iceberg.cursor import Cursor
from harness.sense.sources.iceberg.metadata import Snapshot

_OPERATIONS = {
    "append": Operation.APPEND,
    "delete": Operation.DELETE,
    "overwrite": Operation.UPDATE,
    # Files rewritten, as by compaction: the rows are the same.
    "replace": None,
}
#: Writers leave out those that are zero.
_CHANGES = (
    "added-data-files",
    "deleted-data-files",
    "added-delete-files",
    "removed-delete-files",
    "added-records",
    "deleted-records",
)
#: Writers that count write at least one of these, whatever they changed.
_COUNTS = ("changed-partition-count", "total-data-files", "total-records")
#: What a summary has for people, under our names.
_TAGS = {
    "operation": "operation",
    "added-records": "rows_written",
    "deleted-records": "rows_deleted",
    "added-data-files": "files_written",
    "engine-name": "engine",
    "engine-version": "engine_version",
    "app-id": "app",
    "spark.app.id": "app",
    "wap.id": "wap_id",
    "published-wap-id": "wap_id",
    "source-snapshot-id": "source_snapshot_id",
    "replace-partitions": "overwrite",
    "changed-partition-count": "changed_partitions",
}
_TEXT_LIMIT = 1000


def operation_of(snapshot: Snapshot) -> Operation | None:
    """Return what a snapshot did to the data, ``None`` when it changed none."""
    summary = snapshot.summary
    # One without an operation, or with a new one, may have done anything.
    operation = _OPERATIONS.get(summary.get("operation", ""), Operation.UPDATE)
    if operation is None or any(_is_positive(summary.get(name)) for name in _CHANGES):
        return operation
    counted = any(name in summary for name in _COUNTS)
    return None if counted else operation


def event_of(table: str, cursor: Cursor, snapshot: Snapshot, operation: Operation) -> ChangeEvent:
    """Describe one snapshot as an event, without its partitions: those are in its manifests.

    Args:
        table: The ``sensor_id``.
        cursor: The one before it.
        snapshot: What to describe.
        operation: What it did.
    """
    tags = _tags_of(snapshot)
    known = {cursor.schema_id, snapshot.schema_id}
    if None not in known and len(known) > 1:
        tags["schema_changed"] = "true"
    return change_of(table, cursor, snapshot, operation, tags)


def change_of(
    table: str,
    cursor: Cursor,
    snapshot: Snapshot,
    operation: Operation,
    tags: Mapping[str, str],
) -> ChangeEvent:
    """Describe a change that led to a snapshot; the cursor is the one before it."""
    return ChangeEvent(
        table=table,
        snapshot_id=str(snapshot.id),
        snapshot_ts=snapshot.timestamp_ms,
        prev_snapshot_id=None if cursor.data is None else str(cursor.data),
        table_format=TableFormat.ICEBERG,
        operation_type=operation,
        tags={**tags, "table_id": cursor.uuid},
        lineage=cursor.lineage,
    )


def _tags_of(snapshot: Snapshot) -> dict[str, str]:
    tags = {
        ours: snapshot.summary[theirs][:_TEXT_LIMIT]
        for theirs, ours in _TAGS.items()
        if theirs in snapshot.summary
    }
    if snapshot.sequence:
        tags["sequence_number"] = str(snapshot.sequence)
    return tags


def _is_positive(count: str | None) -> bool:
    return count is not None and count.strip() not in ("", "0")

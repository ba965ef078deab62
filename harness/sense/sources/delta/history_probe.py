"""Senses by their history tables whose bare log is incomplete; each probe costs Spark jobs.

So are the tables whose commits a catalog ratifies: the newest of them need not be in the log yet.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from harness.config.sources import FirstSight
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.platform.storage import FileStat
from harness.sense.cursor import next_lineage
from harness.sense.sources.delta.commits import (
    VERSIONS_PER_PROBE,
    Change,
    Finding,
    Portion,
    coalesced,
)
from harness.sense.sources.delta.cursor import Cursor
from harness.sense.sources.delta.history import HistoryRow, TableHistory, operation_by_name
from harness.sense.sources.delta.schema import Column
from harness.store.work_lists import Upstream

#: Versions that one query always requests: most often it is the only query.
NEWEST_VERSIONS = 20
#: Versions that may come in between two queries.
_IN_BETWEEN = 100


def is_by_history(cursor: Cursor) -> bool:
    """Return whether a cursor was found by history; such a one records no commit file."""
    return cursor.digest == ""


def first_by_history(
    history: TableHistory, upstream: Upstream, key_name: str | None, name: str | None = None
) -> Finding:
    """Probe a table for the first time; its name in full, where that is not the ``sensor_id``."""
    table = name or upstream.sensor_id
    table_id = history.table_id(table)
    newest, *_ = rows = history.newest(table, NEWEST_VERSIONS)
    cursor = Cursor(
        path=table,
        table_id=table_id,
        version=newest.version,
        data_version=newest.version,
        fingerprint=_fingerprint(newest),
        digest="",
        lineage=f"{table_id}/0",
        schema_digest="",
        is_plain=False,
        key=None if key_name is None else Column(name=key_name, physical=key_name, type="unknown"),
    )
    if upstream.on_first_sight is FirstSight.BASELINE:
        return Finding(position=cursor)
    if _is_only_created(newest):
        return Finding(position=replace(cursor, data_version=None))
    before = replace(cursor, data_version=None)
    change = _change(upstream, before, newest, Operation.UPDATE, "first_sight")
    # A table that was only rearranged since has not changed since.
    last = next((row for row in rows if operation_by_name(row) is not None), newest)
    event = replace(change.event, snapshot_ts=last.timestamp_ms)
    return Finding(position=cursor, changes=(replace(change, event=event),))


def follow_history(
    history: TableHistory,
    upstream: Upstream,
    cursor: Cursor,
    portion: Portion,
    name: str | None = None,
) -> Finding:
    """Report what happened after a cursor."""
    table = name or upstream.sensor_id
    newest, *_ = rows = history.newest(table, NEWEST_VERSIONS)
    if len(rows) == NEWEST_VERSIONS and rows[-1].version > cursor.version:
        rows = history.newest(table, newest.version - cursor.version + _IN_BETWEEN)
    known = next((row for row in rows if row.version == cursor.version), None)
    if newest.version < cursor.version or not _is_same_generation(history, table, cursor, known):
        return _created_again(history, upstream, replace(cursor, path=table), newest)
    fingerprint = FileStat(0, 0) if known is None else _fingerprint(known)
    cursor = replace(cursor, fingerprint=fingerprint, digest="", path=table)
    changes = [row for row in reversed(rows) if row.version > cursor.version]
    if changes and changes[0].version > cursor.version + 1:
        return _gap(upstream, cursor, changes)
    return _reported(upstream, cursor, changes, portion)


def _is_same_generation(
    history: TableHistory, table: str, cursor: Cursor, known: HistoryRow | None
) -> bool:
    """Return whether the table is the one that the cursor is of; in doubt its id decides."""
    if (
        known is not None
        and is_by_history(cursor)
        and cursor.fingerprint in (FileStat(0, 0), _fingerprint(known))
    ):
        return True
    return history.table_id(table) == cursor.table_id


def _is_only_created(newest: HistoryRow) -> bool:
    return newest.version == 0 and operation_by_name(newest) is None


def _fingerprint(row: HistoryRow) -> FileStat:
    """Return what distinguishes a version from the same one of another table: here, its time."""
    return FileStat(0, row.timestamp_ms)


def _reported(
    upstream: Upstream, cursor: Cursor, rows: Sequence[HistoryRow], portion: Portion
) -> Finding:
    changes: list[Change] = []
    for read, row in enumerate(rows[:VERSIONS_PER_PROBE], start=1):
        operation = operation_by_name(row)
        if operation is not None:
            changes.append(_change(upstream, cursor, row, operation, None))
            cursor = replace(cursor, data_version=row.version)
        cursor = replace(cursor, version=row.version, fingerprint=_fingerprint(row))
        if portion.is_full(version=row.version, read=read, changes=len(changes)):
            break
    return Finding(position=cursor, changes=coalesced(changes))


def _created_again(
    history: TableHistory, upstream: Upstream, cursor: Cursor, newest: HistoryRow
) -> Finding:
    table_id = history.table_id(cursor.path)
    fresh = replace(
        cursor,
        table_id=table_id,
        lineage=next_lineage(cursor.lineage, table_id),
        version=newest.version,
        data_version=None,
        fingerprint=_fingerprint(newest),
        digest="",
    )
    if _is_only_created(newest):
        return Finding(position=fresh)
    change = _change(upstream, fresh, newest, Operation.UPDATE, "recreated")
    return Finding(position=replace(fresh, data_version=newest.version), changes=(change,))


def _gap(upstream: Upstream, cursor: Cursor, rows: Sequence[HistoryRow]) -> Finding:
    newest, first = rows[-1], cursor.version + 1
    change = _change(upstream, cursor, newest, Operation.UPDATE, "gap")
    tags = {**change.event.tags, "coalesced_from": str(first)}
    lost = f"versions {first} to {rows[0].version - 1}"
    after = replace(
        cursor,
        version=newest.version,
        data_version=newest.version,
        fingerprint=_fingerprint(newest),
        digest="",
    )
    return Finding(
        position=after,
        changes=(replace(change, event=replace(change.event, tags=tags)),),
        gap=f"The log of {upstream.sensor_id} was cleaned before the probe: {lost} are gone.",
    )


def _change(
    upstream: Upstream,
    cursor: Cursor,
    row: HistoryRow,
    operation: Operation,
    tag: str | None,
) -> Change:
    tags = {"operation": row.operation, "by_history": "true", "table_id": cursor.table_id}
    if tag is not None:
        tags[tag] = "true"
    if row.user_metadata:
        tags["user_metadata"] = row.user_metadata[:1000]
    if row.metrics:
        tags["metrics"] = json.dumps(dict(row.metrics))[:1000]
    event = ChangeEvent(
        table=upstream.sensor_id,
        snapshot_id=str(row.version),
        snapshot_ts=row.timestamp_ms,
        prev_snapshot_id=None if cursor.data_version is None else str(cursor.data_version),
        table_format=TableFormat.DELTA,
        operation_type=operation,
        tags=tags,
        lineage=cursor.lineage,
    )
    return Change(event=event)

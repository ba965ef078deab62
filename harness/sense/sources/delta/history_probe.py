"""Senses by their history tables whose bare log says too little; each look costs Spark jobs.

So are the tables whose commits a catalog ratifies: the newest of them need not be in the log yet.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from harness.config.sources import FirstSight
from harness.events.event import Operation, TableFormat
from harness.platform.storage import FileStat
from harness.sense.cursor import next_lineage
from harness.sense.probe import DataChange, Upstream
from harness.sense.sources.delta.commits import VERSIONS_PER_LOOK, Change, Finding, Portion, told
from harness.sense.sources.delta.cursor import Position
from harness.sense.sources.delta.history import HistoryRow, TableHistory, operation_by_name
from harness.sense.sources.delta.schema import Column

#: Versions that may come in between two questions.
_IN_BETWEEN = 100


def is_by_history(position: Position) -> bool:
    """Tell whether a position was found by history; such a one knows no commit file."""
    return position.digest == ""


def first_by_history(history: TableHistory, upstream: Upstream, key_name: str | None) -> Finding:
    """Look at a table for the first time."""
    table = upstream.sensor_id
    table_id = history.table_id(table)
    [newest] = history.newest(table, 1)
    position = Position(
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
        return Finding(position=position)
    if _is_only_created(newest):
        return Finding(position=replace(position, data_version=None))
    before = replace(position, data_version=None)
    return Finding(
        position=position,
        changes=(_change(upstream, before, newest, Operation.UPDATE, "first_sight"),),
    )


def follow_history(
    history: TableHistory, upstream: Upstream, position: Position, portion: Portion
) -> Finding:
    """Tell what happened after a position."""
    table = upstream.sensor_id
    [newest] = rows = history.newest(table, 1)
    if newest.version > position.version:
        rows = history.newest(table, newest.version - position.version + _IN_BETWEEN)
    known = next((row for row in rows if row.version == position.version), None)
    if newest.version < position.version or not _is_our_life(history, table, position, known):
        return _created_again(history, upstream, position, newest)
    fingerprint = FileStat(0, 0) if known is None else _fingerprint(known)
    position = replace(position, fingerprint=fingerprint, digest="", path=table)
    news = [row for row in reversed(rows) if row.version > position.version]
    if news and news[0].version > position.version + 1:
        return _gap(upstream, position, news)
    return _told(upstream, position, news, portion)


def _is_our_life(
    history: TableHistory, table: str, position: Position, known: HistoryRow | None
) -> bool:
    """Tell whether the table is the one that the position is of; in doubt its id says so."""
    if (
        known is not None
        and is_by_history(position)
        and position.fingerprint in (FileStat(0, 0), _fingerprint(known))
    ):
        return True
    return history.table_id(table) == position.table_id


def _is_only_created(newest: HistoryRow) -> bool:
    return newest.version == 0 and operation_by_name(newest) is None


def _fingerprint(row: HistoryRow) -> FileStat:
    """Return what tells a version from the same one of another table: here, its time."""
    return FileStat(0, row.timestamp_ms)


def _told(
    upstream: Upstream, position: Position, rows: Sequence[HistoryRow], portion: Portion
) -> Finding:
    changes: list[Change] = []
    for read, row in enumerate(rows[:VERSIONS_PER_LOOK], start=1):
        operation = operation_by_name(row)
        if operation is not None:
            changes.append(_change(upstream, position, row, operation, None))
            position = replace(position, data_version=row.version)
        position = replace(position, version=row.version, fingerprint=_fingerprint(row))
        if portion.is_full(version=row.version, read=read, changes=len(changes)):
            break
    return Finding(position=position, changes=told(changes))


def _created_again(
    history: TableHistory, upstream: Upstream, position: Position, newest: HistoryRow
) -> Finding:
    table_id = history.table_id(upstream.sensor_id)
    fresh = replace(
        position,
        table_id=table_id,
        lineage=next_lineage(position.lineage, table_id),
        version=newest.version,
        data_version=None,
        fingerprint=_fingerprint(newest),
        digest="",
        path=upstream.sensor_id,
    )
    if _is_only_created(newest):
        return Finding(position=fresh)
    change = _change(upstream, fresh, newest, Operation.UPDATE, "recreated")
    return Finding(position=replace(fresh, data_version=newest.version), changes=(change,))


def _gap(upstream: Upstream, position: Position, rows: Sequence[HistoryRow]) -> Finding:
    newest, first = rows[-1], position.version + 1
    change = _change(upstream, position, newest, Operation.UPDATE, "gap")
    tags = {**change.event.tags, "coalesced_from": str(first)}
    lost = f"versions {first} to {rows[0].version - 1}"
    after = replace(
        position,
        path=upstream.sensor_id,
        version=newest.version,
        data_version=newest.version,
        fingerprint=_fingerprint(newest),
        digest="",
    )
    return Finding(
        position=after,
        changes=(replace(change, event=replace(change.event, tags=tags)),),
        gap=f"The log of {upstream.sensor_id} was cleaned before we looked: {lost} are gone.",
    )


def _change(
    upstream: Upstream,
    position: Position,
    row: HistoryRow,
    operation: Operation,
    tag: str | None,
) -> Change:
    tags = {"operation": row.operation, "by_history": "true", "table_id": position.table_id}
    if tag is not None:
        tags[tag] = "true"
    if row.user_metadata:
        tags["user_metadata"] = row.user_metadata[:1000]
    if row.metrics:
        tags["metrics"] = json.dumps(dict(row.metrics))[:1000]
    event = DataChange(
        table=upstream.sensor_id,
        snapshot_id=str(row.version),
        snapshot_ts=row.timestamp_ms,
        prev_snapshot_id=None if position.data_version is None else str(position.data_version),
        table_format=TableFormat.DELTA,
        operation=operation,
        tags=tags,
        lineage=position.lineage,
    )
    return Change(event=event)

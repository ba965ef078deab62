"""Probes sensors of other data products: an event is a job that has processed its new data."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.platform.storage import reason_of
from harness.sense.cursor import read_cursor
from harness.sense.preprocess.run import Questions, Rows, evaluate
from harness.sense.probe import ProbeResult
from harness.sense.sources.upstream_sensor.rows import COLUMNS, SensorRow, instant_of, is_later
from harness.sense.sources.upstream_sensor.tables import FROM_NOW_ON, Known, Tables
from harness.store.work_lists import Upstream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CURSOR_VERSION = 1
_LONGEST_TAG = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cursor:
    #: The table's version at the last event; later ones may hold what was finished in between.
    version: int
    #: Sensor -> when it was last finished.
    finished: Mapping[str, str] = field(default_factory=dict)

    def to_text(self) -> str:
        record = {
            "v": _CURSOR_VERSION,
            "version": self.version,
            "finished": {name: self.finished[name] for name in sorted(self.finished)},
        }
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


class UpstreamSensorProbe:
    """Senses ``delta_upstream_sensor``: each table is probed once for all its sensors."""

    def __init__(self, tables: Tables, questions: Questions) -> None:
        self._tables = tables
        self._questions = questions

    def group_of(self, upstream: Upstream) -> str:
        """Return the table: all its sensors are probed together."""
        return split(upstream.sensor_id)[0]

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream; the instant plays no part."""
        return list(self._results(group))

    def _results(self, group: Sequence[Upstream]) -> Iterator[ProbeResult]:
        try:
            known = self._tables.known(
                self.group_of(group[0]), lambda rows: _oldest_version(group, rows)
            )
        except (ProbeFailedError, OSError) as error:
            reason = reason_of(error)
        else:
            for upstream in group:
                try:
                    yield self._probe(upstream, known)
                except ProbeFailedError as error:
                    yield _failed(upstream, str(error))
            return
        for upstream in group:
            yield _failed(upstream, reason)

    def _probe(self, upstream: Upstream, known: Known) -> ProbeResult:
        table, name = split(upstream.sensor_id)
        before = _cursor_from(upstream.position)
        rows = [row for row in known.rows if row.is_about(name)]
        if not rows:
            raise ProbeFailedError(f"{table} has no sensor and no asset {name}")
        changes = _finished_since(rows, known, name, before)
        if not changes and before is not None:
            return _probe(upstream, upstream.position)
        after = _Cursor(
            version=known.version,
            finished={
                **(before.finished if before else {}),
                **{row.sensor_id: row.changed_at for row in changes},
            },
        )
        is_baseline = before is None and upstream.on_first_sight is FirstSight.BASELINE
        value, events = upstream.upstream_value, _events(table, changes, before)
        if changes and upstream.preprocess_query:
            answer = evaluate(self._questions, upstream, _as_rows(changes), is_baseline=is_baseline)
            value, events = answer.upstream_value, events if answer.is_change else ()
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=after.to_text(),
            events=() if is_baseline else events,
            upstream_value=value,
        )


def split(sensor_id: str) -> tuple[str, str]:
    """Split ``table: sensor`` at the first colon with a space behind it, and a name at any colon.

    Raises:
        ProbeFailedError: One of the two is missing.
    """
    table, colon, name = sensor_id.partition(": ")
    if not colon and "/" not in sensor_id.partition(":")[0]:
        table, colon, name = sensor_id.partition(":")
    if not (table.strip() and name.strip()):
        raise ProbeFailedError("it must name a table and a sensor, as in sales.sensors: orders")
    return table.strip(), name.strip()


def _finished_since(
    rows: Sequence[SensorRow], known: Known, name: str, before: _Cursor | None
) -> list[SensorRow]:
    """Return what was finished after the cursor, oldest first, each once."""
    finished = [row for row in rows if row.is_finished]
    if before is None:
        return finished
    passed = [
        each.row
        for each in known.passed
        if each.version > before.version and each.row.is_about(name)
    ]
    changes = {
        (row.sensor_id, row.changed_at): row
        for row in (*passed, *finished)
        if row.sensor_id not in before.finished
        or is_later(row.changed_at, before.finished[row.sensor_id])
    }
    return sorted(changes.values(), key=_when)


def _when(row: SensorRow) -> tuple[float, str]:
    found = instant_of(row.changed_at)
    return (found.timestamp() if found else 0.0, row.changed_at)


def _events(
    table: str, changes: Sequence[SensorRow], before: _Cursor | None
) -> tuple[ChangeEvent, ...]:
    last = dict(before.finished) if before else {}
    events = []
    for row in changes:
        events.append(_event(table, row, last.get(row.sensor_id)))
        last[row.sensor_id] = row.changed_at
    return tuple(events)


def _event(table: str, row: SensorRow, former: str | None) -> ChangeEvent:
    found = instant_of(row.changed_at)
    tags = {
        "sensor_id": row.sensor_id,
        "status_change_timestamp": row.changed_at,
        "assets": json.dumps(row.assets, ensure_ascii=False)[:_LONGEST_TAG] if row.assets else None,
        "upstream_key": row.upstream_key,
        "upstream_value": row.upstream_value,
    }
    return ChangeEvent(
        table=table,
        snapshot_id=f"{row.sensor_id}@{row.changed_at}",
        snapshot_ts=round(found.timestamp() * 1000) if found else None,
        prev_snapshot_id=None if former is None else f"{row.sensor_id}@{former}",
        table_format=TableFormat.SENSOR,
        operation_type=Operation.UPDATE,
        tags={key: value for key, value in tags.items() if value},
        lineage="",
    )


def _as_rows(changes: Sequence[SensorRow]) -> Rows:
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    content = [
        (
            row.sensor_id,
            list(row.assets),
            row.status,
            row.changed_at,
            row.checkpoint_location,
            row.upstream_key,
            row.upstream_value,
        )
        for row in changes
    ]

    def read(session: "SparkSession") -> "DataFrame":
        return session.createDataFrame(content, schema)

    return read


def _oldest_version(group: Sequence[Upstream], rows: Sequence[SensorRow]) -> int | None:
    """Return the version after which a sensor of the group may have been finished unseen.

    Args:
        group: The sensors of one table.
        rows: What the table shows of them.

    Returns:
        Nothing when each sensor is as its cursor has it.
    """
    versions = []
    for upstream in group:
        try:
            cursor = _cursor_from(upstream.position)
        except ProbeFailedError:
            continue  # it is reported by the probe of that upstream
        if cursor is None:
            versions.append(FROM_NOW_ON)
        elif _has_moved(upstream, cursor, rows):
            versions.append(cursor.version)
    return min(versions, default=None)


def _has_moved(upstream: Upstream, cursor: _Cursor, rows: Sequence[SensorRow]) -> bool:
    name = split(upstream.sensor_id)[1]
    return any(
        row.changed_at != cursor.finished.get(row.sensor_id, "")
        for row in rows
        if row.is_about(name)
    )


def _cursor_from(text: str | None) -> _Cursor | None:
    if text is None:
        return None
    return read_cursor(text, _CURSOR_VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> _Cursor:
    return _Cursor(version=int(record["version"]), finished=dict(record["finished"]))


def _failed(upstream: Upstream, reason: str) -> ProbeResult:
    return _probe(
        upstream,
        upstream.position,
        f"The upstream sensor {upstream.sensor_id} cannot be sensed: {reason}.",
    )


def _probe(upstream: Upstream, position: str | None, failure: str | None = None) -> ProbeResult:
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=position,
        upstream_value=upstream.upstream_value,
        failure=failure,
    )

"""Senses by ``DESCRIBE HISTORY`` tables whose bare log says too little; it costs Spark jobs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from harness.errors import LookFailedError
from harness.names import in_sql
from harness.sense.delta.follow import COMMITS_PER_LOOK, Change, Finding
from harness.sense.delta.locate import is_path
from harness.sense.delta.position import Position, next_lineage
from harness.sense.delta.schema import Column
from harness.sense.storage import FileStat
from harness.sense.types import DataChange, FirstSight, Operation, TableFormat, Upstream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SILENT = frozenset(
    {
        "ADD COLUMNS",
        "ADD CONSTRAINT",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "CLUSTER BY",
        "COMPUTE STATS",
        "CREATE TABLE",
        "DROP COLUMNS",
        "DROP CONSTRAINT",
        "DROP FEATURE",
        "OPTIMIZE",
        "RENAME COLUMN",
        "REORG",
        "REPLACE COLUMNS",
        "ROW TRACKING BACKFILL",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPDATE SCHEMA",
        "UPGRADE PROTOCOL",
        "VACUUM END",
        "VACUUM START",
    }
)
_DELETIONS = frozenset({"DELETE", "TRUNCATE"})
_APPENDS = frozenset({"CREATE TABLE AS SELECT", "COPY INTO", "STREAMING UPDATE"})
_FILE_COUNTS = ("numFiles", "numAddedFiles", "numRemovedFiles", "numOutputRows")


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One version of a table, as its history names it."""

    version: int
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, str]
    user_metadata: str | None = None


class TableHistory(Protocol):
    """Knows what was done to a table."""

    def table_id(self, table: str) -> str:
        """Return the table's id."""
        ...

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        """Return that many of the newest versions, newest first."""
        ...


class SparkTableHistory:
    """Asks the Spark session."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def table_id(self, table: str) -> str:
        """Return the table's id."""
        from pyspark.errors import PySparkException

        try:
            detail = self._session().sql(f"describe detail {_quoted(table)}").collect()
        except PySparkException as error:
            raise LookFailedError(_sentence(error)) from error
        return str(detail[0]["id"])

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        """Return that many of the newest versions, newest first."""
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as f

        statement = f"describe history {_quoted(table)} limit {int(count)}"
        try:
            history = self._session().sql(statement)
            rows = history.withColumn("at", f.unix_millis("timestamp")).collect()
        except PySparkException as error:
            raise LookFailedError(_sentence(error)) from error
        return [
            HistoryRow(
                version=int(row["version"]),
                timestamp_ms=int(row["at"]),
                operation=str(row["operation"]),
                parameters=dict(row["operationParameters"] or {}),
                metrics=dict(row["operationMetrics"] or {}),
                user_metadata=row["userMetadata"],
            )
            for row in rows
        ]


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
        fingerprint=FileStat(0, 0),
        digest="",
        lineage=f"{table_id}/0",
        schema_digest="",
        is_plain=False,
        key=None if key_name is None else Column(name=key_name, physical=key_name, type="unknown"),
    )
    if upstream.on_first_sight is FirstSight.BASELINE:
        return Finding(position=position)
    if newest.version == 0 and operation_by_name(newest) is None:
        return Finding(position=replace(position, data_version=None))
    before = replace(position, data_version=None)
    return Finding(
        position=position,
        changes=(_change(upstream, before, newest, Operation.UPDATE, "first_sight"),),
    )


def follow_history(history: TableHistory, upstream: Upstream, position: Position) -> Finding:
    """Tell what happened after a position."""
    table = upstream.sensor_id
    [newest] = history.newest(table, 1)
    if newest.version == position.version:
        return Finding(position=position)
    if newest.version < position.version:
        return _created_again(history, upstream, position, newest)
    count = newest.version - position.version
    rows = [
        row
        for row in reversed(history.newest(table, count + COMMITS_PER_LOOK))
        if row.version > position.version
    ]
    if rows[0].version > position.version + 1:
        return _gap(upstream, position, rows)
    changes = []
    position = replace(position, fingerprint=FileStat(0, 0), digest="", path=table)
    for row in rows:
        operation = operation_by_name(row)
        if operation is not None:
            changes.append(_change(upstream, position, row, operation, None))
            position = replace(position, data_version=row.version)
        position = replace(position, version=row.version)
    return Finding(position=position, changes=tuple(changes))


def operation_by_name(row: HistoryRow) -> Operation | None:
    """Say what a version did by its name and its counts alone: in doubt it is an update."""
    operation = row.operation.upper()
    counts = [row.metrics[name] for name in _FILE_COUNTS if name in row.metrics]
    if operation in _SILENT or (counts and all(count == "0" for count in counts)):
        return None
    if operation in _DELETIONS:
        return Operation.DELETE
    mode = row.parameters.get("mode", row.parameters.get("outputMode", "")).strip('"')
    if operation in _APPENDS or (operation == "WRITE" and mode.lower() == "append"):
        return Operation.APPEND
    return Operation.UPDATE


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
    )
    change = _change(upstream, fresh, newest, Operation.UPDATE, "recreated")
    return Finding(position=replace(fresh, data_version=newest.version), changes=(change,))


def _gap(upstream: Upstream, position: Position, rows: Sequence[HistoryRow]) -> Finding:
    newest = rows[-1]
    change = _change(upstream, position, newest, Operation.UPDATE, "gap")
    lost = f"versions {position.version + 1} to {rows[0].version - 1}"
    return Finding(
        position=replace(position, version=newest.version, data_version=newest.version),
        changes=(change,),
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
    return Change(event=event, commit=None)


def _quoted(table: str) -> str:
    if is_path(table):
        return f"delta.`{table.replace('`', '``')}`"
    return in_sql(table)


def _sentence(error: Exception) -> str:
    first_line = next(iter(str(error).strip().splitlines()), repr(error))
    return f"Spark cannot tell its history: {first_line.rstrip('.')}"

"""Reads a table's history through Spark, and derives what each version did by its name alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from harness.errors import ProbeFailedError
from harness.events.event import Operation
from harness.platform.spark.session import message_of
from harness.platform.sql_names import in_sql, is_path

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
    """Reads what was done to a table."""

    def table_id(self, table: str) -> str:
        """Return the table's id."""
        ...

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        """Return that many of the newest versions, newest first."""
        ...


class SparkTableHistory:
    """Reads the history through the Spark session."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def table_id(self, table: str) -> str:
        """Return the table's id."""
        from harness.platform.spark.errors import SPARK_ERRORS

        try:
            detail = self._session().sql(f"describe detail {_quoted(table)}").collect()
        except SPARK_ERRORS as error:
            raise ProbeFailedError(_sentence(error)) from error
        return str(detail[0]["id"])

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        """Return that many of the newest versions, newest first."""
        from harness.platform.spark.errors import SPARK_ERRORS

        statement = f"describe history {_quoted(table)} limit {int(count)}"
        try:
            history = self._session().sql(statement)
            rows = history.selectExpr("*", "unix_millis(timestamp) as at").collect()
        except SPARK_ERRORS as error:
            raise ProbeFailedError(_sentence(error)) from error
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


def operation_by_name(row: HistoryRow) -> Operation | None:
    """Report what a version did by its name and its counts alone: in doubt it is an update."""
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


def _quoted(table: str) -> str:
    if is_path(table):
        return f"delta.`{table.replace('`', '``')}`"
    return in_sql(table)


def _sentence(error: Exception) -> str:
    words = message_of(error)
    condition = getattr(error, "getCondition", str)() or ""
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        return "the table does not exist, or is not shown to this identity"
    if "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE" in words:
        return "its commits are with a catalog: name it as the catalog does, not by its path"
    return f"Spark cannot read its history: {words}"

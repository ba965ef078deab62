"""Puts rows that came and rows that went together to what changed between two ends.

Whatever is read of a table, the result is the same: a row that came and went again, or that was
only written into another file, has not changed. The SQL is rendered by the macros that a dbt model
uses (macros/events/net_changes.sql).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.toolkit.changes.macros import macros

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

#: The column that shows what became of a row.
CHANGE_TYPE = "_change_type"


def gained(rows: "DataFrame") -> "DataFrame":
    """Mark rows that have come, and none that went."""
    from pyspark.sql import functions as f

    return rows.withColumn(CHANGE_TYPE, f.lit("insert"))


def between(old: "DataFrame", new: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    """Compare the rows of two states of a table, for which ``why_not_compared`` is ``None``."""
    columns = _columns(old.schema, new.schema)
    rows = macros().call._rows_of_states_sql("{old}", "{new}", columns)
    return _net(rows, columns, keys, old=old, new=new)


def of_log(log: "DataFrame", schema: "StructType", keys: Sequence[str]) -> "DataFrame":
    """Sum up what a table records of each of its changes.

    Args:
        log: The rows that came and went, each as often as it did, and ``_change_type``.
        schema: The columns of the table.
        keys: The columns that identify a row in both of its states.
    """
    columns = _columns(schema, schema)
    rows = macros().call._rows_of_log_sql("{log}", columns)
    return _net(rows, columns, keys, log=log)


def why_not_compared(old: "StructType", new: "StructType") -> str | None:
    """Report why two states of a table cannot be compared row by row; ``None`` when they can."""
    why: str | None = macros().call._why_not_compared(_types(old), _types(new))
    return why


def check_columns(schema: "StructType", keys: Sequence[str]) -> None:
    """Refuse keys that are no columns, and a column with the name that we need.

    Raises:
        ConfigurationError: One of the two.
    """
    macros().call._check_columns("the table", schema.names, keys)


def _net(
    rows: str, columns: Sequence[object], keys: Sequence[str], **frames: "DataFrame"
) -> "DataFrame":
    query = macros().call._net_changes_sql(rows, columns, keys, preimages=True)
    return next(iter(frames.values())).sparkSession.sql(query, None, **frames)


def _columns(old: "StructType", new: "StructType") -> list[dict[str, object]]:
    columns: list[dict[str, object]] = macros().call._columns_to_compare(_types(old), _types(new))
    for column in columns:
        # Spark puts a frame in the place of a name in braces.
        column["quoted"] = str(column["quoted"]).replace("{", "{{").replace("}", "}}")
    return columns


def _types(schema: "StructType") -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema}

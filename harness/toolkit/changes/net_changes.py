"""Puts rows that came and rows that went together to what changed between two ends.

Whatever is read of a table, the answer is the same: a row that came and went again, or that was
only written into another file, has not changed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

#: The column that says what became of a row.
CHANGE_TYPE = "_change_type"
INSERT, DELETE = "insert", "delete"
BEFORE, AFTER = "update_preimage", "update_postimage"
#: 1 for a row that came, -1 for one that went; only on the way to the answer.
_SIGN = "_change_sign"
#: Spark does not distinguish two values of these types, or not all of them.
_NOT_COMPARED = ("variant", "collate ")


def gained(rows: "DataFrame") -> "DataFrame":
    """Mark rows that have come, and none that went."""
    from pyspark.sql import functions as f

    return rows.withColumn(CHANGE_TYPE, f.lit(INSERT))


def between(old: "DataFrame", new: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    """Compare the rows of two states of a table, of which ``why_not_compared`` says nothing."""
    from pyspark.sql import functions as f

    columns = [
        _column(field.name)
        if field.name in old.columns
        else f.lit(None).cast(field.dataType).alias(field.name)
        for field in new.schema
    ]
    signed = new.withColumn(_SIGN, f.lit(1)).unionByName(
        old.select(*columns).withColumn(_SIGN, f.lit(-1))
    )
    return _net(signed, keys)


def of_log(
    rows: "DataFrame", came: "Column", names: Sequence[str], keys: Sequence[str]
) -> "DataFrame":
    """Sum up what a table says of each of its changes.

    Args:
        rows: The rows that came and went, each as often as it did.
        came: Distinguishes one from the other.
        names: The columns of the table.
        keys: The columns by which two states of a row are known to be of one.
    """
    from pyspark.sql import functions as f

    sign = f.when(came, 1).otherwise(-1).alias(_SIGN)
    return _net(rows.select(*map(_column, names), sign), keys)


def _net(signed: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    from pyspark.sql import functions as f

    names = [name for name in signed.columns if name != _SIGN]
    counted = signed.groupBy(*map(_column, names)).agg(f.sum(_SIGN).alias(_SIGN))
    changed = counted.where(f.col(_SIGN) != 0)
    # A row may be there several times.
    each = f.explode(f.sequence(f.lit(1), f.abs(_SIGN)))
    kind = f.when(f.col(_SIGN) > 0, INSERT).otherwise(DELETE)
    reported = changed.select(*map(_column, names), kind.alias(CHANGE_TYPE), each.alias(_SIGN))
    return _with_updates(reported.drop(_SIGN), keys)


def _with_updates(rows: "DataFrame", keys: Sequence[str]) -> "DataFrame":
    """Call a row that went an older state of one that came with the same key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not keys:
        return rows
    by_key = Window.partitionBy(*map(_column, keys))
    kind = f.col(CHANGE_TYPE)
    is_both = f.min(kind).over(by_key) != f.max(kind).over(by_key)
    update = f.when(kind == INSERT, AFTER).otherwise(BEFORE)
    return rows.withColumn(CHANGE_TYPE, f.when(is_both, update).otherwise(kind))


def why_not_compared(old: "StructType", new: "StructType") -> str | None:
    """Report why two states of a table cannot be compared row by row; ``None`` when they can."""
    before = {field.name: field.dataType for field in old}
    for field in new:
        if any(each in field.dataType.simpleString() for each in _NOT_COMPARED):
            return f"values of its column {field.name} cannot be compared"
        if before.get(field.name, field.dataType) != field.dataType:
            return f"its column {field.name} is of another type than before"
    if not any(field.name in before for field in new):
        return "it has none of the columns that it had"
    return None


def check_columns(schema: "StructType", keys: Sequence[str]) -> None:
    """Refuse keys that are no columns, and a column with the name that we need.

    Raises:
        ConfigurationError: One of the two.
    """
    names = [field.name for field in schema]
    unknown = [key for key in keys if key not in names]
    if unknown:
        raise ConfigurationError(
            f"the key {unknown[0]} is no column of the table; it has {', '.join(names)}"
        )
    consumed = [name for name in names if name in (CHANGE_TYPE, _SIGN)]
    if consumed:
        raise ConfigurationError(
            f"the table has a column {consumed[0]}, a name that its changes need: rename it, or"
            " read the table itself"
        )


def _column(name: str) -> "Column":
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")

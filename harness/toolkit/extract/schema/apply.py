"""Applies a schema plan: casts an extract's columns, widens a bronze table, records the changes.

The record is a small table beside bronze. It is written before the table is changed: a process that
dies in between leaves an entry, never an unrecorded change.
"""

from typing import TYPE_CHECKING

from pyspark.sql import types as t

from harness.platform.sql_names import in_sql, parts_of
from harness.toolkit.extract.lookback import checked_table, one_sentence
from harness.toolkit.extract.schema.plan import Filled, Plan, SchemaChange
from harness.toolkit.extract.schema.types import (
    ODD_NAMES,
    ODD_NAMES_FEATURE,
    Alteration,
    has_odd_names,
    is_odd,
)
from harness.toolkit.extract.target import Bronze

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_NO_TIME = "timestamp_ntz'1970-01-01 00:00:00'"


def fitted(frame: "DataFrame", columns: tuple[Filled, ...]) -> "DataFrame":
    """Return an extract with the columns of a plan."""
    return frame.select(*(_filled(each).alias(each.name) for each in columns))


def _filled(column: Filled) -> "Column":
    from pyspark.sql import functions as f

    if column.source is None or column.source_type is None:
        return f.lit(None).cast(column.data_type)
    value = f.col(quoted(column.source))
    if not column.only_same:
        return fit(value, column.source_type, column.data_type)
    if not _may_be_tried(column.source_type, column.data_type):
        return f.lit(None).cast(column.data_type)
    tried = value.try_cast(column.data_type)
    is_same = as_text(tried, column.data_type) == as_text(value, column.source_type)
    return f.when(is_same, tried)


def fit(value: "Column", here: t.DataType, there: t.DataType) -> "Column":
    """Return a value in a type that holds it; a field that is not there is NULL."""
    from pyspark.sql import functions as f

    if here.simpleString() == there.simpleString():
        return value
    match here, there:
        case _, t.StringType():
            return as_text(value, here)
        case t.StructType(), t.StructType():
            found = {each.name.lower(): each for each in here}
            fields = [
                fit(value.getField(found[each.name.lower()].name),
                    found[each.name.lower()].dataType, each.dataType)
                if each.name.lower() in found
                else f.lit(None).cast(each.dataType)
                for each in there
            ]  # fmt: skip
            named = [one.alias(each.name) for one, each in zip(fields, there.fields, strict=True)]
            return f.when(value.isNotNull(), f.struct(*named))
        case t.ArrayType(), t.ArrayType():
            return f.transform(value, lambda each: fit(each, here.elementType, there.elementType))
        case t.MapType(), t.MapType():
            return f.transform_values(
                value, lambda _, each: fit(each, here.valueType, there.valueType)
            )
        case _:
            return value.cast(there)


def as_text(value: "Column", data_type: t.DataType) -> "Column":
    """Return a value as text that loses nothing, whatever the session's time zone."""
    from pyspark.sql import functions as f

    match data_type:
        case t.TimestampType():
            micros = f.timestamp_add("MICROSECOND", f.unix_micros(value), f.expr(_NO_TIME))
            return f.concat(micros.cast("string"), f.lit("Z"))
        case t.BinaryType():
            return f.base64(value)
        case t.StructType() | t.ArrayType() | t.MapType() | t.VariantType():
            return f.to_json(value, {"timeZone": "UTC", "ignoreNullFields": "false"})
        case _:
            return value.cast("string")


def quoted(name: str) -> str:
    """Return one part of a name in backticks, out of which no character leads."""
    return f"`{name.replace('`', '``')}`"


def sql_type(data_type: t.DataType) -> str:
    """Return a type as SQL takes it, with the names of fields in backticks."""
    match data_type:
        case t.StructType():
            fields = (f"{quoted(each.name)}: {sql_type(each.dataType)}" for each in data_type)
            return f"struct<{', '.join(fields)}>"
        case t.ArrayType():
            return f"array<{sql_type(data_type.elementType)}>"
        case t.MapType():
            return f"map<{sql_type(data_type.keyType)}, {sql_type(data_type.valueType)}>"
        case _:
            return data_type.simpleString()


def _may_be_tried(here: t.DataType, there: t.DataType) -> bool:
    """Return whether Spark has a cast between two types that cannot be seen to lose something."""
    simple = t.NumericType | t.StringType | t.DateType | t.BooleanType
    if isinstance(here, t.StringType):
        return isinstance(there, simple | t.TimestampNTZType)
    return isinstance(here, t.NumericType) and isinstance(there, t.NumericType)


CHANGES_SUFFIX = "_schema_changes"
_LIST = "extracted_at timestamp, kind string, column string, was string, now string, done string"
_WIDENING = ("delta.enableTypeWidening", "true")


def evolve(bronze: Bronze, plan: Plan) -> None:
    """Record the differences, and alter the table."""
    with one_sentence(bronze.name, "cannot be given the columns of the extract"):
        _note(bronze, plan.changes)
        if bronze.provider == "delta":
            if any(not each.is_new for each in plan.alterations):
                _allow(bronze, _WIDENING)
            if any(_has_odd_name(each) for each in plan.alterations):
                _allow(bronze, ODD_NAMES, ODD_NAMES_FEATURE)
        for each in plan.alterations:
            bronze.session.sql(_statement(bronze.sql_name, each))
    if plan.alterations:
        bronze.refresh()


def schema_changes(spark: "SparkSession", table: str) -> "DataFrame":
    """Return what was changed about the columns of a bronze table, and when; oldest first.

    Args:
        spark: The session that reads.
        table: The bronze table's name.

    Raises:
        ConfigurationError: The name is none.
        ExtractError: The list cannot be read.
    """
    name = checked_table(table)
    with one_sentence(list_name(name)):
        if not spark.catalog.tableExists(in_sql(list_name(name))):
            return spark.createDataFrame([], _LIST)
        return spark.table(in_sql(list_name(name))).orderBy("extracted_at", "column", "kind")


def list_name(table: str) -> str:
    """Return the name of the list beside a table."""
    *schema, last = parts_of(table)
    return ".".join(f"`{part}`" for part in (*schema, last + CHANGES_SUFFIX))


def _statement(table: str, change: Alteration) -> str:
    way, data_type = ".".join(map(quoted, change.path)), sql_type(change.data_type)
    if change.is_new:
        return f"alter table {table} add columns ({way} {data_type})"
    return f"alter table {table} alter column {way} type {data_type}"


def _allow(bronze: Bronze, feature: tuple[str, str], before: tuple[str, str] | None = None) -> None:
    """Switch a feature of Delta on, where it is needed: older readers do not support it."""
    properties = bronze.session.sql(f"show tblproperties {bronze.sql_name}").collect()
    if feature in {(row["key"], row["value"]) for row in properties}:
        return
    for name, value in (before, feature) if before else (feature,):
        bronze.session.sql(
            f"alter table {bronze.sql_name} set tblproperties ('{name}' = '{value}')"
        )


def _has_odd_name(change: Alteration) -> bool:
    return is_odd(change.path[-1]) or has_odd_names(change.data_type)


def _note(bronze: Bronze, changes: tuple[SchemaChange, ...]) -> None:
    """Append the changes that differ from the last entries of their kind and column."""
    if not changes:
        return
    spark, name = bronze.session, in_sql(list_name(bronze.name))
    known = set()
    if spark.catalog.tableExists(name):
        known = _last_reported(spark.table(name))
    fresh = [each for each in changes if (each.kind, each.column, each.was, each.now) not in known]
    if not fresh:
        return
    rows = [
        (bronze.now, each.kind.value, each.column, each.was, each.now, each.done) for each in fresh
    ]
    frame = spark.createDataFrame(rows, _LIST)
    frame.write.format(bronze.kept_as).mode("append").saveAsTable(name)


def _last_reported(rows: "DataFrame") -> set[tuple[str, str, str | None, str | None]]:
    from pyspark.sql import functions as f

    about = f.struct("was", "now")
    last = rows.groupBy("kind", "column").agg(f.max_by(about, "extracted_at").alias("said"))
    return {
        (row["kind"], row["column"], row["said"]["was"], row["said"]["now"])
        for row in last.collect()
    }

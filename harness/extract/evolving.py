"""Gives a bronze table the columns and types of a plan, and keeps a list of what was changed.

The list is a small table beside bronze. It is written before the table is changed: a process that
dies in between leaves an entry, never a change that nobody noted.
"""

from typing import TYPE_CHECKING

from harness.extract.bronze import Bronze
from harness.extract.differences import SchemaChange
from harness.extract.fitting import quoted, sql_type
from harness.extract.look_back import checked_table, one_sentence
from harness.extract.merging import Alteration
from harness.extract.odd_names import ODD_NAMES, ODD_NAMES_FEATURE, has_odd_names, is_odd
from harness.extract.schema import Plan
from harness.names import in_sql, parts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGES_SUFFIX = "_schema_changes"
_LIST = "extracted_at timestamp, kind string, column string, was string, now string, done string"
_WIDENING = ("delta.enableTypeWidening", "true")


def evolve(bronze: Bronze, plan: Plan) -> None:
    """Note the differences, and alter the table."""
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
        bronze.look_again()


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
    """Switch a feature of Delta on, where it is needed: older readers do not know it."""
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
    """Append what the list does not say last of the same column."""
    if not changes:
        return
    spark, name = bronze.session, in_sql(list_name(bronze.name))
    said = set()
    if spark.catalog.tableExists(name):
        said = _last_said(spark.table(name))
    fresh = [each for each in changes if (each.kind, each.column, each.was, each.now) not in said]
    if not fresh:
        return
    rows = [
        (bronze.now, each.kind.value, each.column, each.was, each.now, each.done) for each in fresh
    ]
    frame = spark.createDataFrame(rows, _LIST)
    frame.write.format(bronze.kept_as).mode("append").saveAsTable(name)


def _last_said(rows: "DataFrame") -> set[tuple[str, str, str | None, str | None]]:
    from pyspark.sql import functions as f

    about = f.struct("was", "now")
    last = rows.groupBy("kind", "column").agg(f.max_by(about, "extracted_at").alias("said"))
    return {
        (row["kind"], row["column"], row["said"]["was"], row["said"]["now"])
        for row in last.collect()
    }

"""Reads the rows of partitions, through Spark."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from harness.platform.sql_names import in_sql
from harness.sense.preprocess.run import Rows
from harness.sense.sources.hive.events import values_of
from harness.sense.sources.hive.metastore import HiveTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: More partitions than this are not picked out one by one: the whole table is read.
_MOST_PARTITIONS = 200


def rows_of(name: str, table: HiveTable, partitions: Sequence[str] | None) -> Rows:
    """Return what reads the rows of partitions; ``None`` stands for all of them."""

    def read(session: "SparkSession") -> "DataFrame":
        from pyspark.sql import functions as f

        # Spark lists the files of a table once, and keeps the list.
        session.catalog.refreshTable(in_sql(name))
        rows = session.table(in_sql(name))
        if partitions is None or len(partitions) > _MOST_PARTITIONS:
            return rows
        columns = table.partition_columns
        wanted = [_condition(rows, columns, values_of(each)) for each in partitions]
        return rows.where(reduce(lambda left, right: left | right, wanted, f.lit(False)))

    return read


def _condition(rows: "DataFrame", columns: Sequence[str], values: Sequence[str | None]) -> "Column":
    from pyspark.sql import functions as f

    types = {field.name.lower(): field.dataType for field in rows.schema}
    return reduce(
        lambda left, right: left & right,
        [
            f.col(f"`{column}`").isNull()
            if value is None
            else f.col(f"`{column}`") == f.lit(value).cast(types[column.lower()])
            for column, value in zip(columns, values, strict=True)
        ],
        f.lit(True),
    )

"""Reading views whose analysis is kept, over tables that others write to."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName
from harness.store.views import Views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "kept_views"


@pytest.fixture
def lake(spark: "SparkSession", spark_home: Path) -> Iterator[Path]:
    """A Delta table of two columns, and a view of it below another view."""
    spark.sql(f"create schema {SCHEMA}")
    spark.sql(f"create table {SCHEMA}.lake (day int, place string) using delta")
    spark.sql(f"create view {SCHEMA}.inner_view as select day, place from {SCHEMA}.lake")
    spark.sql(
        f"create view {SCHEMA}.outer_view as select max(day) as day, count(*) as n "
        f"from {SCHEMA}.inner_view where day > 1"
    )
    yield spark_home / "warehouse" / f"{SCHEMA}.db" / "lake"
    spark.sql(f"drop schema {SCHEMA} cascade")


def append(lake: Path, *days: int) -> None:
    rows = pa.table({"day": pa.array(days, pa.int32()), "place": ["a"] * len(days)})
    write_deltalake(lake, rows, mode="append")


def test_a_view_that_was_read_before_shows_what_another_writer_has_appended_since(
    spark: "SparkSession", lake: Path
) -> None:
    views = Views(SessionSql(lambda: spark), SchemaName(SCHEMA), keeps=True)
    assert views.rows("outer_view") == [{"day": None, "n": 0}]
    append(lake, 1, 2)
    assert views.rows("outer_view") == [{"day": 2, "n": 1}]
    append(lake, 3)
    assert views.rows("outer_view") == [{"day": 3, "n": 2}]


def test_a_view_that_was_read_before_can_be_read_when_its_files_were_compacted_and_removed(
    spark: "SparkSession", lake: Path
) -> None:
    views = Views(SessionSql(lambda: spark), SchemaName(SCHEMA), keeps=True)
    for day in (2, 3, 4):
        append(lake, day)
    assert views.rows("outer_view") == [{"day": 4, "n": 3}]
    table = DeltaTable(lake)
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.create_checkpoint()
    append(lake, 5)
    assert views.rows("outer_view") == [{"day": 5, "n": 4}]


def test_a_view_that_was_made_anew_is_read_anew_once_the_old_one_is_forgotten(
    spark: "SparkSession", lake: Path
) -> None:
    views = Views(SessionSql(lambda: spark), SchemaName(SCHEMA), keeps=True)
    append(lake, 1, 2)
    assert views.rows("inner_view") == [{"day": 1, "place": "a"}, {"day": 2, "place": "a"}]
    spark.sql(f"create or replace view {SCHEMA}.inner_view as select 7 as day")
    views.forget()
    assert views.rows("inner_view") == [{"day": 7}]


def test_where_others_make_views_a_view_made_anew_is_read_anew_at_once(
    spark: "SparkSession", lake: Path
) -> None:
    views = Views(SessionSql(lambda: spark), SchemaName(SCHEMA), keeps=False)
    assert views.rows("inner_view") == []
    spark.sql(f"create or replace view {SCHEMA}.inner_view as select 7 as day")
    assert views.rows("inner_view") == [{"day": 7}]

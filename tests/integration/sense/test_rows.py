"""The rows that new commits added, and only those, whatever the table is made of."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ProbeFailedError
from harness.sense.new_rows import SparkNewRows
from harness.sense.preprocess.parser import parsed, tokens_of
from harness.sense.preprocess.policy import ALLOWED, REFUSED, Use, uncalled, unread
from harness.sense.preprocess.run import SparkQuestions, checked, overlooked
from harness.sense.probe import NewFiles, QueryBounds
from tests.support.golden import Watcher
from tests.support.hostile import REACHING_OUT, READING_MORE, WITHIN
from tests.support.spark_plan import use_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

ALL = "select * from sensor_new_data where id = {id}"


class Asked:
    """A table whose watcher queries Spark."""

    def __init__(self, spark: "SparkSession", path: Path, options: str, columns: str) -> None:
        self.spark = spark
        self.path = path
        self.name = f"delta.`{path}`"
        spark.sql(f"create table {self.name} ({columns}) using delta {options}")

    def watch(self, query: str | None = None, **more: str) -> Watcher:
        watcher = Watcher(str(self.path), query=query, **more)  # type: ignore[arg-type]
        watcher.rows = SparkNewRows(lambda: self.spark)  # type: ignore[assignment]
        watcher.restart()
        watcher.probe_once()
        return watcher

    def sql(self, statement: str) -> "Asked":
        self.spark.sql(statement.format(t=self.name))
        return self


KINDS = {
    "plain": ("", "a table"),
    "partitioned": ("partitioned by (day)", "a table"),
    "column-mapped": ("tblproperties ('delta.columnMapping.mode' = 'name')", "a table"),
    "mapped and partitioned": (
        "partitioned by (day) tblproperties ('delta.columnMapping.mode' = 'name')",
        "a table",
    ),
    "with vectors": ("tblproperties ('delta.enableDeletionVectors' = 'true')", "a table"),
    "odd names": ("partitioned by (day)", "a table 100% + ünïcode [x]"),
}


@pytest.fixture
def asked(spark: "SparkSession", tmp_path: Path, request: pytest.FixtureRequest) -> Asked:
    options, name = KINDS[request.param]
    asked = Asked(spark, tmp_path / name, options, "id bigint, day string, price double")
    return asked.sql("insert into {t} values (1, 'mon day', 1.0), (2, 'a=b/c%', 2.0)")


EACH = pytest.mark.parametrize("asked", KINDS, indirect=True)
PLAIN = pytest.mark.parametrize("asked", ["plain"], indirect=True)
HARD = pytest.mark.parametrize("asked", ["partitioned", "mapped and partitioned"], indirect=True)


@EACH
def test_a_query_sees_a_new_row(asked: Asked) -> None:
    watcher = asked.watch(ALL.format(id=3) + " and day = 'a=b/c%'")
    asked.sql("insert into {t} values (3, 'a=b/c%', 3.0), (4, 'mon day', 3.0), (5, null, 3.0)")

    assert watcher.operations() == ["APPEND"]


@EACH
def test_a_query_does_not_see_an_old_row(asked: Asked) -> None:
    watcher = asked.watch(ALL.format(id=1))
    asked.sql("insert into {t} values (3, 'a=b/c%', 3.0)")

    assert watcher.operations() == []


@PLAIN
def test_no_row_still_moves_the_position(asked: Asked) -> None:
    watcher = asked.watch(ALL.format(id=1))
    before = watcher.upstream.position
    asked.sql("insert into {t} values (3, 'a=b/c%', 3.0)")
    watcher.probe_once()

    assert watcher.upstream.position != before


@HARD
def test_a_null_partition_is_null(asked: Asked) -> None:
    watcher = asked.watch("select * from sensor_new_data where day is null")
    asked.sql("insert into {t} values (3, null, 3.0)")

    assert watcher.operations() == ["APPEND"]


@HARD
def test_a_new_row_counts_though_an_optimize_moved_it_before_the_probe(asked: Asked) -> None:
    watcher = asked.watch(ALL.format(id=3))
    asked.sql("insert into {t} values (3, 'mon day', 3.0)").sql("optimize {t}")

    assert watcher.operations() == ["APPEND"]


@PLAIN
def test_a_row_deleted_in_the_commit_that_we_read_is_no_new_row(asked: Asked) -> None:
    watcher = asked.watch(ALL.format(id=1))
    asked.sql("delete from {t} where id = 2")

    assert watcher.operations() == []


@PLAIN
def test_first_sight_queries_the_whole_table(asked: Asked) -> None:
    watcher = Watcher(str(asked.path), query=ALL.format(id=2))
    watcher.rows = SparkNewRows(lambda: asked.spark)  # type: ignore[assignment]
    watcher.restart()

    assert watcher.operations() == ["APPEND"]


@HARD
def test_the_largest_value_comes_from_the_new_rows(asked: Asked) -> None:
    watcher = asked.watch(key="price", source="lmu_delta_table")
    first = watcher.upstream.upstream_value
    asked.sql("insert into {t} values (3, 'mon day', 1.5)")
    quiet = watcher.operations()
    asked.sql("insert into {t} values (4, 'mon day', 7.25)")

    assert (first, quiet, watcher.operations(), watcher.upstream.upstream_value) == (
        "2.0",
        [],
        ["APPEND"],
        "7.25",
    )


@pytest.fixture
def numbers(spark: "SparkSession", tmp_path: Path) -> Asked:
    return Asked(spark, tmp_path / "numbers", "", "id bigint, day string").sql(
        "insert into {t} values (1, 'mon')"
    )


def test_the_value_is_rendered_as_it_was_before_the_probe(numbers: Asked) -> None:
    query = "select * from sensor_new_data where ?upstream_key > coalesce(?upstream_value, '0')"
    watcher = numbers.watch(query, key="id")
    numbers.sql("insert into {t} values (1, 'tue')")
    stale = watcher.operations()
    numbers.sql("insert into {t} values (2, 'tue')")

    assert (stale, watcher.operations()) == ([], ["APPEND"])


@pytest.mark.parametrize(
    "query",
    [
        "drop table t",
        "insert into t select * from sensor_new_data",
        "select no_such_column from sensor_new_data",
    ],
)
def test_anything_but_a_good_query_is_refused(numbers: Asked, query: str) -> None:
    files = NewFiles(table_path=str(numbers.path), version=1, files=None, plain=True)

    with pytest.raises(ProbeFailedError, match="its preprocess_query fails"):
        SparkNewRows(lambda: numbers.spark).any_row(files, query)


@pytest.mark.parametrize("query", [*READING_MORE, *REACHING_OUT])
def test_spark_is_given_no_query_that_reaches_out(spark: "SparkSession", query: str) -> None:
    questions = SparkQuestions(lambda: spark)

    with pytest.raises(ProbeFailedError, match=r"its preprocess_query (?!fails: \[TABLE_OR_VIEW)"):
        questions.any_row(_must_not_be_read, query)


def _must_not_be_read(session: "SparkSession") -> "DataFrame":
    raise AssertionError("the query was let through")


@pytest.mark.parametrize("query", WITHIN)
def test_spark_reads_nothing_else_in_a_query_that_keeps_to_the_new_rows(
    spark: "SparkSession", query: str
) -> None:
    use = use_in(spark, checked(spark, query))
    assert use.relations <= {("sensor_new_data",)}
    assert unread(use, ()) + uncalled(use) == []


def test_spark_names_each_table_that_the_parser_overlooks(spark: "SparkSession") -> None:
    read = [
        "select * from sensor_new_data where id in (select id from sales.orders)",
        "select (select max(id) from sales.orders) from sensor_new_data",
        "with a as (select * from sales.orders) select * from a, sensor_new_data",
        "select * from sensor_new_data, lateral (select * from sales.orders)",
        "select * from sensor_new_data, sales.orders version as of 3",
        "select * from sensor_new_data, parquet.`/etc/secrets`",
        "select * from sensor_new_data, read_files('/etc/passwd', format => 'text')",
        "select * from sensor_new_data, identifier('sales.' || 'orders')",
        "select transform(id) using 'cat /etc/passwd' as (a) from sensor_new_data",
        "from sensor_new_data |> union all (select * from sales.orders)",
    ]
    found = [parsed(query, tokens_of(query)) for query in read]
    assert [each and overlooked(spark, replace(each, use=Use())) != [] for each in found] == (
        [True] * len(read)
    )


def test_each_function_of_spark_is_either_allowed_or_refused(spark: "SparkSession") -> None:
    names = {row[0].removeprefix("system.builtin.") for row in _functions_of(spark)}

    assert len(names) > 400
    assert sorted(each for each in names if (each in ALLOWED) == (each in REFUSED)) == []


def _functions_of(spark: "SparkSession") -> "list[Row]":
    return spark.sql("show system functions").collect()


def test_a_query_may_read_a_table_that_the_configuration_names(numbers: Asked) -> None:
    numbers.spark.sql("create database if not exists hostile")
    numbers.spark.sql("create table if not exists hostile.seen using delta as select 1L as id")
    files = NewFiles(table_path=str(numbers.path), version=1, files=None, plain=True)
    query = "select * from sensor_new_data left anti join hostile.seen using (id)"

    bounds = QueryBounds(may_read=frozenset({"Hostile.seen"}))
    assert not SparkNewRows(lambda: numbers.spark, bounds).any_row(files, query)
    with pytest.raises(ProbeFailedError, match=r"reads 'hostile\.seen'; allowed are sen"):
        SparkNewRows(lambda: numbers.spark).any_row(files, query)


def test_a_function_that_is_not_spark_s_own_is_not_called(spark: "SparkSession") -> None:
    with pytest.raises(ProbeFailedError, match="calls 'spend', which is not among the allowed"):
        SparkQuestions(lambda: spark).any_row(
            _must_not_be_read, "select spend(id) from sensor_new_data"
        )


def test_a_query_that_takes_too_long_is_cancelled_and_the_others_are_not(numbers: Asked) -> None:
    files = NewFiles(table_path=str(numbers.path), version=1, files=None, plain=True)
    rows = SparkNewRows(lambda: numbers.spark, QueryBounds(seconds=1))
    endless = (
        "select 1 from sensor_new_data cross join range(1000000000) as a"
        " cross join range(1000000000) as b where a.id + b.id = -1"
    )

    with pytest.raises(ProbeFailedError, match="its preprocess_query takes longer than 1 s, and"):
        rows.any_row(files, endless)
    # It has not gone on after the probe that was ended.
    assert numbers.spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert SparkNewRows(lambda: numbers.spark).any_row(files, "select * from sensor_new_data")


def test_no_variable_of_the_process_gets_into_a_query(numbers: Asked) -> None:
    files = NewFiles(table_path=str(numbers.path), version=1, files=None, plain=True)
    as_it_is = "select 1 from sensor_new_data where length('${env:HOME}') = 11"

    assert SparkNewRows(lambda: numbers.spark).any_row(files, as_it_is)


def test_a_query_may_end_with_a_semicolon_or_a_comment(numbers: Asked) -> None:
    files = NewFiles(table_path=str(numbers.path), version=1, files=None, plain=True)
    rows = SparkNewRows(lambda: numbers.spark)

    assert rows.any_row(files, "select * from sensor_new_data; ")
    assert rows.any_row(files, "with x as (select 1) select * from x -- all of it")


def test_probes_on_many_threads_never_see_each_others_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    tables = [
        Asked(spark, tmp_path / f"t{number}", "", "id bigint").sql(
            f"insert into {{t}} values ({number})"
        )
        for number in range(4)
    ]
    rows = SparkNewRows(lambda: spark)

    def sees_only_its_own(number: int) -> bool:
        table = tables[number % 4]
        files = NewFiles(table_path=str(table.path), version=1, files=None, plain=True)
        own = rows.any_row(files, f"select * from sensor_new_data where id = {number % 4}")
        other = rows.any_row(files, f"select * from sensor_new_data where id <> {number % 4}")
        return own and not other

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(sees_only_its_own, range(32)))
    assert not spark.catalog.tableExists("sensor_new_data")

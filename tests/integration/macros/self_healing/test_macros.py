"""The macros of self-healing pipelines in a dbt project of somebody else, on Spark: what they give, and what is expected."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.inspect.page.backlog import Backlog, Backlogs
from harness.inspect.page.models import read_models
from harness.store.local import LocalStore
from tests.support.services.files_read import FilesRead
from tests.support.shop_project import SCHEMA, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = """
sources:
  - name: lake
    schema: shop
    tables: [{tables}]
"""
_ANSWERS = """
{{{{ config(materialized='view') }}}}
{query}
"""
ROWS = "(select * from values (1, 'Oslo', 1), (1, 'Oslo', 3), (1, 'Bern', 2), (2, 'Bern', 5) as given (id, place, n))"
#: Two rows of one key and one instant, which differ; rows without a key; rows that are the same.
TIES = """(select * from values
    (1, 5, 'a', map('x', 1, 'y', 2)), (1, 5, 'b', map('x', 1)), (1, 4, 'z', null), (null, 1, 'n', null),
    (null, 2, 'm', null), (2, null, 'p', null), (2, 1, 'q', null), (3, 1, 'r', null), (3, 1, 'r', null)
    as given (id, n, v, m))"""
KEYED = {
    "a number": "1, 'x'",
    "the same of another type": "1L, 'x'",
    "the same as a decimal": "1.00, 'x'",
    "the same as a decimal without scale": "cast(1 as decimal(5, 0)), 'x'",
    "ten": "10, 'x'",
    "ten as a decimal": "cast(10 as decimal(9, 3)), 'x'",
    "a fraction": "1.50, 'x'",
    "a fraction of another scale": "cast(1.5 as decimal(20, 5)), 'x'",
    "null": "null, 'x'",
    "nothing": "'', 'x'",
    "the word": "'null', 'x'",
    "a delimiter": "'a,b', 'c'",
    "the delimiter elsewhere": "'a', 'b,c'",
    "a quote": "'a\",\"b', 'c'",
    "two nulls and a text": "null, null",
    "swapped": "'x', 1",
}
ANSWERS = {
    "numbered": "select *, {{ heartbeat.row_number(sorting='n desc') }} as first, "
    f"{{{{ heartbeat.row_number(['id', 'place'], ['n']) }}}} as second from {ROWS}",
    "by_default": "select id, {{ heartbeat.row_number() }} as rn from values (1, 10), (1, 11) as given (id, p_extracted_at)",
    "latest": f"select * from {{{{ heartbeat.deduplicate(\"{TIES}\", 'id', 'n desc') }}}}",
    "latest_turned": 'select * from {{ heartbeat.deduplicate("(select * from '
    f"{TIES} order by v desc)\", ['id'], ['n desc']) }}}}",
    "newer_than_known": "select * from {{ heartbeat.deduplicate('given', 'id', ['n desc', 'v asc'], known=ref('known')) }}",
    "known": "select * from values (1, 5, 'b'), (2, 9, 'b'), (3, null, 'b'), (cast(null as int), 1, 'b') as known (id, n, v)",
    "empty": "select 1 as n where false",
    "keyed": " union all ".join(
        f"select '{name}' as name, {{{{ heartbeat.generate_surrogate_key(['a', 'b']) }}}} as k "
        f"from values ({values}) as given (a, b)"
        for name, values in KEYED.items()
    ),
    "keyed_in_time": "select {{ heartbeat.generate_surrogate_key('at') }} as k, "
    "{{ heartbeat.generate_surrogate_key(['day', 'list', 'is_it']) }} as other from (select "
    "timestamp'2026-03-01 08:00:00Z' as at, date'2026-03-01' as day, array(1.5, null) as list, true as is_it)",
    "updated": """select
        {{ heartbeat.last_update('n', table=ref('known')) }} as newest,
        {{ heartbeat.last_update('n', "id = 1", ref('known')) }} as of_one,
        {{ heartbeat.last_update('n', table='shop.known') }} as by_name,
        {{ heartbeat.last_update('n', table=ref('empty')) }} as of_none,
        {{ heartbeat.last_update('n', table=ref('empty'), default='-1') }} as of_none_else,
        {{ heartbeat.last_update('n', default='-2') }} as of_no_table""",
}
ANSWERS["newer_than_known"] = (
    "with given as (select * from values (1, 5, 'a'), (2, 8, 'a'), (3, 1, 'a'), (4, 1, 'a'), (cast(null as int), null, 'a') "
    f"as given (id, n, v))\n{ANSWERS['newer_than_known']}"
)
#: By partition type: what the days are called, as SQL.
KINDS = {
    "timestamp": "timestamp'2026-03-{day:02d} 01:00:00Z'",
    "date": "date'2026-03-{day:02d}'",
    "string": "'2026-03-{day:02d}T/*{{x}}'",
    "int": "202603{day:02d}",
}
FORMATS = {
    **{f"bronze_{kind}": (kind, "delta") for kind in KINDS},
    "bronze_parquet": ("date", "parquet"),
}
_SILVER = """
{{{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', file_format='delta', post_hook=[
    "{{% if var('dies', false) %}}{{{{ exceptions.raise_compiler_error('dies') }}}}{{% endif %}}", "{{{{ heartbeat.record_partitions() }}}}"]) }}}}
with pending as (
    select id, v, p_extracted_at as _extracted_at
    from {{{{ source('lake', '{bronze}') }}}}
    where {{{{ heartbeat.pending_partitions(source('lake', '{bronze}'){more}) }}}}
)
select * from {{{{ heartbeat.deduplicate('pending', 'id', '_extracted_at desc', known=this if is_incremental() else none) }}}}
"""
SILVERS = {
    **{name.replace("bronze", "silver"): _SILVER.format(bronze=name, more="") for name in FORMATS},
    "silver_by_column": _SILVER.format(bronze="bronze_date", more=", taken='_extracted_at'"),
}
_REFUSED = "{{ config(materialized='incremental', file_format='parquet') }} select 1 from shop.bronze_date where "
REFUSED = {
    "refused_format": _REFUSED
    + "{{ heartbeat.pending_partitions(source('lake', 'bronze_date')) }}",
    "refused_column": "select 1 where {{ heartbeat.pending_partitions(source('lake', 'bronze_date'), 'day') }}",
    "refused_table": "select {{ heartbeat.last_update('n') }}",
}


class Lake:
    """Bronze tables by day, and the models over them."""

    def __init__(self, spark: "SparkSession", folder: Path, warehouse: Path) -> None:
        self.spark, self.warehouse = spark, warehouse
        answers = {name: _ANSWERS.format(query=query) for name, query in ANSWERS.items()}
        self.shop = Shop(folder, {**answers, **SILVERS, **REFUSED})
        tables = ", ".join(f"{{name: {name}}}" for name in FORMATS)
        (folder / "models" / "sources.yml").write_text(_SOURCES.format(tables=tables))
        self.shop.parse()
        spark.sql(f"create schema if not exists {SCHEMA}")

    def append(
        self, days: Mapping[int, Sequence[tuple[int, str]]], only: Sequence[str] = tuple(FORMATS)
    ) -> None:
        """Append rows to the partitions of some days, as extracts do, in one commit of each table."""
        for name in only:
            kind, table_format = FORMATS[name]
            values = ", ".join(
                f"({key}, '{value}', {KINDS[kind].format(day=day)})"
                for day, rows in days.items()
                for key, value in rows
            )
            found = self.spark.sql(
                f"select * from values {values} as given (id, v, p_extracted_at)"
            )
            found.write.format(table_format).mode("append").partitionBy(
                "p_extracted_at"
            ).saveAsTable(f"{SCHEMA}.{name}")

    def run(self, *models: str, full_refresh: bool = False, **variables: object) -> str:
        """Run models; return dbt's output."""
        self.shop._invoke(self.shop.manifest, *self._command(models, full_refresh, variables))
        return " ".join(str(self.shop.said).split())

    def dies(self, *models: str, full_refresh: bool = False, **variables: object) -> None:
        """Run models that die between the merge and the record."""
        command = self._command(models, full_refresh, {**variables, "dies": True})
        assert "dies" in self.shop.refusal(*command)

    def rows(self, table: str, columns: str = "id, v") -> list[tuple[object, ...]]:
        found = self.spark.sql(f"select {columns} from {SCHEMA}.{table} order by all nulls first")
        return [tuple(row) for row in found.collect()]

    def taken(self, model: str) -> list[int]:
        """The days that the last query of a model has requested."""
        [note] = self.shop.compiled(model).split("/* heartbeat.pending_partitions ")[1:]
        facts = json.loads(note.split(" */")[0])["partitions"]
        return [int(str(each["value"]).replace("-", "")[6:8]) for each in facts]

    def waiting(self, model: str) -> Backlog | None:
        """What the report shows as waiting for a model, read without Spark."""
        backlogs = Backlogs(warehouse=self.warehouse, now=datetime.now(UTC))
        (found,) = read_models(
            [f"{SCHEMA}.{model}"],
            lambda name: LocalStore(self.warehouse, name),
            datetime.now(UTC),
            backlogs,
        )
        (source,) = found.sources
        return source.backlog

    @staticmethod
    def _command(
        models: Sequence[str], full_refresh: bool, variables: dict[str, object]
    ) -> list[str]:
        more = ["--full-refresh"] if full_refresh else []
        return ["run", "--select", *models, *more, "--vars", json.dumps(variables)]


@pytest.fixture(scope="module")
def lake(
    spark: "SparkSession", spark_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    lake = Lake(spark, tmp_path_factory.mktemp("shop"), spark_home / "warehouse")
    lake.append({5: [(1, "a"), (2, "a")], 6: [(2, "b"), (3, "b")]})
    lake.run(*ANSWERS, *SILVERS)
    yield lake
    spark.sql(f"drop schema if exists {SCHEMA} cascade")


def test_a_row_number_counts_the_rows_of_a_key_in_the_requested_order(lake: Lake) -> None:
    assert lake.rows("numbered", "*") == [
        (1, "Bern", 2, 2, 1),
        (1, "Oslo", 1, 3, 1),
        (1, "Oslo", 3, 1, 2),
        (2, "Bern", 5, 1, 1),
    ]
    assert lake.rows("by_default", "*") == [(1, 1), (1, 2)]


def test_of_each_key_the_first_row_stays_and_null_is_a_key(lake: Lake) -> None:
    assert lake.rows("latest", "id, n, v") == [
        (None, 2, "m"),
        (1, 5, "a"),
        (2, 1, "q"),
        (3, 1, "r"),
    ]
    assert [each.name for each in lake.spark.table(f"{SCHEMA}.latest").schema] == [
        "id",
        "n",
        "v",
        "m",
    ]


def test_rows_that_the_order_does_not_distinguish_give_the_same_answer_however_they_come(
    lake: Lake,
) -> None:
    assert lake.rows("latest_turned", "id, n, v") == lake.rows("latest", "id, n, v")


def test_a_row_is_left_out_when_a_known_one_comes_before_it(lake: Lake) -> None:
    assert lake.rows("newer_than_known") == [(1, "a"), (3, "a"), (4, "a")]


def test_a_surrogate_key_distinguishes_null_text_and_delimiters_and_equates_numbers_by_value(
    lake: Lake,
) -> None:
    by_key: dict[object, set[object]] = {}
    for name, key in lake.rows("keyed", "name, k"):
        by_key.setdefault(key, set()).add(name)
    alike = sorted(sorted(map(str, names)) for names in by_key.values() if len(names) > 1)
    assert alike == [
        ["a fraction", "a fraction of another scale"],
        sorted(name for name in KEYED if name == "a number" or name.startswith("the same")),
        ["ten", "ten as a decimal"],
    ]


def test_a_surrogate_key_is_the_same_in_every_time_zone(lake: Lake) -> None:
    before = lake.rows("keyed_in_time", "*")
    lake.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        lake.run("keyed_in_time")
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert lake.rows("keyed_in_time", "*") == before


def test_the_last_update_of_an_empty_table_is_null_or_what_stands_for_it(lake: Lake) -> None:
    [row] = lake.rows("updated", "*")
    assert row == (9, 5, 9, None, -1, -2)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            "refused_format",
            "refused_format: pending_partitions keeps its record beside a Delta table: set file_format: delta",
        ),
        (
            "refused_column",
            "shop.bronze_date is not partitioned by day; its partition columns are: p_extracted_at",
        ),
        ("refused_table", "is not there yet: ask inside of is_incremental(), or give a default"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(
    lake: Lake, model: str, sentence: str
) -> None:
    assert sentence in " ".join(lake.shop.refusal("run", "--select", model).split())


ALL = tuple(SILVERS)
FIRST = [(1, "a"), (2, "b"), (3, "b")]


def test_a_first_run_takes_every_partition(lake: Lake) -> None:
    for model in ALL:
        assert lake.rows(model) == FIRST
        assert lake.taken(model) == [5, 6]
    for kind in KINDS:
        assert lake.waiting(f"silver_{kind}") == Backlog(count=0, oldest=None)
    # Of a table that is not Delta only Spark has the partitions.
    assert lake.waiting("silver_parquet") is None


def test_a_late_partition_and_one_that_has_got_more_rows_are_found_and_bring_nothing_older_back(
    lake: Lake,
) -> None:
    lake.append({7: [(4, "c")], 3: [(1, "older"), (9, "late")], 6: [(6, "again")]})
    oldest = {"timestamp": "2026-03-03 01:00:00Z", "date": "2026-03-03"}
    oldest |= {"string": "2026-03-03T/*{x}", "int": "20260303"}
    assert {kind: lake.waiting(f"silver_{kind}") for kind in KINDS} == {
        kind: Backlog(count=3, oldest=oldest[kind]) for kind in KINDS
    }
    # Instants are written down in UTC, whatever the session shows.
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        output = lake.run(*ALL)
        again = lake.run(*ALL)
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    expected = [(1, "a"), (2, "b"), (3, "b"), (4, "c"), (6, "again"), (9, "late")]
    for model in ALL:
        assert lake.rows(model) == [
            row for row in expected if model != "silver_by_column" or row[0] != 6
        ]
    assert (
        "silver_timestamp: takes 3 of 3 pending partitions of shop.bronze_timestamp, from 2026-03-03"
        in output
    )
    assert again.count("is pending") == len(ALL)
    assert [lake.taken(model) for model in ALL] == [[]] * len(ALL)


def test_a_partition_whose_rows_were_all_too_old_is_not_taken_again_and_again_but_by_a_column(
    lake: Lake,
) -> None:
    lake.append({2: [(1, "oldest")]}, only=["bronze_date"])
    lake.run("silver_date", "silver_by_column")
    assert (lake.taken("silver_date"), lake.taken("silver_by_column")) == ([2], [2])
    lake.run("silver_date", "silver_by_column")
    assert (lake.taken("silver_date"), lake.taken("silver_by_column")) == ([], [2])


def test_a_run_that_dies_before_the_record_is_made_good_by_the_next(lake: Lake) -> None:
    lake.append({8: [(1, "h"), (8, "h")]}, only=["bronze_date", "bronze_parquet"])
    lake.dies("silver_date", "silver_parquet")
    assert (8, "h") in lake.rows("silver_date")
    once = lake.rows("silver_date", "*")
    lake.run("silver_date", "silver_parquet")
    assert (lake.taken("silver_date"), lake.taken("silver_parquet")) == ([8], [8])
    assert lake.rows("silver_date", "*") == once


def test_what_a_restore_has_undone_is_taken_again(lake: Lake) -> None:
    [version] = lake.spark.sql(f"describe history {SCHEMA}.silver_date limit 1").collect()
    before = lake.rows("silver_date")
    lake.append({9: [(9, "i")]}, only=["bronze_date"])
    lake.run("silver_date")
    lake.spark.sql(f"restore table {SCHEMA}.silver_date to version as of {version.version}")
    assert lake.rows("silver_date") == before
    assert lake.waiting("silver_date") == Backlog(count=1, oldest="2026-03-09")
    lake.run("silver_date")
    assert lake.taken("silver_date") == [9]
    assert (9, "i") in lake.rows("silver_date")


def test_a_full_refresh_in_pieces_that_dies_loses_no_partition(lake: Lake) -> None:
    whole = lake.rows("silver_date")
    lake.dies("silver_date", full_refresh=True, max_batches_per_run=2)
    output = lake.run("silver_date", max_batches_per_run=3)
    assert (
        "takes 3 of 7 pending partitions of shop.bronze_date, from 2026-03-02 to 2026-03-05; left: 4"
        in output
    )
    operation = (
        "run-operation",
        "heartbeat.pending_partitions_left",
        "--args",
        "{model: silver_date}",
    )
    assert lake.waiting("silver_date") == Backlog(count=4, oldest="2026-03-06")
    left = " ".join(lake.shop.refusal(*operation).split())
    assert "pending_partitions_left: 4 partitions are pending for silver_date: 2026-03-06, " in left
    lake.run("silver_date", max_batches_per_run=3)
    lake.run("silver_date", max_batches_per_run=3)
    assert lake.taken("silver_date") == [9]
    lake.shop._invoke(lake.shop.manifest, *operation)
    assert "silver_date: no partition is pending" in lake.shop.said
    assert lake.rows("silver_date") == whole


def test_a_partition_that_was_rewritten_with_as_many_rows_is_taken_again(lake: Lake) -> None:
    lake.spark.sql(f"update {SCHEMA}.bronze_date set v = 'mended' where id = 8")
    lake.run("silver_date")
    assert lake.taken("silver_date") == [8]
    assert (8, "mended") in lake.rows("silver_date")


def test_partitions_older_than_the_lookback_are_reported_and_taken_on_demand(lake: Lake) -> None:
    lake.append({1: [(100, "lost?")]}, only=["bronze_date"])
    assert lake.waiting("silver_date") == Backlog(count=0, oldest=None)
    output = lake.run("silver_date")
    assert lake.taken("silver_date") == []
    assert (
        "silver_date: 1 partitions of shop.bronze_date were never taken as they are now, and are more than 7 days "
        "older than the newest that was: 2026-03-01. Take them with --vars" in output
    )
    lake.run("silver_date", look_back_days="all")
    assert lake.taken("silver_date") == [1]
    assert (100, "lost?") in lake.rows("silver_date")


def test_a_log_with_checkpoints_and_one_that_lacks_commits_give_the_same_partitions(
    lake: Lake,
) -> None:
    [detail] = lake.spark.sql(f"describe detail {SCHEMA}.bronze_date").collect()
    log = Path(str(detail.location).removeprefix("file:")) / "_delta_log"
    for day in range(10, 16):
        lake.append({day: [(day, "x")]}, only=["bronze_date"])
    lake.spark.sql(f"delete from {SCHEMA}.bronze_date where p_extracted_at = date'2026-03-12'")
    assert list(log.glob("*.checkpoint.parquet"))
    lake.run("silver_date")
    assert lake.taken("silver_date") == [10, 11, 13, 14, 15]
    # Delta removes what lies before a checkpoint.
    for commit in sorted(log.glob("*.json"))[:5]:
        commit.unlink()
    lake.append({16: [(16, "x")]}, only=["bronze_date"])
    lake.run("silver_date")
    assert lake.taken("silver_date") == [16]


def test_of_bronze_only_the_files_of_pending_partitions_are_opened(lake: Lake) -> None:
    lake.append({17: [(17, "x")]}, only=["bronze_date"])
    files = FilesRead(lake.spark, f"{SCHEMA}.bronze_date")
    lake.run("silver_date")
    assert lake.taken("silver_date") == [17]
    assert files.count() == 1
    lake.run("silver_date")
    assert files.count() == 0
    lake.spark.table(f"{SCHEMA}.bronze_date").collect()
    assert files.count() >= 5

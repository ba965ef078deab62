"""Models whose batches are partitions of a table, read no more than once, and queries over what such models were."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.shop_project import SCHEMA, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

_PENDING = (
    "where {{ heartbeat.pending_partitions(source('raw', 'days'), 'day', look_back_days=3) }}"
)
_THEN = "timestamp'2026-03-02 12:00:00'"
MODELS = {
    "people": (
        "{{ config(materialized='refresh', meta={'refresh': {'type': 'key', 'key': 'k', 'updated_at': 't', "
        "'batch_by': 'day', 'exclude_from_cdc': 'day'}}) }}\n"
        f"select k, v, day, cast(day as timestamp) as t from {{{{ source('raw', 'days') }}}} {_PENDING}\n"
    ),
    "extracts": (
        "{{ config(materialized='refresh', meta={'refresh': {'type': 'full', 'extracted_at': 'day', "
        "'batch_by': 'day'}}) }}\n"
        f"select k, v, day from {{{{ source('raw', 'days') }}}} {_PENDING}\n"
    ),
    "rows_of_days": (
        "{{ config(materialized='refresh', meta={'refresh': {'type': 'none', 'batch_by': 'day'}}) }}\n"
        "select k, day from {{ source('raw', 'days') }}\n"
    ),
    "people_then": f'select k, v from {{{{ heartbeat.refresh_as_of(ref("people"), "{_THEN}") }}}}\n',
    "extracts_then": f'select * from {{{{ heartbeat.refresh_as_of(ref("extracts"), "{_THEN}") }}}}\n',
    "batches_of_people": "select batch, state from {{ heartbeat.refresh_table(ref('people'), 'metrics') }}\n",
    "unbatched": (
        "{{ config(materialized='refresh', meta={'refresh': {'type': 'none'}}) }}\n"
        f"select k from {{{{ source('raw', 'days') }}}} {_PENDING}\n"
    ),
    "pastless": "select * from {{ heartbeat.refresh_as_of(ref('batches_of_people'), 'now()') }}\n",
}
_MISTAKEN = ("unbatched", "pastless")
_SOURCES = f"""
sources:
  - name: raw
    schema: {SCHEMA}
    tables: [name: days]
"""
#: With a row of the source and none beside it, the model's own rows are those of its target table.
_UNIT_TESTS = """
unit_tests:
  - name: what_was_known_then
    model: people_then
    given: [{input: ref('people'), rows: [{k: 1, v: a}]}]
    expect: {rows: [{k: 1, v: a}]}
"""


class Daily:
    """A table with a partition for each day, and the models after each time that some were added."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        self.shop = Shop(folder, MODELS)
        (folder / "models" / "sources.yml").write_text(_SOURCES + _UNIT_TESTS)
        self.shop.parse()
        spark.sql(
            f"create table {SCHEMA}.days (day date, k int, v string) using delta partitioned by (day)"
        )
        self.add(
            "(date'2026-03-01', 1, 'a')",
            "(date'2026-03-01', 2, 'b')",
            "(date'2026-03-02', 1, 'a2')",
        )
        self.first = self.run()
        self.add(
            "(date'2026-03-05', 3, 'c')",
            "(date'2026-03-03', 2, 'b3')",
            "(date'2026-02-20', 1, 'old')",
        )
        self.second = self.run()
        self.read = self.shop.compiled("people").partition("*/")[2]

    def add(self, *rows: str) -> None:
        """Add some rows to the table."""
        self.spark.sql(f"insert into {SCHEMA}.days values {', '.join(rows)}")

    def run(self, *arguments: str) -> str:
        """Run all models that can be; return dbt's output."""
        self.shop._invoke(self.shop.manifest, "run", "--exclude", *_MISTAKEN, *arguments)
        return self.shop.said

    def changed_batches(self) -> str:
        """Run, and return what dbt warns of."""
        reported = " ".join(self.run().split())
        before, _, after = reported.partition("have other rows now than when they were taken")
        return f"{before[-40:]}{after[:200]}"

    def rows(self, table: str, columns: str) -> list[tuple[object, ...]]:
        """Some columns of all rows of a table, in order."""
        found = self.spark.sql(f"select {columns} from {SCHEMA}.{table} order by all")
        return [tuple(row) for row in found.collect()]


@pytest.fixture(scope="module")
def daily(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Daily:
    """The first two runs, once for all tests."""
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    spark.sql(f"create schema {SCHEMA}")
    return Daily(spark, tmp_path_factory.mktemp("daily"))


def test_a_refresh_model_reads_the_partitions_that_its_ledger_does_not_have(daily: Daily) -> None:
    assert "people: takes 2 of 2 pending partitions" in daily.first
    assert "people: takes 2 of 2 pending partitions" in daily.second
    assert "'2026-03-03'" in daily.read and "'2026-03-05'" in daily.read
    assert "'2026-03-01'" not in daily.read and "'2026-02-20'" not in daily.read
    assert daily.rows("people", "k, v") == [(1, "a2"), (2, "b3"), (3, "c")]


def test_what_a_model_was_is_read_from_its_history(daily: Daily) -> None:
    assert daily.rows("people_then", "k, v") == [(1, "a2"), (2, "b")]
    assert daily.rows("extracts_then", "k, v, cast(day as string), s_input_id") == [
        (1, "a2", "2026-03-02", 2),
    ]
    # A unit test has the rows of the model alone.
    daily.shop._invoke(daily.shop.manifest, "test", "--select", "test_type:unit")


def test_a_table_beside_the_hub_is_read_by_a_query_that_refers_to_the_model(daily: Daily) -> None:
    assert daily.rows("batches_of_people", "batch, state") == [
        *(("2026-03-01", "COMPLETE"), ("2026-03-02", "COMPLETE")),
        *(("2026-03-03", "COMPLETE"), ("2026-03-05", "COMPLETE")),
    ]


def test_a_query_of_a_past_that_was_not_kept_is_refused(daily: Daily) -> None:
    output = " ".join(daily.shop.refusal("run", "--select", "pastless").split())
    assert "has no history; refresh models of type key and full have one" in output
    given = ("--args", "{hub: people, name: archive}")
    output = " ".join(
        daily.shop.refusal("run-operation", "heartbeat.refresh_table", *given).split()
    )
    assert "name is archive, but must be one of history, batches, ledger, metrics" in output


def test_partitions_are_distinguished_by_what_batch_by_names(daily: Daily) -> None:
    output = " ".join(daily.shop.refusal("run", "--select", "unbatched").split())
    assert (
        "unbatched: the batch log of a refresh model has the partitions that it has taken" in output
    )


def test_an_older_partition_is_reported_and_taken_when_it_is_requested(daily: Daily) -> None:
    reported = " ".join(daily.second.split())
    assert "people: 1 partitions of shop.days were never taken as they are now" in reported
    assert "2026-02-20" in reported
    daily.run("--vars", "{look_back_days: all}")
    assert ("2026-02-20", "COMPLETE") in daily.rows("batches_of_people", "batch, state")
    # Its row of key 1 is older than the one in the target table.
    assert daily.rows("people", "k, v") == [(1, "a2"), (2, "b3"), (3, "c")]
    assert "people: no partition of" in daily.run("--vars", "{look_back_days: all}")


def test_a_partition_whose_batch_was_unloaded_is_read_and_stays_out(daily: Daily) -> None:
    given = ("--args", "{model: people, input_ids: [3]}")
    daily.shop._invoke(daily.shop.manifest, "run-operation", "heartbeat.refresh_unload", *given)
    assert "people: takes 1 of 1 pending partitions" in daily.run()
    assert ("2026-03-03", "UNLOADED") in daily.rows("batches_of_people", "batch, state")
    assert daily.rows("people", "k, v") == [(1, "a2"), (2, "b"), (3, "c")]
    # More rows make it another batch.
    daily.add("(date'2026-03-03', 4, 'd')")
    daily.run()
    assert daily.rows("people", "k, v") == [(1, "a2"), (2, "b3"), (3, "c"), (4, "d")]


def test_a_batch_that_has_other_rows_now_is_reported_and_taken_once_it_was_unloaded(
    daily: Daily,
) -> None:
    daily.add("(date'2026-03-02', 9, 'z')")
    reported = daily.changed_batches()
    assert "rows_of_days: " in reported and "2 (2026-03-02)" in reported
    assert (9, "2026-03-02") not in daily.rows("rows_of_days", "k, cast(day as string)")
    given = ("--args", "{model: rows_of_days, input_ids: [2]}")
    daily.shop._invoke(daily.shop.manifest, "run-operation", "heartbeat.refresh_unload", *given)
    assert "2 (2026-03-02)" not in daily.changed_batches()
    assert (9, "2026-03-02") in daily.rows("rows_of_days", "k, cast(day as string)")

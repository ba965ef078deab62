"""A refresh model in a job that Heartbeat started: it consumes the payload and records the run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.toolkit.changes import ChangeEvent, Operation, TableFormat
from tests.support.shop_project import SCHEMA, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = """
{{ config(materialized='refresh', meta={'refresh': {
    'type': 'key', 'key': 'id', 'deletes': {'when': 'is_gone'}
}}) }}
{%- set orders = api.Relation.create(schema='shop', identifier='orders', type='table') %}
select id, place, _change_type = 'delete' as is_gone
from {{ heartbeat.changed_rows(orders, keys='id') }} as changed
"""
#: What happens to the table, a commit each; what stands in it before is version 0.
COMMITS = [
    "insert into {table} values (3, 'Bern')",
    "merge into {table} as this using (select * from values (1, 'Rome'), (4, 'Kiel') as t(id, place)) as given "
    "on this.id = given.id when matched then update set place = given.place "
    "when not matched then insert (id, place) values (given.id, given.place)",
    "delete from {table} where id = 2",
]


class Job:
    """Three runs of the model: at first sight, after one commit, and after two more."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        self.shop = Shop(folder, {"places": MODEL}).parse()
        table = f"{SCHEMA}.orders"
        spark.sql(f"create schema if not exists {SCHEMA}")
        spark.sql(
            f"create table {table} using delta as values (1, 'Oslo'), (2, 'Bonn') as t(id, place)"
        )
        self.run("intent-1", 0)
        spark.sql(COMMITS[0].format(table=table))
        self.run("intent-2", 1)
        for commit in COMMITS[1:]:
            spark.sql(commit.format(table=table))
        # Data that is not in the payload of this run comes while it runs.
        spark.sql(f"insert into {table} values (9, 'late')")
        self.run("intent-3", 2, 3)

    def run(self, intent: str, *versions: int) -> None:
        events = [self.event(version).to_json() for version in versions]
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("HEARTBEAT_EVENTS", json.dumps(events))
            patched.setenv("HEARTBEAT_INTENT_ID", intent)
            self.shop._invoke(self.shop.manifest, "run", "--select", "places")

    def event(self, version: int) -> ChangeEvent:
        return ChangeEvent(
            event_ts=1_000 + version,
            table=f"{SCHEMA}.orders",
            snapshot_id=str(version),
            prev_snapshot_id=str(version - 1) if version else None,
            table_format=TableFormat.DELTA,
            operation_type=Operation.UPDATE if version else Operation.APPEND,
        )

    def rows(self, table: str, columns: str) -> list[tuple[object, ...]]:
        found = self.spark.sql(f"select {columns} from {SCHEMA}.{table} order by all").collect()
        return [tuple(row) for row in found]


@pytest.fixture(scope="module")
def job(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    yield Job(spark, tmp_path_factory.mktemp("refresh"))
    # Other files share the session, and make a schema of this name.
    spark.sql(f"drop schema if exists {SCHEMA} cascade")


def test_a_batch_has_the_rows_that_changed_in_the_events_of_its_run_and_no_others(job: Job) -> None:
    assert job.rows("places_batches", "s_input_id, id, place, s_record_status_code") == [
        (1, 1, "Oslo", "N"),
        (1, 2, "Bonn", "N"),
        (2, 3, "Bern", "N"),
        (3, 1, "Rome", "C"),
        (3, 2, "Bonn", "D"),
        (3, 4, "Kiel", "N"),
    ]


def test_the_hub_follows_what_the_runs_were_handed(job: Job) -> None:
    assert job.rows("places", "id, place, s_input_id") == [
        (1, "Rome", 3),
        (3, "Bern", 2),
        (4, "Kiel", 3),
    ]


def test_each_batch_records_which_start_of_the_job_brought_it(job: Job) -> None:
    assert job.rows("places_metrics", "s_input_id, state, intent_id") == [
        (1, "COMPLETE", "intent-1"),
        (2, "COMPLETE", "intent-2"),
        (3, "COMPLETE", "intent-3"),
    ]


def test_a_second_try_of_a_run_takes_nothing_again(job: Job) -> None:
    before = job.rows("places", "*")
    job.run("intent-3", 2, 3)
    assert job.rows("places", "*") == before
    assert job.rows("places_metrics", "s_input_id, state")[-1] == (4, "SKIPPED_DUPLICATE")

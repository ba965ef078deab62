"""A ``sensors`` table as the model that publishes it writes it, by Spark's own MERGE."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.sense.probe import ProbeResult
from harness.sense.registry import ProbeServices, known_sources
from harness.sense.sources.upstream_sensor.rows import LakeRowReader
from harness.store.work_lists import Upstream
from tests.support.golden import AT
from tests.support.services.strict import strict_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.services.connect import Endpoint

COLUMNS = """
    sensor_id string, assets array<string>, status string, status_change_timestamp string,
    checkpoint_location string, upstream_key string, upstream_value string
"""
OPTIONS = {
    "plain": "",
    "with vectors": "tblproperties ('delta.enableDeletionVectors' = 'true')",
    "column-mapped": "tblproperties ('delta.columnMapping.mode' = 'name')",
}


class Product:
    """Another product's table, and a probe of its one sensor."""

    def __init__(self, spark: "SparkSession", name: str, options: str) -> None:
        self.spark, self.name = spark, name
        spark.sql(f"create or replace table {name} ({COLUMNS}) using delta {options}")
        spark.sql(
            f"insert into {name} values"
            " ('orders_1', array(), 'ACQUIRED_NEW_DATA', '2025-04-23T21:00:00.000Z', null, null, null),"
            " ('other_1', array(), 'PROCESSED_NEW_DATA', '2025-04-23T21:00:00.000Z', null, null, null)"
        )
        self.probe = known_sources().probes(
            ProbeServices(session=lambda: spark, trigger_files_root="/none")
        )["delta_upstream_sensor"]
        self.upstream = Upstream(
            upstream_id="u",
            source="delta_upstream_sensor",
            sensor_id=f"{name}: orders_1",
            read_type="batch",
        )

    def change(self, status: str, minute: int) -> None:
        self.spark.sql(
            f"merge into {self.name} as old using (select 'orders_1' as sensor_id) as new"
            " on old.sensor_id = new.sensor_id when matched then update set"
            f" status = '{status}', status_change_timestamp = '2025-04-23T21:0{minute}:00.000Z'"
        )

    def sense_on_serverless_compute(self, endpoint: "Endpoint") -> None:
        """Go on in a workspace, whose storage nothing but the catalog may read."""
        session = strict_session(endpoint, "prod-eu")
        self.probe = known_sources().probes(
            ProbeServices(
                session=lambda: session,  # type: ignore[arg-type,return-value]
                trigger_files_root="/none",
                catalog="prod-eu",
            )
        )["delta_upstream_sensor"]
        self.upstream = replace(self.upstream, sensor_id=f"prod-eu.{self.name}: orders_1")

    def reported(self) -> list[str | None]:
        result: ProbeResult
        [result] = self.probe.probe([self.upstream], at=AT)
        assert result.failure is None, result.failure
        self.upstream = replace(self.upstream, position=result.position)
        return [event.snapshot_id for event in result.events]


@pytest.fixture(params=OPTIONS)
def product(spark: "SparkSession", request: pytest.FixtureRequest) -> Product:
    spark.sql("create schema if not exists other_product")
    return Product(spark, "other_product.sensors", OPTIONS[request.param])


def test_a_sensor_of_a_table_that_spark_writes_is_sensed(product: Product) -> None:
    before = product.reported()
    product.change("PROCESSED_NEW_DATA", 1)

    assert (before, product.reported()) == ([], ["orders_1@2025-04-23T21:01:00.000Z"])


@pytest.mark.parametrize("product", ["with vectors"], indirect=True)
def test_an_idle_probe_launches_no_spark_job(product: Product) -> None:
    product.reported()
    context = product.spark.sparkContext
    context.setJobGroup("idle look", "")
    product.reported()
    jobs = list(context.statusTracker().getJobIdsForGroup("idle look"))
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]

    assert jobs == []


@pytest.mark.parametrize("product", ["plain", "with vectors"], indirect=True)
def test_a_job_that_is_at_work_again_has_finished_all_the_same(product: Product) -> None:
    product.reported()
    product.change("PROCESSED_NEW_DATA", 1)
    product.change("ACQUIRED_NEW_DATA", 2)

    assert product.reported() == ["orders_1@2025-04-23T21:01:00.000Z"]


@pytest.mark.parametrize(
    "product",
    ["plain", *(pytest.param(each, marks=pytest.mark.long) for each in list(OPTIONS)[1:])],
    indirect=True,
)
def test_serverless_compute_senses_a_table_by_its_name(
    product: Product, spark_endpoint: "Endpoint"
) -> None:
    product.sense_on_serverless_compute(spark_endpoint)
    before = product.reported()
    product.change("PROCESSED_NEW_DATA", 1)
    product.change("ACQUIRED_NEW_DATA", 2)
    product.change("PROCESSED_NEW_DATA", 3)

    assert before == []
    assert product.reported() == [f"orders_1@2025-04-23T21:0{at}:00.000Z" for at in (1, 3)]
    assert product.reported() == []


def test_what_a_workspace_does_not_show_is_one_sentence(
    spark: "SparkSession", spark_endpoint: "Endpoint"
) -> None:
    spark.sql("create schema if not exists other_product")
    product = Product(spark, "other_product.sensors", "")
    product.sense_on_serverless_compute(spark_endpoint)
    upstream = replace(product.upstream, sensor_id="prod-eu.other_product.missing: orders_1")
    [result] = product.probe.probe([upstream], at=AT)

    assert result.failure is not None
    assert result.failure.startswith(
        "The upstream sensor prod-eu.other_product.missing: orders_1 cannot be sensed:"
        " its rows cannot be read: [TABLE_OR_VIEW_NOT_FOUND]"
    )
    assert result.failure.count("\n") == 0


def test_spark_reads_a_table_as_we_do_without_it(spark: "SparkSession", tmp_path: Path) -> None:
    path = f"{tmp_path}/sensors"
    spark.sql(f"create table delta.`{path}` ({COLUMNS}) using delta")
    spark.sql(
        f"insert into delta.`{path}` values ('a', array('x'), 'PROCESSED_NEW_DATA', 't', null, 'k', 'v')"
    )
    reader = LakeRowReader(lambda: spark)

    assert reader.read_by_spark(path) == reader.read(path, path)

"""The materialization under dbt-databricks: the real adapter and connector, at a cluster's path over a socket.

Spark and Delta are those of the open source, so that nothing here shows what Databricks itself makes of a statement.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Warehouse, batch
from tests.support.services.warehouse.server import CLUSTER_PATH, HOST, TOKEN
from tests.support.services.warehouse.server import Warehouse as Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MODELS: dict[str, dict[str, object]] = {
    "customers": {"type": "key", "key": "k", "updated_at": "t", "deletes": {"when": "v = 'gone'"}},
    "prices": {"type": "full"},
    "clicks": {"type": "none"},
    "readings": {"type": "timestamp", "column": "t"},
    "sales": {"type": "custom", "delete_condition": "this.k = input.k"},
}
PROFILE = f"""
shop:
  target: dev
  outputs:
    dev:
      type: databricks
      host: {HOST}
      http_path: {CLUSTER_PATH}
      token: {TOKEN}
      catalog: prod-eu
      schema: shop
      threads: 1
"""
_YML = """
models:
  - name: customers
    description: All customers
    config:
      contract: {enforced: true}
      persist_docs: {relation: true, columns: true}
      tblproperties: {shop.owner: sales}
      post_hook: "create or replace table shop.hooked using delta as select count(*) as n from {{ this }}"
    columns:
      - {name: k, data_type: int, description: Their number, constraints: [{type: not_null}]}
      - {name: v, data_type: string}
      - {name: t, data_type: timestamp}
  - name: readings
    config: {partition_by: k}
"""
COLUMNS = "k int, v string, t timestamp"
FIRST = batch(COLUMNS, (1, "a", 10), (2, "b", 20), (3, "c", 30))
SECOND = batch(COLUMNS, (2, "b2", 25), (3, "gone", 40), (4, "d", 30))


@pytest.fixture(scope="module")
def warehouse(
    spark: "SparkSession", served_warehouse: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    """Two batches in a model of each type, in a catalog whose name needs quotes."""
    spark.sql("drop schema if exists shop cascade")
    folder = tmp_path_factory.mktemp("refresh") / "project"
    served_warehouse.sessions.version = "17.3.x-scala2.13"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in served_warehouse.variables(path=CLUSTER_PATH).items():
            patch.setenv(name, value)
        made = Warehouse(spark, folder, MODELS, profile=PROFILE, yml=_YML)
        made.receive(**dict.fromkeys(MODELS, FIRST))
        made.receive(**dict.fromkeys(MODELS, SECOND))
        yield made


def test_each_type_comes_to_the_same_under_either_adapter(warehouse: Warehouse) -> None:
    columns = "k, v, s_input_id"
    assert warehouse.rows("customers", f"{columns}, s_record_status_code") == [
        *((1, "a", 1, "N"), (2, "b2", 2, "C"), (4, "d", 2, "N")),
    ]
    assert warehouse.rows("customers_history", "k, v, s_deleted_flag, s_effective_to is null") == [
        *((1, "a", False, True), (2, "b", False, False), (2, "b2", False, True)),
        *((3, "c", False, False), (3, "gone", True, True), (4, "d", False, True)),
    ]
    second = [(2, "b2", 2), (3, "gone", 2), (4, "d", 2)]
    assert warehouse.rows("prices", columns) == second
    assert len(warehouse.rows("clicks", columns)) == 6
    assert warehouse.rows("readings", columns) == [(1, "a", 1), (2, "b", 1), *second]
    assert warehouse.rows("sales", columns) == [(1, "a", 1), *second]


def test_comments_properties_constraints_and_hooks_are_those_of_the_model(
    spark: "SparkSession", warehouse: Warehouse
) -> None:
    reported = {row[0]: row for row in spark.sql("describe extended shop.customers").collect()}
    assert reported["k"][2] == "Their number"
    assert reported["Comment"][1] == "All customers"
    properties = dict(spark.sql("show tblproperties shop.customers").collect())
    assert properties["shop.owner"] == "sales"
    assert properties["delta.constraints.k_is_not_null"] == "`k` is not null"
    assert properties["delta.enableDeletionVectors"] == "true"
    assert warehouse.rows("hooked", "n") == [(3,)]
    partitions = spark.sql("describe detail shop.readings").collect()[0]["partitionColumns"]
    assert partitions == ["k"]


def test_a_batch_is_unloaded_and_taken_again_and_everything_reset(warehouse: Warehouse) -> None:
    before = warehouse.rows("customers", "*")
    warehouse.operate("refresh_unload", model="customers", input_ids=[2])
    assert warehouse.rows("customers", "k, v") == [(1, "a"), (2, "b"), (3, "c")]
    warehouse.operate("refresh_reload", model="customers", input_ids=[2])
    assert warehouse.rows("customers", "k, v") == [(1, "a"), (2, "b2"), (4, "d")]
    warehouse.operate("refresh_reset", model="customers")
    assert len(warehouse.rows("customers", "*")) == len(before)
    assert warehouse.states("customers")[-1] == "COMPLETE"
    assert "batch 1 of" in warehouse.operate("refresh_status", model="customers")


def test_a_model_can_be_refreshed_in_full_and_goes_on(warehouse: Warehouse) -> None:
    third = batch(COLUMNS, (9, "z", 50))
    given = json.dumps({"batches": {**dict.fromkeys(MODELS, "select 1 as k"), "sales": third}})
    run = ["run", "--select", "sales", "--full-refresh", "--vars", given]
    warehouse.shop._invoke(warehouse.shop.manifest, *run)
    assert [row[0] for row in warehouse.rows("sales", "k")] == [1, 2, 3, 4, 9]

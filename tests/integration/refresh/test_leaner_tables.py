"""Models without a history or without a batch archive: what they still do, and what they refuse."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Warehouse, batch, minute
from tests.support.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

KEYED: dict[str, object] = {"type": "key", "key": "k", "updated_at": "t"}
MODELS: dict[str, dict[str, object]] = {
    "whole": KEYED,
    "plain": {**KEYED, "history": False},
    "snapshots": {"type": "full", "history": False},
    "brief": {**KEYED, "archive_days": 0},
    "month": {"type": "none", "archive_days": 30.5},
}
_TESTS = """
models:
  - name: plain
    data_tests: [heartbeat.has_one_open_version]
"""
COLUMNS = "k int, v string, t timestamp"
#: A first batch, one that changes and adds, one of new keys alone, and one of which nothing is newer.
BATCHES = [
    batch(COLUMNS, (1, "a", 10), (2, "b", 10)),
    batch(COLUMNS, (1, "a2", 20), (3, "c", 20)),
    batch(COLUMNS, (4, "d", 30), (5, "e", 30)),
    batch(COLUMNS, (1, "a1", 15), (2, "b", 10)),
]
HUB = f"k, v, {minute('s_update_timestamp')}, s_input_id"


class Lean:
    """All batches, what the batch archives had meanwhile, and then an unload."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        self.warehouse = Warehouse(spark, folder / "lean", MODELS, yml=_TESTS)
        self.archived: list[tuple[int, int]] = []
        for each in BATCHES:
            self.warehouse.receive(**dict.fromkeys(MODELS, each))
            counts = [self.archived_rows(model) for model in ("brief", "month")]
            self.archived.append((counts[0], counts[1]))
        self.hubs = {
            model: self.warehouse.rows(model, HUB) for model in ("whole", "plain", "brief")
        }
        for model, number in {"whole": 2, "plain": 2, "snapshots": 4}.items():
            self.warehouse.operate("refresh_unload", model=model, input_ids=[number])
        self.unloaded = {model: self.warehouse.rows(model, HUB) for model in ("whole", "plain")}
        self.with_history = Warehouse(
            spark,
            folder / "with_history",
            {**MODELS, "plain": KEYED, "snapshots": {"type": "full"}},
        )

    def archived_rows(self, model: str) -> int:
        """How many rows the batch archive of a model has."""
        return self.spark.table(f"{SCHEMA}.{model}_batches").count()


@pytest.fixture(scope="module")
def lean(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Lean:
    """Everything that is done, once for all tests."""
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    return Lean(spark, tmp_path_factory.mktemp("lean"))


def test_a_hub_is_the_same_without_a_history_or_an_archive(lean: Lean) -> None:
    assert lean.hubs["whole"] == [
        *((1, "a2", 20, 2), (2, "b", 10, 1), (3, "c", 20, 2), (4, "d", 30, 3), (5, "e", 30, 3)),
    ]
    assert lean.hubs["plain"] == lean.hubs["brief"] == lean.hubs["whole"]
    assert lean.warehouse.codes("brief", 4) == {"O": 1, "U": 1}


def test_a_batch_is_unloaded_without_a_history(lean: Lean) -> None:
    # The late row of the last batch counts once the newer one is gone.
    assert lean.unloaded["whole"] == [
        *((1, "a1", 15, 4), (2, "b", 10, 1), (4, "d", 30, 3), (5, "e", 30, 3)),
    ]
    assert lean.unloaded["plain"] == lean.unloaded["whole"]
    assert lean.warehouse.rows("snapshots", "k, v, s_input_id") == [(4, "d", 3), (5, "e", 3)]


def test_no_history_is_made_until_a_reset_runs_with_history_configured(lean: Lean) -> None:
    tables = {row.tableName for row in lean.spark.sql(f"show tables in {SCHEMA}").collect()}
    assert {name for name in tables if name.endswith("_history")} == {
        *("whole_history", "brief_history"),
    }
    refused = lean.with_history.refusal(plain=BATCHES[0], snapshots=BATCHES[0])
    assert "history was False and is True" in refused
    for model in ("plain", "snapshots"):
        lean.with_history.operate("refresh_reset", model=model)
    versions = f"k, v, {minute('s_effective_from')}, {minute('s_effective_to')}, s_input_id"
    assert lean.warehouse.rows("plain_history", versions) == (
        lean.warehouse.rows("whole_history", versions)
    )
    found = lean.warehouse.rows("snapshots_history", "s_input_id, k")
    assert found == [(1, 1), (1, 2), (2, 1), (2, 3), (3, 4), (3, 5)]
    lean.warehouse.operate("refresh_reset", model="plain")
    assert not lean.spark.catalog.tableExists(f"{SCHEMA}.plain_history")
    assert lean.warehouse.rows("plain", HUB) == lean.unloaded["plain"]


def test_a_test_of_versions_states_why_a_model_has_none(lean: Lean) -> None:
    output = lean.warehouse.shop.refusal("test", "--select", "plain", "--vars", "{batches: {}}")
    assert (
        "has_one_open_version is a test for histories, but plain has none, as history is false"
        in (" ".join(output.split()))
    )


def test_rows_leave_the_archive_when_they_are_as_old_as_the_setting_states(lean: Lean) -> None:
    # With 0 days those of the last batch are there alone.
    assert lean.archived == [(2, 2), (2, 4), (2, 6), (2, 8)]
    ledger = f"{SCHEMA}.month_ledger"
    lean.spark.sql(
        f"update {ledger} set received_at = received_at - interval 31 days where s_input_id = 2"
    )
    lean.warehouse.receive(month=batch(COLUMNS, (6, "f", 40)))
    found = lean.warehouse.rows("month_batches", "s_input_id")
    assert {row[0] for row in found} == {1, 3, 4, 5}
    assert lean.warehouse.rows("month", "count(*)") == [(9,)]


def test_rows_that_a_process_left_in_the_archive_when_it_died_leave_it_with_the_next_ones(
    lean: Lean,
) -> None:
    lean.spark.sql(f"restore table {SCHEMA}.brief_batches to version as of 0")
    assert lean.archived_rows("brief") == 2
    lean.warehouse.receive(brief=batch(COLUMNS, (6, "f", 40)))
    assert lean.archived_rows("brief") == 1


def test_what_was_received_is_known_without_its_rows_and_what_needs_them_is_refused(
    lean: Lean,
) -> None:
    lean.warehouse.receive(brief=BATCHES[1])
    assert lean.warehouse.states("brief")[-1] == "SKIPPED_DUPLICATE"
    gone = "which are no longer in the archive, as refresh_vacuum or archive_days has it"
    refused = lean.warehouse.refused_operation
    assert gone in refused("refresh_unload", model="brief", input_ids=[2])
    output = refused("refresh_reset", model="brief")
    assert f"{gone}; to begin again with what the model's query gives, drop its tables" in output

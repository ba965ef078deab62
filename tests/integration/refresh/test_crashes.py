"""A process that dies between two commits of a refresh: the next run brings everything to the same end."""

from typing import TYPE_CHECKING

import pytest

from tests.integration.refresh.warehouse import Rows, Warehouse, batch
from tests.integration.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

KINDS: dict[str, dict[str, object]] = {
    "key": {"type": "key", "key": ["k"], "updated_at": "t", "deletes": {"when": "v = 'gone'"}},
    "full": {"type": "full"},
    "range": {"type": "timestamp", "column": "t"},
    "custom": {"type": "custom", "delete_condition": "this.k = input.k"},
}
#: Which tables the process did not get to any more; what it had staged is in the archive and in the ledger.
DEATHS = {
    "before_all": ["history", "hub"],
    "before_hub": ["hub"],
    "before_end": [],
}
#: Those without a history of keys die at fewer places.
ACCIDENTS = [
    *(("key", death) for death in DEATHS),
    ("full", "before_hub"),
    *((kind, death) for kind in ("range", "custom") for death in ("before_hub", "before_end")),
]
COLUMNS = "k int, v string, t timestamp"
BEFORE = batch(COLUMNS, (1, "a", 10), (2, "b", 20), (3, "c", 30))
DYING = batch(COLUMNS, (1, "a2", 15), (2, "gone", 25), (4, "d", 28))
NOTHING = batch(COLUMNS)


def _has(kind: str, table: str) -> bool:
    return table != "history" or kind in ("key", "full")


class Accident:
    """Models that all receive the same, some of which die at the second batch, and then run again."""

    def __init__(self, spark: "SparkSession", warehouse: Warehouse, names: list[str]) -> None:
        self._spark = spark
        self.warehouse = warehouse
        warehouse.receive(**dict.fromkeys(names, BEFORE))
        versions = {name: self._versions(name) for name in names}
        warehouse.receive(**dict.fromkeys(names, DYING))
        for name in names:
            for death, lost in DEATHS.items():
                if name.endswith(death):
                    self._undo(name, lost, versions[name])
        self.after_death = {name: self.tables(name) for name in names}
        warehouse.receive(**dict.fromkeys(names, NOTHING))

    def tables(self, name: str) -> dict[str, Rows]:
        """Rows of all tables that people read."""
        return {
            table: self.warehouse.rows(f"{name}{ending}", "*")
            for table, ending in {"hub": "", "history": "_history"}.items()
            if _has(name.split("_", maxsplit=1)[0], table)
        }

    def _versions(self, name: str) -> dict[str, int]:
        kind = name.split("_", maxsplit=1)[0]
        return {
            table: self._spark.sql(f"describe history {SCHEMA}.{name}{ending} limit 1")
            .collect()[0]
            .version
            for table, ending in {"hub": "", "history": "_history"}.items()
            if _has(kind, table)
        }

    def _undo(self, name: str, lost: list[str], versions: dict[str, int]) -> None:
        self._spark.sql(
            f"delete from {SCHEMA}.{name}_ledger where state = 'COMPLETE' and s_input_id = 2"
        )
        for table in lost:
            if table in versions:
                ending = "" if table == "hub" else "_history"
                self._spark.sql(
                    f"restore table {SCHEMA}.{name}{ending} to version as of {versions[table]}"
                )


@pytest.fixture(scope="module")
def accident(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Accident:
    """All kinds and all deaths at once."""
    spark.sql("drop schema if exists shop cascade")
    names = {f"{kind}_nowhere": kind for kind in KINDS}
    names |= {f"{kind}_{death}": kind for kind, death in ACCIDENTS}
    models = {name: KINDS[kind] for name, kind in names.items()}
    warehouse = Warehouse(spark, tmp_path_factory.mktemp("refresh") / "project", models)
    return Accident(spark, warehouse, list(names))


@pytest.mark.parametrize(("kind", "death"), ACCIDENTS)
def test_what_a_dying_process_left_is_finished_by_the_next_run(
    accident: Accident, kind: str, death: str
) -> None:
    name = f"{kind}_{death}"
    assert accident.warehouse.states(name) == ["COMPLETE", "COMPLETE", "SKIPPED_EMPTY"]
    assert accident.tables(name) == accident.tables(f"{kind}_nowhere")


def test_the_deaths_leave_something_to_be_finished(accident: Accident) -> None:
    for kind in KINDS:
        calm = accident.tables(f"{kind}_nowhere")
        assert accident.after_death[f"{kind}_before_hub"] != calm

"""A process that dies between two commits of a refresh: the next run brings everything to the same end."""

from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Rows, Warehouse, batch
from tests.support.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

KINDS: dict[str, dict[str, object]] = {
    "key": {"type": "key", "key": ["k"], "updated_at": "t", "deletes": {"when": "v = 'gone'"}},
    "full": {"type": "full"},
    "range": {"type": "timestamp", "column": "t"},
    "custom": {"type": "custom", "delete_condition": "this.k = input.k"},
}
#: Which tables the process did not get to any more; the batch archive and log have what it staged.
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
#: Which tables the first batch did not make any more.
FIRST_DEATHS = {"born_without_all": ["history", "hub"], "born_without_end": []}
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
        self.first = {kind: self.tables(f"{kind}_nowhere") for kind in KINDS}
        born = [name for name in names if "_born_" in name]
        for name in born:
            self._unmake(name, FIRST_DEATHS[name.split("_", maxsplit=1)[1]])
        warehouse.receive(**dict.fromkeys(born, NOTHING))
        self.born = {name: (warehouse.states(name), self.tables(name)) for name in born}
        names = [name for name in names if name not in born]
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

    def _unmake(self, name: str, lost: list[str]) -> None:
        self._spark.sql(f"delete from {SCHEMA}.{name}_ledger where state = 'COMPLETE'")
        for table in lost:
            if _has(name.split("_", maxsplit=1)[0], table):
                ending = "" if table == "hub" else "_history"
                self._spark.sql(f"drop table {SCHEMA}.{name}{ending}")

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
    names |= {f"{kind}_{death}": kind for kind in KINDS for death in FIRST_DEATHS}
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("death", FIRST_DEATHS)
def test_what_the_first_batch_did_not_make_is_made_by_the_next_run(
    accident: Accident, kind: str, death: str
) -> None:
    states, tables = accident.born[f"{kind}_{death}"]
    assert states == ["COMPLETE", "SKIPPED_EMPTY"]
    assert tables == accident.first[kind]


def test_the_deaths_leave_something_to_be_finished(accident: Accident) -> None:
    for kind in KINDS:
        calm = accident.tables(f"{kind}_nowhere")
        assert accident.after_death[f"{kind}_before_hub"] != calm

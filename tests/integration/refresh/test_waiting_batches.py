"""Batches that wait together are brought in together, and come to what they come to one after the other."""

from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Rows, Warehouse, batch
from tests.support.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

_WAITING: dict[str, object] = {"batch_by": "d"}
_KEYED: dict[str, object] = {**_WAITING, "type": "key", "key": "k", "exclude_from_cdc": ["d"]}
KINDS: dict[str, dict[str, object]] = {
    "dated": {**_KEYED, "updated_at": "t", "deletes": {"when": "v = 'gone'"}},
    "undated": {**_KEYED, "exclude_from_cdc": ["d", "t"]},
    "full": {**_WAITING, "type": "full", "keep_batches": 2},
    "none": {**_WAITING, "type": "none"},
    "range": {**_WAITING, "type": "timestamp", "column": "t"},
}
#: What the process did not get to any more when it brought the last three batches in.
DEATHS = {"before_all": ["_history", ""], "before_hub": [""]}
COLUMNS = "d string, k int, v string, t timestamp"
BATCHES: list[list[tuple[object, ...]]] = [
    [("1", 1, "a", 10), ("1", 2, "b", 20), ("1", 3, "c", 30)],
    # A change, a delete, a new key, and the delete of an unknown key.
    [("2", 1, "a2", 15), ("2", 2, "gone", 25), ("2", 4, "d", 28), ("2", 5, "gone", 5)],
    # The same but newer, of a row and of two deletes; a new key that goes, one that comes, one that is late.
    [
        *(("3", 1, "a2", 18), ("3", 2, "gone", 27), ("3", 4, "gone", 40)),
        *(("3", 5, "e", 6), ("3", 6, "f", 1), ("3", 3, "c0", 20), ("3", 8, "gone", 7)),
    ],
    # What was deleted comes back, and what came goes.
    [
        *(("4", 2, "b2", 30), ("4", 4, "gone", 45), ("4", 5, "e", 6), ("4", 6, "gone", 9)),
        *(("4", 7, "gone", 3), ("4", 1, "a3", 17), ("4", 8, "gone", 8)),
    ],
]
LATER = [row for rows in BATCHES[1:] for row in rows]
#: What distinguishes batches, in its order, by its type; an adapter may read text as another type.
NAMED: dict[str, list[object]] = {
    "bigint": [9, 10, 200],
    "boolean": ["false", "true"],
    "date": ["2026-03-01", "2026-03-02"],
    "double": [9.5, 10.25],
    "string": ["", "007", "07", "1.10", "10", "9", "null", "true"],
    "timestamp": [0, 1],
}
#: Its own column records when its rows were received, which differs with the runs.
READ = {
    "undated": "k, v, s_input_id",
    "undated_history": "k, v, s_input_id, s_effective_to is null",
}


class Waiting:
    """Models that get batches one after the other, and models that find three of them waiting."""

    def __init__(self, spark: "SparkSession", warehouse: Warehouse) -> None:
        self._spark = spark
        self.warehouse = warehouse
        names = [f"{kind}_{way}" for kind in KINDS for way in ("apart", "together")]
        dying = [f"dated_{death}" for death in DEATHS]
        warehouse.receive(**dict.fromkeys([*names, *dying], batch(COLUMNS, *BATCHES[0])))
        first = {name: self.version(name) for name in names}
        versions = {
            (name, ending): self.version(name, ending)
            for name in dying
            for ending in ("", "_history")
        }
        waiting = [name for name in [*names, *dying] if not name.endswith("_apart")]
        warehouse.receive(**dict.fromkeys(waiting, batch(COLUMNS, *LATER)))
        for rows in BATCHES[1:]:
            apart = [f"{kind}_apart" for kind in KINDS]
            warehouse.receive(**dict.fromkeys(apart, batch(COLUMNS, *rows)))
        self.commits = {name: self.version(name) - first[name] for name in names}
        for name in dying:
            for ending in DEATHS[name.removeprefix("dated_")]:
                version = versions[name, ending]
                spark.sql(f"restore table {SCHEMA}.{name}{ending} to version as of {version}")
            spark.sql(
                f"delete from {SCHEMA}.{name}_ledger where state = 'COMPLETE' and s_input_id > 1"
            )
        self.after_death = {name: self.tables(name) for name in dying}
        warehouse.receive(**dict.fromkeys(dying, batch(COLUMNS)))

    def tables(self, name: str) -> dict[str, Rows]:
        """Rows of the tables that people read."""
        kind = name.split("_", maxsplit=1)[0]
        endings = ["", "_history"] if kind in ("dated", "undated", "full") else [""]
        return {
            ending: self.warehouse.rows(f"{name}{ending}", READ.get(f"{kind}{ending}", "*"))
            for ending in endings
        }

    def version(self, name: str, ending: str = "") -> int:
        """The newest Delta version of one of a model's tables."""
        return self.warehouse.version(f"{name}{ending}")


@pytest.fixture(scope="module")
def waiting(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Waiting:
    """All kinds and all deaths at once."""
    spark.sql("drop schema if exists shop cascade")
    models = {f"{kind}_{way}": KINDS[kind] for kind in KINDS for way in ("apart", "together")}
    models |= {f"dated_{death}": KINDS["dated"] for death in DEATHS}
    models["refused"] = KINDS["range"]
    models |= {name: {"type": "full", "batch_by": "b"} for name in NAMED}
    return Waiting(spark, Warehouse(spark, tmp_path_factory.mktemp("refresh") / "project", models))


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_batches_come_to_what_they_come_to_one_after_the_other(
    waiting: Waiting, kind: str
) -> None:
    assert waiting.tables(f"{kind}_together") == waiting.tables(f"{kind}_apart")
    for name in ("together", "apart"):
        assert waiting.warehouse.states(f"{kind}_{name}") == ["COMPLETE"] * 4
    codes = waiting.warehouse.codes
    for number in range(1, 5):
        assert codes(f"{kind}_together", number) == codes(f"{kind}_apart", number)


def test_the_codes_of_waiting_batches_follow_from_those_before_them(waiting: Waiting) -> None:
    codes = waiting.warehouse.codes
    assert codes("dated_together", 2) == {"C": 1, "D": 1, "N": 1, "U": 1}
    assert codes("dated_together", 3) == {"S": 2, "D": 1, "N": 2, "O": 1, "U": 1}
    assert codes("dated_together", 4) == {"N": 1, "S": 2, "U": 2, "D": 1, "O": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_batches_are_one_commit_of_the_hub(waiting: Waiting, kind: str) -> None:
    assert waiting.commits[f"{kind}_together"] == 1
    assert waiting.commits[f"{kind}_apart"] == 3


@pytest.mark.parametrize("death", DEATHS)
def test_waiting_batches_that_a_dying_process_left_are_finished_one_by_one(
    waiting: Waiting, death: str
) -> None:
    name = f"dated_{death}"
    assert waiting.after_death[name] != waiting.tables("dated_together")
    assert waiting.tables(name) == waiting.tables("dated_together")
    assert waiting.warehouse.states(name) == ["COMPLETE"] * 4


def test_batches_before_one_that_is_refused_are_brought_in(waiting: Waiting) -> None:
    years = 366 * 24 * 60 * 2
    rows = [("1", 1, "a", 10), ("2", 2, "b", 20), ("3", 3, "c", 30), ("3", 4, "d", years)]
    given = batch(COLUMNS, *rows, ("4", 5, "e", 50))
    assert "batch 3 is refused: its rows span 731 days" in waiting.warehouse.refusal(refused=given)
    assert waiting.warehouse.states("refused") == ["COMPLETE", "COMPLETE", "FAILED"]
    assert waiting.warehouse.rows("refused", "k, s_input_id") == [(1, 1), (2, 2)]


@pytest.mark.parametrize("kind", NAMED)
def test_batches_are_distinguished_by_values_of_any_type_and_taken_in_their_order(
    waiting: Waiting, kind: str
) -> None:
    rows = [(value, place) for place, value in enumerate(NAMED[kind], 1)]
    given = batch(f"b {kind}, k int", *reversed(rows))
    for _ in range(2):
        waiting.warehouse.receive(**{kind: given})
        assert waiting.warehouse.rows(f"{kind}_history", "k, s_input_id") == [
            (place, place) for _, place in rows
        ]
        assert waiting.warehouse.rows(kind, "k") == [(len(rows),)]

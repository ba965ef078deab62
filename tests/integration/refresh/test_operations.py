"""Batches that are taken out and received again, and what is refused, in a sentence each."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Rows, Warehouse, batch, minute
from tests.support.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MODELS: dict[str, dict[str, object]] = {
    "customers": {
        "type": "key",
        "key": "k",
        "updated_at": "t",
        "deletes": {"when": "v = 'gone'"},
    },
    "prices": {"type": "full"},
    "clicks": {"type": "none", "on_duplicate_batch": "skip"},
    "readings": {"type": "timestamp", "column": "t", "max_range": 1},
    "sales": {"type": "custom", "delete_condition": "this.k = input.k"},
}
LATE: dict[str, object] = {
    "type": "key",
    "key": "k",
    "updated_at": "t",
    "late_arriving": "history",
}
#: What is wrong with each stands in the sentence.
MISTAKEN: dict[str, tuple[dict[str, object], str]] = {
    "untyped": ({"key": "k"}, "type is missing, but must be one of key, full, none, timestamp"),
    "keyless": ({"type": "key"}, "key needs the setting key"),
    "misspelt": (
        {"type": "none", "bach_by": "k"},
        "bach_by is not a setting of none, which has type,",
    ),
    "unlisted": (
        {"type": "key", "key": "k", "null_keys": "drop"},
        "null_keys is drop, but must be one of fail, quarantine, match",
    ),
    "twofold": (
        {"type": "key", "key": "k", "updated_at": "t", "deletes": {"complete": True}},
        "deletes.complete goes with extracted_at, not with updated_at",
    ),
    "timeless": (
        {"type": "key", "key": "k", "late_arriving": "history"},
        "late_arriving: history needs updated_at, which shows what is late",
    ),
    "unremembered": (
        {"type": "key", "key": "k", "history": False, "deletes": {"when": "v = 'gone'"}},
        "history: false goes neither with deletes nor with late_arriving: history",
    ),
    "unkept": (
        {"type": "full", "history": False, "keep_batches": 3},
        "keep_batches sets what the history keeps, so it does not go with history: false",
    ),
    "unarchived": (
        {**LATE, "archive_days": 7},
        "late_arriving: history reads the whole archive, so it does not go with archive_days",
    ),
    "unnamed": (
        {"type": "timestamp", "column": "at"},
        "column names the column at, but the model has k, v, t",
    ),
}
COLUMNS = "k int, v string, t timestamp"
BATCHES = [
    batch(COLUMNS, (1, "a", 10), (2, "b", 15), (3, "c", 20), (5, "e", 30)),
    batch(COLUMNS, (1, "a2", 15), (3, "gone", 25), (4, "d", 20)),
    batch(COLUMNS, (1, "a3", 18), (3, "c3", 22), (4, "d", 23)),
]
VERSIONS = (
    f"k, v, {minute('s_effective_from')}, {minute('s_effective_to')}, s_deleted_flag, s_input_id"
)


class Reworked:
    """Three batches, the second of which is taken out and then received again."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        for each in BATCHES:
            warehouse.receive(**dict.fromkeys(MODELS, each))
        self.with_all = self._hubs()
        self.announced = warehouse.operate(
            "refresh_unload", model="customers", input_ids=[2], dry_run=True
        )
        self.after_dry_run = self._hubs()
        for model in MODELS:
            if model != "sales":
                unloaded = 3 if model == "prices" else 2
                warehouse.operate("refresh_unload", model=model, input_ids=[unloaded])
        self.without = self._hubs()
        self.history = warehouse.rows("customers_history", VERSIONS)
        self.refused = warehouse.refused_operation(
            "refresh_unload", model="customers", input_ids=[2]
        )
        warehouse.operate("refresh_reload", model="customers", input_ids=[2])
        self.reloaded = self._hubs()
        self.states = warehouse.states("customers")
        self.status = warehouse.operate("refresh_status", model="customers")
        self.codes = warehouse.codes("customers", 4)

    def _hubs(self) -> dict[str, Rows]:
        columns = f"k, v, {minute('t')}, s_input_id"
        return {model: self.warehouse.rows(model, columns) for model in MODELS}


@pytest.fixture(scope="module")
def reworked(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Reworked:
    """Everything that is done, once for all tests."""
    spark.sql("drop schema if exists shop cascade")
    models = {**MODELS, **{name: settings for name, (settings, _) in MISTAKEN.items()}}
    return Reworked(Warehouse(spark, tmp_path_factory.mktemp("refresh") / "project", models))


def test_a_dry_run_prints_what_would_be_unloaded_and_changes_nothing(reworked: Reworked) -> None:
    assert "customers: would unload batch 2, 3 keys" in reworked.announced
    assert reworked.after_dry_run == reworked.with_all


def test_keys_of_an_unloaded_batch_are_what_the_other_batches_define(reworked: Reworked) -> None:
    assert reworked.with_all["customers"] == [
        *((1, "a3", 18, 3), (2, "b", 15, 1), (4, "d", 20, 2), (5, "e", 30, 1)),
    ]
    assert reworked.without["customers"] == [
        *((1, "a3", 18, 3), (2, "b", 15, 1), (3, "c3", 22, 3), (4, "d", 23, 3), (5, "e", 30, 1)),
    ]


def test_the_history_forgets_an_unloaded_batch(reworked: Reworked) -> None:
    assert reworked.history == [
        (1, "a", 10, 18, False, 1),
        (1, "a3", 18, None, False, 3),
        (2, "b", 15, None, False, 1),
        (3, "c", 20, 22, False, 1),
        (3, "c3", 22, None, False, 3),
        (4, "d", 23, None, False, 3),
        (5, "e", 30, None, False, 1),
    ]


def test_a_range_goes_back_to_the_batch_that_held_it_before(reworked: Reworked) -> None:
    assert reworked.with_all["readings"] == [
        *((1, "a", 10, 1), (1, "a2", 15, 2), (1, "a3", 18, 3)),
        *((3, "c3", 22, 3), (3, "gone", 25, 2), (4, "d", 23, 3), (5, "e", 30, 1)),
    ]
    assert reworked.without["readings"] == [
        *((1, "a", 10, 1), (1, "a3", 18, 3), (2, "b", 15, 1)),
        *((3, "c3", 22, 3), (4, "d", 23, 3), (5, "e", 30, 1)),
    ]


def test_an_unloaded_snapshot_gives_way_to_the_one_before_it(reworked: Reworked) -> None:
    assert {row[3] for row in reworked.with_all["prices"]} == {3}
    assert reworked.without["prices"] == [(1, "a2", 15, 2), (3, "gone", 25, 2), (4, "d", 20, 2)]


def test_appended_rows_of_an_unloaded_batch_are_gone(reworked: Reworked) -> None:
    assert {row[3] for row in reworked.without["clicks"]} == {1, 3}


def test_a_batch_that_is_reloaded_is_the_newest_and_finds_what_came_meanwhile(
    reworked: Reworked,
) -> None:
    assert reworked.states == ["COMPLETE", "UNLOADED", "COMPLETE", "COMPLETE"]
    assert reworked.codes == {"D": 1, "O": 1, "U": 1}
    assert reworked.reloaded["customers"] == [
        *((1, "a3", 18, 3), (2, "b", 15, 1), (4, "d", 23, 3), (5, "e", 30, 1)),
    ]


@pytest.mark.parametrize(
    ("operation", "arguments", "sentence"),
    [
        (
            "refresh_unload",
            {"model": "orders", "input_ids": [1]},
            "orders is not a model that is materialized as refresh; those are clicks, customers,",
        ),
        (
            "refresh_unload",
            {"model": "clicks", "input_ids": [9]},
            "clicks has no batch 9; it has 1",
        ),
        ("refresh_reload", {"model": "clicks", "input_ids": [1]}, "must be UNLOADED"),
        ("refresh_unload", {"model": "sales", "input_ids": [1]}, "as its type is custom"),
    ],
)
def test_an_operation_that_cannot_be_meant_is_refused(
    reworked: Reworked, operation: str, arguments: dict[str, object], sentence: str
) -> None:
    assert sentence in reworked.warehouse.refused_operation(operation, **arguments)


def test_a_batch_that_is_not_in_the_hub_cannot_be_unloaded(reworked: Reworked) -> None:
    assert "batch 2 of customers is UNLOADED, but must be COMPLETE" in reworked.refused


@pytest.mark.parametrize(
    ("model", "received", "sentence"),
    [
        ("customers", batch(COLUMNS, (None, "x", 1)), "1 of its 1 rows have no value in k or t"),
        ("readings", batch(COLUMNS, (1, "x", None)), "have no readable value in t"),
        (
            "readings",
            batch(COLUMNS, (1, "x", 1), (1, "y", 3000)),
            "its rows span 2 days in t, all of which they would replace, and max_range is 1",
        ),
    ],
)
def test_a_batch_that_would_do_harm_is_refused_and_the_hub_stays(
    reworked: Reworked, model: str, received: str, sentence: str
) -> None:
    before = reworked.warehouse.rows(model, "*")
    assert sentence in reworked.warehouse.refusal(**{model: received})
    assert reworked.warehouse.states(model)[-1] == "FAILED"
    assert reworked.warehouse.rows(model, "*") == before


@pytest.mark.parametrize("name", MISTAKEN)
def test_settings_that_cannot_be_meant_are_refused_with_what_is_legal(
    reworked: Reworked, name: str
) -> None:
    assert MISTAKEN[name][1] in reworked.warehouse.refusal(**{name: BATCHES[0]})


def test_the_status_shows_for_each_batch_what_became_of_it(reworked: Reworked) -> None:
    output = " ".join(reworked.status.split())
    assert ": COMPLETE, 4 rows, 2 of them in the hub; N 4" in output
    assert ": UNLOADED, 3 rows, 0 of them in the hub; C 1, D 1, N 1" in output


class Resettled:
    """Batches that were appended, and are then rebuilt by key."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        before = Warehouse(spark, folder / "before", {"parcels": {"type": "none", "batch_by": "v"}})
        before.receive(parcels=batch(COLUMNS, (1, "day1", 10), (2, "day2", 20)))
        before.receive(parcels=batch(COLUMNS, (1, "day1", 10), (2, "day2", 20), (1, "day3", 5)))
        self.appended = before.rows("parcels", f"k, {minute('t')}, s_input_id")
        self.unnamed = before.refusal(parcels=batch(COLUMNS, (1, None, 10)))
        by_key: dict[str, object] = {"type": "key", "key": "k", "updated_at": "t", "batch_by": "v"}
        after = Warehouse(spark, folder / "after", {"parcels": by_key})
        self.refused = after.refusal(parcels=batch(COLUMNS))
        after.operate("refresh_reset", model="parcels", without=[2])
        self.by_key = after.rows("parcels", f"k, {minute('t')}, s_input_id")
        self.states = after.states("parcels")
        after.receive(parcels=batch(COLUMNS, (1, "day1", 10), (3, "day4", 30)))
        after.operate("refresh_reload", model="parcels", input_ids=[2])
        self.goes_on = after.rows("parcels", f"k, {minute('t')}, s_input_id")


@pytest.fixture(scope="module")
def resettled(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Resettled:
    """Everything that is done, once for all tests."""
    return Resettled(spark, tmp_path_factory.mktemp("resettled"))


def test_a_run_takes_all_batches_that_no_run_has_taken(resettled: Resettled) -> None:
    assert resettled.appended == [(1, 5, 3), (1, 10, 1), (2, 20, 2)]


def test_rows_that_are_of_no_batch_are_refused(resettled: Resettled) -> None:
    assert "1 rows have no value in v, which batch_by names" in resettled.unnamed


def test_a_model_whose_settings_have_changed_stops_and_names_the_reset(
    resettled: Resettled,
) -> None:
    assert "type was none and is key" in resettled.refused
    assert "heartbeat.refresh_reset --args '{model: parcels}'" in resettled.refused


def test_a_reset_takes_all_batches_with_the_settings_of_now(resettled: Resettled) -> None:
    assert resettled.by_key == [(1, 10, 1)]
    assert resettled.states == ["COMPLETE", "UNLOADED", "COMPLETE", "FAILED"]
    assert resettled.goes_on[::2] == [(1, 10, 1), (3, 30, 5)]


def test_what_a_reset_leaves_out_can_still_be_reloaded(resettled: Resettled) -> None:
    assert resettled.goes_on[1] == (2, 20, 6)


class Vacuumed:
    """Batches whose rows have left the batch archive, and what can be done without them."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        models = {name: MODELS[name] for name in ("customers", "clicks")}
        self.warehouse = Warehouse(spark, folder, models)
        for each in BATCHES[:2]:
            self.warehouse.receive(**dict.fromkeys(models, each))
        self.archived = self.warehouse.rows("clicks_batches", "s_input_id")
        self.warehouse.operate("refresh_vacuum", model="clicks", keep_days=1)
        self.young = self.warehouse.rows("clicks_batches", "s_input_id")
        self.warehouse.operate("refresh_vacuum", model="clicks", keep_days=0, dry_run=True)
        self.tried = self.warehouse.rows("clicks_batches", "s_input_id")
        for model in models:
            self.warehouse.operate("refresh_vacuum", model=model, keep_days=0)


@pytest.fixture(scope="module")
def vacuumed(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Vacuumed:
    spark.sql("drop schema if exists shop cascade")
    return Vacuumed(spark, tmp_path_factory.mktemp("refresh") / "vacuumed")


def test_a_vacuum_takes_the_rows_of_old_batches_out_of_the_archive_alone(
    vacuumed: Vacuumed,
) -> None:
    assert vacuumed.young == vacuumed.tried == vacuumed.archived
    assert vacuumed.warehouse.rows("clicks_batches", "s_input_id") == []
    assert vacuumed.warehouse.states("clicks") == ["COMPLETE", "COMPLETE"]
    assert len(vacuumed.warehouse.rows("clicks", "*")) == len(vacuumed.archived)


def test_what_needs_rows_that_the_archive_no_longer_has_is_refused(vacuumed: Vacuumed) -> None:
    refused = vacuumed.warehouse.refused_operation
    gone = "needs rows of batches 1, 2, which are no longer in the archive"
    assert f"a reset of clicks {gone}" in refused("refresh_reset", model="clicks")
    assert f"an unload of customers {gone}" in refused(
        "refresh_unload", model="customers", input_ids=[2]
    )


def test_a_table_goes_on_without_what_its_archive_has_lost(vacuumed: Vacuumed) -> None:
    vacuumed.warehouse.receive(clicks=BATCHES[1], customers=BATCHES[2])
    assert vacuumed.warehouse.states("clicks")[-1] == "SKIPPED_DUPLICATE"
    assert vacuumed.warehouse.states("customers")[-1] == "COMPLETE"
    vacuumed.warehouse.operate("refresh_unload", model="clicks", input_ids=[2])
    assert {row[0] for row in vacuumed.warehouse.rows("clicks", "s_input_id")} == {1}
    refused = vacuumed.warehouse.refused_operation("refresh_reload", model="clicks", input_ids=[2])
    assert "a reload of clicks needs rows of batches 2, which" in refused


class Broken:
    """A target table with a check, a batch that breaks it, and what ends that."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        models: dict[str, dict[str, object]] = {
            "checked": {"type": "key", "key": "k", "updated_at": "t"},
            "checked_range": {"type": "timestamp", "column": "t"},
        }
        house = Warehouse(spark, folder / "project", models)
        house.receive(**dict.fromkeys(models, batch(COLUMNS, (1, "a", 10), (2, "b", 20))))
        for name in models:
            spark.sql(f"alter table {SCHEMA}.{name} add constraint known check (v <> 'bad')")
        self.said = []
        for name in models:
            wrong = batch(COLUMNS, (2, "b2", 25), (3, "bad", 30))
            self.said.append(house.refusal(**{name: wrong}))
            self.said.append(house.refusal(**{name: batch(COLUMNS, (4, "d", 50))}))
            house.operate("refresh_unload", model=name, input_ids=[2])
        house.receive(**dict.fromkeys(models, batch(COLUMNS, (2, "b2", 25), (3, "c", 30))))
        self.states = {name: house.states(name) for name in models}
        self.rows = {name: house.rows(name, f"k, v, {minute('t')}, s_input_id") for name in models}
        self.history = house.rows("checked_history", "k, v, s_effective_to is null, s_input_id")


@pytest.fixture(scope="module")
def broken(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Broken:
    """Everything that is done, once for all tests."""
    return Broken(spark, tmp_path_factory.mktemp("broken"))


def test_a_batch_that_breaks_a_check_of_the_hub_stops_each_run_until_it_is_unloaded(
    broken: Broken,
) -> None:
    assert all("known" in output and "violated" in output for output in broken.said)
    for states in broken.states.values():
        assert states == ["COMPLETE", "UNLOADED", "COMPLETE"]


def test_what_comes_after_such_a_batch_is_taken_as_if_it_had_never_come(broken: Broken) -> None:
    assert broken.rows["checked"] == [(1, "a", 10, 1), (2, "b2", 25, 3), (3, "c", 30, 3)]
    assert broken.rows["checked_range"] == [
        *((1, "a", 10, 1), (2, "b", 20, 1)),
        *((2, "b2", 25, 3), (3, "c", 30, 3)),
    ]
    assert broken.history == [
        *((1, "a", True, 1), (2, "b", False, 1)),
        *((2, "b2", True, 3), (3, "c", True, 3)),
    ]

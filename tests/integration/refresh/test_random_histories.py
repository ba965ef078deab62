"""Hundreds of random pasts of keys, side by side in one table, against the fold in plain Python."""

from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.refresh.warehouse import Warehouse, minute
from tests.refresh.batches import Batch, without
from tests.refresh.key_types import Code, KeyOptions, KeyRow, KeyState, NullKeys, UnchangedNewer
from tests.refresh.oracle_key import fold_key
from tests.refresh.random_histories import flat_key_rows, key_histories

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES, BATCHES, UNLOADED = 500, 5, 3
SETTINGS: dict[str, object] = {
    "type": "key",
    "key": ["history", "key"],
    "updated_at": "at",
    "exclude_from_cdc": ["is_delete"],
    "null_keys": "quarantine",
    "deletes": {"when": "is_delete"},
}
MODELS = {
    UnchangedNewer.TOUCH: SETTINGS,
    UnchangedNewer.SKIP: {**SETTINGS, "unchanged_newer": "skip"},
}
_TYPES = (
    "s_input_id int, row_num int, history int, key int, first_value string, second_value string, "
    "at int, is_delete boolean"
)
Answer = dict[str, Any]


class Pasts:
    """The random batches, what both models made of them, and what is left without one of them."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.batches = key_histories(Random(20261122), HISTORIES, BATCHES)
        self.warehouse = Warehouse(
            spark, folder / "project", {str(name): each for name, each in MODELS.items()}
        )
        for batch in self.batches:
            rows = [tuple(asdict(row).values()) for row in flat_key_rows([batch])]
            place = folder / f"batch_{batch.input_id}"
            spark.createDataFrame(rows, _TYPES).coalesce(1).write.parquet(str(place))
            query = (
                "select history, key, first_value, second_value, "
                "timestamp'2026-01-01 00:00:00' + make_dt_interval(0, 0, at) as at, is_delete "
                f"from parquet.`{place}` order by row_num"
            )
            self.warehouse.receive(**dict.fromkeys(map(str, MODELS), query))
        self.whole = {name: self._answer(name) for name in MODELS}
        for name in MODELS:
            self.warehouse.operate("refresh_unload", model=str(name), input_ids=[UNLOADED])
        self.less = {name: self._answer(name) for name in MODELS}

    def _answer(self, model: str) -> Answer:
        rows = self.warehouse.rows
        at, start, end = map(minute, ("s_update_timestamp", "s_effective_from", "s_effective_to"))
        values = "first_value, second_value"
        return {
            "hub": set(rows(model, f"history, key, {values}, {at}, s_input_id, s_seen_input_id")),
            "history": sorted(
                rows(
                    f"{model}_history",
                    f"history, key, if(s_deleted_flag, null, first_value), "
                    f"if(s_deleted_flag, null, second_value), {start}, {end}, s_deleted_flag, s_input_id",
                ),
                key=repr,
            ),
            "tombstones": {
                row[:3]
                for row in rows(
                    f"{model}_history",
                    f"history, key, {at}, s_deleted_flag and s_effective_to is null",
                )
                if row[3]
            },
            "codes": [
                code
                for _, _, code in rows(
                    f"{model}_batches", "s_input_id, s_row_num, s_record_status_code"
                )
            ],
        }


@pytest.fixture(scope="module")
def pasts(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Pasts:
    """All batches, received once for all tests."""
    spark.sql("drop schema if exists shop cascade")
    return Pasts(spark, tmp_path_factory.mktemp("refresh"))


def expected(batches: list[Batch[KeyRow]], mode: UnchangedNewer) -> Answer:
    """What the fold in plain Python makes of some batches."""
    options = KeyOptions(unchanged_newer=mode, null_keys=NullKeys.QUARANTINE)
    state: KeyState = fold_key(batches, options)
    return {
        "hub": {
            (
                *row.key,
                *(row.values or ()),
                row.s_update_timestamp,
                row.s_input_id,
                row.s_seen_input_id,
            )
            for row in state.hub
        },
        "history": sorted(
            (
                (
                    *each.key,
                    *(each.values or (None, None)),
                    each.s_effective_from,
                    each.s_effective_to,
                    each.s_deleted_flag,
                    each.s_input_id,
                )
                for each in state.history
            ),
            key=repr,
        ),
        "tombstones": {(*row.key, row.s_update_timestamp) for row in state.tombstones},
        "codes": [str(code) for each in state.codes.values() for code in each],
    }


@pytest.mark.parametrize("mode", MODELS)
@pytest.mark.parametrize("part", ["codes", "hub", "tombstones", "history"])
def test_spark_comes_to_what_the_rules_say(pasts: Pasts, mode: UnchangedNewer, part: str) -> None:
    assert pasts.whole[mode][part] == expected(pasts.batches, mode)[part]


@pytest.mark.parametrize("mode", MODELS)
@pytest.mark.parametrize("part", ["hub", "tombstones", "history"])
def test_without_a_batch_everything_is_as_if_it_had_never_come(
    pasts: Pasts, mode: UnchangedNewer, part: str
) -> None:
    assert pasts.less[mode][part] == expected(without(pasts.batches, UNLOADED), mode)[part]


def test_the_pasts_have_rows_of_every_code(pasts: Pasts) -> None:
    assert {str(code) for code in Code} == set(pasts.whole[UnchangedNewer.TOUCH]["codes"])

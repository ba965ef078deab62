"""Hundreds of random pasts of keys, side by side in one table, against the fold in plain Python."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.local_rows import frame_of_rows
from tests.support.refresh.batches import Batch, without
from tests.support.refresh.key_types import (
    Code,
    Deletes,
    KeyOptions,
    KeyRow,
    KeyState,
    LateArriving,
    NullKeys,
    UnchangedNewer,
)
from tests.support.refresh.oracle_key import fold_key
from tests.support.refresh.random_histories import Shape, flat_key_rows, key_histories
from tests.support.refresh.warehouse import Warehouse, minute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

HISTORIES, BATCHES = 500, 5
#: Taken out one after the other: the second of them lacks keys that only the first had deleted.
UNLOADED = (3, 4)
#: Which batches a run finds waiting together.
WAITING = ((0, 1), (2, 3, 4))
_KEY: dict[str, object] = {"type": "key", "key": ["history", "key"], "null_keys": "quarantine"}
_DATED: dict[str, object] = {
    **_KEY,
    "updated_at": "at",
    "exclude_from_cdc": ["is_delete", "extracted"],
}
_WHEN: dict[str, object] = {"when": "is_delete"}
_COMPLETE: dict[str, object] = {
    **_KEY,
    "extracted_at": "extracted",
    "exclude_from_cdc": ["is_delete", "at"],
}
MODELS: dict[str, dict[str, object]] = {
    "touch": {**_DATED, "deletes": _WHEN},
    "skip": {**_DATED, "deletes": _WHEN, "unchanged_newer": "skip"},
    "late": {**_DATED, "deletes": _WHEN, "late_arriving": "history"},
    "soft": {**_DATED, "deletes": {**_WHEN, "mode": "soft"}},
    "together": {
        **_DATED,
        "batch_by": "batch",
        "exclude_from_cdc": ["is_delete", "extracted", "batch"],
        "deletes": _WHEN,
    },
    "complete": {**_COMPLETE, "deletes": {"complete": True}},
    "complete_soft": {**_COMPLETE, "deletes": {"complete": True, "mode": "soft"}},
}
_QUARANTINE = KeyOptions(null_keys=NullKeys.QUARANTINE)
OPTIONS = {
    "touch": _QUARANTINE,
    "skip": KeyOptions(null_keys=NullKeys.QUARANTINE, unchanged_newer=UnchangedNewer.SKIP),
    "late": KeyOptions(null_keys=NullKeys.QUARANTINE, late_arriving=LateArriving.HISTORY),
    "soft": _QUARANTINE,
    "together": _QUARANTINE,
    "complete": KeyOptions(null_keys=NullKeys.QUARANTINE, has_date_column=False),
    "complete_soft": KeyOptions(null_keys=NullKeys.QUARANTINE, has_date_column=False),
}
_TYPES = (
    "s_input_id int, row_num int, history int, key int, first_value string, second_value string, "
    "at int, is_delete boolean"
)
_MIDNIGHT = "timestamp'2026-01-01 00:00:00'"
Answer = dict[str, Any]


class Pasts:
    """The random batches, what the models made of them, and what is left without some of them."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        complete = Shape(complete=1.0, delete=0.0)
        pasts = {
            "flagged": key_histories(Random(20261122), HISTORIES, BATCHES),
            "complete": key_histories(Random(20261123), HISTORIES, BATCHES, complete),
        }
        self.batches = {
            name: pasts["complete" if name.startswith("complete") else "flagged"] for name in MODELS
        }
        self.warehouse = Warehouse(spark, folder / "project", MODELS)
        for place in range(BATCHES):
            queries = {
                name: _query(spark, folder / f"{name}_{place}", past[place])
                for name, past in pasts.items()
            }
            given = {
                name: queries["complete" if name.startswith("complete") else "flagged"]
                for name in MODELS
                if name != "together"
            }
            self.warehouse.receive(**given)
        for places in WAITING:
            each = [
                f"(select *, {place} as batch from ({_query(spark, folder / f'waiting_{place}', pasts['flagged'][place])}))"
                for place in places
            ]
            self.warehouse.receive(together=" union all ".join(each))
        self.whole = {name: self._answer(name) for name in MODELS}
        for name in MODELS:
            self.warehouse.operate("refresh_unload", model=name, input_ids=list(UNLOADED))
        self.less = {name: self._answer(name) for name in MODELS}

    def _answer(self, model: str) -> Answer:
        rows = self.warehouse.rows
        at, start, end = map(minute, ("s_update_timestamp", "s_effective_from", "s_effective_to"))
        values = "first_value, second_value"
        flag = "s_deleted_flag" if model.endswith("soft") else "false"
        return {
            "hub": set(
                rows(
                    model,
                    f"history, key, {values}, {at}, s_input_id, s_seen_input_id, s_record_status_code, {flag}",
                )
            ),
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
                for _, number, code in rows(
                    f"{model}_batches", "s_input_id, s_row_num, s_record_status_code"
                )
                if number is not None
            ],
        }


def _query(spark: "SparkSession", place: Path, batch: Batch[KeyRow]) -> str:
    rows = [tuple(asdict(row).values()) for row in flat_key_rows([batch])]
    frame_of_rows(spark, rows, _TYPES).coalesce(1).write.parquet(str(place))
    return (
        "select history, key, first_value, second_value, "
        f"{_MIDNIGHT} + make_dt_interval(0, 0, at) as at, is_delete, "
        f"{_MIDNIGHT} + make_dt_interval(0, 0, {batch.received_at}) as extracted "
        f"from parquet.`{place}` order by row_num"
    )


@pytest.fixture(scope="module")
def pasts(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Pasts:
    """All batches, received once for all tests."""
    spark.sql("drop schema if exists shop cascade")
    return Pasts(spark, tmp_path_factory.mktemp("refresh"))


def expected(batches: Sequence[Batch[KeyRow]], model: str) -> Answer:
    """What the fold in plain Python makes of some batches."""
    options = OPTIONS[model]
    state: KeyState = fold_key(batches, options)
    kept = [row for row in state.tombstones if row.values is not None]
    is_soft = model.endswith("soft")
    assert options.deletes is Deletes.SOFT  # The fold always keeps what a tombstone had.
    return {
        "hub": {
            (
                *row.key,
                *(row.values or (None, None)),
                row.s_update_timestamp,
                row.s_input_id,
                row.s_seen_input_id,
                str(row.s_record_status_code),
                row.s_deleted_flag,
            )
            for row in (*state.hub, *(kept if is_soft else ()))
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


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("part", ["codes", "hub", "tombstones", "history"])
def test_spark_comes_to_what_the_rules_define(pasts: Pasts, model: str, part: str) -> None:
    assert pasts.whole[model][part] == expected(pasts.batches[model], model)[part]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("part", ["hub", "tombstones", "history"])
def test_without_batches_everything_is_as_if_they_had_never_come(
    pasts: Pasts, model: str, part: str
) -> None:
    left = without(pasts.batches[model], *UNLOADED)
    assert pasts.less[model][part] == expected(left, model)[part]


def test_the_pasts_have_rows_of_every_code(pasts: Pasts) -> None:
    assert {str(code) for code in Code} == set(pasts.whole["touch"]["codes"])


def test_the_pasts_have_late_rows_and_keys_that_a_complete_extract_lacks(pasts: Pasts) -> None:
    assert pasts.whole["late"]["history"] != pasts.whole["touch"]["history"]
    assert pasts.whole["complete"]["tombstones"]
    assert any(row[-1] for row in pasts.whole["complete_soft"]["hub"])

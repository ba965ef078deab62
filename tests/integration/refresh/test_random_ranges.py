"""Random pasts of ranges and of conditions, against the folds in plain Python."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.support.local_rows import frame_of_rows
from tests.support.refresh.batches import Batch, without
from tests.support.refresh.key_types import KeyRow
from tests.support.refresh.oracle_range import NullInstants, RangeRow, fold_range, whole_numbers
from tests.support.refresh.oracle_whole import CustomRule, Truth, fold_custom
from tests.support.refresh.random_histories import (
    Shape,
    flat_key_rows,
    key_histories,
    of_history,
    range_history,
)
from tests.support.refresh.warehouse import Rows, Warehouse, batch, minute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

#: A range spans its whole table, so that each past has one of its own; all of its batches wait at once.
SEEDS, BATCHES = (1, 8), 10
RANGED = {
    f"by_{column}_{seed}": (kind, column, seed)
    for kind, column in (("timestamp", "instant"), ("sequence", "number"))
    for seed in SEEDS
}
UNLOADED = (4, 6, 7)
#: Conditions may specify to which past a row belongs.
HISTORIES, CUSTOM_BATCHES, LEFT_OUT = 300, 4, 2
CUSTOM: dict[str, object] = {
    "type": "custom",
    "delete_condition": "this.history = input.history and this.key = input.key and this.at >= input.at",
    "append_filter": "input.first_value <> 'b'",
}


def _and(*truths: Truth) -> Truth:
    return False if False in truths else None if None in truths else True


def _condemns(held: KeyRow, row: KeyRow) -> Truth:
    keys = [
        None if None in pair else pair[0] == pair[1] for pair in zip(held.key, row.key, strict=True)
    ]
    is_after = None if held.at is None or row.at is None else held.at >= row.at
    return _and(*keys, is_after)


def _passes(row: KeyRow) -> Truth:
    value = (row.values or (None, None))[0]
    return None if value is None else value != "b"


RULE = CustomRule(delete_condition=_condemns, append_filter=_passes)


def _past(seed: int) -> list[Batch[RangeRow]]:
    random = Random(seed)
    # A batch without rows cannot wait among others: nothing shows that it is there.
    full = [each for each in range_history(random, BATCHES, Shape(instants=9)) if each.rows]
    return [_moved(each, place, random.randrange(20)) for place, each in enumerate(full, start=1)]


def _moved(each: Batch[RangeRow], place: int, far: int) -> Batch[RangeRow]:
    """Put a batch elsewhere on the line, so that few batches cover all of it."""
    rows = (replace(row, at=None if row.at is None else row.at + far) for row in each.rows)
    return replace(each, input_id=place, rows=tuple(rows))


def _query(batches: Sequence[Batch[RangeRow]]) -> str:
    columns = (
        "day string, instant timestamp, number bigint, first_value string, second_value string"
    )
    rows = [
        (f"{each.input_id:02d}", row.at, row.at, *row.values)
        for each in batches
        for row in each.rows
    ]
    return batch(columns, *rows)


class Pasts:
    """What the models made of their pasts, whole and without some batches."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        models: dict[str, dict[str, object]] = {
            name: {"type": kind, "column": column, "batch_by": "day", "null_values": "quarantine"}
            for name, (kind, column, _) in RANGED.items()
        }
        self.warehouse = Warehouse(spark, folder / "project", {**models, "by_condition": CUSTOM})
        self.ranged = {name: _past(seed) for name, (_, _, seed) in RANGED.items()}
        self.conditioned = key_histories(Random(5), HISTORIES, CUSTOM_BATCHES)
        waiting = {name: _query(past) for name, past in self.ranged.items()}
        for place, each in enumerate(self.conditioned):
            given = _written(spark, folder / f"batch_{place}", each)
            self.warehouse.receive(by_condition=given, **(waiting if place == 0 else {}))
        self.whole = {name: self.hub(name) for name in [*RANGED, "by_condition"]}
        self.ranges = {
            name: self.warehouse.rows(f"{name}_metrics", "s_input_id, to_json(effective_ranges)")
            for name in RANGED
            if "number" in name
        }
        for name in RANGED:
            self.warehouse.operate("refresh_unload", model=name, input_ids=list(UNLOADED))
        self.warehouse.operate("refresh_reset", model="by_condition", without=[LEFT_OUT])
        self.less = {name: self.hub(name) for name in [*RANGED, "by_condition"]}

    def hub(self, name: str) -> Rows:
        """The rows of a target table, by the columns that matter, in order."""
        if name == "by_condition":
            at = minute("at")
            return self.warehouse.rows(
                name, f"history, key, {at}, first_value, second_value, s_input_id"
            )
        return self.warehouse.rows(name, "number, first_value, second_value, s_input_id")


def _written(spark: "SparkSession", place: Path, each: Batch[KeyRow]) -> str:
    types = (
        "s_input_id int, row_num int, history int, key int, first_value string, second_value string, "
        "at int, is_delete boolean"
    )
    rows = [tuple(asdict(row).values()) for row in flat_key_rows([each])]
    frame_of_rows(spark, rows, types).coalesce(1).write.parquet(str(place))
    return (
        "select history, key, first_value, second_value, timestamp'2026-01-01 00:00:00' "
        f"+ make_dt_interval(0, 0, at) as at from parquet.`{place}`"
    )


@pytest.fixture(scope="module")
def pasts(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Pasts:
    """All batches, received once for all tests."""
    spark.sql("drop schema if exists shop cascade")
    return Pasts(spark, tmp_path_factory.mktemp("refresh"))


def _ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: tuple((cell is not None, cell) for cell in row))


def _ranges_of(batches: Sequence[Batch[RangeRow]]) -> Rows:
    state = fold_range(batches, NullInstants.QUARANTINE)
    return [(row.at, *row.values, row.s_input_id) for row in state.hub]


def _conditions_of(batches: Sequence[Batch[KeyRow]]) -> Rows:
    return [
        (*held.row.key, held.row.at, *(held.row.values or (None, None)), held.s_input_id)
        for number in range(HISTORIES)
        for held in fold_custom(of_history(batches, number), RULE).hub
    ]


@pytest.mark.parametrize("name", RANGED)
def test_ranges_on_spark_are_held_by_the_batches_that_the_rules_name(
    pasts: Pasts, name: str
) -> None:
    assert len(pasts.ranged[name]) > max(UNLOADED)
    assert pasts.whole[name] == _ordered(_ranges_of(pasts.ranged[name]))


@pytest.mark.parametrize("name", RANGED)
def test_ranges_are_given_back_as_if_batches_had_never_come(pasts: Pasts, name: str) -> None:
    left = without(pasts.ranged[name], *UNLOADED)
    assert pasts.less[name] == _ordered(_ranges_of(left))
    assert pasts.less[name] != pasts.whole[name]


@pytest.mark.parametrize("name", [name for name in RANGED if "number" in name])
def test_the_metrics_name_the_ranges_that_the_rules_define(pasts: Pasts, name: str) -> None:
    state = fold_range(pasts.ranged[name], NullInstants.QUARANTINE)
    expected = {each.input_id: "" for each in pasts.ranged[name]}
    for each in whole_numbers(state.effective_ranges):
        # No other batch has rows in it.
        count = sum(each.low <= row.at <= each.high for row in state.hub)
        reported = f'{{"range_from":{each.low},"range_to":{each.high},"record_count":{count}}}'
        expected[each.input_id] += ("," if expected[each.input_id] else "") + reported
    assert pasts.ranges[name] == [
        (input_id, f"[{reported}]" if reported else None) for input_id, reported in expected.items()
    ]


def test_conditions_on_spark_delete_and_add_what_the_rules_define(pasts: Pasts) -> None:
    assert pasts.whole["by_condition"] == _ordered(_conditions_of(pasts.conditioned))
    left = without(pasts.conditioned, LEFT_OUT)
    assert pasts.less["by_condition"] == _ordered(_conditions_of(left))

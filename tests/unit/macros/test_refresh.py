"""What a refresh model decides without a database: which batches it takes, which settings it refuses, what it runs."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from tests.refresh.batches import Batch, accepted
from tests.refresh.key_types import KeyOptions, KeyRow
from tests.refresh.oracle_key import fold_key
from tests.refresh.oracle_range import (
    NullInstants,
    RangeRow,
    RangeState,
    fold_range,
    observed_ranges,
    touches,
)
from tests.refresh.random_histories import Shape, key_histories, range_history
from tests.unit.macros.calling import Macros

MACROS = Macros()
SEEDS = range(200)
#: Few instants and many redeliveries: what was corrected is often set back.
SHAPE = Shape(keys=2, instants=4, rows=2, null_key=0, null_instant=0, redelivered=0.4)


def node(**refresh: object) -> dict[str, object]:
    """A model as dbt knows it."""
    config = {"materialized": "refresh", "file_format": "delta", "meta": {"refresh": refresh}}
    return {"name": "orders", "original_file_path": "models/orders.sql", "config": config}


def settings(**refresh: object) -> dict[str, object]:
    return dict(MACROS.call.refresh_settings(node(**refresh)))


def taken(
    batches: Sequence[Batch[KeyRow]] | Sequence[Batch[RangeRow]], **refresh: object
) -> list[int]:
    """The numbers of the batches that a model takes."""
    load: dict[str, object] = {"settings": settings(**refresh), "is_replay": False}
    live: list[dict[str, object]] = []
    for batch in batches:
        instants = [row.at for row in batch.rows if row.at is not None]
        is_ranged = refresh["type"] in ("timestamp", "sequence") or "updated_at" in refresh
        fact = {
            "id": batch.input_id,
            "state": "STAGED",
            "record_count": len(batch.rows),
            "fingerprint": str(sorted(Counter(batch.rows).items(), key=str)),
            "range_from": str(min(instants)) if instants and is_ranged else None,
            "range_to": str(max(instants)) if instants and is_ranged else None,
        }
        if MACROS.call.refresh_reason_to_skip({**load, "batches": live}, fact) is None:
            live.append(fact)
    return [int(str(fact["id"])) for fact in live]


def only(batches: Sequence[Batch[KeyRow]], numbers: Sequence[int]) -> list[Batch[KeyRow]]:
    return [batch for batch in batches if batch.input_id in numbers]


def rows_of(state: RangeState) -> list[tuple[object, ...]]:
    return [(row.at, *row.values) for row in state.hub]


@pytest.mark.parametrize("type_", ["timestamp", "sequence"])
def test_a_range_that_was_corrected_and_set_back_is_never_skipped(type_: str) -> None:
    skipped = 0
    for seed in SEEDS:
        batches = range_history(Random(seed), 8, SHAPE)
        numbers = taken(batches, type=type_, column="t")
        assert numbers == [batch.input_id for batch in accepted(batches, touches)]
        left = [batch for batch in batches if batch.input_id in numbers]
        # Ties of one instant keep the order of their rows, which a batch of the same rows may change.
        assert Counter(rows_of(fold_range(left, NullInstants.FAIL))) == Counter(
            rows_of(fold_range(batches, NullInstants.FAIL))
        )
        skipped += len([batch for batch in batches if batch.rows]) - len(numbers)
    assert skipped > len(SEEDS) / 4
    assert any(observed_ranges(range_history(Random(seed), 8, SHAPE)) for seed in SEEDS)


def test_a_row_that_was_corrected_at_its_instant_and_set_back_is_never_skipped() -> None:
    skipped = 0
    options = KeyOptions()
    for seed in SEEDS:
        batches = key_histories(Random(seed), 1, 8, SHAPE)
        numbers = taken(batches, type="key", key="k", updated_at="t")
        hubs = [
            {row.key: (row.values, row.s_update_timestamp) for row in fold_key(each, options).hub}
            for each in (only(batches, numbers), batches)
        ]
        assert hubs[0] == hubs[1]
        skipped += len([batch for batch in batches if batch.rows]) - len(numbers)
    assert skipped > len(SEEDS) / 4


@pytest.mark.parametrize(
    "refresh",
    [
        {"type": "custom", "delete_condition": "this.k = input.k"},
        {"type": "full"},
        {"type": "key", "key": "k"},
    ],
    ids=["custom", "full", "key"],
)
def test_without_dates_only_the_batch_before_is_one_that_was_received_already(
    refresh: dict[str, object],
) -> None:
    batches = range_history(Random(1), 200, SHAPE)
    expected = [batch.input_id for batch in accepted(batches)]
    assert taken(batches, **refresh) == expected
    assert len(expected) < len([batch for batch in batches if batch.rows])


def test_batches_are_appended_though_they_equal_others_unless_the_model_skips_those() -> None:
    batches = range_history(Random(1), 60, SHAPE)
    filled = [batch.input_id for batch in batches if batch.rows]
    assert taken(batches, type="none") == filled
    once = list(
        {str(sorted(Counter(each.rows).items(), key=str)): each for each in batches[::-1]}.values()
    )
    assert taken(batches, type="none", on_duplicate_batch="skip") == sorted(
        each.input_id for each in once if each.rows
    )

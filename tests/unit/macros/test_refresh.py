"""What a refresh model decides without a database: which batches it takes, which settings it refuses, what it runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from types import SimpleNamespace

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


HUB = [("region", "string"), ("day", "int"), ("s_input_id", "bigint")]
TABLES = {
    name: f"shop.orders_{name}" for name in ("hub", "history", "batches", "ledger", "metrics")
}


class Run:
    """What one step of a refresh runs, in order, with what the database answers to it."""

    def __init__(self, **answers: Sequence[Sequence[object]]) -> None:
        self.queries: list[str] = []
        known = {name.replace("_", " "): rows for name, rows in answers.items()}
        self.macros = Macros(run_query=lambda query: self._answer(" ".join(query.split()), known))

    def load(self, **refresh: object) -> dict[str, object]:
        """What a refresh knows of a model with two batches."""
        batches = [{"id": 1, "state": "COMPLETE"}, {"id": 2, "state": "STAGED"}]
        return {"settings": settings(**refresh), "tables": TABLES, "shapes": {}, "batches": batches}

    def _answer(self, query: str, known: Mapping[str, Sequence[Sequence[object]]]) -> object:
        self.queries.append(query)
        found = [rows for beginning, rows in known.items() if query.startswith(beginning)]
        return SimpleNamespace(rows=[dict(enumerate(row)) for row in (found[0] if found else [])])


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


CUSTOM: dict[str, object] = {
    "type": "custom",
    "delete_condition": "this.region = input.region",
    "append_filter": "input.day > 0",
}


@pytest.mark.parametrize("is_redo", [False, True], ids=["first", "again"])
def test_a_custom_batch_deletes_and_adds_in_one_statement_and_counts_both(*, is_redo: bool) -> None:
    run = Run(describe=HUB, merge=[(3, 0, 1, 2)])
    batch: dict[str, object] = {"id": 2}
    run.macros.call.refresh_apply_custom(run.load(**CUSTOM), batch, is_redo)
    writing = [query for query in run.queries if not query.startswith(("describe", "select"))]
    assert [query.split()[:3] for query in writing] == [["merge", "into", "shop.orders_hub"]]
    assert (
        "on not input.s_is_added and (this.region = input.region) when matched then delete"
        in writing[0]
    )
    assert "where s_input_id = 2 and (input.day > 0) )" in writing[0]
    assert batch["code_counts"] == {"D": 1, "N": 2}


def test_a_custom_batch_whose_commit_is_in_the_hub_is_not_applied_again() -> None:
    run = Run(describe=HUB, select_1_from=[(1,)])
    run.macros.call.refresh_apply_custom(run.load(**CUSTOM), {"id": 2}, True)
    assert not [query for query in run.queries if query.startswith("merge")]

"""The oracles of FULL, NONE and CUSTOM, run on the pasts that were worked out by hand."""

import pytest

from tests.support.refresh.batches import Batch, Receipt, accepted, receipts, without
from tests.support.refresh.oracle_whole import (
    CustomMetrics,
    CustomRule,
    FullState,
    Hub,
    Truth,
    append_step,
    delete_step,
    effective_counts,
    fold_custom,
    fold_full,
    fold_none,
    full_difference,
)


def full(input_id: int, rows: str, day: int | None = None) -> Batch[str]:
    return Batch(input_id=input_id, rows=tuple(rows), extracted_at=day)


def text(hub: Hub[str]) -> str:
    return "".join(held.row for held in hub)


F1, F2, F3 = full(1, "abb", day=1), full(2, "ac", day=3), full(3, "", day=3)
F2_AGAIN, F4 = full(4, "ac", day=3), full(5, "ab", day=2)
FULLS = [F1, F2, F3, F2_AGAIN, F4]


def after(count: int, *, by_extraction: bool = True) -> FullState[str]:
    return fold_full(accepted(FULLS[:count]), by_extraction=by_extraction)


@pytest.mark.parametrize(
    ("count", "hub", "partitions", "effective"),
    [
        (1, "abb", [1], {1: 3}),
        (2, "ac", [1, 2], {1: 0, 2: 2}),
        (3, "ac", [1, 2], {1: 0, 2: 2}),
        (4, "ac", [1, 2], {1: 0, 2: 2}),
        (5, "ac", [1, 2, 5], {1: 0, 2: 2, 5: 0}),
    ],
)
def test_a_full_batch_replaces_the_hub_unless_it_was_extracted_earlier(
    count: int, hub: str, partitions: list[int], effective: dict[int, int]
) -> None:
    state = after(count)

    assert text(state.hub) == hub
    assert list(state.partitions) == partitions
    assert state.effective_counts == effective


def test_a_full_batch_extracted_earlier_is_kept_as_a_late_one() -> None:
    assert after(4).late == frozenset()
    assert after(5).late == {5}
    assert after(5).partitions[5] == ("a", "b")


def test_without_a_time_of_extraction_the_full_batch_received_last_is_taken() -> None:
    state = after(5, by_extraction=False)

    assert text(state.hub) == "ab"
    assert state.late == frozenset()


def test_of_full_batches_extracted_at_once_the_one_received_last_is_taken() -> None:
    assert text(fold_full([F2, full(3, "z", day=3)], by_extraction=True).hub) == "z"


def test_full_batches_that_come_again_or_without_rows_are_skipped() -> None:
    assert receipts(FULLS)[2:4] == [Receipt.SKIPPED_EMPTY, Receipt.SKIPPED_DUPLICATE]


def test_unloading_the_current_full_batch_takes_the_newest_of_the_others() -> None:
    state = fold_full(without(accepted(FULLS), 2), by_extraction=True)

    assert text(state.hub) == "ab"
    assert {held.s_input_id for held in state.hub} == {5}
    assert list(state.partitions) == [1, 5]


def test_an_empty_full_batch_empties_the_hub_only_where_that_is_allowed() -> None:
    assert text(fold_full([F1, F2, F3]).hub) == "ac"
    assert text(fold_full([F1, F2, F3], allow_empty=True).hub) == ""


def test_two_full_batches_differ_key_by_key() -> None:
    assert full_difference(F1.rows, F2.rows, str) == {"N": 1, "C": 0, "U": 1, "D": 1}
    assert full_difference(("a1", "b1"), ("a2", "b1"), lambda row: row[0])["C"] == 1


N1, N2, N3 = full(1, "xy"), full(2, "yyz"), full(4, "w")


@pytest.mark.parametrize(
    ("batches", "rows"),
    [
        ([N1], "x/1 y/1"),
        ([N1, N2], "x/1 y/1 y/2 y/2 z/2"),
        ([N1, N2, full(3, "zyy")], "x/1 y/1 y/2 y/2 z/2 z/3 y/3 y/3"),
        ([N1, N2, N3], "x/1 y/1 y/2 y/2 z/2 w/4"),
        (without([N1, N2, N3], 2), "x/1 y/1 w/4"),
    ],
    ids=["first", "second", "again", "third", "unloaded"],
)
def test_batches_without_a_strategy_are_appended(batches: list[Batch[str]], rows: str) -> None:
    hub = fold_none(accepted(batches, is_appended=True))

    assert " ".join(f"{held.row}/{held.s_input_id}" for held in hub) == rows


def test_a_batch_that_died_half_written_is_appended_once() -> None:
    assert fold_none([N1, N3, N3]) == fold_none([N1, N3])


def test_all_rows_of_a_batch_without_a_strategy_count() -> None:
    assert effective_counts(fold_none([N1, N2]), [N1, N2]) == {1: 2, 2: 3}


Sale = tuple[str | None, int, int | None]


def same_region_from_that_day(this: Sale, arriving: Sale) -> Truth:
    if this[1] < arriving[1]:
        return False
    return None if this[0] is None or arriving[0] is None else this[0] == arriving[0]


RULE: CustomRule[Sale] = CustomRule(
    delete_condition=same_region_from_that_day,
    append_filter=lambda sale: sale[2] is not None,
)
START: Batch[Sale] = Batch(
    input_id=1, rows=(("EU", 1, 10), ("EU", 2, 20), ("US", 1, 5), (None, 1, 7))
)
C1: Batch[Sale] = Batch(input_id=2, rows=(("EU", 2, 21), ("EU", 3, None)))
LEFT: list[Sale] = [("EU", 1, 10), ("US", 1, 5), (None, 1, 7)]


def sales(*batches: Batch[Sale]) -> list[Sale]:
    return [held.row for held in fold_custom(batches, RULE).hub]


def test_a_custom_batch_deletes_what_is_surely_condemned_and_adds_what_surely_passes() -> None:
    assert sales(START) == list(START.rows)
    assert sales(START, C1) == [*LEFT, ("EU", 2, 21)]
    assert fold_custom([START, C1], RULE).metrics[2] == CustomMetrics(
        records=2, deleted=1, appended=1, filtered=1
    )


def test_a_condition_or_a_filter_that_is_unknown_neither_deletes_nor_adds() -> None:
    unknown: CustomRule[Sale] = CustomRule(
        delete_condition=same_region_from_that_day,
        append_filter=lambda sale: None if sale[2] is None else sale[2] > 0,
    )
    nowhere: Batch[Sale] = Batch(input_id=1, rows=((None, 9, 7), ("US", 9, None)))
    hub = fold_custom([nowhere, C1], unknown).hub

    assert [held.row for held in hub] == [(None, 9, 7), ("EU", 2, 21)]


def test_a_custom_batch_done_again_is_not_doubled_where_its_condition_spares_it() -> None:
    gentle: CustomRule[Sale] = CustomRule(delete_condition=lambda _this, _arriving: False)

    assert fold_custom([START, C1, C1], gentle).hub == fold_custom([START, C1], gentle).hub


def test_a_custom_batch_that_is_done_again_deletes_and_adds_its_own_row() -> None:
    assert sales(START, C1, C1) == sales(START, C1)
    forced = Batch(input_id=3, rows=C1.rows)
    assert sales(START, C1, forced) == sales(START, C1)
    assert fold_custom([START, C1, forced], RULE).metrics[3].deleted == 1


def test_a_custom_batch_without_rows_deletes_nothing_whatever_its_condition() -> None:
    ruthless: CustomRule[Sale] = CustomRule(delete_condition=lambda _this, _arriving: True)
    nothing: Batch[Sale] = Batch(input_id=2, rows=())
    state = fold_custom([START, nothing], ruthless)

    assert [held.row for held in state.hub] == list(START.rows)
    assert state.metrics[2].deleted == 0


def test_a_custom_batch_that_died_between_its_steps_is_done_again_without_loss() -> None:
    hub = fold_custom([START], RULE).hub
    half = delete_step(hub, C1, RULE)

    assert [held.row for held in half] == LEFT
    redone = append_step(delete_step(half, C1, RULE), C1, RULE.append_filter)
    assert redone == fold_custom([START, C1], RULE).hub

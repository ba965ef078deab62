"""Rules of ranges for anything received, on random pasts: specified independently of the fold."""

from collections import Counter
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refresh.batches import Batch, without
from tests.support.refresh.oracle_range import (
    Interval,
    NullInstants,
    RangeHubRow,
    RangeRow,
    RangeState,
    fold_range,
    observed_ranges,
    owner,
    whole_numbers,
)
from tests.support.refresh.random_histories import range_history

Batches = list[Batch[RangeRow]]

# The one shrinks what it finds; a seed's choices are spread more evenly, and find more.
randoms = st.randoms(use_true_random=False) | st.integers(0, 2**32).map(Random)
pasts = st.builds(range_history, randoms, st.integers(1, 7))
unhurried = settings(deadline=None)

#: Every instant that a past may have, and the middle between any two.
MOMENTS = [half / 2 for half in range(20)]


def folded(batches: Batches) -> RangeState:
    return fold_range(batches, NullInstants.QUARANTINE)


def holds(interval: Interval, moment: float) -> bool:
    is_after = interval.low < moment or (interval.is_low_in and interval.low == moment)
    is_before = moment < interval.high or (interval.is_high_in and interval.high == moment)
    return is_after and is_before


def newest_covering(batches: Batches, moment: float) -> int | None:
    covering = [
        each.input_id for each in observed_ranges(batches) if each.low <= moment <= each.high
    ]
    return max(covering, default=None)


@unhurried
@given(pasts)
def test_the_content_of_every_instant_is_that_of_the_newest_batch_that_covers_it(
    batches: Batches,
) -> None:
    hub = folded(batches).hub

    for moment in MOMENTS:
        newest = newest_covering(batches, moment)
        expected = [
            (moment, row.values, batch.input_id)
            for batch in batches
            for row in batch.rows
            if row.at == moment and batch.input_id == newest
        ]
        assert [(row.at, row.values, row.s_input_id) for row in hub if row.at == moment] == expected


@unhurried
@given(pasts)
def test_the_hub_is_what_deleting_and_inserting_batch_by_batch_leaves(batches: Batches) -> None:
    left: list[RangeHubRow] = []
    for batch in batches:
        rows = [row for row in batch.rows if row.at is not None]
        instants = [row.at for row in rows if row.at is not None]
        if instants:
            low, high = min(instants), max(instants)
            left = [row for row in left if not low <= row.at <= high]
        left += [
            RangeHubRow(at=row.at or 0, values=row.values, s_input_id=batch.input_id)
            for row in rows
        ]

    assert Counter(folded(batches).hub) == Counter(left)


@unhurried
@given(pasts)
def test_effective_ranges_give_each_moment_to_the_newest_batch_and_to_no_other(
    batches: Batches,
) -> None:
    owned = folded(batches).effective_ranges

    for moment in MOMENTS:
        newest = newest_covering(batches, moment)
        owners = [each.input_id for each in owned if holds(each, moment)]
        assert owners == ([] if newest is None else [newest])


@unhurried
@given(pasts)
def test_effective_ranges_are_as_few_as_can_be(batches: Batches) -> None:
    owned = folded(batches).effective_ranges

    for left, right in pairwise(owned):
        touches = left.high == right.low and (left.is_high_in or right.is_low_in)
        assert not (touches and left.input_id == right.input_id)


@unhurried
@given(pasts)
def test_ranges_of_whole_numbers_hold_the_numbers_that_they_held(batches: Batches) -> None:
    owned = folded(batches).effective_ranges
    numbers = [int(moment) for moment in MOMENTS if moment == int(moment)]

    for number in numbers:
        closed = [each.input_id for each in whole_numbers(owned) if holds(each, number)]
        assert closed == [each.input_id for each in owned if holds(each, number)]


@unhurried
@given(pasts, st.integers(1, 7))
def test_handing_a_batchs_ranges_to_the_next_owners_equals_never_having_loaded_it(
    batches: Batches, unloaded: int
) -> None:
    loaded, rest = folded(batches), without(batches, unloaded)
    freed = [each for each in loaded.effective_ranges if each.input_id == unloaded]
    heirs = observed_ranges(rest)
    back = [
        RangeHubRow(at=row.at, values=row.values, s_input_id=batch.input_id)
        for batch in rest
        for row in batch.rows
        if row.at is not None
        and any(holds(each, row.at) for each in freed)
        and owner(heirs, row.at, row.at) == batch.input_id
    ]
    kept = [row for row in loaded.hub if row.s_input_id != unloaded]

    assert Counter([*kept, *back]) == Counter(folded(rest).hub)


@unhurried
@given(pasts)
def test_every_row_of_the_hub_counts_for_its_batch(batches: Batches) -> None:
    state = folded(batches)

    assert sum(state.effective_counts.values()) == len(state.hub)
    for batch in batches:
        live = state.effective_counts[batch.input_id]
        assert live + state.rejected_counts[batch.input_id] <= len(batch.rows)


@unhurried
@given(pasts)
def test_folding_ranges_again_comes_to_the_same(batches: Batches) -> None:
    assert folded(batches) == folded(list(batches))

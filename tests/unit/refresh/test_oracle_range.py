"""The oracles of TIMESTAMP and SEQUENCE, run on the pasts that were worked out by hand."""

from collections.abc import Sequence

import pytest

from tests.support.refresh.batches import Batch, Receipt, accepted, receipts, without
from tests.support.refresh.oracle_range import (
    Limits,
    NullInstants,
    RangeRow,
    RangeState,
    fold_range,
    is_refused,
    touches,
    whole_numbers,
)


def batch(input_id: int, *rows: str | int) -> Batch[RangeRow]:
    """Rows are written as in ``1:a1``, or as their instants alone."""
    parts = [str(row).partition(":") for row in rows]
    return Batch(
        input_id=input_id,
        rows=tuple(RangeRow(at=int(at), values=(value or None,)) for at, _, value in parts),
    )


def hub(state: RangeState) -> str:
    return " ".join(f"{row.at}:{row.values[0]}" for row in state.hub)


def ranges(state: RangeState) -> str:
    return " ".join(str(each) for each in state.effective_ranges)


B1 = batch(1, "1:a1", "3:a3", "5:a5", "5:a5")
B2 = batch(2, "5:b5", "6:b6", "8:b8")
B3 = batch(3, "3:c3", "4:c4")
B4 = batch(4)
B5 = batch(5, "0:e0", "2:e2")
B5_AGAIN = batch(6, "2:e2", "0:e0")
B1_AGAIN = batch(7, "1:a1", "3:a3", "5:a5", "5:a5")
TIMES = [B1, B2, B3, B4, B5, B5_AGAIN, B1_AGAIN]
AFTER_B3 = (
    "1:a1 3:c3 4:c4 5:b5 6:b6 8:b8",
    "b1[1,3) b3[3,4] b1(4,5) b2[5,8]",
)
AFTER_B5 = (
    "0:e0 2:e2 3:c3 4:c4 5:b5 6:b6 8:b8",
    "b5[0,2] b1(2,3) b3[3,4] b1(4,5) b2[5,8]",
)
AFTER_B1_AGAIN = ("0:e0 1:a1 3:a3 5:a5 5:a5 6:b6 8:b8", "b5[0,1) b7[1,5] b2(5,8]")


@pytest.mark.parametrize(
    ("count", "rows", "owned"),
    [
        (1, "1:a1 3:a3 5:a5 5:a5", "b1[1,5]"),
        (2, "1:a1 3:a3 5:b5 6:b6 8:b8", "b1[1,5) b2[5,8]"),
        (3, *AFTER_B3),
        (4, *AFTER_B3),
        (5, *AFTER_B5),
        (6, *AFTER_B5),
        (7, *AFTER_B1_AGAIN),
    ],
)
def test_each_batch_of_timestamps_replaces_what_lies_in_its_range(
    count: int, rows: str, owned: str
) -> None:
    state = fold_range(accepted(TIMES[:count], touches))

    assert (hub(state), ranges(state)) == (rows, owned)


def test_batches_of_timestamps_are_skipped_that_are_empty_or_still_hold_all_of_their_range() -> (
    None
):
    assert receipts(TIMES, touches) == [
        *([Receipt.ACCEPTED] * 3),
        Receipt.SKIPPED_EMPTY,
        Receipt.ACCEPTED,
        Receipt.SKIPPED_DUPLICATE,
        Receipt.ACCEPTED,
    ]


def test_an_owner_of_a_gap_need_not_have_rows_there() -> None:
    assert fold_range(TIMES[:5]).effective_counts == {1: 0, 2: 3, 3: 2, 4: 0, 5: 2}


def test_unloading_a_batch_of_timestamps_gives_its_range_back() -> None:
    state = fold_range(without(accepted(TIMES[:6], touches), 3))

    assert hub(state) == "0:e0 2:e2 3:a3 5:b5 6:b6 8:b8"
    assert ranges(state) == "b5[0,2] b1(2,5) b2[5,8]"


S1, S2, S3, S4 = batch(1, 1, 2, 4, 5), batch(2, 4, 6, 7), batch(3, 2, 3), batch(4, 1)


@pytest.mark.parametrize(
    ("batches", "rows", "owned"),
    [
        ([S1], "1/s1 2/s1 4/s1 5/s1", "b1[1,5]"),
        ([S1, S2], "1/s1 2/s1 4/s2 6/s2 7/s2", "b1[1,3] b2[4,7]"),
        ([S1, S2, S3], "1/s1 2/s3 3/s3 4/s2 6/s2 7/s2", "b1[1,1] b3[2,3] b2[4,7]"),
    ],
)
def test_each_batch_of_a_sequence_replaces_what_lies_in_its_range(
    batches: Sequence[Batch[RangeRow]], rows: str, owned: str
) -> None:
    state = fold_range(batches)

    assert " ".join(f"{row.at}/s{row.s_input_id}" for row in state.hub) == rows
    assert " ".join(str(each) for each in whole_numbers(state.effective_ranges)) == owned


def test_a_sequence_that_starts_again_is_refused_and_a_backfill_is_not() -> None:
    limits = Limits(max_rewind=5)

    assert not is_refused([], S1, limits)
    assert not is_refused([S1, S2], S3, limits)
    assert is_refused([S1, S2, S3], S4, limits)


def test_a_batch_that_spans_too_much_is_refused() -> None:
    assert is_refused([], batch(1, 1, 6), Limits(max_range=4))
    assert not is_refused([], batch(1, 1, 5), Limits(max_range=4))
    assert not is_refused([S1], B4, Limits(max_range=0, max_rewind=0))


def test_a_hole_that_no_batch_covers_belongs_to_none() -> None:
    assert ranges(fold_range([batch(1, 1, 2), batch(2, 5), batch(3, 2, 3)])) == (
        "b1[1,2) b3[2,3] b2[5,5]"
    )


def test_a_row_without_an_instant_fails_or_is_put_aside() -> None:
    rows = (RangeRow(at=None), RangeRow(at=3))
    batches = [Batch(input_id=1, rows=rows), Batch(input_id=2, rows=rows[:1])]

    with pytest.raises(ValueError, match="no instant"):
        fold_range(batches)
    state = fold_range(batches, NullInstants.QUARANTINE)
    assert ranges(state) == "b1[3,3]"
    assert state.rejected_counts == {1: 1, 2: 1}

"""The oracle of KEY, run on the pasts that were worked out by hand before there was any code."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from tests.support.refresh.batches import Batch, Receipt, receipts, without
from tests.support.refresh.key_types import (
    Code,
    Deletes,
    HubRow,
    KeyOptions,
    KeyRow,
    KeyState,
    LateArriving,
    NullKeys,
    UnchangedNewer,
    Version,
)
from tests.support.refresh.oracle_key import fold_key

Known = Mapping[object, str]


def row(key: int | None, value: str | None, at: int | None = None) -> KeyRow:
    return KeyRow(key=(key,), values=(value,), at=at)


def gone(key: int | None, at: int | None = None) -> KeyRow:
    return KeyRow(key=(key,), values=("ignored",), at=at, is_delete=True)


def received(*batches: Iterable[KeyRow]) -> list[Batch[KeyRow]]:
    return [
        Batch(input_id=place, rows=tuple(rows), received_at=place * 10)
        for place, rows in enumerate(batches, start=1)
    ]


B1 = [row(1, "A", 10), row(2, "B", 10), row(3, "C", 10), row(1, "A", 10)]
B2 = [row(1, "A", 20), row(2, "B2", 20), row(4, "D", 20), row(4, "D1", 15), row(None, "Z", 20)]
B3 = [row(2, "Bx", 15), row(1, "A9", 15), row(3, "C", 10)]
B4 = [row(2, "B3", 20), row(3, None, 30)]
B6 = [gone(4, 40), row(5, "E", 40)]
B7 = [row(4, "Dlate", 35), row(4, "Dnew", 50)]
PAST = received(B1, B2, B3, B4, [], B6, B7)

TOUCH = KeyOptions(null_keys=NullKeys.QUARANTINE)
PARITY = replace(TOUCH, unchanged_newer=UnchangedNewer.SKIP)
LATE = replace(TOUCH, late_arriving=LateArriving.HISTORY)
HARD = replace(TOUCH, deletes=Deletes.HARD)
BY_RECEIPT = KeyOptions(has_date_column=False)


def after(count: int, options: KeyOptions = TOUCH) -> KeyState:
    return fold_key(PAST[:count], options)


def codes(state: KeyState) -> str:
    """The codes of the last batch, in the order of its rows."""
    return "".join(state.codes[max(state.codes)])


def known(rows: Iterable[HubRow]) -> Known:
    return {each.key[0]: told(each) for each in rows}


def told(each: HubRow) -> str:
    value = None if each.values is None else each.values[0]
    return f"{value}@{each.s_update_timestamp}/b{each.s_input_id}"


def history(state: KeyState, key: int) -> list[str]:
    return [span(version) for version in state.history if version.key == (key,)]


def span(version: Version) -> str:
    output = "deleted" if version.values is None else version.values[0]
    end = "∞" if version.s_effective_to is None else version.s_effective_to
    return f"{output}[{version.s_effective_from},{end})b{version.s_input_id}"


AFTER_B1 = {1: "A@10/b1", 2: "B@10/b1", 3: "C@10/b1"}
AFTER_B2 = {1: "A@20/b1", 2: "B2@20/b2", 3: "C@10/b1", 4: "D@20/b2"}
AFTER_B4 = {**AFTER_B2, 2: "B3@20/b4", 3: "None@30/b4"}
AFTER_B6 = {1: "A@20/b1", 2: "B3@20/b4", 3: "None@30/b4", 5: "E@40/b6"}
AFTER_B7 = {**AFTER_B6, 4: "Dnew@50/b7"}


@pytest.mark.parametrize(
    ("count", "said", "hub", "metrics"),
    [
        # Of two rows that are alike the one that comes last is taken: the X is the first.
        (1, "XNNN", AFTER_B1, {"N": 3, "X": 1}),
        (2, "SCNXR", AFTER_B2, {"S": 1, "C": 1, "N": 1, "X": 1, "R": 1}),
        (3, "OOU", AFTER_B2, {"O": 2, "U": 1}),
        (4, "CC", AFTER_B4, {"C": 2}),
        (5, "", AFTER_B4, {}),
        (6, "DN", AFTER_B6, {"D": 1, "N": 1}),
        (7, "XN", AFTER_B7, {"X": 1, "N": 1}),
    ],
)
def test_each_batch_of_the_worked_past_has_its_codes_and_leaves_its_hub(
    count: int, said: str, hub: Known, metrics: Mapping[str, int]
) -> None:
    state = after(count)

    assert codes(state) == said
    assert known(state.hub) == hub
    assert Counter(codes(state)) == metrics


def test_a_batch_that_only_touches_a_key_is_the_one_that_saw_it_last() -> None:
    seen = {each.key[0]: each.s_seen_input_id for each in after(4).hub}

    assert seen == {1: 2, 2: 4, 3: 4, 4: 2}


def test_a_batch_delivered_again_is_skipped_and_one_without_rows_too() -> None:
    again = received(B1, B2, B3, B4, B4, [], B6, B7)

    skipped = {Receipt.SKIPPED_DUPLICATE: 5, Receipt.SKIPPED_EMPTY: 6}
    output = receipts(again)
    assert {each: output.index(each) + 1 for each in skipped} == skipped
    assert output.count(Receipt.ACCEPTED) == 6


def test_a_batch_that_is_forced_in_again_changes_nothing() -> None:
    state = fold_key(received(B1, B2, B3, B4, B4), TOUCH)

    assert codes(state) == "UU"
    assert state.hub == after(4).hub


def test_a_deleted_key_leaves_a_tombstone_until_it_comes_again() -> None:
    assert known(after(6).tombstones) == {4: "D@40/b6"}
    assert after(7).tombstones == ()


def test_a_tombstone_has_no_values_where_deletes_are_hard() -> None:
    assert known(after(6, HARD).tombstones) == {4: "None@40/b6"}
    assert after(6, HARD).hub == after(6).hub


def test_a_row_older_than_the_delete_of_its_key_does_not_bring_it_back() -> None:
    state = fold_key(received(B1, B2, B3, B4, [], B6, [row(4, "Dlate", 35)]), TOUCH)

    assert codes(state) == "O"
    assert known(state.hub) == AFTER_B6


def test_parity_believes_an_old_row_because_an_unchanged_newer_one_left_no_trace() -> None:
    assert codes(after(2, PARITY)) == "SCNXR"
    assert known(after(2, PARITY).hub) == {**AFTER_B2, 1: "A@10/b1"}
    assert codes(after(3, PARITY)) == "OCU"
    assert known(after(3, PARITY).hub) == {**AFTER_B2, 1: "A9@15/b3"}


def test_parity_with_a_rebuilt_history_is_refused() -> None:
    with pytest.raises(ValueError, match="needs unchanged_newer: touch"):
        replace(PARITY, late_arriving=LateArriving.HISTORY)


HISTORY = {
    1: ["A[10,∞)b1"],
    2: ["B[10,20)b1", "B2[20,20)b2", "B3[20,∞)b4"],
    3: ["C[10,30)b1", "None[30,∞)b4"],
    4: ["D[20,40)b2", "deleted[40,50)b6", "Dnew[50,∞)b7"],
    5: ["E[40,∞)b6"],
}


@pytest.mark.parametrize("key", HISTORY)
def test_the_history_has_a_version_for_each_change_that_was_taken(key: int) -> None:
    assert history(after(7), key) == HISTORY[key]


REBUILT = {
    **HISTORY,
    1: ["A[10,15)b1", "A9[15,20)b3", "A[20,∞)b2"],
    2: ["B[10,15)b1", "Bx[15,20)b3", "B2[20,20)b2", "B3[20,∞)b4"],
}


@pytest.mark.parametrize("key", REBUILT)
def test_late_rows_find_their_place_in_a_history_that_is_configured_to_take_them(key: int) -> None:
    assert history(after(7, LATE), key) == REBUILT[key]


def test_late_rows_change_a_history_and_nothing_else() -> None:
    assert replace(after(7, LATE), history=()) == replace(after(7), history=())


def test_an_older_row_with_the_same_values_moves_a_history_only_beside_a_late_one() -> None:
    older = received([row(1, "A", 10)], [row(1, "A", 5)], [row(1, "Z", 3)])

    assert history(fold_key(older[:2], LATE), 1) == ["A[10,∞)b1"]
    assert history(fold_key(older, LATE), 1) == ["Z[3,5)b3", "A[5,∞)b2"]


def test_a_row_counts_for_its_batch_while_the_hub_has_its_values() -> None:
    assert after(7).effective_counts == {1: 1, 2: 0, 3: 0, 4: 2, 5: 0, 6: 1, 7: 1}


@pytest.mark.parametrize("options", [TOUCH, LATE], ids=["ignored", "rebuilt"])
def test_unloading_a_batch_brings_back_what_it_replaced(options: KeyOptions) -> None:
    state = fold_key(without(PAST, 4), options)
    versions = REBUILT if options is LATE else HISTORY

    assert known(state.hub) == {**AFTER_B7, 2: "B2@20/b2", 3: "C@10/b1"}
    assert history(state, 2) == [*versions[2][:-2], "B2[20,∞)b2"]
    assert history(state, 3) == ["C[10,∞)b1"]
    assert [history(state, key) for key in (1, 4, 5)] == [versions[key] for key in (1, 4, 5)]


def test_the_delete_of_a_key_never_seen_leaves_a_tombstone_of_its_own_batch() -> None:
    state = fold_key(received([row(1, "A", 10)], [gone(9, 20)], [row(9, "old", 15)]), TOUCH)

    assert "".join(state.codes[2]) == "U"
    assert codes(state) == "O"
    assert known(state.tombstones) == {9: "None@20/b2"}
    assert history(state, 9) == ["deleted[20,∞)b2"]


def test_a_delete_of_what_is_deleted_moves_the_tombstone_but_not_its_version() -> None:
    state = fold_key(
        received([row(1, "A", 10)], [gone(1, 20)], [gone(1, 30)], [gone(1, 30)]), TOUCH
    )

    assert ["".join(each) for each in state.codes.values()] == ["N", "D", "S", "U"]
    assert known(state.tombstones) == {1: "A@30/b2"}
    assert state.tombstones[0].s_seen_input_id == 3
    assert history(state, 1) == ["A[10,20)b1", "deleted[20,∞)b2"]


def test_an_old_delete_takes_nothing_away() -> None:
    state = fold_key(received([row(1, "A", 10)], [gone(1, 9)]), TOUCH)

    assert codes(state) == "O"
    assert known(state.hub) == {1: "A@10/b1"}


def test_of_rows_of_one_instant_in_a_batch_a_delete_is_the_last() -> None:
    assert codes(fold_key(received([gone(1, 10), row(1, "A", 10)]), TOUCH)) == "UX"
    assert codes(fold_key(received([row(1, "A", 10), row(1, "B", 10)]), TOUCH)) == "XN"


@pytest.mark.parametrize("bad", [row(None, "A", 10), row(1, "A", None)])
def test_a_null_in_a_key_or_a_date_fails_unless_something_else_is_configured(bad: KeyRow) -> None:
    with pytest.raises(ValueError, match="NULL in the key or the date"):
        fold_key(received([bad]), KeyOptions())
    assert codes(fold_key(received([bad]), TOUCH)) == "R"


def test_null_may_be_a_key_like_any_other_but_never_a_date() -> None:
    rows = [row(None, "A", 10), row(None, "B", 10), row(1, "C", None)]
    state = fold_key(received(rows), replace(TOUCH, null_keys=NullKeys.MATCH))

    assert codes(state) == "XNR"
    assert known(state.hub) == {None: "B@10/b1"}


def test_without_a_date_column_the_receipt_dates_a_row_and_never_touches_one() -> None:
    batches = received([row(1, "A", 99), gone(2)], [row(1, "A"), gone(2)], [row(1, "B")])
    states = [fold_key(batches[:count], BY_RECEIPT) for count in (1, 2, 3)]

    assert [codes(each) for each in states] == ["NU", "UU", "C"]
    assert states[1].hub == states[0].hub
    assert known(states[2].hub) == {1: "B@30/b3"}


def test_a_key_that_a_complete_batch_lacks_is_deleted_by_its_receipt() -> None:
    rows = [row(1, "A", 10), row(2, "B", 10), row(3, "C", 40), row(4, "D", 10)]
    # Key 2 is seen in a row that has no date, key 3 is newer than the batch that lacks it.
    whole = Batch(
        input_id=2, rows=(row(1, "A", 10), row(2, "B", None)), received_at=30, is_complete=True
    )
    state = fold_key([*received(rows), whole, replace(whole, input_id=3)], TOUCH)
    absent = [(each.row.key, each.code) for each in state.archive if each.row_num is None]

    assert ["".join(each) for each in state.codes.values()] == ["NNNN", "UR", "UR"]
    assert absent == [((3,), Code.OLD), ((4,), Code.DELETED), ((3,), Code.OLD)]
    assert known(state.hub) == {1: "A@10/b1", 2: "B@10/b1", 3: "C@40/b1"}
    assert known(state.tombstones) == {4: "D@30/b2"}
    assert history(state, 4) == ["D[10,30)b1", "deleted[30,∞)b2"]


def test_a_complete_batch_without_rows_deletes_nothing() -> None:
    nothing: Batch[KeyRow] = Batch(input_id=2, rows=(), received_at=30, is_complete=True)

    assert known(fold_key([*received(B1), nothing], TOUCH).hub) == AFTER_B1

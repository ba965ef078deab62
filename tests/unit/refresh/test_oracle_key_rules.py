"""Rules of KEY for anything received, on random pasts: specified independently of the fold."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.refresh.batches import Batch, without
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
    Value,
    Values,
    Version,
)
from tests.support.refresh.oracle_key import classify, fold_key, in_order, is_rejected
from tests.support.refresh.random_histories import Shape, key_histories

Batches = list[Batch[KeyRow]]

TOUCH = KeyOptions(null_keys=NullKeys.QUARANTINE)
OPTIONS = [
    TOUCH,
    replace(TOUCH, null_keys=NullKeys.MATCH, deletes=Deletes.HARD),
    replace(TOUCH, unchanged_newer=UnchangedNewer.SKIP),
    replace(TOUCH, late_arriving=LateArriving.HISTORY),
    replace(TOUCH, has_date_column=False),
]
LATE = OPTIONS[3]
WITH_ABSENCES = Shape(complete=0.5)

options_of_any_kind = st.sampled_from(OPTIONS)
# The one shrinks what it finds; a seed's choices are spread more evenly, and find more.
randoms = st.randoms(use_true_random=False) | st.integers(0, 2**32).map(Random)
pasts = st.builds(key_histories, randoms, st.integers(1, 2), st.integers(1, 6))
pasts_with_absences = st.builds(
    key_histories, randoms, st.integers(1, 2), st.integers(1, 6), st.just(WITH_ABSENCES)
)
any_pasts = pasts | pasts_with_absences
unhurried = settings(deadline=None)

#: The place of a row in time and in receipt, and its values; the greatest is the last word.
Word = tuple[tuple[int, int, bool, tuple[tuple[bool, Value], ...]], Values | None]


def words(batches: Batches, options: KeyOptions) -> dict[Values, list[Word]]:
    """Every row that is not rejected, by key, with its place in time and in receipt."""
    found: dict[Values, list[Word]] = {}
    for batch in batches:
        for row in batch.rows:
            if not is_rejected(row, options):
                place = (row.instant, batch.input_id, row.is_delete, in_order(*row.values))
                output = None if row.is_delete else row.values
                found.setdefault(row.key, []).append((place, output))
    return found


def last_word(output: Iterable[Word]) -> Word:
    return max(output, key=lambda word: word[0])


def winners(output: Iterable[Word]) -> list[Word]:
    """Return the last word of each batch: the others were discarded, and are in no history."""
    spoken: dict[int, Word] = {}
    for place, values in sorted(output, key=lambda word: word[0]):
        spoken[place[1]] = (place, values)
    return list(spoken.values())


def heads(state: KeyState) -> dict[Values, tuple[int, Values | None]]:
    held = {row.key: (row.s_update_timestamp, row.values) for row in state.hub}
    return held | {row.key: (row.s_update_timestamp, None) for row in state.tombstones}


@unhurried
@given(pasts, st.sampled_from([TOUCH, OPTIONS[1], LATE]))
def test_with_touch_the_last_word_of_a_key_by_time_then_receipt_is_what_the_hub_has(
    batches: Batches, options: KeyOptions
) -> None:
    expected = {key: last_word(output) for key, output in words(batches, options).items()}

    assert heads(fold_key(batches, options)) == {
        key: (place[0], output) for key, (place, output) in expected.items()
    }


@unhurried
@given(pasts, randoms)
def test_with_touch_the_order_of_receipt_decides_nothing_but_ties(
    batches: Batches, random: Random
) -> None:
    distinct = [
        replace(batch, rows=tuple(spread(row, batch.input_id) for row in batch.rows))
        for batch in batches
    ]
    shuffled = random.sample(distinct, len(distinct))
    received = [replace(batch, input_id=place) for place, batch in enumerate(shuffled, start=1)]

    assert heads(fold_key(received, TOUCH)) == heads(fold_key(distinct, TOUCH))


def spread(row: KeyRow, input_id: int) -> KeyRow:
    return row if row.at is None else replace(row, at=row.at * 100 + input_id)


def test_an_old_batch_that_comes_again_wins_the_ties_that_it_had_lost() -> None:
    first, second = (
        Batch(input_id=place, rows=(KeyRow(key=(1,), values=(value,), at=10),))
        for place, value in enumerate("AB", start=1)
    )
    state = fold_key([first, second, replace(first, input_id=3)], TOUCH)

    assert state.codes[3] == (Code.CHANGED,)
    assert state.hub[0].values == ("A",)


@unhurried
@given(pasts)
def test_with_touch_a_code_depends_only_on_the_last_word_received_before(batches: Batches) -> None:
    state = fold_key(batches, TOUCH)

    for filed in state.archive:
        if filed.code not in (Code.DISCARDED, Code.REJECTED):
            before = words([each for each in batches if each.input_id < filed.input_id], TOUCH)
            known = held(filed.row.key, before.get(filed.row.key))
            assert classify(known, filed.row, TOUCH) is filed.code


def held(key: Values, output: Sequence[Word] | None) -> HubRow | None:
    if not output:
        return None
    place, values = last_word(output)
    return HubRow(
        key=key,
        values=values,
        s_update_timestamp=place[0],
        s_input_id=place[1],
        s_seen_input_id=place[1],
        s_record_status_code=Code.CHANGED,
        s_deleted_flag=values is None,
    )


@unhurried
@given(any_pasts, options_of_any_kind)
def test_every_row_has_one_code(batches: Batches, options: KeyOptions) -> None:
    state = fold_key(batches, options)

    for batch in batches:
        archived = [each.row for each in state.archive if each.input_id == batch.input_id]
        assert len(archived) >= len(batch.rows)
        counts = [state.codes[batch.input_id].count(code) for code in Code]
        assert sum(counts) == len(batch.rows)


@unhurried
@given(any_pasts, options_of_any_kind)
def test_a_batch_has_one_row_of_each_key_that_is_not_discarded(
    batches: Batches, options: KeyOptions
) -> None:
    archive = fold_key(batches, options).archive
    idle = (Code.DISCARDED, Code.REJECTED)
    met = [(filed.input_id, filed.row.key) for filed in archive if filed.code not in idle]
    discarded = {
        (filed.input_id, filed.row.key) for filed in archive if filed.code is Code.DISCARDED
    }

    assert len(met) == len(set(met))
    assert discarded <= set(met)


@unhurried
@given(any_pasts, options_of_any_kind)
def test_versions_of_a_key_follow_each_other_and_the_last_is_open(
    batches: Batches, options: KeyOptions
) -> None:
    state = fold_key(batches, options)

    assert {version.key for version in state.history} == heads(state).keys()
    for key in heads(state):
        versions = [version for version in state.history if version.key == key]
        starts = [version.s_effective_from for version in versions]
        assert starts == sorted(starts)
        assert [version.s_effective_to for version in versions] == [*starts[1:], None]


@unhurried
@given(any_pasts, options_of_any_kind)
def test_the_hub_is_the_current_slice_of_the_history(batches: Batches, options: KeyOptions) -> None:
    state = fold_key(batches, options)
    current = [version for version in state.history if version.s_effective_to is None]

    assert {version.key: version.values for version in current} == {
        key: values for key, (_, values) in heads(state).items()
    }
    if options.late_arriving is LateArriving.IGNORE:
        owners = {row.key: row.s_input_id for row in (*state.hub, *state.tombstones)}
        assert {version.key: version.s_input_id for version in current} == owners


@unhurried
@given(pasts)
def test_a_rebuilt_history_shows_the_last_word_up_to_each_instant(batches: Batches) -> None:
    state = fold_key(batches, LATE)
    late = {filed.row.key for filed in state.archive if filed.code is Code.OLD}
    output = words(batches, LATE)

    for version in state.history:
        is_shown = version.s_effective_from != version.s_effective_to
        if version.key in late and is_shown:
            for instant in shown_instants(version):
                heard = [word for word in winners(output[version.key]) if word[0][0] <= instant]
                assert last_word(heard)[1] == version.values


def shown_instants(version: Version) -> range:
    start, end = version.s_effective_from, version.s_effective_to
    return range(start, start + 9 if end is None else end)


@unhurried
@given(any_pasts, options_of_any_kind)
def test_the_rows_that_count_for_a_batch_are_all_in_the_hub(
    batches: Batches, options: KeyOptions
) -> None:
    state = fold_key(batches, options)

    assert sum(state.effective_counts.values()) == len(state.hub)
    assert state.effective_counts.keys() == {batch.input_id for batch in batches}


@unhurried
@given(any_pasts, options_of_any_kind, st.sets(st.integers(1, 6), min_size=1))
def test_unloading_batches_changes_nothing_of_keys_that_they_did_not_meet(
    batches: Batches, options: KeyOptions, unloaded: set[int]
) -> None:
    loaded = fold_key(batches, options)
    never = fold_key(without(batches, *unloaded), options)
    met = {filed.row.key for filed in loaded.archive if filed.input_id in unloaded}

    assert parts(loaded, met, met=False) == parts(never, met, met=False)


@unhurried
@given(pasts, options_of_any_kind, st.sets(st.integers(1, 6), min_size=1))
def test_folding_the_keys_of_unloaded_batches_again_equals_never_having_loaded_them(
    batches: Batches, options: KeyOptions, unloaded: set[int]
) -> None:
    loaded = fold_key(batches, options)
    left = without(batches, *unloaded)
    met = {filed.row.key for filed in loaded.archive if filed.input_id in unloaded}
    reset = fold_key([only(batch, met) for batch in left], options)

    repaired = parts(loaded, met, met=False) | parts(reset, met, met=True)
    assert repaired == parts(fold_key(left, options), set(), met=False)


def only(batch: Batch[KeyRow], keys: set[Values]) -> Batch[KeyRow]:
    return replace(batch, rows=tuple(row for row in batch.rows if row.key in keys))


def parts(state: KeyState, keys: set[Values], *, met: bool) -> set[HubRow | Version]:
    everything: list[HubRow | Version] = [*state.hub, *state.tombstones, *state.history]
    return {each for each in everything if (each.key in keys) is met}


@unhurried
@given(any_pasts, options_of_any_kind)
def test_folding_again_comes_to_the_same(batches: Batches, options: KeyOptions) -> None:
    assert fold_key(batches, options) == fold_key(list(batches), options)


@unhurried
@given(past=any_pasts, options=options_of_any_kind, random=randoms)
def test_the_order_of_the_rows_of_a_batch_decides_nothing(
    past: Batches, options: KeyOptions, random: Random
) -> None:
    shuffled = [
        replace(each, rows=tuple(random.sample(each.rows, len(each.rows)))) for each in past
    ]
    assert set(fold_key(shuffled, options).hub) == set(fold_key(past, options).hub)

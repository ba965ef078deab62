"""How often an upstream has new data, and when it is late."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.inspect.rhythm import Rhythm, load_rhythms, rhythm_of, save_rhythms, with_arrivals

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hourly(arrivals: int, begin: datetime = NOON) -> Rhythm:
    rhythm = Rhythm(last=begin)
    for number in range(1, arrivals):
        rhythm = rhythm.after(begin + number * HOUR)
    return rhythm


def test_a_rhythm_is_unknown_before_it_was_seen_often_enough() -> None:
    assert hourly(8).usual_gap is None
    assert hourly(9).usual_gap == HOUR
    assert not hourly(8).is_late(NOON + timedelta(days=30), 3)


def test_an_upstream_is_late_beyond_so_many_usual_gaps_and_not_before() -> None:
    rhythm = hourly(12)
    assert not rhythm.is_late(rhythm.last + 3 * HOUR, 3)
    assert rhythm.is_late(rhythm.last + 3 * HOUR + timedelta(seconds=1), 3)


def test_a_factor_of_nought_turns_it_off() -> None:
    assert not hourly(12).is_late(NOON + timedelta(days=30), 0)


def test_one_long_pause_does_not_change_what_is_usual() -> None:
    rhythm = hourly(12)
    paused = rhythm.after(rhythm.last + timedelta(days=3))
    assert paused.usual_gap == HOUR


def test_weekends_are_usual_for_what_comes_on_weekdays() -> None:
    rhythm = Rhythm(last=NOON)
    for day in range(1, 29):
        at = NOON + timedelta(days=day)
        if at.weekday() < 5:
            rhythm = rhythm.after(at)
    assert rhythm.usual_gap == timedelta(days=3)


def test_a_source_that_writes_each_second_is_not_late_after_some() -> None:
    rhythm = Rhythm(last=NOON)
    for number in range(1, 20):
        rhythm = rhythm.after(NOON + timedelta(seconds=number))
    assert not rhythm.is_late(rhythm.last + timedelta(minutes=30), 3)
    assert rhythm.is_late(rhythm.last + timedelta(minutes=31), 3)


def test_a_clock_that_goes_back_leaves_the_rhythm_as_it_is() -> None:
    rhythm = hourly(9)
    assert rhythm.after(rhythm.last - HOUR) is rhythm


@given(st.lists(st.integers(min_value=0, max_value=10**7), max_size=60))
def test_a_rhythm_stays_small_whatever_arrives(seconds: list[int]) -> None:
    rhythm = Rhythm(last=NOON)
    for each in seconds:
        rhythm = rhythm.after(rhythm.last + timedelta(seconds=each))
    assert len(rhythm.gaps) <= 20
    assert all(gap > 0 for gap in rhythm.gaps)


def test_rhythms_outlive_the_process(tmp_path: Path) -> None:
    rhythms = with_arrivals({"file:x:1": hourly(9)}, ["file:x:1", "file:y:1"], NOON + 10 * HOUR)
    save_rhythms(tmp_path / "arrivals.json", rhythms)
    assert load_rhythms(tmp_path / "arrivals.json") == rhythms
    assert rhythms["file:x:1"].gaps[-1] == 2 * HOUR.total_seconds()


def test_a_broken_file_means_that_no_rhythm_is_known(tmp_path: Path) -> None:
    path = tmp_path / "arrivals.json"
    for text in ("", "[]", '{"version": 1, "rhythms": {"x": ["2026-03-01T12:00:00"]}}'):
        path.write_text(text)
        assert load_rhythms(path) == {}


def test_arrivals_that_are_read_at_once_have_the_rhythm_of_those_seen_one_by_one() -> None:
    arrivals = [NOON + number**2 * HOUR for number in range(40)]
    seen = Rhythm(last=arrivals[0])
    for at in arrivals[1:]:
        seen = seen.after(at)
    assert rhythm_of(arrivals) == seen
    assert rhythm_of([]) is None

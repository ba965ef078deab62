"""How requests are spaced out."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.platform.databricks.api import Accepted, NotAllowed, Refused, RunNowAnswer, Unknown
from harness.platform.databricks.rate_limit import TokenBucket, Waits
from tests.support.fake_clock import FakeClock

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_burst_goes_at_once() -> None:
    clock = FakeClock(START)
    bucket = TokenBucket(clock, per_second=10)
    assert [bucket.take() for _ in range(10)] == [0.0] * 10


def test_past_the_burst_requests_keep_to_the_rate() -> None:
    clock = FakeClock(START)
    bucket = TokenBucket(clock, per_second=10)
    for _ in range(110):
        bucket.take()
    assert clock.now() - START == pytest.approx(timedelta(seconds=10), abs=timedelta(seconds=0.01))


def test_a_pause_earns_no_more_than_one_burst() -> None:
    clock = FakeClock(START)
    bucket = TokenBucket(clock, per_second=10, burst=2)
    clock.sleep(3_600)
    assert [bucket.take() > 0 for _ in range(3)] == [False, False, True]


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    clock = FakeClock(START)
    bucket = TokenBucket(clock, per_second=10, burst=2)
    clock.set(START - timedelta(hours=1))
    assert bucket.take() == 0.0


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        TokenBucket(FakeClock(START), per_second=0)


def later(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_start_is_held_back_for_as_long_as_its_answer_requested_and_no_other_is() -> None:
    waits = Waits()
    waits.note("mine", Unknown(message="503", wait_seconds=30), START)
    assert waits.holds_back(later(29), "mine")
    assert not waits.holds_back(later(30), "mine")
    assert not waits.holds_back(later(1), "other")


def test_a_workspace_that_has_had_too_many_requests_holds_every_start_back() -> None:
    waits = Waits()
    waits.note("mine", Unknown(message="429", wait_seconds=60, is_throttled=True), START)
    assert waits.holds_back(later(59), "other")
    assert not waits.holds_back(later(60), "other")


def test_an_answer_that_was_lost_holds_nothing_back() -> None:
    waits = Waits()
    waits.note("mine", Unknown(message="reset"), START)
    assert not waits.holds_back(START, "mine")


@pytest.mark.parametrize(
    "answer",
    [Accepted(run_id=1), NotAllowed(message="no"), Refused(error_code="X", message="no")],
    ids=repr,
)
def test_another_answer_ends_the_wait_of_its_start(answer: RunNowAnswer) -> None:
    waits = Waits()
    waits.note("mine", Unknown(message="503", wait_seconds=30), START)
    waits.note("mine", answer, later(1))
    assert not waits.holds_back(later(2), "mine")


def test_a_clock_that_went_back_makes_no_wait_longer() -> None:
    waits = Waits()
    waits.note("mine", Unknown(message="429", wait_seconds=60, is_throttled=True), START)
    assert not waits.holds_back(START - timedelta(days=1), "mine")


def test_everything_may_be_held_back_at_once() -> None:
    waits = Waits()
    waits.hold_all(60, START)
    assert waits.holds_back(later(59))
    assert not waits.holds_back(later(60))

"""How requests are spaced out."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.clock import FakeClock
from harness.jobs.pacing import TokenBucket

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

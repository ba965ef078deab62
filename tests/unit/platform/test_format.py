"""Ages, sizes and times in words."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.errors import ConfigurationError
from harness.platform.format import age, duration, instant, past_instant, size, span, upstream_name

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (59, "59s"),
        (125, "2m 5s"),
        (1500, "25m"),
        (3600, "1h"),
        (12_000, "3h 20m"),
        (90_000, "1d 1h"),
        (30 * 86_400, "30d"),
        (-5, "0s"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_the_age_of_nothing_is_a_dash() -> None:
    assert age(None, NOON) == "-"


@pytest.mark.parametrize(
    ("number", "words"), [(512, "512 B"), (1234, "1.2 kB"), (250_000_000, "250 MB")]
)
def test_a_size_has_three_digits_at_most(number: int, words: str) -> None:
    assert size(number) == words


def test_todays_instants_have_no_day() -> None:
    assert instant(NOON, NOON) == "12:00:00Z"
    assert instant(NOON - timedelta(days=1), NOON) == "2026-02-28 12:00:00Z"


def test_an_upstream_is_called_by_its_own_name_even_with_colons() -> None:
    assert upstream_name("kafka:product: orders:ab5c14a4") == "product: orders"


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400)]
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert duration(text).total_seconds() == seconds


@pytest.mark.parametrize("text", ["", "30", "0s", "-5s", "5 parsecs", "s", "1.2.3s"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2h", datetime(2026, 3, 1, 10, 0, tzinfo=UTC)),
        ("10m ago", datetime(2026, 3, 1, 11, 50, tzinfo=UTC)),
        ("08:30", datetime(2026, 3, 1, 8, 30, tzinfo=UTC)),
        ("13:00", datetime(2026, 2, 28, 13, 0, tzinfo=UTC)),
        ("2026-01-01T01:00:00+01:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01 00:00", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_past_instant_is_read(text: str, expected: datetime) -> None:
    assert past_instant(text, NOON) == expected


@pytest.mark.parametrize("text", ["soon", "25:00", "2026-13-01", "-", "2027-01-01"])
def test_what_is_no_past_instant_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--at"):
        past_instant(text, NOON)

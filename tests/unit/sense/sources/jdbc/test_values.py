"""Values of a key column, as drivers write them."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.errors import ProbeFailedError
from harness.sense.database_queries import Kind
from harness.sense.sources.jdbc.values import instant, moment, overlap_start, rank

HALF_PAST = datetime.fromisoformat("2025-04-23T21:30:00")


@pytest.mark.parametrize(
    "text",
    [
        "2025-04-23 21:30:00",
        "2025-04-23T21:30:00.0",
        "2025-04-23 21:30:00.000000000",
        "2025-04-23 21:30:00+02",
        "2025-04-23 21:30:00.0 Europe/Berlin",
    ],
)
def test_a_clock_without_a_zone_is_what_it_shows(text: str) -> None:
    assert moment(text, Kind.TIME) == HALF_PAST


@pytest.mark.parametrize(
    "text",
    [
        "2025-04-23 21:30:00+00",
        "2025-04-23 21:30:00Z",
        "2025-04-23 23:30:00.0000000 +02:00",
        "2025-04-23 16:30:00 -05:00",
        "2025-04-24 03:00:00+0530",
    ],
)
def test_an_instant_is_the_same_in_every_zone(text: str) -> None:
    assert moment(text, Kind.ZONED) == HALF_PAST


def test_an_instant_of_a_named_zone_is_not_guessed() -> None:
    with pytest.raises(ProbeFailedError, match="Berlin"):
        rank(Kind.ZONED, "2025-04-23 21:30:00.0 Europe/Berlin")


@pytest.mark.parametrize(
    ("kind", "small", "large"),
    [
        (Kind.NUMBER, "9", "10"),
        (Kind.NUMBER, "-10", "-9"),
        (Kind.NUMBER, "20250423211000.0000000", "20250423211000.0000001"),
        (Kind.FLOAT, "9.5", "1.0E10"),
        (Kind.TIME, "2025-04-23 21:30:00.9", "2025-04-23 21:30:01"),
        (Kind.TIME, "2025-04-23 21:30:00.123456788", "2025-04-23 21:30:00.123456789"),
        (Kind.ZONED, "2025-10-26 02:30:00+02", "2025-10-26 02:10:00+01"),
        (Kind.DATE, "2025-04-09", "2025-04-10"),
        (Kind.TEXT, "20250409", "20250410"),
    ],
)
def test_values_have_the_order_of_their_kind(kind: Kind, small: str, large: str) -> None:
    assert rank(kind, small) < rank(kind, large)


@pytest.mark.parametrize(
    ("kind", "text"), [(Kind.NUMBER, "NaN"), (Kind.TIME, "infinity"), (Kind.DATE, "-infinity")]
)
def test_what_has_no_place_in_the_order_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(ProbeFailedError, match=text):
        rank(kind, text)


@pytest.mark.parametrize(
    ("kind", "largest", "now", "start"),
    [
        (Kind.TIME, "2025-04-23 21:30:00", "2025-04-23 22:00:00", "2025-04-23 21:20:00"),
        (Kind.TIME, "9999-12-31 00:00:00", "2025-04-23 22:00:00", "2025-04-23 21:50:00"),
        (Kind.DATE, "2025-04-23", "2025-04-23 22:00:00", "2025-04-22"),
        (Kind.DATE, "0001-01-01", "2025-04-23 22:00:00", "0001-01-01"),
        (Kind.ZONED, "2025-04-23 21:30:00+02", "2025-04-23 22:00:00+02", "2025-04-23 19:20:00"),
    ],
)
def test_the_overlap_begins_before_the_largest_value_or_the_clock(
    kind: Kind, largest: str, now: str, start: str
) -> None:
    assert overlap_start(kind, largest, now, timedelta(minutes=10)) == start


def test_a_clock_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(ProbeFailedError, match="clock of its database"):
        overlap_start(Kind.TIME, "2025-04-23 21:30:00", "noon", timedelta(minutes=10))


@pytest.mark.parametrize("text", ["2025-04-23 21:30:00", "2025-04-23 23:30:00+02"])
def test_the_start_of_an_overlap_is_an_instant_with_or_without_its_zone(text: str) -> None:
    assert instant(text) == HALF_PAST.replace(tzinfo=UTC)

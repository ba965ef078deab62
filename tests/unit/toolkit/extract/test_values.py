"""Values that record how far an extract has come: distances, limits, and what is refused."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from harness.errors import ConfigurationError
from harness.toolkit.extract.lookback import checked_partition, checked_table
from harness.toolkit.extract.span import ByColumn, check_kinds, span_of
from harness.toolkit.extract.values import (
    Kind,
    Step,
    Value,
    as_text,
    ceiling,
    check_step,
    moved,
    utc,
)
from harness.toolkit.extract.writer import is_shown_twice

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLOCK = NOON.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("value", "by", "before", "after"),
    [
        (NOON, timedelta(hours=1), NOON.replace(hour=11), NOON.replace(hour=13)),
        (date(2026, 3, 1), timedelta(days=1), date(2026, 2, 28), date(2026, 3, 2)),
        (7, 2, 5, 9),
        (Decimal("1.5"), 1, Decimal("0.5"), Decimal("2.5")),
        (date.max, timedelta(days=1), date(9999, 12, 30), None),
    ],
)
def test_a_value_is_moved_as_far_as_there_are_values(
    value: Value, by: Step, before: Value, after: Value | None
) -> None:
    assert moved(value, by, back=True) == before
    assert moved(value, by) == after


@pytest.mark.parametrize(
    ("kind", "step", "reason"),
    [
        (Kind.INSTANT, 5, "is 5, but at is a timestamp; allowed is a timedelta"),
        (Kind.NUMBER, timedelta(1), "but at is a number; allowed is an integer"),
        (Kind.TEXT, 1, "but at is text; allowed is none, since text has no distance"),
        (Kind.NUMBER, -1, "is -1; allowed is nothing below zero"),
        (Kind.DAY, timedelta(hours=1), "but at has days; allowed are full days"),
    ],
)
def test_a_distance_that_a_column_does_not_have_is_refused(
    kind: Kind, step: Step, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        check_step(step, kind, "orders: overlap", "at")


def test_a_clock_without_a_zone_may_be_ahead_of_utc() -> None:
    assert ceiling(Kind.INSTANT, NOON) == NOON
    assert ceiling(Kind.CLOCK, NOON) == CLOCK + timedelta(hours=14)
    assert ceiling(Kind.DAY, NOON) == date(2026, 3, 2)
    assert ceiling(Kind.TEXT, NOON) == "2026-03-03"
    assert ceiling(Kind.NUMBER, NOON) is None


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="allowed is a datetime with a zone"):
        utc(CLOCK, "the instant")
    berlin = datetime.fromisoformat("2026-03-01T13:00:00+01:00")
    assert as_text(utc(berlin, "the instant")) == "2026-03-01T12:00:00+00:00"


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        ("orders", True),
        ("sales.orders", True),
        (" lake.`my sales`.`a;b` ", True),
        ("1st.orders", True),
        ("", False),
        ("a.b.c.d", False),
        ("a..b", False),
        ("a b", False),
        ("a;b", False),
        ("`a", False),
        ("`a``b`", True),
        ("a.b -- c", False),
        ("delta.`/tmp/x`.y.z", False),
    ],
)
def test_a_table_has_a_name_of_one_to_three_parts(text: str, is_name: bool) -> None:
    if is_name:
        assert checked_table(text) == text.strip()
    else:
        with pytest.raises(ConfigurationError, match="is not the name of a table; allowed are"):
            checked_table(text)


@pytest.mark.parametrize("name", ["", "a.b", "a b", "a)"])
def test_a_partition_is_named_by_one_column(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is not the name of a column to partition by"):
        checked_partition(name)


DAYS = timedelta(days=1)


@pytest.mark.parametrize(
    ("newest", "ends", "since", "until"),
    [
        (None, (None, None), None, None),
        (None, (date(2026, 1, 1), date(2026, 1, 9)), None, date(2026, 1, 3)),
        (
            date(2026, 1, 2),
            (date(2026, 1, 5), date(2026, 1, 9)),
            date(2026, 1, 1),
            date(2026, 1, 7),
        ),
        # The last piece has no end: what comes meanwhile is in it.
        (date(2026, 1, 2), (date(2026, 1, 5), date(2026, 1, 6)), date(2026, 1, 1), None),
        (date(2026, 1, 2), (None, None), date(2026, 1, 1), None),
        (None, (date.max, date.max), None, None),
    ],
)
def test_a_piece_begins_where_there_is_something_new(
    newest: date | None,
    ends: tuple[date | None, date | None],
    since: date | None,
    until: date | None,
) -> None:
    by = ByColumn(column="at", overlap=DAYS, piece=2 * DAYS)
    span = span_of(by, newest, ends)

    assert (span.since, span.until) == (since, until)
    # Rows without a value come once, with the last piece.
    assert span.with_nulls == (until is None)


def test_an_overlap_may_reach_before_the_first_value_of_all() -> None:
    by = ByColumn(column="at", overlap=DAYS)
    assert span_of(by, date.min, None).since is None


def test_two_kinds_of_values_are_not_compared() -> None:
    with pytest.raises(
        ConfigurationError, match=r"is of the kind instant, and in b\.o of the kind"
    ):
        check_kinds("s.o", "at", Kind.INSTANT, ("b.o", Kind.CLOCK))
    with pytest.raises(ConfigurationError, match="orders: piece is nothing"):
        ByColumn(column="at", piece=timedelta(0)).check("orders", Kind.INSTANT)


@pytest.mark.parametrize(
    ("instant", "zone", "is_twice"),
    [
        ("2026-10-25T00:30:00+00:00", "Europe/Berlin", True),
        ("2026-10-25T01:30:00+00:00", "Europe/Berlin", True),
        ("2026-10-25T02:30:00+00:00", "Europe/Berlin", False),
        ("2026-03-29T00:30:00+00:00", "Europe/Berlin", False),
        ("2026-03-29T01:30:00+00:00", "Europe/Berlin", False),
        ("2026-10-25T00:30:00+00:00", "UTC", False),
        ("2026-10-25T00:30:00+00:00", "+02:00", False),
    ],
)
def test_a_clock_shows_a_time_twice_when_summer_time_ends(
    instant: str, zone: str, is_twice: bool
) -> None:
    assert is_shown_twice(datetime.fromisoformat(instant), zone) is is_twice

"""Compares the values of a key column: they are text, in the order of the column's kind."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation

from harness.errors import ProbeFailedError
from harness.sense.database_queries import Kind

_FRACTION = re.compile(r"\.(\d+)")
_TIME_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?\s?(?:([+-])(\d\d)(?::?(\d\d))?)?"
)
_FIRST_DAY = datetime.fromisoformat("0001-01-01")


def rank(kind: Kind, text: str) -> tuple[datetime | Decimal | str, int]:
    """Return what orders the values of a column.

    Raises:
        ProbeFailedError: The value is none of its kind, such as ``infinity``.
    """
    try:
        if kind in {Kind.NUMBER, Kind.FLOAT}:
            number = Decimal(text)
            if not number.is_nan():
                return number, 0
        elif kind in {Kind.TIME, Kind.ZONED}:
            digits = _FRACTION.search(text)
            nanoseconds = int(digits.group(1)[:9].ljust(9, "0")) if digits else 0
            return moment(text, kind).replace(microsecond=0), nanoseconds
        elif kind is Kind.DATE:
            return date.fromisoformat(text[:10]).isoformat(), 0
        else:
            return text, 0
    except (ValueError, InvalidOperation):
        pass
    raise ProbeFailedError(f"its largest value is {text!r}, which new values cannot be compared to")


def moment(text: str, kind: Kind) -> datetime:
    """Read a time stamp: an instant as UTC, another as the clock showed it; without a zone.

    Raises:
        ValueError: It is none, or an instant whose zone is not an offset.
    """
    found = _TIME_STAMP.match(text.strip())
    if found is None:
        raise ValueError(text)
    day, clock, fraction, sign, hours, minutes = found.groups()
    read = datetime.fromisoformat(f"{day}T{clock}.{(fraction or '')[:6].ljust(6, '0')}")
    if kind is not Kind.ZONED:
        return read
    if sign is None and not text.strip().endswith("Z"):
        raise ValueError(text)
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    return read + ahead if sign == "-" else read - ahead


def instant(text: str) -> datetime:
    """Read an instant, whose zone is UTC where it has none, such as the start of an overlap."""
    try:
        return moment(text, Kind.ZONED).replace(tzinfo=UTC)
    except ValueError:
        return moment(text, Kind.TIME).replace(tzinfo=UTC)


def overlap_start(kind: Kind, largest: str, now: str, overlap: timedelta) -> str:
    """Return the value from which rows are read again, for a kind that holds time.

    Args:
        kind: One that holds time.
        largest: The largest value.
        now: The database's clock; a value ahead of it does not hide what comes after.
        overlap: How much older than the last a row may be and still be new data.

    Raises:
        ProbeFailedError: The clock cannot be read.
    """
    try:
        clock = moment(now, kind)
    except ValueError as error:
        raise ProbeFailedError(f"the clock of its database cannot be read: {now!r}") from error
    end = datetime.fromisoformat(largest[:10]) if kind is Kind.DATE else moment(largest, kind)
    start = max(min(end, clock), _FIRST_DAY + overlap) - overlap
    return start.date().isoformat() if kind is Kind.DATE else start.isoformat(sep=" ")


def milliseconds(kind: Kind, text: str | None) -> int | None:
    """Return an instant in milliseconds since the epoch; ``None`` for what is not an instant."""
    if text is None or kind is not Kind.ZONED:
        return None
    return int(moment(text, kind).replace(tzinfo=UTC).timestamp() * 1000)

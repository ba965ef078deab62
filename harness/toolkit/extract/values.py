"""Handles the values that show how far an extract has come: instants, days, numbers and text.

They never go through the time zone of a session or of a process: two instants that a clock shows
alike, when summer time ends, stay two.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never, cast

from harness.errors import ConfigurationError
from harness.platform.sql_names import column_in_sql, parts_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

#: What a column holds; an instant is aware and in UTC, the time of an unknown clock has no zone.
Value = datetime | date | int | Decimal | str
#: A distance between two values.
Step = timedelta | int

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: No clock on Earth is further ahead of UTC.
_FARTHEST_ZONE = timedelta(hours=14)


class Kind(StrEnum):
    """How the values of a column are compared."""

    #: TIMESTAMP.
    INSTANT = "instant"
    #: TIMESTAMP_NTZ: the time that a clock showed, in an unknown zone.
    CLOCK = "clock"
    DAY = "day"
    NUMBER = "number"
    TEXT = "text"

    @property
    def knows_time(self) -> bool:
        """Whether a distance of its values is a time."""
        return self in {Kind.INSTANT, Kind.CLOCK, Kind.DAY}


def field_type(schema: "StructType", column: str, table: str) -> "DataType":
    """Return the type of a column, or of a field of one, whatever the case of its name.

    Raises:
        ConfigurationError: There is none.
    """
    from pyspark.sql.types import StructType

    found: DataType = schema
    for part in parts_of(column):
        fields = found.fields if isinstance(found, StructType) else []
        named = [field for field in fields if field.name.lower() == part.lower()]
        if not named:
            there = ", ".join(schema.fieldNames())
            raise ConfigurationError(f"{table} has no column {column}; it has {there}")
        found = named[0].dataType
    return found


def kind_of(data_type: "DataType", column: str, table: str) -> Kind:
    """Return how the values of a column are compared.

    Raises:
        ConfigurationError: Its type has no order that an extract could go by.
    """
    from pyspark.sql import types as t

    kinds: dict[type[DataType], Kind] = {
        t.TimestampType: Kind.INSTANT,
        t.TimestampNTZType: Kind.CLOCK,
        t.DateType: Kind.DAY,
        t.DecimalType: Kind.NUMBER,
        t.StringType: Kind.TEXT,
    }
    if isinstance(data_type, t.IntegralType):
        return Kind.NUMBER
    found = kinds.get(type(data_type))
    if found is None:
        raise ConfigurationError(
            f"{table}: {column} is {data_type.simpleString()}, which does not show how far an"
            " extract has come; allowed are timestamps, dates, integers, decimals and text"
        )
    return found


def column_of(name: str) -> "Column":
    """Return a column by its checked name."""
    from pyspark.sql import functions as f

    return f.col(column_in_sql(name))


def collected(column: "Column", kind: Kind) -> "Column":
    """Return what to collect of a column, so that no zone is applied on the way."""
    from pyspark.sql import functions as f

    return f.unix_micros(column) if kind is Kind.INSTANT else column


def value_from(raw: object, kind: Kind) -> Value | None:
    """Read what was collected."""
    if raw is None:
        return None
    if kind is Kind.INSTANT:
        return _EPOCH + timedelta(microseconds=int(cast(int, raw)))
    return cast(Value, raw)


def literal(value: Value) -> "Column":
    """Return a value as Spark compares it; no text of it becomes SQL."""
    from pyspark.sql import functions as f

    if isinstance(value, datetime) and value.tzinfo is None:
        return f.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
    return f.lit(value)


def microseconds(value: Value) -> int:
    """Return an instant as Spark counts it.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError(f"{value!r} is not an instant")
    return (value - _EPOCH) // timedelta(microseconds=1)


def as_text(value: Value | None) -> str | None:
    """Return a value as text, for a person."""
    return value.isoformat() if isinstance(value, date) else None if value is None else str(value)


def moved(value: Value, by: Step, *, back: bool = False) -> Value | None:
    """Return a value so much later, or earlier; ``None`` past the first or the last one."""
    try:
        if isinstance(value, date) and isinstance(by, timedelta):
            return value - by if back else value + by
        if isinstance(value, int | Decimal) and isinstance(by, int):
            return value - by if back else value + by
    except OverflowError:
        return None
    raise TypeError(f"{value!r} and {by!r} have nothing in common")


def check_step(step: Step | None, kind: Kind, what: str, column: str) -> None:
    """Refuse a distance that the values of a column do not have.

    Raises:
        ConfigurationError: It is of another kind, or negative, or no whole days between dates.
    """
    if step is None:
        return
    fits = isinstance(step, timedelta) if kind.knows_time else isinstance(step, int)
    if not fits or kind is Kind.TEXT:
        allowed = {Kind.NUMBER: "an integer", Kind.TEXT: "none, since text has no distance"}
        raise ConfigurationError(
            f"{what} is {step!r}, but {column} is {_an(kind)}; allowed is"
            f" {allowed.get(kind, 'a timedelta')}"
        )
    if step < (timedelta(0) if isinstance(step, timedelta) else 0):  # type: ignore[operator]
        raise ConfigurationError(f"{what} is {step!r}; allowed is nothing below zero")
    if kind is Kind.DAY and isinstance(step, timedelta) and step % timedelta(days=1):
        raise ConfigurationError(
            f"{what} is {step!r}, but {column} has days; allowed are full days"
        )


def ceiling(kind: Kind, now: datetime) -> Value | None:
    """Return the largest value that is not of the future; ``None`` where none can be determined.

    A clock without a zone, and a calendar, may be ahead of UTC; text is taken for an ISO 8601 date.
    """
    match kind:
        case Kind.INSTANT:
            return now
        case Kind.CLOCK:
            return (now + _FARTHEST_ZONE).replace(tzinfo=None)
        case Kind.DAY:
            return (now + _FARTHEST_ZONE).date()
        case Kind.TEXT:
            return (now + _FARTHEST_ZONE + timedelta(days=1)).date().isoformat()
        case Kind.NUMBER:
            return None
        case _:
            assert_never(kind)


def utc(instant: datetime, what: str) -> datetime:
    """Return an instant in UTC.

    Raises:
        ConfigurationError: It has no zone, so its instant is unknown.
    """
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise ConfigurationError(
            f"{what} is {instant!r}; allowed is a datetime with a zone, such as datetime.now(UTC)"
        )
    return instant.astimezone(UTC)


def _an(kind: Kind) -> str:
    return {
        Kind.INSTANT: "a timestamp",
        Kind.CLOCK: "a timestamp",
        Kind.DAY: "a date",
        Kind.NUMBER: "a number",
        Kind.TEXT: "text",
    }[kind]

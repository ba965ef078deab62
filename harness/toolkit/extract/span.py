"""Determines which rows of a column's values an extract takes, from how far bronze has come."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError
from harness.platform.sql_names import is_column
from harness.toolkit.extract.values import (
    Kind,
    Step,
    Value,
    as_text,
    check_step,
    column_of,
    literal,
    microseconds,
    moved,
)

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class ByColumn:
    """How a source is followed by one of its columns."""

    #: The column that grows, such as the time of the last change.
    column: str
    #: So much before the largest value is read again, for rows that are committed late.
    overlap: Step | None = None
    #: At most so much of what is new is read at once; the rest is for the next extract.
    piece: Step | None = None
    #: Whether rows without a value are read each time; else they never are.
    nulls: bool = True

    def check(self, source: str, kind: Kind) -> None:
        """Refuse what does not fit the column.

        Raises:
            ConfigurationError: A name or a distance is wrong.
        """
        check_step(self.overlap, kind, f"{source}: overlap", self.column)
        check_step(self.piece, kind, f"{source}: piece", self.column)
        if self.piece is not None and not self.piece:
            raise ConfigurationError(f"{source}: piece is nothing; allowed is more than that")

    def check_name(self, source: str) -> None:
        """Refuse a name that is none.

        Raises:
            ConfigurationError: It is none.
        """
        if not is_column(self.column):
            raise ConfigurationError(f"{source}: {self.column!r} is not the name of a column")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The values of the rows to read: from one (inclusive) to another (exclusive)."""

    since: Value | None
    until: Value | None = None
    with_nulls: bool = True

    @property
    def is_more(self) -> bool:
        """Whether there are rows after it."""
        return self.until is not None

    @property
    def since_text(self) -> str | None:
        """Where it begins, for a person."""
        return as_text(self.since)

    def condition(self, column: str) -> "Column | None":
        """Return what holds for its rows; ``None`` when that is all."""
        return self._condition(column_of(column), literal)

    def exact_condition(self, column: str) -> "Column | None":
        """Return what holds for its rows, of instants, in a form that is not sent to a database."""
        from pyspark.sql import functions as f

        return self._condition(
            f.unix_micros(column_of(column)), lambda value: f.lit(microseconds(value))
        )

    def wider(self, by: Step) -> "Span":
        """Return a span that begins so much before and ends so much after."""
        since = None if self.since is None else moved(self.since, by, back=True)
        until = None if self.until is None else moved(self.until, by)
        return replace(self, since=since, until=until)

    def _condition(self, value: "Column", bound: "Callable[[Value], Column]") -> "Column | None":
        found = None
        if self.since is not None:
            found = value >= bound(self.since)
        if self.until is not None:
            before = value < bound(self.until)
            found = before if found is None else found & before
        if self.with_nulls:
            return None if found is None else found | value.isNull()
        return value.isNotNull() if found is None else found


def span_of(
    by: ByColumn, newest: Value | None, ends: tuple[Value | None, Value | None] | None
) -> Span:
    """Return what to read.

    Args:
        by: How the source is followed.
        newest: How far bronze has come.
        ends: The first and the last value after that, where not all may be read at once.
    """
    since = newest
    if newest is not None and by.overlap is not None:
        since = moved(newest, by.overlap, back=True)
    until = None
    if by.piece is not None and ends is not None:
        first, last = ends
        if first is not None and last is not None:
            end = moved(first, by.piece)
            # Past the last value of all there is nothing to leave for later.
            until = end if end is not None and _is_before(end, last) else None
    with_nulls = by.nulls and until is None
    return Span(since=since, until=until, with_nulls=with_nulls)


def check_kinds(source: str, column: str, there: Kind, here: tuple[str, Kind]) -> None:
    """Refuse to compare values of two kinds.

    Raises:
        ConfigurationError: The column is of one kind in the source and of another in bronze.
    """
    bronze, kind = here
    if there is not kind:
        raise ConfigurationError(
            f"{source}: {column} is of the kind {there}, and in {bronze} of the kind {kind}, so"
            " neither shows how far the other has come; give bronze a column of the same kind"
        )


def _is_before(end: Value, last: Value) -> bool:
    return bool(end <= last)  # type: ignore[operator]

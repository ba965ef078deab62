"""Keeps what was at the end of a table, and determines what is new there."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from harness.errors import ProbeFailedError
from harness.sense.cursor import read_cursor
from harness.sense.database_queries import Column, Kind
from harness.sense.sources.jdbc.values import moment, overlap_start, rank
from harness.sense.sources.jdbc.watermark_sql import Seen

_VERSION = 1
#: Kinds whose overlap is a time before the largest value.
_KNOWS_TIME = frozenset({Kind.TIME, Kind.ZONED, Kind.DATE})
#: So many numbers before the largest are always read again: they may be given out, not committed.
_NUMBERS_AGAIN = 1000
_MOST_MARKS = 16


class Change(Enum):
    """What a window shows."""

    #: Nothing has changed.
    NONE = auto()
    #: Rows are gone, and nothing else.
    FEWER = auto()
    #: There is a larger key.
    GROWN = auto()
    #: There are more rows, or others, up to the largest key.
    LATE = auto()
    #: The window is empty: what was in it is gone.
    EMPTIED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """What was seen at the last probe that found a change."""

    kind: Kind
    type_name: str
    largest: str | None
    #: Rows from here on are read again.
    start: str | None
    rows: int
    nulls: int
    check: str
    #: New data since the largest key last grew; distinguishes their events.
    late: int = 0
    #: How often the largest key fell; distinguishes one generation of the table from the next.
    life: int = 0
    #: The database's clock and the largest key then, for keys that hold no time.
    marks: tuple[tuple[str, str], ...] = ()

    @property
    def column(self) -> Column:
        """The type of the key."""
        return Column(kind=self.kind, type_name=self.type_name)

    @property
    def snapshot_id(self) -> str | None:
        """The name of the last new data; ``None`` while there has been nothing."""
        if self.late == 0:
            return self.largest
        return f"{'' if self.largest is None else self.largest}+{self.late}"

    def to_text(self) -> str:
        """Write it down."""
        return json.dumps({"v": _VERSION, **asdict(self)}, separators=(",", ":"))

    def with_seen(self, seen: Seen) -> "Cursor":
        """Return the cursor after these rows of the same window."""
        return replace(
            self, largest=seen.largest, rows=seen.rows, nulls=seen.nulls, check=seen.check
        )


def cursor_from(text: str) -> Cursor:
    """Read a cursor.

    Raises:
        ProbeFailedError: Another version wrote it.
    """
    return read_cursor(text, _VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> Cursor:
    marks = tuple((str(now), str(largest)) for now, largest in record["marks"])
    fields = {name: value for name, value in record.items() if name != "v"}
    return Cursor(**{**fields, "kind": Kind(record["kind"]), "marks": marks})


def change_in(before: Cursor, seen: Seen) -> Change:
    """Compare the rows of the window with what was in it."""
    if before.largest is not None and seen.largest is None:
        return Change.EMPTIED
    if _has_grown(before, seen):
        return Change.GROWN
    if seen.rows > before.rows or seen.nulls > before.nulls:
        return Change.LATE
    if (seen.rows, seen.nulls) != (before.rows, before.nulls) or not is_same(before, seen):
        return Change.FEWER
    return Change.NONE if seen.check == before.check else Change.LATE


def is_same(before: Cursor, seen: Seen) -> bool:
    """Return whether the largest key is the one of before.

    The same number or instant may be written in another way, such as in another zone.
    """
    if seen.largest == before.largest or seen.largest is None or before.largest is None:
        return seen.largest == before.largest
    return rank(before.kind, seen.largest) == rank(before.kind, before.largest)


def _has_grown(before: Cursor, seen: Seen) -> bool:
    if seen.largest is None or is_same(before, seen):
        return False
    if before.largest is None:
        return True
    if before.kind in {Kind.TEXT, Kind.OTHER} and seen.rows >= before.rows:
        # The database has an order of its own for text; nothing is gone, so it can only be larger.
        return True
    return rank(before.kind, seen.largest) > rank(before.kind, before.largest)


def start_after(cursor: Cursor, now: str, overlap: timedelta) -> Cursor:
    """Return the cursor with the window that the next probe requests.

    Raises:
        ProbeFailedError: The largest value is none that others can be compared to.
    """
    if cursor.largest is None:
        return replace(cursor, start=None, marks=())
    if cursor.kind is Kind.OTHER:
        raise ProbeFailedError(
            f"its upstream_key is of the type {cursor.type_name}, which has no order of use here"
        )
    rank(cursor.kind, cursor.largest)
    if cursor.kind in _KNOWS_TIME:
        start = overlap_start(cursor.kind, cursor.largest, now, overlap)
        return replace(cursor, start=start)
    marks = _with_mark(cursor.marks, (now, cursor.largest), overlap)
    start = marks[0][1]
    if cursor.kind is not Kind.TEXT:
        start = str(min(Decimal(start), Decimal(cursor.largest) - _NUMBERS_AGAIN))
    return replace(cursor, start=start, marks=marks)


def _with_mark(
    marks: tuple[tuple[str, str], ...], new: tuple[str, str], overlap: timedelta
) -> tuple[tuple[str, str], ...]:
    """Add a mark; the first that is kept is the newest that is as old as the overlap."""
    try:
        now = moment(new[0], Kind.TIME)
    except ValueError as error:
        raise ProbeFailedError(f"the clock of its database cannot be read: {new[0]!r}") from error
    old = [mark for mark in marks if moment(mark[0], Kind.TIME) <= now - overlap]
    young = [mark for mark in marks if moment(mark[0], Kind.TIME) > now - overlap]
    kept = [*old[-1:], *young]
    if len(kept) >= _MOST_MARKS:
        # The first stays: a wider window only costs, a narrower one could miss.
        kept = [kept[0], *kept[2:]]
    return (*kept, new)

"""What a probe sends to a database and gets: ``Query`` in, ``Answer`` out, ``Queries`` between."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from harness.config.connections import Database
from harness.config.identifiers import Name
from harness.errors import ProbeFailedError


class Kind(StrEnum):
    """How the values of a column are compared."""

    NUMBER = "number"
    #: A number that is not exact: its sum depends on the order.
    FLOAT = "float"
    #: Date and time of some clock, without a zone.
    TIME = "time"
    #: An instant.
    ZONED = "zoned"
    DATE = "date"
    TEXT = "text"
    #: Any other; it has no order that Heartbeat recognizes.
    OTHER = "other"


class Case(StrEnum):
    """How a database spells a name that is written without quotes."""

    UPPER = "upper"
    LOWER = "lower"
    AS_WRITTEN = "as_written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A parameter, as text; the kind shows how it is passed."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that only reads: pieces of SQL, and the parameters between them."""

    pieces: tuple[str | Value, ...]

    def written(self, mark: str = "?", percent: str = "%") -> str:
        """Return the SQL, with a mark for each parameter, which may have its number in it."""
        written, number = [], 0
        for piece in self.pieces:
            if isinstance(piece, Value):
                number += 1
                written.append(mark.format(number))
            else:
                written.append(piece.replace("%", percent))
        return "".join(written)

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The parameters in their order."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Value))


def listed(values: Sequence[Value]) -> Iterator[str | Value]:
    """Return the pieces of a list of values, as it stands after IN."""
    for number, value in enumerate(values):
        yield ", " if number else "("
        yield value
    yield ")"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of an answer."""

    kind: Kind
    #: In the database's or the driver's own word; empty as long as no value shows it.
    type_name: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows as text, ``None`` for null."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[str | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How statements for a database are written."""

    #: What stands before a quoted name, and what after it.
    quotes: str = '""'
    bare_names: Case = Case.AS_WRITTEN
    #: Expressions for the second, the minute and the day of a time stamp ``{0}``, where known.
    parts: Mapping[str, str] = field(default_factory=dict)

    def quoted(self, names: Sequence[Name]) -> str:
        """Spell a name in quotes, out of which no character leads."""
        before, after = self.quotes[0], self.quotes[-1]
        return ".".join(
            f"{before}{self.spelled(name).replace(after, after * 2)}{after}" for name in names
        )

    def spelled(self, name: Name) -> str:
        """Spell one name as the database has it."""
        if not name.is_exact and self.bare_names is Case.UPPER:
            return name.text.upper()
        if not name.is_exact and self.bare_names is Case.LOWER:
            return name.text.lower()
        return name.text


class QueryRefusedError(ProbeFailedError):
    """The database reported that it does not run this statement; others may be sent."""


class QueryTooSlowError(ProbeFailedError):
    """The database stopped this statement at its time limit or for a lock; others may be sent."""


class DatabaseDownError(ProbeFailedError):
    """The database cannot be reached or does not answer; no statement can be sent now."""


class Queries(Protocol):
    """Queries databases. Safe to use from many threads; one query at a time per database."""

    def dialect(self, database: Database) -> Dialect:
        """Return how to write statements for a database, which is not connected to for that.

        Raises:
            DatabaseDownError: Nothing here can connect to such a database.
        """
        ...

    def ask(
        self, database: Database, query: Query, *, within: float, most: int | None = None
    ) -> Answer:
        """Run one query, and return its first rows, so many at most.

        Raises:
            QueryRefusedError: The database does not run it.
            QueryTooSlowError: It stopped it, after so many seconds or for a lock.
            DatabaseDownError: It cannot be reached, or did not answer within so many seconds.
        """
        ...

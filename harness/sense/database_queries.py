"""What a probe asks a database and gets: ``Query`` in, ``Answer`` out, ``Queries`` between."""

from collections.abc import Sequence
from dataclasses import dataclass
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
    #: Any other; it has no order that Heartbeat knows.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A statement that only reads, and its parameters in their order."""

    text: str
    parameters: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of an answer; its type in the database's own word."""

    kind: Kind
    type_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows as text, ``None`` for null."""

    columns: tuple[Column, ...]
    rows: Sequence[tuple[str | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What has to be known of a database before it can be asked."""

    quote: str = '"'
    bare_names: Case = Case.AS_WRITTEN
    #: The functions of JDBC's own list for dates and times that it knows, in upper case.
    time_functions: frozenset[str] = frozenset()

    def quoted(self, names: Sequence[Name]) -> str:
        """Spell a name in quotes, out of which no character leads."""
        return ".".join(self._quoted(name) for name in names)

    def _quoted(self, name: Name) -> str:
        text = name.text
        if not name.is_exact:
            match self.bare_names:
                case Case.UPPER:
                    text = text.upper()
                case Case.LOWER:
                    text = text.lower()
                case Case.AS_WRITTEN:
                    pass
        return f"{self.quote}{text.replace(self.quote, self.quote * 2)}{self.quote}"


class QueryRefusedError(ProbeFailedError):
    """The database answered that it does not run this statement; others may be asked."""


class QueryTooSlowError(ProbeFailedError):
    """The database gave this statement up for its time limit or a lock; others may be asked."""


class DatabaseDownError(ProbeFailedError):
    """The database cannot be reached or does not answer; nothing can be asked now."""


class Queries(Protocol):
    """Asks databases. Safe to use from many threads; one question at a time per database."""

    def dialect(self, database: Database, *, within: float) -> Dialect:
        """Return how to write statements for a database.

        Raises:
            DatabaseDownError: It cannot be reached within so many seconds.
        """
        ...

    def ask(self, database: Database, query: Query, *, within: float) -> Answer:
        """Run one query.

        Raises:
            QueryRefusedError: The database does not run it.
            QueryTooSlowError: It stopped it, after so many seconds or for a lock.
            DatabaseDownError: It cannot be reached, or did not answer within so many seconds.
        """
        ...

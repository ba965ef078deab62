"""Writes the statement that reads from many tables at once what is at their end.

Of each table: its largest key, and how many rows there are in the overlap before it, with a sum
over them that also changes when rows move within it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.config.identifiers import Name, Relation, relation_from
from harness.errors import ProbeFailedError
from harness.platform.sql_names import is_column, parts_of
from harness.sense.database_queries import Answer, Column, Dialect, Kind, Query, Value
from harness.store.work_lists import Upstream

NO_RELATION = "its sensor_id is neither connection: schema.table nor connection: (select ...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What one upstream probes, spelled for its database."""

    upstream: Upstream
    #: The table's name in quotes, or the query as a derived table.
    relation: str
    key: str
    #: The key's name as the database has it.
    key_name: str

    @property
    def id(self) -> str:
        """The upstream's id."""
        return self.upstream.upstream_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Where the rows begin that are read again: all rows when there is no start."""

    subject: Subject
    column: Column
    start: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the rows of a window are."""

    largest: str | None
    #: Rows with a key.
    rows: int
    #: Rows without one.
    nulls: int
    #: A sum over the keys, where the database can make one.
    check: str
    #: The database's own clock.
    now: str
    #: The type of the key, as far as an answer without a key shows it.
    column: Column


def subject_of(upstream: Upstream, dialect: Dialect) -> Subject:
    """Spell what an upstream names.

    Raises:
        ProbeFailedError: It names nothing that can be queried.
    """
    relation = relation_from(upstream.sensor_id)
    if relation is None:
        raise ProbeFailedError(NO_RELATION)
    if not upstream.upstream_key:
        raise ProbeFailedError("upstream_key is empty; name the column that identifies new rows")
    key = key_name(upstream.upstream_key)
    return Subject(
        upstream=upstream,
        relation=_spelled(relation, dialect),
        key=dialect.quoted((key,)),
        key_name=dialect.spelled(key),
    )


def key_name(key: str) -> Name:
    """Read the name of a column; one in backticks is exact.

    Raises:
        ProbeFailedError: It is none, or a field of one.
    """
    parts = parts_of(key)
    if not is_column(key) or len(parts) != 1:
        raise ProbeFailedError(f"upstream_key {key!r} is not a column name")
    return Name(parts[0], is_exact=key.startswith("`"))


def _spelled(relation: Relation, dialect: Dialect) -> str:
    if relation.query is not None:
        return f"{relation.query} sensed"
    return dialect.quoted(relation.table)


def largest_query(subject: Subject) -> Query:
    """Return the query for largest key, type and clock of one table, of which nothing is known."""
    text = f"select max({subject.key}) as largest, current_timestamp as asked_at"
    return Query((f"{text} from {subject.relation}",))


def up_to_query(subject: Subject, start: Value, end: Value) -> Query:
    """Return the query that counts the rows of one table from a key to another."""
    key, relation = subject.key, subject.relation
    text = f"select count(*) as counted from {relation} where {key} >= "
    return Query((text, start, f" and {key} <= ", end))


def windows_query(windows: Sequence[Window], dialect: Dialect) -> Query:
    """Return one statement over many tables; their keys must be of one type."""
    pieces: list[str | Value] = []
    for number, window in enumerate(windows):
        key, kind = window.subject.key, window.column.kind
        pieces.append(
            f"{' union all ' if number else ''}select {number} as place, max({key}) as largest,"
            f" count({key}) as with_key, count(*) as all_rows,"
            f" {_check(key, kind, dialect)} as checked, current_timestamp as asked_at"
            f" from {window.subject.relation}"
        )
        if window.start is not None:
            start = Value(kind=kind, text=window.start)
            pieces += [f" where {key} >= ", start, f" or {key} is null"]
    return Query(tuple(pieces))


def seen_in(answer: Answer) -> dict[int, Seen]:
    """Read the answer, by the place of each window in its statement."""
    seen = {}
    for place, largest, with_key, all_rows, check, now in answer.rows:
        seen[int(place or 0)] = Seen(
            largest=_trimmed(largest, answer.columns[1]),
            rows=int(with_key or 0),
            nulls=int(all_rows or 0) - int(with_key or 0),
            check=_plain(check),
            now=now or "",
            column=answer.columns[1],
        )
    return seen


def _trimmed(text: str | None, column: Column) -> str | None:
    # A CHAR comes filled up with spaces.
    return text.rstrip(" ") if text and column.kind is Kind.TEXT else text


def _plain(number: str | None) -> str:
    text = number or "0"
    return text.rstrip("0").rstrip(".") or "0" if "." in text else text


def _check(key: str, kind: Kind, dialect: Dialect) -> str:
    """Return an expression for a sum that does not depend on the order of the rows."""
    if kind is Kind.NUMBER:
        return f"sum(cast({key} as decimal(31, 7)))"
    parts = {name: part.format(key) for name, part in dialect.parts.items()}
    if kind is Kind.DATE and "day" in parts:
        return f"sum({parts['day']})"
    if kind in {Kind.TIME, Kind.ZONED} and "second" in parts:
        return f"sum(cast({parts['second']} + 60 * {parts['minute']} as decimal(31, 6)))"
    return "0"

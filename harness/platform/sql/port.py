"""What the rest of the harness uses of SQL: statements go in, rows come out, whatever runs them.

Rows have the same Python types on every engine: instants are aware and in UTC, maps and structures
are dictionaries, arrays are lists, and no number becomes a float.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from harness.errors import ConfigurationError, StateError

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, object]
_Convert = Callable[[object], object]

#: The conditions of a table that is not there; so is one whose schema is not there.
_NOT_THERE = frozenset({"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"})


class SqlError(StateError):
    """A statement failed; nothing is known of what it was to do.

    Args:
        reason: What is wrong, in the middle of a sentence, without a full stop.
        remedy: What to do, after a semicolon; nothing: the engine's own words have to do.
        condition: The engine's name of the error, such as ``TABLE_OR_VIEW_NOT_FOUND``.
    """

    def __init__(self, reason: str, *, remedy: str = "", condition: str | None = None) -> None:
        super().__init__(f"{reason}; {remedy}" if remedy else reason)
        self.reason = reason
        self.remedy = remedy
        self.condition = condition

    @property
    def is_not_there(self) -> bool:
        """Whether a table of the statement, or its schema, does not exist."""
        return self.condition in _NOT_THERE


class SqlSetupError(SqlError, ConfigurationError):
    """A name of the configuration leads to nothing, or to what is too old; no statement was run."""


class Sql(Protocol):
    """Runs statements; implemented by a Spark session and by a SQL warehouse."""

    @property
    def statement_count(self) -> int:
        """How many statements were sent, for benchmarks: each costs a round trip."""
        ...

    def run(self, statement: str) -> list[Row]:
        """Run a statement and return all of its rows.

        A statement whose answer is lost may be sent again, so one that changes a table must
        be safe to run twice.

        Args:
            statement: The text. A value stands in it as ``literal`` spells it: Spark binds no
                parameters where an extension has a parser of its own, as Delta and Iceberg have.

        Raises:
            SqlError: It failed.
        """
        ...

    def read(self, table: str) -> list[Row]:
        """Return all rows of a table or view.

        Args:
            table: Its name, as SQL has it.

        Raises:
            SqlError: It failed.
        """
        ...

    def append(
        self, table: str, rows: Sequence[Row], options: Mapping[str, str | int] | None = None
    ) -> None:
        """Append rows to a table in one commit; no rows make an empty commit.

        Args:
            table: Its name, as SQL has it.
            rows: A value for each column.
            options: Of Delta's writer, such as ``txnAppId``.

        Raises:
            SqlError: The engine cannot do that, or it failed.
        """
        ...


def read_together(sql: Sql, queries: Mapping[str, str]) -> dict[str, list[Row]]:
    """Run several queries as one statement; return the rows of each, in no order.

    Args:
        sql: Runs it.
        queries: By a name of ours, which is a plain identifier.

    Raises:
        SqlError: Any of them failed.
    """
    parts = (
        f"(select collect_list(struct(*)) from ({query})) as {name}"
        for name, query in queries.items()
    )
    (row,) = sql.run(f"select {', '.join(parts)}")
    return {name: list(row[name]) for name in queries}  # type: ignore[call-overload]


class StatementCounter:
    """Counts what several threads send."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self) -> None:
        """Count one more."""
        with self._lock:
            self.count += 1


def rows_of(table: "pa.Table") -> list[Row]:
    """Return the rows of an Arrow table as dictionaries of Python values."""
    converters = {
        field.name: converter
        for field in table.schema
        if (converter := _converter(field.type)) is not None
    }
    rows: list[Row] = table.to_pylist()
    for name, convert in converters.items():
        for row in rows:
            row[name] = convert(row[name])
    return rows


def _converter(kind: "pa.DataType") -> _Convert | None:
    """Return what makes Python's value of Arrow's; nothing where they are the same."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return _in_utc if kind.tz else None
    if pa.types.is_map(kind):
        return _of_map(_converter(kind.item_type))
    if pa.types.is_list(kind):
        return _of_list(_converter(kind.value_type))
    if pa.types.is_struct(kind):
        fields = {field.name: _converter(field.type) for field in kind}
        return _of_struct({name: each for name, each in fields.items() if each is not None})
    return None


def _in_utc(value: object) -> object:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _of_map(convert: _Convert | None) -> _Convert:
    def converted(value: object) -> object:
        if value is None:
            return None
        pairs = dict(value)  # type: ignore[call-overload]
        return pairs if convert is None else {key: convert(each) for key, each in pairs.items()}

    return converted


def _of_list(convert: _Convert | None) -> _Convert | None:
    if convert is None:
        return None
    return lambda value: value if value is None else [convert(each) for each in value]  # type: ignore[attr-defined]


def _of_struct(converters: Mapping[str, _Convert]) -> _Convert | None:
    if not converters:
        return None

    def converted(value: object) -> object:
        if value is None:
            return None
        fields: Row = dict(value)  # type: ignore[call-overload]
        return fields | {name: each(fields[name]) for name, each in converters.items()}

    return converted

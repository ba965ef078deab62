"""Extracts from a table of a database over JDBC, by a column that grows.

Queries about the column use bound values. Spark reads the rows, and is given the limits as typed
values of its own.
"""

import os
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from harness.config.connections import Database
from harness.config.identifiers import relation_from
from harness.config.secrets import EnvironmentSecrets, SecretResolver
from harness.errors import ConfigurationError, ExtractError, ProbeFailedError
from harness.sense import database_queries as queries
from harness.sense.sources.jdbc.databases import SqlQueries
from harness.sense.sources.jdbc.session import credentials
from harness.sense.sources.jdbc.values import moment
from harness.sense.sources.jdbc.watermark_sql import key_name
from harness.toolkit.extract.lookback import one_sentence
from harness.toolkit.extract.sources.base import Batch
from harness.toolkit.extract.sources.table import batch_of, newest_of
from harness.toolkit.extract.span import ByColumn, Span, span_of
from harness.toolkit.extract.target import Bronze
from harness.toolkit.extract.values import Kind, Value, as_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

_KINDS = {
    queries.Kind.ZONED: Kind.INSTANT,
    queries.Kind.TIME: Kind.CLOCK,
    queries.Kind.DATE: Kind.DAY,
    queries.Kind.NUMBER: Kind.NUMBER,
    queries.Kind.TEXT: Kind.TEXT,
}
_ASKED = {kind: word for word, kind in _KINDS.items()}
#: Spark writes an instant without its zone, so the database gets the zone that is meant.
_SET_UTC = {
    "jdbc:postgresql:": "SET TIME ZONE 'UTC'",
    "jdbc:mysql:": "SET time_zone = '+00:00'",
    "jdbc:mariadb:": "SET time_zone = '+00:00'",
    "jdbc:oracle:": "ALTER SESSION SET TIME_ZONE = 'UTC'",
}
#: Classes of the JDBC drivers, for those that the address names.
_DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    "sap": "com.sap.db.jdbc.Driver",
    "sqlite": "org.sqlite.JDBC",
}
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z"})
#: No two clocks on Earth differ by more.
_BETWEEN_ZONES = timedelta(hours=26)


def _environment() -> SecretResolver:
    return EnvironmentSecrets(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdbc(ByColumn):
    """A table of a database, or a query in parentheses, followed by a column."""

    database: Database
    #: ``schema.table``, a name in double quotes being exact, or ``(select ...)``.
    table: str
    #: Fetches the password, at each login.
    secrets: SecretResolver = field(default_factory=_environment)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.table

    def read(self, bronze: Bronze) -> Batch | None:
        """Return the rows from the largest value that bronze has, that value included.

        Raises:
            ConfigurationError: The column is none that shows how far an extract has come.
            ExtractError: The database cannot be queried.
        """
        self.check_name(self.name)
        try:
            return self._read(bronze)
        except ProbeFailedError as error:
            raise ExtractError(f"{self.name} cannot be read: {str(error).rstrip('.')}") from error

    def _read(self, bronze: Bronze) -> Batch:
        session = _QuerySession(bronze, self)
        kind = session.kind()
        self.check(self.name, kind)
        newest = newest_of(bronze, self.name, self.column, kind)
        ends = session.ends(newest, kind) if self.piece is not None else None
        span = span_of(self, newest, ends)
        with one_sentence(self.name):
            reader = _reader_of(bronze.session, self.database, self.secrets)
            reader = reader.option("dbtable", session.relation)
            if kind is not Kind.INSTANT:
                return batch_of(reader.load(), span, session.column)
            return self._of_instants(bronze, reader, span, session.column)

    def _of_instants(
        self, bronze: Bronze, reader: "DataFrameReader", span: Span, column: str
    ) -> Batch:
        """Return the rows of a span, whatever zone Spark writes the limits in.

        What the database is queried for may be more than that, and never is less.
        """
        statement = next(
            (each for start, each in _SET_UTC.items() if self.database.url.startswith(start)), None
        )
        asked_for = span
        if statement is not None:
            reader = reader.option("sessionInitStatement", statement)
        if statement is None or not _UTC.issuperset(_zones(bronze.session)):
            asked_for = span.wider(_BETWEEN_ZONES)
        batch = batch_of(reader.load(), asked_for, column)
        exact = span.exact_condition(column)
        rows = batch.frame if exact is None else batch.frame.where(exact)
        return replace(batch, frame=rows, since=span.since_text, is_more=span.is_more)


def _reader_of(
    session: "SparkSession", database: Database, secrets: SecretResolver
) -> "DataFrameReader":
    """Return what reads a table of a database; which table has yet to be set."""
    address = database.url
    if not address.startswith("jdbc:"):
        raise ConfigurationError(
            "Spark reads the rows of a database by its JDBC driver; write the address of the"
            " source as a JDBC URL, such as jdbc:postgresql://host:5432/name"
        )
    reader = session.read.format("jdbc").options(
        url=address,
        fetchsize=1000,
        # A time stamp without a zone is the same digits here as there.
        preferTimestampNTZ=True,
    )
    # Spark would call DriverManager, which has a driver only when Spark has used it before.
    driver = database.driver or _DRIVERS.get(address.split(":")[1])
    if driver is not None:
        reader = reader.option("driver", driver)
    return reader.options(**credentials(database, secrets))


def _zones(session: "SparkSession") -> set[str]:
    """Return the zones in which Spark may write an instant into a query of a database."""
    from harness.platform.spark.errors import PySparkException

    try:
        row = session.sql("select java_method('java.util.TimeZone', 'getDefault')").first()
    except PySparkException:
        # Shared compute admits no call of Java; what is not known may be any zone.
        row = None
    named = re.search(r'id="([^"]*)"', str(row[0] if row else ""))
    return {
        named.group(1) if named else "unknown",
        str(session.conf.get("spark.sql.session.timeZone")),
    }


class _QuerySession:
    """Queries the database about the column."""

    def __init__(self, bronze: Bronze, source: Jdbc) -> None:
        self._source = source
        self._queries = SqlQueries(source.secrets)
        self._within = source.database.timeout_seconds
        dialect = self._queries.dialect(source.database)
        found = relation_from(f"source: {source.table}")
        if found is None:
            raise ConfigurationError(
                f"{source.table!r} is not the name of a table in a database; allowed are"
                " schema.table and (select ...)"
            )
        key = key_name(source.column)
        self._key = dialect.quoted((key,))
        name = dialect.spelled(key)
        #: The column as Spark names it.
        self.column = name if name.isidentifier() else f"`{name}`"
        #: The table as a statement names it after FROM.
        self.relation = f"{found.query} extracted" if found.query else dialect.quoted(found.table)

    def kind(self) -> Kind:
        """Return how the values of the column are compared."""
        found = self._query(f"select max({self._key}) from {self.relation}").columns[0]
        kind = _KINDS.get(found.kind)
        if kind is None:
            raise ConfigurationError(
                f"{self._source.name}: {self._source.column} is {found.type_name}, which does not"
                " show how far an extract has come; allowed are timestamps, dates, integers,"
                " decimals and text"
            )
        return kind

    def ends(self, newest: Value | None, kind: Kind) -> tuple[Value | None, Value | None]:
        """Return the first and the last value after how far bronze has come."""
        text = f"select min({self._key}), max({self._key}) from {self.relation}"
        if newest is None:
            first, last = self._query(text).rows[0]
        else:
            bound = queries.Value(kind=_ASKED[kind], text=_bound(newest))
            first, last = self._query(f"{text} where {self._key} > ", bound).rows[0]
        return self._value(first, kind), self._value(last, kind)

    def _query(self, *pieces: str | queries.Value) -> queries.Answer:
        query = queries.Query(pieces)
        return self._queries.ask(self._source.database, query, within=self._within)

    def _value(self, text: str | None, kind: Kind) -> Value | None:
        try:
            return None if text is None else _value_from(text, kind)
        except ValueError as error:
            raise ExtractError(
                f"{self._source.name}: {self._source.column} has the value {text!r}, which cannot"
                " be compared; correct that row, or extract without piece"
            ) from error


def _value_from(text: str, kind: Kind) -> Value:
    match kind:
        case Kind.INSTANT:
            return moment(text, queries.Kind.ZONED).replace(tzinfo=UTC)
        case Kind.CLOCK:
            return moment(text, queries.Kind.TIME)
        case Kind.DAY:
            return date.fromisoformat(text[:10])
        case Kind.NUMBER:
            return Decimal(text)
        case Kind.TEXT:
            return text


def _bound(value: Value) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    return as_text(value) or ""

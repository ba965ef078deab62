"""Queries databases through SQLAlchemy and their Python drivers, in no JVM.

SQLAlchemy connects, provides the dialect and the driver's errors, and detects lost connections. The
statements are text: a hundred tables as SQLAlchemy's own expressions take longer to write than to
run.
"""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from harness.config.connections import Database
from harness.config.secrets import SecretResolver
from harness.errors import HeartbeatError, ProbeFailedError
from harness.platform.masking import masked
from harness.platform.text import first_line
from harness.sense.database_queries import (
    Answer,
    DatabaseDownError,
    Dialect,
    Kind,
    Query,
    QueryRefusedError,
    QueryTooSlowError,
    Value,
)
from harness.sense.sources.jdbc.address import sqlalchemy_url
from harness.sense.sources.jdbc.dialects import (
    SESSION,
    TIME_LIMIT,
    all_as_text,
    columns_of,
    dialect_of,
    is_too_slow,
    limits_of,
    text_of,
)
from harness.sense.sources.jdbc.session import Worker, credentials
from harness.sense.sources.jdbc.values import instant, moment

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

#: The driver gets a little longer than the database, so that it can report a time-out itself.
_GRACE_SECONDS = 0.5
_ROWS_AT_ONCE = 1000
#: How a driver marks the place of a parameter, by its ``paramstyle``.
_MARKS = {"qmark": "?", "format": "%s", "pyformat": "%s", "named": ":{}", "numeric": ":{}"}


class _DatabaseHangsError(DatabaseDownError):
    """There was no answer at all."""


class SqlQueries:
    """Keeps one connection for each database, over ticks; an error may throw it away.

    Args:
        secrets: Fetches passwords, at each login.
    """

    def __init__(self, secrets: SecretResolver) -> None:
        self._secrets = secrets
        self._lock = threading.Lock()
        self._desks: dict[Database, _Desk] = {}

    def dialect(self, database: Database) -> Dialect:
        """Return how to write statements for a database."""
        return self._desk(database).dialect

    def ask(
        self, database: Database, query: Query, *, within: float, most: int | None = None
    ) -> Answer:
        """Run one query."""
        return self._desk(database).ask(query, within, most)

    def _desk(self, database: Database) -> "_Desk":
        with self._lock:
            if database not in self._desks:
                self._desks[database] = _Desk(database, self._secrets)
            return self._desks[database]


class _Desk:
    """One database, its connection, and the thread that queries it."""

    def __init__(self, database: Database, secrets: SecretResolver) -> None:
        self._database = database
        self._secrets = secrets
        self._url = sqlalchemy_url(database.url)
        #: How statements are written.
        self.dialect = self._loaded()
        self._worker = Worker("database")
        self._connection: Connection | None = None
        #: The limit that is set in the database, in seconds.
        self._limit = 0

    def _loaded(self) -> Dialect:
        """Load the driver, here and outside of any time limit: that may take a second."""
        from sqlalchemy.exc import NoSuchModuleError

        try:
            known = self._url.get_dialect()
            known.import_dbapi()
        except NoSuchModuleError as error:
            raise DatabaseDownError(
                f"there is no SQLAlchemy dialect {self._url.drivername}; install its package"
            ) from error
        except ImportError as error:
            raise DatabaseDownError(
                f"the Python driver of {self._url.drivername} cannot be loaded, install it:"
                f" {_reason(error)}"
            ) from error
        return dialect_of(known())

    def ask(self, query: Query, within: float, most: int | None) -> Answer:
        def once() -> Answer:
            return self._described(lambda: self._answer(query, within, most))

        was_kept = self._connection is not None
        try:
            return self._do(once, within)
        except _DatabaseHangsError:
            raise
        except DatabaseDownError:
            if not was_kept:
                raise
        # It was kept from an earlier probe, and the database has been restarted since.
        return self._do(once, within)

    def _do(self, work: Callable[[], T], within: float) -> T:
        if not self._worker.is_free:
            raise _DatabaseHangsError("the database has not answered an earlier query yet")
        try:
            return self._worker.do(work, within=within + _GRACE_SECONDS)
        except TimeoutError:
            _hang_up(self._connection)
            # Without what was left of it: a reason that differs each time is recorded each time.
            limit = self._database.timeout_seconds
            raise _DatabaseHangsError(
                f"the database did not answer in time, its timeout_seconds being {limit:g}"
            ) from None

    def _described(self, work: Callable[[], T]) -> T:
        """Do the work, and report in one sentence why it failed."""
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        try:
            return work()
        except ProbeFailedError:
            raise
        except HeartbeatError as error:
            raise DatabaseDownError(str(error).rstrip(".")) from error
        except DBAPIError as error:
            raise self._failure(error) from None
        except (SQLAlchemyError, OSError, TypeError, ValueError) as error:
            self._close()
            raise DatabaseDownError(f"the driver fails: {_reason(error)}") from None

    def _failure(self, error: Any) -> ProbeFailedError:
        # SQLAlchemy's own text holds the statement.
        reason = _reason(error.orig)
        connection, is_gone = self._connection, error.connection_invalidated
        if connection is None or is_gone or not self._is_alive(connection):
            self._close()
            return DatabaseDownError(f"the database cannot be reached: {reason}")
        if is_too_slow(error.orig):
            return QueryTooSlowError(f"the database gave the query up: {reason}")
        return QueryRefusedError(f"the database refuses the query: {reason}")

    def _is_alive(self, connection: "Connection") -> bool:
        from sqlalchemy.exc import SQLAlchemyError

        dialect = connection.dialect
        try:
            connection.rollback()
            pooled: Any = connection.connection
            return bool(dialect.do_ping(pooled.dbapi_connection))
        except (SQLAlchemyError, dialect.loaded_dbapi.Error):
            return False

    def _answer(self, query: Query, within: float, most: int | None) -> Answer:
        connection = self._connected(within)
        try:
            self._set_limit(connection, max(1, int(within)))
            return _run(connection, query, most)
        finally:
            # Nothing is locked, and no snapshot is kept, between two probes.
            if not connection.invalidated:
                connection.rollback()

    def _set_limit(self, connection: "Connection", seconds: int) -> None:
        statement = TIME_LIMIT.get(connection.dialect.name)
        if connection.dialect.driver == "oracledb":
            driver: Any = connection.connection.driver_connection
            driver.call_timeout = seconds * 1000
        elif statement is not None and seconds != self._limit:
            connection.exec_driver_sql(statement.format(seconds))
            connection.commit()
            self._limit = seconds

    def _connected(self, within: float) -> "Connection":
        if self._connection is None:
            from sqlalchemy import NullPool, create_engine

            known = credentials(self._database, self._secrets)
            url = self._url.set(username=known.get("user"), password=known.get("password"))
            driver = url.get_dialect().driver
            engine = create_engine(
                url,
                poolclass=NullPool,
                pool_reset_on_return=None,
                hide_parameters=True,
                connect_args=limits_of(driver, within, self._database.timeout_seconds),
            )
            connection = engine.connect()
            if driver == "psycopg":
                all_as_text(connection.connection.driver_connection)
            for statement in SESSION.get(connection.dialect.name, ()):
                connection.exec_driver_sql(statement)
            connection.commit()
            self._connection, self._limit = connection, 0
        return self._connection

    def _close(self) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.invalidate()
                connection.close()


def _run(connection: "Connection", query: Query, most: int | None) -> Answer:
    style = connection.dialect.paramstyle
    # A part of the rows is all that is read of them, where the driver can read so.
    options = {} if most is None else {"stream_results": True, "max_row_buffer": _ROWS_AT_ONCE}
    result = connection.exec_driver_sql(
        query.written(_MARKS[style], "%%" if "format" in style else "%"),
        tuple(_bound(value) for value in query.parameters),
        execution_options=options,
    )
    cursor: Any = result.cursor
    about = cursor.description
    rows = result.fetchall() if most is None else result.fetchmany(most)
    result.close()
    driver: Any = connection.connection.driver_connection
    columns = columns_of(connection.dialect.loaded_dbapi, driver, about, rows)
    return Answer(columns=columns, rows=[tuple(map(text_of, row)) for row in rows])


def _bound(value: Value) -> object:
    match value.kind:
        case Kind.NUMBER:
            number = Decimal(value.text)
            return int(number) if number == number.to_integral_value() else number
        case Kind.FLOAT:
            return float(value.text)
        case Kind.TIME:
            return moment(value.text, Kind.TIME)
        case Kind.ZONED:
            return instant(value.text)
        case Kind.DATE:
            return date.fromisoformat(value.text[:10])
        case Kind.TEXT | Kind.OTHER:
            return value.text


def _hang_up(connection: "Connection | None") -> None:
    """End a connection that another thread waits for, so that it waits no longer.

    Drivers that show no socket have a time limit of their own.
    """
    if connection is None:
        return
    with contextlib.suppress(Exception):
        driver: Any = connection.connection.driver_connection
        with socket.socket(fileno=os.dup(driver.fileno())) as open_one:
            open_one.shutdown(socket.SHUT_RDWR)


def _reason(error: BaseException | None) -> str:
    arguments = () if error is None else error.args
    # Of a number and a sentence, the sentence.
    text = arguments[1] if [type(each) for each in arguments] == [int, str] else error
    return masked(first_line(str(text), "no reason was given").strip().rstrip("."))

"""Queries databases with ``java.sql`` in the JVM of Spark, and finds their drivers; no Spark job.

Drivers come from where Spark has its jars (``spark.jars``, ``--jars``).
"""

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from harness.config.connections import Database
from harness.config.secrets import SecretResolver
from harness.errors import HeartbeatError, ProbeFailedError
from harness.platform.text import first_line
from harness.sense.database_queries import (
    Answer,
    DatabaseDownError,
    Dialect,
    Query,
    QueryRefusedError,
    QueryTooSlowError,
)
from harness.sense.sources.jdbc.dialects import dialect_of, login_limits
from harness.sense.sources.jdbc.session import Worker, credentials
from harness.sense.sources.jdbc.statements import Statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from harness.platform.masking import masked

T = TypeVar("T")

#: What databases say when they give a statement up for its time or for a lock that others hold.
_TOO_SLOW = frozenset({"57014", "55P03", "HYT00", "XCL52", "40XL1", "40XL2"})
#: The JVM gets a little longer than the database, so that it can report a time-out itself.
_GRACE_SECONDS = 0.5
_VALID_SECONDS = 2


class _DatabaseHangsError(DatabaseDownError):
    """There was no answer at all."""


class JvmQueries:
    """Keeps one connection for each database, over ticks; an error throws it away.

    Args:
        session: Returns the Spark session; it is asked for at the first question only.
        secrets: Fetches passwords, at each login.
    """

    def __init__(self, session: "Callable[[], SparkSession]", secrets: SecretResolver) -> None:
        self._session = session
        self._secrets = secrets
        self._lock = threading.Lock()
        self._statements: Statements | None = None
        self._desks: dict[Database, _Desk] = {}

    def dialect(self, database: Database, *, within: float) -> Dialect:
        """Return how to write statements for a database."""
        return self._desk(database).dialect(within)

    def ask(self, database: Database, query: Query, *, within: float) -> Answer:
        """Run one query."""
        return self._desk(database).ask(query, within)

    def _desk(self, database: Database) -> "_Desk":
        with self._lock:
            if self._statements is None:
                self._statements = Statements(self._session())
            if database not in self._desks:
                self._desks[database] = _Desk(self._statements, database, self._secrets)
            return self._desks[database]


class _Desk:
    """One database, its connection, and the thread that talks to it."""

    def __init__(self, statements: Statements, database: Database, secrets: SecretResolver) -> None:
        self._statements = statements
        self._spark = statements.spark
        self._database = database
        self._secrets = secrets
        self._worker = Worker("database")
        self._connection: Any = None
        self._dialect: Dialect | None = None

    def dialect(self, within: float) -> Dialect:
        if self._dialect is None:
            self._dialect = self._do(lambda: dialect_of(self._connected(within)), within)
        return self._dialect

    def ask(self, query: Query, within: float) -> Answer:
        def once() -> Answer:
            return self._statements.run(self._connected(within), query, within)

        kept = self._connection
        try:
            return self._do(once, within)
        except _DatabaseHangsError:
            raise
        except DatabaseDownError:
            if kept is None:
                raise
        # It was kept from an earlier probe, and the database has been restarted since.
        return self._do(once, within)

    def _do(self, work: Callable[[], T], within: float) -> T:
        if not self._worker.is_free:
            raise _DatabaseHangsError("the database has not answered an earlier question yet")
        try:
            return self._worker.do(lambda: self._described(work), within=within + _GRACE_SECONDS)
        except TimeoutError:
            self._throw_away()
            # Without what was left of it: a reason that differs each time is recorded each time.
            limit = self._database.timeout_seconds
            raise _DatabaseHangsError(
                f"the database did not answer in time, its timeout_seconds being {limit:g}"
            ) from None

    def _described(self, work: Callable[[], T]) -> T:
        """Do the work, and say in one sentence why it failed."""
        from harness.platform.spark.errors import Py4JError, Py4JJavaError, PySparkException

        try:
            return work()
        except ProbeFailedError:
            raise
        except HeartbeatError as error:
            raise DatabaseDownError(str(error).rstrip(".")) from error
        except Py4JJavaError as error:
            raise self._failure(_cause_of(error.java_exception)) from None
        except PySparkException as error:
            # PySpark takes some of Java's own errors for its own.
            self._throw_away()
            raise DatabaseDownError(f"the driver fails: {_reason(str(error))}") from error
        except (Py4JError, OSError) as error:
            self._connection = None
            raise DatabaseDownError("the JVM that queries the database does not answer") from error

    def _failure(self, error: Any) -> ProbeFailedError:
        # The text of the Python error holds a stack trace, and may hold the address.
        message = _reason(str(error.getMessage() or error.toString()))
        state = _sql_state(error)
        if state is not None and self._is_alive():
            if state in _TOO_SLOW or error.getClass().getSimpleName() == "SQLTimeoutException":
                return QueryTooSlowError(f"the database gave the query up: {message}")
            return QueryRefusedError(f"the database refuses the query: {message}")
        self._throw_away()
        return DatabaseDownError(f"the database cannot be reached: {message}")

    def _is_alive(self) -> bool:
        from py4j.protocol import Py4JError

        try:
            return self._connection is not None and bool(self._connection.isValid(_VALID_SECONDS))
        except Py4JError:
            return False

    def _connected(self, within: float) -> Any:
        if self._connection is None:
            jvm = self._spark._jvm
            properties = jvm.java.util.Properties()
            limits = login_limits(self._database.url, within)
            known = {**limits, **credentials(self._database, self._secrets)}
            for name, value in known.items():
                properties.setProperty(name, value)
            connection = driver_of(self._spark, self._database).connect(
                self._database.url, properties
            )
            if connection is None:
                raise DatabaseDownError(f"the driver rejects {self._database.url}")
            connection.setReadOnly(True)
            # Without a transaction, drivers let a read-only connection write.
            connection.setAutoCommit(False)
            self._connection = connection
        return self._connection

    def _throw_away(self) -> None:
        """End the connection without waiting for it; what hangs in it fails then."""
        from py4j.protocol import Py4JError

        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Py4JError):
                connection.abort(self._spark._jvm.java.util.concurrent.ForkJoinPool.commonPool())


def _cause_of(error: Any) -> Any:
    """Return the error itself, where it comes in another one that only shows how it was called."""
    is_wrapped = error.getClass().getSimpleName() == "InvocationTargetException"
    return error.getCause() if is_wrapped else error


def _sql_state(error: Any) -> str | None:
    """Return the state of a ``SQLException``, which may be empty; ``None`` for any other error."""
    from py4j.protocol import Py4JError

    try:
        return str(error.getSQLState() or "")
    except Py4JError:
        return None


def driver_of(spark: Any, database: Database) -> Any:
    """Return a ``java.sql.Driver`` for a database: the class that it names, or any that fits.

    Raises:
        DatabaseDownError: There is none.
    """
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    if database.driver:
        return _named(spark, loader, database.driver)
    jvm = spark._jvm
    service = jvm.java.lang.Class.forName("java.sql.Driver")
    drivers = jvm.java.util.ServiceLoader.load(service, loader).iterator()
    while drivers.hasNext():
        driver = drivers.next()
        if driver.acceptsURL(database.url):
            return driver
    raise DatabaseDownError(
        f"no JDBC driver takes {database.url.split('//')[0]}; add its jar to spark.jars in"
        " profiles.yml"
    )


def _named(spark: Any, loader: Any, name: str) -> Any:
    from py4j.protocol import Py4JJavaError

    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    try:
        found = loader.loadClass(name)
    except Py4JJavaError as error:
        raise DatabaseDownError(
            f"there is no JDBC driver {name}; add its jar to spark.jars in profiles.yml"
        ) from error
    constructor = found.getDeclaredConstructor(gateway.new_array(jvm.java.lang.Class, 0))
    return constructor.newInstance(gateway.new_array(jvm.java.lang.Object, 0))


def _reason(text: str) -> str:
    return masked(first_line(text, "no reason was given").strip().rstrip("."))

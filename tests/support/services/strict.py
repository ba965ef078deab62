"""A Spark session that refuses what serverless compute refuses, in front of the Spark of the tests.

The refusals are those that Databricks documents for serverless compute: settings of Spark beyond a few, caching, RDDs,
global temporary views, jars, environment variables, files of the driver as tables. The session itself is a real one of
Spark Connect. As in a workspace, names have three levels.
"""

import atexit
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from tests.support.services.warehouse import information_schema
from tests.support.services.warehouse.dialect import Dialect
from tests.support.services.warehouse.sessions import Denied

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.services.connect import Endpoint

#: The settings that may be set.
SETTINGS = frozenset(
    {
        "spark.databricks.execution.timeout",
        "spark.sql.ansi.enabled",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.session.timeZone",
        "spark.sql.shuffle.partitions",
    }
)
_CACHING = ("cache", "persist", "unpersist", "checkpoint", "localCheckpoint")
_GLOBAL_VIEWS = ("createGlobalTempView", "createOrReplaceGlobalTempView")


class RefusedError(Exception):
    """Serverless compute does not do that."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"[NOT_SUPPORTED_WITH_SERVERLESS] {what} is not supported on serverless compute."
        )


@dataclass(slots=True)
class Death:
    """The end of a session, or of the whole process, in the middle of its work.

    Attributes:
        at: A pattern of the statement, without backticks; an append is ``append to``, the table and the rows.
        error: What that statement and every later one raise. An ``Exception`` is a session that has ended; what is
            none ends the process, which then can do nothing more.
        is_after: The statement takes effect, and its answer is lost.
    """

    at: str
    error: type[BaseException]
    is_after: bool = False
    has_come: bool = False


class SessionEndedError(PySparkException):
    """The session has ended, as a restart of its compute ends it."""


class Killed(BaseException):
    """The process is killed: nothing of it runs any more."""


class StrictSession:
    """A session of serverless compute.

    Args:
        session: What stands behind it.
        catalog: The name of the one catalog.
    """

    def __init__(self, session: "SparkSession", catalog: str) -> None:
        self._session, self._catalog = session, catalog
        self._dialect = Dialect(catalog)
        #: The statements that came.
        self.statements: list[str] = []
        #: When the session ends.
        self.death: Death | None = None
        #: The grants that the principal lacks.
        self.denied: Sequence[Denied] = ()

    def send(self, statement: str, run: "Callable[[], Any]") -> Any:
        """Run what a statement does, unless the session ends before it or a grant is missing."""
        for each in self.denied:
            if each.refuses(statement):
                raise PySparkException(f"{each.words} SQLSTATE: 42501")
        death = self.death
        if death is None:
            return run()
        if not death.has_come and re.search(death.at, statement.replace("`", "")):
            death.has_come = True
            if death.is_after:
                run()
        if death.has_come:
            raise death.error(
                "[INVALID_HANDLE.SESSION_CLOSED] The session was closed. SQLSTATE: HY000"
            )
        return run()

    def sql(self, text: str, *given: object, **named: object) -> "DataFrame":
        """Run a statement, as a workspace has it."""
        assert not given
        assert not named
        self.statements.append(text)
        frame: DataFrame = self.send(text, lambda: self._sql(text))
        return frame

    def _sql(self, text: str) -> "DataFrame":
        understood = self._dialect.understood(text)
        information_schema.provide(self._session, self._catalog, understood.information, text)
        return _strict(self._session.sql(understood.text), self._dialect, self.send)

    def table(self, name: str) -> "DataFrame":
        """Return a table."""
        self.statements.append(f"table {name}")
        text = self._dialect.understood(name).text
        return _strict(
            self.send(f"table {name}", lambda: self._session.table(text)), self._dialect, self.send
        )

    def createDataFrame(self, rows: Sequence[object], schema: Any) -> "DataFrame":
        """Return a frame of a few rows, which are to be written."""
        self.statements.append("append")
        frame = self._session.createDataFrame(rows, schema)  # type: ignore[type-var]
        return _strict(frame, self._dialect, lambda to, run: self.send(f"{to} {rows}", run))

    @property
    def conf(self) -> "_Settings":
        """The settings."""
        return _Settings(self._session)

    @property
    def catalog(self) -> "_Catalog":
        """The catalog's functions that there are."""
        return _Catalog(self._session, self._dialect)

    @property
    def version(self) -> str:
        """Spark's."""
        return self._session.version

    def stop(self) -> None:
        """Refuse: a process that is given a session does not end it."""
        raise RefusedError("stopping the session")

    def __getattr__(self, name: str) -> Any:
        raise RefusedError(f"SparkSession.{name}")


class _Settings:
    def __init__(self, session: "SparkSession") -> None:
        self._session = session

    def get(self, key: str, *default: str) -> str | None:
        return self._session.conf.get(key, *default)

    def set(self, key: str, value: object) -> None:
        if key not in SETTINGS:
            raise RefusedError(f"setting {key}")
        self._session.conf.set(key, str(value))


class _Catalog:
    def __init__(self, session: "SparkSession", dialect: Dialect) -> None:
        self._session, self._dialect = session, dialect

    def tableExists(self, name: str) -> bool:
        return bool(self._session.catalog.tableExists(self._dialect.understood(name).text))

    def dropTempView(self, name: str) -> bool:
        return bool(self._session.catalog.dropTempView(name))

    def __getattr__(self, name: str) -> Any:
        raise RefusedError(f"Catalog.{name}")


def _strict(
    frame: "DataFrame", dialect: Dialect, send: "Callable[[str, Callable[[], Any]], Any]"
) -> "DataFrame":
    def refuse(name: str) -> Any:
        def called(*_: object, **__: object) -> None:
            raise RefusedError(f"DataFrame.{name}")

        return called

    for name in (*_CACHING, *_GLOBAL_VIEWS):
        setattr(frame, name, refuse(name))
    write_to = frame.writeTo

    def writer(name: str) -> Any:
        made = write_to(dialect.understood(name).text)
        append = made.append
        made.append = lambda: send(f"append to {name}", append)  # type: ignore[method-assign]
        return made

    frame.writeTo = writer  # type: ignore[method-assign]
    return frame


def strict_session(endpoint: "Endpoint", catalog: str) -> StrictSession:
    """Open a session at the Spark of the tests, as a task of serverless compute has one."""
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(endpoint.url).create()
    # PySpark closes the client when Python deletes the session: in a thread of gRPC, which closing waits for.
    session.client.close = lambda: None  # type: ignore[method-assign]
    # And at the end of the process it tries for ten minutes to reach the server, which has ended by then.
    atexit.unregister(session.client._cleanup_ml_cache)
    return StrictSession(session, catalog)  # type: ignore[arg-type]

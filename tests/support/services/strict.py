"""A Spark session that refuses what serverless compute refuses, in front of the Spark of the tests.

The refusals are those that Databricks documents for serverless compute: settings of Spark beyond a few, caching, RDDs,
global temporary views, jars, environment variables, files of the driver as tables. The session itself is a real one of
Spark Connect. As in a workspace, names have three levels.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tests.support.services.warehouse import information_schema
from tests.support.services.warehouse.dialect import Dialect

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

    def sql(self, text: str, *given: object, **named: object) -> "DataFrame":
        """Run a statement, as a workspace has it."""
        assert not given
        assert not named
        self.statements.append(text)
        understood = self._dialect.understood(text)
        information_schema.provide(self._session, self._catalog, understood.information, text)
        return _strict(self._session.sql(understood.text), self._dialect)

    def table(self, name: str) -> "DataFrame":
        """Return a table."""
        self.statements.append(f"table {name}")
        return _strict(self._session.table(self._dialect.understood(name).text), self._dialect)

    def createDataFrame(self, rows: Sequence[object], schema: Any) -> "DataFrame":
        """Return a frame of a few rows, which are to be written."""
        self.statements.append("append")
        return _strict(self._session.createDataFrame(rows, schema), self._dialect)  # type: ignore[type-var]

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


def _strict(frame: "DataFrame", dialect: Dialect) -> "DataFrame":
    def refuse(name: str) -> Any:
        def called(*_: object, **__: object) -> None:
            raise RefusedError(f"DataFrame.{name}")

        return called

    for name in (*_CACHING, *_GLOBAL_VIEWS):
        setattr(frame, name, refuse(name))
    write_to = frame.writeTo
    frame.writeTo = lambda name: write_to(dialect.understood(name).text)  # type: ignore[method-assign]
    return frame


def strict_session(endpoint: "Endpoint", catalog: str) -> StrictSession:
    """Open a session at the Spark of the tests, as a task of serverless compute has one."""
    from pyspark.sql.connect.session import SparkSession

    url = f"sc://localhost:{endpoint.port}/;token={endpoint.token};use_ssl=false"
    session = SparkSession.builder.remote(url).create()
    return StrictSession(session, catalog)  # type: ignore[arg-type]

"""Runs statements in a Spark session: a cluster's, serverless compute's, or the local engine's."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from harness.platform.sql.port import Row, SqlSetupError, StatementCounter, rows_of
from harness.platform.sql.refusals import WHO, refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SessionSql:
    """Statements of one session.

    Args:
        session: Returns the session; called only when a statement is to run.
    """

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session
        self._counter = StatementCounter()

    @property
    def statement_count(self) -> int:
        """How many statements were sent."""
        return self._counter.count

    def run(self, statement: str) -> list[Row]:
        """Run a statement and return all of its rows.

        Raises:
            SqlError: It failed.
        """
        return self._rows(lambda session: session.sql(statement))

    def read(self, table: str) -> list[Row]:
        """Return all rows of a table or view.

        Raises:
            SqlError: It failed.
        """
        # Spark Connect analyses the text of a query before its rows are requested.
        return self._rows(lambda session: session.table(table))

    def _rows(self, frame: "Callable[[SparkSession], DataFrame]") -> list[Row]:
        self._counter.add()
        session = self._session()
        try:
            return _collected(frame(session))
        except Exception as error:
            raise self._reported(error) from error

    def append(
        self, table: str, rows: Sequence[Row], options: Mapping[str, str | int] | None = None
    ) -> None:
        """Append rows to a table in one commit; no rows make an empty commit.

        Raises:
            SqlError: It failed.
        """
        self._counter.add()
        self._counter.add()
        session = self._session()
        try:
            schema = session.table(table).schema
            ordered = [tuple(_listed(row[name]) for name in schema.names) for row in rows]
            # `insertInto` would ignore the options.
            writer = session.createDataFrame(ordered, schema).writeTo(table)
            for name, value in (options or {}).items():
                writer = writer.option(name, value)
            writer.append()
        except Exception as error:
            raise self._reported(error) from error

    def _reported(self, error: Exception) -> Exception:
        """Return what to raise: Spark's own errors as a sentence, all others as they are."""
        from harness.platform.spark.classic_jvm import Py4JJavaError
        from harness.platform.spark.errors import PySparkException

        if not isinstance(error, PySparkException | Py4JJavaError):
            return error
        cause = getattr(error, "java_exception", None)
        text = str(error if cause is None else cause.getMessage())
        get_condition = getattr(error, "getCondition", None) or getattr(
            error, "getErrorClass", None
        )
        return refused(text, get_condition() if get_condition else None, self._principal)

    def _principal(self) -> str | None:
        with suppress(Exception):
            return str(_collected(self._session().sql(WHO))[0]["name"])
        return None


def _listed(value: object) -> object:
    """Return a value with lists for tuples: Spark Connect takes a tuple for a structure."""
    if isinstance(value, list | tuple):
        return [_listed(each) for each in value]
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return value


def _collected(frame: "DataFrame") -> list[Row]:
    if not hasattr(frame, "toArrow"):
        raise SqlSetupError(
            "This runtime is too old: it has a Spark before 4.0",
            remedy="use Databricks Runtime 17.3 or later",
        )
    # `toArrow` of Spark Connect has the query analysed once more, for a schema that the rows have.
    to_table = getattr(frame, "_to_table", None)
    return rows_of(to_table()[0] if to_table else frame.toArrow())

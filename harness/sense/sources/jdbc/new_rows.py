"""Reads new rows of a table through Spark, for a ``preprocess_query``."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from harness.config.connections import Database
from harness.config.secrets import SecretResolver
from harness.sense.database_queries import Kind, Value
from harness.sense.preprocess.run import SparkQuestions
from harness.sense.probe import QueryBounds
from harness.sense.sources.jdbc.compare import SinceRows
from harness.sense.sources.jdbc.jvm import driver_of
from harness.sense.sources.jdbc.session import credentials
from harness.sense.sources.jdbc.values import moment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

#: More rows than these are not read; the query decides over the part that was.
_MOST_ROWS = 100_000


class SparkTableRows:
    """Answers from Spark.

    Args:
        session: Returns the Spark session.
        secrets: Fetches passwords, at each login.
        bounds: What holds for a query.
    """

    def __init__(
        self,
        session: "Callable[[], SparkSession]",
        secrets: SecretResolver,
        bounds: QueryBounds | None = None,
    ) -> None:
        self._questions = SparkQuestions(session, bounds)
        self._secrets = secrets

    def any_row(self, database: Database, rows: SinceRows, query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
        return self._questions.any_row(lambda session: self._rows(session, database, rows), query)

    def any_of(self, rows: Sequence[Mapping[str, str]], query: str) -> bool:
        """Return whether the query over these rows, of text, returns a row."""
        schema = ", ".join(f"{name} string" for name in rows[0])
        values = [tuple(row.values()) for row in rows]
        return self._questions.any_row(
            lambda session: session.createDataFrame(values, schema), query
        )

    def _rows(self, session: "SparkSession", database: Database, rows: SinceRows) -> "DataFrame":
        from pyspark.sql import functions as f

        reader = reader_of(session, database, self._secrets)
        reader = reader.option("queryTimeout", max(1, int(database.timeout_seconds)))
        found = reader.option("dbtable", rows.relation).load()
        if rows.start is not None:
            key, start = f.col(f"`{rows.key_name}`"), _literal(rows.start)
            new = (key >= start) | key.isNull() if rows.with_late else key > start
            found = found.where(new)
        return found.limit(_MOST_ROWS)


def reader_of(
    session: "SparkSession", database: Database, secrets: SecretResolver
) -> "DataFrameReader":
    """Return what reads a table of a database; it has yet to be told which."""
    reader = session.read.format("jdbc").options(
        url=database.url,
        fetchsize=1000,
        # A time stamp without a zone is the same digits here as there.
        preferTimestampNTZ=True,
    )
    # Spark would ask DriverManager, which knows a driver only when Spark has used it before.
    driver = driver_of(session, database).getClass().getName()
    return reader.option("driver", driver).options(**credentials(database, secrets))


def _literal(value: Value) -> "Column":
    """Return the value as Spark compares it with the column."""
    from pyspark.sql import functions as f

    match value.kind:
        case Kind.NUMBER | Kind.FLOAT:
            return f.lit(Decimal(value.text))
        case Kind.TIME:
            digits = moment(value.text, Kind.TIME).isoformat(sep=" ")
            return f.lit(digits).cast("timestamp_ntz")
        case Kind.ZONED:
            instant = moment(value.text, Kind.ZONED).isoformat(sep=" ")
            return f.lit(f"{instant}Z").cast("timestamp")
        case Kind.DATE:
            return f.lit(value.text[:10]).cast("date")
        case Kind.TEXT | Kind.OTHER:
            return f.lit(value.text)

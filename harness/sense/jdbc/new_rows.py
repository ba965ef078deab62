"""Reads new rows of a table through Spark, for a ``preprocess_query``."""

import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from harness.errors import LookFailedError
from harness.sense.jdbc.drivers import driver_of, first_line
from harness.sense.jdbc.login import credentials
from harness.sense.jdbc.looking import SinceRows
from harness.sense.jdbc.queries import Kind, Value
from harness.sense.jdbc.values import moment
from harness.settings_connections import Database
from harness.settings_secrets import SecretResolver

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_VIEW = "sensor_new_data"
#: More rows than these are not read; the query decides over the part that was.
_MOST_ROWS = 100_000


class SparkTableRows:
    """Answers from Spark; each thread has a session of its own, to which its view belongs."""

    def __init__(self, session: "Callable[[], SparkSession]", secrets: SecretResolver) -> None:
        self._session = session
        self._secrets = secrets
        self._own = threading.local()

    def any_row(self, database: Database, rows: SinceRows, query: str) -> bool:
        """Tell whether the query over ``sensor_new_data`` returns a row.

        The query stands as a subquery, where nothing but a query is admitted.
        """
        session = self._own_session()
        return self._asked(session, lambda: self._rows(session, database, rows), query)

    def any_of(self, rows: Sequence[Mapping[str, str]], query: str) -> bool:
        """Tell whether the query over these rows, of text, returns a row."""
        session = self._own_session()
        schema = ", ".join(f"{name} string" for name in rows[0])
        values = [tuple(row.values()) for row in rows]
        return self._asked(session, lambda: session.createDataFrame(values, schema), query)

    def _asked(self, session: "SparkSession", rows: "Callable[[], DataFrame]", query: str) -> bool:
        from py4j.protocol import Py4JError, Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            rows().createOrReplaceTempView(_VIEW)
            try:
                wrapped = f"select 1 from (\n{query.strip().rstrip(';')}\n) limit 1"
                return len(session.sql(wrapped).collect()) > 0
            finally:
                session.catalog.dropTempView(_VIEW)
        except Py4JJavaError as error:
            reason = first_line(str(error.java_exception.getMessage() or error.java_exception))
            raise LookFailedError(f"its preprocess_query fails: {reason}") from None
        except (PySparkException, Py4JError) as error:
            reason = first_line(str(error))
            raise LookFailedError(f"its preprocess_query fails: {reason}") from error

    def _own_session(self) -> "SparkSession":
        own: SparkSession | None = getattr(self._own, "session", None)
        if own is None or own.sparkContext._jsc is None:
            own = self._own.session = self._session().newSession()
        return own

    def _rows(self, session: "SparkSession", database: Database, rows: SinceRows) -> "DataFrame":
        from pyspark.sql import functions as f

        reader = session.read.format("jdbc").options(
            url=database.url,
            dbtable=rows.relation,
            fetchsize=1000,
            queryTimeout=max(1, int(database.timeout_seconds)),
            # A time stamp without a zone is the same digits here as there.
            preferTimestampNTZ=True,
        )
        # Spark would ask DriverManager, which knows a driver only when Spark has used it before.
        driver = driver_of(session, database).getClass().getName()
        reader = reader.option("driver", driver)
        found = reader.options(**credentials(database, self._secrets)).load()
        if rows.start is not None:
            key, start = f.col(f"`{rows.key_name}`"), _literal(rows.start)
            new = (key >= start) | key.isNull() if rows.with_late else key > start
            found = found.where(new)
        return found.limit(_MOST_ROWS)


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

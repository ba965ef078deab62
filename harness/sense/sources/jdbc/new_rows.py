"""Gives Spark the new rows of a table, for a ``preprocess_query``."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.config.connections import Database
from harness.sense.database_queries import Answer, Kind, Queries, Query
from harness.sense.preprocess.run import SparkQuestions
from harness.sense.probe import QueryBounds
from harness.sense.sources.jdbc.compare import SinceRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: More rows than these are not read; the query decides over the part that was.
_MOST_ROWS = 100_000
#: More digits than a BIGINT is sure to hold.
_LONG_NUMBER = 19
_TYPES = {
    Kind.FLOAT: "double",
    Kind.TIME: "timestamp_ntz",
    Kind.ZONED: "timestamp",
    Kind.DATE: "date",
}


class SparkTableRows:
    """Runs queries over new rows in Spark.

    Args:
        session: Returns the Spark session.
        queries: Reads from the databases.
        bounds: What holds for a query.
    """

    def __init__(
        self,
        session: "Callable[[], SparkSession]",
        queries: Queries,
        bounds: QueryBounds | None = None,
    ) -> None:
        self._questions = SparkQuestions(session, bounds)
        self._queries = queries

    def any_row(self, database: Database, rows: SinceRows, query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
        answer = self._queries.ask(
            database, _rows_query(rows), within=database.timeout_seconds, most=_MOST_ROWS
        )
        return self._questions.any_row(lambda session: _frame(session, answer), query)

    def any_of(self, rows: Sequence[Mapping[str, str]], query: str) -> bool:
        """Return whether the query over these rows, of text, returns a row."""
        schema = ", ".join(f"{name} string" for name in rows[0])
        values = [tuple(row.values()) for row in rows]
        return self._questions.any_row(
            lambda session: session.createDataFrame(values, schema), query
        )


def _rows_query(rows: SinceRows) -> Query:
    text = f"select * from {rows.relation}"
    if rows.start is None:
        return Query((text,))
    if rows.with_late:
        return Query((f"{text} where {rows.key} >= ", rows.start, f" or {rows.key} is null"))
    return Query((f"{text} where {rows.key} > ", rows.start))


def _frame(session: "SparkSession", answer: Answer) -> "DataFrame":
    """Return rows of text in the types of Spark; what is none of its type, such as NaN, is null."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    places = range(len(answer.columns))
    schema = StructType([StructField(f"_{place}", StringType()) for place in places])
    frame = session.createDataFrame(list(answer.rows), schema)
    return frame.select(
        *(
            f.col(f"_{place}").try_cast(_type_of(answer, place)).alias(answer.columns[place].name)
            for place in places
        )
    )


def _type_of(answer: Answer, place: int) -> str:
    column = answer.columns[place]
    if column.type_name == "bool":
        return "boolean"
    if column.kind is not Kind.NUMBER:
        return _TYPES.get(column.kind, "string")
    numbers = [row[place] or "" for row in answer.rows]
    scale = max((len(each.partition(".")[2]) for each in numbers), default=0)
    if scale or any(len(each) >= _LONG_NUMBER for each in numbers):
        return f"decimal(38, {min(scale, 37)})"
    return "bigint"

"""Gives messages to Spark as rows. They come from the Kafka client, never by Spark's own reader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.sense.kafka.types import Message
from harness.sense.questions import SparkQuestions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key string, value string"
)


class SparkMessageRows:
    """Answers from Spark; safe to ask from many threads at once."""

    def __init__(self, new_rows: SparkNewRows) -> None:
        self._new_rows = new_rows

    def largest(self, topic: str, messages: Sequence[Message], column: str) -> str | None:
        """Return the largest value of a column among the messages, as text."""
        return self._new_rows.largest_among(_rows(topic, messages), column)

    def any_row(self, topic: str, messages: Sequence[Message], query: str) -> bool:
        """Tell whether the query over ``sensor_new_data`` returns a row."""
        return self._new_rows.any_row_among(_rows(topic, messages), query)


def _rows(topic: str, messages: Sequence[Message]) -> Rows:
    def in_session(session: "SparkSession") -> "DataFrame":
        rows = [
            (topic, each.partition, each.offset, each.timestamp, _text(each.key), _text(each.value))
            for each in messages
        ]
        return session.createDataFrame(rows, _SCHEMA)

    return in_session


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", errors="replace")

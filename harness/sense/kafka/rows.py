"""Gives messages to Spark as rows. They come from the Kafka client, never by Spark's own reader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.sense.kafka.types import Message
from harness.sense.questions import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key string, value string"
)


def rows_of(topic: str, messages: Sequence[Message]) -> Rows:
    """Return what makes the rows of ``sensor_new_data``; keys and values are read as UTF-8."""

    def in_session(session: "SparkSession") -> "DataFrame":
        rows = [
            (topic, each.partition, each.offset, each.timestamp, _text(each.key), _text(each.value))
            for each in messages
        ]
        return session.createDataFrame(rows, _SCHEMA)

    return in_session


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", errors="replace")

"""Reads the new messages of several topics with one consumer, and gives them to Spark as rows.

The consumer is of no group and commits nothing; Spark's own Kafka reader is not used.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka import Message as KafkaMessage

from harness.sense.preprocess.run import Rows
from harness.sense.sources.kafka.types import Message, Read, Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BATCH = 500
_POLL_SECONDS = 0.1

_READING: dict[str, Any] = {
    # It has to have a name, but the group is never used.
    "group.id": "heartbeat",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    # The end of a range that holds only markers is visible in no other way.
    "enable.partition.eof": True,
    # Where messages were deleted meanwhile, report it and start nowhere else.
    "auto.offset.reset": "error",
    # Do not wait for messages that are not there.
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 65_536,
    "queued.max.messages.kbytes": 16_384,
}
_REASONS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: (
        "the cluster does not let this user read it; grant READ on the topic"
    ),
    KafkaError._AUTO_OFFSET_RESET: "messages were deleted while they were read",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "the topic was deleted while it was read",
    KafkaError._UNKNOWN_TOPIC: "the topic was deleted while it was read",
}


def read_messages(
    configuration: Mapping[str, Any], wanted: Mapping[str, Wanted], is_late: Callable[[], bool]
) -> dict[str, Read]:
    """Read until each topic has given as many messages as wanted, or all of its ranges.

    Args:
        configuration: The settings of every client of the cluster.
        wanted: What to read, by topic.
        is_late: Returns whether to give up.
    """
    reading = {topic: _Reading(topic, each) for topic, each in wanted.items()}
    open_topics = {topic for topic, each in reading.items() if not each.is_done}
    consumer = Consumer({**configuration, **_READING})
    try:
        consumer.assign([place for topic in open_topics for place in reading[topic].places()])
        while open_topics and not is_late():
            for message in _next_messages(consumer):
                topic = message.topic()
                if topic not in open_topics:
                    continue
                reading[topic].take(message)
                if reading[topic].is_done:
                    open_topics.discard(topic)
                    consumer.pause(reading[topic].places())
    except KafkaException as error:
        for topic in open_topics:
            reading[topic].problem = error.args[0].str().rstrip(".")
    finally:
        consumer.close()
    return {topic: each.result() for topic, each in reading.items()}


def _next_messages(consumer: Consumer) -> list[KafkaMessage]:
    """Return what is there as soon as something is; a batch alone would wait until it is full."""
    first = consumer.poll(_POLL_SECONDS)
    return [] if first is None else [first, *consumer.consume(_BATCH, 0)]


class _Reading:
    """What has been read of one topic so far."""

    def __init__(self, topic: str, wanted: Wanted) -> None:
        self._topic = topic
        self._wanted = wanted
        self._messages: list[Message] = []
        self._next = {partition: span.first for partition, span in wanted.ranges.items()}
        self.problem: str | None = None

    @property
    def is_complete(self) -> bool:
        return all(self._next[each] >= span.end for each, span in self._wanted.ranges.items())

    @property
    def is_full(self) -> bool:
        return len(self._messages) >= self._wanted.most

    @property
    def is_done(self) -> bool:
        return self.is_complete or self.is_full or self.problem is not None

    def places(self) -> list[TopicPartition]:
        return [
            TopicPartition(self._topic, partition, span.first)
            for partition, span in self._wanted.ranges.items()
        ]

    def take(self, message: KafkaMessage) -> None:
        error = message.error()
        partition = message.partition()
        if self.is_done:
            return
        if error is None:
            self._take_data(message)
        elif error.code() == KafkaError._PARTITION_EOF and partition is not None:
            self._next[partition] = self._wanted.ranges[partition].end
        elif error.code() in _REASONS:
            self.problem = _REASONS[error.code()]

    def _take_data(self, message: KafkaMessage) -> None:
        partition, offset = message.partition(), message.offset()
        if partition is None or offset is None:
            return
        end = self._wanted.ranges[partition].end
        if offset < end:
            self._messages.append(_message(message, partition, offset))
        self._next[partition] = min(offset + 1, end)

    def result(self) -> Read:
        problem = self.problem
        if problem is None and not self.is_done:
            problem = "its messages do not come in time"
        return Read(
            messages=self._messages,
            next_offsets=self._next,
            is_complete=self.is_complete,
            problem=problem,
        )


def _message(message: KafkaMessage, partition: int, offset: int) -> Message:
    kind, milliseconds = message.timestamp()
    is_known = kind != TIMESTAMP_NOT_AVAILABLE
    return Message(
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        timestamp=_EPOCH + timedelta(milliseconds=milliseconds) if is_known else None,
    )


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

"""A Kafka cluster in memory: topics, partitions, transactions, and the answers of a bad day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from harness.sense.preprocess.run import Rows
from harness.sense.sources.kafka.types import Message, Place, Problem, Read, Topic, Wanted

NO_TOPIC = Problem(reason="the topic does not exist in the cluster")
WHEN = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)


@dataclass
class Partition:
    """What is at each offset: a value, or ``None`` for a marker or a hole."""

    values: list[str | None] = field(default_factory=list)
    start: int = 0
    #: Offset of the first message of an open transaction.
    open_from: int | None = None

    @property
    def end(self) -> int:
        return len(self.values) if self.open_from is None else self.open_from


class FakeKafka:
    """The broker; ``client`` makes what a probe queries."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.partitions: dict[str, list[Partition]] = {}
        self.query_messages = 10_000
        #: Places, or topics, about which there is no answer.
        self.problem: dict[Place | str, Problem] = {}
        #: Trouble of reading alone.
        self.unreadable: dict[str, str] = {}
        #: Ends reported once, instead of the true one.
        self.stale_ends: dict[Place, int] = {}
        self.asked: list[str] = []
        self._made = 0

    def create(self, topic: str, partitions: int = 1) -> None:
        self._made += 1
        self.ids[topic] = f"id-{self._made}"
        self.partitions[topic] = [Partition() for _ in range(partitions)]

    def delete(self, topic: str) -> None:
        del self.ids[topic], self.partitions[topic]

    def grow(self, topic: str) -> None:
        self.partitions[topic].append(Partition())

    def send(self, topic: str, *values: str, partition: int = 0) -> None:
        self.partitions[topic][partition].values += values

    def abort(self, topic: str) -> None:
        """Let a transaction with one message be taken back: two offsets, and nothing to read."""
        self.partitions[topic][0].values += [None, None]

    def truncate(self, topic: str, end: int) -> None:
        del self.partitions[topic][0].values[end:]

    def expire(self, topic: str, before: int) -> None:
        self.partitions[topic][0].start = before

    def connect(self, product: str) -> "FakeKafka":
        self.asked.append("connect")
        return self

    def topics(self, names: Sequence[str]) -> Mapping[str, Topic | Problem]:
        self.asked.append("topics")
        return {name: self._topic(name) for name in names}

    def _topic(self, name: str) -> Topic | Problem:
        if name in self.problem:
            return self.problem[name]
        if name not in self.ids:
            return NO_TOPIC
        return Topic(topic_id=self.ids[name], partitions=len(self.partitions[name]))

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int | Problem]:
        self.asked.append("ends")
        return {
            place: self.stale_ends.pop(place, None)
            or self.problem.pop(place, None)
            or self._partition(place).end
            for place in places
        }

    def starts(self, places: Sequence[Place]) -> Mapping[Place, int | Problem]:
        self.asked.append("starts")
        return {place: self._partition(place).start for place in places}

    def _partition(self, place: Place) -> Partition:
        return self.partitions[place.topic][place.partition]

    def read(self, wanted: Mapping[str, Wanted]) -> Mapping[str, Read]:
        self.asked.append("read")
        return {topic: self._read(topic, each) for topic, each in wanted.items()}

    def _read(self, topic: str, wanted: Wanted) -> Read:
        if topic in self.unreadable:
            return Read(problem=self.unreadable[topic])
        messages: list[Message] = []
        next_offsets = {partition: span.first for partition, span in wanted.ranges.items()}
        for partition, span in wanted.ranges.items():
            values = self.partitions[topic][partition].values
            for offset in range(span.first, span.end):
                if len(messages) == wanted.most:
                    break
                next_offsets[partition] = offset + 1
                value = values[offset]
                if value is not None:
                    messages.append(_message(partition, offset, value))
        ends = {partition: span.end for partition, span in wanted.ranges.items()}
        return Read(messages=messages, next_offsets=next_offsets, is_complete=next_offsets == ends)


def _message(partition: int, offset: int, value: str) -> Message:
    return Message(
        partition=partition, offset=offset, key=None, value=value.encode(), timestamp=WHEN
    )


class FakeQuestions:
    """Stands in for Spark: a query returns the messages that have its last word as their value."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def largest(self, rows: Rows, column: str) -> str | None:
        return max(_values(rows), default=None)

    def any_row(self, rows: Rows, query: str) -> bool:
        self.seen.append(_values(rows))
        return query.rsplit(maxsplit=1)[-1] in self.seen[-1]


class _FakeSession:
    def createDataFrame(self, rows: list[tuple[Any, ...]], schema: str) -> list[str]:
        at = [each.split()[0] for each in schema.split(", ")].index("value")
        return [row[at] for row in rows]


def _values(rows: Rows) -> list[str]:
    return rows(_FakeSession())  # type: ignore[arg-type, return-value]

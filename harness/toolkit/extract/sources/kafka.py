"""Extracts from a Kafka topic by its offsets: each message once, in bounded ranges.

Messages come by the Kafka client, through this process, and not by Spark's own reader: an extract
takes at most so many of them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.config.connections import KafkaCluster
from harness.config.secrets import EnvironmentSecrets, SecretResolver
from harness.errors import ConfigurationError, ExtractError, ProbeFailedError
from harness.sense.sources.kafka.connection import connector
from harness.sense.sources.kafka.types import Cluster, Message, Place, Problem, Range, Topic, Wanted
from harness.toolkit.extract.sources.base import Batch
from harness.toolkit.extract.target import Bronze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITION, OFFSET = "kafka_partition", "kafka_offset"
_COLUMNS = (
    f"topic string, {PARTITION} int, {OFFSET} bigint, kafka_timestamp timestamp,"
    " key binary, value binary"
)
_MOST = 100_000


def _environment() -> SecretResolver:
    return EnvironmentSecrets(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """A topic of a Kafka cluster, followed by the offsets of its partitions."""

    cluster: KafkaCluster
    topic: str
    #: At most so many messages are taken by one extract.
    most: int = _MOST
    #: Fetches the password, at each login.
    secrets: SecretResolver = field(default_factory=_environment)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.topic

    def read(self, bronze: Bronze) -> Batch | None:
        """Return the messages after the last offset that bronze has of each partition.

        Raises:
            ConfigurationError: ``most`` is less than one.
            ExtractError: The cluster does not answer, or the topic is behind bronze.
        """
        if self.most < 1:
            raise ConfigurationError(
                f"{self.name}: most is {self.most}; allowed is an integer from 1"
            )
        try:
            client = connector({"": self.cluster}, self.secrets)("")
        except ProbeFailedError as error:
            raise ExtractError(f"{self.name} cannot be read: {error}") from error
        ranges = self._ranges(bronze, client)
        if not any(each.first < each.end for each in ranges.values()):
            return None
        read = client.read({self.topic: Wanted(ranges=ranges, most=self.most)})[self.topic]
        if read.problem is not None:
            raise ExtractError(f"{self.name} cannot be read: {read.problem}")
        if not read.messages:
            # Nothing but the markers of transactions.
            return None
        return Batch(
            frame=_frame(bronze, self.topic, list(read.messages)),
            since=_as_text({partition: each.first for partition, each in ranges.items()}),
            until=_as_text(read.next_offsets),
            is_more=not read.is_complete,
        )

    def _ranges(self, bronze: Bronze, client: Cluster) -> dict[int, Range]:
        topic = self._answer(client.topics([self.topic]).get(self.topic))
        places = [Place(self.topic, number) for number in range(topic.partitions)]
        starts, ends = client.starts(places), client.ends(places)
        there = {each: (self._offset(starts[each]), self._offset(ends[each])) for each in places}
        # Of a partition that has nothing, bronze need not be queried.
        wanted = [each.partition for each, (_, end) in there.items() if end]
        consumed = bronze.newest_by(OFFSET, PARTITION, wanted)
        return {
            each.partition: self._range(bronze, each, offsets, consumed)
            for each, offsets in there.items()
        }

    def _range(
        self, bronze: Bronze, place: Place, there: tuple[int, int], consumed: Mapping[int, int]
    ) -> Range:
        first, end = there
        if place.partition not in consumed:
            return Range(first, end)
        after = consumed[place.partition] + 1
        if after > end:
            raise ExtractError(
                f"{self.name}: partition {place.partition} ends at offset {end}, and"
                f" {bronze.name} has offset {after - 1} of it; the topic was made again: extract"
                " it into another table"
            )
        if after < first:
            bronze.note(
                f"{self.name}: the offsets {after} to {first - 1} of partition {place.partition}"
                " were deleted before they were extracted"
            )
        return Range(max(after, first), end)

    def _answer(self, topic: Topic | Problem | None) -> Topic:
        if isinstance(topic, Topic):
            return topic
        raise ExtractError(f"{self.name} cannot be read: {topic.reason if topic else 'no answer'}")

    def _offset(self, answer: int | Problem) -> int:
        if isinstance(answer, Problem):
            raise ExtractError(f"{self.name} cannot be read: {answer.reason}")
        return answer


def _frame(bronze: Bronze, topic: str, messages: list[Message]) -> "DataFrame":
    rows = [
        (topic, each.partition, each.offset, each.timestamp, each.key, each.value)
        for each in messages
    ]
    return bronze.session.createDataFrame(rows, _COLUMNS)


def _as_text(offsets: Mapping[int, int]) -> str:
    return ", ".join(f"{partition}: {offset}" for partition, offset in sorted(offsets.items()))

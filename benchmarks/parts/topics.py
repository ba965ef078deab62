"""Upstreams that are topics of one Kafka broker."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.parts.place import Place
from harness.config.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
#: Topics made in one request.
TOPICS_AT_ONCE = 100
_MOST_TRIES = 300


class KafkaTopics:
    """Topics of four partitions on one broker."""

    source = Source.KAFKA
    key = ""
    probes_until_reported = 1
    usual = "a consumer of its own, asked for its partitions' offsets"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each
        self._client = {"bootstrap.servers": place.kafka, "log_level": 0}

    def topic(self, number: int) -> str:
        """Name one topic as the broker does."""
        return f"orders-{number:05d}"

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return f"shop: {self.topic(number)}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        admin = AdminClient(self._client)
        for start in range(0, self.count, TOPICS_AT_ONCE):
            some = range(start, min(start + TOPICS_AT_ONCE, self.count))
            topics = [NewTopic(self.topic(number), PARTITIONS, 1) for number in some]
            for created in admin.create_topics(topics, operation_timeout=60).values():
                created.result()
        self._wait()
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        producer = Producer({**self._client, "linger.ms": 50})
        refused = []

        def reported(error: KafkaError | None, _: object) -> None:
            if error is not None:
                refused.append(error)

        for number in numbers:
            place = {"topic": self.topic(number), "partition": number % PARTITIONS}
            producer.produce(**place, value=b"an order", on_delivery=reported)
            producer.poll(0)
        left = producer.flush(120)
        if left or refused:
            raise SystemExit(f"{left + len(refused)} messages did not arrive: {refused[:1]}")

    def _wait(self) -> None:
        """Wait until the broker leads all partitions of the topics."""
        places = {
            TopicPartition(self.topic(number), partition): OffsetSpec.latest()
            for number in range(self.count)
            for partition in range(PARTITIONS)
        }
        for _ in range(_MOST_TRIES):
            # A new one each time, since the leaders that a client has read may be out of date.
            admin = AdminClient(self._client)
            answers = admin.list_offsets(places, request_timeout=30)
            if not any(answer.exception() for answer in answers.values()):
                return
            time.sleep(1)
        raise SystemExit("the broker does not lead all of its partitions")

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to probe one of them."""

        def ask() -> None:
            consumer = Consumer({**self._client, "group.id": "usual"})
            for partition in range(PARTITIONS):
                consumer.get_watermark_offsets(TopicPartition(self.topic(number), partition))
            consumer.close()

        return ask

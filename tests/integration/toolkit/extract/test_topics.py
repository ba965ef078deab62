"""Extracts from topics of a real Kafka broker: each message once, in bounded ranges."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.errors import ConfigurationError, ExtractError
from harness.toolkit import extract
from tests.support.fake_clock import FakeClock
from tests.support.lake import LONG, Lake, day
from tests.support.services.kafka.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class Shop:
    """A topic with two partitions, and what is extracted of it."""

    def __init__(self, broker: Broker, spark: "SparkSession") -> None:
        name = f"extracted-{next(_NUMBERS)}"
        self._client = {"bootstrap.servers": broker.address, "log_level": 0}
        self.admin = AdminClient(self._client)
        self.topic = name
        self.create()
        self.lake = Lake(spark, name.replace("-", "_"))
        cluster = extract.KafkaCluster(bootstrap_servers=(broker.address,), timeout_seconds=5)
        self.source = extract.Kafka(cluster=cluster, topic=name)

    def create(self) -> None:
        done(self.admin.create_topics([NewTopic(self.topic, 2, 1)]))

    def send(self, *values: str | bytes, partition: int = 0) -> "Shop":
        producer = Producer(self._client)
        for value in values:
            producer.produce(self.topic, value, partition=partition)
        producer.flush()
        return self

    def take(self, number: int, **options: object) -> extract.Extraction:
        return self.lake.take(day(number), **{"source": self.source, **options})

    @property
    def values(self) -> list[tuple[object, ...]]:
        rows = self.lake.spark.table(self.lake.bronze).orderBy("kafka_partition", "kafka_offset")
        found = rows.select("kafka_partition", "kafka_offset", "value").collect()
        return [(row[0], row[1], bytes(row[2])) for row in found]


def done(futures: Any) -> None:
    for future in futures.values():
        future.result()


@pytest.fixture
def shop(kafka_broker: Broker, spark: "SparkSession") -> Iterator[Shop]:
    shop = Shop(kafka_broker, spark)
    yield shop
    shop.lake.drop()


def test_each_message_comes_once_with_all_its_bytes(shop: Shop) -> None:
    empty = shop.take(0)
    first = shop.send("a", b"\xff\x00").send("x", partition=1).take(1)
    nothing = shop.take(2)
    second = shop.send("b").take(3)

    assert [each.rows for each in (empty, first, nothing, second)] == [0, 3, 0, 1]
    assert (second.since, second.until) == ("0: 2, 1: 1", "0: 3, 1: 1")
    assert shop.values == [(0, 0, b"a"), (0, 1, b"\xff\x00"), (0, 2, b"b"), (1, 0, b"x")]
    assert second.notes == ()


@LONG
def test_a_partition_without_messages_for_long_does_not_begin_again(shop: Shop) -> None:
    shop.send("a").send("x", partition=1).take(0)
    shop.send("b").take(20)
    made = shop.send("c").take(21)

    assert (made.rows, made.since) == (1, "0: 2, 1: 1")
    assert len(shop.values) == 4


@LONG
def test_a_backlog_of_messages_comes_in_pieces(shop: Shop) -> None:
    shop.send(*map(str, range(7)))
    source = replace(shop.source, most=3)
    made = extract.catch_up(shop.lake.spark, source, shop.lake.bronze, clock=FakeClock(day(1)))

    assert [(each.rows, each.is_more) for each in made] == [(3, True), (3, True), (1, False)]
    assert [value for _, _, value in shop.values] == [str(n).encode() for n in range(7)]


@LONG
def test_messages_that_were_deleted_before_they_came_are_named(shop: Shop) -> None:
    shop.send("a").take(1)
    shop.send("b", "c", "d")
    done(shop.admin.delete_records([TopicPartition(shop.topic, 0, 3)]))
    made = shop.take(2)

    assert made.rows == 1
    assert "the offsets 1 to 2 of partition 0 were deleted" in made.notes[0]


@LONG
def test_what_is_wrong_with_a_topic_is_reported_in_one_sentence(shop: Shop) -> None:
    shop.send("a", "b").take(1)
    nowhere = extract.KafkaCluster(bootstrap_servers=("127.0.0.1:1",), timeout_seconds=1)
    wrong = [
        (replace(shop.source, topic="no-such"), "no-such cannot be read: the topic does not exist"),
        (replace(shop.source, cluster=nowhere), "cannot be read: none of the cluster's brokers"),
        (replace(shop.source, most=0), "most is 0; allowed is an integer from 1"),
    ]
    for source, reason in wrong:
        with pytest.raises((ConfigurationError, ExtractError), match=reason) as raised:
            shop.take(2, source=source)
        assert "\n" not in str(raised.value)
    shop.lake.spark.sql(f"update {shop.lake.bronze} set kafka_offset = 70 where kafka_offset = 1")
    with pytest.raises(ExtractError, match=r"partition 0 ends at offset 2, and .* the topic was"):
        shop.take(3)

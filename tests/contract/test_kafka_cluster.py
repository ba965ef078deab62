"""What a probe requests of a Kafka cluster: the same cases against one in memory and a real one."""

import itertools
from collections.abc import Callable
from typing import Protocol

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.config.connections import KafkaCluster
from harness.sense.sources.kafka.client import KafkaClient
from harness.sense.sources.kafka.types import Cluster, Place, Problem, Range, Topic, Wanted
from tests.support.fake_kafka import FakeKafka
from tests.support.services.kafka.broker import Broker

_NUMBERS = itertools.count()


class Side(Protocol):
    """A cluster, and what may happen in it."""

    def create(self, topic: str, partitions: int = 1) -> None: ...

    def delete(self, topic: str) -> None: ...

    def send(self, topic: str, *values: str, partition: int = 0) -> None: ...

    def abort(self, topic: str) -> None: ...

    def expire(self, topic: str, before: int) -> None: ...

    def connect(self, product: str) -> Cluster: ...


class RealKafka:
    """The broker of this test process."""

    def __init__(self, broker: Broker) -> None:
        self._address = broker.address
        self._admin = AdminClient(self._client())

    def _client(self, **more: object) -> dict[str, object]:
        return {"bootstrap.servers": self._address, "log_level": 0, **more}

    def create(self, topic: str, partitions: int = 1) -> None:
        [made] = self._admin.create_topics([NewTopic(topic, partitions, 1)]).values()
        made.result()
        places = [Place(topic, each) for each in range(partitions)]
        while any(isinstance(end, Problem) for end in self.connect("").ends(places).values()):
            pass  # its partitions get their leaders a moment later

    def delete(self, topic: str) -> None:
        [gone] = self._admin.delete_topics([topic]).values()
        gone.result()

    def send(self, topic: str, *values: str, partition: int = 0) -> None:
        producer = Producer(self._client())
        for value in values:
            producer.produce(topic, value, partition=partition)
        producer.flush()

    def abort(self, topic: str) -> None:
        producer = Producer(self._client(**{"transactional.id": topic}))
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, "taken back", partition=0)
        producer.flush()
        producer.abort_transaction()

    def expire(self, topic: str, before: int) -> None:
        [gone] = self._admin.delete_records([TopicPartition(topic, 0, before)]).values()
        gone.result()

    def connect(self, product: str) -> Cluster:
        return KafkaClient(KafkaCluster(bootstrap_servers=(self._address,)), None)


SIDES: dict[str, Callable[[pytest.FixtureRequest], Side]] = {
    "in memory": lambda _: FakeKafka(),
    "real": lambda request: RealKafka(request.getfixturevalue("kafka_broker")),
}


class Orders:
    """One topic of two partitions."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.topic = f"cluster-{next(_NUMBERS)}"
        side.create(self.topic, 2)

    def described(self) -> Topic | Problem:
        return self.side.connect("shop").topics([self.topic])[self.topic]

    def ends(self) -> list[int | Problem]:
        places = [Place(self.topic, 0), Place(self.topic, 1)]
        return [*self.side.connect("shop").ends(places).values()]

    def starts(self) -> list[int | Problem]:
        places = [Place(self.topic, 0), Place(self.topic, 1)]
        return [*self.side.connect("shop").starts(places).values()]

    def read(self, most: int = 100, **ranges: Range) -> tuple[list[str], dict[int, int], bool]:
        by_partition = {int(name[1:]): span for name, span in ranges.items()}
        wanted = {self.topic: Wanted(ranges=by_partition, most=most)}
        read = self.side.connect("shop").read(wanted)[self.topic]
        values = [(each.value or b"").decode() for each in read.messages]
        return values, dict(read.next_offsets), read.is_complete


@pytest.fixture(params=SIDES)
def orders(request: pytest.FixtureRequest) -> Orders:
    return Orders(SIDES[request.param](request))


def test_a_topic_has_an_id_and_partitions(orders: Orders) -> None:
    described = orders.described()

    assert isinstance(described, Topic)
    assert (bool(described.topic_id), described.partitions) == (True, 2)


def test_a_topic_created_again_has_another_id(orders: Orders) -> None:
    first = orders.described()
    orders.side.delete(orders.topic)
    orders.side.create(orders.topic, 2)

    assert orders.described() != first


def test_a_missing_topic_is_trouble_of_its_own(orders: Orders) -> None:
    answers = orders.side.connect("shop").topics([orders.topic, "missing"])

    assert isinstance(answers[orders.topic], Topic)
    assert answers["missing"] == Problem(reason="the topic does not exist in the cluster")


def test_an_empty_topic_starts_and_ends_at_zero(orders: Orders) -> None:
    assert (orders.starts(), orders.ends()) == ([0, 0], [0, 0])


def test_each_message_moves_the_end_of_its_partition(orders: Orders) -> None:
    orders.side.send(orders.topic, "a", "b", partition=1)

    assert orders.ends() == [0, 2]


def test_messages_that_were_deleted_move_the_start(orders: Orders) -> None:
    orders.side.send(orders.topic, "a", "b", "c")
    orders.side.expire(orders.topic, 2)

    assert (orders.starts(), orders.ends()) == ([2, 0], [3, 0])


def test_messages_are_read_up_to_the_end_of_the_range(orders: Orders) -> None:
    orders.side.send(orders.topic, "a", "b", "c", "d")

    assert orders.read(p0=Range(1, 3)) == (["b", "c"], {0: 3}, True)


def test_no_more_messages_are_read_than_requested(orders: Orders) -> None:
    orders.side.send(orders.topic, "a", "b", "c", "d")

    assert orders.read(most=2, p0=Range(0, 4)) == (["a", "b"], {0: 2}, False)


def test_messages_that_were_taken_back_are_not_read(orders: Orders) -> None:
    orders.side.send(orders.topic, "a")
    orders.side.abort(orders.topic)
    while orders.ends() != [3, 0]:  # a moment after the transaction's end
        pass

    assert orders.read(p0=Range(1, 3)) == ([], {0: 3}, True)


def test_a_range_is_left_behind_by_a_message_after_it(orders: Orders) -> None:
    orders.side.abort(orders.topic)
    while orders.ends() != [2, 0]:  # else the message may come before the transaction's end
        pass
    orders.side.send(orders.topic, "a")

    assert orders.read(p0=Range(0, 2)) == ([], {0: 2}, True)

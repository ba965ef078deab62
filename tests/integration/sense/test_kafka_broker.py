"""Kafka topics of a real broker: transactions, retention, rights, logins, and a broker that dies."""

import itertools
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from harness.config.connections import Connections, KafkaCluster
from harness.config.secrets import EnvironmentSecrets
from harness.platform.masking import masked
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.sense.registry import ProbeServices, known_sources
from harness.store.work_lists import Upstream
from tests.support.golden import AT
from tests.support.services.kafka.broker import PASSWORD, USER, Broker

_NUMBERS = itertools.count()


class Shop:
    """A topic of the broker, and repeated probes of it."""

    def __init__(self, broker: Broker, spark: "Callable[[], Any] | None" = None) -> None:
        self.broker = broker
        self.topic = f"shop-{next(_NUMBERS)}"
        self.admin = AdminClient(self.client())
        self.create()
        self.upstream = Upstream(
            upstream_id=self.topic,
            source="kafka",
            sensor_id=f"shop: {self.topic}",
            read_type="streaming",
        )
        self.spark = spark
        self.connect(bootstrap_servers=(broker.address,))

    def connect(self, secret: str = "", **options: Any) -> None:
        cluster = KafkaCluster(**{"timeout_seconds": 5, **options})
        services = ProbeServices(
            session=self.spark or no_spark,
            trigger_files_root="",
            connections=Connections(kafka={"shop": cluster}),
            secrets=EnvironmentSecrets({"SHOP_PASSWORD": secret}),
        )
        self.probe = known_sources().probes(services)["kafka"]

    def log_in(self, secret: str) -> None:
        self.connect(
            secret,
            bootstrap_servers=(self.broker.login_address,),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            user=USER,
            password="env:SHOP_PASSWORD",
        )

    def client(self, **more: object) -> dict[str, object]:
        return {"bootstrap.servers": self.broker.address, "log_level": 0, **more}

    def create(self) -> None:
        done(self.admin.create_topics([NewTopic(self.topic, 2, 1)]))

    def delete(self) -> None:
        done(self.admin.delete_topics([self.topic]))

    def send(self, *values: str, partition: int = 0) -> None:
        producer = Producer(self.client())
        for value in values:
            producer.produce(self.topic, value, key="k", partition=partition)
        producer.flush()

    def deny(self, operation: AclOperation) -> None:
        rules = [(operation, AclPermissionType.DENY)]
        if operation is AclOperation.READ:
            # A rule of any kind ends what everybody may do otherwise.
            rules.append((AclOperation.DESCRIBE, AclPermissionType.ALLOW))
            rules.append((AclOperation.WRITE, AclPermissionType.ALLOW))
        done(
            self.admin.create_acls(
                [
                    AclBinding(
                        ResourceType.TOPIC, self.topic, ResourcePatternType.LITERAL,
                        "User:ANONYMOUS", "*", operation, kind,
                    )
                    for operation, kind in rules
                ]
            )
        )  # fmt: skip

    def probe_once(self) -> ProbeResult:
        [result] = self.probe.probe([self.upstream], at=AT)
        if result.failure is None:
            self.upstream = replace(self.upstream, position=result.position)
        return result

    def reported(self) -> list[str]:
        """Return which offsets each event is about."""
        result = self.probe_once()
        assert result.failure is None, result.failure
        return [event.tags["offsets"] for event in result.events]


def done(futures: Any) -> None:
    for future in futures.values():
        future.result()


def no_spark() -> Any:
    raise AssertionError("Spark was started")


@pytest.fixture
def shop(kafka_broker: Broker) -> Shop:
    shop = Shop(kafka_broker)
    shop.send("a", "b")
    shop.probe_once()
    return shop


@pytest.fixture
def transactions(shop: Shop) -> Producer:
    producer = Producer(shop.client(**{"transactional.id": shop.topic}))
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(shop.topic, "c", partition=0)
    producer.flush()
    return producer


def test_an_open_transaction_is_nothing_new(shop: Shop, transactions: Producer) -> None:
    reported = shop.reported()
    transactions.abort_transaction()

    assert reported == []


def test_an_aborted_transaction_is_nothing_new(shop: Shop, transactions: Producer) -> None:
    transactions.abort_transaction()
    reported = shop.reported()
    while '"offsets":[4,0]' not in (shop.upstream.position or ""):  # the end moves a moment later
        reported += shop.reported()

    assert reported == []


def test_a_committed_transaction_is_reported_once(shop: Shop, transactions: Producer) -> None:
    transactions.commit_transaction()
    reported = []
    while '"offsets":[4,0]' not in (shop.upstream.position or ""):  # the end moves a moment later
        reported += shop.reported()

    assert (reported, shop.reported()) == (['{"0":[2,4]}'], [])


def test_a_message_larger_than_one_fetch_is_reported(shop: Shop) -> None:
    shop.send("x" * 900_000)

    assert "unconfirmed" not in shop.probe_once().events[0].tags


def test_retention_past_the_position_is_a_gap(shop: Shop) -> None:
    shop.send("c", "d", "e")
    done(shop.admin.delete_records([TopicPartition(shop.topic, 0, 4)]))

    result = shop.probe_once()

    assert "partition 0 before 4" in (result.gap or "")
    assert result.events[0].tags["offsets"] == '{"0":[4,5]}'


def test_a_new_partition_is_read_from_its_start(shop: Shop) -> None:
    done(shop.admin.create_partitions([NewPartitions(shop.topic, 3)]))
    shop.reported()
    shop.send("c", partition=2)

    assert shop.reported() == ['{"2":[0,1]}']


def test_a_topic_created_again_past_the_old_offsets_is_noticed(shop: Shop) -> None:
    shop.delete()
    missing = shop.probe_once().failure or ""
    shop.create()
    shop.send("a", "b", "c")

    result = shop.probe_once()

    assert "the topic does not exist in the cluster" in missing
    assert "created again" in (result.gap or "")
    assert result.events[0].tags["offsets"] == '{"0":[0,3]}'


def test_a_probe_never_creates_a_topic(shop: Shop) -> None:
    missing = replace(shop.upstream, sensor_id="shop: never-made", position=None)

    results = [shop.probe.probe([missing], at=AT)[0] for _ in range(2)]

    assert all("the topic does not exist" in (result.failure or "") for result in results)


def test_offsets_that_fell_back_are_a_gap(shop: Shop) -> None:
    cursor = (shop.upstream.position or "").replace("[2,0]", "[7,0]")
    shop.upstream = replace(shop.upstream, position=cursor)

    assert "fell back (partition 0 from 7 to 2)" in (shop.probe_once().gap or "")


def test_a_topic_that_must_not_be_seen_fails_alone(shop: Shop) -> None:
    other = Shop(shop.broker)
    other.deny(AclOperation.DESCRIBE)
    shop.send("c")

    denied, found = shop.probe.probe([other.upstream, shop.upstream], at=AT)

    assert "grant DESCRIBE on the topic" in (denied.failure or "")
    assert len(found.events) == 1


def test_a_topic_that_must_not_be_read_is_reported_as_unconfirmed(shop: Shop) -> None:
    shop.deny(AclOperation.READ)
    shop.send("c")

    assert "grant READ" in shop.probe_once().events[0].tags["unconfirmed"]


def test_a_login_with_a_secret_is_taken_and_the_secret_is_masked(shop: Shop) -> None:
    shop.log_in(PASSWORD)
    shop.send("c")

    assert shop.reported() == ['{"0":[2,3]}']
    assert masked(f"x {PASSWORD} x") == "x *** x"


def test_a_wrong_login_is_a_failure_that_states_the_reason(shop: Shop) -> None:
    shop.log_in("wrong")

    assert "refuses the login" in (shop.probe_once().failure or "")


def test_a_secret_that_is_not_set_is_a_failure_that_names_it(shop: Shop) -> None:
    shop.log_in("")

    assert "env:SHOP_PASSWORD is not set" in (shop.probe_once().failure or "")


# The broker


@pytest.fixture
def killed(shop: Shop) -> Iterator[Shop]:
    """A topic with new data that no probe has seen, on a broker that was killed."""
    shop.send("c")
    shop.broker.kill()
    yield shop
    shop.broker.start_again()


def test_a_killed_broker_is_a_failure_and_after_its_start_the_new_data_is_reported(
    killed: Shop,
) -> None:
    failure = killed.probe_once().failure or ""
    killed.broker.start()
    killed.send("d", partition=1)

    assert "brokers can be reached" in failure
    assert killed.reported() == ['{"0":[2,3],"1":[0,1]}']
    assert killed.reported() == []


@pytest.fixture
def silent_port() -> Iterator[str]:
    """A port that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_never_answers_is_a_failure_within_its_limit(
    shop: Shop, silent_port: str
) -> None:
    shop.connect(bootstrap_servers=(silent_port,), timeout_seconds=1)
    probe_pool = ProbePool({"kafka": shop.probe}, deadline_seconds=30)

    [result] = probe_pool.probe_all([shop.upstream], at=AT)

    assert result.failure == (
        f"The Kafka topic {shop.upstream.sensor_id} cannot be sensed: the cluster does not answer"
        " within 1 s."
    )


# Queries


def test_a_query_sees_keys_values_and_where_they_stood(kafka_broker: Broker, spark: Any) -> None:
    shop = Shop(kafka_broker, lambda: spark)
    shop.send("old")
    shop.probe_once()
    query = (
        "select 1 from sensor_new_data where ?upstream_key = 'ü' and key = 'k' and partition = 1"
        f" and offset = 0 and topic = '{shop.topic}' and timestamp > current_timestamp() - interval"
        " 1 hour and (select count(*) from sensor_new_data) = 2"
    )
    shop.upstream = replace(shop.upstream, preprocess_query=query, upstream_key="value")
    shop.send("ü", "b", partition=1)

    assert shop.reported() == ['{"1":[0,2]}']

"""A topic of a real broker, that several tests share and each of them may freeze."""

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.config.connections import Connections, KafkaCluster
from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources
from tests.support.services.kafka.broker import Broker

_NUMBERS = itertools.count()


class KafkaTopic:
    """A topic of two partitions; what takes it away is a broker that answers nobody."""

    source = "kafka"
    options: Mapping[str, str] = {}
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where value like 'order %'",
        "select * from sensor_new_data where value = 'nothing'",
    )
    missing_id = "shop: missing"

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        self._broker: Broker = request.getfixturevalue("kafka_broker")
        request.addfinalizer(self._broker.thaw)
        self._request = request
        self._topic = f"orders-{next(_NUMBERS)}"
        self._messages = 0
        self.sensor_id = f"shop: {self._topic}"

    def probe(self) -> Probe:
        cluster = KafkaCluster(bootstrap_servers=(self._broker.address,), timeout_seconds=1)
        services = ProbeServices(
            session=lambda: self._request.getfixturevalue("spark"),
            trigger_files_root="",
            connections=Connections(kafka={"shop": cluster}),
        )
        return known_sources().probes(services)[self.source]

    def create(self) -> None:
        admin = AdminClient(self._client())
        [created] = admin.create_topics([NewTopic(self._topic, 2, 1)]).values()
        created.result()

    def add(self) -> None:
        producer = Producer(self._client())
        producer.produce(self._topic, f"order {self._messages}", partition=self._messages % 2)
        producer.flush()
        self._messages += 1

    def take_away(self) -> None:
        self._broker.freeze()

    def bring_back(self) -> None:
        self._broker.thaw()

    def _client(self) -> dict[str, object]:
        return {"bootstrap.servers": self._broker.address, "log_level": 0}

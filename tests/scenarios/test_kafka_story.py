"""A job that waits for a Kafka topic, on a broker that dies and comes back, tick by tick."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.tick.report import TickReport
from tests.scenarios.conftest import Story
from tests.support.services.kafka.broker import PASSWORD, USER, Broker

pytestmark = pytest.mark.long

TOPIC = "my_product: my.topic"
CONFIGURATION = """
connections:
  kafka:
    my_product:
      bootstrap_servers: {address}
      security_protocol: SASL_PLAINTEXT
      sasl_mechanism: PLAIN
      user: {user}
      password: env:STORY_PASSWORD
      timeout_seconds: 1
"""


@pytest.fixture
def broker(story: Story, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Broker]:
    """The broker, with the topic, in the configuration of the story."""
    monkeypatch.setenv("STORY_PASSWORD", PASSWORD)
    file = story.home.project / "heartbeat.yml"
    others = file.read_text()
    connection = CONFIGURATION.format(address=kafka_broker.login_address, user=USER)
    file.write_text(others + connection)
    admin = AdminClient({"bootstrap.servers": kafka_broker.address, "log_level": 0})
    [made] = admin.create_topics([NewTopic("my.topic", 2, 1)]).values()
    made.result()
    story.restart()
    yield kafka_broker
    kafka_broker.thaw()
    file.write_text(others)
    [gone] = admin.delete_topics(["my.topic"]).values()
    gone.result()


def send(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce("my.topic", "an order")
    producer.flush()


def first_answered(story: Story) -> TickReport:
    """Tick until the cluster answers: its controller may lock out a broker that has just been thawed."""
    for _ in range(10):
        report = story.tick()
        if not report.failures and not report.sensed.deferred:
            break
        assert story.started(report) == []
    return report


def test_a_topic_starts_its_job_and_a_silent_broker_holds_up_nothing_else(
    story: Story, broker: Broker
) -> None:
    listener, other = story.job(1), story.job(2)
    flights = story.table("flights")
    story.control(TOPIC, listener, sensor_source="kafka")
    story.control(flights, other)
    story.tick()
    story.end(other)
    send(broker)

    assert story.started(story.tick()) == [listener]
    story.end(listener)

    send(broker)
    broker.freeze()
    story.append(flights)
    silent = story.tick()
    assert story.started(silent) == [other]
    assert [result.failure for result in silent.results if result.failure] == [
        f"The Kafka topic {TOPIC} cannot be sensed: the cluster does not answer within 1 s."
    ]

    broker.thaw()
    story.restart()
    assert story.started(first_answered(story)) == [listener]

"""A broker and a database that hang, while Heartbeat ticks on, tick by tick."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from harness.tick.report import TickReport
from tests.scenarios.conftest import Story
from tests.support.services.databases import Writer
from tests.support.services.kafka.broker import Broker
from tests.support.services.postgres import Postgres

pytestmark = pytest.mark.long

TOPIC, TABLE = "hanging: orders.placed", "hanging: hanging.orders"
CONFIGURATION = """
connections:
  kafka:
    hanging: {{bootstrap_servers: "{address}", timeout_seconds: 1}}
  jdbc:
    hanging: {{url: "{url}", timeout_seconds: 1}}
"""
SENTENCES = {
    TOPIC: f"The Kafka topic {TOPIC} cannot be sensed: the cluster does not answer within 1 s.",
    TABLE: f"jdbc {TABLE} cannot be sensed: the database did not answer in time",
}


class Systems:
    """A topic and a table, each in a real system that can be made to hang."""

    def __init__(self, broker: Broker, postgres: Postgres, writer: Writer) -> None:
        self._broker, self._postgres, self._writer = broker, postgres, writer
        self._rows = 0
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        [made] = admin.create_topics([NewTopic("orders.placed", 2, 1)]).values()
        made.result()
        writer.run("create schema hanging", "create table hanging.orders (id int)")

    def hang(self) -> None:
        self._broker.freeze()
        self._postgres.freeze()

    def go_on(self) -> None:
        self._postgres.thaw()
        self._broker.thaw()

    @property
    def all_hang(self) -> bool:
        return self._broker.is_frozen and self._postgres.is_frozen

    def add(self) -> None:
        self._rows += 1
        producer = Producer({"bootstrap.servers": self._broker.address, "log_level": 0})
        producer.produce("orders.placed", "an order")
        assert producer.flush(30) == 0
        self._writer.run(f"insert into hanging.orders values ({self._rows})")

    def remove(self) -> None:
        self.go_on()
        self._writer.run("drop schema hanging cascade").close()
        admin = AdminClient({"bootstrap.servers": self._broker.address, "log_level": 0})
        [gone] = admin.delete_topics(["orders.placed"]).values()
        gone.result()


@pytest.fixture
def systems(story: Story, kafka_broker: Broker, postgres: Postgres) -> Iterator[Systems]:
    """Both systems, named in the configuration of the story."""
    file = story.home.project / "heartbeat.yml"
    others = file.read_text()
    connections = CONFIGURATION.format(address=kafka_broker.address, url=postgres.url)
    file.write_text(others + connections)
    systems = Systems(kafka_broker, postgres, Writer(postgres.url))
    story.restart()
    try:
        yield systems
    finally:
        systems.remove()
        file.write_text(others)


def failures(report: TickReport) -> dict[str, str]:
    names = {each.upstream_id: each.sensor_id for each in report.sensed.upstreams}
    return {names[result.upstream_id]: result.failure or "" for result in report.failures}


def names_put_off(report: TickReport) -> set[str]:
    names = {each.upstream_id: each.sensor_id for each in report.sensed.upstreams}
    return {names[each.upstream_id] for each in report.sensed.deferred}


def test_systems_that_hang_hold_up_nothing_else_and_what_came_meanwhile_is_found_once(
    story: Story, systems: Systems
) -> None:
    by_topic, by_table, by_delta, by_trigger = map(story.job, range(1, 5))
    flights = story.table("flights")
    triggers = Path(story.context.settings.trigger_root, f"go-{story.number}")
    triggers.mkdir()
    story.control(TOPIC, by_topic, sensor_source="kafka")
    story.control(TABLE, by_table, sensor_source="jdbc", upstream_key="id")
    story.control(flights, by_delta)
    story.control(triggers.name, by_trigger, sensor_source="trigger_file")
    assert story.started(story.tick()) == [by_delta]
    story.end(by_delta)

    systems.hang()
    for number in range(3):
        story.append(flights)
        (triggers / f"go-{number}").touch()
        hanging = story.tick()
        assert systems.all_hang
        assert story.started(hanging) == [by_delta, by_trigger]
        reported = failures(hanging)
        assert reported.keys() == {TOPIC, TABLE}
        assert all(reported[name].startswith(SENTENCES[name]) for name in reported), reported
        story.end(by_delta)
        story.end(by_trigger)

    story.restart()
    story.append(flights)
    quick = story.tick(minutes=0.5)
    assert systems.all_hang
    assert (story.started(quick), failures(quick)) == ([by_delta], {})
    assert names_put_off(quick) == {TOPIC, TABLE}
    story.end(by_delta)

    systems.go_on()
    systems.add()
    early = story.tick(minutes=0.5)
    assert (early.event_count, names_put_off(early)) == (0, {TOPIC, TABLE})
    found = story.tick()
    assert story.started(found) == [by_topic, by_table]
    assert (found.event_count, found.sensed.deferred) == (2, ())
    story.end(by_topic)
    story.end(by_table)
    assert story.tick().event_count == 0
    probes = story.context.store.read("ledger_probes")
    failed = [row["upstream_id"] for row in probes if row["outcome"] == "failed"]
    assert sum("hanging.orders" in str(each) for each in failed) == 1

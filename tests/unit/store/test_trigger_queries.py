"""What people are shown of triggers, from the tables alone."""

from collections.abc import Mapping

import pytest

from harness.errors import ConfigurationError
from harness.platform.format import upstream_name
from harness.store.queries import find_sensor, recorded_jobs
from harness.store.rows import Ledger
from harness.store.trigger_queries import failing_triggers, triggers_as_controls, waiting_in
from tests.support.ledgers import TEN, minutes, probe
from tests.support.memory_store import MemoryStore

DAILY: Mapping[str, object] = {
    "trigger_id": "daily",
    "job_id": " 7",
    "job_name": "reports ",
    "table": "sales.orders",
    "dependency_flag": None,
    "trigger_state": "paused",
}


@pytest.fixture
def store() -> MemoryStore:
    kept = MemoryStore()
    weekly = {**DAILY, "trigger_id": "weekly", "job_id": "8", "dependency_flag": "false"}
    kept.replace("event_triggers", [DAILY, {**DAILY, "table": "sales.returns"}, weekly])
    return kept


def test_a_trigger_of_several_tables_is_one_dependency_of_its_job(store: MemoryStore) -> None:
    (daily,) = triggers_as_controls(store, 7)
    assert (daily["upstream_id"], daily["job_name"]) == ("trigger:daily", "reports")
    assert (daily["dependency_flag"], daily["job_state"]) == ("TRUE", "PAUSED")
    assert [row["sensor_id"] for row in triggers_as_controls(store)] == ["daily", "weekly"]


def test_a_job_that_only_a_trigger_names_is_known_by_its_name(store: MemoryStore) -> None:
    assert recorded_jobs(store) == {7: "reports", 8: "reports"}
    assert recorded_jobs(MemoryStore()) == {}


def test_a_job_on_its_own_schedule_senses_a_trigger_by_its_id(store: MemoryStore) -> None:
    sensor = find_sensor(store, "daily")
    assert (sensor.upstream_id, sensor.job_id, sensor.is_paused) == ("trigger:daily", 7, True)
    assert find_sensor(store, "trigger:weekly_8").job_id == 8
    with pytest.raises(ConfigurationError):
        find_sensor(store, "daily", job="8")


def test_an_open_slot_states_what_it_waits_for() -> None:
    place = (
        '{"waiting":["2026-03-01T06:00:00Z","2026-03-02T06:00:00Z"],'
        '"missing":[["partition a of t","partition b of u"],[]]}'
    )
    assert [each.in_words for each in waiting_in(place)] == [
        "slot 2026-03-01T06:00:00Z waits for partition a of t and partition b of u",
        "slot 2026-03-02T06:00:00Z has all it needs and waits for the run before it",
    ]
    assert waiting_in(None) == waiting_in('{"opened_through":null,"looked_through":3}') == ()


def test_a_trigger_is_shown_by_its_own_name() -> None:
    assert upstream_name("trigger:daily") == "trigger daily"


def test_a_trigger_that_cannot_be_evaluated_is_shown_until_it_recovers_or_leaves_the_seed(
    store: MemoryStore,
) -> None:
    failed = {"failing_since": TEN, "reason": "unknown time zone"}
    store.replace(
        "upstream_state",
        [
            {"upstream_id": "trigger:daily", "tick_number": 3, **failed},
            {"upstream_id": "trigger:gone", "tick_number": 3, **failed},
            {"upstream_id": "trigger:weekly", "tick_number": 3, **failed},
            {"upstream_id": "kafka:topic", "tick_number": 3, **failed},
        ],
    )
    store.append(Ledger.PROBES, [probe(5, minutes(5), "trigger:weekly")])
    (found,) = failing_triggers(store, 4)
    assert (found.trigger_id, found.since, found.reason) == (
        "daily",
        TEN,
        "unknown time zone",
    )

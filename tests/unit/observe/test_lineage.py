"""OpenLineage: each start and end of a run once or more, never lost, in the client's own model."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from openlineage.client.serde import Serde

from harness.config.observing import DatasetFormat, Lineage
from harness.errors import DecideError
from harness.events.event import TableFormat
from harness.observe.delivery import Result
from harness.observe.lineage import (
    LineageOfRuns,
    Target,
    dataset_of,
    events_of_step,
    inputs_of,
    load_progress,
    run_uuid,
)
from harness.observe.send_lineage import event_of, send
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Tick
from harness.tick.report import TickReport
from tests.support.ledgers import CUSTOMERS, ORDERS, FakeStore, event, minutes, run
from tests.support.small_world import SmallWorld
from tests.unit.observe.test_notify import FakeDelivery

DEFAULT = Lineage(file="lineage.jsonl")
HTTP_AND_FILE = "{url: http://127.0.0.1:1, file: lineage.jsonl}"


def step(number: int, status: RunStatus, at: int = 20, tick: int = 3, **changed: object) -> Run:
    """A step of the run with the idempotency token ``t``; `minutes(10)` is when it was decided."""
    fields = {"decided_at": minutes(10), "started_at": minutes(11), "run_id": 7, **changed}
    return run(tick, number, minutes(at), status, **fields)


def started(number: int = 1, tick: int = 3, **changed: object) -> Run:
    return step(number, RunStatus.STARTED, tick=tick, reported_by="answer", **changed)


def ledgers(*runs: Run) -> FakeStore:
    store = FakeStore()
    store.append(Ledger.EVENTS, [event(1, minutes(1), ORDERS, "5")])
    store.append(Ledger.RUNS, runs)
    return store


def kinds(events: Sequence[Mapping[str, object]]) -> list[object]:
    return [each["type"] for each in events]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (RunStatus.SUCCEEDED, ["COMPLETE"]),
        (RunStatus.FAILED, ["FAIL"]),
        (RunStatus.TIMED_OUT, ["FAIL"]),
        (RunStatus.LOST, ["FAIL"]),
        (RunStatus.CANCELED, ["ABORT"]),
        (RunStatus.SKIPPED, ["ABORT"]),
        (RunStatus.INTENDED, []),
        (RunStatus.PARKED, []),
        (RunStatus.RETRY_REQUESTED, []),
        (RunStatus.RELEASED, []),
        (RunStatus.SUCCEEDED_ELSEWHERE, []),
    ],
)
def test_a_step_of_a_run_is_an_event_of_its_type(status: RunStatus, kind: list[str]) -> None:
    one = step(2, status, reported_by="poll", ended_at=minutes(20))
    assert kinds(events_of_step(one, DEFAULT, ledgers(started(), one))) == kind


def test_a_poll_of_a_run_that_goes_on_is_no_second_start() -> None:
    polled = step(2, RunStatus.STARTED, reported_by="poll")
    store = ledgers(started(), polled)
    assert kinds(events_of_step(started(), DEFAULT, store)) == ["START"]
    assert kinds(events_of_step(polled, DEFAULT, store)) == ["RUNNING"]


def test_a_refused_start_has_a_start_and_a_failure() -> None:
    refused = step(1, RunStatus.REFUSED, reported_by="answer", run_id=None, message="no such job")
    events = events_of_step(refused, DEFAULT, ledgers(refused))
    assert kinds(events) == ["START", "FAIL"]
    assert [each["error"] for each in events] == [None, "no such job"]


def test_a_run_that_has_reported_both_has_one_start() -> None:
    acquired = step(1, RunStatus.ACQUIRED, reported_by="job", run_id=None)
    processed = step(2, RunStatus.SUCCEEDED, reported_by="job", run_id=None)
    store = ledgers(acquired, processed)
    found = [each for one in (acquired, processed) for each in events_of_step(one, DEFAULT, store)]
    assert kinds(found) == ["START", "COMPLETE"]


def test_the_start_of_another_attempt_is_not_that_of_this_one() -> None:
    refused = step(3, RunStatus.REFUSED, reported_by="answer", attempt=2, token="u")
    events = events_of_step(refused, DEFAULT, ledgers(started(), refused))
    assert kinds(events) == ["START", "FAIL"]


def test_every_step_of_a_run_has_one_id_and_every_attempt_another() -> None:
    ended = step(2, RunStatus.SUCCEEDED, tick=9)
    assert run_uuid(started()) == run_uuid(ended)
    assert run_uuid(started()) != run_uuid(started(attempt=2, token="u"))


def test_an_event_is_valid_in_the_clients_own_model_with_its_inputs() -> None:
    failed = step(2, RunStatus.FAILED, reported_by="poll", ended_at=minutes(20), message="boom")
    [content] = events_of_step(failed, DEFAULT, ledgers(started(), failed))
    found = Serde.to_dict(event_of(json.loads(json.dumps(content))))
    assert (found["eventType"], found["eventTime"]) == ("FAIL", "2026-03-01T10:20:00Z")
    assert found["run"]["runId"] == str(run_uuid(failed))
    assert found["run"]["facets"]["errorMessage"]["message"] == "boom"
    assert found["run"]["facets"]["heartbeat_run"]["jobRunId"] == "7"
    assert found["run"]["facets"]["heartbeat_run"]["dataChangeEvents"][0]["event_id"] == "e1"
    assert (found["job"]["namespace"], found["job"]["name"]) == ("heartbeat", "daily-revenue")
    [dataset] = found["inputs"]
    assert (dataset["namespace"], dataset["name"]) == ("heartbeat", "sales.orders")
    assert dataset["facets"]["version"]["datasetVersion"] == "5"


def test_the_events_that_a_run_was_passed_are_not_read_again() -> None:
    passed = json.dumps([{"table": "a.b", "table_format": "DELTA", "snapshot_id": "9"}])
    one = started(parameters=json.dumps({"heartbeat_events": passed}))
    [content] = events_of_step(one, DEFAULT, FakeStore())
    assert [each["name"] for each in content["inputs"]] == ["a.b"]  # type: ignore[attr-defined]


def test_the_events_of_a_run_that_was_passed_a_file_are_read_from_the_ledger() -> None:
    passed = json.dumps({"events_file": "/gone.json"})
    one = started(parameters=json.dumps({"heartbeat_events": passed}))
    [content] = events_of_step(one, DEFAULT, ledgers(one))
    assert [each["name"] for each in content["inputs"]] == ["sales.orders"]  # type: ignore[attr-defined]


def test_many_events_of_a_table_are_one_input_at_its_newest_version() -> None:
    changes = [
        {"table": "a.b", "table_format": "DELTA", "snapshot_id": str(number)}
        for number in range(1000)
    ]
    assert inputs_of(changes, DEFAULT) == [
        {"namespace": "heartbeat", "name": "a.b", "version": "999"}
    ]
    passed = json.dumps({"heartbeat_events": json.dumps(changes)})
    [content] = events_of_step(started(parameters=passed), DEFAULT, FakeStore())
    facts = content["facts"]
    assert isinstance(facts, dict) and len(facts["dataChangeEvents"]) == 100


@pytest.mark.parametrize(
    ("table", "table_format", "dataset"),
    [
        ("s3://lake/sales/orders/", "DELTA", ("s3://lake", "sales/orders")),
        ("abfss://c@a.dfs.core.windows.net/x", "DELTA", ("abfss://c@a.dfs.core.windows.net", "x")),
        ("file:///lake/orders", "FILE", ("file", "lake/orders")),
        ("/lake/orders", "DELTA", ("file", "/lake/orders")),
        ("sales.orders", "ICEBERG", ("heartbeat", "sales.orders")),
        ("shop: orders", "KAFKA", ("kafka://broker:9092", "shop: orders")),
        ("a\nb", "JDBC", ("heartbeat", r"a\nb")),
    ],
)
def test_a_dataset_is_named_as_other_producers_name_it(
    table: str, table_format: str, dataset: tuple[str, str]
) -> None:
    settings = Lineage.model_validate({"datasets": {"kafka": "kafka://broker:9092"}})
    assert dataset_of(table, table_format, settings) == dataset


def test_every_table_format_can_have_a_namespace() -> None:
    assert set(get_args(DatasetFormat)) == {each.value.lower() for each in TableFormat}


@dataclass
class Outside:
    """The targets: each takes what it is sent, as far as it is set to."""

    requests: list[Mapping[str, Any]] = field(default_factory=list)
    deliveries: list[FakeDelivery] = field(default_factory=list)
    #: How many events the HTTP target takes before it refuses; nothing: all of them.
    takes: int | None = None
    hangs: bool = False

    def begin(self, request: Mapping[str, object], seconds: float) -> FakeDelivery:
        kept = json.loads(json.dumps(request))
        self.requests.append(kept)
        result = Result(delivered=len(kept["events"]))
        if self.takes is not None and kept["transport"]["type"] == "http":
            result = Result(delivered=self.takes, reason="503 Service Unavailable")
        delivery = FakeDelivery(None if self.hangs else result)
        self.deliveries.append(delivery)
        return delivery

    def sent_to(self, target: str) -> list[list[str]]:
        return [
            [each["type"] for each in request["events"]]
            for request in self.requests
            if request["transport"]["type"] == target
        ]


class World(SmallWorld):
    """Ticks of processes of their own over one ledger of runs."""

    def __init__(self, project: Path, lineage: str = "{file: lineage.jsonl}") -> None:
        super().__init__(project)
        (project / "heartbeat.yml").write_text(f"lineage: {lineage}\n")
        self.outside = Outside()
        self.number = 1

    def process(self, *, is_resident: bool = False) -> LineageOfRuns:
        context = self.context()
        context.is_resident = is_resident
        return LineageOfRuns(context, self.outside.begin)

    def tick(
        self, *rows: Run, process: LineageOfRuns | None = None, dies: bool = False
    ) -> Sequence[object]:
        """A minute passes; a tick records rows, and a process sends what it finds."""
        self.clock.sleep(60)
        before = len(self.outside.requests)
        number = self.number + 1
        self.number = number if rows else self.number
        numbered = [
            replace(row, tick_number=number, step_number=place) for place, row in enumerate(rows)
        ]
        self.store.append(Ledger.RUNS, numbered)
        if not dies:
            at = Tick(number=number, at=self.clock.now())
            (process or self.process()).after(TickReport(tick=at, started=tuple(numbered)))
        sent = self.outside.requests[before:]
        return [each["type"] for request in sent for each in request["events"]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


ENDED = step(2, RunStatus.SUCCEEDED, reported_by="poll", ended_at=minutes(20))


def test_each_start_and_end_is_sent_once_and_idle_ticks_send_nothing(world: World) -> None:
    ticks = [world.tick(), world.tick(started()), world.tick(), world.tick(ENDED), world.tick()]
    assert ticks == [[], ["START"], [], ["COMPLETE"], []]


def test_what_was_before_the_configuration_is_not_sent(world: World) -> None:
    world.tick(started(), dies=True)
    assert world.tick(ENDED) == ["COMPLETE"]


def test_the_steps_of_a_tick_that_died_are_sent_by_the_next_one(world: World) -> None:
    world.tick()
    world.tick(started(), dies=True)
    assert world.tick() == ["START"]


def test_the_steps_of_a_tick_that_failed_are_sent_by_the_next_one_of_the_process(
    world: World,
) -> None:
    resident = world.process(is_resident=True)
    world.tick(process=resident)
    world.tick(started(), dies=True)
    resident.failed(DecideError("dbt did not succeed"))
    assert world.tick(process=resident) == ["START"]


def test_a_process_that_dies_before_it_records_sends_again(world: World) -> None:
    world.tick()
    world.outside.hangs = True
    assert world.tick(started()) == ["START"]
    world.outside.hangs = False
    assert [world.tick(), world.tick()] == [["START"], []]


def test_a_target_that_fails_gets_later_what_it_missed_and_the_other_gets_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path, HTTP_AND_FILE)
    world.tick()
    world.outside.takes = 0
    with caplog.at_level(logging.WARNING):
        world.tick(started())
        world.tick(ENDED)
        world.outside.takes = None
        world.tick()
        world.tick()
    assert world.outside.sent_to("file") == [["START"], ["COMPLETE"]]
    assert world.outside.sent_to("http") == [
        ["START"],
        ["START", "COMPLETE"],
        ["START", "COMPLETE"],
    ]
    assert [each.message for each in caplog.records] == [
        "lineage: events to the http target were not sent (503 Service Unavailable); the next"
        " ticks try again",
        "lineage: the http target accepts events again, after 2m",
    ]


def test_a_target_goes_on_after_the_last_event_that_it_has_taken(tmp_path: Path) -> None:
    world = World(tmp_path, HTTP_AND_FILE)
    world.tick()
    world.outside.takes = 1
    world.tick(started(), ENDED)
    world.outside.takes = None
    world.tick()
    assert world.outside.sent_to("http") == [["START", "COMPLETE"], ["COMPLETE"]]


def test_a_step_of_two_events_is_sent_again_as_long_as_one_of_them_is_missing(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, HTTP_AND_FILE)
    world.tick()
    world.outside.takes = 1
    world.tick(step(1, RunStatus.REFUSED, reported_by="answer"))
    world.outside.takes = None
    world.tick()
    assert world.outside.sent_to("http") == [["START", "FAIL"]] * 2


def test_a_key_that_is_missing_keeps_only_its_own_target_waiting(tmp_path: Path) -> None:
    keyed = "{url: http://127.0.0.1:1, api_key: env:HEARTBEAT_NO_KEY, file: lineage.jsonl}"
    world = World(tmp_path, keyed)
    world.tick()
    assert world.tick(started()) == ["START"]
    assert load_progress(world.home.lineage)[Target.HTTP].failing_since is not None


def test_a_target_that_is_down_is_not_tried_by_each_tick_of_a_resident_process(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, "{url: http://127.0.0.1:1}")
    resident, world.outside.takes = world.process(is_resident=True), 0
    world.tick(process=resident)
    world.tick(started(), process=resident)
    before = len(world.outside.requests)
    world.clock.sleep(-59)
    for _ in range(10):
        world.clock.sleep(-58)
        world.tick(process=resident)
    assert len(world.outside.requests) == before


def test_steps_that_come_while_a_delivery_is_under_way_follow_it(world: World) -> None:
    resident = world.process(is_resident=True)
    world.tick(process=resident)
    world.outside.hangs = True
    assert world.tick(started(), process=resident) == ["START"]
    assert world.tick(ENDED, process=resident) == []
    world.outside.hangs = False
    world.outside.deliveries[-1].result = Result(delivered=1)
    assert world.tick(process=resident) == ["COMPLETE"]


def test_a_great_backlog_is_sent_in_parts(world: World) -> None:
    world.tick()
    many = [started(job_id=number, intent_id=str(number)) for number in range(1100)]
    world.tick(*many, dies=True)
    assert [len(world.tick()) for _ in range(4)] == [500, 500, 100, 0]


def test_without_the_library_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    delivered, reason = send({"transport": {}, "events": []})
    assert delivered == 0
    assert reason == ("the package openlineage-python is missing; pip install 'heartbeat[lineage]'")


def test_a_broken_file_means_that_lineage_begins_now(world: World) -> None:
    world.tick()
    world.home.lineage.write_text("{}")
    world.tick(started(), dies=True)
    assert world.tick(ENDED) == ["COMPLETE"]


def test_two_upstreams_are_two_inputs() -> None:
    store = ledgers()
    store.append(Ledger.EVENTS, [event(2, minutes(2), CUSTOMERS, "8")])
    taken = tuple(
        Consumed(upstream_id=each, from_tick=0, through_tick=2) for each in (ORDERS, CUSTOMERS)
    )
    [content] = events_of_step(started(consumed=taken, event_ids=("e1", "e2")), DEFAULT, store)
    names = [each["name"] for each in content["inputs"]]  # type: ignore[attr-defined]
    assert sorted(names) == ["sales.customers", "sales.orders"]

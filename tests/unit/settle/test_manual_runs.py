"""The success of runs that somebody started by hand, as they report it: without Spark and dbt."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from harness.events.event import EventRow, Operation, TableFormat
from harness.fire.submit import Steps
from harness.fire.token import TOKEN_PARAMETER
from harness.platform.databricks.api import Outcome
from harness.settle.manual_runs import ManualRuns, apply, reports_in
from harness.store.inbox import Message, MessageKind
from harness.store.rows import (
    Consumed,
    ControlChangeRow,
    Ledger,
    ProbeOutcome,
    ProbeRow,
    RunStatus,
    Tick,
)
from harness.store.work_lists import EVENT_TRIGGER, Upstream
from harness.tick.state import TickState
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.following import JOB, firing_of, intended
from tests.support.memory_store import MemoryStore
from tests.support.watched import NEVER_SEEN

#: When the run begins; events come before and after.
BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_BEFORE = BEGAN - timedelta(hours=1)
AT = BEGAN + timedelta(hours=1)
TRIGGER = replace(NEVER_SEEN, upstream_id="event_trigger:t", source=EVENT_TRIGGER, job_ids=(JOB,))


class World:
    """A job of two rows, one of them paused, with events that wait; ticks 1 to 3 are over."""

    def __init__(self) -> None:
        self.clock = FakeClock(BEGAN)
        self.jobs = FakeJobs(clock=self.clock)
        self.jobs.add_job(JOB)
        self.store = MemoryStore((*Ledger, "dependency_state"))
        self.store.append(Ledger.CONTROLS, [control("u"), control("paused", "PAUSED")])
        self.upstreams: tuple[Upstream, ...] = ()

    def event(self, tick: int, at: datetime, upstream: str = "u") -> None:
        self.store.append(Ledger.EVENTS, [event(tick, at, upstream)])
        self.store.append(Ledger.PROBES, [probe(tick, upstream)])

    def run(self, outcome: Outcome | None = Outcome.SUCCEEDED) -> int:
        run_id = self.jobs.start_by_hand(JOB)
        self.clock.sleep(60)
        if outcome is not None:
            self.jobs.end_run(run_id, outcome)
        return run_id

    def apply(self, *messages: Message, at: datetime = AT) -> ManualRuns:
        firing = firing_of(self.jobs, at=at, store=self.store)
        tick = Tick(number=4, at=at)
        return apply(messages, self.state, tick=tick, steps=Steps(), firing=firing)

    @property
    def state(self) -> TickState:
        return TickState(
            tick_number=3,
            tick_at=BEGAN,
            folded_through=-1,
            upstreams=self.upstreams,
            runs=(),
            controls_checksum=None,
            ended_tick_number=3,
            must_decide=False,
        )


def control(upstream: str, job_state: str = "UNPAUSED") -> ControlChangeRow:
    return ControlChangeRow(
        tick_number=1,
        recorded_at=LONG_BEFORE,
        control_id=f"{upstream}_{JOB}",
        change="added",
        upstream_id=upstream,
        sensor_source="delta_table",
        sensor_id=upstream,
        sensor_read_type="batch",
        asset_description=None,
        upstream_key=None,
        preprocess_query=None,
        job_id=JOB,
        job_name="daily",
        job_state=job_state,
        dependency_flag="TRUE",
    )


def event(tick: int, at: datetime, upstream: str) -> EventRow:
    return EventRow(
        tick_number=tick,
        event_ts=int(at.timestamp() * 1000),
        event_id=f"{upstream}-{tick}-{at:%H%M}",
        upstream_id=upstream,
        table=upstream,
        partition=None,
        snapshot_id="1",
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        tags={},
        change_id=f"{upstream}-{tick}-{at:%H%M}",
    )


def probe(tick: int, upstream: str) -> ProbeRow:
    return ProbeRow(
        tick_number=tick,
        recorded_at=LONG_BEFORE,
        upstream_id=upstream,
        outcome=ProbeOutcome.FOUND,
        reason=None,
        failing_since=None,
        position=None,
        upstream_value=None,
        latest_event_tick=tick,
        latest_event_at=LONG_BEFORE,
        recent_events=(),
    )


def report_of(run_id: int | None, **fields: object) -> Message:
    message = Message(
        kind=MessageKind.COMPLETE, job_id=JOB, run_id=run_id, job_name="daily", sent_at=AT
    )
    return replace(message, **fields)  # type: ignore[arg-type]


@pytest.fixture
def world() -> World:
    return World()


def test_a_reported_manual_success_consumes_what_had_been_seen_before_the_run_began(
    world: World,
) -> None:
    world.event(1, LONG_BEFORE)
    world.event(2, LONG_BEFORE + timedelta(minutes=5))
    run_id = world.run()
    [row] = world.apply(report_of(run_id)).rows
    assert (row.run_status, row.run_id, row.reported_by) == (
        RunStatus.SUCCEEDED,
        run_id,
        "notice",
    )
    assert row.consumed == (Consumed(upstream_id="u", from_tick=-1, through_tick=2),)
    assert (row.event_count, row.started_at) == (2, BEGAN)
    assert world.store.rows[Ledger.RUNS] == [row]


def test_what_came_after_the_run_began_or_within_the_clocks_difference_starts_the_job_with_all_that_waits(
    world: World,
) -> None:
    world.event(1, LONG_BEFORE)
    world.event(2, BEGAN - timedelta(minutes=9))
    world.event(1, LONG_BEFORE, "paused")
    [row] = world.apply(report_of(world.run())).rows
    # Half of what waits is never consumed: since when the rest waits would be unknown.
    assert row.consumed == (Consumed(upstream_id="paused", from_tick=-1, through_tick=1),)


def test_a_snapshot_that_was_made_later_is_not_counted_though_our_clock_was_behind(
    world: World,
) -> None:
    made_at = int((BEGAN + timedelta(minutes=5)).timestamp() * 1000)
    late = replace(event(1, LONG_BEFORE, "u"), snapshot_ts=made_at)
    world.store.append(Ledger.EVENTS, [late])
    world.store.append(Ledger.PROBES, [probe(1, "u")])
    assert world.apply(report_of(world.run())).rows == ()


@pytest.mark.parametrize(
    ("released", "rows"), [(BEGAN - timedelta(minutes=20), 1), (BEGAN + timedelta(minutes=5), 0)]
)
def test_a_slot_that_a_trigger_released_after_the_run_began_starts_the_job_though_its_data_is_older(
    world: World, released: datetime, rows: int
) -> None:
    world.upstreams = (TRIGGER,)
    world.store.append(Ledger.EVENTS, [event(1, LONG_BEFORE, TRIGGER.upstream_id)])
    release = replace(probe(1, TRIGGER.upstream_id), latest_event_at=released)
    world.store.append(Ledger.PROBES, [release])
    assert len(world.apply(report_of(world.run())).rows) == rows


def test_events_that_a_killed_tick_has_left_are_for_a_later_probe_to_report(world: World) -> None:
    world.event(1, LONG_BEFORE)
    world.store.append(Ledger.EVENTS, [event(2, LONG_BEFORE, "u")])
    [row] = world.apply(report_of(world.run())).rows
    assert row.consumed == (Consumed(upstream_id="u", from_tick=-1, through_tick=1),)


def test_a_job_on_its_own_schedule_reports_itself_what_it_has_processed(world: World) -> None:
    world.store.replace("scheduled_jobs", [{"job_id": JOB}])
    world.event(1, LONG_BEFORE)
    assert world.apply(report_of(world.run())) == ManualRuns()


def test_every_row_of_the_job_counts_those_that_are_paused_and_its_triggers_too(
    world: World,
) -> None:
    world.upstreams = (TRIGGER,)
    for upstream in ("u", "paused", TRIGGER.upstream_id, "of another job"):
        world.event(1, LONG_BEFORE, upstream)
    [row] = world.apply(report_of(world.run())).rows
    assert [each.upstream_id for each in row.consumed] == [TRIGGER.upstream_id, "paused", "u"]


def test_a_report_that_is_read_twice_counts_once(world: World) -> None:
    world.event(1, LONG_BEFORE)
    report = report_of(world.run())
    assert len(world.apply(report, report).rows) == 1
    assert world.apply(report) == ManualRuns()


def test_a_run_that_goes_on_keeps_its_report_until_the_api_reports_its_end(world: World) -> None:
    world.event(1, LONG_BEFORE)
    run_id = world.run(None)
    report = report_of(run_id)
    assert world.apply(report) == ManualRuns(waiting=(report,))
    world.jobs.end_run(run_id, Outcome.SUCCEEDED)
    assert len(world.apply(report).rows) == 1


def test_an_api_that_does_not_answer_keeps_the_report(world: World) -> None:
    world.event(1, LONG_BEFORE)
    report = report_of(world.run())
    world.jobs.go_down()
    assert world.apply(report) == ManualRuns(waiting=(report,))


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.SUCCEEDED])
def test_a_run_that_reports_success_but_did_not_succeed_consumes_nothing(
    world: World, outcome: Outcome
) -> None:
    world.event(1, LONG_BEFORE)
    assert world.apply(report_of(world.run(outcome))) == ManualRuns()


def test_a_run_of_another_job_and_an_unknown_one_consume_nothing(world: World) -> None:
    world.event(1, LONG_BEFORE)
    world.jobs.add_job(7, ends_as=Outcome.SUCCEEDED)
    other = world.jobs.start_by_hand(7)
    assert world.apply(report_of(other), report_of(999)) == ManualRuns()


def test_a_run_that_heartbeat_started_consumes_no_more_than_it_was_handed(world: World) -> None:
    world.event(1, LONG_BEFORE)
    world.jobs.run_now(job_id=JOB, token="t", parameters={TOKEN_PARAMETER: "t"})
    [run_id] = world.jobs.runs_of(JOB)
    world.jobs.end_run(run_id, Outcome.SUCCEEDED)
    assert world.apply(report_of(run_id)) == ManualRuns()


def test_a_run_that_heartbeat_started_without_parameters_consumes_no_more_either(
    world: World,
) -> None:
    world.event(1, LONG_BEFORE)
    run_id = world.run()
    before = Consumed(upstream_id="u", from_tick=-1, through_tick=0)
    started = replace(intended(), run_id=run_id, run_status=RunStatus.SUCCEEDED, consumed=(before,))
    world.store.append(Ledger.RUNS, [started])
    assert world.apply(report_of(run_id)) == ManualRuns()


def test_a_run_that_began_in_the_future_by_our_clock_consumes_nothing(world: World) -> None:
    world.event(1, LONG_BEFORE - timedelta(days=2))
    assert world.apply(report_of(world.run()), at=BEGAN - timedelta(days=1)) == ManualRuns()


def test_only_a_report_that_names_a_run_of_a_job_that_is_not_followed_is_about_a_manual_run(
    world: World,
) -> None:
    report = report_of(5)
    others = (
        report_of(None),
        report_of(5, intent_id="intent"),
        report_of(5, kind=MessageKind.RETRY),
    )
    assert reports_in((*others, report), world.state) == [report]
    assert reports_in((report,), replace(world.state, runs=(intended(),))) == []


def test_an_api_that_does_not_answer_is_called_once_in_a_tick(world: World) -> None:
    reports = tuple(report_of(world.run()) for _ in range(20))
    world.jobs.go_down()
    requests = world.jobs.request_count
    assert world.apply(*reports).waiting == reports
    assert world.jobs.request_count == requests + 1

"""A pull consumer requests what is new, and reports when it has processed it."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.errors import ConfigurationError, ProbeFailedError
from harness.fire.submit import Steps
from harness.settle.operator_messages import Applied, apply_messages
from harness.settle.pull_consumers import apply
from harness.store.inbox import FolderInbox, Message, MessageKind, peek, receive, remove, send
from harness.store.queries import find_sensor
from harness.store.rows import Consumed, Ledger, ProbeOutcome, Run, RunStatus, Tick
from harness.tick.state import TickState
from harness.toolkit.consume import Caller, Place, acquire, processed
from tests.support.ledgers import JOB, ORDERS, TEN, FakeStore, control, event, minutes, probe, run
from tests.support.watched import NEVER_SEEN

OTHER_JOB = 7
SENSOR = f"sales.orders_{JOB}"


class Desk:
    """Simulates the ticks and the runs of the job; nothing is compacted unless a test does so."""

    def __init__(self, inbox: Path, *, is_scheduled: bool = True) -> None:
        self.store = FakeStore()
        self.inbox = inbox
        self.clock = 0
        self.followed: tuple[Run, ...] = ()
        self.store.append(Ledger.CONTROLS, [control(1, TEN, "sales.orders")])
        if is_scheduled:
            self.store.tables["scheduled_jobs"] = [{"job_id": JOB, "note": None}]

    @property
    def place(self) -> Place:
        return Place(store=self.store, inbox=FolderInbox(self.inbox), folded_through=-1)

    def _caller(self, run_id: int | None) -> Caller:
        self.clock += 1
        return Caller(at=minutes(self.clock), run_id=run_id)

    def arrives(self, tick: int) -> None:
        self.store.append(Ledger.EVENTS, [event(tick, minutes(tick), ORDERS, str(tick))])
        self.store.append(Ledger.PROBES, [probe(tick, minutes(tick), ORDERS)])

    def senses(self, run_id: int | None = None) -> list[str]:
        sensor = find_sensor(self.store, SENSOR)
        events = acquire(self.place, sensor, self._caller(run_id))
        return [str(each["snapshot_id"]) for each in events]

    def has_processed(self, run_id: int | None = None) -> bool:
        return processed(self.place, find_sensor(self.store, SENSOR), self._caller(run_id))

    def tells(self, kind: MessageKind, *, from_tick: int, through_tick: int) -> None:
        """Leave a message as a run does that has read the tables a while ago."""
        self.clock += 1
        consumed = Consumed(upstream_id=ORDERS, from_tick=from_tick, through_tick=through_tick)
        send(
            self.inbox, Message(kind=kind, job_id=JOB, sent_at=minutes(self.clock), taken=consumed)
        )

    def ticks(self, number: int, *, is_killed: bool = False) -> list[Run]:
        messages = receive(self.inbox)
        tick = Tick(number=number, at=minutes(number))
        state = replace(state_of(ORDERS), runs=self.followed)
        rows = apply(messages, state, tick=tick, steps=Steps(), store=self.store)
        for message in messages:
            if not is_killed:
                remove(message)
        return list(rows)


def state_of(upstream_id: str) -> TickState:
    """Return what a process has of one upstream, before anything was consumed."""
    upstream = replace(
        NEVER_SEEN, upstream_id=upstream_id, sensor_id="sales.orders", job_ids=(JOB,)
    )
    return TickState(
        tick_number=1,
        tick_at=TEN,
        folded_through=-1,
        upstreams=(upstream,),
        runs=(),
        controls_checksum=None,
        ended_tick_number=1,
        must_decide=False,
    )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_what_arrived_is_handed_over(desk: Desk) -> None:
    desk.arrives(3)
    desk.arrives(4)
    assert desk.senses() == ["3", "4"]


def test_nothing_new_is_no_event_and_no_message(desk: Desk) -> None:
    assert desk.senses() == []
    assert peek(desk.inbox) == []


@pytest.mark.parametrize("has_ticked", [False, True])
def test_until_it_is_processed_the_same_comes_again_with_what_is_newer(
    desk: Desk, has_ticked: bool
) -> None:
    desk.arrives(3)
    desk.senses()
    if has_ticked:
        desk.ticks(4)
    desk.arrives(5)
    assert desk.senses() == ["3", "5"]


@pytest.mark.parametrize("ticked_after", [(), (1,), (2,), (1, 2)])
def test_what_is_processed_does_not_come_again_whenever_a_tick_learns_of_it(
    desk: Desk, ticked_after: tuple[int, ...]
) -> None:
    desk.arrives(3)
    desk.senses()
    if 1 in ticked_after:
        desk.ticks(4)
    desk.has_processed()
    if 2 in ticked_after:
        desk.ticks(5)
    assert desk.senses() == []


def test_after_it_is_processed_only_what_is_newer_comes(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    desk.has_processed()
    desk.arrives(5)
    assert desk.senses() == ["5"]


def test_what_arrives_between_the_two_is_not_processed(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    desk.arrives(4)
    desk.has_processed()
    assert desk.senses() == ["4"]


@pytest.mark.parametrize("has_ticked", [False, True])
def test_a_run_ends_only_what_it_was_handed_while_another_goes_on(
    desk: Desk, has_ticked: bool
) -> None:
    desk.arrives(3)
    desk.senses(run_id=1)
    desk.arrives(4)
    desk.senses(run_id=2)
    if has_ticked:
        desk.ticks(5)
    desk.has_processed(run_id=1)
    assert desk.senses() == ["4"]


def test_an_earlier_run_that_ends_last_takes_nothing_back(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses(run_id=1)
    desk.arrives(4)
    desk.senses(run_id=2)
    desk.has_processed(run_id=2)
    assert not desk.has_processed(run_id=1)
    assert desk.senses() == []


def test_a_message_about_ticks_that_have_not_been_consumes_nothing(desk: Desk) -> None:
    desk.tells(MessageKind.PROCESSED, from_tick=-1, through_tick=2**62)
    assert desk.ticks(4) == []
    desk.arrives(5)
    assert len(desk.senses()) == 1


def test_processed_twice_is_processed_once(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    assert desk.has_processed()
    assert not desk.has_processed()
    assert len(peek(desk.inbox)) == 2


@pytest.mark.parametrize("has_ticked", [False, True])
def test_the_run_that_goes_on_ends_what_the_one_before_it_did_not(
    desk: Desk, has_ticked: bool
) -> None:
    desk.arrives(3)
    desk.senses(run_id=1)
    desk.arrives(4)
    desk.senses(run_id=2)
    desk.has_processed(run_id=1)
    if has_ticked:
        desk.ticks(5)
    assert desk.has_processed(run_id=2)
    assert desk.senses() == []


def test_a_run_ends_without_harm_when_another_has_processed_all(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses(run_id=1)
    desk.has_processed(run_id=1)
    assert not desk.has_processed(run_id=2)


def test_a_run_that_was_handed_nothing_cannot_have_processed_it(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses(run_id=1)
    with pytest.raises(ConfigurationError, match=r"Run 2 of daily-revenue .* received no events"):
        desk.has_processed(run_id=2)


def test_a_tick_records_the_hand_over_as_a_run_and_its_end_as_the_same_one(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    (opened,) = desk.ticks(4)
    desk.has_processed()
    (ended,) = desk.ticks(5)
    consumed = (Consumed(upstream_id=ORDERS, from_tick=-1, through_tick=3),)
    assert [opened.run_status, ended.run_status] == [RunStatus.ACQUIRED, RunStatus.SUCCEEDED]
    assert opened.consumed == ended.consumed == consumed
    assert opened.intent_id == ended.intent_id
    assert (ended.decided_tick, ended.decided_at) == (4, minutes(4))
    assert ended.event_count == len(ended.event_ids) == 1


def test_a_hand_over_that_grows_stays_one_run_from_its_first_tick_on(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    (first,) = desk.ticks(4)
    desk.arrives(5)
    desk.senses()
    (second,) = desk.ticks(6)
    assert second.intent_id == first.intent_id
    assert second.decided_tick == 4
    assert second.event_count == 2


@pytest.mark.parametrize("is_done", [False, True])
def test_a_message_that_a_killed_tick_left_is_recorded_once(desk: Desk, is_done: bool) -> None:
    desk.arrives(3)
    desk.senses()
    if is_done:
        desk.has_processed()
    desk.ticks(4, is_killed=True)
    assert desk.ticks(5) == []


def test_a_hand_over_that_is_reported_late_requeues_nothing_that_was_processed(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    desk.has_processed()
    desk.ticks(4)
    desk.tells(MessageKind.ACQUIRED, from_tick=-1, through_tick=5)  # read before, sent after it
    (row,) = desk.ticks(6)
    assert row.consumed == (Consumed(upstream_id=ORDERS, from_tick=3, through_tick=5),)


@pytest.mark.parametrize("has_ticked", [False, True])
def test_an_end_that_is_reported_late_takes_nothing_back(desk: Desk, has_ticked: bool) -> None:
    desk.arrives(3)
    desk.arrives(4)
    desk.senses()
    desk.has_processed()
    if has_ticked:
        desk.ticks(5)
    desk.tells(MessageKind.PROCESSED, from_tick=-1, through_tick=3)
    desk.ticks(6)
    assert desk.senses() == []


def test_no_tick_between_what_was_processed_and_what_comes_next_is_left_out(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    desk.has_processed()
    desk.ticks(4)
    desk.tells(MessageKind.ACQUIRED, from_tick=9, through_tick=12)
    (row,) = desk.ticks(12)
    assert row.consumed[0].from_tick == 3


def test_what_heartbeat_started_keeps_its_events_when_a_message_comes_late(desk: Desk) -> None:
    started = run(2, 1, minutes(2), RunStatus.STARTED, run_id=70)
    desk.followed = (started,)
    desk.tells(MessageKind.ACQUIRED, from_tick=-1, through_tick=3)
    assert desk.ticks(4) == []


def test_a_tick_that_records_it_while_the_job_requests_events_loses_nothing(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    desk.has_processed()
    desk.ticks(4, is_killed=True)  # the ledger has both, and the inbox as well
    desk.arrives(5)
    assert desk.senses() == ["5"]


def test_two_jobs_on_one_upstream_do_not_take_each_others_events(desk: Desk) -> None:
    theirs = replace(control(1, TEN, "sales.orders"), control_id="sales.orders_7", job_id=OTHER_JOB)
    desk.store.append(Ledger.CONTROLS, [theirs])
    desk.store.tables["scheduled_jobs"].append({"job_id": OTHER_JOB, "note": None})
    desk.arrives(3)
    desk.senses()
    desk.has_processed()
    other = find_sensor(desk.store, "sales.orders_7")
    assert len(acquire(desk.place, other, Caller(at=minutes(9)))) == 1


def test_an_upstream_that_cannot_be_read_is_not_one_without_new_data(desk: Desk) -> None:
    failed = probe(
        3,
        minutes(3),
        ORDERS,
        outcome=ProbeOutcome.FAILED,
        reason="the disk is gone",
        failing_since=minutes(3),
        latest_event_tick=None,
    )
    desk.store.append(Ledger.PROBES, [failed])
    with pytest.raises(ProbeFailedError, match=r"cannot be read since .* \(the disk is gone\)"):
        desk.senses()


def test_what_arrived_before_an_upstream_failed_is_handed_over_all_the_same(desk: Desk) -> None:
    desk.arrives(3)
    failed = probe(4, minutes(4), ORDERS, failing_since=minutes(4), latest_event_tick=3)
    desk.store.append(Ledger.PROBES, [failed])
    assert desk.senses() == ["3"]


def test_a_paused_sensor_has_nothing_new(desk: Desk) -> None:
    desk.arrives(3)
    paused = control(4, minutes(4), "sales.orders", change="changed", job_state="PAUSED")
    desk.store.append(Ledger.CONTROLS, [paused])
    assert desk.senses() == []


def test_two_sensors_with_one_id_are_refused_in_one_sentence(desk: Desk) -> None:
    theirs = control(1, TEN, "sales.orders", control_id="sales.orders_7", job_id=OTHER_JOB)
    desk.store.append(Ledger.CONTROLS, [theirs])
    with pytest.raises(
        ConfigurationError, match=r"2 sensors have the id 'sales\.orders'"
    ) as refused:
        find_sensor(desk.store, "sales.orders")
    assert len(str(refused.value).splitlines()) == 1


def test_the_job_distinguishes_two_sensors_with_one_id(desk: Desk) -> None:
    theirs = control(1, TEN, "sales.orders", control_id="sales.orders_7", job_id=OTHER_JOB)
    desk.store.append(Ledger.CONTROLS, [theirs])
    assert find_sensor(desk.store, "sales.orders", "7").job_id == OTHER_JOB


def test_a_sensor_that_left_the_controls_is_not_there(desk: Desk) -> None:
    gone = control(2, minutes(2), "sales.orders", change="removed")
    desk.store.append(Ledger.CONTROLS, [gone])
    with pytest.raises(ConfigurationError, match="There is no sensor"):
        find_sensor(desk.store, SENSOR)


def test_a_job_that_heartbeat_starts_is_handed_what_its_run_took(tmp_path: Path) -> None:
    desk = Desk(tmp_path, is_scheduled=False)
    desk.arrives(3)
    consumed = (Consumed(upstream_id=ORDERS, from_tick=-1, through_tick=3),)
    started = run(3, 1, minutes(3), RunStatus.STARTED, consumed=consumed, run_id=70)
    desk.store.append(Ledger.RUNS, [started])
    desk.arrives(4)
    assert desk.senses() == ["3"]
    assert peek(desk.inbox) == []


def test_processed_is_complete_for_a_run_that_heartbeat_started(tmp_path: Path) -> None:
    desk = Desk(tmp_path, is_scheduled=False)
    started = run(3, 1, minutes(3), RunStatus.STARTED, run_id=70)
    desk.store.append(Ledger.RUNS, [started])
    assert desk.has_processed(run_id=70)
    (message,) = peek(desk.inbox)
    assert (message.kind, message.run_id) == (MessageKind.COMPLETE, 70)


def test_processed_without_a_run_names_the_attempt_that_heartbeat_started(tmp_path: Path) -> None:
    desk = Desk(tmp_path, is_scheduled=False)
    started = run(3, 1, minutes(3), RunStatus.STARTED, run_id=70)
    desk.store.append(Ledger.RUNS, [started])
    assert desk.has_processed()
    (message,) = peek(desk.inbox)
    named = (message.intent_id, message.attempt, message.seen_status)
    assert named == (started.intent_id, started.attempt, RunStatus.STARTED)


def test_a_job_that_heartbeat_starts_takes_nothing_by_itself(tmp_path: Path) -> None:
    desk = Desk(tmp_path, is_scheduled=False)
    desk.arrives(3)
    with pytest.raises(ConfigurationError, match=r"put its id into seeds/scheduled_jobs\.csv"):
        desk.senses()


def test_a_job_still_requests_events_while_a_tick_loads_the_edited_seed(desk: Desk) -> None:
    desk.arrives(3)
    del desk.store.tables["scheduled_jobs"]
    place = replace(desk.place, left_alone=frozenset({JOB}))
    sensor = find_sensor(desk.store, SENSOR)
    assert len(acquire(place, sensor, Caller(at=TEN))) == 1


def test_a_message_keeps_all_it_contains_on_its_way_through_the_inbox(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses(run_id=9)
    desk.ticks(4)
    desk.has_processed(run_id=9)
    (message,) = peek(desk.inbox)
    assert message.kind is MessageKind.PROCESSED
    assert message.taken == Consumed(upstream_id=ORDERS, from_tick=-1, through_tick=3)
    assert (message.job_id, message.job_name, message.run_id) == (JOB, "daily-revenue", 9)
    assert message.sent_at == TEN + timedelta(minutes=2)


def test_what_a_job_was_handed_moves_its_upstream_and_is_no_run_to_follow(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    state = state_of(ORDERS).with_consumed(desk.ticks(4))
    assert state.runs == ()
    assert state.upstreams[0].boundaries == {-1, 3}


def test_the_run_that_heartbeat_started_is_followed_on_all_the_same(desk: Desk) -> None:
    started = run(2, 1, minutes(2), RunStatus.STARTED, run_id=70)
    state = state_of(ORDERS).with_runs([started])
    desk.arrives(3)
    desk.senses()
    assert [each.run_id for each in state.with_consumed(desk.ticks(4)).runs] == [70]


def test_following_runs_leaves_what_jobs_report_of_themselves_alone(desk: Desk) -> None:
    desk.arrives(3)
    desk.senses()
    started = run(2, 1, minutes(2), RunStatus.STARTED, run_id=70)
    tick = Tick(number=4, at=minutes(4))
    assert apply_messages(peek(desk.inbox), {JOB: started}, tick) == Applied()


def test_importing_the_package_imports_nothing_heavy() -> None:
    reported = (
        "import sys; import harness; "
        "from harness.toolkit import acquired, processed; print(callable(acquired), callable(processed), "
        "sorted({'pyspark', 'dbt', 'deltalake', 'py4j', 'pandas'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", reported],
        cwd=Path(__file__).parents[3],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "True True []"

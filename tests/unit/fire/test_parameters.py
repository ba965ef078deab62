"""Which job parameters a start sends, and what becomes of it while its job cannot be read."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.config.model import SendParameters
from harness.errors import JobsApiError, ThrottledError
from harness.fire.intents import Start, fire
from harness.fire.parameters import BELIEVED_FOR, DeclaredParameters
from harness.fire.submit import Firing, Steps
from harness.settle.settle import RESEND_FOR, Settled, settle
from harness.store.rows import UNDETERMINED, Consumed, Ledger, Run, RunStatus, Tick
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import EVERY, FakeJobs
from tests.support.following import firing_of
from tests.support.ledgers import ORDERS, event
from tests.support.memory_store import MemoryStore

JOB = 2**53 + 1
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
TICK = Tick(number=4, at=AT)


class World:
    """One job with two unconsumed events, and a process that starts it."""

    def __init__(
        self, *, declares: tuple[str, ...] = EVERY, policy: SendParameters = SendParameters.DECLARED
    ) -> None:
        self.jobs = FakeJobs(clock=FakeClock(AT))
        self.jobs.add_job(JOB, declares=declares)
        self.store = MemoryStore()
        self.store.append(Ledger.EVENTS, [event(tick, AT, ORDERS, str(tick)) for tick in (2, 3)])
        self.parameters = DeclaredParameters(policy)

    def fire(self, *, attempt: int = 1, tick: Tick = TICK) -> Run:
        consumed = (Consumed(upstream_id=ORDERS, from_tick=1, through_tick=4),)
        start = Start(
            job_id=JOB, job_name="daily", intent_id="one", attempt=attempt, consumed=consumed
        )
        (row,) = fire([start], tick=tick, firing=self.firing(tick), steps=Steps())
        return row

    def settle(self, run: Run, tick: Tick) -> Settled:
        return settle([run], [], tick=tick, firing=self.firing(tick), steps=Steps())

    def firing(self, tick: Tick) -> Firing:
        usual = firing_of(self.jobs, at=tick.at, store=self.store)
        return replace(usual, parameters=self.parameters)

    @property
    def sent(self) -> dict[str, str]:
        (request,) = self.jobs.requests
        return dict(request.parameters)


def test_a_start_sends_what_its_job_declares_and_its_intent_keeps_exactly_that() -> None:
    for declares in (EVERY, (), ("heartbeat_events",), ("day", "heartbeat_token")):
        world = World(declares=declares)
        row = world.fire()
        assert row.run_status is RunStatus.STARTED
        assert set(world.sent) == set(declares) & set(EVERY)
        intent = world.store.rows[Ledger.RUNS][0]
        assert isinstance(intent, Run)
        assert json.loads(intent.parameters) == world.sent
        assert len(intent.event_ids) == 2


@pytest.mark.parametrize(
    ("policy", "names"), [(SendParameters.ALWAYS, set(EVERY)), (SendParameters.NEVER, set())]
)
def test_a_setting_sends_all_or_none_without_a_question(
    policy: SendParameters, names: set[str]
) -> None:
    world = World(policy=policy)
    world.fire()
    assert set(world.sent) == names
    assert world.jobs.asked_settings == []


def test_a_job_is_queried_once_until_its_settings_are_old() -> None:
    world = World()
    for attempt in (1, 2, 3):
        world.fire(attempt=attempt)
    assert world.jobs.asked_settings == [JOB]
    for at in (AT + BELIEVED_FOR, AT - timedelta(days=1)):
        world.fire(attempt=4, tick=Tick(number=9, at=at))
    assert world.jobs.asked_settings == [JOB] * 3


def test_a_resend_has_the_body_of_the_first_request_and_queries_nothing() -> None:
    world = World(declares=("heartbeat_events",))
    world.jobs.lose_answers()
    row = world.fire()
    world.jobs.add_job(JOB, declares=EVERY)
    asked = list(world.jobs.asked_settings)
    world.parameters = DeclaredParameters()
    (again,) = world.settle(row, Tick(number=5, at=AT + timedelta(minutes=1))).rows
    first, second = world.jobs.requests
    assert (first.parameters, first.token) == (second.parameters, second.token)
    assert again.run_status is RunStatus.STARTED
    assert world.jobs.asked_settings == asked
    assert len(world.jobs.runs_of(JOB)) == 1


def test_a_start_whose_job_cannot_be_read_waits_and_is_sent_once_it_can() -> None:
    world = World(declares=("heartbeat_events",))
    world.jobs.settings_error = JobsApiError("the settings did not come")
    row = world.fire()
    assert (row.run_status, row.parameters) == (RunStatus.INTENDED, UNDETERMINED)
    assert "the settings did not come" in (row.message or "")
    # No search for a run that no request can have started, however old the start is.
    late = Tick(number=5, at=AT + 2 * RESEND_FOR)
    silent = world.settle(row, late)
    assert (silent.rows, silent.unanswered) == ((), {JOB: row.message})
    assert world.jobs.requests == []

    world.jobs.settings_error = None
    (started,) = world.settle(row, late).rows
    assert (started.run_status, started.message) == (RunStatus.STARTED, None)
    assert [each["snapshot_id"] for each in json.loads(world.sent["heartbeat_events"])] == [
        "2",
        "3",
    ]
    statuses = [each for each in world.store.rows[Ledger.RUNS] if isinstance(each, Run)]
    assert [json.loads(each.parameters) for each in statuses] == [None, world.sent, world.sent]


def test_a_first_refusal_proves_that_there_is_no_run_also_after_a_wait() -> None:
    world = World()
    world.jobs.settings_error = JobsApiError("the settings did not come")
    row = world.fire()
    world.jobs.settings_error = None
    world.jobs.delete_job(JOB)
    (refused,) = world.settle(row, Tick(number=5, at=AT)).rows
    assert refused.run_status is RunStatus.REFUSED


def test_after_too_many_requests_no_other_job_is_queried_before_the_wait_is_over() -> None:
    world = World()
    world.jobs.settings_error = ThrottledError("too many requests", wait_seconds=60)
    firing = world.firing(TICK)
    for at, count in ((0, 1), (59, 1), (60, 2)):
        then = AT + timedelta(seconds=at)
        world.parameters.of(JOB, api=world.jobs, questions=firing.questions, at=then)
        assert len(world.jobs.asked_settings) == count


def test_a_refusal_of_parameters_has_the_way_out_and_the_job_is_queried_again() -> None:
    world = World()
    world.fire()
    world.jobs.add_job(JOB, declares=())
    row = world.fire(attempt=2)
    assert row.run_status is RunStatus.REFUSED
    assert f"are read again at its next start, then `retry {JOB}`" in (row.message or "")
    assert world.fire(attempt=3).run_status is RunStatus.STARTED


def test_a_refusal_of_parameters_that_are_always_sent_names_them_and_the_setting() -> None:
    world = World(declares=(), policy=SendParameters.ALWAYS)
    row = world.fire()
    assert row.run_status is RunStatus.REFUSED
    assert f"declare {', '.join(EVERY)} in the settings of the job" in (row.message or "")
    assert "set jobs.parameters to declared in heartbeat.yml" in (row.message or "")


def test_a_list_that_is_not_sent_is_put_nowhere(tmp_path: Path) -> None:
    world = World(declares=())
    many = [event(4, AT, ORDERS, str(number)) for number in range(200)]
    world.store.append(Ledger.EVENTS, many)
    firing = replace(world.firing(TICK), payloads=tmp_path)
    consumed = (Consumed(upstream_id=ORDERS, from_tick=1, through_tick=4),)
    start = Start(job_id=JOB, job_name="daily", intent_id="one", attempt=1, consumed=consumed)
    fire([start], tick=TICK, firing=firing, steps=Steps())
    assert world.sent == {}
    assert list(tmp_path.iterdir()) == []

"""When a failed run is requested again by its policy, and when it is left alone."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.errors import DecideError
from harness.fire.submit import Steps
from harness.platform.databricks.api import Outcome
from harness.settle.retry_policy import planned_retries, request_due_retries
from harness.store.inbox import Message, MessageKind, send
from harness.store.rows import Ledger, Run, RunStatus
from harness.store.work_lists import PlannedRetry
from harness.tick.checkpoint import load_state
from harness.tick.state import TickState
from tests.support.fake_jobs import FakeJobs
from tests.support.following import AT, JOB, TICK, fake_jobs, firing_of, run_of, settled
from tests.support.memory_store import MemoryStore
from tests.support.small_world import NOON, SmallWorld

OVER = TICK.at
NOT_OVER = TICK.at + timedelta(microseconds=1)


def failed(jobs: FakeJobs, outcome: Outcome = Outcome.FAILED) -> Run:
    """Return a run whose unsuccessful end the API has reported, as the tick finds it."""
    run = run_of(jobs, status=RunStatus(outcome))
    assert run.run_id is not None
    jobs.end_run(run.run_id, outcome, "disk full")
    return replace(run, ended_at=AT, message="disk full")


def planned(run: Run, **other: object) -> PlannedRetry:
    values = {"job_id": run.job_id, "intent_id": run.intent_id, "attempt": run.attempt}
    return PlannedRetry(**{**values, "retry_at": OVER, **other})  # type: ignore[arg-type]


def state_with(run: Run, *retries: PlannedRetry) -> TickState:
    return TickState(
        tick_number=8,
        tick_at=AT,
        folded_through=1,
        upstreams=(),
        runs=(run,),
        retries=retries,
        controls_checksum=None,
        ended_tick_number=8,
        must_decide=False,
    )


def wanted(
    jobs: FakeJobs, run: Run, retry: PlannedRetry, *messages: Message
) -> list[tuple[str, str]]:
    """Settle once; return the status and the reporter of every step that was recorded."""
    store = MemoryStore()
    done = settled(jobs, run, *messages, store=store)
    request_due_retries(done, state_with(run, retry), tick=TICK, steps=Steps(), store=store)
    rows = store.read(Ledger.RUNS)
    return [(str(row["run_status"]), str(row["reported_by"])) for row in rows]


def test_a_failed_run_whose_back_off_is_over_is_requested_again() -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    assert wanted(jobs, run, planned(run)) == [("RETRY_REQUESTED", "policy")]


def test_a_failed_run_is_left_alone_as_long_as_its_back_off_goes_on() -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    assert wanted(jobs, run, planned(run, retry_at=NOT_OVER)) == []


def test_the_step_records_which_attempt_failed_and_how() -> None:
    jobs, store = fake_jobs(), MemoryStore()
    run = replace(failed(jobs), attempt=2)
    done = settled(jobs, run, store=store)

    done = request_due_retries(
        done, state_with(run, planned(run)), tick=TICK, steps=Steps(), store=store
    )

    (row,) = done.rows
    assert (row.attempt, row.run_id, row.message, row.ended_at) == (2, run.run_id, "disk full", AT)
    assert (row.tick_number, row.step_number, row.recorded_at) == (9, 1, TICK.at)


@pytest.mark.parametrize("other", [{"attempt": 2}, {"intent_id": "another"}, {"job_id": 7}])
def test_what_was_planned_for_another_attempt_starts_nothing(other: dict[str, object]) -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    assert wanted(jobs, run, planned(run, **other)) == []


def test_a_run_that_goes_on_is_never_requested_again() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    assert wanted(jobs, run, planned(run)) == []


@pytest.mark.parametrize("kind", [MessageKind.RETRY, MessageKind.RELEASE])
def test_what_an_operator_requests_in_the_same_tick_goes_first_and_counts_alone(
    kind: MessageKind,
) -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    output = Message(kind=kind, job_id=JOB, intent_id="intent", attempt=1, sent_at=TICK.at)
    status = "RETRY_REQUESTED" if kind is MessageKind.RETRY else "RELEASED"
    assert wanted(jobs, run, planned(run), output) == [(status, "operator")]


def test_a_success_that_somebody_else_started_lets_the_job_go_instead() -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    jobs.end_run(jobs.start_by_hand(JOB), Outcome.SUCCEEDED)
    assert wanted(jobs, run, planned(run)) == [("SUCCEEDED_ELSEWHERE", "poll")]


def test_nothing_starts_by_itself_while_a_run_goes_on_that_somebody_started_by_hand() -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    by_hand = jobs.start_by_hand(JOB)
    assert wanted(jobs, run, planned(run)) == []

    jobs.end_run(by_hand, Outcome.FAILED)
    assert wanted(jobs, run, planned(run)) == [("RETRY_REQUESTED", "policy")]


def test_nothing_starts_by_itself_while_a_repair_of_the_failed_run_goes_on() -> None:
    jobs = fake_jobs()
    run = replace(run_of(jobs, status=RunStatus.FAILED), ended_at=AT)
    assert wanted(jobs, run, planned(run)) == []


def test_nothing_starts_by_itself_while_the_jobs_api_reports_nothing_about_the_job() -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    jobs.go_down()
    assert wanted(jobs, run, planned(run)) == []


def test_the_model_is_read_only_where_a_run_holds_its_job() -> None:
    jobs = fake_jobs()
    run = failed(jobs)
    rows = {"job_id": JOB, "intent_id": "intent", "attempt": 1, "retry_at": OVER}
    requests: list[str] = []

    def read(relation: str) -> list[dict[str, object]]:
        requests.append(relation)
        return [rows]

    assert planned_retries(read, [run_of(jobs)]) == ()
    assert (planned_retries(read, [run]), requests) == ((planned(run),), ["queue_retries"])


class World(SmallWorld):
    """An installation with one job, whose run failed at noon and is to be retried after an hour."""

    def __init__(self, project: Path) -> None:
        super().__init__(project)
        self.jobs = fake_jobs()
        self.run = failed(self.jobs)
        self.remember(
            runs=(self.run,), retries=(planned(self.run, retry_at=NOON + timedelta(hours=1)),)
        )

    def context(self):  # type: ignore[no-untyped-def]
        context = super().context()
        firing = firing_of(self.jobs, at=self.clock.now(), store=self.store)
        # An edit of the controls would have the next process find a Jobs API of its own.
        vars(context).update(jobs=self.jobs, firing=firing, forget_jobs=lambda: None)
        return context

    @property
    def steps(self) -> list[str]:
        return [str(row["reported_by"]) for row in self.store.read(Ledger.RUNS)]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_idle_ticks_wait_for_the_end_of_a_back_off_without_deciding_or_writing_anything(
    world: World,
) -> None:
    for minutes in (1, 30, 28):
        world.clock.sleep(60 * minutes)
        report = world.engine().tick()
        assert report.skipped == ("decide", "fire", "publish")
    assert (world.store.commits, world.dbt.built) == ([], [])


def test_the_first_tick_after_the_back_off_decides_although_nothing_new_was_found(
    world: World,
) -> None:
    world.clock.sleep(3600)
    with pytest.raises(DecideError):
        world.engine().tick()
    assert (world.steps, world.read[-1]) == (["policy"], "trigger_set")


def test_a_back_off_is_remembered_from_process_to_process(world: World) -> None:
    state = load_state(world.home.state, world.store)
    assert state is not None
    assert state.retries == (planned(world.run, retry_at=NOON + timedelta(hours=1)),)


def test_an_operator_need_not_wait_for_the_end_of_the_back_off(world: World) -> None:
    world.clock.sleep(60)
    output = Message(
        kind=MessageKind.RETRY, job_id=JOB, intent_id="intent", attempt=1, sent_at=world.clock.now()
    )
    send(world.home.inbox, output)
    with pytest.raises(DecideError):
        world.engine().tick()
    assert world.steps == ["operator"]


def test_a_policy_that_is_taken_back_starts_nothing_any_more(world: World) -> None:
    world.models.update(
        queue_upstreams=lambda: [], queue_control_changes=lambda: [], queue_retries=lambda: []
    )
    (world.project / "seeds" / "retry_policies.csv").write_text(
        "job_id,max_attempts,backoff_minutes,backoff_factor,max_backoff_minutes,retry_on\n"
    )
    world.clock.sleep(3600)
    with pytest.raises(DecideError):
        world.engine().tick()
    assert world.steps == []

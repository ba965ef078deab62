"""How notices and polls end a run, each run once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.calls import Firing, Steps
from harness.clock import FakeClock
from harness.inbox import Message, MessageKind
from harness.jobs.fake import FakeJobs
from harness.jobs.pacing import TokenBucket
from harness.jobs.types import Outcome
from harness.settle import Settled, settle
from harness.state import FollowedRun
from harness.tables import HOLDING, OPEN, Consumed, RunStatus, Tick
from tests.unit.memory_store import MemoryStore

JOB = 2**53 + 1
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
TICK = Tick(number=9, at=AT + timedelta(minutes=5))


def _run(jobs: FakeJobs, *, status: RunStatus = RunStatus.STARTED, attempt: int = 1) -> FollowedRun:
    return FollowedRun(
        job_id=JOB,
        job_name="daily",
        intent_id="intent",
        attempt=attempt,
        token="token",
        run_id=jobs.start_by_hand(JOB),
        run_status=status,
        is_open=status in OPEN,
        holds_job=status in HOLDING,
        consumed=(Consumed(upstream_id="u", from_tick=-1, through_tick=3),),
        event_ids=("e",),
        parameters="{}",
        decided_tick=3,
        decided_at=AT,
        started_at=AT,
        ended_at=None,
        life_cycle_state=None,
        result_state=None,
        state=None,
        termination_code=None,
        message=None,
        run_page_url=None,
        recorded_at=AT,
    )


def _jobs() -> FakeJobs:
    jobs = FakeJobs(clock=FakeClock(AT))
    jobs.add_job(JOB)
    return jobs


def _settled(jobs: FakeJobs, run: FollowedRun, *messages: Message) -> Settled:
    clock = FakeClock(TICK.at)
    firing = Firing(
        api=jobs,
        origin="here",
        store=MemoryStore(),
        starts=TokenBucket(clock, per_second=100),
        questions=TokenBucket(clock, per_second=100),
        handed_over=Path("nowhere"),
        crash_point=lambda name: None,
    )
    return settle([run], messages, tick=TICK, firing=firing, steps=Steps())


def _complete(*, run_id: int | None = None, intent_id: str | None = None) -> Message:
    return Message(
        kind=MessageKind.COMPLETE, job_id=JOB, run_id=run_id, intent_id=intent_id, sent_at=TICK.at
    )


def test_a_run_that_goes_on_leaves_no_row() -> None:
    jobs = _jobs()
    assert _settled(jobs, _run(jobs)).rows == ()


def test_a_run_that_ended_is_recorded_in_the_words_of_the_api() -> None:
    jobs = _jobs()
    run = _run(jobs)
    assert run.run_id is not None
    jobs.end_run(run.run_id, Outcome.FAILED, "no such column")

    (row,) = _settled(jobs, run).rows

    assert (row.run_status, row.message) == (RunStatus.FAILED, "no such column")
    assert row.result_state == "FAILED"


def test_a_notice_of_the_first_attempt_does_not_end_the_second() -> None:
    jobs = _jobs()
    first = _run(jobs)
    second = _run(jobs, attempt=2)

    told = _settled(jobs, second, _complete(run_id=first.run_id, intent_id="intent"))

    assert told.rows == ()


def test_a_notice_that_names_only_the_job_ends_its_open_run() -> None:
    jobs = _jobs()
    (row,) = _settled(jobs, _run(jobs), _complete()).rows
    assert (row.run_status, row.reported_by) == (RunStatus.SUCCEEDED, "notice")


def test_a_notice_about_a_run_that_failed_does_not_turn_it_into_a_success() -> None:
    jobs = _jobs()
    run = _run(jobs, status=RunStatus.FAILED)
    assert _settled(jobs, run, _complete(run_id=run.run_id)).rows == ()


def test_a_later_run_that_says_it_is_complete_releases_the_job() -> None:
    jobs = _jobs()
    run = _run(jobs, status=RunStatus.FAILED)
    (row,) = _settled(jobs, run, _complete(run_id=5)).rows
    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE


def test_a_jobs_api_that_does_not_answer_says_nothing_about_the_run() -> None:
    jobs = _jobs()
    run = _run(jobs)
    jobs.go_down()

    told = _settled(jobs, run)

    assert told.rows == ()
    assert list(told.unanswered) == [JOB]


def test_a_retry_of_a_run_that_goes_on_changes_nothing() -> None:
    jobs = _jobs()
    message = Message(kind=MessageKind.RETRY, job_id=JOB, sent_at=TICK.at)
    assert _settled(jobs, _run(jobs), message).rows == ()

"""What a run that has not ended leaves in the ledger: what a person should know of it, once."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from harness.platform.databricks.api import Outcome
from harness.platform.jobs_emulator.runs.states import Phase
from harness.settle.run_progress import LOST_AFTER, NO_STATE, NOT_KNOWN, PARKED_AFTER
from harness.store.inbox import Message, MessageKind
from harness.store.rows import HOLDING, Run, RunStatus, Tick
from tests.support.fake_jobs import FakeJobs
from tests.support.following import AT, JOB, TICK, fake_jobs, notice, run_of, settled
from tests.support.jobs_emulator.scripts import phase_from

QUEUED = {"life_cycle_state": "QUEUED", "state": "QUEUED", "message": "behind another run"}
NEW_LIFE_CYCLE = {"life_cycle_state": "WARMING_UP", "state": "WARMING_UP"}
NEW_RESULT = {"life_cycle_state": "TERMINATED", "result_state": "BRAND_NEW", "message": "oh"}


class Bench:
    """One run that goes on, and a Jobs API that reports of it what a test specifies."""

    def __init__(self) -> None:
        self.jobs: FakeJobs = fake_jobs()
        self.run = run_of(self.jobs)
        self.ticks = 0

    @property
    def run_id(self) -> int:
        assert self.run.run_id is not None
        return self.run.run_id

    def says(self, words: Mapping[str, object]) -> None:
        self.jobs.put_phase(self.run_id, phase_from(words) if words else Phase())

    def tick(self, *messages: Message, minutes: float = 1) -> Run | None:
        """Settle once more, and go on from what came of it."""
        self.ticks += 1
        tick = Tick(number=TICK.number + self.ticks, at=self.run.recorded_at)
        tick = replace(tick, at=tick.at + timedelta(minutes=minutes))
        rows = settled(self.jobs, self.run, *messages, tick=tick).rows
        if rows:
            self.run = rows[0]
        return rows[0] if rows else None


@pytest.mark.parametrize("word", ["PENDING", "RUNNING", "TERMINATING"])
def test_a_run_that_goes_on_in_ordinary_words_leaves_no_row(word: str) -> None:
    bench = Bench()
    bench.says({"life_cycle_state": word, "state": word})
    assert bench.tick() is None


@pytest.mark.parametrize(
    "words",
    [
        QUEUED,
        {"life_cycle_state": "QUEUED"},
        {"state": "QUEUED"},
        {"life_cycle_state": "BLOCKED", "state": "BLOCKED"},
        {"life_cycle_state": "WAITING_FOR_RETRY", "state": "WAITING"},
        NEW_LIFE_CYCLE,
        {"state": "WARMING_UP"},
        NEW_RESULT,
        {"state": "TERMINATED", "code": "BRAND_NEW"},
        {"life_cycle_state": "TERMINATED"},
    ],
    ids=str,
)
def test_a_run_that_waits_or_is_not_understood_goes_on_with_the_words_as_they_came(
    words: Mapping[str, object],
) -> None:
    bench = Bench()
    bench.says(words)
    row = bench.tick()
    assert row is not None
    assert row.run_status is RunStatus.STARTED
    reported = (
        row.life_cycle_state,
        row.state,
        row.result_state,
        row.termination_code,
        row.message,
    )
    names = ("life_cycle_state", "state", "result_state", "code", "message")
    assert reported == tuple(words.get(name) for name in names)


def test_the_same_words_are_recorded_once_whatever_text_comes_with_them() -> None:
    bench = Bench()
    bench.says(QUEUED)
    bench.tick()
    bench.says({**QUEUED, "message": "behind two other runs"})
    assert bench.tick(minutes=600) is None


def test_a_run_that_leaves_the_queue_is_at_work_again() -> None:
    bench = Bench()
    bench.says(QUEUED)
    bench.tick()
    bench.says({"phase": "RUNNING"})
    row = bench.tick(minutes=600)
    assert row is not None
    assert (row.run_status, row.state, row.message) == (RunStatus.STARTED, None, None)
    assert bench.tick() is None


def test_a_run_of_which_nothing_is_reported_is_distinguished_from_one_at_work() -> None:
    bench = Bench()
    bench.says({})
    row = bench.tick()
    assert row is not None
    assert (row.run_status, row.message) == (RunStatus.STARTED, NO_STATE)
    assert bench.tick(minutes=6000) is None
    bench.says({"phase": "RUNNING"})
    row = bench.tick()
    assert row is not None
    assert row.message is None


def test_an_unknown_life_cycle_is_no_end_however_long_it_lasts() -> None:
    bench = Bench()
    bench.says(NEW_LIFE_CYCLE)
    bench.tick()
    assert bench.tick(minutes=60 * 24 * 30) is None


def test_a_run_that_is_over_in_unknown_words_is_parked_only_after_some_time() -> None:
    bench = Bench()
    bench.says(NEW_RESULT)
    bench.tick()
    assert bench.tick(minutes=PARKED_AFTER.total_seconds() / 60 - 1) is None
    row = bench.tick(minutes=PARKED_AFTER.total_seconds() / 60)
    assert row is not None
    assert (row.run_status, row.run_id) == (RunStatus.PARKED, bench.run_id)
    assert row.result_state == "BRAND_NEW"
    assert row.message is not None
    for output in ("TERMINATED, BRAND_NEW", ": oh;", f"`retry {JOB}`", f"`release {JOB}`"):
        assert output in row.message


def test_unknown_words_that_become_known_in_time_are_the_end_of_the_run() -> None:
    bench = Bench()
    bench.says(NEW_RESULT)
    bench.tick()
    bench.says({"phase": "FAILED"})
    row = bench.tick()
    assert row is not None
    assert row.run_status is RunStatus.FAILED


def test_a_parked_run_that_turns_out_to_have_succeeded_lets_its_job_go() -> None:
    bench = Bench()
    bench.says(NEW_RESULT)
    bench.tick()
    bench.tick(minutes=60)
    bench.says({"phase": "SUCCESS"})
    row = bench.tick()
    assert row is not None
    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE


def test_a_clock_that_went_back_does_not_keep_a_run_from_being_parked() -> None:
    bench = Bench()
    bench.says(NEW_RESULT)
    bench.tick()
    noted = bench.tick(minutes=-60 * 24)
    assert noted is not None
    assert noted.run_status is RunStatus.STARTED
    row = bench.tick(minutes=60)
    assert row is not None
    assert row.run_status is RunStatus.PARKED


def test_a_run_that_is_not_known_once_and_then_is_goes_on() -> None:
    bench = Bench()
    known = bench.jobs._runs.pop(bench.run_id)
    row = bench.tick()
    assert row is not None
    assert (row.run_status, row.message) == (RunStatus.STARTED, NOT_KNOWN)
    bench.jobs._runs[bench.run_id] = known
    row = bench.tick(minutes=60)
    assert row is not None
    assert (row.run_status, row.message) == (RunStatus.STARTED, None)


def test_a_run_is_lost_only_when_it_is_still_not_known_after_some_time() -> None:
    bench = Bench()
    bench.jobs.end_run(bench.run_id, Outcome.LOST)
    bench.tick()
    assert bench.tick(minutes=LOST_AFTER.total_seconds() / 60 - 1) is None
    row = bench.tick(minutes=LOST_AFTER.total_seconds() / 60)
    assert row is not None
    assert row.run_status is RunStatus.LOST


def test_a_jobs_api_that_is_down_does_not_confirm_that_a_run_is_lost() -> None:
    bench = Bench()
    bench.jobs.end_run(bench.run_id, Outcome.LOST)
    bench.tick()
    bench.jobs.go_down()
    assert bench.tick(minutes=600) is None


def test_a_report_of_success_ends_no_run_that_waits_in_unknown_words() -> None:
    bench = Bench()
    bench.says(NEW_LIFE_CYCLE)
    bench.tick()
    assert bench.tick(notice(run_id=bench.run_id)) is None


def test_a_run_that_succeeded_before_it_could_be_cancelled_has_succeeded() -> None:
    bench = Bench()
    bench.jobs.end_run(bench.run_id, Outcome.SUCCEEDED)
    bench.jobs.cancel_run(bench.run_id)
    row = bench.tick()
    assert row is not None
    assert row.run_status is RunStatus.SUCCEEDED


# A job that is held


def held(bench: Bench, status: RunStatus = RunStatus.FAILED) -> None:
    bench.run = replace(bench.run, run_status=status)


@pytest.mark.parametrize("status", sorted(HOLDING))
def test_a_repair_of_the_run_lets_its_job_go_whatever_held_it(status: RunStatus) -> None:
    bench = Bench()
    held(bench, status)
    bench.says({"phase": "RUNNING"})
    assert bench.tick() is None
    bench.says({"phase": "SUCCESS"})
    row = bench.tick()
    assert row is not None
    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE
    assert str(bench.run_id) in (row.message or "")


def test_a_repair_is_noticed_though_the_clock_of_the_api_is_behind_ours() -> None:
    bench = Bench()
    bench.run = replace(bench.run, started_at=AT + timedelta(minutes=5))
    held(bench, RunStatus.LOST)
    bench.says({"phase": "SUCCESS"})
    row = bench.tick()
    assert row is not None
    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE


def test_a_run_that_somebody_started_before_the_failed_one_does_not_let_the_job_go() -> None:
    bench = Bench()
    bench.jobs.end_run(bench.jobs.start_by_hand(JOB), Outcome.SUCCEEDED)
    bench.run = replace(bench.run, started_at=AT + timedelta(minutes=5))
    held(bench)
    bench.says({"phase": "FAILED"})
    assert bench.tick() is None


@pytest.mark.parametrize("phase", ["FAILED", "SKIPPED", "CANCELED", "INTERNAL_ERROR", "RUNNING"])
def test_nothing_but_a_success_lets_a_job_go(phase: str) -> None:
    bench = Bench()
    held(bench)
    bench.says({"phase": phase})
    assert bench.tick() is None


def test_a_list_that_does_not_come_leaves_the_job_held() -> None:
    bench = Bench()
    held(bench)
    bench.says({"phase": "SUCCESS"})
    bench.jobs.go_down()
    assert bench.tick() is None


def test_a_retry_of_a_run_that_was_parked_gives_its_events_back() -> None:
    bench = Bench()
    held(bench, RunStatus.PARKED)
    message = Message(kind=MessageKind.RETRY, job_id=JOB, sent_at=TICK.at)
    row = bench.tick(message)
    assert row is not None
    assert row.run_status is RunStatus.RETRY_REQUESTED

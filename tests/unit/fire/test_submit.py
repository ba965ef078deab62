"""When a start is sent, and when it is held back because the Jobs API requires a delay."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from harness.errors import ThrottledError
from harness.fire.submit import HELD_BACK, Firing, Steps, send
from harness.platform.databricks.api import RunNowAnswer, RunReport, Unknown
from harness.platform.stopping import Interrupted, Stop
from harness.settle.settle import POLLED_LATER, Settled, settle
from harness.store.rows import Ledger, Run, RunStatus, Tick
from tests.support.fake_jobs import FakeJobs
from tests.support.following import JOB, TICK, fake_jobs, firing_of, intended, run_of, settled
from tests.support.memory_store import MemoryStore

OTHER = JOB + 2
THROTTLED = Unknown(message="too many requests", wait_seconds=60, is_throttled=True)
BROKEN = Unknown(message="it broke", wait_seconds=30)


class Busy(FakeJobs):
    """Answers the first starts as a test specifies, and records each job id."""

    def __init__(self, *answers: Unknown) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[int] = []
        self.add_job(JOB)
        self.add_job(OTHER)

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        self.asked.append(job_id)
        if self.answers:
            return self.answers.pop(0)
        return super().run_now(job_id=job_id, token=token, parameters=parameters)


def process(jobs: Busy) -> Firing:
    """One process, whose calls go one after the other."""
    return replace(firing_of(jobs, at=TICK.at), pool=lambda: ThreadPoolExecutor(max_workers=1))


def tick_after(seconds: float) -> Tick:
    return Tick(number=TICK.number + 1, at=TICK.at + timedelta(seconds=seconds))


def start(job_id: int) -> Run:
    return replace(intended(), job_id=job_id, token=f"token of {job_id}")


def fresh(firing: Firing, *job_ids: int) -> list[Run]:
    intents = [start(each).step(TICK, RunStatus.INTENDED, "decision") for each in job_ids]
    return send(intents, tick=TICK, firing=firing, steps=Steps())


def again(firing: Firing, seconds: float, *runs: Run) -> Settled:
    return settle(runs, (), tick=tick_after(seconds), firing=firing, steps=Steps())


def test_after_too_many_requests_the_other_starts_of_the_tick_are_not_sent() -> None:
    jobs = Busy(THROTTLED)
    rows = fresh(process(jobs), JOB, OTHER)
    assert jobs.asked == [JOB]
    reported = {row.job_id: (row.run_status, row.message) for row in rows}
    assert reported[OTHER] == (RunStatus.INTENDED, HELD_BACK.message)


def test_a_start_that_was_held_back_is_sent_when_the_time_has_come() -> None:
    jobs = Busy(THROTTLED)
    firing = process(jobs)
    runs = fresh(firing, JOB, OTHER)
    early = again(firing, 59, *runs)
    assert jobs.asked == [JOB]
    assert early.rows == ()
    assert early.unanswered == {JOB: "too many requests", OTHER: HELD_BACK.message}
    late = again(firing, 60, *runs)
    assert [row.run_status for row in late.rows] == [RunStatus.STARTED, RunStatus.STARTED]


def test_a_start_that_broke_in_the_workspace_waits_and_holds_up_no_other() -> None:
    jobs = Busy(BROKEN)
    firing = process(jobs)
    first, second = fresh(firing, JOB, OTHER)
    assert {first.run_status, second.run_status} == {RunStatus.INTENDED, RunStatus.STARTED}
    broken = first if first.job_id == JOB else second
    assert again(firing, 29, broken).rows == ()
    assert jobs.asked == [JOB, OTHER]
    (row,) = again(firing, 30, broken).rows
    assert row.run_status is RunStatus.STARTED


def test_a_start_whose_answer_was_lost_is_sent_again_by_the_next_tick() -> None:
    jobs = Busy(Unknown(message="reset"))
    firing = process(jobs)
    (lost,) = fresh(firing, JOB)
    (row,) = again(firing, 0, lost).rows
    assert row.run_status is RunStatus.STARTED


def test_a_fresh_process_need_not_wait_since_the_token_is_safe_to_send() -> None:
    jobs = Busy(BROKEN)
    (broken,) = fresh(process(jobs), JOB)
    (row,) = again(process(jobs), 1, broken).rows
    assert row.run_status is RunStatus.STARTED


def test_a_start_that_is_held_back_again_leaves_no_further_row() -> None:
    jobs = Busy(THROTTLED)
    reported = again(
        process(jobs), 0, *(replace(start(each), message="429") for each in (JOB, OTHER))
    )
    assert jobs.asked == [JOB]
    assert [row.job_id for row in reported.rows] == [JOB]
    assert reported.unanswered == {OTHER: "429"}


class Curious(FakeJobs):
    """Has had too many requests."""

    def get_run(self, run_id: int) -> RunReport | None:
        self._count()
        raise ThrottledError("too many questions", wait_seconds=60)


def test_after_too_many_requests_no_other_is_sent_before_its_time() -> None:
    jobs = Curious()
    jobs.add_job(JOB)
    firing = replace(firing_of(jobs, at=TICK.at), pool=lambda: ThreadPoolExecutor(max_workers=1))
    runs = [run_of(jobs), replace(run_of(jobs), job_id=OTHER)]
    first = again(firing, 0, *runs)
    assert (first.rows, jobs.request_count) == ((), 1)
    assert first.unanswered == {JOB: "too many questions", OTHER: POLLED_LATER}
    again(firing, 59, *runs)
    assert jobs.request_count == 1
    again(firing, 60, *runs)
    assert jobs.request_count == 2


def test_a_login_that_is_refused_leaves_the_start_as_it_is_and_sends_it_again() -> None:
    jobs = fake_jobs()
    jobs.forbid(JOB)
    (row,) = settled(jobs, intended()).rows
    assert (row.run_status, row.run_id, row.ended_at) == (RunStatus.INTENDED, None, None)
    assert row.termination_code is None
    jobs._forbidden.clear()
    (row,) = settled(jobs, row, tick=tick_after(1)).rows
    assert row.run_status is RunStatus.STARTED


class Interrupting(Busy):
    """A signal comes while the first start is on its way."""

    def __init__(self, stop: Stop) -> None:
        super().__init__()
        self._stop = stop

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        answer = super().run_now(job_id=job_id, token=token, parameters=parameters)
        self._stop.is_wanted = len(self.asked) == 1
        return answer


def test_after_a_signal_no_start_is_sent_and_the_answer_of_the_one_on_its_way_is_recorded() -> None:
    stop, store = Stop(), MemoryStore()
    jobs = Interrupting(stop)
    firing = replace(process(jobs), stop=stop, store=store)

    with pytest.raises(Interrupted):
        fresh(firing, JOB, OTHER)

    assert jobs.asked == [JOB]
    recorded = [(row.job_id, row.run_status) for row in store.rows[Ledger.RUNS]]  # type: ignore[attr-defined]
    assert recorded == [(JOB, RunStatus.STARTED), (OTHER, RunStatus.INTENDED)]
    stop.is_wanted = False
    following = settle([start(OTHER)], (), tick=tick_after(60), firing=firing, steps=Steps())
    assert [row.run_status for row in following.rows] == [RunStatus.STARTED]
    assert jobs.asked == [JOB, OTHER]

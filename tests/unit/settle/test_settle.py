"""How notices and polls end a run, each run once, and what becomes of an unanswered start."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from harness.errors import JobsApiError, UnreportedRunsError
from harness.platform.databricks.api import Outcome, RunReport
from harness.settle.run_progress import LOST_AFTER, NOT_KNOWN
from harness.settle.settle import RESEND_FOR
from harness.store.inbox import Message, MessageKind, naming_attempt
from harness.store.rows import Ledger, Run, RunStatus, Tick
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.following import AT, JOB, TICK, fake_jobs, intended, notice, run_of, settled
from tests.support.memory_store import MemoryStore


def failed() -> tuple[FakeJobs, Run]:
    """A job that is held by its last run."""
    jobs = fake_jobs()
    run = run_of(jobs, status=RunStatus.FAILED)
    assert run.run_id is not None
    jobs.end_run(run.run_id, Outcome.FAILED)
    return jobs, run


def test_a_run_that_goes_on_leaves_no_row() -> None:
    jobs = fake_jobs()
    assert settled(jobs, run_of(jobs)).rows == ()


def test_a_run_that_ended_is_recorded_in_the_words_of_the_api() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    assert run.run_id is not None
    jobs.end_run(run.run_id, Outcome.FAILED, "no such column")

    (row,) = settled(jobs, run).rows

    assert (row.run_status, row.message) == (RunStatus.FAILED, "no such column")
    assert row.result_state == "FAILED"


def test_a_notice_of_the_first_attempt_does_not_end_the_second() -> None:
    jobs = fake_jobs()
    first = run_of(jobs)
    second = run_of(jobs, attempt=2)

    reported = settled(jobs, second, notice(run_id=first.run_id, intent_id="intent"))

    assert reported.rows == ()


def test_a_late_notice_of_an_earlier_run_does_not_end_a_start_without_an_answer() -> None:
    jobs = fake_jobs()
    jobs.go_down()

    reported = settled(jobs, intended(), notice(run_id=5))

    assert [row.run_status for row in reported.rows] == [RunStatus.INTENDED]


def test_a_late_notice_of_the_first_attempt_does_not_end_a_second_without_an_answer() -> None:
    jobs = fake_jobs()
    jobs.go_down()
    second = replace(intended(), attempt=2)

    reported = settled(jobs, second, notice(run_id=5, intent_id="intent"))

    assert [row.run_status for row in reported.rows] == [RunStatus.INTENDED]


def test_a_run_that_reports_its_success_before_any_answer_to_its_start_is_followed() -> None:
    jobs = fake_jobs()
    report = notice(run_id=5, intent_id="intent")
    reported = settled(jobs, intended(), report)
    (row,) = reported.rows
    assert (row.run_status, row.run_id) == (RunStatus.STARTED, 5)
    assert reported.waiting == (report,)


def test_a_report_of_success_waits_until_the_jobs_api_reports_the_end_of_the_run() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    assert run.run_id is not None
    for report in (
        notice(run_id=run.run_id),
        notice(intent_id="intent"),
        naming_attempt(notice(), run),
    ):
        reported = settled(jobs, run, report)
        assert (reported.rows, reported.waiting) == ((), (report,))

    jobs.end_run(run.run_id, Outcome.SUCCEEDED)
    reported = settled(jobs, run, notice(run_id=run.run_id))
    assert [row.reported_by for row in reported.rows] == ["poll"]
    assert reported.waiting == ()


def test_a_run_that_fails_after_it_has_reported_its_success_is_held_also_when_that_is_read_again() -> (
    None
):
    jobs = fake_jobs()
    run = run_of(jobs)
    assert run.run_id is not None
    jobs.end_run(run.run_id, Outcome.FAILED)
    for report in (notice(run_id=run.run_id), naming_attempt(notice(), run)):
        reported = settled(jobs, run, report)
        (row,) = reported.rows
        assert (row.run_status, reported.waiting) == (RunStatus.FAILED, ())
        again = settled(jobs, row, report)
        assert (again.rows, again.waiting) == ((), ())


def test_a_message_that_is_read_again_does_not_end_the_run_that_was_started_since() -> None:
    jobs = fake_jobs()
    first = run_of(jobs, status=RunStatus.FAILED)
    message = naming_attempt(notice(), first)
    (released,) = settled(jobs, first, message).rows
    assert released.run_status is RunStatus.SUCCEEDED_ELSEWHERE

    day_before = replace(notice(), sent_at=AT - timedelta(days=1))
    for since in (intended(), replace(run_of(jobs), intent_id="newer")):
        newer = replace(since, intent_id="newer")
        for each in (message, notice(), day_before):
            assert RunStatus.SUCCEEDED not in {
                row.run_status for row in settled(jobs, newer, each).rows
            }


def test_an_operator_may_count_a_start_without_an_answer_as_done() -> None:
    jobs = fake_jobs()
    jobs.go_down()
    (row,) = settled(jobs, intended(), naming_attempt(notice(), intended())).rows
    assert (row.run_status, row.reported_by) == (RunStatus.SUCCEEDED, "notice")


def test_a_lost_run_that_has_reported_its_success_is_no_longer_held() -> None:
    jobs = fake_jobs()
    run = run_of(jobs, status=RunStatus.LOST)
    (row,) = settled(jobs, run, notice(run_id=run.run_id)).rows
    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE


def test_a_report_that_names_another_run_lets_no_job_go_and_the_success_of_that_run_does() -> None:
    jobs, run = failed()
    by_hand = jobs.start_by_hand(JOB)
    for run_id in (5, by_hand):
        reported = settled(jobs, run, notice(run_id=run_id))
        assert (reported.rows, reported.waiting) == ((), ())

    jobs.end_run(by_hand, Outcome.SUCCEEDED)
    (row,) = settled(jobs, run).rows
    assert (row.run_status, row.reported_by) == (RunStatus.SUCCEEDED_ELSEWHERE, "poll")


def test_a_notice_about_a_run_that_failed_does_not_turn_it_into_a_success() -> None:
    jobs = fake_jobs()
    run = run_of(jobs, status=RunStatus.FAILED)
    assert settled(jobs, run, notice(run_id=run.run_id)).rows == ()


def test_a_jobs_api_that_does_not_answer_reports_nothing_about_the_run() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    jobs.go_down()

    reported = settled(jobs, run)

    assert reported.rows == ()
    assert list(reported.unanswered) == [JOB]


def test_a_clock_that_went_back_does_not_keep_a_lost_run_going_on() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    assert run.run_id is not None
    jobs.end_run(run.run_id, Outcome.LOST)
    noted_ahead = replace(run, message=NOT_KNOWN, recorded_at=TICK.at + timedelta(days=1))

    (noted,) = settled(jobs, noted_ahead).rows
    later = Tick(number=10, at=TICK.at + LOST_AFTER)
    (row,) = settled(jobs, noted, tick=later).rows

    assert row.run_status is RunStatus.LOST


def test_a_retry_of_a_run_that_goes_on_changes_nothing() -> None:
    jobs = fake_jobs()
    message = Message(kind=MessageKind.RETRY, job_id=JOB, sent_at=TICK.at)
    assert settled(jobs, run_of(jobs), message).rows == ()


# A start without an answer


LATE = Tick(number=99, at=AT + RESEND_FOR + timedelta(minutes=1))


def _start(jobs: FakeJobs, *, token: str = "token") -> int:
    """Let a first request have started a run, though its answer was lost."""
    parameters = {"heartbeat_intent_id": "intent", "heartbeat_token": token}
    jobs.run_now(job_id=JOB, token=token, parameters=parameters)
    jobs.requests.clear()
    return jobs.runs_of(JOB)[-1]


def _refused(jobs: FakeJobs) -> FakeJobs:
    """Let every further request be refused, as when the job is gone."""
    jobs.delete_job(JOB)
    return jobs


class Terse(FakeJobs):
    """Lists runs without their parameters; a request for the single run returns them."""

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        for report in super().list_runs(job_id, since=since):
            yield replace(report, parameters={})


class Unlisted(FakeJobs):
    """Answers everything but lists of runs."""

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        raise JobsApiError("the list did not come")


class Endless(FakeJobs):
    """Lists more runs than are read."""

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        yield from super().list_runs(job_id, since=since)
        raise UnreportedRunsError("the older ones were not read")


class Wordless(FakeJobs):
    """Answers a request for runs without reporting on them."""

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        raise UnreportedRunsError("it says nothing of its runs")


def test_a_start_without_an_answer_is_sent_again_with_its_token_and_its_parameters() -> None:
    jobs = fake_jobs()
    run_id = _start(jobs)

    (row,) = settled(jobs, intended()).rows

    assert (row.run_status, row.run_id) == (RunStatus.STARTED, run_id)
    (request,) = jobs.requests
    assert request.token == "token"
    assert request.parameters == json.loads(intended().parameters)


def test_a_start_that_stays_without_an_answer_is_reported_at_every_tick_and_recorded_once() -> None:
    jobs = fake_jobs()
    jobs.go_down()
    (first,) = settled(jobs, intended()).rows
    again = settled(jobs, first)
    assert again.rows == ()
    assert again.unanswered == {JOB: first.message}


def test_a_start_that_is_refused_when_sent_again_is_the_run_that_an_earlier_request_started() -> (
    None
):
    jobs = fake_jobs()
    run_id = _start(jobs)

    (row,) = settled(_refused(jobs), intended()).rows

    assert (row.run_status, row.run_id, row.started_at) == (RunStatus.STARTED, run_id, AT)
    assert (row.message, row.termination_code, row.ended_at) == (None, None, None)


def test_a_run_found_after_a_refusal_has_the_end_that_it_came_to() -> None:
    jobs = fake_jobs()
    run_id = _start(jobs)
    jobs.end_run(run_id, Outcome.FAILED, "no such column")

    (row,) = settled(_refused(jobs), intended()).rows

    assert (row.run_status, row.run_id) == (RunStatus.FAILED, run_id)
    assert (row.message, row.termination_code) == ("no such column", "RUN_EXECUTION_ERROR")


def test_a_start_that_is_refused_when_sent_again_is_parked_in_the_words_of_the_api() -> None:
    store = MemoryStore()

    (row,) = settled(_refused(fake_jobs()), intended(), store=store).rows

    assert row.run_status is RunStatus.PARKED
    assert f"Job {JOB} does not exist." in (row.message or "")
    assert row.termination_code == "INVALID_PARAMETER_VALUE"
    assert row.ended_at is None
    # The refusal is durable before the list is requested: killed between, no token is sent again.
    assert [_status(step) for step in store.rows[Ledger.RUNS]] == ["INTENDED", "PARKED"]


def _status(row: object) -> str:
    assert isinstance(row, Run)
    return row.run_status


def test_a_token_whose_run_was_deleted_starts_no_other() -> None:
    jobs = fake_jobs()
    jobs.end_run(_start(jobs), Outcome.LOST)

    (row,) = settled(jobs, intended()).rows

    assert row.run_status is RunStatus.PARKED
    assert "deleted" in (row.message or "")
    assert jobs.runs_of(JOB) == []


def test_a_run_of_another_attempt_or_another_state_directory_is_not_taken_for_this_start() -> None:
    jobs = fake_jobs()
    _start(jobs, token="another")

    (row,) = settled(_refused(jobs), intended()).rows

    assert (row.run_status, row.run_id) == (RunStatus.PARKED, None)


@pytest.mark.parametrize("ahead", [timedelta(minutes=4), timedelta(hours=1), timedelta(days=400)])
def test_the_run_of_a_start_that_was_decided_by_a_clock_far_ahead_is_found(
    ahead: timedelta,
) -> None:
    jobs = fake_jobs()
    run_id = _start(jobs)
    early = replace(intended(), decided_at=AT + ahead)

    # By the clock that is right now, and by the one that was wrong.
    for at in (AT, AT + ahead):
        (row,) = settled(_refused(jobs), early, tick=Tick(number=9, at=at)).rows
        assert (row.run_status, row.run_id) == (RunStatus.STARTED, run_id)
        jobs.add_job(JOB)


def test_a_start_that_was_decided_by_a_clock_ahead_is_not_sent_again_since_its_age_is_unknown() -> (
    None
):
    jobs = fake_jobs()
    year_ahead = replace(intended(), decided_at=AT + timedelta(days=365))

    (row,) = settled(jobs, year_ahead).rows

    assert row.run_status is RunStatus.PARKED
    assert "by a clock that was ahead (2027-03-01 08:00 UTC)" in (row.message or "")
    assert jobs.requests == []


def test_a_list_that_is_too_long_to_be_read_proves_nothing_and_what_was_read_counts() -> None:
    jobs = Endless(clock=FakeClock(AT))
    jobs.add_job(JOB)
    (parked,) = settled(jobs, intended(), tick=LATE).rows
    assert "the older ones were not read" in (parked.message or "")

    run_id = _start(jobs)
    (found,) = settled(jobs, intended(), tick=LATE).rows
    assert (found.run_status, found.run_id) == (RunStatus.STARTED, run_id)


def test_a_list_without_parameters_is_completed_run_by_run() -> None:
    jobs = Terse(clock=FakeClock(AT))
    jobs.add_job(JOB)
    run_id = _start(jobs)

    (row,) = settled(_refused(jobs), intended()).rows

    assert (row.run_status, row.run_id) == (RunStatus.STARTED, run_id)


def test_of_two_runs_with_the_same_parameters_the_first_one_is_that_of_the_start() -> None:
    jobs = fake_jobs()
    run_id = _start(jobs)
    copied = {"heartbeat_token": "token"}
    jobs.run_now(job_id=JOB, token="by hand, with the parameters copied", parameters=copied)

    (row,) = settled(_refused(jobs), intended()).rows

    assert row.run_id == run_id


def test_a_refused_start_beside_a_run_that_does_not_state_whose_it_is_is_parked() -> None:
    jobs = fake_jobs()
    run_id = jobs.start_by_hand(JOB)

    (row,) = settled(_refused(jobs), intended()).rows

    assert (row.run_status, row.run_id, row.ended_at) == (RunStatus.PARKED, None, None)
    assert f"Job {JOB} does not exist" in (row.message or "")
    assert str(run_id) in (row.message or "")
    assert f"`retry {JOB}`" in (row.message or "")


def test_a_refused_start_is_parked_when_the_api_has_no_word_of_the_jobs_runs() -> None:
    jobs = Wordless(clock=FakeClock(AT))
    jobs.add_job(JOB)

    (row,) = settled(_refused(jobs), intended()).rows

    assert (row.run_status, row.run_id, row.ended_at) == (RunStatus.PARKED, None, None)
    assert "it says nothing of its runs" in (row.message or "")


def test_a_refusal_proves_nothing_while_the_runs_cannot_be_listed_and_is_not_requested_twice() -> (
    None
):
    jobs = Unlisted(clock=FakeClock(AT))
    jobs.add_job(JOB)
    _refused(jobs)

    reported = settled(jobs, intended())

    (row,) = reported.rows
    assert (row.run_status, row.message) == (RunStatus.INTENDED, f"Job {JOB} does not exist.")
    assert reported.unanswered == {JOB: "the list did not come"}

    # Meanwhile the job is there again: the token would start a run now, and nobody asked for that.
    jobs.add_job(JOB)
    again = settled(jobs, row)

    assert (again.rows, again.unanswered) == ((), {JOB: "the list did not come"})
    assert len(jobs.requests) == 1


def test_a_refusal_is_investigated_by_the_next_tick_when_this_one_could_not() -> None:
    jobs = fake_jobs()
    run_id = _start(jobs)
    noted = replace(intended(), termination_code="INVALID_PARAMETER_VALUE", message="no such job")

    (row,) = settled(jobs, noted).rows

    assert (row.run_status, row.run_id) == (RunStatus.STARTED, run_id)
    assert jobs.requests == []


def test_a_start_is_sent_again_up_to_the_end_of_the_days_for_which_its_token_is_surely_known() -> (
    None
):
    jobs = fake_jobs()
    settled(jobs, intended(), tick=Tick(number=98, at=AT + RESEND_FOR))
    assert len(jobs.requests) == 1


def test_after_those_days_the_run_is_searched_for_and_the_token_is_not_sent() -> None:
    jobs = fake_jobs()
    run_id = _start(jobs)

    (row,) = settled(jobs, intended(), tick=LATE).rows

    assert (row.run_status, row.run_id, row.started_at) == (RunStatus.STARTED, run_id, AT)
    assert jobs.requests == []


def test_after_those_days_a_start_without_a_run_is_parked_for_the_operator() -> None:
    jobs = fake_jobs()

    (row,) = settled(jobs, intended(), tick=LATE).rows

    assert (row.run_status, row.reported_by) == (RunStatus.PARKED, "poll")
    assert f"`retry {JOB}`" in (row.message or "")
    assert "7 days" in (row.message or "")
    assert jobs.requests == []
    assert row.holds_job


def test_after_those_days_a_list_that_does_not_come_decides_nothing() -> None:
    jobs = Unlisted(clock=FakeClock(AT))
    jobs.add_job(JOB)

    reported = settled(jobs, intended(), tick=LATE)

    assert (reported.rows, reported.unanswered) == ((), {JOB: "the list did not come"})
    assert jobs.requests == []


def _parked() -> Run:
    return replace(intended(), run_status=RunStatus.PARKED, message="parked")


def test_a_retry_of_a_parked_start_gives_its_events_back() -> None:
    message = Message(kind=MessageKind.RETRY, job_id=JOB, sent_at=LATE.at)
    (row,) = settled(fake_jobs(), _parked(), message, tick=LATE).rows
    assert row.run_status is RunStatus.RETRY_REQUESTED


def test_a_later_success_of_anyone_releases_a_parked_start() -> None:
    jobs = fake_jobs()
    run_id = jobs.start_by_hand(JOB)
    jobs.end_run(run_id, Outcome.SUCCEEDED)

    (row,) = settled(jobs, _parked(), tick=LATE).rows

    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE
    assert str(run_id) in (row.message or "")


def test_a_parked_start_whose_own_run_reports_that_it_succeeded_is_released() -> None:
    reported = settled(fake_jobs(), _parked(), notice(run_id=5, intent_id="intent"))

    (row,) = reported.rows

    assert row.run_status is RunStatus.SUCCEEDED_ELSEWHERE
    assert "run 5" in (row.message or "")


def test_a_parked_start_stays_parked_while_nothing_is_known() -> None:
    jobs = fake_jobs()
    assert settled(jobs, _parked(), tick=LATE).rows == ()
    assert jobs.requests == []

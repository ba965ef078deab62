"""What an operator's messages do to a held job, and that each of them counts once."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.platform.databricks.api import Outcome
from harness.settle.operator_messages import LONGEST_REASON
from harness.store.inbox import Message, MessageKind, receive, send
from harness.store.rows import HOLDING, Run, RunStatus
from tests.support.following import AT, JOB, TICK, fake_jobs, notice, run_of, settled


def held(status: RunStatus = RunStatus.FAILED, **changed: object) -> Run:
    run = replace(run_of(fake_jobs(), status=status), ended_at=AT, message="no such column")
    return replace(run, **changed)  # type: ignore[arg-type]


def asks(kind: MessageKind, run: Run, **more: str | None) -> Message:
    """What the command line leaves in the inbox about a run."""
    return Message(
        kind=kind,
        job_id=JOB,
        intent_id=run.intent_id,
        attempt=run.attempt,
        sent_at=TICK.at,
        sent_by=more.get("sent_by", "ada"),
        reason=more.get("reason"),
    )


@pytest.mark.parametrize("status", sorted(HOLDING))
def test_a_release_lets_a_job_go_whatever_held_it(status: RunStatus) -> None:
    run = held(status)
    (row,) = settled(fake_jobs(), run, asks(MessageKind.RELEASE, run)).rows
    assert (row.run_status, row.reported_by) == (RunStatus.RELEASED, "operator")
    assert not row.holds_job
    assert not row.is_open


def test_a_release_keeps_who_requested_it_why_and_what_the_run_had_come_to() -> None:
    run = held(termination_code="RUN_EXECUTION_ERROR")
    message = asks(MessageKind.RELEASE, run, reason="loaded by hand")
    (row,) = settled(fake_jobs(), run, message).rows
    assert row.message == "released by ada: loaded by hand; it was FAILED: no such column"
    assert (row.run_id, row.ended_at) == (run.run_id, AT)
    assert row.termination_code == "RUN_EXECUTION_ERROR"


def test_a_release_keeps_what_the_run_took() -> None:
    run = held()
    (row,) = settled(fake_jobs(), run, asks(MessageKind.RELEASE, run)).rows
    assert (row.consumed, row.event_ids) == (run.consumed, run.event_ids)


def test_a_start_without_a_run_ends_when_it_is_released() -> None:
    run = held(RunStatus.PARKED, run_id=None, ended_at=None)
    (row,) = settled(fake_jobs(), run, asks(MessageKind.RELEASE, run)).rows
    assert row.ended_at == TICK.at


def test_a_reason_is_one_line_of_bounded_length() -> None:
    run = held(message=None)
    message = asks(MessageKind.RELEASE, run, reason="a\x1b[2J\n" + "b" * 2 * LONGEST_REASON)
    (row,) = settled(fake_jobs(), run, message).rows
    assert row.message is not None
    assert row.message.isprintable()
    assert row.message.startswith("released by ada: a [2J b")
    assert len(row.message) < LONGEST_REASON + 100


@pytest.mark.parametrize("kind", [MessageKind.RETRY, MessageKind.RELEASE])
def test_a_run_that_goes_on_is_neither_repeated_nor_given_up(kind: MessageKind) -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    assert settled(jobs, run, asks(kind, run)).rows == ()


@pytest.mark.parametrize("kind", [MessageKind.RETRY, MessageKind.RELEASE])
def test_a_message_that_is_read_again_is_not_about_the_attempt_that_failed_since(
    kind: MessageKind,
) -> None:
    first = held()
    second = replace(first, attempt=2)
    assert settled(fake_jobs(), second, asks(kind, first)).rows == ()


@pytest.mark.parametrize("kind", [MessageKind.RETRY, MessageKind.RELEASE])
def test_a_message_that_is_read_again_is_not_about_the_next_intent(kind: MessageKind) -> None:
    run = held()
    newer = replace(run, intent_id="newer")
    assert settled(fake_jobs(), newer, asks(kind, run)).rows == ()


def test_of_a_retry_and_a_release_of_one_run_the_first_counts() -> None:
    run = held()
    both = (asks(MessageKind.RETRY, run), asks(MessageKind.RELEASE, run))
    (row,) = settled(fake_jobs(), run, *both).rows
    assert row.run_status is RunStatus.RETRY_REQUESTED


def test_a_release_counts_though_the_jobs_api_is_down() -> None:
    jobs = fake_jobs()
    jobs.go_down()
    run = held()
    reported = settled(jobs, run, asks(MessageKind.RELEASE, run))
    assert [row.run_status for row in reported.rows] == [RunStatus.RELEASED]
    assert not reported.unanswered


def test_a_report_of_success_waits_while_the_jobs_api_does_not_answer() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    jobs.go_down()
    reported = settled(jobs, run, notice(run_id=run.run_id))
    assert reported.rows == ()
    assert reported.waiting == (notice(run_id=run.run_id),)


def test_a_notice_of_an_unknown_run_changes_nothing() -> None:
    jobs = fake_jobs()
    assert settled(jobs, run_of(jobs), notice(run_id=5)).rows == ()


def test_a_notice_and_a_poll_of_one_tick_end_a_run_once() -> None:
    jobs = fake_jobs()
    run = run_of(jobs)
    assert run.run_id is not None
    jobs.end_run(run.run_id, Outcome.SUCCEEDED)
    assert len(settled(jobs, run, notice(run_id=run.run_id)).rows) == 1


@pytest.mark.parametrize("kind", [MessageKind.COMPLETE, MessageKind.RETRY, MessageKind.RELEASE])
def test_a_message_of_an_earlier_version_counts_for_the_attempt_that_it_meets_and_no_later_one(
    kind: MessageKind, tmp_path: Path
) -> None:
    run = held()
    send(tmp_path, Message(kind=kind, job_id=JOB, sent_at=TICK.at))
    assert len(settled(fake_jobs(), run, *receive(tmp_path)).rows) == 1
    # The tick died before it removed the file. The next attempt fails, too, by a clock that went back.
    later = held(attempt=2, decided_at=AT - timedelta(days=1))
    assert settled(fake_jobs(), later, *receive(tmp_path)).rows == ()


def test_a_message_of_an_earlier_version_that_is_older_than_the_held_run_is_not_about_it(
    tmp_path: Path,
) -> None:
    old = Message(kind=MessageKind.COMPLETE, job_id=JOB, sent_at=AT - timedelta(days=1))
    send(tmp_path, old)
    assert settled(fake_jobs(), held(), *receive(tmp_path)).rows == ()
    [message] = receive(tmp_path)
    assert message.attempt is None

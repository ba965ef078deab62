"""Follows what earlier ticks started: the inbox first, then the Jobs API, run by run.

A run ends once: by a notice of its last task, or by a poll, whichever comes first. A run that
failed is followed on, until some run of its job succeeds or an operator wants it again.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from harness.calls import CALLS_AT_ONCE, Firing, Steps, send
from harness.errors import JobsApiError
from harness.inbox import Message, MessageKind
from harness.jobs.types import Outcome, RunReport
from harness.state import FollowedRun
from harness.tables import Ledger, RunRow, RunStatus, Tick

log = logging.getLogger(__name__)

#: What a run's row says while the Jobs API does not know the run; said again for long, it is lost.
NOT_KNOWN = "the Jobs API does not know the run"
LOST_AFTER = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What following the runs came to."""

    #: Rows that were appended, newest step of each run last.
    rows: tuple[RunRow, ...] = ()
    #: Messages whose content is in a ledger, or that say nothing about a run we know.
    folded: tuple[Message, ...] = ()
    #: Runs that could not be asked about, and why.
    unanswered: Mapping[int, str] = field(default_factory=dict)


def settle(
    runs: Sequence[FollowedRun],
    messages: Sequence[Message],
    *,
    tick: Tick,
    firing: Firing,
    steps: Steps,
) -> Settled:
    """Fold in the inbox, poll the runs, resend what was never acknowledged.

    Raises:
        StateError: A ledger cannot be written; the messages stay in the inbox.
    """
    by_job = {run.job_id: run for run in runs}
    told = _rows_of_messages(messages, by_job, tick)
    noticed = {row.job_id for row in told}
    polled, unanswered = _poll([run for run in runs if run.job_id not in noticed], tick, firing)
    rows = [replace(row, step_number=steps.next()) for row in (*told, *polled)]
    firing.store.append(Ledger.RUNS, rows)
    unsent = [
        _row(run, tick, run.run_status, "decision")
        for run in runs
        if run.run_id is None and run.is_open and run.job_id not in noticed
    ]
    resent = send(unsent, tick=tick, firing=firing, steps=steps, again=True)
    sent = [row for row in resent if row.step_number]
    return Settled(rows=(*rows, *sent), folded=tuple(messages), unanswered=unanswered)


def _rows_of_messages(
    messages: Iterable[Message], by_job: Mapping[int, FollowedRun], tick: Tick
) -> list[RunRow]:
    rows: dict[int, RunRow] = {}
    for message in messages:
        run = by_job.get(message.job_id)
        row = _row_of(message, run, tick) if run and message.job_id not in rows else None
        if row:
            rows[row.job_id] = row
        else:
            log.info("inbox: %s of job %s changes nothing", message.kind, message.job_id)
    return list(rows.values())


def _row_of(message: Message, run: FollowedRun, tick: Tick) -> RunRow | None:
    match message.kind:
        case MessageKind.COMPLETE:
            return _row_of_completion(message, run, tick)
        case MessageKind.RETRY:
            if not run.holds_job:
                return None
            return _row(run, tick, RunStatus.RETRY_REQUESTED, "operator")


def _row_of_completion(message: Message, run: FollowedRun, tick: Tick) -> RunRow | None:
    is_same = _is_about(message, run)
    if run.is_open:
        if not is_same:
            return None
        row = _row(run, tick, RunStatus.SUCCEEDED, "notice")
        return replace(row, run_id=run.run_id or message.run_id, ended_at=message.sent_at)
    # What ended, ended: only another run of the job can release it.
    if is_same or message.sent_at < run.decided_at:
        return None
    row = _row(run, tick, RunStatus.SUCCEEDED_ELSEWHERE, "notice")
    return replace(row, ended_at=message.sent_at, message=_released_by(message.run_id))


def _is_about(message: Message, run: FollowedRun) -> bool:
    """Tell whether a notice is about this run; one that names only the job means its open run."""
    # Attempts share an intent, so the run says more when both are known.
    if message.run_id is not None and run.run_id is not None:
        return message.run_id == run.run_id
    if message.intent_id is not None:
        return message.intent_id == run.intent_id
    return run.is_open


def _poll(
    runs: Sequence[FollowedRun], tick: Tick, firing: Firing
) -> tuple[list[RunRow], dict[int, str]]:
    asked = [run for run in runs if run.run_id is not None or run.holds_job]
    rows, unanswered = [], {}
    with ThreadPoolExecutor(max_workers=CALLS_AT_ONCE, thread_name_prefix="settle") as pool:
        answers = [pool.submit(copy_context().run, _ask, run, tick, firing) for run in asked]
        for run, answered in zip(asked, answers, strict=True):
            answer = answered.result()
            if isinstance(answer, str):
                unanswered[run.job_id] = answer
            elif answer is not None:
                rows.append(answer)
    return rows, unanswered


def _ask(run: FollowedRun, tick: Tick, firing: Firing) -> RunRow | str | None:
    firing.questions.take()
    try:
        return _held(run, tick, firing) if run.holds_job else _open(run, tick, firing)
    except JobsApiError as error:
        log.warning("job %s: its run cannot be asked about: %s", run.job_id, error)
        return str(error)


def _open(run: FollowedRun, tick: Tick, firing: Firing) -> RunRow | None:
    assert run.run_id is not None
    report = firing.api.get_run(run.run_id)
    if report is None:
        return _missing(run, tick)
    if report.outcome is not None:
        return _ended(run, report, tick)
    if run.message == NOT_KNOWN:
        return replace(_row(run, tick, RunStatus.STARTED, "poll"), message=None)
    return None


def _missing(run: FollowedRun, tick: Tick) -> RunRow | None:
    """Give a run up only when the API goes on not knowing it: one such answer may be a slip."""
    log.warning("job %s: the Jobs API does not know run %s", run.job_id, run.run_id)
    if run.message != NOT_KNOWN:
        return replace(_row(run, tick, RunStatus.STARTED, "poll"), message=NOT_KNOWN)
    if tick.at - run.recorded_at < LOST_AFTER:
        return None
    return replace(_row(run, tick, RunStatus.LOST, "poll"), ended_at=tick.at)


def _ended(run: FollowedRun, report: RunReport, tick: Tick) -> RunRow:
    outcome = report.outcome
    assert outcome is not None
    log.info("job %s: run %s ended %s", run.job_id, run.run_id, outcome)
    return replace(
        _row(run, tick, RunStatus(outcome), "poll"),
        started_at=report.started_at or run.started_at,
        ended_at=report.ended_at or tick.at,
        life_cycle_state=report.life_cycle_state,
        result_state=report.result_state,
        state=report.state,
        termination_code=report.termination_code,
        message=report.message,
        run_page_url=report.run_page_url,
    )


def _held(run: FollowedRun, tick: Tick, firing: Firing) -> RunRow | None:
    """Look for a success that ends the hold: a later run by anyone, or a repair of the same run."""
    since: datetime = run.started_at or run.decided_at
    for report in firing.api.list_runs(run.job_id, since=since):
        if report.outcome is Outcome.SUCCEEDED:
            log.info("job %s: released by run %s", run.job_id, report.run_id)
            return replace(
                _row(run, tick, RunStatus.SUCCEEDED_ELSEWHERE, "poll"),
                ended_at=report.ended_at or tick.at,
                message=_released_by(report.run_id),
            )
    return None


def _released_by(run_id: int | None) -> str:
    return f"released by the success of run {run_id}" if run_id else "released by a later success"


def _row(run: FollowedRun, tick: Tick, status: RunStatus, reported_by: str) -> RunRow:
    return RunRow(
        tick_number=tick.number,
        step_number=0,
        recorded_at=tick.at,
        job_id=run.job_id,
        job_name=run.job_name,
        intent_id=run.intent_id,
        attempt=run.attempt,
        token=run.token,
        run_id=run.run_id,
        run_status=status,
        reported_by=reported_by,
        decided_tick=run.decided_tick,
        decided_at=run.decided_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        life_cycle_state=run.life_cycle_state,
        result_state=run.result_state,
        state=run.state,
        termination_code=run.termination_code,
        message=run.message,
        run_page_url=run.run_page_url,
        consumed=run.consumed,
        event_count=len(run.event_ids),
        event_ids=run.event_ids,
        parameters=run.parameters,
    )

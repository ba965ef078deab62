"""Follows what earlier ticks started: the inbox first, then the Jobs API, run by run.

A run ends once: by a notice of its last task, or by a poll, whichever comes first. A run that
failed is followed on, until some run of its job succeeds or an operator wants it again. A start
that was not acknowledged is sent again, and looked for where sending it again is of no use.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import timedelta

from harness.errors import JobsApiError, NoSuchJobError, ThrottledError
from harness.fire.intents import fire_waiting
from harness.fire.submit import Firing, Steps, send
from harness.platform.databricks.api import Outcome, RunReport
from harness.platform.databricks.run_states import is_over
from harness.settle.find_run import Search, find_run
from harness.settle.operator_messages import apply_messages, named, released_by
from harness.settle.run_progress import ended, row_of_poll, ways_out
from harness.store.inbox import Message
from harness.store.rows import OPEN, Ledger, Run, RunStatus, Tick

log = logging.getLogger(__name__)

#: So long after its decision a start without an answer is sent again. How long Databricks keeps an
#: idempotency token is undocumented; its runs are gone after 60 days, so this stays well below.
RESEND_FOR = timedelta(days=7)

#: The clock of the Jobs API may be behind ours by so much.
CLOCK_SKEW = timedelta(minutes=10)

#: A run in one of these has no end that the Jobs API reported.
_WITHOUT_END = OPEN | {RunStatus.PARKED, RunStatus.LOST}

#: What stands for the result of a poll that was not made yet.
POLLED_LATER = "the Jobs API has had too many requests; the run is polled later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What following the runs came to."""

    #: The newest row of each run that took a step.
    rows: tuple[Run, ...] = ()
    #: Reports of success that stay in the inbox until the Jobs API has reported the end of the run.
    waiting: tuple[Message, ...] = ()
    #: Jobs whose run could not be polled, or whose start goes on having no answer; and why.
    unanswered: Mapping[int, str] = field(default_factory=dict)
    #: Jobs on hold with an active run: an operator has started or repaired one.
    busy: frozenset[int] = frozenset()


def settle(
    runs: Sequence[Run],
    messages: Sequence[Message],
    *,
    tick: Tick,
    firing: Firing,
    steps: Steps,
) -> Settled:
    """Apply the inbox, poll the runs, send again what was never acknowledged.

    Raises:
        StateError: A ledger cannot be written; the messages stay in the inbox.
    """
    by_job = {run.job_id: run for run in runs}
    applied = apply_messages(named(messages, by_job), by_job, tick)
    moved = {row.job_id for row in applied.rows}
    others = [run for run in runs if run.job_id not in moved]
    waiting = [run for run in others if run.awaits_parameters]
    others = [run for run in others if not run.awaits_parameters]
    unsent = [run for run in others if _is_to_be_sent_again(run, tick)]
    requested = [run for run in others if not _is_to_be_sent_again(run, tick)]
    polled = _poll(requested, tick, firing)
    rows = _appended((*applied.rows, *polled.rows), firing, steps)
    sent, unlisted = _send_again(unsent, tick, firing, steps)
    first, unread = _send_waiting(waiting, tick, firing, steps)
    settled = Settled(
        rows=(*rows, *sent, *first),
        unanswered={**polled.unanswered, **unlisted, **unread},
        busy=polled.busy,
    )
    return replace(settled, waiting=_still_waiting(applied.waiting, by_job, settled))


def _still_waiting(
    waiting: Mapping[int, Sequence[Message]], by_job: Mapping[int, Run], settled: Settled
) -> tuple[Message, ...]:
    """Return the reports whose run has not ended as far as the Jobs API has reported."""
    statuses = {row.job_id: row.run_status for row in settled.rows}
    unclear = {job_id for job_id, status in statuses.items() if status in _WITHOUT_END}
    still = {job_id for job_id in by_job.keys() - statuses.keys() if by_job[job_id].is_open}
    kept = unclear | still
    return tuple(each for job_id, own in waiting.items() if job_id in kept for each in own)


def _appended(rows: Iterable[Run], firing: Firing, steps: Steps) -> list[Run]:
    numbered = [replace(row, step_number=steps.next()) for row in rows]
    firing.store.append(Ledger.RUNS, numbered)
    return numbered


def _is_to_be_sent_again(run: Run, tick: Tick) -> bool:
    """Return whether resending the idempotency token can only start the one run or name it."""
    was_refused = run.termination_code is not None
    # Decided by a clock that was ahead: how long ago that was, and whether the idempotency
    # token is still kept, cannot be determined.
    is_known_age = -CLOCK_SKEW <= tick.at - run.decided_at <= RESEND_FOR
    return run.is_unanswered and not was_refused and is_known_age


def _send_again(
    runs: Sequence[Run], tick: Tick, firing: Firing, steps: Steps
) -> tuple[list[Run], dict[int, str]]:
    """Send starts again, and search for the run of each that is refused now.

    A refusal is recorded before the search. Whatever comes between, the next tick searches first.
    """
    intents = [run.step(tick, run.run_status, "decision") for run in runs]
    sent = send(intents, tick=tick, firing=firing, steps=steps, again=True)
    changes = [row for row in sent if row.step_number]
    refused = [row for row in changes if row.termination_code is not None]
    polled = _poll(refused, tick, firing)
    found = _appended(polled.rows, firing, steps)
    found_jobs = {row.job_id for row in found}
    silent = {row.job_id: row.message or "" for row in sent if not row.step_number}
    rows = [*(row for row in changes if row.job_id not in found_jobs), *found]
    return rows, {**silent, **polled.unanswered}


def _send_waiting(
    runs: Sequence[Run], tick: Tick, firing: Firing, steps: Steps
) -> tuple[list[Run], dict[int, str]]:
    """Send starts for the first time whose jobs could not be read when they were decided."""
    newest = fire_waiting(runs, tick=tick, firing=firing, steps=steps)
    changes = [row for row, run in zip(newest, runs, strict=True) if row != run]
    silent = {
        row.job_id: row.message or "" for row, run in zip(newest, runs, strict=True) if row == run
    }
    return changes, silent


class _GoesOn:
    """The result for a held job of which a run goes on that is not the one that failed."""


def _poll(runs: Sequence[Run], tick: Tick, firing: Firing) -> Settled:
    rows, unanswered, busy = [], {}, set()
    with firing.pool() as pool:
        answers = [pool.submit(copy_context().run, _poll_one, run, tick, firing) for run in runs]
        for run, answered in zip(runs, answers, strict=True):
            answer = answered.result()
            if isinstance(answer, str):
                unanswered[run.job_id] = answer
            elif isinstance(answer, _GoesOn):
                busy.add(run.job_id)
            elif answer is not None:
                rows.append(answer)
    return Settled(rows=tuple(rows), unanswered=unanswered, busy=frozenset(busy))


def _poll_one(run: Run, tick: Tick, firing: Firing) -> Run | str | _GoesOn | None:
    if firing.questions.waits.holds_back(tick.at):
        return POLLED_LATER
    firing.questions.take()
    try:
        if run.is_unanswered:
            return _in_doubt(run, tick, firing)
        if run.holds_job:
            return _held(run, tick, firing)
        assert run.run_id is not None
        return row_of_poll(run, firing.api.get_run(run.run_id), tick)
    except JobsApiError as error:
        if isinstance(error, ThrottledError):
            firing.questions.waits.hold_all(error.wait_seconds, tick.at)
        log.warning("job %s: its run cannot be polled: %s", run.job_id, error)
        return str(error)


def _in_doubt(run: Run, tick: Tick, firing: Firing) -> Run:
    """Find out what became of a start that was refused when sent again, or whose age forbids it.

    It may have a run that was deleted, or whose job was: no list proves that there was none.
    """
    search = find_run(run, firing)
    if search.found is not None:
        return _adopted(run, search.found, tick)
    log.warning("job %s: no run of its start was found", run.job_id)
    parked = run.step(tick, RunStatus.PARKED, "poll")
    return replace(parked, message=_parked_because(run, search, tick))


def _adopted(run: Run, report: RunReport, tick: Tick) -> Run:
    log.info("job %s: run %s is that of its start", run.job_id, report.run_id)
    known = replace(run, run_id=report.run_id)
    if report.outcome is not None:
        return ended(known, report, tick)
    return replace(
        known.step(tick, RunStatus.STARTED, "answer"),
        started_at=report.started_at or tick.at,
        termination_code=None,
        message=None,
        run_page_url=report.run_page_url,
    )


def _parked_because(run: Run, search: Search, tick: Tick) -> str:
    if run.termination_code is not None:
        why = f"the start was refused when it was sent again ({run.message})"
    elif run.decided_at > tick.at:
        decided = f"{run.decided_at:%Y-%m-%d %H:%M} UTC"
        why = f"the start was decided by a clock that was ahead ({decided})"
    else:
        why = f"the start had no answer for {RESEND_FOR.days} days"
    seen = "none of the job's runs is known to be of it, which a deleted run would not be either"
    if search.untold:
        named = ", ".join(map(str, search.untold[:3])) + (", ..." if len(search.untold) > 3 else "")
        seen = f"some of the job's runs do not show who started them ({named})"
    elif search.problem:
        seen = f"not all runs of the job can be seen: {search.problem}"
    return (
        f"{why}, and {seen}: whether it has a run is not known; check the job in the workspace, "
        f"then {ways_out(run.job_id)}"
    )


def _held(run: Run, tick: Tick, firing: Firing) -> Run | _GoesOn | None:
    """Look for a success that ends the hold: a later run by anyone, or a repair of the same run."""
    since = run.started_at or run.decided_at
    # By the clock of the Jobs API the run itself may have started before that.
    reports = firing.api.list_runs(run.job_id, since=since - CLOCK_SKEW)
    try:
        return _released(run, reports, tick)
    except NoSuchJobError:
        return None


def _released(run: Run, reports: Iterable[RunReport], tick: Tick) -> Run | _GoesOn | None:
    since, goes_on = run.started_at or run.decided_at, False
    for report in reports:
        is_later = report.started_at is not None and report.started_at >= since
        is_ours_or_later = report.run_id == run.run_id or is_later
        if report.outcome is Outcome.SUCCEEDED and is_ours_or_later:
            log.info("job %s: released by run %s", run.job_id, report.run_id)
            return replace(
                run.step(tick, RunStatus.SUCCEEDED_ELSEWHERE, "poll"),
                ended_at=report.ended_at or tick.at,
                message=released_by(report.run_id),
            )
        goes_on |= report.outcome is None and not is_over(report)
    return _GoesOn() if goes_on else None

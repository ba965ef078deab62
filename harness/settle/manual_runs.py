"""Counts the success of a run that was started by hand, when the run reports it itself.

Only a report that names its run counts, once the Jobs API reports that this run of the job has
succeeded. A run reads what is there when it begins, so it has consumed the unconsumed events of an
upstream if all of them had been recorded well before; otherwise the job starts as usual.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from harness.controls.load import newest_controls
from harness.errors import JobsApiError, ThrottledError
from harness.events.payload import events_of
from harness.fire.submit import Firing, Steps
from harness.fire.token import TOKEN_PARAMETER
from harness.platform.databricks.api import Outcome, RunReport
from harness.settle.pull_consumers import done_through, last_step, run_row
from harness.settle.settle import CLOCK_SKEW, POLLED_LATER
from harness.store.inbox import Message, MessageKind
from harness.store.queries import SCHEDULED_JOBS, newest_probe
from harness.store.rows import Consumed, Ledger, Run, Store, Tick, integer
from harness.store.work_lists import NOTHING_CONSUMED, StateView

log = logging.getLogger(__name__)

#: Who reports such a run.
REPORTED_BY = "notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualRuns:
    """What the reports of one tick come to."""

    rows: tuple[Run, ...] = ()
    #: Reports that stay in the inbox until the Jobs API has reported the end of their run.
    waiting: tuple[Message, ...] = ()


def reports_in(messages: Iterable[Message], state: StateView) -> list[Message]:
    """Return the messages that report a run of a job of which no run is followed."""
    followed = {run.job_id for run in state.runs}
    return [
        each
        for each in messages
        if each.kind is MessageKind.COMPLETE
        and each.intent_id is None
        and each.run_id is not None
        and each.job_id not in followed
    ]


def apply(
    messages: Iterable[Message], state: StateView, *, tick: Tick, steps: Steps, firing: Firing
) -> ManualRuns:
    """Append a row for each manual run that has consumed anything.

    Args:
        messages: Reports that name a manual run.
        state: The state of this process.
        tick: The present tick.
        steps: Numbers the rows.
        firing: The Jobs API and the ledgers.

    Raises:
        StateError: A table cannot be read or written; the messages stay in the inbox.
    """
    rows: list[Run] = []
    waiting: list[Message] = []
    is_unreachable = False
    for message in messages:
        try:
            report = None if is_unreachable else _polled(message, tick, firing)
        except JobsApiError as error:
            log.warning("job %s: its run cannot be polled: %s", message.job_id, error)
            if isinstance(error, ThrottledError):
                firing.questions.waits.hold_all(error.wait_seconds, tick.at)
            # Each of them would wait for the same time-out, one after the other.
            is_unreachable = True
        if is_unreachable or (report is not None and report.outcome is None):
            waiting.append(message)
            continue
        consumed = _consumed(report, message, state, tick, firing) if report else ()
        if report is None or not consumed:
            log.info("inbox: complete of job %s changes nothing", message.job_id)
            continue
        row = replace(_row(report, message, consumed, tick, firing.store), step_number=steps.next())
        # One by one: the next report may be of the same job.
        firing.store.append(Ledger.RUNS, [row])
        rows.append(row)
    return ManualRuns(rows=tuple(rows), waiting=tuple(waiting))


def _polled(message: Message, tick: Tick, firing: Firing) -> RunReport | None:
    """Query the run that a report names; return nothing when it is no manual run of the job.

    Raises:
        JobsApiError: The API did not respond.
    """
    assert message.run_id is not None
    if firing.questions.waits.holds_back(tick.at):
        raise JobsApiError(POLLED_LATER)
    firing.questions.take()
    report = firing.api.get_run(message.run_id)
    if report is None or report.job_id != message.job_id:
        return None
    # A run that Heartbeat has started has consumed its own events, and nothing else. A job that
    # declares no parameters does not show it.
    is_known = TOKEN_PARAMETER in report.parameters or _is_recorded(message, firing.store)
    return None if is_known else report


def _is_recorded(message: Message, store: Store) -> bool:
    where = [("job_id", "=", message.job_id), ("run_id", "=", message.run_id)]
    return bool(store.read(Ledger.RUNS, where=where, columns=["run_id"]))


def _consumed(
    report: RunReport, message: Message, state: StateView, tick: Tick, firing: Firing
) -> tuple[Consumed, ...]:
    began = report.started_at
    if report.outcome is not Outcome.SUCCEEDED or began is None or began > tick.at + CLOCK_SKEW:
        return ()
    # The clock of the Jobs API may be ahead of the one that the events were seen by.
    limit = began - CLOCK_SKEW
    triggers = {each.upstream_id for each in state.triggers}
    consumed = []
    for upstream_id in _upstreams_of(message.job_id, state, firing):
        last = last_step(firing.store, message.job_id, upstream_id, state.folded_through)
        probe = newest_probe(firing.store, upstream_id, state.folded_through)
        # A tick that was killed may have left events beyond, which a later probe finds again.
        newest = probe and probe["latest_event_tick"]
        if probe and upstream_id in triggers and not _is_released(probe, limit):
            continue
        unconsumed = Consumed(
            upstream_id=upstream_id,
            from_tick=done_through(last),
            through_tick=NOTHING_CONSUMED if newest is None else integer(newest),
        )
        events = events_of(unconsumed, firing.store)
        # All or nothing: what is newer starts the job, with all unconsumed events.
        if events and all(_seen(event) <= limit.timestamp() * 1000 for event in events):
            consumed.append(unconsumed)
    return tuple(consumed)


def _is_released(probe: Mapping[str, object], limit: datetime) -> bool:
    """Return whether a trigger had passed on its newest event, which keeps its original instant."""
    at = probe["latest_event_at"]
    return isinstance(at, datetime) and at <= limit


def _seen(event: Mapping[str, object]) -> int:
    """Return when a change is known to have been there, in milliseconds.

    The clock of the snapshot's writer counts, too: ours may have been behind.
    """
    return max(integer(event["event_ts"]), integer(event["snapshot_ts"] or 0))


def _upstreams_of(job_id: int, state: StateView, firing: Firing) -> Sequence[str]:
    """Return the upstreams of a job, those of paused rows included.

    A pull consumer has none here: it reports itself what it has processed.
    """
    if firing.store.read(SCHEDULED_JOBS, where=[("job_id", "=", job_id)]):
        return ()
    controls = newest_controls(firing.store)
    of_rows = {
        str(row["upstream_id"]) for row in controls.values() if integer(row["job_id"]) == job_id
    }
    of_triggers = {each.upstream_id for each in state.triggers if job_id in each.job_ids}
    return sorted(of_rows | of_triggers)


def _row(
    report: RunReport, message: Message, consumed: Sequence[Consumed], tick: Tick, store: Store
) -> Run:
    name = f"{message.job_id}|{report.run_id}|by hand"
    intent_id = sha256(name.encode()).hexdigest()[:32]
    began = report.started_at
    assert began is not None
    return replace(
        run_row(message, intent_id, consumed, tick, store),
        reported_by=REPORTED_BY,
        decided_at=began,
        started_at=began,
        ended_at=report.ended_at or tick.at,
        life_cycle_state=report.life_cycle_state,
        result_state=report.result_state,
        state=report.state,
        termination_code=report.termination_code,
        message="started by hand",
        run_page_url=report.run_page_url,
    )

"""Records the steps of pull consumers: events passed to them, and events processed.

Such a job starts itself, so the Jobs API is not queried for it. Its consumption is a run in the
ledger all the same: ACQUIRED once events are passed to the job, SUCCEEDED once it reports them
processed. Only a tick records it, and here runs of a job that overlap meet: what was processed
stays processed, and a message that comes twice, or late, changes nothing.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from harness.events.payload import events_of
from harness.fire.submit import Steps
from harness.platform.clock import instant_from
from harness.store.inbox import Message, MessageKind
from harness.store.queries import step_order
from harness.store.rows import (
    REQUEUING,
    Consumed,
    Ledger,
    Run,
    RunStatus,
    Store,
    Tick,
    integer,
    whole_or_none,
)
from harness.store.work_lists import NOTHING_CONSUMED, StateView

log = logging.getLogger(__name__)

#: The origin of the steps of such a run.
REPORTED_BY = "job"

_STATUS = {
    MessageKind.ACQUIRED: RunStatus.ACQUIRED,
    MessageKind.PROCESSED: RunStatus.SUCCEEDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastStep:
    """The newest step of any run that took events of an upstream for a job."""

    run_status: RunStatus
    taken: Consumed
    run_id: int | None
    decided_tick: int
    decided_at: datetime


def last_step(store: Store, job_id: int, upstream_id: str, folded_through: int) -> LastStep | None:
    """Read how far a job has come with an upstream; nothing when it has taken nothing yet.

    Raises:
        StateError: A table cannot be read.
    """
    of_job = ("job_id", "=", job_id)
    steps = store.read("dependency_state", where=[of_job, ("upstream_id", "=", upstream_id)])
    for row in store.read(Ledger.RUNS, where=[of_job, ("tick_number", ">", folded_through)]):
        steps += [{**row, **consumed} for consumed in consumed_of(row, upstream_id)]
    newest = max(steps, key=step_order, default=None)
    return None if newest is None else _step_from(newest, upstream_id)


def consumed_of(row: Mapping[str, object], upstream_id: str) -> list[dict[str, object]]:
    """Return what a row of a run reports that it took of one upstream."""
    consumed = row["consumed"]
    assert isinstance(consumed, Sequence)
    return [dict(each) for each in consumed if each["upstream_id"] == upstream_id]


def done_through(step: LastStep | None) -> int:
    """Return the newest tick whose events count as consumed."""
    if step is None:
        return NOTHING_CONSUMED
    return step.taken.from_tick if step.run_status in REQUEUING else step.taken.through_tick


def apply(
    messages: Iterable[Message], state: StateView, *, tick: Tick, steps: Steps, store: Store
) -> tuple[Run, ...]:
    """Append a row for each message of a pull consumer that contains something new.

    Raises:
        StateError: A table cannot be read or written; the messages stay in the inbox.
    """
    # Where Heartbeat has a run of the job itself, that run has the events.
    followed = {run.job_id for run in state.runs}
    last: dict[tuple[int, str], LastStep | None] = {}
    rows = []
    for message in messages:
        if message.kind not in _STATUS or message.taken is None:
            continue
        key = message.job_id, message.taken.upstream_id
        if key not in last:
            last[key] = last_step(store, *key, state.folded_through)
        step = (
            None if message.job_id in followed else _next(message, message.taken, last[key], tick)
        )
        if step is None:
            log.info("inbox: %s of job %s changes nothing", message.kind, message.job_id)
            continue
        last[key] = step
        rows.append(_row(message, step, tick, steps.next(), store))
    store.append(Ledger.RUNS, rows)
    return tuple(rows)


def intent_of(job_id: int, consumed: Consumed) -> str:
    """Name an acquisition's intent: as it grows with newer events, only its beginning counts."""
    begins = f"{job_id}|{consumed.upstream_id}|{consumed.from_tick}|own"
    return sha256(begins.encode()).hexdigest()[:32]


def _next(message: Message, said: Consumed, last: LastStep | None, tick: Tick) -> LastStep | None:
    """Return the step that a message makes; nothing when it contains nothing new."""
    consumed = replace(said, from_tick=done_through(last))
    if not consumed.from_tick < consumed.through_tick <= tick.number:
        # Events that no tick has recorded yet were passed to no job: they would be lost to it.
        return None
    begun = last if last and last.run_status is RunStatus.ACQUIRED else None
    step = LastStep(
        run_status=_STATUS[message.kind],
        taken=consumed,
        run_id=message.run_id,
        decided_tick=begun.decided_tick if begun else tick.number,
        decided_at=begun.decided_at if begun else tick.at,
    )
    return None if step == last else step


def run_row(
    message: Message, intent_id: str, consumed: Sequence[Consumed], tick: Tick, store: Store
) -> Run:
    """Return the row of a successful run that Heartbeat did not start; it has no number yet.

    Raises:
        StateError: The events cannot be read.
    """
    events = [event for each in consumed for event in events_of(each, store)]
    log.info("job %s: %s events of a run that it reports itself", message.job_id, len(events))
    return Run(
        tick_number=tick.number,
        step_number=0,
        recorded_at=tick.at,
        job_id=message.job_id,
        job_name=message.job_name or str(message.job_id),
        intent_id=intent_id,
        attempt=1,
        # Nothing is sent to the Jobs API, so that the name of the intent does.
        token=intent_id,
        run_id=message.run_id,
        run_status=RunStatus.SUCCEEDED,
        reported_by=REPORTED_BY,
        decided_tick=tick.number,
        decided_at=tick.at,
        ended_at=message.sent_at,
        consumed=tuple(consumed),
        event_count=len(events),
        event_ids=tuple(str(event["event_id"]) for event in events),
        parameters="{}",
    )


def _row(message: Message, step: LastStep, tick: Tick, number: int, store: Store) -> Run:
    intent_id = intent_of(message.job_id, step.taken)
    return replace(
        run_row(message, intent_id, (step.taken,), tick, store),
        step_number=number,
        run_id=step.run_id,
        run_status=step.run_status,
        decided_tick=step.decided_tick,
        decided_at=step.decided_at,
        ended_at=message.sent_at if step.run_status is RunStatus.SUCCEEDED else None,
    )


def _step_from(row: Mapping[str, object], upstream_id: str) -> LastStep:
    decided_at = instant_from(row["decided_at"])
    assert decided_at is not None
    return LastStep(
        run_status=RunStatus(str(row["run_status"])),
        taken=Consumed(
            upstream_id=upstream_id,
            from_tick=integer(row["from_tick"]),
            through_tick=integer(row["through_tick"]),
        ),
        run_id=whole_or_none(row["run_id"]),
        decided_tick=integer(row["decided_tick"]),
        decided_at=decided_at,
    )

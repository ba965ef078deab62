"""Starts the jobs of the trigger set: intent, call, outcome, for each job on its own.

The intents of a tick are durable, with their events and idempotency tokens, before the first call.
Each answer of the Jobs API is recorded as it comes. An inconclusive one leaves the intent in doubt:
the next tick sends the same token again.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace

from harness.events.order import in_order
from harness.events.payload import (
    _FILE,
    PARAMETER_BYTES,
    _read_events,
    _read_old_events,
    _tick_of,
    as_payload,
    payload_of,
)
from harness.fire.parameters import Names, Undetermined
from harness.fire.submit import STOPPED, Firing, Steps, send
from harness.fire.token import TOKEN_PARAMETER, token_for
from harness.platform.files import write_atomically
from harness.store.rows import (
    UNDETERMINED,
    Consumed,
    Ledger,
    Run,
    RunStatus,
    Store,
    Tick,
    integer,
)

log = logging.getLogger(__name__)

#: What a job has not consumed for more ticks than these may lie far back in the ledger.
_LONG_AGO_TICKS = 1000

#: The job parameter with the events of a run.
_EVENTS = "heartbeat_events"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One row of ``trigger_set``."""

    job_id: int
    job_name: str
    intent_id: str
    attempt: int
    consumed: tuple[Consumed, ...]

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> "Start":
        """Read a row of the model."""
        consumed = row["consumed"]
        assert isinstance(consumed, list)
        return cls(
            job_id=integer(row["job_id"]),
            job_name=str(row["job_name"]),
            intent_id=str(row["intent_id"]),
            attempt=integer(row["attempt"]),
            consumed=tuple(Consumed(**each) for each in consumed),
        )


def fire(starts: Sequence[Start], *, tick: Tick, firing: Firing, steps: Steps) -> list[Run]:
    """Start jobs and return the newest row of each.

    A start whose job cannot be read is recorded and not sent: without the parameters that the job
    declares, its run would not receive its events.

    Raises:
        StateError: The intents cannot be recorded; nothing was started.
    """
    if not starts:
        return []
    admitted = _admitted([start.job_id for start in starts], tick, firing)
    firing.crash_point("before_intents")
    intents = _intents(starts, admitted, tick, firing, steps)
    firing.store.append(Ledger.RUNS, intents)
    firing.crash_point("after_intents")
    waiting = [intent for intent in intents if intent.awaits_parameters]
    ready = [intent for intent in intents if not intent.awaits_parameters]
    return [*send(ready, tick=tick, firing=firing, steps=steps), *waiting]


def fire_waiting(runs: Sequence[Run], *, tick: Tick, firing: Firing, steps: Steps) -> list[Run]:
    """Send the starts that could not be sent because their jobs could not be read.

    What is sent is recorded first. Nothing was sent before, so a refusal proves that there is no
    run, however long ago the start was decided.

    Returns:
        The newest row of each; unchanged where the job still cannot be read for the same reason.

    Raises:
        StateError: A ledger cannot be read or written; nothing was started.
    """
    if not runs:
        return []
    admitted = _admitted([run.job_id for run in runs], tick, firing)
    now = [_redetermined(run, admitted[run.job_id], tick, firing) for run in runs]
    changed = [
        replace(row, step_number=steps.next())
        for row, run in zip(now, runs, strict=True)
        if (row.parameters, row.message) != (run.parameters, run.message)
    ]
    firing.store.append(Ledger.RUNS, changed)
    firing.crash_point("after_intents")
    newest = {run.job_id: run for run in (*runs, *changed)}
    ready = [row for row in changed if not row.awaits_parameters]
    sent = send(ready, tick=tick, firing=firing, steps=steps)
    newest |= {row.job_id: row for row in sent}
    return [newest[run.job_id] for run in runs]


def _admitted(
    job_ids: Sequence[int], tick: Tick, firing: Firing
) -> Mapping[int, Names | Undetermined]:
    """Determine what each job may be sent, side by side."""
    with firing.pool() as pool:
        answers = {
            job_id: pool.submit(copy_context().run, _admitted_by, job_id, tick, firing)
            for job_id in job_ids
        }
        return {job_id: answer.result() for job_id, answer in answers.items()}


def _admitted_by(job_id: int, tick: Tick, firing: Firing) -> Names | Undetermined:
    if firing.stop.is_wanted:
        return Undetermined(reason=STOPPED.message)
    return firing.parameters.of(job_id, api=firing.api, questions=firing.questions, at=tick.at)


def _redetermined(run: Run, names: Names | Undetermined, tick: Tick, firing: Firing) -> Run:
    row = run.step(tick, run.run_status, "decision")
    if isinstance(names, Undetermined):
        return replace(row, message=names.reason)
    events = payload_of(run.consumed, run.event_ids, firing.store)
    return replace(row, parameters=_parameters(run, names, events, firing), message=None)


def _intents(
    starts: Sequence[Start],
    admitted: Mapping[int, Names | Undetermined],
    tick: Tick,
    firing: Firing,
    steps: Steps,
) -> list[Run]:
    events = _events_of(starts, firing.store, tick)
    rows = []
    for start in starts:
        consumed = [*_consumed(start, events)]
        row = replace(_intent(start, consumed, tick, firing), step_number=steps.next())
        names = admitted[start.job_id]
        if isinstance(names, Undetermined):
            rows.append(replace(row, message=names.reason))
        else:
            listed = as_payload(consumed)
            rows.append(replace(row, parameters=_parameters(row, names, listed, firing)))
    return rows


def _events_of(
    starts: Sequence[Start], store: Store, tick: Tick
) -> Mapping[str, list[dict[str, object]]]:
    """Read the events that the starts consume, by upstream.

    Those of upstreams from which a job has not consumed for long, or never, are read apart: the
    others need not go back as far.
    """
    after: dict[str, int] = {}
    for each in (each for start in starts for each in start.consumed):
        after[each.upstream_id] = min(each.from_tick, after.get(each.upstream_id, each.from_tick))
    long_ago = max(0, tick.number - _LONG_AGO_TICKS)
    old = {each: from_tick for each, from_tick in after.items() if from_tick < long_ago}
    rest = {each: from_tick for each, from_tick in after.items() if from_tick >= long_ago}
    rows = _read_old_events(store, old) + _read_events(store, rest)
    by_upstream: dict[str, list[dict[str, object]]] = {}
    for row in in_order(rows, reported_at=_tick_of):
        by_upstream.setdefault(str(row["upstream_id"]), []).append(row)
    return by_upstream


def _consumed(
    start: Start, events: Mapping[str, list[dict[str, object]]]
) -> Iterable[dict[str, object]]:
    for each in start.consumed:
        for event in events.get(each.upstream_id, ()):
            if each.from_tick < integer(event["tick_number"]) <= each.through_tick:
                yield event


def _intent(
    start: Start, events: Sequence[Mapping[str, object]], tick: Tick, firing: Firing
) -> Run:
    return Run(
        tick_number=tick.number,
        step_number=0,
        recorded_at=tick.at,
        job_id=start.job_id,
        job_name=start.job_name,
        intent_id=start.intent_id,
        attempt=start.attempt,
        token=token_for(firing.origin, start.job_id, start.intent_id, start.attempt),
        run_status=RunStatus.INTENDED,
        reported_by="decision",
        decided_tick=tick.number,
        decided_at=tick.at,
        consumed=start.consumed,
        event_count=len(events),
        event_ids=tuple(str(event["event_id"]) for event in events),
        parameters=UNDETERMINED,
    )


def _parameters(
    run: Run, names: Names, events: Sequence[Mapping[str, object]], firing: Firing
) -> str:
    """Return the job parameters as JSON: the events themselves, or where they are to be read.

    Args:
        run: The start.
        names: What its job may be sent.
        events: What it was decided for, as a job gets it.
        firing: Where a list that is too long is put.
    """
    listed = json.dumps(events)
    every = {
        "heartbeat_intent_id": run.intent_id,
        TOKEN_PARAMETER: run.token,
        _EVENTS: listed,
    }
    sent = {name: value for name, value in every.items() if names.admits(name)}
    # A list that is too long on its own is not encoded once more.
    if len(sent.get(_EVENTS, "")) <= PARAMETER_BYTES:
        parameters = json.dumps(sent)
        if len(parameters.encode()) <= PARAMETER_BYTES:
            return parameters
    path = firing.payloads / f"{run.intent_id}-{run.attempt}.json"
    write_atomically(path, listed, is_lasting=True)
    reference = {
        "event_count": len(events),
        _FILE: str(path),
        "intent_id": run.intent_id,
        "attempt": run.attempt,
        "relation": f"{firing.schema}.job_runs",
    }
    return json.dumps({**sent, _EVENTS: json.dumps(reference)})

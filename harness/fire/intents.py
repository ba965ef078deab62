"""Starts the jobs of the trigger set: intent, call, outcome, for each job on its own.

The intents of a tick are durable, with their events and tokens, before the first call. What the
Jobs API answers is recorded as it comes. An inconclusive answer leaves the intent in doubt: the
next tick sends the same token again.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.events.order import in_order
from harness.events.payload import (
    _FILE,
    PARAMETER_BYTES,
    _read_events,
    _read_old_events,
    _tick_of,
    as_payload,
)
from harness.fire.submit import Firing, Steps, send
from harness.fire.token import TOKEN_PARAMETER, token_for
from harness.platform.files import write_atomically
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Store, Tick, integer

log = logging.getLogger(__name__)

#: What a job has not taken for more ticks than these may lie far back in the ledger.
_LONG_AGO_TICKS = 1000


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

    Raises:
        StateError: The intents cannot be recorded; nothing was started.
    """
    if not starts:
        return []
    intents = _intents(starts, tick, firing, steps)
    firing.crash_point("before_intents")
    firing.store.append(Ledger.RUNS, intents)
    firing.crash_point("after_intents")
    return send(intents, tick=tick, firing=firing, steps=steps)


def _intents(starts: Sequence[Start], tick: Tick, firing: Firing, steps: Steps) -> list[Run]:
    events = _events_of(starts, firing.store, tick)
    return [_intent(start, [*_consumed(start, events)], tick, firing, steps) for start in starts]


def _events_of(
    starts: Sequence[Start], store: Store, tick: Tick
) -> Mapping[str, list[dict[str, object]]]:
    """Read the events that the starts take, by upstream.

    Those of upstreams that a job has not taken for long, or never, are read apart: the others need
    not go back as far.
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
    start: Start,
    events: Sequence[Mapping[str, object]],
    tick: Tick,
    firing: Firing,
    steps: Steps,
) -> Run:
    token = token_for(firing.origin, start.job_id, start.intent_id, start.attempt)
    return Run(
        tick_number=tick.number,
        step_number=steps.next(),
        recorded_at=tick.at,
        job_id=start.job_id,
        job_name=start.job_name,
        intent_id=start.intent_id,
        attempt=start.attempt,
        token=token,
        run_status=RunStatus.INTENDED,
        reported_by="decision",
        decided_tick=tick.number,
        decided_at=tick.at,
        consumed=start.consumed,
        event_count=len(events),
        event_ids=tuple(str(event["event_id"]) for event in events),
        parameters=_parameters(start, token, events, firing),
    )


def _parameters(
    start: Start, token: str, events: Sequence[Mapping[str, object]], firing: Firing
) -> str:
    """Return the job parameters as JSON: the events themselves, or where they are to be read."""
    listed = json.dumps(as_payload(events))
    names = {"heartbeat_intent_id": start.intent_id, TOKEN_PARAMETER: token}
    integer = json.dumps({**names, "heartbeat_events": listed})
    if len(integer.encode()) <= PARAMETER_BYTES:
        return integer
    path = firing.payloads / f"{start.intent_id}-{start.attempt}.json"
    write_atomically(path, listed, is_lasting=True)
    reference = {
        "event_count": len(events),
        _FILE: str(path),
        "intent_id": start.intent_id,
        "attempt": start.attempt,
        "relation": f"{firing.schema}.job_runs",
    }
    return json.dumps({**names, "heartbeat_events": json.dumps(reference)})

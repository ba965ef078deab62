"""Evaluates event triggers in SQL, and records the events of satisfied slots, then each trigger.

A trigger is an upstream whose probe is SQL: it decides which slots are due, satisfied or gone.
Its events are copies of those that satisfied a slot, so that whatever starts, repeats or explains a
run finds them as it finds the events of any upstream.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Protocol, cast

from harness.controls.load import Rows
from harness.errors import DecideError, StateError
from harness.events.event import EventRow
from harness.platform.clock import instant_from
from harness.platform.format import iso
from harness.record.probes import Recorded, after_row, is_orphan, probe_row
from harness.sense.probe import ProbeResult
from harness.store.rows import (
    Ledger,
    ProbeRow,
    Store,
    Tick,
    TriggerEvaluationRow,
    integer,
    text_or_none,
)
from harness.store.trigger_queries import next_due_at, waiting_in, without_slots
from harness.store.work_lists import AT_ONCE, StateView, Upstream

log = logging.getLogger(__name__)

#: The table of the slots that open, which later models read several times, and its model.
DUE_SLOTS = ("int_trigger_due_slots", "int_trigger_opening_slots")
#: What distinguishes a released event from the one that it is a copy of.
TRIGGER_TAG, SLOT_TAG = "trigger_id", "trigger_slot"

Row = Mapping[str, object]
#: Where an event stands in its ledger: tick and id.
Place = tuple[int, str]


class Services(Protocol):
    """What evaluating the triggers needs of the context."""

    @property
    def store(self) -> Store:
        """The ledgers."""
        ...

    @property
    def rows(self) -> Rows:
        """Reads a model."""
        ...

    def fill(self, table: str, model: str) -> None:
        """Give a table the rows of a model that has its columns."""
        ...

    def crash_point(self, name: str) -> None:
        """Crash here when a test requests it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEvaluation:
    """One row of ``queue_trigger_evaluations``: the evaluation of one trigger."""

    upstream_id: str
    #: ``None`` where the trigger cannot be evaluated.
    position: str | None
    #: Why a slot is gone that was never satisfied, in a sentence.
    reason: str | None
    #: Why the trigger cannot be evaluated, in a sentence.
    failure: str | None = None
    #: The slots that are released, and the events of each.
    matched: tuple[tuple[datetime, Place], ...]

    @classmethod
    def from_row(cls, row: Row) -> "TriggerEvaluation":
        """Read a row of the model."""
        return cls(
            upstream_id=str(row["upstream_id"]),
            position=text_or_none(row["position"]),
            reason=text_or_none(row["reason"]),
            failure=text_or_none(row.get("failure")),
            matched=tuple(
                (
                    cast(datetime, instant_from(each["slot"])),
                    (integer(each["tick_number"]), str(each["event_id"])),
                )
                for each in cast(Sequence[Row], row["matched"] or ())
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What one evaluation of all triggers came to."""

    recorded: Recorded
    #: When a trigger may release an event without any new event; ``None``: never.
    due_at: datetime | None
    #: Some trigger's slots wait for something else than before, or it failed or recovered.
    waits_otherwise: bool


def evaluate_triggers(
    services: Services,
    state: StateView,
    tick: Tick,
    *,
    prepare: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Evaluate every trigger, record what is released, and return when to evaluate again.

    A trigger that cannot be evaluated is recorded as a probe that failed. If the evaluation fails
    as a whole, each trigger is, nothing is released, and the next tick evaluates again.

    Args:
        services: What the evaluation needs.
        state: What the tick starts from.
        tick: The present tick.
        prepare: Builds what the models stand on, if that is to be built first.

    Raises:
        StateError: A ledger cannot be written; the same is released by the next tick.
    """
    watched = {each.upstream_id: each for each in state.triggers}
    try:
        prepare()
        events, probes = _evaluated(services, state, tick)
        has_failed = False
    except (DecideError, StateError) as error:
        log.warning("the triggers cannot be evaluated: %s", error)
        events, probes = [], _all_failed(f"no trigger can be evaluated: {error}", watched, tick)
        has_failed = True
    store = services.store
    services.crash_point("before_release")
    store.append(Ledger.EVENTS, events)
    services.crash_point("within_release")
    store.append(Ledger.PROBES, probes)
    services.crash_point("after_release")
    changed = {row.upstream_id: after_row(watched[row.upstream_id], row) for row in probes}
    recorded = Recorded(events=tuple(events), probes=tuple(probes), changed=changed)
    # Why a job waits is reported by what its slots wait for.
    waits_otherwise = any(
        _reasons(each) != _reasons(watched[upstream_id]) for upstream_id, each in changed.items()
    )
    after = [changed.get(each.upstream_id, each) for each in state.triggers]
    due_at = next_due_at((each.position for each in after), tick.at)
    return Evaluation(
        recorded=recorded,
        due_at=AT_ONCE if has_failed else due_at,
        waits_otherwise=waits_otherwise,
    )


def _evaluated(
    services: Services, state: StateView, tick: Tick
) -> tuple[list[EventRow], list[ProbeRow]]:
    """Return what the triggers release and what becomes of each, before any of it is recorded."""
    store = services.store
    # The models have no clock: this row is their present.
    store.append(
        Ledger.TRIGGER_EVALUATIONS,
        [TriggerEvaluationRow(tick_number=tick.number, looked_at=tick.at)],
    )
    services.fill(*DUE_SLOTS)
    evaluations = [
        TriggerEvaluation.from_row(row) for row in services.rows("queue_trigger_evaluations")
    ]
    watched = {each.upstream_id: each for each in state.triggers}
    known = [evaluation for evaluation in evaluations if evaluation.upstream_id in watched]
    events, probes = _rows(known, _Ledger(store, known, state), watched, tick)
    probes += _recovered({evaluation.upstream_id for evaluation in known}, watched, tick)
    return events, probes


def _recovered(
    reported: Collection[str], watched: Mapping[str, Upstream], tick: Tick
) -> list[ProbeRow]:
    """Return a row for each trigger that failed, can be evaluated again and has no new result."""
    rows = [
        probe_row(ProbeResult(upstream_id=each.upstream_id, position=each.position), tick, each, 0)
        for each in watched.values()
        if each.failing_since and each.upstream_id not in reported
    ]
    return [row for row in rows if row is not None]


def _all_failed(reason: str, watched: Mapping[str, Upstream], tick: Tick) -> list[ProbeRow]:
    rows = [
        probe_row(ProbeResult(upstream_id=each.upstream_id, failure=reason), tick, each, 0)
        for each in watched.values()
    ]
    return [row for row in rows if row is not None]


def _reasons(trigger: Upstream) -> tuple[object, ...]:
    return waiting_in(trigger.position), trigger.failing_since, trigger.reason


class _Ledger:
    """What the ledger of events holds for these evaluations.

    Args:
        store: The ledgers.
        evaluations: The evaluations of the triggers.
        state: Holds what a killed tick has left.
    """

    def __init__(
        self, store: Store, evaluations: Sequence[TriggerEvaluation], state: StateView
    ) -> None:
        self._originals = _originals(store, evaluations)
        self._left = _left_by_killed_tick(store, state)

    def missing(self, evaluation: TriggerEvaluation) -> str | None:
        """Return the sentence about a match that is not there."""
        gone = [place for _, place in evaluation.matched if place not in self._originals]
        if not gone:
            return None
        return (
            f"the event {gone[0][1]} of tick {gone[0][0]}, which a slot needs, is not in"
            f" {Ledger.EVENTS}; `python -m harness doctor` examines the ledger"
        )

    def originals(self, evaluation: TriggerEvaluation) -> list[tuple[datetime, Row]]:
        """Return the slot and the event of each match; of one change the most informative row."""
        found: dict[tuple[datetime, str], Row] = {}
        for slot, place in evaluation.matched:
            row = self._originals[place]
            key = slot, _change_of(row)
            found[key] = max(row, found.get(key, row), key=_tells)
        return [(slot, row) for (slot, _), row in found.items()]

    def has_left(self, evaluation: TriggerEvaluation, row: Row) -> bool:
        """Return whether a killed tick has released the change already."""
        return _change_of(row) in map(_change_of, self._left.get(evaluation.upstream_id, ()))

    def left_waiting(self, evaluation: TriggerEvaluation) -> dict[str, int]:
        """Return the slots that wait and that a killed tick has released; of each, its events.

        What came since may have satisfied an earlier slot, which this evaluation releases first.
        """
        waiting = {each.slot for each in waiting_in(evaluation.position)}
        slots = (_tags(row).get(SLOT_TAG) for row in self._left.get(evaluation.upstream_id, ()))
        return Counter(slot for slot in slots if slot in waiting)


def _originals(store: Store, evaluations: Sequence[TriggerEvaluation]) -> dict[Place, Row]:
    places = [place for evaluation in evaluations for _, place in evaluation.matched]
    if not places:
        return {}
    # Literal numbers of ticks: files that have none of them are not opened.
    ticks, ids = sorted({tick for tick, _ in places}), sorted({each for _, each in places})
    rows = store.read(Ledger.EVENTS, where=[("tick_number", "in", ticks), ("event_id", "in", ids)])
    return {(integer(row["tick_number"]), str(row["event_id"])): row for row in rows}


def _left_by_killed_tick(store: Store, state: StateView) -> dict[str, list[Row]]:
    """Return what a tick released and then died, by trigger.

    The next probe may find the same changes for a later slot; they are released once all the same.
    """
    watched = {each.upstream_id: each for each in state.triggers}
    orphans = [each for each in state.orphans if each.upstream_id in watched]
    if not orphans:
        return {}
    left: dict[str, list[Row]] = {}
    ticks = sorted({each.tick_number for each in orphans})
    ids = sorted({each.event_id for each in orphans})
    where = [("tick_number", "in", ticks), ("event_id", "in", ids)]
    for row in store.read(Ledger.EVENTS, where=where):
        if is_orphan(row, watched):
            left.setdefault(str(row["upstream_id"]), []).append(row)
    return left


def _change_of(row: Row) -> str:
    """Name the change that an event describes; the events of older ledgers name it themselves."""
    return str(row.get("change_id") or row["event_id"])


def _tells(row: Row) -> tuple[int, int]:
    return integer(row["tick_number"]), len(_tags(row))


def _tags(row: Row) -> Mapping[str, str]:
    return cast(Mapping[str, str], row["tags"] or {})


def _rows(
    evaluations: Iterable[TriggerEvaluation],
    ledger: _Ledger,
    watched: Mapping[str, Upstream],
    tick: Tick,
) -> tuple[list[EventRow], list[ProbeRow]]:
    events: list[EventRow] = []
    probes: list[ProbeRow] = []
    for evaluation in evaluations:
        failure = evaluation.failure or ledger.missing(evaluation)
        matched = [] if failure else ledger.originals(evaluation)
        left = {} if failure else ledger.left_waiting(evaluation)
        position = evaluation.position
        message = ProbeResult(
            upstream_id=evaluation.upstream_id,
            position=without_slots(position, left) if position and left else position,
            gap=evaluation.reason,
            failure=failure,
        )
        count = len(matched) + sum(left.values())
        row = probe_row(message, tick, watched[evaluation.upstream_id], count)
        if row is None:
            continue
        probes.append(row)
        events += [
            _copy(original, slot, evaluation.upstream_id, tick)
            for slot, original in matched
            if not ledger.has_left(evaluation, original)
        ]
        log.info("%s: %s events released", evaluation.upstream_id, count)
    return events, probes


def _copy(row: Row, slot: datetime, upstream_id: str, tick: Tick) -> EventRow:
    """Return the event as the trigger passes it on: the same change, by the trigger's own name."""
    own = {TRIGGER_TAG: upstream_id.partition(":")[2], SLOT_TAG: iso(slot)}
    text = "\x1f".join((upstream_id, iso(slot), _change_of(row)))
    return replace(
        EventRow.from_row(row),
        tick_number=tick.number,
        event_id=sha256(text.encode(errors="surrogatepass")).hexdigest()[:32],
        upstream_id=upstream_id,
        tags={**_tags(row), **own},
    )

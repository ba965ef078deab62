"""Appends probe results to the ledgers: events first, then upstream state.

It does not decide anything: an event is recorded whether or not a job may run because of it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.events.event import EventRow
from harness.record.correlate import REGISTERED, Joining, as_they_are
from harness.sense.probe import ProbeResult
from harness.store.rows import Ledger, ProbeOutcome, ProbeRow, RecentEvents, Store, Tick, integer
from harness.store.work_lists import Orphan, Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the ledger has of the events that are to be recorded."""

    #: Ids of events that a killed tick has left; they are new data, and not new rows.
    event_ids: frozenset[str] = frozenset()
    #: Gives each event the change that it describes.
    join: Joining = as_they_are


#: Every event is a new one, and a change of its own.
NOTHING_KNOWN = Known()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What one tick's probes left in the ledgers."""

    events: tuple[EventRow, ...] = ()
    probes: tuple[ProbeRow, ...] = ()
    #: The upstreams that changed, as the next tick finds them.
    changed: Mapping[str, Upstream] = field(default_factory=dict)


def record(
    results: Iterable[ProbeResult],
    *,
    tick: Tick,
    watched: Mapping[str, Upstream],
    store: Store,
    known: Known = NOTHING_KNOWN,
) -> Recorded:
    """Append what the probes found.

    Args:
        results: At most one per upstream.
        tick: The present tick.
        watched: The upstreams that were probed, by id.
        store: Takes the rows.
        known: What the ledger has of the same events already.

    Raises:
        StateError: A ledger cannot be written; the same is found again by the next tick.
    """
    events: list[EventRow] = []
    probes: list[ProbeRow] = []
    for result in results:
        row = probe_row(result, tick, watched[result.upstream_id], len(result.events))
        if row is None:
            continue
        probes.append(row)
        events += _event_rows(result, tick, known.event_ids)
    events = known.join(events)
    # After a kill between the two, the next tick finds the same events again and has their ids.
    store.append(Ledger.EVENTS, events)
    store.append(Ledger.PROBES, probes)
    changed = {row.upstream_id: after_row(watched[row.upstream_id], row) for row in probes}
    return Recorded(events=tuple(events), probes=tuple(probes), changed=changed)


def orphans_among(
    events: Iterable[Mapping[str, object]], watched: Mapping[str, Upstream]
) -> tuple[Orphan, ...]:
    """Return the events whose tick was killed before it recorded their upstream.

    The upstream's cursor has not moved, so a later probe finds the same events again; they must
    then count as new data and not be recorded twice.
    """
    return tuple(
        Orphan(
            event_id=str(event["event_id"]),
            upstream_id=str(event["upstream_id"]),
            snapshot_id=str(event["snapshot_id"] or ""),
            tick_number=integer(event["tick_number"]),
        )
        for event in events
        if is_orphan(event, watched)
    )


def is_orphan(event: Mapping[str, object], watched: Mapping[str, Upstream]) -> bool:
    """Return whether an event's tick was killed before it recorded the event's upstream."""
    # No probe finds again what was registered.
    if str(event["upstream_id"]).startswith(REGISTERED):
        return False
    upstream = watched.get(str(event["upstream_id"]))
    latest = upstream.latest_event_tick if upstream else None
    return latest is None or latest < integer(event["tick_number"])


def probe_row(
    result: ProbeResult, tick: Tick, upstream: Upstream, event_count: int
) -> ProbeRow | None:
    """Return the upstream's state after a probe; nothing if it needs no row."""
    if result.failure is not None:
        return _row_after_failure(result.failure, tick, upstream)
    moved = result.position != upstream.position or (
        result.upstream_value is not None and result.upstream_value != upstream.upstream_value
    )
    if event_count:
        outcome = ProbeOutcome.GAP if result.gap else ProbeOutcome.FOUND
        row = _row_after_event(upstream, tick, event_count, outcome)
    elif result.gap or moved:
        row = _row(upstream, tick, ProbeOutcome.GAP if result.gap else ProbeOutcome.MOVED)
    elif upstream.failing_since:
        row = _row(upstream, tick, ProbeOutcome.RECOVERED)
    else:
        return None
    return replace(
        row,
        reason=result.gap,
        failing_since=None,
        position=result.position,
        upstream_value=result.upstream_value or upstream.upstream_value,
    )


def _row_after_failure(reason: str, tick: Tick, upstream: Upstream) -> ProbeRow | None:
    if upstream.failing_since and upstream.reason == reason:
        return None
    row = _row(upstream, tick, ProbeOutcome.FAILED)
    return replace(row, reason=reason, failing_since=upstream.failing_since or tick.at)


def _row_after_event(upstream: Upstream, tick: Tick, count: int, outcome: ProbeOutcome) -> ProbeRow:
    changes = RecentEvents(tick_number=tick.number, event_at=tick.at, event_count=count)
    return replace(
        _row(upstream, tick, outcome),
        latest_event_tick=tick.number,
        latest_event_at=tick.at,
        recent_events=_first_after(
            upstream.boundaries, (*upstream.recent_events, changes), latest=tick.number
        ),
    )


def _first_after(
    boundaries: Iterable[int], events: Sequence[RecentEvents], *, latest: int
) -> tuple[RecentEvents, ...]:
    """Keep since when each job has had something to consume.

    That is the first tick with events after each boundary. A job that consumes something later
    begins after the latest event, so nothing else can ever be needed, however long a job waits.
    """
    ticks = [each.tick_number for each in events]
    needed = {bisect_right(ticks, boundary) for boundary in boundaries if boundary < latest}
    return tuple(events[index] for index in sorted(needed))


def _row(upstream: Upstream, tick: Tick, outcome: ProbeOutcome) -> ProbeRow:
    return ProbeRow(
        tick_number=tick.number,
        recorded_at=tick.at,
        upstream_id=upstream.upstream_id,
        outcome=outcome,
        reason=upstream.reason,
        failing_since=upstream.failing_since,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        latest_event_tick=upstream.latest_event_tick,
        latest_event_at=upstream.latest_event_at,
        recent_events=upstream.recent_events,
    )


def after_row(upstream: Upstream, row: ProbeRow) -> Upstream:
    """Return the upstream as its newest row has it."""
    return replace(
        upstream,
        position=row.position,
        upstream_value=row.upstream_value,
        latest_event_tick=row.latest_event_tick,
        latest_event_at=row.latest_event_at,
        recent_events=row.recent_events,
        failing_since=row.failing_since,
        reason=row.reason,
    )


def _event_rows(
    result: ProbeResult, tick: Tick, recorded_events: frozenset[str]
) -> Iterable[EventRow]:
    for event in result.events:
        event_id = event.id_at(result.upstream_id)
        if event_id not in recorded_events:
            yield event.recorded(
                tick, upstream_id=result.upstream_id, event_id=event_id, change_id=event_id
            )

"""What one probe leaves in the ledgers."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from harness.events.event import ChangeEvent, EventRow, Operation, TableFormat
from harness.record.probes import Known, orphans_among, record
from harness.sense.probe import ProbeResult
from harness.store.rows import Consumed, Ledger, ProbeOutcome, ProbeRow, Tick
from harness.store.work_lists import Upstream
from tests.support.memory_store import MemoryStore
from tests.support.watched import NEVER_SEEN

TICK = Tick(number=7, at=datetime(2026, 3, 1, 8, tzinfo=UTC))

FLIGHTS = replace(
    NEVER_SEEN, position="at 3", latest_event_tick=5, latest_event_at=TICK.at - timedelta(hours=1)
)


def _change(version: str) -> ChangeEvent:
    return ChangeEvent(
        table="flights",
        snapshot_id=version,
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        lineage="a",
    )


def _result(**values: object) -> ProbeResult:
    return ProbeResult(upstream_id=FLIGHTS.upstream_id, **{"position": "at 3", **values})  # type: ignore[arg-type]


def _recorded(
    look: ProbeResult, upstream: Upstream = FLIGHTS, known: frozenset[str] = frozenset()
) -> tuple[list[EventRow], list[ProbeRow], MemoryStore]:
    store = MemoryStore()
    result = record(
        [look],
        tick=TICK,
        watched={upstream.upstream_id: upstream},
        store=store,
        known=Known(event_ids=known),
    )
    return list(result.events), list(result.probes), store


def test_an_idle_probe_leaves_no_row() -> None:
    events, probes, store = _recorded(_result())
    assert (events, probes, store.commits) == ([], [], [])


def test_events_are_recorded_before_what_the_upstream_has_become() -> None:
    events, probes, store = _recorded(_result(position="at 5", events=(_change("4"), _change("5"))))
    assert [event.snapshot_id for event in events] == ["4", "5"]
    assert store.commits == [Ledger.EVENTS, Ledger.PROBES]
    assert (probes[0].outcome, probes[0].position) == (ProbeOutcome.FOUND, "at 5")
    assert (probes[0].latest_event_tick, probes[0].latest_event_at) == (7, TICK.at)
    assert [each.event_count for each in probes[0].recent_events] == [2]


def test_a_cursor_that_moves_without_an_event_is_kept_and_is_nothing_new() -> None:
    events, probes, _ = _recorded(_result(position="at 4"))
    assert events == []
    assert (probes[0].outcome, probes[0].position) == (ProbeOutcome.MOVED, "at 4")
    assert probes[0].latest_event_tick == 5


def test_a_failed_probe_is_recorded_once_with_its_reason_and_leaves_the_cursor() -> None:
    _, probes, _ = _recorded(_result(failure="it is gone"))
    assert (probes[0].outcome, probes[0].reason) == (ProbeOutcome.FAILED, "it is gone")
    assert (probes[0].position, probes[0].failing_since) == ("at 3", TICK.at)

    failing = replace(FLIGHTS, failing_since=TICK.at, reason="it is gone")
    assert _recorded(_result(failure="it is gone"), failing)[1] == []


def test_a_probe_that_recovers_is_recorded_even_if_nothing_is_new() -> None:
    failing = replace(FLIGHTS, failing_since=TICK.at, reason="it is gone")
    _, probes, _ = _recorded(_result(), failing)
    assert (probes[0].outcome, probes[0].failing_since) == (ProbeOutcome.RECOVERED, None)


def test_an_event_that_a_killed_tick_left_is_new_data_but_no_second_row() -> None:
    event_id = _change("4").id_at(FLIGHTS.upstream_id)
    events, probes, _ = _recorded(
        _result(position="at 4", events=(_change("4"),)), known=frozenset({event_id})
    )
    assert events == []
    assert (probes[0].outcome, probes[0].latest_event_tick) == (ProbeOutcome.FOUND, 7)


def test_the_events_of_a_killed_tick_are_those_after_the_last_that_their_upstream_records() -> None:
    flights = {"upstream_id": FLIGHTS.upstream_id, "snapshot_id": "4"}
    left = [
        {"event_id": "known", "tick_number": 5} | flights,
        {"event_id": "left", "tick_number": 6} | flights,
        {"event_id": "of a paused upstream", "tick_number": 2} | flights | {"upstream_id": "other"},
    ]
    watched = {FLIGHTS.upstream_id: FLIGHTS}
    found = [orphan.event_id for orphan in orphans_among(left, watched)]
    assert found == ["left", "of a paused upstream"]


def test_since_when_a_job_has_had_something_to_take_is_known_however_long_it_waits() -> None:
    upstream = replace(FLIGHTS, latest_event_tick=None, latest_event_at=None)
    for number in range(1, 501):
        upstream = _after_news(upstream, number)
        # One job consumes everything at once; another one consumed the second event, and waits.
        upstream = upstream.consumed_by(1, _range(upstream, number - 1, number))
        if number == 2:
            upstream = upstream.consumed_by(2, _range(upstream, -1, 2))
    assert [each.tick_number for each in upstream.recent_events] == [1, 3, 499, 500]


def test_the_first_tick_after_every_boundary_is_kept_whichever_job_takes_what_and_when() -> None:
    chance = random.Random(11)
    for _ in range(50):
        upstream = replace(FLIGHTS, latest_event_tick=None, latest_event_at=None)
        new: list[int] = []
        for number in range(1, 60):
            if chance.random() < 0.6:
                upstream = _after_news(upstream, number)
                new.append(number)
            for job in (1, 2, 3, 4):
                if new and chance.random() < 0.15 * job / 4:
                    before = {each.job_id: each.through_tick for each in upstream.taken}
                    consumed = _range(upstream, before.get(job, -1), new[-1])
                    upstream = upstream.consumed_by(job, consumed)
            kept = [each.tick_number for each in upstream.recent_events]
            for boundary in upstream.boundaries:
                first = next((tick for tick in new if tick > boundary), None)
                assert next((tick for tick in kept if tick > boundary), None) == first


def _after_news(upstream: Upstream, number: int) -> Upstream:
    tick = Tick(number=number, at=TICK.at + timedelta(minutes=number))
    found = record(
        [_result(position=f"at {number}", events=(_change(str(number)),))],
        tick=tick,
        watched={upstream.upstream_id: upstream},
        store=MemoryStore(),
    )
    return found.changed[upstream.upstream_id]


def _range(upstream: Upstream, after: int, through: int) -> Consumed:
    return Consumed(upstream_id=upstream.upstream_id, from_tick=after, through_tick=through)


def test_what_was_registered_is_no_event_of_a_probe_that_is_to_be_found_again() -> None:
    event = {
        "event_id": "e",
        "tick_number": 6,
        "upstream_id": "registered:flights",
        "snapshot_id": "4",
    }
    assert orphans_among([event], {}) == ()
    assert len(orphans_among([{**event, "upstream_id": "delta_table:flights:1"}], {})) == 1

"""What the triggers release, as the models report it, is recorded once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.decide.trigger_due import Findings, TriggerTables, triggers_are_due
from harness.decide.triggers import DUE_SLOTS, evaluate_triggers
from harness.events.event import EventRow, Operation, TableFormat
from harness.record.probes import Recorded, orphans_among
from harness.store.rows import Consumed, Ledger, ProbeOutcome, ProbeRow, RecentEvents, Tick
from harness.store.work_lists import AT_ONCE, EVENT_TRIGGER
from harness.tick.state import TickState
from tests.support.following import intended
from tests.support.memory_store import MemoryStore
from tests.support.triggers_text import row, text
from tests.support.watched import NEVER_SEEN

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TICK = Tick(number=9, at=NOON)
SLOT, LATER_SLOT = NOON - timedelta(hours=6), NOON - timedelta(hours=5)
DAILY = replace(NEVER_SEEN, upstream_id="trigger:daily", source=EVENT_TRIGGER, sensor_id="daily")
STATE = TickState(
    tick_number=8,
    tick_at=NOON - timedelta(minutes=1),
    folded_through=3,
    upstreams=(NEVER_SEEN, DAILY),
    runs=(),
    controls_checksum="e",
    ended_tick_number=8,
    must_decide=False,
    triggers_due_at=None,
)
#: A slot has all it needs, and waits for the run before it.
READY = replace(
    DAILY, position='{"waiting":["2026-03-01T06:00:00Z"],"missing":[[]],"is_ready":true}'
)
#: No slot is open any more.
AFTER = '{"opened_through":"2026-03-01T06:00:00Z","waiting":[],"missing":[],"looked_through":9}'
EVENT = EventRow(
    tick_number=4,
    event_ts=1_000,
    event_id="e4",
    upstream_id="hive_table:sales.orders:1",
    table="sales.orders",
    partition=('"2026-02-28"',),
    snapshot_id="s4",
    snapshot_ts=900,
    prev_snapshot_id=None,
    table_format=TableFormat.HIVE,
    operation_type=Operation.APPEND,
    tags={"complete": "daily"},
    change_id="c4",
)


class Died(BaseException):
    """The process died here."""


@dataclass
class FakeServices:
    """Models whose answers are given."""

    store: MemoryStore = field(default_factory=MemoryStore)
    results: Sequence[Mapping[str, object]] = ()
    dies_at: str = ""
    has_counted_slots: bool = False

    def fill(self, table: str, model: str) -> None:
        # The present of the models is a row that has to be there before the slots are counted.
        assert (table, model) == DUE_SLOTS and self.store.rows[Ledger.TRIGGER_EVALUATIONS]
        self.has_counted_slots = True

    def rows(self, relation: str) -> list[dict[str, object]]:
        assert self.has_counted_slots
        assert relation == "queue_trigger_evaluations"
        return [dict(each) for each in self.results]

    def crash_point(self, name: str) -> None:
        if name == self.dies_at:
            raise Died

    def knows(self, *events: EventRow) -> "FakeServices":
        self.store.append(Ledger.EVENTS, events)
        return self


def said(*matched: tuple[datetime, EventRow], **values: object) -> dict[str, object]:
    """Return a row of the work list, as Spark returns it."""
    found = [
        {"slot": slot, "tick_number": event.tick_number, "event_id": event.event_id}
        for slot, event in matched
    ]
    row = {"upstream_id": DAILY.upstream_id, "position": AFTER, "reason": None}
    return {**row, "matched": found, **values}


def asked(services: FakeServices, state: TickState = STATE, tick: Tick = TICK) -> Recorded:
    return evaluate_triggers(services, state, tick).recorded


def after(services: FakeServices, state: TickState = STATE, tick: Tick = TICK) -> TickState:
    return state.with_evaluation(evaluate_triggers(services, state, tick))


def test_what_a_slot_matched_is_recorded_as_the_triggers_own_event_of_the_same_change() -> None:
    services = FakeServices(results=[said((SLOT, EVENT))]).knows(EVENT)

    recorded = asked(services)

    (event,) = recorded.events
    assert event.event_id not in ("", EVENT.event_id)
    assert event == replace(
        EVENT,
        tick_number=TICK.number,
        event_id=event.event_id,
        upstream_id="trigger:daily",
        tags={
            "complete": "daily",
            "trigger_id": "daily",
            "trigger_slot": "2026-03-01T06:00:00Z",
        },
    )
    (probe,) = recorded.probes
    assert (probe.outcome, probe.position) == (ProbeOutcome.FOUND, AFTER)
    assert (probe.latest_event_tick, probe.latest_event_at) == (TICK.number, NOON)
    assert recorded.changed["trigger:daily"].position == AFTER
    assert services.store.commits[1:] == [Ledger.TRIGGER_EVALUATIONS, Ledger.EVENTS, Ledger.PROBES]


def test_the_present_of_the_models_is_the_instant_of_the_tick() -> None:
    services = FakeServices()
    asked(services)
    (row,) = services.store.read(Ledger.TRIGGER_EVALUATIONS)
    assert row == {"tick_number": TICK.number, "looked_at": NOON}


def test_a_slot_that_only_opened_moves_the_trigger_and_is_no_new_data() -> None:
    recorded = asked(FakeServices(results=[said(matched=None)]))
    assert recorded.events == ()
    assert [(row.outcome, row.reason) for row in recorded.probes] == [(ProbeOutcome.MOVED, None)]


def test_a_slot_that_waits_for_something_else_now_is_to_be_decided_on() -> None:
    place = '{"waiting":["2026-03-01T06:00:00Z"],"missing":[["partition a of t"]]}'
    results = [said(position=place)]
    opened = after(FakeServices(results=results))
    moved = [said(position=place.replace("}", ',"looked_through":10}'))]
    same = after(
        FakeServices(results=moved), replace(opened, must_decide=False), Tick(number=10, at=NOON)
    )
    assert (opened.must_decide, same.must_decide) == (True, False)


def test_why_a_slot_is_gone_is_recorded_with_the_trigger() -> None:
    recorded = asked(FakeServices(results=[said(reason="the slot of 06:00 expired")]))
    (probe,) = recorded.probes
    assert (probe.outcome, probe.reason) == (ProbeOutcome.GAP, "the slot of 06:00 expired")


def test_the_same_change_for_two_slots_is_two_events_and_twice_for_one_slot_is_one() -> None:
    # Seen by two upstreams, or seen and then registered: the newest row has the tags of both.
    again = replace(EVENT, tick_number=5, event_id="e5", tags={**EVENT.tags, "by": "hand"})
    events = (EVENT, again)
    matched = ((SLOT, events[0]), (SLOT, events[1]), (LATER_SLOT, events[0]))

    recorded = asked(FakeServices(results=[said(*matched)]).knows(*events))

    reported = [(event.tags["trigger_slot"], event.tags.get("by")) for event in recorded.events]
    assert reported == [("2026-03-01T06:00:00Z", "hand"), ("2026-03-01T07:00:00Z", None)]
    assert len({event.event_id for event in recorded.events}) == 2
    assert recorded.probes[0].recent_events[-1].event_count == 2


def test_an_event_that_the_ledger_does_not_have_fails_that_trigger_and_no_other() -> None:
    weekly = replace(DAILY, upstream_id="trigger:weekly", sensor_id="weekly")
    lost = replace(EVENT, tick_number=2, event_id="lost")
    results = [said((SLOT, lost)), said((SLOT, EVENT), upstream_id="trigger:weekly")]
    state = replace(STATE, upstreams=(DAILY, weekly))

    recorded = asked(FakeServices(results=results).knows(EVENT), state)

    failed, found = recorded.probes
    assert (failed.outcome, failed.position) == (ProbeOutcome.FAILED, None)
    assert str(failed.reason).startswith("the event lost of tick 2, which a slot needs, is not in")
    assert found.outcome is ProbeOutcome.FOUND


def test_a_trigger_that_the_controls_no_longer_have_is_left_alone() -> None:
    assert asked(FakeServices(results=[said(upstream_id="trigger:gone")])).probes == ()


@pytest.mark.parametrize("slot", [SLOT, LATER_SLOT])
def test_a_tick_killed_between_the_events_and_the_trigger_releases_nothing_twice(
    slot: datetime,
) -> None:
    late = replace(EVENT, tick_number=7, event_id="e7", snapshot_id="s7", change_id="c7")
    services = FakeServices(results=[said((SLOT, EVENT))], dies_at="within_release").knows(EVENT)
    with pytest.raises(Died):
        asked(services)
    left = services.store.read(Ledger.EVENTS, where=[("upstream_id", "=", "trigger:daily")])
    watched = {each.upstream_id: each for each in STATE.upstreams}
    # However far the ledgers are compacted by then.
    orphans = orphans_among(left, watched)
    state = replace(STATE, tick_number=9, folded_through=9, orphans=orphans)

    # The next tick finds the same change, maybe for a later slot, and one more.
    services.knows(late)
    services.dies_at, services.results = "", [said((slot, EVENT), (slot, late))]
    recorded = asked(services, state, Tick(number=10, at=NOON))

    assert [event.snapshot_id for event in recorded.events] == ["s7"]
    rows = services.store.read(Ledger.EVENTS, where=[("upstream_id", "=", "trigger:daily")])
    assert [row["tick_number"] for row in rows] == [9, 10]
    (probe,) = recorded.probes
    assert (probe.latest_event_tick, probe.recent_events[-1].event_count) == (10, 2)


@pytest.mark.parametrize("releases_an_earlier_slot", [True, False])
def test_a_slot_that_a_killed_tick_released_is_released_no_more_though_an_earlier_one_comes_first(
    releases_an_earlier_slot: bool,
) -> None:
    services = FakeServices(results=[said((LATER_SLOT, EVENT))], dies_at="within_release")
    with pytest.raises(Died):
        asked(services.knows(EVENT))
    left = services.store.read(Ledger.EVENTS, where=[("upstream_id", "=", "trigger:daily")])
    watched = {each.upstream_id: each for each in STATE.upstreams}
    state = replace(STATE, tick_number=9, orphans=orphans_among(left, watched))

    late = replace(EVENT, tick_number=7, event_id="e7", snapshot_id="s7", change_id="c7")
    waiting = (
        '{"waiting":["2026-03-01T07:00:00Z","2026-03-01T08:00:00Z"],"missing":[[],["orders"]]}'
    )
    matched = [(SLOT, late)] if releases_an_earlier_slot else []
    services.dies_at, services.results = "", [said(*matched, position=waiting)]
    recorded = asked(services.knows(late), state, Tick(number=10, at=NOON))

    assert [event.snapshot_id for event in recorded.events] == ["s7"] * releases_an_earlier_slot
    (probe,) = recorded.probes
    assert probe.position == '{"waiting":["2026-03-01T08:00:00Z"],"missing":[["orders"]]}'
    # What the killed tick released is unconsumed, and the job's next run consumes it.
    assert probe.latest_event_tick == 10
    assert probe.recent_events[-1].event_count == 1 + releases_an_earlier_slot


def test_what_a_slot_took_that_was_released_whole_is_no_leftover_of_a_killed_tick() -> None:
    """A slot with literal partitions is satisfied by the same change as the slot before."""
    services = FakeServices(results=[said((SLOT, EVENT))]).knows(EVENT)
    evaluation = evaluate_triggers(services, STATE, TICK)
    first, state = evaluation.recorded, STATE.with_evaluation(evaluation)
    orphans = orphans_among(services.store.read(Ledger.EVENTS), {})
    services.results = [said((LATER_SLOT, EVENT))]

    second = asked(services, replace(state, orphans=orphans), Tick(number=10, at=NOON))

    assert len(first.events) == len(second.events) == 1
    assert first.events[0].event_id != second.events[0].event_id


def test_the_triggers_are_due_again_at_the_first_instant_that_one_notes_after_the_evaluation() -> (
    None
):
    hours = (2, 1, 0, -1)
    noted = [
        f'{{"next_due_at":"{NOON + timedelta(hours=each):%Y-%m-%dT%H:%M:%SZ}"}}' for each in hours
    ]
    triggers = tuple(
        replace(DAILY, upstream_id=f"trigger:{number}", position=cursor)
        for number, cursor in enumerate((*noted, '{"next_due_at":null}', "{}", None))
    )
    state = replace(STATE, upstreams=(NEVER_SEEN, *triggers))

    assert after(FakeServices(), state).triggers_due_at == NOON + timedelta(hours=1)

    assert after(FakeServices()).triggers_due_at is None


def test_a_trigger_that_has_just_reported_when_to_evaluate_it_again_is_evaluated_then() -> None:
    place = '{"next_due_at":"2026-03-01T12:30:00Z"}'
    services = FakeServices(results=[said(position=place)])
    assert after(services).triggers_due_at == NOON + timedelta(minutes=30)


def _recorded(*events: EventRow, **values: object) -> Recorded:
    """Return what a tick recorded of an upstream that is probed."""
    found = RecentEvents(tick_number=9, event_at=NOON, event_count=1)
    row = ProbeRow(
        tick_number=9,
        recorded_at=NOON,
        upstream_id=NEVER_SEEN.upstream_id,
        outcome=ProbeOutcome.FOUND,
        reason=None,
        failing_since=None,
        position="after",
        upstream_value=None,
        latest_event_tick=9,
        latest_event_at=NOON,
        recent_events=(found,),
    )
    return Recorded(events=events, probes=(replace(row, **values),), changed={})  # type: ignore[arg-type]


STEP = replace(
    intended(),
    consumed=(Consumed(upstream_id="trigger:daily", from_tick=-1, through_tick=8),),
)
OTHER_STEP = replace(
    intended(),
    consumed=(Consumed(upstream_id=NEVER_SEEN.upstream_id, from_tick=-1, through_tick=8),),
)
NEWS = replace(EVENT, upstream_id=NEVER_SEEN.upstream_id, table="`Sales`.orders")
ELSEWHERE = replace(NEWS, table="sales.returns")


@pytest.mark.parametrize(
    ("state", "findings", "is_due"),
    [
        pytest.param({}, {}, False, id="nothing happened"),
        pytest.param({}, {"recorded": _recorded(NEWS)}, True, id="events of a named table came"),
        pytest.param(
            {}, {"recorded": _recorded(ELSEWHERE)}, False, id="events of another table came"
        ),
        pytest.param({}, {"recorded": _recorded()}, True, id="a killed tick has left the events"),
        pytest.param(
            {},
            {"recorded": _recorded(outcome=ProbeOutcome.MOVED, latest_event_tick=8)},
            False,
            id="an upstream moved in silence",
        ),
        pytest.param(
            {"upstreams": (READY,)}, {"steps": (STEP,)}, True, id="a slot waits for a run's step"
        ),
        pytest.param({}, {"steps": (STEP,)}, False, id="no slot waits for a run's step"),
        pytest.param(
            {"upstreams": (replace(READY, upstream_id="trigger:other"),)},
            {"steps": (STEP,)},
            False,
            id="a slot waits for another run",
        ),
        pytest.param({}, {"steps": (OTHER_STEP,)}, False, id="a run had no event of a trigger"),
        pytest.param({"triggers_due_at": NOON}, {}, True, id="a slot has come"),
        pytest.param(
            {"triggers_due_at": NOON + timedelta(seconds=1)}, {}, False, id="a slot will come"
        ),
        pytest.param({"triggers_due_at": AT_ONCE}, {}, True, id="nobody knows"),
        pytest.param(
            {"triggers_due_at": AT_ONCE, "upstreams": (NEVER_SEEN,)},
            {"recorded": _recorded()},
            False,
            id="there is no trigger",
        ),
    ],
)
def test_the_triggers_are_evaluated_when_that_may_bring_anything(
    tmp_path: Path, state: Mapping[str, object], findings: Mapping[str, object], is_due: bool
) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / EVENT_TRIGGERS).write_text(text(row()))
    now = replace(STATE, **state)  # type: ignore[arg-type]
    found = Findings(**findings)  # type: ignore[arg-type]
    assert triggers_are_due(now, TICK, found, TriggerTables(tmp_path)) is is_due


def test_the_tables_of_the_triggers_are_read_again_when_the_controls_changed(
    tmp_path: Path,
) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / EVENT_TRIGGERS).write_text(text(row()))
    tables = TriggerTables(tmp_path)
    assert tables.named("before") == {"sales.orders"}
    (tmp_path / EVENT_TRIGGERS).write_text(text(row(table="Sales.Returns")))
    assert tables.named("before") == {"sales.orders"}
    assert tables.named("after") == {"sales.returns"}

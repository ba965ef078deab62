"""A tick of a fresh process that finds registered events and nothing else: no Spark, no dbt."""

import json
from pathlib import Path

import pytest

from harness.inspect.tick_summary import as_json
from harness.record.batch_inbox import waiting
from harness.record.registrations import known_tables
from harness.store.rows import Ledger
from harness.tick.checkpoint import load_state
from harness.tick.engine import TickOptions
from harness.tick.report import TickReport
from harness.toolkit.changes import register
from tests.support.small_world import Killed, SmallWorld
from tests.support.watched import NEVER_SEEN


class World(SmallWorld):
    """A project without upstreams."""

    def __init__(self, project: Path) -> None:
        super().__init__(project)
        self.after(tick_number=4)

    def after(self, *, tick_number: int) -> None:
        """Set the state to what the models would return after a tick of this number."""
        registered = known_tables(self.store, 4)
        past = {"folded_through": 4, "ended_tick_number": 4, "registered": registered}
        self.remember(tick_number=tick_number, **past)

    def register(self, snapshot: str) -> None:
        output = {"table": "a.b", "table_format": "DELTA", "snapshot_id": snapshot}
        register({**output, "partition": ["1", "2"]}, home=self.home.folder)

    def tick(self, dies_at: str = "") -> TickReport:
        self.clock.sleep(60)
        self.dies_at = dies_at
        return self.engine().tick()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_records_them_and_decides_nothing(world: World) -> None:
    world.register("1")
    report = world.tick()
    assert report.skipped == ("decide", "fire", "publish")
    assert len(report.findings.events) == 1
    assert [row["tick_number"] for row in world.store.read(Ledger.EVENTS)] == [5]
    assert waiting(world.home.inbox) == []


def test_a_tick_for_the_inbox_records_them_and_probes_no_upstream(world: World) -> None:
    # An upstream that was never seen is probed by any other tick.
    world.remember(upstreams=(NEVER_SEEN,), registered=known_tables(world.store, 4))
    engine = world.engine()
    assert not engine.has_news
    world.register("1")
    assert engine.has_news
    report = engine.tick(TickOptions(is_for_inbox=True))
    assert (len(report.findings.events), world.probe_pool.looked_at) == (1, [])
    assert not engine.has_news
    engine.tick()
    assert world.probe_pool.looked_at == [NEVER_SEEN]


def test_its_answer_counts_them(world: World) -> None:
    world.register("1")
    assert json.loads(json.dumps(as_json(world.tick(), 0)))["events"] == 1


def test_the_next_process_has_the_tables_from_the_state_file(world: World) -> None:
    world.register("1")
    world.tick()
    state = load_state(world.home.state, world.store)
    assert state is not None
    assert (state.tick_number, dict(state.registered)) == (5, {"a.b": 2})
    assert not world.tick().findings.events
    assert world.store.commits == [Ledger.EVENTS, Ledger.PROBES]


def test_killed_after_it_has_recorded_them_it_has_recorded_them_once(world: World) -> None:
    world.register("1")
    with pytest.raises(Killed):
        world.tick(dies_at="after_record")
    assert len(waiting(world.home.inbox)) == 1

    world.after(tick_number=5)
    assert not world.tick().findings.events
    assert len(world.store.read(Ledger.EVENTS)) == 1
    assert waiting(world.home.inbox) == []

"""A tick of a fresh process that finds registered events and nothing else: no Spark, no dbt."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.batches import waiting
from harness.changes import register
from harness.clock import FakeClock
from harness.context import Context
from harness.feed import checksum_of
from harness.registered import known_tables
from harness.settings import load_settings
from harness.show.tick import as_json
from harness.state import TickState
from harness.state_file import load_state, save_state
from harness.tables import Ledger
from harness.tick import Engine
from harness.tick_report import TickReport
from tests.unit.memory_store import MemoryStore

HEADER = (
    "sensor_source,sensor_id,sensor_read_type,asset_description,upstream_key,preprocess_query,"
    "trigger_job_id,trigger_job_name,job_state,dependency_flag\n"
)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Killed(BaseException):
    """The process died here."""


class FakeDbt:
    """Builds nothing, and refuses to decide."""

    def build_everything(self, *, with_triggers: bool) -> None: ...

    def build(self, selector: str, variables: object) -> None:
        raise AssertionError("nothing is to be decided")


class DyingContext(Context):
    """Dies at one of the crash points."""

    dies_at = ""

    def crash_point(self, name: str) -> None:
        if name == self.dies_at:
            raise Killed(name)


class World:
    """A project without upstreams, whose ledgers are in memory."""

    def __init__(self, project: Path) -> None:
        self.project, self.store, self.clock = project, MemoryStore(), FakeClock(NOON)
        (project / "seeds").mkdir()
        (project / "heartbeat.yml").write_text("")
        (project / "seeds" / "heartbeat_controls.csv").write_text(HEADER)
        self.home = self.context().home
        self.remember(tick_number=4)

    def remember(self, *, tick_number: int) -> None:
        """Let the state be what the models would tell after a tick of this number."""
        state = TickState(
            tick_number=tick_number,
            tick_at=NOON,
            folded_through=4,
            upstreams=(),
            registered=known_tables(self.store, 4),
            runs=(),
            controls_checksum=checksum_of(self.project),
            ended_tick_number=4,
            must_decide=False,
        )
        save_state(self.home.state, state, self.store)

    def context(self) -> DyingContext:
        context = DyingContext(load_settings(self.project, {}), {}, self.clock)
        vars(context).update(store=self.store, session=None, dbt=FakeDbt())
        return context

    def register(self, snapshot: str) -> None:
        said = {"table": "a.b", "table_format": "DELTA", "snapshot_id": snapshot}
        register({**said, "partition": ["1", "2"]}, home=self.home.folder)

    def tick(self, dies_at: str = "") -> TickReport:
        self.clock.sleep(60)
        context = self.context()
        context.dies_at = dies_at
        return Engine(context).tick()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_records_them_and_decides_nothing(world: World) -> None:
    world.register("1")
    report = world.tick()
    assert report.skipped == ("decide", "fire", "publish")
    assert report.event_count == 1
    assert [row["tick_number"] for row in world.store.read(Ledger.EVENTS)] == [5]
    assert waiting(world.home.inbox) == []


def test_its_answer_counts_them(world: World) -> None:
    world.register("1")
    assert json.loads(json.dumps(as_json(world.tick(), 0)))["events"] == 1


def test_the_next_process_knows_the_tables_from_the_state_file(world: World) -> None:
    world.register("1")
    world.tick()
    state = load_state(world.home.state, world.store)
    assert state is not None
    assert (state.tick_number, dict(state.registered)) == (5, {"a.b": 2})
    assert world.tick().event_count == 0
    assert world.store.commits == [Ledger.EVENTS, Ledger.PROBES]


def test_killed_after_it_has_recorded_them_it_has_recorded_them_once(world: World) -> None:
    world.register("1")
    with pytest.raises(Killed):
        world.tick(dies_at="after_record")
    assert len(waiting(world.home.inbox)) == 1

    world.remember(tick_number=5)
    assert world.tick().event_count == 0
    assert len(world.store.read(Ledger.EVENTS)) == 1
    assert waiting(world.home.inbox) == []

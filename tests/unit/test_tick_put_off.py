"""What keeps failing, tick by tick, each in a process of its own: without Spark and dbt."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.clock import FakeClock
from harness.context import Context
from harness.errors import DecideError
from harness.feed import checksum_of
from harness.sense.types import Look, Upstream
from harness.settings import load_settings
from harness.state import TickState
from harness.state_file import save_state
from harness.tables import Ledger, LookOutcome
from harness.tick import Engine
from harness.tick_report import TickReport
from tests.unit.memory_store import MemoryStore
from tests.unit.watched import NEVER_SEEN

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HEADER = (
    "sensor_source,sensor_id,sensor_read_type,asset_description,upstream_key,preprocess_query,"
    "trigger_job_id,trigger_job_name,job_state,dependency_flag\n"
)
ROW = "trigger_file,orders,batch,{description},,,1,daily,UNPAUSED,TRUE\n"
ORDERS = replace(
    NEVER_SEEN,
    upstream_id="trigger_file:orders:00000000",
    sensor_source="trigger_file",
    sensor_id="orders",
    sensor_read_type="batch",
    failing_since=NOON,
    reason="it is down.",
)


class FakeDbt:
    """Builds nothing, and refuses to decide."""

    def build_everything(self, *, with_triggers: bool) -> None: ...

    def seed_controls(self) -> None: ...

    def build(self, selector: str, variables: object) -> None:
        raise DecideError("there is no dbt here")


class FakeLooker:
    """Every look fails, for the reason that is set."""

    def __init__(self) -> None:
        self.reason: str | None = "it is down."
        self.count = 0

    def look_at_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_look: Callable[[Look], None] | None = None,
    ) -> list[Look]:
        self.count += len(upstreams)
        return [Look(upstream_id=each.upstream_id, failure=self.reason) for each in upstreams]


class FakeContext(Context):
    """Reads the two models that an edited CSV needs from memory."""

    def rows(self, relation: str) -> list[dict[str, object]]:
        if relation == "queue_upstreams":
            return [asdict(ORDERS)]
        return [
            {
                "control_id": "orders_1",
                "change": "changed",
                "upstream_id": ORDERS.upstream_id,
                "sensor_source": ORDERS.sensor_source,
                "sensor_id": ORDERS.sensor_id,
                "sensor_read_type": ORDERS.sensor_read_type,
                "asset_description": "edited",
                "upstream_key": None,
                "preprocess_query": None,
                "job_id": 1,
                "job_name": "daily",
                "job_state": "UNPAUSED",
                "dependency_flag": "TRUE",
            }
        ]


class World:
    """A project whose only upstream has failed before, and a scheduler that ticks."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.clock = FakeClock(NOON)
        self.looker = FakeLooker()
        self.store = MemoryStore()
        (project / "seeds").mkdir()
        (project / "heartbeat.yml").write_text("")
        self.edit("as it was")
        state = TickState(
            tick_number=1,
            tick_at=NOON,
            folded_through=1,
            upstreams=(ORDERS,),
            runs=(),
            controls_checksum=checksum_of(project),
            ended_tick_number=1,
            must_decide=False,
        )
        self.context = self._context()
        save_state(self.context.home.state, state, self.store)

    def _context(self) -> FakeContext:
        context = FakeContext(load_settings(self.project, {}), {}, self.clock)
        # Each is made when it is first asked for; a test sets it before.
        vars(context).update(store=self.store, looker=self.looker, dbt=FakeDbt())
        return context

    def edit(self, description: str) -> None:
        text = HEADER + ROW.format(description=description)
        (self.project / "seeds" / "heartbeat_controls.csv").write_text(text)

    def tick(self, engine: Engine | None = None) -> TickReport:
        try:
            return (engine or Engine(self._context())).tick()
        finally:
            self.clock.sleep(30)

    def ticks(self, count: int) -> TickReport:
        return [self.tick() for _ in range(count)][-1]

    @property
    def outcomes(self) -> list[tuple[object, object]]:
        rows = self.store.read(Ledger.PROBES)
        return [(row["outcome"], row["reason"]) for row in rows]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_tick_of_a_fresh_process_puts_off_what_the_ones_before_it_saw_fail(world: World) -> None:
    report = world.ticks(4)
    assert (report.sensed, len(report.put_off), world.looker.count) == (0, 1, 3)


def test_a_resident_process_puts_off_at_the_same_ticks(world: World) -> None:
    engine = Engine(world.context)
    put_off = [len(world.tick(engine).put_off) for _ in range(8)]
    assert put_off == [0, 0, 0, 1, 0, 1, 1, 1]


def test_a_tick_that_puts_off_decides_nothing_and_ends_with_failure(world: World) -> None:
    report = world.ticks(4)
    assert (report.skipped, report.is_clean) == (("decide", "fire", "publish"), False)


def test_a_tick_that_puts_off_leaves_no_row(world: World) -> None:
    world.ticks(4)
    assert world.store.commits == []


def test_a_reason_that_changed_is_recorded_once_with_the_first_instant(world: World) -> None:
    world.tick()
    world.looker.reason = "it refuses the password."
    with pytest.raises(DecideError):
        world.tick()
    assert world.outcomes == [(LookOutcome.FAILED, "it refuses the password.")]
    assert world.store.read(Ledger.PROBES)[0]["failing_since"] == NOON


def test_a_row_that_was_edited_is_looked_at_at_once(world: World) -> None:
    world.ticks(3)
    world.edit("another text")
    with pytest.raises(DecideError):
        world.tick()
    assert world.looker.count == 4

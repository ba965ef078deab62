"""What keeps failing, tick by tick, each in a process of its own: without Spark and dbt."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import DecideError
from harness.sense.backoff import load_back_off
from harness.store.rows import Ledger, ProbeOutcome
from harness.store.work_lists import Upstream
from harness.tick.engine import Engine
from harness.tick.report import TickReport
from tests.support.small_world import NOON, SmallWorld
from tests.support.watched import NEVER_SEEN

ROW = "trigger_file,orders,batch,{description},,,1,daily,UNPAUSED,TRUE\n"
ORDERS = replace(
    NEVER_SEEN,
    upstream_id="trigger_file:orders:00000000",
    source="trigger_file",
    sensor_id="orders",
    read_type="batch",
    failing_since=NOON,
    reason="it is down.",
)


PAYMENTS = replace(
    ORDERS,
    upstream_id="trigger_file:payments:00000000",
    sensor_id="payments",
    failing_since=None,
    reason=None,
)

CHANGED = {
    "control_id": "orders_1",
    "change": "changed",
    "upstream_id": ORDERS.upstream_id,
    "sensor_source": ORDERS.source,
    "sensor_id": ORDERS.sensor_id,
    "sensor_read_type": ORDERS.read_type,
    "asset_description": "edited",
    "upstream_key": None,
    "preprocess_query": None,
    "job_id": 1,
    "job_name": "daily",
    "job_state": "UNPAUSED",
    "dependency_flag": "TRUE",
}


class World(SmallWorld):
    """A project whose only upstream has failed before."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, ROW.format(description="as it was"))
        self.probe_pool.reason = "it is down."
        self.models["queue_upstreams"] = lambda: [ORDERS.to_row()]
        self.models["queue_control_changes"] = lambda: [CHANGED]
        self.remember(upstreams=(ORDERS,))

    def tick(self, engine: Engine | None = None) -> TickReport:
        try:
            return (engine or self.engine()).tick()
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
    assert (len(report.results), len(report.sensed.deferred), len(world.probe_pool.looked_at)) == (
        0,
        1,
        3,
    )


def test_a_resident_process_puts_off_at_the_same_ticks(world: World) -> None:
    engine = world.engine()
    deferred = [len(world.tick(engine).sensed.deferred) for _ in range(8)]
    assert deferred == [0, 0, 0, 1, 0, 1, 1, 1]


def test_a_tick_that_puts_off_decides_nothing_and_ends_with_failure(world: World) -> None:
    report = world.ticks(4)
    assert (report.skipped, report.is_clean) == (("decide", "fire", "publish"), False)


def test_a_tick_that_puts_off_leaves_no_row(world: World) -> None:
    world.ticks(4)
    assert world.store.commits == []


def test_a_reason_that_changed_is_recorded_once_with_the_first_instant(world: World) -> None:
    world.tick()
    world.probe_pool.reason = "it refuses the password."
    with pytest.raises(DecideError):
        world.tick()
    assert world.outcomes == [(ProbeOutcome.FAILED, "it refuses the password.")]
    assert world.store.read(Ledger.PROBES)[0]["failing_since"] == NOON


def left_alone(world: World) -> list[str]:
    return sorted(load_back_off(world.home.back_off).failing)


@pytest.mark.parametrize("others", [(), (PAYMENTS,)], ids=["all rows left", "one row left"])
def test_what_is_in_force_no_longer_is_not_shown_as_failing(
    world: World, others: tuple[Upstream, ...]
) -> None:
    world.ticks(3)
    # Its rows left the CSV, or were paused, and the tick that fed that was killed afterwards.
    world.remember(upstreams=others)
    world.probe_pool.reason = None
    world.tick()
    assert left_alone(world) == []


def test_a_row_that_comes_back_is_probed_at_once(world: World) -> None:
    world.ticks(4)
    world.remember(upstreams=())
    world.tick()
    world.remember(upstreams=(ORDERS,))
    world.tick()
    assert len(world.probe_pool.looked_at) == 4
    assert left_alone(world) == [ORDERS.upstream_id]


def test_a_row_that_was_edited_is_probed_at_once(world: World) -> None:
    world.ticks(3)
    world.edit(ROW.format(description="another text"))
    with pytest.raises(DecideError):
        world.tick()
    assert len(world.probe_pool.looked_at) == 4

"""What a fresh process builds again: the decision for another limit of starts, seeds that differ."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.store.work_lists import EVENT_TRIGGER, Upstream
from tests.support.small_world import SmallWorld
from tests.support.watched import NEVER_SEEN

LIMIT = 50
TRIGGER = replace(NEVER_SEEN, upstream_id="trigger:daily", sensor_id="daily", source=EVENT_TRIGGER)


@pytest.fixture
def world(tmp_path: Path) -> SmallWorld:
    world = SmallWorld(tmp_path)
    world.remember(must_decide=True)
    world.models["job_blockers"] = lambda: []
    return world


def test_a_fresh_process_builds_no_view_of_a_decision_that_stands(world: SmallWorld) -> None:
    world.models["trigger_set"] = lambda: []
    world.engine().tick()
    assert world.dbt.built == []
    assert world.published == ["heartbeat_control", "sensors"]


@pytest.mark.parametrize("upstreams", [(), (TRIGGER,)], ids=["nothing", "a trigger alone"])
def test_a_tick_reports_whether_anything_is_probed_or_evaluated(
    world: SmallWorld, upstreams: tuple[Upstream, ...]
) -> None:
    world.remember(upstreams=upstreams, triggers_due_at=None)
    assert world.engine().tick().has_upstreams is bool(upstreams)


def test_views_with_another_limit_are_built_and_read_again_before_anything_is_started(
    world: SmallWorld,
) -> None:
    def rows() -> Sequence[dict[str, object]]:
        # By a plain `dbt build`, whose limit is that of dbt_project.yml.
        return [] if "decide" in world.dbt.built else [{"job_id": 1, "starts_per_tick": LIMIT + 1}]

    world.models["trigger_set"] = rows
    report = world.engine().tick()
    assert world.dbt.built == ["decide"]
    assert world.dbt.variables[0] == {"starts_per_tick": LIMIT}
    assert report.started == ()


def test_seeds_that_were_loaded_with_the_tables_are_not_loaded_again(tmp_path: Path) -> None:
    world = SmallWorld(tmp_path)
    for model in (
        "trigger_set",
        "job_blockers",
        "queue_upstreams",
        "queue_runs_to_follow",
        "queue_control_changes",
        "queue_retries",
    ):
        world.models[model] = lambda: []
    # It finds nothing built, and builds everything.
    world.remember(controls_checksum=None)
    world.engine().tick()
    assert world.dbt.seeded == []
    world.edit("\n")
    world.engine().tick()
    # What every decision reads is made of them at once.
    assert world.dbt.seeded == [["heartbeat_controls", "int_dependencies"]]
    # Loaded by somebody else, such as a plain `dbt seed`.
    world.store.replace("scheduled_jobs", [{"job_id": "1"}])
    world.remember(controls_checksum=None)
    world.engine().tick()
    assert world.dbt.seeded[1:] == [["scheduled_jobs"]]
    for seed in ("event_triggers", "retry_policies"):
        world.store.replace(seed, [{"job_id": "1"}])
    world.remember(controls_checksum=None)
    world.engine().tick()
    assert set(world.dbt.seeded[2]) == {
        "event_triggers",
        "int_dependencies",
        "retry_policies",
        "stg_retry_policies",
    }

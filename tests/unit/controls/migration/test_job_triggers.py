"""The triggers of a workspace's jobs become control rows, with what their jobs have seen."""

from datetime import timedelta

import pytest

from harness.controls.imported_sensors import ImportedStatus
from harness.controls.migration.job_triggers import triggers_of
from harness.controls.migration.plan import Plan, plan
from harness.platform.databricks.api import Outcome
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.small_world import NOON

TABLES = {"table_names": ["main.sales.orders", "main.sales.returns"], "condition": "ALL_UPDATED"}


class World:
    """A workspace whose jobs have triggers."""

    def __init__(self) -> None:
        self.clock = FakeClock(NOON)
        self.jobs = FakeJobs(clock=self.clock)

    def add(self, job_id: int, pause_status: str = "PAUSED", **trigger: object) -> None:
        settings = {"name": f"job {job_id}", "trigger": {"pause_status": pause_status, **trigger}}
        self.jobs.add_job(job_id, settings=settings)

    def imported(self, *, is_unpaused: bool = False) -> Plan:
        found = triggers_of(self.jobs, is_unpaused=is_unpaused)
        result = plan(found.candidates)
        return Plan(
            rows=result.rows, sensors=result.sensors, remarks=(*found.remarks, *result.remarks)
        )


@pytest.fixture
def world() -> World:
    return World()


def cells(result: Plan, *indexes: int) -> list[tuple[str, ...]]:
    return [tuple(row[index] for index in indexes) for row in result.rows]


def said(result: Plan) -> str:
    return "\n".join(map(str, result.remarks))


@pytest.mark.parametrize(("condition", "flag"), [("ALL_UPDATED", "TRUE"), ("ANY_UPDATED", "FALSE")])
def test_each_table_is_a_row_hard_where_all_have_to_be_updated(
    world: World, condition: str, flag: str
) -> None:
    world.add(1, table_update={**TABLES, "condition": condition})
    assert cells(world.imported(), 0, 1, 6, 7, 9) == [
        ("delta_table", "main.sales.orders", "1", "job 1", flag),
        ("delta_table", "main.sales.returns", "1", "job 1", flag),
    ]


def test_one_table_is_a_hard_dependency_whatever_the_condition(world: World) -> None:
    world.add(1, table_update={"table_names": ["main.a.b"], "condition": "ANY_UPDATED"})
    assert cells(world.imported(), 1, 9) == [("main.a.b", "TRUE")]


def test_a_folder_is_a_row_of_files(world: World) -> None:
    world.add(1, file_arrival={"url": "s3://bucket/in/"})
    assert cells(world.imported(), 0, 1) == [("file", "s3://bucket/in/")]


def test_a_row_is_paused_as_its_trigger_is_unless_it_was_paused_to_be_migrated(
    world: World,
) -> None:
    world.add(1, table_update={"table_names": ["main.a.b"]})
    assert cells(world.imported(), 8) == [("PAUSED",)]
    assert cells(world.imported(is_unpaused=True), 8) == [("UNPAUSED",)]


def test_a_trigger_that_is_active_is_reported(world: World) -> None:
    world.add(1, "UNPAUSED", table_update={"table_names": ["main.a.b"]})
    result = world.imported()
    assert cells(result, 8) == [("UNPAUSED",)]
    assert (
        "job 1 (job 1): its trigger is active, and would start it beside Heartbeat; pause it"
        in (said(result))
    )


def test_a_job_that_never_ran_has_seen_what_was_there_when_it_was_created(world: World) -> None:
    world.add(1, table_update={"table_names": ["main.a.b"]})
    (sensor,) = world.imported().sensors
    assert (sensor.status, sensor.fetched_at) == (ImportedStatus.COMPLETED, NOON)


def test_a_job_has_seen_what_was_there_when_its_last_run_began(world: World) -> None:
    world.add(1, table_update={"table_names": ["main.a.b"]})
    for _ in range(2):
        world.clock.sleep(3600)
        run_id = world.jobs.start_by_hand(1)
        world.clock.sleep(60)
        world.jobs.end_run(run_id, Outcome.SUCCEEDED)
    (sensor,) = world.imported().sensors
    assert (sensor.status, sensor.fetched_at) == (
        ImportedStatus.COMPLETED,
        NOON + timedelta(hours=2, minutes=1),
    )


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(None, ImportedStatus.IN_PROGRESS), (Outcome.FAILED, ImportedStatus.FAILED)],
)
def test_a_job_whose_last_run_did_not_succeed_is_held(
    world: World, outcome: Outcome | None, status: ImportedStatus
) -> None:
    world.add(1, table_update={"table_names": ["main.a.b"]})
    run_id = world.jobs.start_by_hand(1)
    if outcome is not None:
        world.jobs.end_run(run_id, outcome)
    result = world.imported()
    assert result.sensors[0].status is status
    assert "so the job is held; a run that succeeds releases it" in said(result)


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        ({"periodic": {"interval": 1, "unit": "DAYS"}}, "a schedule starts it, and no data"),
        ({"model": {"condition": "MODEL_CREATED"}}, "it waits for versions of a model"),
        ({"table_update": {"table_names": []}}, "its trigger names no table"),
        ({"table_update": {"table_names": [7]}}, "its trigger names no table"),
        ({"file_arrival": {}}, "its trigger names no folder"),
        ({"comet": {}}, "its trigger has an unknown kind (comet, pause_status)"),
    ],
)
def test_a_trigger_that_is_no_row_is_left_out_and_reported(
    world: World, trigger: dict[str, object], reason: str
) -> None:
    world.add(1, **trigger)
    world.add(2, table_update={"table_names": ["main.a.b"]})
    result = world.imported()
    assert cells(result, 6) == [("2",)]
    assert reason in said(result)
    assert [each.is_left_out for each in result.remarks] == [True]


def test_waiting_times_are_reported(world: World) -> None:
    waits = {"min_time_between_triggers_seconds": 600, "wait_after_last_change_seconds": 60}
    world.add(1, table_update={"table_names": ["main.a.b"], **waits})
    result = said(world.imported())
    assert "min_time_between_triggers_seconds 600 is not carried over" in result
    assert "wait_after_last_change_seconds 60 is not carried over" in result


def test_several_tables_without_a_condition_are_reported(world: World) -> None:
    world.add(1, table_update={"table_names": TABLES["table_names"]})
    result = world.imported()
    assert cells(result, 9) == [("FALSE",), ("FALSE",)]
    assert "no condition, so any of them starts it" in said(result)


def test_a_job_without_a_trigger_is_none_of_ours(world: World) -> None:
    world.jobs.add_job(1)
    assert world.imported() == Plan()

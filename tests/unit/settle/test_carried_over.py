"""What an earlier sensor had passed to a job starts it no second time; what came later does, once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from harness.controls.imported_sensors import ImportedSensor, ImportedStatus
from harness.events.event import ChangeEvent, TableFormat
from harness.sense.probe import ProbeResult
from harness.settle.carried_over import CarriedOver, carry_over
from harness.store.rows import ControlChangeRow, Ledger, Run, RunStatus, Tick
from harness.store.work_lists import Upstream
from harness.tick.state import TickState
from tests.support.memory_store import MemoryStore

FETCHED = datetime(2026, 3, 1, 6, tzinfo=UTC)
STARTED = FETCHED + timedelta(minutes=1)
ENDED = FETCHED + timedelta(minutes=20)
TICK = Tick(number=7, at=FETCHED + timedelta(days=1))
UPSTREAM = Upstream(
    upstream_id="delta_table:a.b:1", source="delta_table", sensor_id="a.b", read_type="streaming"
)
DONE = ImportedSensor(
    control_id="a_b_1",
    status=ImportedStatus.COMPLETED,
    fetched_at=FETCHED,
    changed_at=ENDED,
    job_started_at=STARTED,
    job_ended_at=ENDED,
)


def event(at: datetime | None) -> ChangeEvent:
    milliseconds = None if at is None else int(at.timestamp() * 1000)
    return ChangeEvent(
        table="a.b",
        snapshot_id=str(milliseconds),
        snapshot_ts=milliseconds,
        table_format=TableFormat.DELTA,
    )


class World:
    """The control rows of some jobs on one upstream."""

    def __init__(self, *jobs: int) -> None:
        self.store = MemoryStore()
        self.upstream = UPSTREAM
        self.runs: tuple[Run, ...] = ()
        self.store.append(Ledger.CONTROLS, [self._control(job) for job in jobs])

    def _control(self, job: int) -> ControlChangeRow:
        return ControlChangeRow(
            tick_number=7,
            recorded_at=TICK.at,
            control_id=f"a_b_{job}",
            change="added",
            upstream_id=UPSTREAM.upstream_id,
            sensor_source="delta_table",
            sensor_id="a.b",
            sensor_read_type="streaming",
            asset_description=None,
            upstream_key=None,
            preprocess_query=None,
            job_id=job,
            job_name=f"job {job}",
            job_state="PAUSED",
            dependency_flag="TRUE",
        )

    def carry_over(self, *events: ChangeEvent, **imported: ImportedSensor) -> CarriedOver:
        state = TickState(
            tick_number=6,
            tick_at=None,
            folded_through=-1,
            upstreams=(self.upstream,),
            runs=self.runs,
            controls_checksum=None,
            ended_tick_number=6,
            must_decide=False,
        )
        result = ProbeResult(upstream_id=UPSTREAM.upstream_id, position="{}", events=events)
        return carry_over([result], imported, state, tick=TICK, store=self.store)


def consumed(found: CarriedOver) -> dict[int, list[int]]:
    """Return the tick through which each job has consumed."""
    return {run.job_id: [each.through_tick for each in run.consumed] for run in found.rows}


def test_what_a_completed_job_has_processed_is_no_event() -> None:
    found = World(1).carry_over(event(FETCHED), a_b_1=DONE)
    assert found.results[0].events == ()
    (run,) = found.rows
    assert (run.run_status, run.reported_by, consumed(found)) == (
        RunStatus.SUCCEEDED,
        "import",
        {1: [7]},
    )


def test_its_times_are_those_of_the_earlier_sensor() -> None:
    (run,) = World(1).carry_over(event(FETCHED), a_b_1=DONE).rows
    assert (run.decided_at, run.ended_at, run.recorded_at) == (STARTED, ENDED, ENDED)
    assert run.decided_tick == run.tick_number == TICK.number


def test_a_change_after_the_last_event_is_new_data_and_only_this_change() -> None:
    later = event(FETCHED + timedelta(milliseconds=1))
    found = World(1).carry_over(event(FETCHED), later, a_b_1=DONE)
    assert found.results[0].events == (later,)
    assert consumed(found) == {1: [6]}


@pytest.mark.parametrize("status", [None, ImportedStatus.NEW_EVENT_AVAILABLE])
def test_what_no_run_has_received_is_an_event(status: ImportedStatus | None) -> None:
    waits = replace(DONE, status=status)
    found = World(1).carry_over(event(FETCHED), a_b_1=waits)
    assert len(found.results[0].events) == 1
    assert found.rows == ()


def test_of_two_jobs_on_one_upstream_only_the_one_that_waits_has_an_event() -> None:
    waits = replace(DONE, control_id="a_b_2", status=ImportedStatus.NEW_EVENT_AVAILABLE)
    found = World(1, 2).carry_over(event(FETCHED), a_b_1=DONE, a_b_2=waits)
    assert len(found.results[0].events) == 1
    assert consumed(found) == {1: [7]}


def test_a_job_that_was_not_imported_has_the_existing_data_as_an_event() -> None:
    found = World(1, 2).carry_over(event(FETCHED), a_b_1=DONE)
    assert len(found.results[0].events) == 1
    assert consumed(found) == {1: [7]}


@pytest.mark.parametrize(
    ("sensor", "at"),
    [
        (DONE, None),
        (ImportedSensor(control_id="a_b_1", status=ImportedStatus.COMPLETED), TICK.at),
    ],
    ids=["the source has no time", "the import has no time"],
)
def test_without_both_times_existing_data_counts_as_processed(
    sensor: ImportedSensor, at: datetime | None
) -> None:
    found = World(1).carry_over(event(at), a_b_1=sensor)
    assert found.results[0].events == ()
    assert consumed(found) == {1: [7]}


@pytest.mark.parametrize("status", [ImportedStatus.IN_PROGRESS, ImportedStatus.FAILED])
def test_a_job_whose_run_has_no_recorded_end_is_held_since_the_event_was_found(
    status: ImportedStatus,
) -> None:
    (run,) = World(1).carry_over(event(FETCHED), a_b_1=replace(DONE, status=status)).rows
    assert (run.run_status, run.holds_job, run.ended_at) == (RunStatus.PARKED, True, None)
    # The earlier sensor recorded the start after it: a success that began in between counts.
    assert (run.started_at, run.decided_at) == (FETCHED, STARTED)
    assert "`release 1`" in str(run.message)


def test_a_held_job_that_is_imported_stays_held_by_its_run() -> None:
    world = World(1)
    (run,) = world.carry_over(a_b_1=replace(DONE, status=ImportedStatus.IN_PROGRESS)).rows
    other = replace(run.consumed[0], upstream_id="other")
    world.runs = (replace(run, run_status=RunStatus.FAILED, consumed=(other,), run_id=5),)
    (row,) = world.carry_over(event(FETCHED), a_b_1=DONE).rows
    assert (row.run_status, row.run_id, row.tick_number) == (RunStatus.FAILED, 5, TICK.number)
    assert (row.reported_by, row.recorded_at) == ("import", run.recorded_at)
    assert [each.upstream_id for each in row.consumed] == ["other", UPSTREAM.upstream_id]


def test_a_job_that_has_run_since_is_not_held_by_what_was_imported() -> None:
    world = World(1)
    unfinished = replace(DONE, status=ImportedStatus.IN_PROGRESS)
    world.store.append(Ledger.RUNS, world.carry_over(a_b_1=unfinished).rows)
    (run,) = world.carry_over(event(FETCHED), a_b_1=unfinished).rows
    assert run.run_status is RunStatus.SUCCEEDED
    # It is the run that was imported, of which a tick that was killed may have left a row.
    assert {row["intent_id"] for row in world.store.read(Ledger.RUNS)} == {run.intent_id}


def test_only_a_first_probe_is_carried_over() -> None:
    world = World(1)
    world.upstream = replace(UPSTREAM, position="{}")
    found = world.carry_over(event(FETCHED), a_b_1=DONE)
    assert (len(found.results[0].events), found.rows) == (1, ())


def test_a_probe_that_failed_is_carried_over_when_it_succeeds() -> None:
    failed = ProbeResult(upstream_id=UPSTREAM.upstream_id, failure="gone")
    world = World(1)
    state = TickState(
        tick_number=6,
        tick_at=None,
        folded_through=-1,
        upstreams=(UPSTREAM,),
        runs=(),
        controls_checksum=None,
        ended_tick_number=6,
        must_decide=False,
    )
    found = carry_over([failed], {"a_b_1": DONE}, state, tick=TICK, store=world.store)
    assert (found.results, found.rows) == ((failed,), ())

"""A tick that probes an imported upstream for the first time: the runs are durable before the rest."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import pytest

from harness.controls.imported_sensors import (
    COLUMNS,
    IMPORTED_SENSORS,
    ImportedSensor,
    ImportedStatus,
)
from harness.events.event import ChangeEvent, TableFormat
from harness.sense.probe import ProbeResult
from harness.store.rows import ControlChangeRow, Ledger
from harness.store.work_lists import Upstream
from tests.support.small_world import NOON, Killed, SmallWorld

UPSTREAM = Upstream(upstream_id="u", source="delta_table", sensor_id="a.b", read_type="streaming")
CONTROL = ControlChangeRow(
    tick_number=1,
    recorded_at=NOON,
    control_id="a_b_1",
    change="added",
    upstream_id="u",
    sensor_source="delta_table",
    sensor_id="a.b",
    sensor_read_type="streaming",
    asset_description=None,
    upstream_key=None,
    preprocess_query=None,
    job_id=1,
    job_name="job",
    job_state="UNPAUSED",
    dependency_flag="TRUE",
)


class NewTable:
    """Finds the same two changes at each first probe: one from before noon, one from after it."""

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_result: Callable[[ProbeResult], None] | None = None,
    ) -> list[ProbeResult]:
        milliseconds = int(NOON.timestamp() * 1000)
        events = tuple(
            ChangeEvent(
                table="a.b", snapshot_id=str(ts), snapshot_ts=ts, table_format=TableFormat.DELTA
            )
            for ts in (milliseconds - 1, milliseconds + 1)
        )
        return [
            ProbeResult(upstream_id=each.upstream_id, position="{}", events=events)
            for each in upstreams
        ]


@pytest.fixture
def world(tmp_path: Path) -> SmallWorld:
    world = SmallWorld(tmp_path)
    world.probe_pool = NewTable()  # type: ignore[assignment]
    world.models |= {"trigger_set": lambda: [], "job_blockers": lambda: []}
    world.store.append(Ledger.CONTROLS, [CONTROL])
    done = ImportedSensor(
        control_id="a_b_1", status=ImportedStatus.COMPLETED, fetched_at=NOON, changed_at=NOON
    )
    rows = (",".join(COLUMNS), ",".join(done.cells()), "")
    (world.project / IMPORTED_SENSORS).write_text("\n".join(rows))
    world.remember(upstreams=(UPSTREAM,))
    world.store.commits.clear()
    return world


def test_what_jobs_have_processed_is_recorded_before_the_events_and_the_cursor(
    world: SmallWorld,
) -> None:
    world.engine().tick()
    appended = [each for each in world.store.commits if each != Ledger.TICKS]
    assert appended == [Ledger.RUNS, Ledger.EVENTS, Ledger.PROBES]
    (event,) = world.store.read(Ledger.EVENTS)
    assert event["snapshot_ts"] == int(NOON.timestamp() * 1000) + 1


def test_a_tick_that_is_repeated_records_the_same_run_further(world: SmallWorld) -> None:
    world.dies_at = "before_record"
    with pytest.raises(Killed):
        world.engine().tick()
    world.dies_at = ""
    world.remember(upstreams=(UPSTREAM,), tick_number=2)
    world.engine().tick()
    rows = world.store.read(Ledger.RUNS)
    assert len({row["intent_id"] for row in rows}) == 1
    through = [each["through_tick"] for row in rows for each in row["consumed"]]  # type: ignore[attr-defined]
    assert through == [1, 2]

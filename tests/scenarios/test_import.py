"""A control table of the original is imported with its state: nothing starts twice, nothing is lost."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import COLUMNS as IMPORTED_COLUMNS
from harness.controls.imported_sensors import IMPORTED_SENSORS
from harness.controls.migration.original import STATE_COLUMNS, candidates_of, records_of_csv
from harness.controls.migration.plan import plan, write
from tests.scenarios.conftest import Story


@pytest.fixture
def project(story: Story) -> Iterator[Path]:
    """The project of the story, whose seed of imported sensors is empty again afterwards."""
    yield story.home.project
    (story.home.project / IMPORTED_SENSORS).write_text(",".join(IMPORTED_COLUMNS) + "\n")


def committed_at(table: str) -> datetime:
    """Return when the newest commit of a table was made."""
    milliseconds = DeltaTable(table).history(1)[0]["timestamp"]
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


@pytest.mark.long
def test_nothing_starts_twice_after_an_import_and_new_data_starts_each_job_once(
    story: Story, project: Path
) -> None:
    done, waits, in_progress = story.job(1), story.job(2), story.job(3)
    orders, late = story.table("orders"), story.table("late-table")
    second = timedelta(seconds=1)
    seen = {"latest_event_fetched_timestamp": (committed_at(orders) + second).isoformat()}
    began = (story.clock.now() - timedelta(hours=1)).isoformat()
    rows = [
        {"sensor_id": orders, "trigger_job_id": done, "status": "COMPLETED", **seen},
        {"sensor_id": orders, "trigger_job_id": waits, "status": "NEW_EVENT_AVAILABLE", **seen},
        # Its data came after the event that it was started for.
        {
            "sensor_id": late,
            "trigger_job_id": in_progress,
            "status": "IN PROGRESS",
            "latest_event_fetched_timestamp": began,
            "job_start_timestamp": began,
        },
    ]
    usual = {
        "sensor_source": "delta_table",
        "sensor_read_type": "streaming",
        "job_state": "UNPAUSED",
    }
    export = story.folder / "export.csv"
    with export.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *STATE_COLUMNS])
        writer.writeheader()
        writer.writerows({**usual, "trigger_job_name": "job", **row} for row in rows)
    candidates, _ = candidates_of(records_of_csv(export))
    write(project, plan(candidates), force=True)
    story.jobs.start_by_hand(in_progress)

    # The first of them dies before it has recorded what it found.
    story.tick(dies_at="before_record")
    first, second_tick = story.tick(), story.tick()

    assert story.started(first) == [waits]
    assert story.started(second_tick) == []
    assert [story.status(orders, done), story.status(late, in_progress)] == ["COMPLETED", "FAILED"]
    (sensor,) = story.sensors(in_progress)
    assert str(sensor["sensor_id"]).endswith(f"late-table_{in_progress}")

    story.end(in_progress)
    assert story.started(story.tick()) == [in_progress]
    story.append(orders)
    assert story.started(story.tick()) == [done]
    story.end(waits)
    story.end(done)
    story.end(in_progress)
    assert story.started(story.tick()) == [waits]
    assert story.started(story.tick()) == []

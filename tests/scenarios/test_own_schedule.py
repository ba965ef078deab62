"""A pull consumer: a job that starts itself, and acquires and processes its events all the same."""

from collections.abc import Callable, Iterator

import pytest

from harness.controls.optional_seeds import SCHEDULED_JOBS, SENSOR_ASSETS
from harness.errors import ConfigurationError
from harness.toolkit.notebook import acquire_in, process_in
from tests.scenarios.conftest import SCHEMA, Story
from tests.scenarios.test_chained_products import sensor_of

pytestmark = pytest.mark.long

Schedule = Callable[..., None]

#: What is promised of every ledger, as data tests.
PROMISES = (
    "no_event_fires_a_job_twice",
    "a_run_takes_only_legal_steps",
    "a_job_has_one_open_run_at_most",
    "the_control_table_shows_what_the_state_says",
)


@pytest.fixture
def on_own_schedule(story: Story) -> Iterator[Schedule]:
    """Write the seeds beside the controls; empty them after the story, for they are shared."""

    def write(*jobs: int, **assets: str) -> None:
        rows = {
            SCHEDULED_JOBS: ["job_id,note", *(f"{job}," for job in jobs)],
            SENSOR_ASSETS: ["sensor_id,asset", *(f"{key},{name}" for key, name in assets.items())],
        }
        for seed, lines in rows.items():
            (story.home.project / seed).write_text("\n".join([*lines, ""]))

    yield write
    write()


def sensor_row(story: Story, sensor: str) -> dict[str, object]:
    (row,) = story.context.store.read("sensors", where=[("sensor_id", "=", sensor)])
    return row


def keeps_its_promises(story: Story) -> bool:
    """Run the data tests on what the stories have left so far; the one that fails is reported."""
    story.context.dbt._invoke(["test", "--select", *PROMISES], None)
    return True


def steps_of(story: Story, job: int) -> list[object]:
    return [row["run_status"] for row in story.run_rows(job)]


def test_a_job_on_its_own_schedule_is_never_started_and_gets_its_events_at_least_once(
    story: Story, on_own_schedule: Schedule
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    sensor = sensor_of(flights, job)
    story.control(flights, job)
    on_own_schedule(job, **{sensor: "sales.flights_by_day"})

    report = story.tick()
    assert story.started(report) == []
    assert story.blockers(job) == ["on_own_schedule"]
    assert story.status(flights, job) == "NEW_EVENT_AVAILABLE"

    first = acquire_in(story.context, sensor)
    assert len(first) == 1
    story.tick()
    assert story.status(flights, job) == "IN_PROGRESS"
    assert sensor_row(story, sensor)["status"] == "ACQUIRED_NEW_DATA"
    assert sensor_row(story, sensor)["assets"] == ["sales.flights_by_day"]

    story.append(flights)
    story.tick()
    again = acquire_in(story.context, sensor)
    assert [each["event_id"] for each in again][:1] == [first[0]["event_id"]]
    assert len(again) == 2

    story.clock.sleep(1)
    assert process_in(story.context, sensor)
    story.tick()
    assert story.status(flights, job) == "COMPLETED"
    assert sensor_row(story, sensor)["status"] == "PROCESSED_NEW_DATA"
    assert acquire_in(story.context, sensor) == []
    assert story.jobs.requests == []
    assert steps_of(story, job) == ["ACQUIRED", "ACQUIRED", "SUCCEEDED"]

    story.restart()
    idle = story.tick()
    assert idle.skipped == ("decide", "fire", "publish")
    assert keeps_its_promises(story)


def test_a_tick_that_dies_after_a_message_is_recorded_loses_and_doubles_nothing(
    story: Story, on_own_schedule: Schedule
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    sensor = sensor_of(flights, job)
    story.control(flights, job)
    on_own_schedule(job)
    story.tick()
    acquire_in(story.context, sensor)
    story.clock.sleep(1)
    process_in(story.context, sensor)

    story.tick(dies_at="before_record")
    assert steps_of(story, job) == ["ACQUIRED", "SUCCEEDED"]
    story.tick()

    assert steps_of(story, job) == ["ACQUIRED", "SUCCEEDED"]
    assert story.status(flights, job) == "COMPLETED"
    assert acquire_in(story.context, sensor) == []


def test_a_job_that_is_no_longer_on_its_own_schedule_is_started_with_what_it_had_not_processed(
    story: Story, on_own_schedule: Schedule
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    on_own_schedule(job)
    story.tick()
    (payload,) = acquire_in(story.context, sensor_of(flights, job))
    story.tick()

    on_own_schedule()
    report = story.tick()

    assert story.started(report) == [job]
    assert list(report.started[0].event_ids) == [payload["event_id"]]


def test_what_came_during_the_request_of_a_job_is_reported_with_its_time(
    story: Story, on_own_schedule: Schedule
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    sensor = sensor_of(flights, job)
    story.control(flights, job)
    on_own_schedule(job)
    story.tick()
    acquire_in(story.context, sensor)
    (requests,) = story.context.home.inbox.glob("*.json")
    held_back = requests.read_text()
    requests.unlink()
    story.append(flights)
    story.tick()  # it had read the inbox before the message came
    requests.write_text(held_back)
    process_in(story.context, sensor)
    story.tick()

    row = sensor_row(story, sensor)
    assert row["status"] == "ACQUIRED_NEW_DATA"
    assert row["status_change_timestamp"] is not None
    assert len(acquire_in(story.context, sensor)) == 1


def test_a_job_whose_row_was_taken_out_and_put_back_gets_what_it_had_not_processed(
    story: Story, on_own_schedule: Schedule
) -> None:
    job, other = story.job(1), story.job(2)
    flights, planes = story.table("flights"), story.table("planes")
    sensor = sensor_of(flights, job)
    story.control(planes, other, job_state="PAUSED")
    story.control(flights, job)
    on_own_schedule(job)
    story.tick()
    (payload,) = acquire_in(story.context, sensor)
    row = story.rows.pop()
    story.write_controls()
    story.tick()
    with pytest.raises(ConfigurationError, match="There is no sensor"):
        process_in(story.context, sensor)

    story.rows.append(row)
    story.write_controls()
    assert story.started(story.tick()) == []

    assert acquire_in(story.context, sensor) == [payload]


def test_what_a_job_on_its_own_schedule_processed_starts_a_job_of_another_product(
    story: Story, on_own_schedule: Schedule
) -> None:
    loads, reports = story.job(1), story.job(2)
    flights = story.table("flights")
    sensor = sensor_of(flights, loads)
    upstream = f"{SCHEMA}.sensors: {sensor}"
    story.control(flights, loads)
    story.control(upstream, reports, sensor_source="delta_upstream_sensor")
    on_own_schedule(loads)
    story.tick()
    acquire_in(story.context, sensor)
    assert story.started(story.tick()) == []

    process_in(story.context, sensor)
    story.tick()

    assert story.started(story.tick()) == [reports]

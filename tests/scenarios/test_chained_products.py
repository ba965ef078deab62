"""One data product follows another by its ``sensors`` table alone."""

import re

import pytest

from tests.scenarios.conftest import SCHEMA, Story

pytestmark = pytest.mark.long


def sensor_of(sensor_id: str, job_id: int) -> str:
    """Return the id that an upstream and a job have in ``sensors``."""
    return f"{re.sub('[^A-Za-z0-9]', '_', sensor_id)}_{job_id}"


def test_a_finished_job_of_one_product_starts_a_job_of_another(story: Story) -> None:
    loads, reports = story.job(1), story.job(2)
    flights = story.table("flights")
    story.control(flights, loads)
    story.tick()
    sensor = f"{SCHEMA}.sensors: {sensor_of(flights, loads)}"
    story.control(sensor, reports, sensor_source="delta_upstream_sensor")

    while_it_loads = story.tick()
    story.end(loads)
    story.tick()
    after_it_loaded = story.tick()
    story.end(reports)
    story.tick()
    later = story.tick()

    assert story.started(while_it_loads) == []
    assert story.started(after_it_loaded) == [reports]
    assert story.started(later) == []
    assert story.status(sensor, reports) == "COMPLETED"


def test_a_finished_job_of_one_installation_starts_a_job_of_another_once_for_each_run(
    story: Story, other_story: Story
) -> None:
    loads, reports = story.job(1), other_story.job(1)
    flights = story.table("flights")
    story.control(flights, loads)
    story.tick()
    sensors = story.home.warehouse / f"{story.home.schema}.db" / "sensors"
    sensor = f"{sensors}: {sensor_of(flights, loads)}"
    other_story.control(sensor, reports, sensor_source="delta_upstream_sensor")

    def a_run_of_the_first() -> list[list[int]]:
        """Let the first product's job end; return what three ticks of the other one started."""
        story.end(loads)
        story.tick()
        ticks = [other_story.tick()]
        other_story.restart()
        ticks.append(other_story.tick())
        other_story.end(reports)
        other_story.tick()
        ticks.append(other_story.tick())
        return [other_story.started(tick) for tick in ticks]

    while_it_loads = other_story.tick()
    first = a_run_of_the_first()
    story.append(flights)
    assert story.started(story.tick()) == [loads]
    second = a_run_of_the_first()

    assert other_story.started(while_it_loads) == []
    assert first == [[reports], [], []]
    assert second == [[reports], [], []]
    assert story.jobs.runs_of(reports) == other_story.jobs.runs_of(loads) == []
    assert len(other_story.jobs.runs_of(reports)) == 2
    assert other_story.status(sensor, reports) == "COMPLETED"


def test_a_file_starts_a_job_once_it_is_whole(story: Story) -> None:
    job = story.job(1)
    folder = story.folder / "in"
    folder.mkdir()
    story.control(str(folder), job, sensor_source="file")
    story.tick()
    (folder / "orders.csv").write_text("id\n1\n")

    seen = story.tick()
    whole = story.tick()
    story.end(job)
    story.tick()
    idle = story.tick()

    assert [story.started(report) for report in (seen, whole, idle)] == [[], [job], []]
    assert idle.skipped == ("decide", "fire", "publish")

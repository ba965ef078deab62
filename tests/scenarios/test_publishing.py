"""A resident process publishes while it ticks on, over real Spark."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.store.rows import Ledger
from harness.tick.engine import Engine
from tests.scenarios.conftest import Killed, Story


@pytest.fixture
def resident(story: Story) -> Iterator[Story]:
    """A story whose process publishes in the background, as `run` does."""
    story.restart()
    context = story.context
    context.publishes_aside = True
    story.home.process = replace(story.home.process, engine=Engine(context))
    yield story
    # The next story's process publishes at the end of its ticks.
    story.restart()


def numbers(story: Story) -> list[object]:
    rows = story.context.store.read(Ledger.TICKS)
    return sorted(row["tick_number"] for row in rows)  # type: ignore[type-var]


@pytest.mark.long(in_sample=True)
def test_jobs_start_and_runs_end_while_earlier_ticks_are_published_and_merged(
    resident: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = resident.home.process.engine
    jobs = [resident.job(number) for number in (1, 2, 3)]
    tables = [resident.table(f"t{job}") for job in jobs]
    for table, job in zip(tables, jobs, strict=True):
        resident.control(table, job)
    first = resident.tick()
    assert resident.started(first) == jobs
    engine.finish()
    before = numbers(resident)
    # The next publication merges what the first tick recorded, and the others begin meanwhile.
    monkeypatch.setattr("harness.publish.publish.COMPACT_AFTER_TICKS", 1)
    monkeypatch.setattr("harness.publish.publish._MANY_ROWS", 0)

    reports = []
    for table, job in zip(tables, jobs, strict=True):
        resident.end(job)
        resident.append(table)
        reports.append(resident.tick())
        engine.publish()
    assert [resident.started(report) for report in reports] == [[job] for job in jobs]
    assert [report.publication for report in reports] == [None, None, None]
    engine.finish()

    assert numbers(resident) == [*before, *(report.tick.number for report in reports)]
    for table, job, report in zip(tables, jobs, reports, strict=True):
        assert resident.status(table, job) == "IN_PROGRESS"
        assert resident.control_row(table, job)["job_start_timestamp"] == report.tick.at
    merged = resident.context.store.read("run_state")
    assert {*jobs} <= {row["job_id"] for row in merged}
    assert resident.tick().skipped == ("decide", "fire", "publish")
    # A build without the variable takes the value that the newest tick has recorded.
    ticks = resident.context.store.read("ledger_ticks")
    newest = max(ticks, key=lambda tick: int(str(tick["tick_number"])))
    resident.context.dbt.build("tail")
    assert resident.context.rows("int_compaction") == [{"folded_through": newest["folded_through"]}]
    assert newest["folded_through"] != -1
    engine.close()


def test_what_a_killed_process_has_not_published_the_next_one_does(resident: Story) -> None:
    job = resident.job(1)
    table = resident.table("flights")
    resident.control(table, job)
    resident.tick()
    resident.home.process.engine.finish()
    resident.end(job)
    resident.append(table)
    resident.clock.sleep(60)
    resident.context.dies_at = "within_publish"
    assert resident.started(resident.home.process.engine.tick()) == [job]
    with pytest.raises(Killed):
        resident.home.process.engine.finish()

    resident.restart()
    report = resident.tick()
    assert report.publication is not None
    assert resident.status(table, job) == "IN_PROGRESS"
    assert len(resident.jobs.runs_of(job)) == 2

"""The promises through edits of the CSV and troubles, as stories of several ticks each."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.scenarios.conftest import Story

pytestmark = pytest.mark.long


def test_a_run_that_the_api_goes_on_not_knowing_is_lost_and_holds_its_job(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    story.tick()
    story.end(job, "LOST")

    story.tick()
    assert story.status(flights, job) == "IN_PROGRESS"
    story.tick(minutes=5)
    assert story.status(flights, job) == "IN_PROGRESS"
    story.tick(minutes=6)

    assert story.status(flights, job) == "FAILED"
    assert story.run_rows(job)[-1]["run_status"] == "LOST"


def test_a_row_taken_out_of_the_csv_leaves_the_table_and_put_back_goes_on_where_it_was(
    story: Story,
) -> None:
    job, other = story.job(1), story.job(2)
    flights = story.table("flights")
    story.control(flights, job)
    story.control(flights, other)
    story.tick()
    story.end(job)
    story.end(other)
    story.tick()
    mine = story.rows.pop(0)
    story.write_controls()

    story.tick()
    assert not story.context.store.read(
        "heartbeat_control", where=[("trigger_job_id", "=", str(job))]
    )

    story.rows.append(mine)
    story.write_controls()
    assert story.started(story.tick()) == []
    assert story.status(flights, job) == "COMPLETED"
    story.append(flights)
    assert story.started(story.tick()) == [job, other]


def test_a_dependency_taken_out_while_its_run_goes_on_does_not_start_the_job_again(
    story: Story,
) -> None:
    job = story.job(1)
    flights, weather = story.table("flights"), story.table("weather")
    story.control(flights, job)
    story.tick()
    story.rows.clear()
    story.control(weather, job)

    assert story.started(story.tick()) == []
    assert "run_in_progress" in story.blockers(job)


def test_an_upstream_that_cannot_be_read_stops_no_other_and_is_recorded_once(
    story: Story,
) -> None:
    job, broken = story.job(1), story.job(2)
    flights, later = story.table("flights"), str(story.folder / "later")
    story.control(flights, job)
    story.control(later, broken)

    first = story.tick()
    assert story.started(first) == [job]
    assert len(first.failures) == 1
    second = story.tick()
    assert len(second.failures) == 1
    assert second.skipped

    story.append(later)
    assert story.started(story.tick()) == [broken]
    rows = story.context.store.read("ledger_probes")
    outcomes = [row["outcome"] for row in rows if later in str(row["upstream_id"])]
    assert sorted(outcomes) == ["failed", "found"]


def test_an_upstream_that_keeps_failing_is_put_off_and_found_when_its_time_has_come(
    story: Story,
) -> None:
    job, later = story.job(1), str(story.folder / "later")
    story.control(later, job)
    for _ in range(3):
        story.tick()

    story.append(later)
    early = story.tick()
    assert (len(early.sensed.deferred), early.failures, story.started(early)) == (1, (), [])
    assert story.started(story.tick()) == [job]


def test_a_paused_hard_row_blocks_its_job_with_that_reason_until_the_csv_unpauses_it(
    story: Story,
) -> None:
    job = story.job(1)
    flights, weather = story.table("flights"), story.table("weather")
    story.control(flights, job)
    story.control(weather, job, job_state="paused ")

    assert story.started(story.tick()) == []
    assert story.blockers(job) == ["required_row_paused"]

    story.rows[1]["job_state"] = "UNPAUSED"
    story.write_controls()
    assert story.started(story.tick()) == [job]


def test_a_limit_of_starts_makes_the_younger_event_wait_for_the_next_tick_with_that_reason(
    story: Story,
) -> None:
    settings = story.context.settings
    limited = settings.jobs.model_copy(update={"starts_per_tick": 1})
    story.context.settings = replace(settings, jobs=limited)
    older, younger = story.job(2), story.job(1)
    first, second = story.table("first"), str(story.folder / "second")
    gate = str(story.folder / "gate")
    story.control(first, older)
    story.control(gate, older)
    story.control(second, younger)
    story.tick()
    story.append(gate)
    story.append(second)

    limited_tick = story.tick()
    assert story.started(limited_tick) == [older]
    assert limited_tick.publication is not None
    reported = limited_tick.publication.blockers[younger]
    assert [each.blocker for each in reported] == ["over_start_limit"]
    assert story.started(story.tick()) == [younger]


def test_maintenance_commits_are_no_events_and_cost_no_decision(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.append(flights)
    story.control(flights, job)
    story.tick()
    story.end(job)
    story.tick()
    story.compact(flights)

    report = story.tick()

    assert report.event_count == 0
    assert report.skipped == ("decide", "fire", "publish")


def test_one_upstream_of_many_jobs_is_probed_once_and_consumed_by_each(story: Story) -> None:
    jobs = [story.job(number) for number in range(1, 6)]
    flights = story.table("flights")
    for job in jobs:
        story.control(flights, job)

    report = story.tick()

    assert len(report.results) == 1
    assert report.event_count == 1
    assert story.started(report) == jobs


def test_a_clock_that_jumps_back_is_reported_and_changes_no_decision(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    story.tick()
    story.end(job)
    story.append(flights)

    report = story.tick(minutes=-180)

    assert any("clock went back" in warning for warning in report.warnings)
    assert story.started(report) == [job]
    story.end(job)
    assert story.started(story.tick()) == []


def test_events_too_long_for_the_parameters_are_handed_over_as_a_reference(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    story.tick()
    story.end(job)
    for _ in range(40):
        story.append(flights)

    run = story.tick().started[0]

    assert run.event_count == 40
    parameters = json.loads(run.parameters)
    assert len(run.parameters.encode()) < 10_000
    reference = json.loads(parameters["heartbeat_events"])
    assert reference["event_count"] == 40
    payload = json.loads(Path(reference["events_file"]).read_text())
    assert [event["event_id"] for event in payload] == list(run.event_ids)
    assert [event["snapshot_id"] for event in payload] == [str(n) for n in range(1, 41)]


def test_the_same_decisions_follow_from_folded_ledgers_and_from_rebuilt_tables(
    story: Story,
) -> None:
    job, waiting = story.job(1), story.job(2)
    flights = story.table("flights")
    story.control(flights, job)
    story.control(str(story.folder / "not_there"), waiting)
    story.tick()
    story.end(job)
    story.append(flights)
    story.tick()

    def answers() -> list[list[str]]:
        names = ("job_blockers", "heartbeat_control", "sensors", "job_runs")
        return [sorted(map(str, story.context.rows(name))) for name in names]

    before, dbt = answers(), story.context.dbt
    dbt.build("fold", {"fold_after": -1, "folded_through": 1_000_000})
    # Ticks go on meanwhile: the views read the rows in the tables and in the tail.
    merged = answers()
    dbt.build("tail", {"folded_through": 1_000_000})
    compacted = answers()
    dbt.build("tail", {"folded_through": -1})

    assert merged == before
    assert compacted == before


def test_a_query_of_an_operator_means_the_same_before_dbt_and_after_it(story: Story) -> None:
    orders, job_id = story.table("orders"), story.job(1)
    is_ansi = "select 1 from sensor_new_data where typeof(coalesce(day, '1')) = 'bigint'"
    story.control(orders, job_id, preprocess_query=is_ansi)
    assert story.started(story.tick()) == [job_id]
    # As dbt leaves the session that it shares.
    story.home.spark.conf.set("spark.sql.ansi.enabled", "false")
    story.end(job_id)
    story.append(orders)
    assert story.started(story.tick()) == [job_id]

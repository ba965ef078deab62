"""The promises of the product, as stories of several ticks each."""

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from harness.platform.databricks.api import Outcome
from harness.store.inbox import Message, MessageKind, send
from harness.toolkit.changes import register
from tests.scenarios.conftest import Story


def test_an_edited_csv_and_a_tick_start_the_job_whose_hard_dependencies_are_all_new(
    story: Story,
) -> None:
    job, waiting = story.job(1), story.job(2)
    flights, weather = story.table("flights"), story.table("weather")
    story.control(flights, job)
    story.control(weather, job)
    story.control(flights, waiting)
    story.control(str(story.folder / "not_there"), waiting)

    report = story.tick()

    assert story.started(report) == [job]
    assert story.blockers(waiting) == ["waiting_for_required_event"]
    row = story.control_row(flights, job)
    assert row["status"] == "IN_PROGRESS"
    assert row["latest_event_fetched_timestamp"] == story.clock.now()
    assert row["job_start_timestamp"] == story.clock.now()
    assert row["job_end_timestamp"] is None
    payload = json.loads(story.jobs.requests[-1].parameters["heartbeat_events"])
    assert sorted(event["table"] for event in payload) == [flights, weather]

    story.clock.sleep(60)
    story.end(job)
    ended_at = story.clock.now()
    story.tick()

    row = story.control_row(flights, job)
    assert row["status"] == "COMPLETED"
    assert row["job_end_timestamp"] == ended_at
    assert row["status_change_timestamp"] == story.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")

    idle = story.tick()
    assert idle.skipped == ("decide", "fire", "publish")
    assert idle.event_count == 0


def test_an_event_that_arrives_while_the_job_runs_fires_the_next_run_and_only_one(
    story: Story,
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    story.tick()

    story.append(flights)
    story.append(flights)
    during = story.tick()
    assert during.event_count == 2
    assert story.started(during) == []
    assert story.status(flights, job) == "IN_PROGRESS"

    story.end(job)
    after = story.tick()
    assert story.started(after) == [job]
    assert after.started[0].event_count == 2

    story.end(job)
    assert story.started(story.tick()) == []
    assert len(story.jobs.runs_of(job)) == 2


def test_a_failed_job_is_held_until_a_manual_success_is_noticed(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    story.tick()
    story.end(job, "FAILED")
    story.append(flights)

    held = story.tick()
    assert story.started(held) == []
    assert story.status(flights, job) == "FAILED"
    assert story.blockers(job) == ["last_run_failed"]

    by_hand = story.jobs.start_by_hand(job)
    assert story.started(story.tick()) == []
    story.jobs.end_run(by_hand, Outcome.SUCCEEDED)

    released = story.tick()
    assert story.started(released) == [job]
    assert released.started[0].event_count == 1


@pytest.mark.long(in_sample=True)
def test_a_manual_success_that_is_reported_counts_and_an_edit_of_the_control_table_does_not(
    story: Story,
) -> None:
    job = story.job(1)
    # Files have the time that the story gives them, commits that of the machine.
    folder = Path(story.context.settings.trigger_root, f"by-hand-{story.number}")
    folder.mkdir()
    flights, weather = folder.name, str(story.folder / "weather")

    def arrive(name: str) -> None:
        (folder / name).touch()
        at = story.clock.now().timestamp()
        os.utime(folder / name, (at, at))

    arrive("first")
    story.control(flights, job, sensor_source="trigger_file")
    story.control(weather, job)
    story.tick()
    assert story.status(flights, job) == "NEW_EVENT_AVAILABLE"

    story.clock.sleep(3600)
    by_hand = story.jobs.start_by_hand(job)
    story.jobs.end_run(by_hand, Outcome.SUCCEEDED)
    report = Message(
        kind=MessageKind.COMPLETE, job_id=job, run_id=by_hand, sent_at=story.clock.now()
    )
    send(story.context.home.inbox, report)
    story.home.spark.sql(
        f"update {story.home.schema}.heartbeat_control set job_state = 'PAUSED' where sensor_id = '{flights}'"
    )
    noticed = story.tick()
    assert list(story.context.home.inbox.glob("*.json")) == []
    row = story.control_row(flights, job)
    assert (row["status"], row["job_state"]) == ("COMPLETED", "UNPAUSED")
    assert row["job_start_timestamp"] == by_hand_began(story, job)
    [edit] = noticed.quarantined
    assert "job_state was changed from UNPAUSED to PAUSED" in edit.reason
    assert "edit line 2 of seeds/heartbeat_controls.csv" in edit.reason

    # What had come before the manual run starts nothing, what comes after it does.
    story.table("weather")
    assert story.started(story.tick()) == []
    assert story.blockers(job) == ["waiting_for_required_event"]
    arrive("second")
    started = story.tick()
    assert (story.started(started), started.quarantined) == ([job], ())
    assert [
        row["event_count"] for row in story.run_rows(job) if row["run_status"] == "STARTED"
    ] == [2]


def by_hand_began(story: Story, job: int) -> datetime | None:
    """Return when the job's newest run began, as the Jobs API reports it."""
    return next(iter(story.jobs.list_runs(job))).started_at


def test_retry_starts_a_new_attempt_with_the_same_events_and_any_newer_ones(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    first = story.tick().started[0]
    story.end(job, "FAILED")
    story.append(flights)
    story.tick()
    message = Message(kind=MessageKind.RETRY, job_id=job, sent_at=story.clock.now())
    send(story.context.home.inbox, message)

    second = story.tick().started[0]

    assert (second.intent_id, second.attempt) == (first.intent_id, 2)
    assert second.token != first.token
    assert second.event_count == 2
    assert set(first.event_ids) < set(second.event_ids)
    assert list(story.context.home.inbox.glob("*.json")) == []


@pytest.mark.long
def test_a_released_job_goes_on_without_the_events_of_its_failed_run(story: Story) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    first = story.tick().started[0]
    story.end(job, "FAILED")
    story.tick()
    message = Message(
        kind=MessageKind.RELEASE,
        job_id=job,
        intent_id=first.intent_id,
        attempt=first.attempt,
        sent_at=story.clock.now(),
        sent_by="ada",
        reason="loaded by hand",
    )
    send(story.context.home.inbox, message)

    assert story.started(story.tick()) == []
    assert story.status(flights, job) == "COMPLETED"
    last = story.run_rows(job)[-1]
    assert last["run_status"] == "RELEASED"
    assert str(last["message"]).startswith("released by ada: loaded by hand; it was FAILED")
    # No run has processed them, so that the sensor does not report to its followers that one has.
    (sensor,) = story.sensors(job)
    assert sensor["status"] == "ACQUIRED_NEW_DATA"

    story.append(flights)
    second = story.tick().started[0]
    assert second.intent_id != first.intent_id
    assert second.attempt == 1
    assert set(first.event_ids).isdisjoint(second.event_ids)


@pytest.mark.long
def test_a_run_that_reports_its_success_and_then_fails_holds_its_job_and_starts_no_run_beside_it(
    story: Story,
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    run = story.tick().started[0]
    report = Message(
        kind=MessageKind.COMPLETE, job_id=job, run_id=run.run_id, sent_at=story.clock.now()
    )
    send(story.context.home.inbox, report)
    send(story.context.home.inbox, report)
    story.append(flights)

    assert story.started(story.tick()) == []
    assert story.status(flights, job) == "IN_PROGRESS"
    assert len(list(story.context.home.inbox.glob("*.json"))) == 2

    story.end(job, "FAILED")
    send(story.context.home.inbox, report)
    assert story.started(story.tick()) == []
    assert story.status(flights, job) == "FAILED"
    assert list(story.context.home.inbox.glob("*.json")) == []
    statuses = [row["run_status"] for row in story.run_rows(job)]
    assert statuses == ["INTENDED", "STARTED", "FAILED"]


@pytest.mark.parametrize("lost", [pytest.param("request", marks=pytest.mark.long), "answer"])
def test_a_start_without_an_answer_is_sent_again_with_the_same_token_and_body(
    story: Story, lost: str
) -> None:
    job = story.job(1)
    story.control(story.table("flights"), job)
    lose = {"request": story.jobs.lose_requests, "answer": story.jobs.lose_answers}
    lose[lost]()

    story.tick()
    assert story.blockers(job)[0] == "run_in_progress"
    story.tick()

    assert len(story.jobs.runs_of(job)) == 1
    assert story.jobs.requests[0] == story.jobs.requests[1]
    assert story.run_rows(job)[-1]["run_id"] == story.jobs.runs_of(job)[0]


def test_a_refused_start_fails_the_job_with_the_words_of_the_api(story: Story) -> None:
    unknown = 2**53 + 999_999 + story.number
    flights = story.table("flights")
    story.control(flights, unknown)

    report = story.tick()

    assert not report.is_clean
    assert story.status(flights, unknown) == "FAILED"
    assert story.run_rows(unknown)[-1]["message"] == f"Job {unknown} does not exist."


def test_what_a_producer_registers_and_the_sensor_sees_is_one_event_whichever_comes_first(
    story: Story,
) -> None:
    job = story.job(1)
    flights = story.table("flights")
    story.control(flights, job)
    story.tick()
    story.end(job)
    story.tick()

    def registered(tag: str) -> None:
        event = {"table": flights, "table_format": "DELTA", "snapshot_id": "1", "tags": {tag: "x"}}
        register(event, home=story.home.folder)

    registered("before")
    early = story.tick()
    assert (early.event_count, story.started(early)) == (1, [])
    assert early.skipped == ("decide", "fire", "publish")

    story.append(flights)
    seen = story.tick()
    assert story.started(seen) == [job]
    (payload,) = json.loads(story.jobs.requests[-1].parameters["heartbeat_events"])
    assert payload["tags"]["before"] == "x"

    story.restart()
    registered("after")
    registered("before")
    late = story.tick()
    assert (late.event_count, story.started(late)) == (1, [])
    assert story.tick().event_count == 0

    public = f"{story.context.schema}.data_change_events"
    rows = story.home.spark.table(public).where(f"`table` = '{flights}' and snapshot_id = '1'")
    (event,) = rows.collect()
    assert {"before", "after", "operation"} <= set(event.tags)
    assert event.event_ts == int(early.tick.at.timestamp() * 1000)

"""When a HeartbeatJobSensor goes on, waits or gives up."""

import asyncio
from datetime import datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from heartbeat_airflow.client import iso
from heartbeat_airflow.sensors import HeartbeatJobSensor
from heartbeat_airflow.triggers import JobTrigger
from tests.conftest import CLUSTER, FakeHeartbeat, at

HELD = "its last run 77 ended FAILED: the cluster was gone"


def run(status: str, ended: int | None) -> dict[str, object]:
    return {"run_status": status, "ended_at": None if ended is None else iso(ended)}


def explained(verdict: str, *runs: dict[str, object], reason: str = "a reason") -> dict:
    return {
        "job_id": "111",
        "job_name": "daily-revenue",
        "verdict": verdict,
        "reason": reason,
        "next": ["one successful run of it, started by anyone"],
        "runs": list(runs),
    }


def interval(begins: int | None) -> dict[str, object]:
    """What a DAG run gives its tasks."""
    start = None if begins is None else datetime.fromisoformat(iso(begins))
    run_after = datetime.fromisoformat(iso(at(12)))
    return {"data_interval_start": start, "dag_run": SimpleNamespace(run_after=run_after)}


def sensor(**more: object) -> HeartbeatJobSensor:
    options = {"job": "daily-revenue", "cluster": CLUSTER, "poke_interval": 0} | more
    return HeartbeatJobSensor(task_id="revenue_is_there", **options)


def fired(since: int = at(10)) -> dict[str, str]:
    trigger = JobTrigger(cluster=CLUSTER, job="daily-revenue", since=since, poll_interval=0)

    async def first() -> dict[str, str]:
        async for event in trigger.run():
            return event.payload
        raise AssertionError("it fired nothing")

    return asyncio.run(first())


@pytest.mark.parametrize("status", ["SUCCEEDED", "SUCCEEDED_ELSEWHERE"])
def test_a_success_since_the_interval_began_is_enough(
    heartbeat: FakeHeartbeat, status: str
) -> None:
    heartbeat.says("explain", explained("waiting", run(status, at(10))))
    sensor().execute(interval(at(10)))
    assert heartbeat.asked == [["explain", "daily-revenue", "--json"]]


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [run("SUCCEEDED", at(10) - 1)],
        [run("STARTED", None), run("SUCCEEDED", at(9))],
        [run("RETRY_REQUESTED", at(11))],
    ],
)
def test_without_one_the_task_is_deferred(heartbeat: FakeHeartbeat, runs: list[dict]) -> None:
    heartbeat.says("explain", explained("running", *runs))
    with pytest.raises(TaskDeferred) as deferred:
        sensor(timeout=600).execute(interval(at(10)))
    assert deferred.value.trigger.since == at(10)
    assert deferred.value.timeout.total_seconds() == 600


def test_a_held_job_fails_the_task_in_heartbeats_own_words(heartbeat: FakeHeartbeat) -> None:
    failed = run("FAILED", at(10, 30))
    heartbeat.says("explain", explained("held", failed, reason=HELD))
    with pytest.raises(AirflowFailException, match=f"is held: {HELD}; what helps: one successful"):
        sensor().execute(interval(at(10)))


def test_a_success_counts_although_the_next_run_holds_the_job(heartbeat: FakeHeartbeat) -> None:
    runs = [run("FAILED", at(10, 40)), run("SUCCEEDED", at(10, 20))]
    heartbeat.says("explain", explained("held", *runs, reason=HELD))
    sensor().execute(interval(at(10)))


def test_a_job_that_nothing_starts_is_not_waited_for(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", explained("not_in_controls", reason="it has no row"))
    with pytest.raises(AirflowFailException, match="it has no row"):
        sensor().execute(interval(at(10)))


def test_a_job_that_is_not_known_fails_the_task_at_once(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", code=2, err="error: There is no job 'daily-revenue'")
    with pytest.raises(AirflowFailException, match="There is no job"):
        sensor().execute(interval(at(10)))


def test_the_trigger_asks_until_the_job_has_succeeded(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", explained("running", run("STARTED", None)))
    heartbeat.says("explain", code=1, err="error: The ledgers cannot be read just now")
    heartbeat.says("explain", explained("waiting", run("SUCCEEDED", at(11))))
    assert fired()["stand"] == "succeeded"
    assert len(heartbeat.asked) == 3


def test_the_trigger_ends_when_the_job_is_held(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", explained("running"))
    heartbeat.says("explain", explained("held", run("FAILED", at(11)), reason=HELD))
    event = fired()
    with pytest.raises(AirflowFailException, match=HELD):
        sensor().execute_complete({}, event)


def test_a_heartbeat_that_never_answers_is_told_and_may_be_retried(
    heartbeat: FakeHeartbeat,
) -> None:
    heartbeat.says("explain", code=1, err="error: The disk is full")
    event = fired()
    with pytest.raises(AirflowException, match="The disk is full") as caught:
        sensor().execute_complete({}, event)
    assert not isinstance(caught.value, AirflowFailException)


def test_a_run_without_an_interval_counts_from_when_it_was_to_run(
    heartbeat: FakeHeartbeat,
) -> None:
    heartbeat.says("explain", explained("running", run("SUCCEEDED", at(12) - 1)))
    with pytest.raises(TaskDeferred) as deferred:
        sensor().execute(interval(None))
    assert deferred.value.trigger.since == at(12)


def test_from_when_on_a_success_counts_can_be_said(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", explained("waiting", run("SUCCEEDED", at(8))))
    sensor(since=iso(at(8))).execute(interval(at(10)))


@pytest.mark.parametrize("since", ["yesterday", "2026-11-01T10:00:00"])
def test_an_instant_without_a_time_zone_is_refused(heartbeat: FakeHeartbeat, since: str) -> None:
    heartbeat.says("explain", explained("waiting"))
    with pytest.raises(AirflowFailException, match="time zone"):
        sensor(since=since).execute(interval(at(10)))


def test_a_sensor_that_is_not_deferrable_asks_on_the_worker(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", explained("running"))
    heartbeat.says("explain", explained("waiting", run("SUCCEEDED", at(11))))
    sensor(deferrable=False).execute(interval(at(10)))
    assert len(heartbeat.asked) == 2


def test_an_explanation_of_another_shape_is_no_reason_to_go_on(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("explain", {"verdict": "waiting"})
    with pytest.raises(AirflowException, match="not understood"):
        sensor().execute(interval(at(10)))


def test_a_triggerer_gets_the_same_trigger_again() -> None:
    trigger = JobTrigger(cluster=CLUSTER, job="111", since=at(10), poll_interval=30.0)
    path, options = trigger.serialize()
    assert path == f"{JobTrigger.__module__}.{JobTrigger.__name__}"
    assert JobTrigger(**options).serialize() == trigger.serialize()

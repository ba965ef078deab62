"""What a DataChangeEventOperator fetches, and when."""

import asyncio
from datetime import timedelta

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferred

from heartbeat_airflow.client import iso
from heartbeat_airflow.events import DataChangeEvent
from heartbeat_airflow.operators import DataChangeEventOperator
from heartbeat_airflow.triggers import TickTrigger
from tests.conftest import CLUSTER, FakeHeartbeat, at, event


def operator(
    start: object = at(10), end: object = at(11), **more: object
) -> DataChangeEventOperator:
    return DataChangeEventOperator(
        task_id="fetched_events",
        dataset="lake.data.pageviews",
        cluster=DataChangeEvent.CLUSTER1,
        start_time=start,
        end_time=end,
        **more,
    )


def ticked(heartbeat: FakeHeartbeat, *ticks: int) -> None:
    for tick in ticks:
        heartbeat.says("status", {"last_tick_at": iso(tick)})


def fired(trigger: TickTrigger) -> dict[str, str]:
    async def first() -> dict[str, str]:
        async for fired in trigger.run():
            return fired.payload
        raise AssertionError("it fired nothing")

    return asyncio.run(first())


def test_the_events_of_an_interval_are_returned_as_a_list(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(11))
    heartbeat.says("events", [event(1, at(10)), event(2, at(10, 59))])
    fetched = operator(str(at(10)), str(at(11))).execute({})
    assert [each["event_id"] for each in fetched] == ["e1", "e2"]


def test_an_interval_without_events_is_an_empty_list(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(11))
    heartbeat.says("events", code=4)
    assert operator().execute({}) == []


def test_an_interval_that_a_tick_may_still_add_to_is_waited_for(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(11) - 1)
    with pytest.raises(TaskDeferred) as deferred:
        operator().execute({})
    assert deferred.value.trigger.until == at(11)
    assert [each[0] for each in heartbeat.asked] == ["status"]


def test_the_wait_ends_with_a_tick_at_the_end_of_the_interval(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(10, 59), at(11))
    trigger = TickTrigger(cluster=CLUSTER, until=at(11), poll_interval=0, wait_seconds=60)
    assert fired(trigger) == {"problem": ""}
    assert len(heartbeat.asked) == 2


def test_a_wait_without_ticks_ends_with_a_sentence(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(10))
    trigger = TickTrigger(cluster=CLUSTER, until=at(11), poll_interval=60, wait_seconds=1.5)
    problem = fired(trigger)["problem"]
    assert "no tick at 2026-11-01T11:00" in problem
    assert "python -m harness run" in problem


def test_a_wait_that_ends_before_any_answer_says_so(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("status", {"last_tick_at": iso(at(11))}, seconds=60)
    trigger = TickTrigger(cluster=CLUSTER, until=at(11), poll_interval=0, wait_seconds=0.5)
    assert "it has not answered within 0.5 s" in fired(trigger)["problem"]


def test_a_wait_survives_a_heartbeat_that_cannot_answer(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("status", code=1, err="error: The disk is full")
    ticked(heartbeat, at(11))
    trigger = TickTrigger(cluster=CLUSTER, until=at(11), poll_interval=0, wait_seconds=60)
    assert fired(trigger) == {"problem": ""}


def test_after_the_wait_the_events_are_fetched(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("events", [event(1, at(10))])
    assert operator().execute_complete({}, {"problem": ""}) == [event(1, at(10))]


def test_a_wait_that_came_to_nothing_fails_the_task_and_fetches_nothing(
    heartbeat: FakeHeartbeat,
) -> None:
    with pytest.raises(AirflowException, match="nobody ticks"):
        operator().execute_complete({}, {"problem": "nobody ticks"})
    assert heartbeat.asked == []


def test_a_refusal_is_not_retried(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(11))
    heartbeat.says("events", code=2, err="error: There is no table 'lake.data.pageviews'")
    with pytest.raises(AirflowFailException, match="There is no table"):
        operator().execute({})


def test_a_failure_is_retried(heartbeat: FakeHeartbeat) -> None:
    heartbeat.says("status", code=3, err="error: Another process holds the lock")
    with pytest.raises(AirflowException, match="holds the lock") as caught:
        operator().execute({})
    assert not isinstance(caught.value, AirflowFailException)


def test_an_empty_interval_names_the_timetable_that_has_one(heartbeat: FakeHeartbeat) -> None:
    with pytest.raises(AirflowFailException, match="CronDataIntervalTimetable"):
        operator(at(10), at(10)).execute({})


def test_an_interval_that_ends_before_it_begins_is_refused(heartbeat: FakeHeartbeat) -> None:
    with pytest.raises(AirflowFailException, match="exchange start_time and end_time"):
        operator(at(11), at(10)).execute({})


@pytest.mark.parametrize("start", ["", "None", "1.7e12", "2026-11-01", -5, True, "9" * 15])
def test_what_is_no_epoch_in_milliseconds_is_refused(
    heartbeat: FakeHeartbeat, start: object
) -> None:
    with pytest.raises(AirflowFailException, match=r"start_time is .* epoch milliseconds"):
        operator(start).execute({})


def test_a_triggerer_gets_the_same_trigger_again() -> None:
    trigger = TickTrigger(cluster=CLUSTER, until=at(11), poll_interval=15.0, wait_seconds=60.0)
    path, options = trigger.serialize()
    assert path == f"{TickTrigger.__module__}.{TickTrigger.__name__}"
    assert TickTrigger(**options).serialize() == trigger.serialize()


def test_how_long_a_tick_is_waited_for_can_be_said(heartbeat: FakeHeartbeat) -> None:
    ticked(heartbeat, at(9))
    with pytest.raises(TaskDeferred) as deferred:
        operator(wait_for_tick=timedelta(minutes=5)).execute({})
    assert deferred.value.trigger.wait_seconds == 300

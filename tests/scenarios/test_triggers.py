"""Event triggers, as stories of several ticks each."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.store.inbox import Message, MessageKind, send
from harness.store.trigger_queries import failing_triggers
from harness.toolkit.changes.registration import Place, register_batch
from tests.scenarios.conftest import Story
from tests.support.sources.iceberg import lake_of

HOURLY = "{'yyyy-MM-dd HH'}"


def hour(at: datetime) -> str:
    """Return the partition of an hour."""
    return f"{at:%Y-%m-%d %H}"


def write(path: str, *hours: str) -> None:
    """Commit rows of some hours to a table that is partitioned by them."""
    rows = pa.table({"hour": list(hours), "id": [1] * len(hours)})
    write_deltalake(path, rows, mode="append", partition_by=["hour"])


def handed(story: Story) -> Sequence[dict[str, object]]:
    """Return the events in the payload of the newest start."""
    reported = json.loads(story.jobs.requests[-1].parameters["heartbeat_events"])
    assert isinstance(reported, list)
    return reported


def why(story: Story, job: int) -> list[str]:
    """Return why a job does not start, in words, as the newest decision recorded it."""
    reported = json.loads(story.context.home.status.read_text())
    (blockers,) = (each["blockers"] for each in reported["jobs"] if each["job_id"] == str(job))
    return [each["reason"] for each in blockers]


@pytest.mark.long
def test_a_slot_waits_for_the_partitions_of_all_its_tables_and_is_one_run(story: Story) -> None:
    job, loads = story.job(1), story.job(2)
    flights, weather = str(story.folder / "flights"), str(story.folder / "weather")
    start = story.clock.now() + timedelta(minutes=10)
    first, second = hour(start), hour(start + timedelta(hours=1))
    write(flights, "long ago")
    write(weather, "long ago")
    story.control(flights, loads)
    story.control(weather, loads)
    for table in (flights, weather):
        cells = {"partition": HOURLY, "start_timestamp": start.isoformat()}
        story.trigger("hourly", table, job, **cells)
    before = story.tick()

    # The first probe of a table reports the whole of it; from then on partitions are reported.
    write(weather, first)
    opened = story.tick(minutes=10)
    waits = why(story, job)
    # The trigger was evaluated, but no decision was made; the same is released once.
    write(flights, first)
    story.tick(dies_at="within_release")
    satisfied = story.tick()
    again = story.tick()

    assert [story.started(each) for each in (before, opened, again)] == [[loads], [], []]
    slot = f"{start:%Y-%m-%dT%H:%M:%SZ}"
    assert waits == [
        f"its hard dependency hourly waits in its slot {slot} for partition {first} of {flights}"
    ]
    assert story.started(satisfied) == [job]
    events = handed(story)
    assert sorted(str(event["table"]) for event in events) == [flights, weather]
    assert {event["tags"]["trigger_slot"] for event in events} == {slot}

    # Both are there when the next slot comes, and the run of the one before goes on.
    write(flights, second)
    write(weather, second)
    while_it_runs = story.tick(minutes=60)
    story.end(job)
    after = story.tick()
    story.end(job)
    idle = story.tick()

    assert [story.started(each) for each in (while_it_runs, after, idle)] == [[], [job], []]
    later = f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    assert {event["tags"]["trigger_slot"] for event in handed(story)} == {later}
    assert len(story.jobs.runs_of(job)) == 2


@pytest.mark.long
def test_a_snapshot_trigger_gives_a_run_all_changes_since_the_last_one_that_succeeded(
    story: Story,
) -> None:
    job, loads = story.job(1), story.job(2)
    flights = story.table("flights")
    start = story.clock.now() + timedelta(minutes=10)
    cells = {"trigger_type": "SNAPSHOT", "frequency_unit": "DAYS"}
    story.control(flights, loads)
    story.trigger("daily", flights, job, start_timestamp=start.isoformat(), **cells)
    story.tick()
    first = story.tick(minutes=10)
    story.end(job)

    # Late data comes at any time, and the slot of the next day passes it on.
    story.append(flights)
    between = story.tick(minutes=60)
    story.append(flights)
    second = story.tick(minutes=23 * 60)
    story.end(job, "FAILED")
    story.append(flights)
    held = story.tick(minutes=24 * 60)
    message = Message(kind=MessageKind.RETRY, job_id=job, sent_at=story.clock.now())
    send(story.context.home.inbox, message)
    retried = story.tick()

    ticks = (first, between, second, held, retried)
    assert [story.started(each) for each in ticks] == [[job], [], [job], [], [job]]
    assert [each.started[0].event_count for each in (first, second, retried)] == [1, 2, 3]


@pytest.mark.long(in_sample=True)
def test_a_trigger_and_a_control_row_of_one_job_are_both_needed(story: Story) -> None:
    job, loads = story.job(1), story.job(2)
    flights, weather = str(story.folder / "flights"), story.table("weather")
    start = story.clock.now()
    write(flights, "EU")
    story.control(flights, loads)
    story.control(weather, job)
    story.trigger("us_hourly", flights, job, partition="US", start_timestamp=start.isoformat())

    waits = story.tick()
    reasons = [row for row in story.context.rows("job_blockers") if row["job_id"] == job]
    write(flights, "US")
    satisfied = story.tick()

    assert story.started(waits) == [loads]
    assert [(row["blocker"], row["waits_for"]) for row in reasons] == [
        ("waiting_for_required_event", f"partition US of {flights}")
    ]
    assert story.started(satisfied) == [job]
    assert sorted(str(event["table"]) for event in handed(story)) == [flights, weather]


def test_a_trigger_that_spark_cannot_evaluate_waits_alone(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good, files = story.job(1), story.job(2), story.job(3)
    # Loaded past the check, as by a `dbt seed` by hand.
    monkeypatch.setattr("harness.controls.optional_seeds.trigger_problems", lambda *_: [])
    folder = story.home.project / "triggers" / f"alone{story.number}"
    folder.mkdir()
    (folder / "one").touch()
    table, start = f"web.visits{story.number}", story.clock.now().isoformat()
    story.control(folder.name, files, sensor_source="trigger_file")
    story.trigger("bad", table, bad, partition="{yyyy#MM}", start_timestamp=start)
    story.trigger("good", table, good, partition='["US"]', start_timestamp=start)
    event = {"table": table, "table_format": "HIVE", "partition": ['"US"']}
    place = Place(home=story.home.folder, environment={}, clock=story.clock)
    register_batch([("event 1", event)], place)

    alone = story.tick()
    (waits,) = why(story, bad)
    reason = f"the pattern yyyy#MM in the partition of {table} cannot be rendered"
    assert story.started(alone) == sorted([good, files])
    assert waits.startswith(f"its hard dependency bad cannot be read: {reason}; correct ")
    assert [each.trigger_id for each in failing_triggers(story.context.store, 0)] == ["bad"]
    assert not alone.is_clean

    story.triggers[0]["partition"] = "US"
    story.write_triggers()
    corrected = story.tick()
    assert story.started(corrected) == [bad]
    assert corrected.failing_triggers == ()


@pytest.mark.long
def test_a_partition_trigger_fires_for_an_iceberg_table_that_a_sensor_follows(
    story: Story, tmp_path: Path
) -> None:
    job, loads = story.job(1), story.job(2)
    warehouse = tmp_path / "lake"
    lake = lake_of(story.home.spark, {"type": "hadoop", "warehouse": str(warehouse)}, "sensed")
    orders = "sensed.sales.orders"
    lake.sql(f"create table {orders} (id bigint, day string) using iceberg partitioned by (day)")
    table = str(warehouse / "sales" / "orders")
    start = story.clock.now() + timedelta(minutes=10)
    story.control(table, loads, sensor_source="iceberg_table")
    cells = {"frequency_unit": "DAYS", "start_timestamp": start.isoformat()}
    story.trigger("orders_daily", table, job, partition="{yyyy-MM-dd}", **cells)
    story.tick()
    lake.sql(f"insert into {orders} values (1, 'another day')")
    other = story.tick(minutes=10)
    story.end(loads)
    lake.sql(f"insert into {orders} values (1, '{start:%Y-%m-%d}')")
    awaited = story.tick(minutes=10)

    assert (story.started(other), story.started(awaited)) == ([loads], [job, loads])


@pytest.mark.long
def test_a_partition_consumer_goes_on_when_its_hive_table_moves_to_iceberg(
    story: Story, tmp_path: Path
) -> None:
    job, loads = story.job(1), story.job(2)
    spark, schema = story.home.spark, f"moving{story.number}"
    table = f"{schema}.orders"
    lake = lake_of(spark, {"type": "hadoop", "warehouse": str(tmp_path / "lake")}, "lake")
    start = story.clock.now() + timedelta(minutes=10)
    first, second = (f"{start + timedelta(days=number):%Y-%m-%d}" for number in (0, 1))
    columns = "(id bigint, day string)"
    spark.sql(f"create schema {schema} location '{tmp_path / schema}'")
    spark.sql(f"create table {table} {columns} using parquet partitioned by (day)")
    spark.sql(f"insert into {table} values (1, 'long ago')")
    story.control(table, loads, sensor_source="hive_table")
    cells = {"frequency_unit": "DAYS", "start_timestamp": start.isoformat()}
    story.trigger("moving_daily", table, job, partition="{yyyy-MM-dd}", **cells)
    story.tick()
    spark.sql(f"insert into {table} values (2, '{first}')")
    from_hive = story.tick(minutes=10)
    story.end(job)
    formats = [event["table_format"] for event in handed(story)]

    # The person who moves the table removes its sensor; its new writer registers what it writes.
    lake.sql(
        f"create table lake.{table} using iceberg partitioned by (day) as select * from {table}"
    )
    spark.sql(f"drop table {table}")
    story.rows.clear()
    story.write_controls()
    lake.sql(f"insert into lake.{table} values (3, '{second}')")
    event = ChangeEvent(
        table=table,
        partition=(json.dumps(second),),
        snapshot_id=str(lake.head(f"lake.{table}")),
        table_format=TableFormat.ICEBERG,
        operation_type=Operation.APPEND,
    )
    place = Place(home=story.home.folder, environment={}, clock=story.clock)
    register_batch([("event 1", event.to_json())], place)
    from_iceberg = story.tick(minutes=24 * 60)

    assert [story.started(each) for each in (from_hive, from_iceberg)] == [[job], [job]]
    formats += [each["table_format"] for each in handed(story)]
    assert formats == ["HIVE", "ICEBERG"]

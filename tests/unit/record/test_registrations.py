"""What a tick makes of registered events, alone and beside what sensors see of the same tables."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.events.event import ChangeEvent, EventRow, Operation, TableFormat
from harness.record.batch_inbox import receive_batches, remove_batches, send_batch, waiting
from harness.record.correlate import SameChanges
from harness.record.probes import Known, record
from harness.record.registrations import Registered, ingest, known_tables
from harness.sense.probe import ProbeResult
from harness.store.inbox import FolderInbox
from harness.store.quarantine import quarantined
from harness.store.rows import Ledger, Store, Tick
from harness.store.work_lists import Upstream
from tests.support.disk_ledgers import create_ledgers
from tests.support.memory_store import MemoryStore
from tests.support.watched import NEVER_SEEN

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MADE_AT = int(NOON.timestamp() * 1000) - 60_000
ORDERS = replace(NEVER_SEEN, upstream_id="delta_table:orders:1", sensor_id="Sales.Orders")
AGAIN = replace(ORDERS, upstream_id="lmu_delta_table:orders:2")


class World:
    """An inbox, ledgers, and ticks one minute apart."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.inbox = folder / "inbox"
        self.store = store
        self.tables: Mapping[str, int | None] = {}
        self.number = 0
        self.began = NOON

    def send(self, *events: ChangeEvent) -> Path:
        return self.inbox / send_batch(FolderInbox(self.inbox), events, at=NOON)

    def tick(
        self,
        *seen: str,
        upstreams: Sequence[Upstream] = (ORDERS,),
        dies: bool = False,
        tags: Mapping[str, str] | None = None,
        made_at: int | None = MADE_AT,
    ) -> Registered:
        """Ingest the inbox, then record that each upstream has these snapshots."""
        self.number += 1
        tick = Tick(number=self.number, at=self.began + timedelta(minutes=self.number))
        same = SameChanges(self.store, tick, [each.sensor_id for each in upstreams])
        batches = receive_batches(self.inbox, at=tick.at)
        found = ingest(batches, self.tables, tick=tick, store=self.store, same=same)
        if dies:
            return found
        self.tables = found.tables
        results = [
            ProbeResult(
                upstream_id=upstream.upstream_id,
                position=f"at {seen[-1]}",
                events=tuple(_seen(each, upstream, tags, made_at) for each in seen),
            )
            for upstream in upstreams
            if seen
        ]
        watched = {each.upstream_id: each for each in upstreams}
        record(results, tick=tick, watched=watched, store=self.store, known=Known(join=same.join))
        remove_batches(found.batches)
        return found

    def rows(self) -> list[dict[str, object]]:
        rows = self.store.read(Ledger.EVENTS)
        return sorted(rows, key=lambda row: (row["tick_number"], len(row["tags"])))  # type: ignore[arg-type]

    def public(self) -> list[dict[str, object]]:
        """What the view ``data_change_events`` shows: the newest row of each change."""
        newest: dict[object, dict[str, object]] = {}
        for row in self.rows():
            newest[row["event_ts"], row["table"], row["change_id"]] = row
        return list(newest.values())


def _seen(
    snapshot: str, upstream: Upstream, tags: Mapping[str, str] | None, made_at: int | None
) -> ChangeEvent:
    return ChangeEvent(
        table=upstream.sensor_id,
        snapshot_id=snapshot,
        snapshot_ts=made_at,
        prev_snapshot_id=str(int(snapshot) - 1),
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        tags={"engine": "spark", **(tags or {})},
        lineage="a",
    )


def _orders(snapshot: str | None = "3", **output: object) -> ChangeEvent:
    event = ChangeEvent(
        table="sales.orders",
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        snapshot_id=snapshot,
        snapshot_ts=MADE_AT if snapshot else None,
    )
    return replace(event, **output)  # type: ignore[arg-type]


@pytest.fixture(params=["memory", "disk"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    is_disk = request.param == "disk"
    yield World(tmp_path, create_ledgers(tmp_path / "warehouse") if is_disk else MemoryStore())


def test_a_registered_event_is_recorded_at_the_instant_of_the_tick(world: World) -> None:
    world.send(_orders(prev_snapshot_id="2", tags={"completeness": "hourly"}))
    world.tick()
    (row,) = world.rows()
    assert row["event_ts"] == int((NOON + timedelta(minutes=1)).timestamp() * 1000)
    assert row["upstream_id"] == "registered:sales.orders"
    assert (row["snapshot_id"], row["prev_snapshot_id"]) == ("3", "2")
    assert row["tags"] == {"completeness": "hourly"}
    assert waiting(world.inbox) == []


def test_a_snapshot_that_is_registered_again_is_one_event(world: World) -> None:
    world.send(_orders())
    world.tick()
    world.send(_orders(), _orders())
    assert world.tick().events == ()
    assert len(world.rows()) == 1


def test_what_a_second_registration_adds_is_in_the_one_event(world: World) -> None:
    world.send(_orders(tags={"a": "1", "b": "1"}))
    world.tick()
    world.send(_orders(tags={"b": "2"}, prev_snapshot_id="2"))
    world.tick()
    (event,) = world.public()
    assert (event["tags"], event["prev_snapshot_id"]) == ({"a": "1", "b": "2"}, "2")


def test_partitions_of_one_snapshot_are_one_event_with_a_list_of_them(world: World) -> None:
    world.send(_orders(partition=('"b"',)), _orders(partition=('"a"',)))
    world.tick()
    world.send(_orders(partition=('"c"',)))
    world.tick()
    (event,) = world.public()
    assert event["partition"] is None
    assert event["tags"] == {"partitions": '[["a"],["b"],["c"]]'}


def test_two_operations_on_one_snapshot_assume_nothing(world: World) -> None:
    world.send(_orders(), _orders(operation_type=Operation.DELETE))
    world.tick()
    assert [row["operation_type"] for row in world.rows()] == ["UPDATE"]


def test_a_message_that_is_folded_twice_after_a_crash_is_one_event(world: World) -> None:
    world.send(_orders(), _orders(None, partition=("1",)), _orders(None, event_id="mine"))
    world.tick(dies=True)
    assert world.tick().events == ()
    assert len(world.rows()) == 3
    assert waiting(world.inbox) == []


def test_a_change_that_its_producer_has_named_is_one_event(world: World) -> None:
    for _ in range(2):
        world.send(_orders(None, event_id="load 7"))
        world.tick()
    assert len(world.rows()) == 1


def test_changes_that_no_producer_has_named_are_as_many_events_as_were_registered(
    world: World,
) -> None:
    world.send(_orders(None), _orders(None))
    world.send(_orders(None))
    world.tick()
    assert len(world.rows()) == 3


def test_of_a_named_change_each_partition_is_an_event(world: World) -> None:
    world.send(*(_orders(None, event_id="load 7", partition=(each,)) for each in "12"))
    world.tick()
    assert [row["partition"] for row in world.rows()] in ([["1"], ["2"]], [("1",), ("2",)])


@pytest.mark.parametrize("order", ["registered, seen", "seen, registered", "both at once"])
def test_what_is_registered_and_seen_of_one_snapshot_is_one_event(world: World, order: str) -> None:
    world.tick("1")
    if order == "seen, registered":
        world.tick("2", "3")
    world.send(_orders(tags={"completeness": "hourly"}))
    world.tick(*(["2", "3"] if order == "both at once" else []))
    if order == "registered, seen":
        world.tick("2", "3")
    events = [row for row in world.public() if row["snapshot_id"] == "3"]
    (event,) = events
    assert event["tags"] == {"completeness": "hourly", "engine": "spark"}
    assert event["table"] == "Sales.Orders"
    assert len(world.public()) == 3


@pytest.mark.parametrize("said", [Operation.UPDATE, Operation.DELETE])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_operation_is_the_one_that_the_sensor_reports(
    world: World, said: Operation, is_first: bool
) -> None:
    world.tick("1", *([] if is_first else ["3"]))
    world.send(_orders(operation_type=said, tags={"a": "1"}))
    world.tick()
    if is_first:
        world.tick("3")
    world.send(_orders(operation_type=said, tags={"b": "1"}))
    world.tick()
    (event,) = (row for row in world.public() if row["snapshot_id"] == "3")
    assert event["operation_type"] == "APPEND"


def test_what_is_seen_later_keeps_the_instant_of_its_registration(world: World) -> None:
    world.send(_orders())
    world.tick()
    world.tick("3")
    registered, seen = world.rows()
    assert seen["upstream_id"] == ORDERS.upstream_id
    assert (seen["event_ts"], seen["change_id"]) == (
        registered["event_ts"],
        registered["change_id"],
    )


def test_a_source_whose_clock_is_ahead_reports_the_same_snapshot(world: World) -> None:
    world.send(_orders(snapshot_ts=None))
    world.tick()
    world.tick("3", made_at=MADE_AT + 30 * 86_400_000)
    assert len({row["change_id"] for row in world.rows()}) == 1


def test_a_snapshot_that_is_old_is_found_by_when_it_was_made(world: World) -> None:
    world.tick("3")
    world.began += timedelta(days=100)
    world.send(_orders(), _orders(None, event_id="load 7"))
    assert len(world.tick().events) == 1


@pytest.mark.parametrize(("days", "events"), [(6, 1), (9, 2)])
def test_a_named_change_is_one_event_for_a_week(world: World, days: int, events: int) -> None:
    world.send(_orders(None, event_id="load 7"))
    world.tick()
    world.began += timedelta(days=days)
    world.send(_orders(None, event_id="load 7"))
    world.tick()
    assert len(world.rows()) == events


@pytest.mark.parametrize("named", [{"event_id": "load 7"}, {"snapshot_id": "3"}])
def test_the_week_ends_when_a_change_is_sent_and_not_when_a_tick_takes_it_in(
    world: World, named: dict[str, str]
) -> None:
    world.send(_orders(None, **named))
    world.tick()
    again = world.send(_orders(None, **named))
    sent_at = (NOON + timedelta(days=6)).timestamp()
    os.utime(again, (sent_at, sent_at))
    world.began += timedelta(days=20)
    world.tick()
    assert len(world.rows()) == 1


def test_the_tags_of_a_triggers_copy_are_in_no_later_event_of_the_same_change(world: World) -> None:
    world.tick("3")
    (seen,) = world.store.read(Ledger.EVENTS)
    tags = {"trigger_id": "daily", "trigger_slot": "2026-03-01T12:00:00Z"}
    copy = replace(EventRow.from_row(seen), tick_number=2, upstream_id="trigger:daily", tags=tags)
    world.store.append(Ledger.EVENTS, [copy])
    world.number = 2

    world.send(_orders("3", tags={"complete": "yes"}))
    world.tick()

    (registered,) = (row for row in world.rows() if row["tick_number"] == 3)
    assert registered["change_id"] == seen["change_id"]
    assert registered["tags"] == {"engine": "spark", "complete": "yes"}


def test_a_registration_that_adds_nothing_to_what_was_seen_leaves_no_row(world: World) -> None:
    world.tick("3")
    world.send(_orders())
    assert world.tick().events == ()
    assert world.tables == {"sales.orders": None}


def test_a_snapshot_that_two_upstreams_see_in_one_tick_is_one_change(world: World) -> None:
    world.tick("3", upstreams=(ORDERS, AGAIN))
    assert len(world.rows()) == 2
    assert len({row["change_id"] for row in world.rows()}) == 1


def test_an_event_of_many_snapshots_is_not_the_last_ones_alone(world: World) -> None:
    world.send(_orders())
    world.tick()
    world.tick("3", tags={"coalesced_from": "1"})
    assert len(world.public()) == 2


def test_a_version_of_a_table_that_was_made_again_is_another_change(world: World) -> None:
    world.send(_orders(tags={"table_id": "old"}))
    world.tick()
    world.tick("3", tags={"table_id": "new"})
    assert len(world.public()) == 2


def test_a_snapshot_that_was_made_days_apart_is_of_two_lives_of_a_table(world: World) -> None:
    world.send(_orders(snapshot_ts=MADE_AT - 3 * 86_400_000))
    world.tick()
    world.tick("3")
    assert len({row["change_id"] for row in world.rows()}) == 2


def test_rows_from_before_changes_had_names_are_joined_by_their_id(tmp_path: Path) -> None:
    store = MemoryStore()
    world = World(tmp_path, store)
    world.tick("3")
    for row in store._plain[Ledger.EVENTS]:
        row["change_id"] = None
    world.send(_orders(tags={"a": "1"}))
    world.tick()
    old, new = world.rows()
    assert new["change_id"] == old["event_id"]


def test_a_table_stays_known_by_its_registrations(world: World) -> None:
    world.send(_orders(partition=("1", "2")), replace(_orders(), table="b"))
    world.tick()
    world.send(_orders(None))
    world.tick()
    assert known_tables(world.store, folded_through=-1) == {"sales.orders": 2, "b": None}
    assert world.tables == {"sales.orders": 2, "b": None}


def test_a_tick_without_registered_tables_reads_no_events(tmp_path: Path) -> None:
    class Unread(MemoryStore):
        def read(self, *_: object, **__: object) -> list[dict[str, object]]:
            raise AssertionError("it was read")

    World(tmp_path, Unread()).tick("3")


def test_a_message_that_cannot_be_read_is_set_aside_and_the_others_count(world: World) -> None:
    bad = world.send(_orders("1"))
    bad.write_text(bad.read_text() + '{"table": 7}\n')
    world.send(_orders("2"))
    world.tick()
    assert [row["snapshot_id"] for row in world.rows()] == ["2"]
    [item] = quarantined(world.inbox)
    assert item.name == bad.name
    assert "table" in item.reason
    assert not bad.exists()


def _folder(world: World, *lines: str, name: str = "part-0.json", is_complete: bool = True) -> Path:
    folder = world.inbox / "registered-7f"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / ".part-0.json.crc").write_bytes(b"\x00\xff")
    if is_complete:
        (folder / "_SUCCESS").touch()
    return folder


LINE = json.dumps({"table": "sales.orders", "table_format": "ICEBERG", "tags": {"a": "1"}})


def test_a_folder_that_spark_has_written_is_a_batch(world: World) -> None:
    folder = _folder(world, LINE, LINE)
    world.tick()
    assert [row["tags"] for row in world.rows()] == [{"a": "1"}] * 2
    assert not folder.exists()


def test_a_folder_that_is_folded_twice_after_a_crash_is_the_same_events(world: World) -> None:
    _folder(world, LINE, LINE)
    world.tick(dies=True)
    world.tick()
    assert len(world.rows()) == 2


def test_a_folder_counts_once_its_writer_is_done(world: World) -> None:
    folder = _folder(world, LINE, is_complete=False)
    world.tick()
    assert world.rows() == []
    (folder / "_SUCCESS").touch()
    world.tick()
    assert len(world.rows()) == 1


@pytest.mark.parametrize(
    ("name", "line"), [("part-0.json", '{"table": 7}'), ("part-0.json", "{"), ("part-0.gz", LINE)]
)
def test_a_folder_that_cannot_be_read_is_set_aside(world: World, name: str, line: str) -> None:
    folder = _folder(world, line, name=name)
    world.tick()
    world.tick()
    assert world.rows() == []
    [item] = quarantined(world.inbox)
    assert item.name == folder.name
    assert (item.path / "_SUCCESS").exists()


def test_a_tick_takes_in_no_more_than_it_can_bear_and_the_next_one_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.record.batch_inbox.EVENTS_PER_TICK", 3)
    world.send(*(_orders(str(number)) for number in range(5)))
    world.send(_orders("7"), _orders("8"))
    assert len(world.tick().events) == 5
    assert len(world.tick().events) == 2

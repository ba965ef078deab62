"""Tables that ran far ahead between two probes: nothing is lost, nothing is reported twice."""

import itertools
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.events.event import ChangeEvent
from harness.sense.probe import ProbeResult
from harness.sense.sources.delta.commits import (
    FILES_PER_PROBE,
    REPORTED_SINGLY,
    VERSIONS_PER_PROBE,
    Portion,
)
from tests.support.golden import (
    Action,
    FakeHistory,
    GoldenTable,
    Watcher,
    add,
    info,
    metadata,
    protocol,
    remove,
    stats,
)
from tests.unit.sense.sources.delta.test_edges import clean, write_checkpoint
from tests.unit.sense.sources.delta.test_history import row

#: Commits of two generations of a table are never the same text.
NUMBERS = itertools.count()


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    return GoldenTable(tmp_path / "orders").create()


@pytest.fixture
def watcher(table: GoldenTable) -> Watcher:
    """A watcher that has probed the table without data, at version 0."""
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    return watcher


def appends(table: GoldenTable, count: int, **more: object) -> None:
    for _ in range(count):
        table.commit(info("WRITE"), add(f"f{next(NUMBERS)}", **more))


def versions(events: Iterable[ChangeEvent]) -> list[int]:
    """Return every version that the events cover, as often as they do."""
    reported: list[int] = []
    for event in events:
        newest = int(event.snapshot_id or 0)
        reported += range(int(event.tags.get("coalesced_from", newest)), newest + 1)
    return reported


def last(result: ProbeResult) -> ChangeEvent:
    return result.events[-1]


# One by one, and together


def test_hundreds_of_commits_are_an_event_each(table: GoldenTable, watcher: Watcher) -> None:
    appends(table, REPORTED_SINGLY)

    events = watcher.probe_once().events

    assert [event.snapshot_id for event in events] == [
        str(n) for n in range(1, REPORTED_SINGLY + 1)
    ]


def test_the_commits_beyond_a_number_are_one_event_that_states_it(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, REPORTED_SINGLY + 240)

    result = watcher.probe_once()

    assert len(result.events) == REPORTED_SINGLY + 1
    assert (last(result).snapshot_id, last(result).prev_snapshot_id) == ("740", "500")
    assert (last(result).tags["coalesced_from"], last(result).tags["coalesced_commits"]) == (
        "501",
        "240",
    )


def test_one_commit_beyond_the_number_is_an_event_of_its_own(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, REPORTED_SINGLY + 1)

    result = watcher.probe_once()

    assert "coalesced_from" not in last(result).tags
    assert versions(result.events) == [*range(1, REPORTED_SINGLY + 2)]


def test_what_was_reported_together_is_reported_once(table: GoldenTable, watcher: Watcher) -> None:
    appends(table, REPORTED_SINGLY + 240)
    watcher.probe_once()
    watcher.restart()

    assert watcher.operations() == []


def test_what_comes_after_is_an_event_each_again(table: GoldenTable, watcher: Watcher) -> None:
    appends(table, REPORTED_SINGLY + 240)
    watcher.probe_once()
    appends(table, 2)

    events = watcher.probe_once().events

    assert [(event.snapshot_id, event.prev_snapshot_id) for event in events] == [
        ("741", "740"),
        ("742", "741"),
    ]


def test_commits_that_change_no_data_count_for_nothing(
    table: GoldenTable, watcher: Watcher
) -> None:
    for _ in range(REPORTED_SINGLY + 10):
        appends(table, 1)
        table.commit(info("OPTIMIZE"), add("moved", dataChange=False))

    result = watcher.probe_once()

    assert (len(result.events), last(result).tags["coalesced_commits"]) == (
        REPORTED_SINGLY + 1,
        "10",
    )
    assert last(result).snapshot_id == str(table.version - 1)


def test_a_position_past_silent_commits_is_idle(table: GoldenTable, watcher: Watcher) -> None:
    appends(table, REPORTED_SINGLY + 10)
    table.commit(info("OPTIMIZE"), add("moved", dataChange=False))
    watcher.probe_once()
    watcher.storage.calls.clear()
    watcher.probe_once()

    assert [call.split()[0] for call in watcher.storage.calls] == ["stat", "stat"]


CHANGE: list[Action] = [info("UPDATE"), remove("a"), add("b")]


@pytest.mark.parametrize(
    ("actions", "operation"),
    [([info("WRITE"), add("a")], "APPEND"), (CHANGE, "UPDATE"), ([remove("a")], "UPDATE")],
)
def test_together_they_are_an_append_only_if_each_is(
    table: GoldenTable, watcher: Watcher, actions: list[Action], operation: str
) -> None:
    appends(table, REPORTED_SINGLY + 5)
    table.commit(*actions)

    assert last(watcher.probe_once()).operation_type == operation


def test_deletions_together_are_a_deletion(table: GoldenTable, watcher: Watcher) -> None:
    appends(table, REPORTED_SINGLY)
    for _ in range(3):
        table.commit(info("DELETE"), remove("a"))

    assert last(watcher.probe_once()).operation_type == "DELETE"


def test_the_names_of_what_was_done_are_kept(table: GoldenTable, watcher: Watcher) -> None:
    appends(table, REPORTED_SINGLY + 2)
    table.commit(*CHANGE)

    assert last(watcher.probe_once()).tags["coalesced_operations"] == '["UPDATE", "WRITE"]'


# Partitions


@pytest.fixture
def partitioned(tmp_path: Path) -> GoldenTable:
    return GoldenTable(tmp_path / "by_day").create(partitions=["day"])


def beyond(table: GoldenTable, *days: str) -> ChangeEvent:
    """Make one commit per day beyond those that are reported singly, and return the last event."""
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    appends(table, REPORTED_SINGLY, partitionValues={"day": "2025-01-01"})
    for day in days:
        appends(table, 1, partitionValues={"day": day})
    return last(watcher.probe_once())


def test_the_one_partition_of_all_is_the_partition(partitioned: GoldenTable) -> None:
    assert beyond(partitioned, "2025-04-23", "2025-04-23").partition == ('"2025-04-23"',)


def test_the_partitions_of_all_are_reported(partitioned: GoldenTable) -> None:
    event = beyond(partitioned, "2025-04-24", "2025-04-23", "2025-04-24")

    assert (event.partition, event.tags["partitions"]) == (
        None,
        '[["2025-04-23"],["2025-04-24"]]',
    )


def test_partitions_are_not_put_together_across_a_change_of_the_schema(
    partitioned: GoldenTable,
) -> None:
    watcher = Watcher(str(partitioned.path))
    watcher.probe_once()
    appends(partitioned, REPORTED_SINGLY + 1, partitionValues={"day": "2025-01-01"})
    partitioned.commit(
        info("REPLACE TABLE"),
        metadata(partitions=["name"]),
        add("n", partitionValues={"name": "x"}),
    )

    tags = last(watcher.probe_once()).tags

    assert (tags["partitions_truncated"], tags["schema_changed"], tags["replaced"]) == (
        "true",
        "true",
        "true",
    )
    assert "partitions" not in tags


# A tick that dies between the events and the cursor after them


def test_a_probe_that_is_made_again_reports_the_same_though_more_has_come(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, REPORTED_SINGLY + 240)
    lost = watcher.die_after_the_events()
    appends(table, 100)

    again = watcher.probe_once()

    assert [event.id_at("u") for event in again.events] == [
        event.id_at("u") for event in lost.events
    ]
    assert again.events == lost.events


def test_however_often_it_dies_each_commit_is_reported_once(
    table: GoldenTable, watcher: Watcher
) -> None:
    recorded: dict[str, ChangeEvent] = {}
    for _ in range(3):
        appends(table, REPORTED_SINGLY + 240)
        recorded |= {event.id_at("u"): event for event in watcher.die_after_the_events().events}
    for _ in range(4):
        recorded |= {event.id_at("u"): event for event in watcher.probe_once().events}

    assert sorted(versions(recorded.values())) == [*range(1, table.version + 1)]


def test_a_probe_that_dies_below_the_number_is_no_limit_to_the_next(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, 300)
    watcher.die_after_the_events()
    appends(table, 400)

    result = watcher.probe_once()

    assert (len(result.events), versions(result.events)) == (REPORTED_SINGLY + 1, [*range(1, 701)])


def test_a_tick_that_dies_before_it_records_anything_changes_nothing(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, REPORTED_SINGLY + 240)
    watcher.peek()
    watcher.restart()
    appends(table, 100)

    assert versions(watcher.probe_once().events) == [*range(1, REPORTED_SINGLY + 341)]


def first_sight(table: GoldenTable) -> Watcher:
    appends(table, 3)
    return Watcher(str(table.path))


def a_gap(table: GoldenTable) -> Watcher:
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    appends(table, 8)
    write_checkpoint(table, 7)
    clean(table, 7)
    return watcher


def another_life(table: GoldenTable) -> Watcher:
    appends(table, 3)
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    shutil.rmtree(table.path)
    table.log.mkdir(parents=True)
    table.version = -1
    table.create(table_id="t-2")
    appends(table, 5)
    return watcher


@pytest.mark.parametrize("begun", [first_sight, a_gap, another_life])
def test_an_event_for_the_whole_table_is_the_same_when_the_probe_is_made_again(
    table: GoldenTable, begun: Callable[[GoldenTable], Watcher]
) -> None:
    watcher = begun(table)
    lost = watcher.die_after_the_events()
    appends(table, 2)
    write_checkpoint(table, table.version)

    again, after = watcher.probe_once(), watcher.probe_once()

    assert again.events == lost.events
    assert [event.snapshot_id for event in after.events] == [
        str(table.version - 1),
        str(table.version),
    ]


# How far one probe goes


def test_a_probe_of_a_slow_store_reads_the_first_ones_and_leaves_the_rest(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, REPORTED_SINGLY + 240)
    watcher.slowness = 60.0

    reported = [versions(watcher.probe_once().events) for _ in range(3)]

    assert reported == [
        [*range(1, REPORTED_SINGLY + 1)],
        [*range(REPORTED_SINGLY + 1, REPORTED_SINGLY + 241)],
        [],
    ]


def test_a_probe_that_is_made_again_goes_as_far_however_slow_the_store_has_become(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, REPORTED_SINGLY + 240)
    lost = watcher.die_after_the_events()
    watcher.slowness = 60.0

    assert watcher.probe_once().events == lost.events


@pytest.mark.parametrize(
    ("read", "is_full"), [(REPORTED_SINGLY - 1, False), (REPORTED_SINGLY, True)]
)
def test_a_probe_that_keeps_many_files_reads_only_the_first_ones(read: int, is_full: bool) -> None:
    found = Portion().is_full(version=read, read=read, changes=1, files=FILES_PER_PROBE + 1)

    assert found is is_full


def test_more_than_one_probe_reads_is_left_to_the_next(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, VERSIONS_PER_PROBE + 1)

    reported = [len(watcher.probe_once().events) for _ in range(3)]

    assert reported == [REPORTED_SINGLY + 1, 1, 0]


# Keys and queries


def test_the_largest_value_of_all_together_is_the_one_that_counts(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "keyed").create()
    watcher = Watcher(str(table.path), source="lmu_delta_table", key="id")
    watcher.probe_once()
    for number in range(1, REPORTED_SINGLY + 1):
        appends(table, 1, stats=stats(id=number))
    for number in (7, 9000, 8):
        appends(table, 1, stats=stats(id=number))

    result = watcher.probe_once()

    assert (len(result.events), last(result).snapshot_id) == (REPORTED_SINGLY + 1, "503")
    assert (result.upstream_value, watcher.rows.asked) == ("9000", [])


def test_together_they_are_nothing_new_when_the_largest_value_did_not_grow(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "keyed").create()
    watcher = Watcher(str(table.path), source="lmu_delta_table", key="id")
    watcher.probe_once()
    for number in range(1, REPORTED_SINGLY + 1):
        appends(table, 1, stats=stats(id=number))
    appends(table, 3, stats=stats(id=5))

    assert len(watcher.probe_once().events) == REPORTED_SINGLY


def test_a_query_is_run_once_over_the_new_files_of_all(table: GoldenTable) -> None:
    watcher = Watcher(str(table.path), query="select * from sensor_new_data")
    watcher.probe_once()
    appends(table, REPORTED_SINGLY + 240)
    watcher.probe_once()

    [(files, _)] = watcher.rows.asked
    assert files.files is not None
    assert (len(files.files), files.version) == (REPORTED_SINGLY + 240, REPORTED_SINGLY + 240)


# By history


@pytest.fixture
def by_history(tmp_path: Path) -> Watcher:
    table = GoldenTable(tmp_path / "managed")
    table.commit(protocol("catalogManaged"), metadata(), add("a"))
    watcher = Watcher(str(table.path))
    watcher.history = FakeHistory(row(0))
    watcher.restart()
    watcher.probe_once()
    return watcher


def more_history(watcher: Watcher, count: int) -> None:
    newest = watcher.history.rows[0].version
    watcher.history.rows[:0] = [row(newest + number) for number in range(count, 0, -1)]


def test_a_long_history_is_reported_singly_and_together_too(by_history: Watcher) -> None:
    more_history(by_history, REPORTED_SINGLY + 240)

    result = by_history.probe_once()

    assert (len(result.events), versions(result.events)) == (REPORTED_SINGLY + 1, [*range(1, 741)])


def test_a_probe_of_a_long_history_that_is_made_again_reports_the_same(by_history: Watcher) -> None:
    more_history(by_history, REPORTED_SINGLY + 240)
    lost = by_history.die_after_the_events()
    more_history(by_history, 100)

    assert by_history.probe_once().events == lost.events
    assert versions(by_history.probe_once().events) == [*range(741, 841)]


def test_what_an_older_life_reported_holds_up_no_probe(
    table: GoldenTable, watcher: Watcher
) -> None:
    appends(table, 10)
    watcher.upstream = replace(watcher.upstream, reported_snapshots=frozenset({"9999", "x@y", ""}))

    assert versions(watcher.probe_once().events) == [*range(1, 11)]

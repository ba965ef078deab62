"""What can happen to a table between two probes, and what cannot be probed."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from harness.config.sources import FirstSight
from harness.platform.storage import FileStat, LocalStorage
from tests.support.golden import (
    CountingStorage,
    GoldenTable,
    Watcher,
    add,
    info,
    metadata,
    protocol,
    remove,
)


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    return with_appends(GoldenTable(tmp_path / "orders").create(), 3)


@pytest.fixture
def watcher(table: GoldenTable) -> Watcher:
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    return watcher


def with_appends(table: GoldenTable, count: int) -> GoldenTable:
    for number in range(count):
        table.commit(info("WRITE"), add(f"f{table.version}-{number}-{uuid4()}"))
    return table


def created_again(table: GoldenTable, appends: int, table_id: str = "t-2") -> GoldenTable:
    shutil.rmtree(table.path)
    return with_appends(GoldenTable(table.path).create(table_id=table_id), appends)  # type: ignore[arg-type]


# First sight


def test_first_sight_of_a_table_that_holds_data_is_one_event_at_the_newest_version(
    table: GoldenTable,
) -> None:
    [event] = Watcher(str(table.path)).probe_once().events

    assert (event.snapshot_id, event.prev_snapshot_id, event.tags["first_sight"]) == (
        "3",
        None,
        "true",
    )


def test_first_sight_of_appends_only_is_an_append(table: GoldenTable) -> None:
    assert Watcher(str(table.path)).operations() == ["APPEND"]


def test_first_sight_of_a_table_that_was_changed_is_an_update(table: GoldenTable) -> None:
    table.commit(info("UPDATE"), remove("f0-0"), add("g"))

    assert Watcher(str(table.path)).operations() == ["UPDATE"]


def test_first_sight_of_an_empty_table_is_no_event(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "orders").create()

    assert Watcher(str(table.path)).operations() == []


def test_the_first_append_after_an_empty_first_sight_is_an_event(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "orders").create()
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    with_appends(table, 1)

    assert watcher.operations() == ["APPEND"]


def test_first_sight_as_baseline_is_no_event_but_what_follows_is(table: GoldenTable) -> None:
    watcher = Watcher(str(table.path), first=FirstSight.BASELINE)
    first = watcher.operations()
    with_appends(table, 1)

    assert (first, watcher.operations()) == ([], ["APPEND"])


def test_a_restart_reports_nothing_again(table: GoldenTable, watcher: Watcher) -> None:
    watcher.restart()

    assert watcher.operations() == []


# Cost


def test_an_idle_probe_is_two_stats_and_the_very_same_cursor(watcher: Watcher) -> None:
    watcher.storage.calls.clear()

    result = watcher.probe_once()

    assert result.position is watcher.upstream.position
    assert watcher.storage.calls == [f"stat {4:020d}.json", f"stat {3:020d}.json"]


def test_an_idle_probe_of_a_new_process_lists_nothing(watcher: Watcher) -> None:
    before = watcher.upstream.position
    watcher.restart()
    watcher.storage.calls.clear()

    result = watcher.probe_once()

    assert result.position is before
    assert [call.split()[0] for call in watcher.storage.calls] == ["stat", "stat"]


def test_a_probe_reads_only_the_new_commits(table: GoldenTable, watcher: Watcher) -> None:
    with_appends(table, 2)
    watcher.storage.calls.clear()
    watcher.probe_once()

    reads = [call for call in watcher.storage.calls if call.startswith("read")]
    assert reads == [f"read {4:020d}.json", f"read {5:020d}.json"]


def test_a_commit_that_lands_between_the_two_stats_is_reported_once(
    table: GoldenTable, watcher: Watcher
) -> None:
    class Landing(CountingStorage):
        def stat(self, path: str) -> FileStat | None:
            found = super().stat(path)
            if len(self.calls) == 1:
                with_appends(table, 1)
            return found

    watcher.storage = Landing(LocalStorage())
    watcher.restart()

    reported = [operation for _ in range(3) for operation in watcher.operations()]

    assert reported == ["APPEND"]


# The log was cleaned


def test_a_log_cleaned_past_our_position_is_one_event_and_a_gap_in_words(
    table: GoldenTable, watcher: Watcher
) -> None:
    with_cleaned_log(table, 4, 6)

    result = watcher.probe_once()

    [event] = result.events
    assert (event.operation_type, event.tags["gap"], event.snapshot_id, event.prev_snapshot_id) == (
        "UPDATE",
        "true",
        "7",
        "3",
    )
    assert result.gap is not None and "versions 4 to 5 are gone" in result.gap


def test_after_a_gap_the_next_append_is_an_ordinary_event(
    table: GoldenTable, watcher: Watcher
) -> None:
    with_cleaned_log(table, 4, 6)
    gap = watcher.probe_once().events[0]
    with_appends(table, 1)

    [event] = watcher.probe_once().events

    assert (event.operation_type, event.prev_snapshot_id, event.lineage) == (
        "APPEND",
        "7",
        gap.lineage,
    )


def test_a_log_cleaned_up_to_our_own_commit_loses_nothing(
    table: GoldenTable, watcher: Watcher
) -> None:
    with_cleaned_log(table, 2, 4)

    result = watcher.probe_once()

    assert ([event.snapshot_id for event in result.events], result.gap) == (["4", "5"], None)


def test_a_gap_states_which_versions_its_event_stands_for(
    table: GoldenTable, watcher: Watcher
) -> None:
    with_cleaned_log(table, 4, 6)

    [event] = watcher.probe_once().events

    assert (event.tags["coalesced_from"], event.snapshot_id) == ("4", "7")


def test_a_gap_is_reported_once(table: GoldenTable, watcher: Watcher) -> None:
    with_cleaned_log(table, 4, 6)
    watcher.probe_once()
    watcher.restart()
    result = watcher.probe_once()

    assert (result.events, result.gap, result.failure) == ((), None, None)


def test_a_checkpoint_of_which_a_part_is_missing_is_none(table: GoldenTable) -> None:
    with_cleaned_log(table, 4, 4)
    (table.log / f"{6:020d}.checkpoint.0000000001.0000000002.parquet").write_text("no parquet")

    result = Watcher(str(table.path)).probe_once()

    assert (result.failure, [event.snapshot_id for event in result.events]) == (None, ["7"])


def test_nothing_new_is_never_reported_only_because_the_next_commit_is_absent(
    table: GoldenTable, watcher: Watcher
) -> None:
    with_cleaned_log(table, 9, 12)

    assert watcher.operations() == ["UPDATE"]


def with_cleaned_log(table: GoldenTable, appends: int, checkpoint: int) -> None:
    with_appends(table, appends)
    write_checkpoint(table, checkpoint)
    clean(table, checkpoint)


def clean(table: GoldenTable, before: int) -> None:
    """Remove the commits before a version, as Delta does when they are old enough."""
    for version in range(before):
        table.file(version).unlink(missing_ok=True)


def write_checkpoint(table: GoldenTable, version: int, table_id: str = "t-1") -> None:
    """Write a checkpoint as V2 names one: a UUID between the version and the ending."""
    uuid = "80a083e8-7026-4e79-81be-64bd76c43a11"
    actions = [protocol(), metadata(table_id), add("old")]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (table.log / f"{version:020d}.checkpoint.{uuid}.json").write_text(text)


# The table was created again


@pytest.mark.parametrize("appends", [1, 2, 3, 9])
def test_a_table_created_again_is_one_event_of_a_new_life(
    table: GoldenTable, watcher: Watcher, appends: int
) -> None:
    created_again(table, appends)

    [event] = watcher.probe_once().events

    assert (event.operation_type, event.tags["recreated"], event.prev_snapshot_id) == (
        "UPDATE",
        "true",
        None,
    )


@pytest.mark.parametrize("appends", [3, 9])
def test_a_table_created_again_and_cleaned_since_is_one_event_of_a_new_life(
    table: GoldenTable, watcher: Watcher, appends: int
) -> None:
    fresh = created_again(table, appends)
    write_checkpoint(fresh, appends, "t-2")
    clean(fresh, appends)

    result = watcher.probe_once()

    assert [(event.snapshot_id, "recreated" in event.tags) for event in result.events] == [
        (str(appends), True)
    ]
    assert result.gap is None


def test_the_same_version_of_two_lives_is_two_events(table: GoldenTable) -> None:
    watcher = Watcher(str(table.path))
    [old] = watcher.probe_once().events
    created_again(table, 3)
    [new] = watcher.probe_once().events

    assert old.snapshot_id == new.snapshot_id
    assert old.id_at("u-1") != new.id_at("u-1")


def test_a_table_created_again_without_data_is_silent_until_its_first_rows(
    table: GoldenTable, watcher: Watcher
) -> None:
    fresh = created_again(table, 0)
    empty = watcher.operations()
    with_appends(fresh, 1)

    assert (empty, watcher.operations()) == ([], ["APPEND"])


def test_an_older_copy_of_the_table_put_back_is_a_new_life(
    table: GoldenTable, watcher: Watcher
) -> None:
    table.file(3).unlink()

    [event] = watcher.probe_once().events

    assert (event.tags["recreated"], event.snapshot_id) == ("true", "2")


def test_a_replaced_table_goes_on_in_the_same_life(table: GoldenTable, watcher: Watcher) -> None:
    table.commit(info("CREATE OR REPLACE TABLE AS SELECT"), metadata("t-2"), remove("a"), add("b"))
    with_appends(table, 1)

    replaced, after = watcher.probe_once().events

    assert (replaced.tags["replaced"], replaced.prev_snapshot_id) == ("true", "3")
    assert replaced.lineage == after.lineage


def test_a_log_that_was_only_copied_is_nothing_new(table: GoldenTable, watcher: Watcher) -> None:
    os.utime(table.file(3), (1, 1))

    assert watcher.operations() == []


def test_a_log_that_was_only_copied_is_idle_again_at_the_next_probe(
    table: GoldenTable, watcher: Watcher
) -> None:
    os.utime(table.file(3), (1, 1))
    watcher.probe_once()
    watcher.storage.calls.clear()
    watcher.probe_once()

    assert [call.split()[0] for call in watcher.storage.calls] == ["stat", "stat"]


# Other files in the folder


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000004.checkpoint.parquet",
        "00000000000000000004.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        "00000000000000000004.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000003.00000000000000000009.compacted.json",
        "00000000000000000004.crc",
        ".00000000000000000004.json.crc",
        ".00000000000000000004.json.80a083e8.tmp",
        "_last_checkpoint",
    ],
)
def test_no_other_file_of_the_folder_is_a_commit(
    table: GoldenTable, watcher: Watcher, name: str
) -> None:
    (table.log / name).write_text('{"add": 1}')

    assert (watcher.operations(), Watcher(str(table.path)).probe_once().failure) == ([], None)


# A commit that cannot be read


@pytest.mark.parametrize(
    "content", [b"", b'{"commitInfo": {}}\n{"add": {"pa', b"[1]\n", b"\xff\xfe", b'{"add": {}}']
)
def test_a_half_written_commit_fails_the_probe_and_moves_nothing(
    table: GoldenTable, watcher: Watcher, content: bytes
) -> None:
    before = watcher.upstream.position
    table.file(4).write_bytes(content)

    result = watcher.probe_once()

    assert result.failure is not None and "commit 4 of the Delta log" in result.failure
    assert (result.position, result.events) == (before, ())


def test_a_half_written_commit_is_reported_once_it_is_whole(
    table: GoldenTable, watcher: Watcher
) -> None:
    table.file(4).write_text('{"commitInfo": {}}\n{"add')
    watcher.probe_once()
    with_appends(table, 1)

    assert watcher.operations() == ["APPEND"]


def test_good_commits_before_a_half_written_one_are_reported_and_the_next_probe_fails(
    table: GoldenTable, watcher: Watcher
) -> None:
    with_appends(table, 1)
    table.file(5).write_text("{")

    assert (watcher.operations(), watcher.probe_once().failure is None) == (["APPEND"], False)


def test_a_commit_cut_off_at_a_lines_end_is_reported_when_it_is_whole(
    table: GoldenTable, watcher: Watcher
) -> None:
    whole = json.dumps(info("WRITE")) + "\n" + json.dumps(add("late")) + "\n"
    table.file(4).write_text(whole.splitlines(keepends=True)[0])
    cut = watcher.operations()
    table.file(4).write_text(whole)

    assert (cut, watcher.operations()) == ([], ["APPEND"])


# What a table may declare as required


def test_an_unknown_reader_feature_is_refused_by_name(table: GoldenTable, watcher: Watcher) -> None:
    table.commit(info("UPGRADE"), protocol("adaptiveMetadata", "deletionVectors"))

    failure = watcher.probe_once().failure

    assert failure is not None and "adaptiveMetadata" in failure


def test_a_catalog_managed_table_is_refused_at_first_sight(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "orders")
    table.commit(protocol("catalogManaged"), metadata(), add("a"))

    failure = Watcher(str(table.path)).probe_once().failure

    assert failure is not None and "catalogManaged" in failure


# What is no table


def test_a_missing_folder_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "nothing"

    assert Watcher(str(path)).probe_once().failure == (
        f"The Delta table {path} cannot be sensed: the folder {path} does not exist; create"
        " the table, or correct its path."
    )


def test_a_folder_without_a_log_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    assert Watcher(str(tmp_path)).probe_once().failure == (
        f"The Delta table {tmp_path} cannot be sensed: "
        f"{tmp_path} is not a Delta table: it has no _delta_log folder."
    )


def test_a_log_without_a_commit_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    GoldenTable(tmp_path / "orders")

    failure = Watcher(str(tmp_path / "orders")).probe_once().failure

    assert failure is not None and "has no commit" in failure


def test_a_table_that_went_away_is_a_failure_and_its_position_stays(
    table: GoldenTable, watcher: Watcher
) -> None:
    before = watcher.upstream.position
    shutil.rmtree(table.path)

    result = watcher.probe_once()

    assert (result.failure is None, result.position) == (False, before)


def test_a_table_that_may_not_be_read_is_a_failure_in_one_sentence(watcher: Watcher) -> None:
    class Locked:
        def stat(self, path: str) -> None:
            raise PermissionError(13, "Permission denied", path)

    watcher.storage._storage = Locked()  # type: ignore[assignment]

    failure = watcher.probe_once().failure

    assert failure is not None and f"{4:020d}.json is denied; let this identity" in failure


def test_a_position_of_another_version_of_heartbeat_is_a_failure(watcher: Watcher) -> None:
    watcher.upstream = replace(watcher.upstream, position='{"v": 99}')

    failure = watcher.probe_once().failure

    assert failure is not None and "another version of Heartbeat" in failure


def test_a_failed_probe_recovers_by_itself(table: GoldenTable, watcher: Watcher) -> None:
    table.path.rename(table.path.with_name("away"))
    failed = watcher.probe_once().failure
    table.path.with_name("away").rename(table.path)

    assert (failed is None, watcher.probe_once().failure) == (False, None)

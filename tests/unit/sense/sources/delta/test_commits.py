"""What each kind of commit is: one case per row of the table of operations."""

from pathlib import Path

import pytest

from tests.support.golden import (
    Action,
    GoldenTable,
    Watcher,
    add,
    info,
    metadata,
    protocol,
    remove,
    vector,
)


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    table = GoldenTable(tmp_path / "orders").create()
    table.commit(info("WRITE"), add("old"))
    return table


@pytest.fixture
def watcher(table: GoldenTable) -> Watcher:
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    return watcher


TXN: Action = {"txn": {"appId": "stream-7", "version": 12}}
CDC: Action = {"cdc": {"path": "_change_data/c", "partitionValues": {}, "dataChange": False}}
MOVED: list[Action] = [add("new", dataChange=False), remove("old", dataChange=False)]

SILENT: dict[str, list[Action]] = {
    "an append of zero rows": [info("WRITE", operationParameters={"mode": "Append"})],
    "a streaming epoch without data": [info("STREAMING UPDATE"), TXN],
    "an optimize": [info("OPTIMIZE"), *MOVED],
    "a reorg": [info("REORG"), *MOVED],
    "an overwrite that only rearranges": [info("WRITE"), *MOVED],
    "a vacuum start": [info("VACUUM START")],
    "a vacuum end": [info("VACUUM END")],
    "properties, which claim to be a blind append": [
        info("SET TBLPROPERTIES", isBlindAppend=True),
        metadata(),
    ],
    "a new column": [info("ADD COLUMNS"), metadata(fields=[("id", "long"), ("more", "long")])],
    "a protocol upgrade": [info("UPGRADE PROTOCOL"), protocol("deletionVectors")],
    "a row tracking backfill": [info("ROW TRACKING BACKFILL"), add("old", dataChange=False)],
    "a clustering change": [
        info("CLUSTER BY"),
        {"domainMetadata": {"domain": "delta.clustering", "configuration": "{}", "removed": False}},
    ],
}


@pytest.mark.parametrize("actions", SILENT.values(), ids=SILENT)
def test_a_commit_without_data_change_is_silent(
    table: GoldenTable, watcher: Watcher, actions: list[Action]
) -> None:
    table.commit(*actions)

    assert watcher.operations() == []


@pytest.mark.parametrize("actions", SILENT.values(), ids=SILENT)
def test_a_silent_commit_moves_the_position_and_is_not_read_twice(
    table: GoldenTable, watcher: Watcher, actions: list[Action]
) -> None:
    table.commit(*actions)
    watcher.probe_once()
    watcher.storage.calls.clear()

    watcher.probe_once()

    assert [call.split()[0] for call in watcher.storage.calls] == ["stat", "stat"]


TOLD: dict[str, tuple[list[Action], str]] = {
    "an append": ([info("WRITE"), add("new")], "APPEND"),
    "a streaming append": ([info("STREAMING UPDATE"), TXN, add("new")], "APPEND"),
    "a copy into": ([info("COPY INTO"), add("new")], "APPEND"),
    "a copy-on-write delete": ([info("DELETE"), remove("old"), add("new"), CDC], "DELETE"),
    "a delete by deletion vector": (
        [info("DELETE"), remove("old"), add("old", deletionVector=vector(2))],
        "DELETE",
    ),
    "a delete by deletion vector of a writer that names nothing": (
        [remove("old"), add("old", deletionVector=vector(2))],
        "DELETE",
    ),
    "a delete of whole partitions": ([info("DELETE"), remove("old")], "DELETE"),
    "a truncate": ([info("TRUNCATE"), remove("old")], "DELETE"),
    "an update": ([info("UPDATE"), remove("old"), add("new"), CDC], "UPDATE"),
    "an update by deletion vector": (
        [info("UPDATE"), remove("old"), add("old", deletionVector=vector(1)), add("new")],
        "UPDATE",
    ),
    "a merge that only inserts": ([info("MERGE"), add("new")], "APPEND"),
    "a merge that changes": ([info("MERGE"), remove("old"), add("new")], "UPDATE"),
    "a restore that shrinks vectors": (
        [
            info("RESTORE"),
            remove("old", deletionVector=vector(3)),
            add("old", deletionVector=vector(1)),
        ],
        "UPDATE",
    ),
    "a restore that shrinks one vector while another grows": (
        [
            remove("old", deletionVector=vector(3)),
            remove("other", deletionVector=vector(1)),
            add("old", deletionVector=vector(1)),
            add("other", deletionVector=vector(9)),
        ],
        "UPDATE",
    ),
    "a restore that brings files back": ([info("RESTORE"), add("older")], "APPEND"),
    "a restore that takes files away": ([info("RESTORE"), remove("old")], "DELETE"),
    "a clone": ([info("CLONE"), add("new")], "APPEND"),
    "both without a name": ([remove("old"), add("new")], "UPDATE"),
    "an overwrite": (
        [info("WRITE", operationParameters={"mode": "Overwrite"}), remove("old"), add("new")],
        "UPDATE",
    ),
    "a replace with data": (
        [info("CREATE OR REPLACE TABLE AS SELECT"), metadata("t-2"), remove("old"), add("new")],
        "UPDATE",
    ),
}


@pytest.mark.parametrize(("actions", "operation"), TOLD.values(), ids=TOLD)
def test_a_commit_that_changes_data_is_one_event_of_its_kind(
    table: GoldenTable, watcher: Watcher, actions: list[Action], operation: str
) -> None:
    table.commit(*actions)

    assert watcher.operations() == [operation]


def test_two_commits_between_two_probes_are_two_events(
    table: GoldenTable, watcher: Watcher
) -> None:
    table.commit(info("WRITE"), add("a"))
    table.commit(info("OPTIMIZE"), *MOVED)
    table.commit(info("DELETE"), remove("a"))

    events = watcher.probe_once().events

    reported = [
        (event.snapshot_id, event.prev_snapshot_id, event.operation_type) for event in events
    ]
    assert reported == [("2", "1", "APPEND"), ("4", "2", "DELETE")]


def test_an_append_that_is_removed_before_the_next_probe_still_happened(
    table: GoldenTable, watcher: Watcher
) -> None:
    table.commit(info("WRITE"), add("a"))
    table.commit(info("DELETE"), remove("a"))

    assert watcher.operations() == ["APPEND", "DELETE"]


def test_the_same_commit_probed_twice_has_the_same_event_id(
    table: GoldenTable, watcher: Watcher
) -> None:
    table.commit(info("WRITE"), add("a"))

    first, again = watcher.peek(), watcher.peek()

    assert first.events[0].id_at("u-1") == again.events[0].id_at("u-1")

"""What an event contains: partition, tags, times, lineage."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.events.event import ChangeEvent
from tests.support.golden import GoldenTable, Watcher, add, info, metadata, protocol, remove


def one_event(table: GoldenTable, *actions: dict[str, object]) -> ChangeEvent:
    watcher = Watcher(str(table.path))
    watcher.probe_once()
    table.commit(*actions)
    [event] = watcher.probe_once().events
    return event


@pytest.fixture
def plain(tmp_path: Path) -> GoldenTable:
    return GoldenTable(tmp_path / "orders").create()


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    table = GoldenTable(tmp_path / "orders")
    fields: Sequence[tuple[str, str]] = (("id", "long"), ("year", "integer"), ("day", "date"))
    table.commit(protocol(), metadata(fields=fields, partitions=["year", "day"]))
    return table


def part(year: str | None, day: str | None) -> dict[str, object]:
    return {"year": year, "day": day}


def test_the_one_partition_that_a_commit_touched_is_json_values_by_level(
    table: GoldenTable,
) -> None:
    event = one_event(table, add("a", partitionValues=part("2025", "2025-04-01")))

    assert event.partition == ("2025", '"2025-04-01"')


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_partition_value_that_is_missing_is_null(table: GoldenTable, nothing: str | None) -> None:
    assert one_event(table, add("a", partitionValues=part("2025", nothing))).partition == (
        "2025",
        "null",
    )


def test_several_partitions_are_a_tag(table: GoldenTable) -> None:
    event = one_event(
        table,
        add("a", partitionValues=part("2025", "2025-04-01")),
        remove("b", partitionValues=part("2024", None)),
    )

    assert event.partition is None
    assert json.loads(event.tags["partitions"]) == [[2024, None], [2025, "2025-04-01"]]


def test_more_partitions_than_a_thousand_are_cut_and_the_event_states_it(
    table: GoldenTable,
) -> None:
    files = [add(f"f{year}", partitionValues=part(str(year), None)) for year in range(1001)]

    event = one_event(table, *files)

    assert len(json.loads(event.tags["partitions"])) == 1000
    assert event.tags["partitions_truncated"] == "true"


def test_a_file_action_without_partition_values_leaves_the_partition_unknown(
    table: GoldenTable,
) -> None:
    gone: dict[str, object] = {"remove": {"path": "b", "dataChange": True}}

    event = one_event(table, gone, add("a", partitionValues=part("2025", None)))

    assert (event.partition, event.tags["partitions_truncated"]) == (None, "true")


def test_a_table_without_partitions_has_none(plain: GoldenTable) -> None:
    assert one_event(plain, add("a")).partition is None


def test_physical_partition_names_are_translated(tmp_path: Path) -> None:
    table = GoldenTable(tmp_path / "orders")
    described = metadata(
        fields=[("id", "long"), ("day", "string")],
        partitions=["day"],
        physical={"id": "col-1", "day": "col-2"},
    )
    table.commit(protocol("columnMapping"), described)

    assert one_event(table, add("x/a", partitionValues={"col-2": "05"})).partition == ('"05"',)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "007", 7),
        ("long", "-5", -5),
        ("decimal(4,2)", "1.50", 1.5),
        ("double", "1e3", 1000.0),
        ("double", "NaN", "NaN"),
        ("boolean", "true", True),
        ("string", "5", "5"),
        ("string", 'a "b" ü', 'a "b" ü'),
        ("timestamp", "2025-04-01 00:00:00", "2025-04-01 00:00:00"),
    ],
)
def test_a_partition_value_has_the_type_of_its_column(
    tmp_path: Path, kind: str, text: str, value: object
) -> None:
    table = GoldenTable(tmp_path / "orders")
    table.commit(protocol(), metadata(fields=[("p", kind)], partitions=["p"]))

    event = one_event(table, add("a", partitionValues={"p": text}))

    assert event.partition is not None
    assert json.loads(event.partition[0]) == value


def test_a_replace_that_changes_partition_columns_uses_the_new_ones(
    table: GoldenTable,
) -> None:
    event = one_event(
        table,
        info("CREATE OR REPLACE TABLE AS SELECT"),
        metadata("t-2", fields=[("day", "string")], partitions=["day"]),
        add("a", partitionValues={"day": "mon"}),
    )

    assert event.partition == ('"mon"',)


def test_the_tags_carry_what_the_commit_states_of_itself(plain: GoldenTable) -> None:
    event = one_event(
        plain,
        info(
            "WRITE",
            userMetadata="run 7",
            txnId="x-1",
            engineInfo="Apache-Spark/4.1.1",
            operationParameters={"mode": "Overwrite"},
            operationMetrics={"numOutputRows": "12", "numFiles": "1"},
        ),
        {"txn": {"appId": "stream-7", "version": 12}},
        add("a"),
    )

    assert event.tags == {
        "operation": "WRITE",
        "user_metadata": "run 7",
        "txn_id": "x-1",
        "engine": "Apache-Spark/4.1.1",
        "writer_timestamp": "5",
        "app": "stream-7",
        "app_version": "12",
        "overwrite": "true",
        "rows_written": "12",
        "table_id": "t-1",
        "prev_version": "0",
    }


def test_metrics_of_another_writer_mean_the_same(plain: GoldenTable) -> None:
    event = one_event(plain, info("WRITE", operationMetrics={"num_added_rows": 12}), add("a"))

    assert event.tags["rows_written"] == "12"


def test_a_commit_without_a_word_of_itself_is_an_event_all_the_same(plain: GoldenTable) -> None:
    assert one_event(plain, add("a")).operation_type == "APPEND"


def test_a_long_note_is_cut(plain: GoldenTable) -> None:
    event = one_event(plain, info("WRITE", userMetadata="x" * 100_000), add("a"))

    assert len(event.tags["user_metadata"]) < 1100


def test_a_schema_change_is_reported_by_the_next_event_only(plain: GoldenTable) -> None:
    watcher = Watcher(str(plain.path))
    watcher.probe_once()
    plain.commit(info("ADD COLUMNS"), metadata(fields=[("id", "long"), ("more", "long")]))
    watcher.probe_once()
    plain.commit(add("a"))
    plain.commit(add("b"))

    assert [event.tags.get("schema_changed") for event in watcher.probe_once().events] == [
        "true",
        None,
    ]


def test_the_time_of_the_snapshot_is_that_of_the_file(plain: GoldenTable) -> None:
    watcher = Watcher(str(plain.path))
    watcher.probe_once()
    os.utime(plain.file(plain.commit(info("WRITE"), add("a"))), ns=(0, 1_234_567_890))

    assert [event.snapshot_ts for event in watcher.probe_once().events] == [1234]


def test_the_commits_own_time_comes_before_the_files(plain: GoldenTable) -> None:
    assert one_event(plain, info("WRITE", inCommitTimestamp=77), add("a")).snapshot_ts == 77


def test_the_event_names_the_table_as_the_operator_wrote_it(plain: GoldenTable) -> None:
    watcher = Watcher("shop.orders")
    watcher.locator.paths["shop.orders"] = str(plain.path)
    plain.commit(add("a"))

    assert [event.table for event in watcher.probe_once().events] == ["shop.orders"]


def test_a_path_may_be_written_as_an_address(plain: GoldenTable) -> None:
    plain.commit(add("a"))

    assert Watcher(f"file://{plain.path}/").operations() == ["APPEND"]


def test_the_catalog_is_queried_once_and_then_only_in_doubt(plain: GoldenTable) -> None:
    watcher = Watcher("shop.orders")
    watcher.locator.paths["shop.orders"] = str(plain.path)
    watcher.probe_once()
    plain.commit(add("a"))
    watcher.probe_once()
    watcher.restart()
    watcher.probe_once()

    assert watcher.locator.asked == ["shop.orders"]


def test_a_name_that_moved_to_another_place_is_followed_when_the_old_one_is_gone(
    plain: GoldenTable, tmp_path: Path
) -> None:
    watcher = Watcher("shop.orders")
    watcher.locator.paths["shop.orders"] = str(plain.path)
    watcher.probe_once()
    elsewhere = GoldenTable(tmp_path / "elsewhere").create(table_id="t-9")  # type: ignore[arg-type]
    elsewhere.commit(add("a"))
    watcher.locator.paths["shop.orders"] = str(elsewhere.path)
    plain.path.rename(tmp_path / "away")

    assert [event.tags["recreated"] for event in watcher.probe_once().events] == ["true"]


def test_a_table_that_was_only_rearranged_since_is_as_old_as_its_last_change(
    plain: GoldenTable,
) -> None:
    plain.commit(info("WRITE", inCommitTimestamp=77), add("a"))
    newest = plain.commit(
        info("OPTIMIZE", inCommitTimestamp=99),
        remove("a", dataChange=False),
        add("b", dataChange=False),
    )
    [event] = Watcher(str(plain.path)).probe_once().events

    assert (event.snapshot_ts, event.snapshot_id) == (77, str(newest))

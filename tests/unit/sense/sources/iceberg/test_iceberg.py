"""The Iceberg probe over metadata files of any history; no Spark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.config.connections import Database, IcebergCatalog
from harness.config.sources import FirstSight
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.platform.storage import FileStat, LocalStorage, Storages
from harness.sense.database_queries import Answer, DatabaseDownError, Dialect, Query
from harness.sense.preprocess.run import Rows
from harness.sense.probe import ProbeResult
from harness.sense.sources.iceberg import partitions
from harness.sense.sources.iceberg import snapshots as follow
from harness.sense.sources.iceberg.catalog import Catalogs
from harness.sense.sources.iceberg.probe import IcebergProbe
from harness.store.work_lists import Upstream
from tests.support.iceberg_tables import ADDED, DELETED, EXISTING, TEXT, IcebergFolder, entry
from tests.support.watching import AT, Watching

EMPTY: dict[str, str] = {}


class CatalogDatabase:
    """Stands in for the database of a catalog."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], str] = {}
        self.asked: list[Query] = []
        self.is_down = False

    def dialect(self, database: Database) -> Dialect:
        raise AssertionError("nobody needs it")

    def ask(
        self, database: Database, query: Query, *, within: float, most: int | None = None
    ) -> Answer:
        self.asked.append(query)
        if self.is_down:
            raise DatabaseDownError("the database cannot be reached: refused")
        catalog, *texts = [each.text for each in query.parameters]
        wanted = set(zip(texts[::2], texts[1::2], strict=True))
        rows = [
            (namespace, name, location)
            for (of, namespace, name), location in self.rows.items()
            if of == catalog and (namespace, name) in wanted
        ]
        return Answer(columns=(), rows=rows)


class Questions:
    """Returns the answers that it was given."""

    def __init__(self, *, any_row: bool = True, largest: str | None = None) -> None:
        self._any_row, self._largest = any_row, largest
        self.asked: list[str] = []

    def largest(self, rows: Rows, column: str) -> str | None:
        self.asked.append(column)
        return self._largest

    def any_row(self, rows: Rows, query: str) -> bool:
        self.asked.append(query)
        return self._any_row


class CountingStorage(LocalStorage):
    """Records the calls that it gets."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        #: How the files end that cannot be read.
        self.is_down_for = "-"

    def stat(self, path: str) -> FileStat | None:
        self.calls.append("stat")
        return super().stat(path)

    def read(self, path: str, *, limit: int) -> bytes:
        self.calls.append("read")
        if path.endswith(self.is_down_for):
            raise OSError("connection reset")
        return super().read(path, limit=limit)

    def list_all(self, folder: str) -> Any:
        self.calls.append("list")
        return super().list_all(folder)


class Watcher(Watching):
    """Probes one table again and again, as ticks do."""

    def __init__(self, sensor_id: str, **more: Any) -> None:
        self.storage = CountingStorage()
        self.database = CatalogDatabase()
        self.questions = more.pop("questions", Questions())
        self.catalogs: Mapping[str, IcebergCatalog] = more.pop("catalogs", {})
        self.upstream = Upstream(
            upstream_id="u",
            source="iceberg_table",
            sensor_id=sensor_id,
            read_type="batch",
            **more,
        )

    @property
    def probe(self) -> IcebergProbe:
        return IcebergProbe(
            Storages(self.storage, self.storage),
            Catalogs(self.catalogs, self.database),
            self.questions,
        )


@pytest.fixture
def table(tmp_path: Path) -> IcebergFolder:
    return IcebergFolder(tmp_path / "orders")


@pytest.fixture
def watcher(table: IcebergFolder) -> Watcher:
    """A watcher that has probed the table with a snapshot in it."""
    table.append()
    watcher = Watcher(str(table.path))
    watcher.reported()
    return watcher


def operations(events: Sequence[ChangeEvent]) -> list[Operation]:
    return [event.operation_type for event in events]


def snapshots(events: Sequence[ChangeEvent]) -> list[int]:
    return [int(event.snapshot_id or 0) for event in events]


def ids(events: Sequence[ChangeEvent]) -> list[str]:
    return [event.id_at("u") for event in events]


# Which snapshots are new data


@pytest.mark.parametrize(
    ("word", "operation"),
    [
        ("append", Operation.APPEND),
        ("delete", Operation.DELETE),
        ("overwrite", Operation.UPDATE),
        ("a word of a later version", Operation.UPDATE),
        (None, Operation.UPDATE),
    ],
)
def test_a_snapshot_states_what_it_did(
    watcher: Watcher, table: IcebergFolder, word: str | None, operation: Operation
) -> None:
    table.commit(word, {"deleted-records": "3"})

    assert operations(watcher.reported()) == [operation]


def test_maintenance_is_silent(watcher: Watcher, table: IcebergFolder) -> None:
    table.commit("replace", {"added-data-files": "1", "deleted-data-files": "7"})

    assert watcher.reported() == ()


@pytest.mark.parametrize("word", ["append", "overwrite", "delete"])
def test_a_snapshot_that_changed_nothing_is_silent(
    watcher: Watcher, table: IcebergFolder, word: str
) -> None:
    table.commit(word, EMPTY)

    assert watcher.reported() == ()


def test_a_snapshot_whose_writer_does_not_count_is_reported(
    watcher: Watcher, table: IcebergFolder
) -> None:
    snapshot = table.commit("append", EMPTY)
    del table.snapshots[snapshot]["summary"]["changed-partition-count"]
    table.write()

    assert operations(watcher.reported()) == [Operation.APPEND]


def test_each_snapshot_is_an_event_in_its_order(watcher: Watcher, table: IcebergFolder) -> None:
    expected = [table.append(), table.append(), table.append()]

    assert snapshots(watcher.reported()) == expected


def test_events_follow_one_another_over_maintenance(watcher: Watcher, table: IcebergFolder) -> None:
    first = table.append()
    table.commit("replace", {"added-data-files": "1"})
    table.append()

    assert [event.prev_snapshot_id for event in watcher.reported()][1] == str(first)


def test_a_property_or_an_expiry_of_older_snapshots_is_silent(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.write()

    assert watcher.reported() == ()


def test_an_event_states_which_snapshot_and_when(watcher: Watcher, table: IcebergFolder) -> None:
    snapshot = table.append()
    [event] = watcher.reported()

    assert (event.table_format, event.snapshot_id, event.snapshot_ts, event.tags) == (
        TableFormat.ICEBERG,
        str(snapshot),
        table.snapshots[snapshot]["timestamp-ms"],
        {
            "operation": "append",
            "rows_written": "2",
            "files_written": "1",
            "changed_partitions": "0",
            "sequence_number": "2",
            "table_id": table.uuid,
        },
    )


def test_a_new_schema_is_a_tag_of_the_next_event_alone(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.append(schema_id=1)
    table.append(schema_id=1)

    assert ["schema_changed" in event.tags for event in watcher.reported()] == [True, False]


# Partitions


@pytest.fixture
def by_day(watcher: Watcher, table: IcebergFolder) -> IcebergFolder:
    """The table, partitioned by two levels."""
    table.levels = {"day": (DATE, "identity"), "region": (TEXT, "identity")}
    return table


DATE = ["null", {"type": "int", "logicalType": "date"}]


@pytest.mark.parametrize("codec", ["deflate", "null", "zstandard"])
def test_the_one_partition_that_changed_is_named(
    watcher: Watcher, by_day: IcebergFolder, codec: str
) -> None:
    by_day.codec = codec
    by_day.touch(entry(ADDED, None, day=20201, region="Süd"))

    assert watcher.reported()[0].partition == ('"2025-04-23"', '"Süd"')


def test_several_partitions_are_a_tag(watcher: Watcher, by_day: IcebergFolder) -> None:
    by_day.touch(
        entry(ADDED, None, day=20201, region="b"),
        entry(ADDED, None, day=None, region="a"),
        entry(ADDED, None, day=20201, region="b"),
    )
    [event] = watcher.reported()

    assert (event.partition, event.tags["partitions"]) == (
        None,
        '[["2025-04-23","b"],[null,"a"]]',
    )


def test_only_files_that_the_snapshot_added_or_deleted_touch_a_partition(
    watcher: Watcher, by_day: IcebergFolder
) -> None:
    by_day.touch(
        entry(EXISTING, 3_000_000_000_000_000_101, day=1, region="kept"),
        entry(ADDED, 3_000_000_000_000_000_101, day=2, region="of another snapshot"),
        entry(DELETED, None, day=20201, region="gone"),
        operation="delete",
    )

    assert watcher.reported()[0].partition == ('"2025-04-23"', '"gone"')


def test_manifests_of_earlier_snapshots_are_not_read(
    watcher: Watcher, by_day: IcebergFolder
) -> None:
    first = by_day.touch(entry(ADDED, None, day=1, region="old"))
    second = by_day.touch(entry(ADDED, None, day=2, region="new"))
    manifests = by_day.path / "metadata"
    by_day.list_manifests(
        second,
        by_day.listed(first, manifests / f"m{first}.avro"),
        by_day.listed(second, manifests / f"m{second}.avro"),
    )
    reads = watcher.storage.calls.count("read")
    events = watcher.reported()

    assert [event.partition for event in events] == [
        ('"1970-01-02"', '"old"'),
        ('"1970-01-03"', '"new"'),
    ]
    # The hint, the metadata, and of each snapshot its list and its own manifest.
    assert watcher.storage.calls.count("read") - reads <= 6


def test_a_table_without_partitions_has_no_manifest_read(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.touch(entry(ADDED, None))
    for file in (table.path / "metadata").glob("*.avro"):
        file.unlink()
    [event] = watcher.reported()

    assert (event.partition, "partitions_not_named" in event.tags) == (None, False)


@pytest.mark.parametrize(
    "case",
    [
        ("long", "identity", 7, "7"),
        ("boolean", "identity", True, "true"),
        ("double", "identity", 1.5, "1.5"),
        ("double", "identity", float("nan"), '"NaN"'),
        ("string", "identity", 'a"b', '"a\\"b"'),
        ("string", "truncate[2]", "ab", '"ab"'),
        ("bytes", "identity", b"\x00\xff", '"AP8="'),
        ("int", "bucket[16]", 11, "11"),
        ("int", "year", 55, '"2025"'),
        ("int", "month", 663, '"2025-04"'),
        ("int", "month", -1, '"1969-12"'),
        ({"type": "int", "logicalType": "date"}, "day", 20201, '"2025-04-23"'),
        ("int", "day", -1, '"1969-12-31"'),
        ("int", "hour", 484_829, '"2025-04-23-05"'),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            "identity",
            0,
            '"1970-01-01T00:00:00"',
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
            "identity",
            1_500_000,
            '"1970-01-01T00:00:01.500000+00:00"',
        ),
        (
            {"type": "long", "logicalType": "timestamp-nanos"},
            "identity",
            1_000_000_001,
            '"1970-01-01T00:00:01.000000001"',
        ),
        ({"type": "long", "logicalType": "time-micros"}, "identity", 1_000_000, '"00:00:01"'),
        ({"type": "long", "logicalType": "timestamp-micros"}, "identity", 2**62, str(2**62)),
        (
            {"type": "fixed", "name": "d", "size": 2, "logicalType": "decimal", "scale": 2},
            "identity",
            b"\xff\x6a",
            "-1.50",
        ),
        (
            {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"},
            "identity",
            bytes(16),
            '"00000000-0000-0000-0000-000000000000"',
        ),
    ],
    ids=str,
)
def test_a_partition_value_is_json_and_named_as_iceberg_names_it(
    watcher: Watcher, table: IcebergFolder, case: tuple[object, str, object, str]
) -> None:
    kind, transform, value, reported = case
    table.levels = {"level": (["null", kind], transform)}
    table.touch(entry(ADDED, None, level=value))

    assert watcher.reported()[0].partition == (reported,)


def test_a_field_that_was_dropped_is_no_level(watcher: Watcher, table: IcebergFolder) -> None:
    table.levels = {"gone": (TEXT, "void"), "region": (TEXT, "identity")}
    table.touch(entry(ADDED, None, gone=None, region="a"))

    assert watcher.reported()[0].partition == ('"a"',)


def test_a_whole_table_names_no_partition(watcher: Watcher, by_day: IcebergFolder) -> None:
    by_day.touch(entry(ADDED, None, day=1, region="a"))
    by_day.begin()
    by_day.touch(entry(ADDED, None, day=1, region="a"))
    [event] = watcher.reported()

    assert (event.tags["recreated"], event.partition, "partitions" in event.tags) == (
        "true",
        None,
        False,
    )


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (Path.unlink, "a manifest is not there"),
        (lambda file: file.write_bytes(b"Obj"), "a manifest cannot be read: it ends too early"),
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "cannot be read"),
    ],
)
@pytest.mark.parametrize("name", ["m*.avro", "snap-*.avro"])
def test_an_event_whose_partitions_cannot_be_read_is_reported_without_them_and_states_why(
    watcher: Watcher,
    by_day: IcebergFolder,
    name: str,
    harm: Callable[[Path], object],
    why: str,
) -> None:
    by_day.touch(entry(ADDED, None, day=1, region="a"))
    [file] = (by_day.path / "metadata").glob(name)
    harm(file)
    [event] = watcher.reported()

    assert (event.partition, event.tags["partitions_truncated"]) == (None, "true")
    assert why in event.tags["partitions_not_named"]


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800"])
def test_a_manifest_list_at_no_path_leaves_the_event(
    watcher: Watcher, by_day: IcebergFolder, path: str
) -> None:
    snapshot = by_day.touch(entry(ADDED, None, day=1, region="a"))
    by_day.snapshots[snapshot]["manifest-list"] = path
    by_day.write()
    [event] = watcher.reported()

    assert "partitions_not_named" in event.tags


def test_a_probe_reads_no_more_manifests_than_its_limit_and_states_it(
    watcher: Watcher, by_day: IcebergFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "FILES_PER_PROBE", 3)
    for region in ("a", "b"):
        by_day.touch(entry(ADDED, None, day=1, region=region))
    first, second = watcher.reported()

    assert first.partition == ('"1970-01-02"', '"a"')
    assert "partitions_not_named" in second.tags


def test_a_storage_that_does_not_answer_leaves_the_snapshot_to_the_next_probe(
    watcher: Watcher, by_day: IcebergFolder
) -> None:
    by_day.touch(entry(ADDED, None, day=1, region="a"))
    watcher.storage.is_down_for = ".avro"
    failure = watcher.probe_once().failure
    watcher.storage.is_down_for = "-"

    assert failure is not None and "its storage does not answer" in failure
    assert watcher.reported()[0].partition == ('"1970-01-02"', '"a"')


# Branches, and snapshots that nobody reads


def test_a_snapshot_of_another_branch_is_silent(watcher: Watcher, table: IcebergFolder) -> None:
    table.append(is_current=False)

    assert watcher.reported() == ()


def test_a_branch_that_main_is_moved_on_to_is_reported(
    watcher: Watcher, table: IcebergFolder
) -> None:
    first = table.append(is_current=False)
    second = table.append(is_current=False, parent=first)
    watcher.reported()
    table.turn_to(second)

    assert snapshots(watcher.reported()) == [first, second]


# Rolled back


def test_a_rollback_is_an_update_that_states_it(watcher: Watcher, table: IcebergFolder) -> None:
    before = table.head
    taken_back = table.append()
    watcher.reported()
    table.turn_to(before)
    [event] = watcher.reported()

    assert (event.operation_type, event.snapshot_id, event.prev_snapshot_id) == (
        Operation.UPDATE,
        str(before),
        str(taken_back),
    )
    assert event.tags["rolled_back_from"] == str(taken_back)


def test_a_rollback_to_what_was_reported_is_another_event(
    watcher: Watcher, table: IcebergFolder
) -> None:
    kept = table.append()
    first = watcher.reported()
    table.append()
    watcher.reported()
    table.turn_to(kept)

    assert set(ids(first)).isdisjoint(ids(watcher.reported()))


def test_a_rollback_that_is_rolled_back_is_reported_as_new(
    watcher: Watcher, table: IcebergFolder
) -> None:
    before = table.head
    snapshot = table.append()
    first = watcher.reported()
    table.turn_to(before)
    watcher.reported()
    table.turn_to(snapshot)
    second = watcher.reported()

    assert (snapshots(second), ids(first) == ids(second)) == ([snapshot], False)


def test_a_rollback_is_reported_once(watcher: Watcher, table: IcebergFolder) -> None:
    before = table.head
    table.append()
    watcher.reported()
    table.turn_to(before)
    watcher.reported()
    table.write()

    assert watcher.reported() == ()


def test_what_is_committed_on_top_of_a_rollback_is_reported_after_it(
    watcher: Watcher, table: IcebergFolder
) -> None:
    before = table.head
    table.append()
    watcher.reported()
    table.turn_to(before)
    snapshot = table.append()

    assert snapshots(watcher.reported()) == [before, snapshot]


def test_a_rollback_of_maintenance_alone_is_silent(watcher: Watcher, table: IcebergFolder) -> None:
    before = table.head
    table.commit("replace", {"added-data-files": "1"})
    watcher.reported()
    table.turn_to(before)

    assert watcher.reported() == ()


def test_a_rollback_whose_snapshots_are_expired_is_reported(
    watcher: Watcher, table: IcebergFolder
) -> None:
    before = table.head
    gone = table.append()
    watcher.reported()
    table.turn_to(before)
    table.expire(gone)
    snapshot = table.append()

    assert snapshots(watcher.reported()) == [before, snapshot]


def test_a_rollback_is_distinguished_from_a_gap_in_format_1(tmp_path: Path) -> None:
    table = IcebergFolder(tmp_path / "old", version=1)
    before = table.append()
    taken_back = table.append()
    watcher = Watcher(str(table.path))
    watcher.reported()
    table.turn_to(before)
    table.expire(taken_back)
    [event] = watcher.reported()

    assert (event.snapshot_id, "rolled_back" in event.tags) == (str(before), True)


# Expired


def test_the_expiry_of_our_own_snapshot_loses_nothing(
    watcher: Watcher, table: IcebergFolder
) -> None:
    known = table.head or 0
    snapshot = table.append()
    table.expire(known)
    result = watcher.probe_once()

    assert (snapshots(result.events), result.gap) == ([snapshot], None)


def test_an_expiry_past_our_snapshot_is_one_update_that_states_it(
    watcher: Watcher, table: IcebergFolder
) -> None:
    known = table.head or 0
    lost, oldest, newest = table.append(), table.append(), table.append()
    table.expire(known, lost)
    result = watcher.probe_once()

    assert [(e.operation_type, e.snapshot_id, e.tags["gap"]) for e in result.events] == [
        (Operation.UPDATE, str(newest), "true")
    ]
    assert f"between {known} and {oldest} are gone" in (result.gap or "")


def test_what_follows_a_gap_is_reported_as_ever(watcher: Watcher, table: IcebergFolder) -> None:
    known, lost = table.head or 0, table.append()
    table.append()
    table.expire(known, lost)
    watcher.reported()
    snapshot = table.append()

    assert snapshots(watcher.reported()) == [snapshot]


def test_an_expiry_before_the_first_sight_is_no_gap(table: IcebergFolder) -> None:
    gone = table.append()
    table.append()
    table.expire(gone)
    result = Watcher(str(table.path)).probe_once()

    assert (operations(result.events), result.gap) == ([Operation.UPDATE], None)


# Created again, replaced


def test_a_table_created_again_is_one_update_of_a_new_life(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.begin().append()
    newest = table.append()
    [event] = watcher.reported()

    assert (event.operation_type, event.snapshot_id, event.prev_snapshot_id) == (
        Operation.UPDATE,
        str(newest),
        None,
    )
    assert (event.tags["recreated"], event.lineage) == ("true", f"{table.uuid}/1")


def test_a_table_created_again_with_fewer_versions_is_noticed(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.append()
    table.append()
    watcher.reported()
    for file in (table.path / "metadata").iterdir():
        file.unlink()
    table.version = 0
    table.begin().append()

    assert [event.tags.get("recreated") for event in watcher.reported()] == ["true"]


def test_a_table_created_again_without_data_is_silent(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.begin().write()

    assert watcher.reported() == ()


def test_data_of_a_table_that_was_created_again_empty_is_reported(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.begin().write()
    watcher.reported()
    snapshot = table.append()

    assert snapshots(watcher.reported()) == [snapshot]


def test_a_replaced_table_is_an_update_that_states_it(
    watcher: Watcher, table: IcebergFolder
) -> None:
    snapshot = table.append(parent=None)
    [event] = watcher.reported()

    assert (event.operation_type, event.snapshot_id, event.tags["replaced"]) == (
        Operation.UPDATE,
        str(snapshot),
        "true",
    )


def test_a_table_replaced_by_no_rows_is_reported(watcher: Watcher, table: IcebergFolder) -> None:
    table.commit("append", EMPTY, parent=None)

    assert operations(watcher.reported()) == [Operation.UPDATE]


def test_a_table_replaced_by_none_is_a_deletion(watcher: Watcher, table: IcebergFolder) -> None:
    table.turn_to(None)

    assert operations(watcher.reported()) == [Operation.DELETE]


def test_a_table_without_data_that_is_replaced_by_none_is_silent(table: IcebergFolder) -> None:
    table.commit("append", EMPTY)
    watcher = Watcher(str(table.path))
    watcher.reported()
    table.turn_to(None)

    assert watcher.reported() == ()


def test_a_property_of_an_empty_table_begins_no_new_life(table: IcebergFolder) -> None:
    table.write()
    watcher = Watcher(str(table.path))
    watcher.reported()
    table.write()
    watcher.reported()
    table.append()

    assert watcher.reported()[0].lineage == f"{table.uuid}/0"


def test_data_after_an_empty_replacement_is_reported(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.turn_to(None)
    watcher.reported()
    snapshot = table.append()

    assert snapshots(watcher.reported()) == [snapshot]


# First sight


def test_first_sight_of_appends_alone_is_one_append(table: IcebergFolder) -> None:
    table.append()
    newest = table.append()
    [event] = Watcher(str(table.path)).reported()

    assert (event.operation_type, event.snapshot_id, event.tags["first_sight"]) == (
        Operation.APPEND,
        str(newest),
        "true",
    )


def test_first_sight_of_a_table_that_was_overwritten_is_an_update(table: IcebergFolder) -> None:
    table.append()
    table.commit("overwrite", {"added-records": "1"})

    assert operations(Watcher(str(table.path)).reported()) == [Operation.UPDATE]


def test_first_sight_of_empty_snapshots_is_silent(table: IcebergFolder) -> None:
    table.commit("append", EMPTY)

    assert Watcher(str(table.path)).reported() == ()


def test_first_sight_as_baseline_is_silent(table: IcebergFolder) -> None:
    table.append()

    assert Watcher(str(table.path), on_first_sight=FirstSight.BASELINE).reported() == ()


# Many at once


def test_a_long_history_is_reported_over_several_probes(
    watcher: Watcher, table: IcebergFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "SNAPSHOTS_PER_PROBE", 2)
    expected = [table.append() for _ in range(5)]
    results = [snapshots(watcher.reported()) for _ in range(4)]

    assert results == [expected[:2], expected[2:4], expected[4:], []]


# The folder


def test_an_idle_probe_reads_nothing(watcher: Watcher) -> None:
    watcher.storage.calls.clear()
    watcher.reported()

    assert set(watcher.storage.calls) == {"stat"}
    assert len(watcher.storage.calls) <= 4


def test_a_commit_whose_hint_is_not_written_yet_is_seen(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.append()
    snapshot = table.append()
    table.hint(1)

    assert snapshots(watcher.reported())[-1] == snapshot


@pytest.mark.parametrize("hint", ["", "seven", "99"])
def test_a_hint_that_leads_nowhere_does_not_matter(
    watcher: Watcher, table: IcebergFolder, hint: str
) -> None:
    snapshot = table.append()
    (table.path / "metadata" / "version-hint.text").write_text(hint)

    assert snapshots(watcher.reported()) == [snapshot]


def test_a_hint_that_is_away_during_a_commit_does_not_matter(
    watcher: Watcher, table: IcebergFolder
) -> None:
    snapshot = table.append()
    (table.path / "metadata" / "version-hint.text").unlink()

    assert snapshots(watcher.reported()) == [snapshot]


def test_old_metadata_files_that_were_deleted_do_not_matter(
    watcher: Watcher, table: IcebergFolder
) -> None:
    for _ in range(3):
        table.append()
    for version in (1, 2, 3):
        (table.path / "metadata" / f"v{version}.metadata.json").unlink()

    assert len(watcher.reported()) == 3


def test_a_metadata_file_that_was_left_behind_does_not_matter(table: IcebergFolder) -> None:
    newest = [table.append(), table.append(), table.append()][-1]
    for name in ("version-hint.text", "v2.metadata.json"):
        (table.path / "metadata" / name).unlink()

    assert snapshots(Watcher(str(table.path)).reported()) == [newest]


def test_a_history_that_runs_in_a_circle_ends(watcher: Watcher, table: IcebergFolder) -> None:
    first, second = table.append(), table.append()
    table.snapshots[first]["parent-snapshot-id"] = second
    table.write()

    assert operations(watcher.reported()) == [Operation.UPDATE]


@pytest.mark.parametrize("end", [".gz.metadata.json", ".metadata.json.gz"])
def test_compressed_metadata_is_read(watcher: Watcher, table: IcebergFolder, end: str) -> None:
    table.end = end
    snapshot = table.append()

    assert snapshots(watcher.reported()) == [snapshot]


def test_metadata_that_was_only_touched_is_nothing_new(
    watcher: Watcher, table: IcebergFolder
) -> None:
    table.newest.write_bytes(table.newest.read_bytes() + b" ")

    assert watcher.reported() == ()


# Failures


def failure_of(result: ProbeResult) -> str:
    return result.failure or ""


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    result = Watcher(f"{tmp_path}/missing").probe_once()

    assert failure_of(result).endswith(
        f"the folder {tmp_path}/missing does not exist; create the table, or correct its path."
    )


def test_a_folder_that_is_no_table_is_named(tmp_path: Path) -> None:
    assert "is not an Iceberg table" in failure_of(Watcher(str(tmp_path)).probe_once())


def test_the_path_of_a_table_that_a_catalog_keeps_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "00001-a.metadata.json").touch()

    assert "name it as catalog.schema.table" in failure_of(Watcher(str(tmp_path)).probe_once())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format-version": 2, "snapshots": [{}]}'])
def test_metadata_that_is_half_written_is_a_failure(
    watcher: Watcher, table: IcebergFolder, text: str
) -> None:
    table.append()
    table.newest.write_text(text)

    assert "is half-written, or no metadata" in failure_of(watcher.probe_once())


def test_a_commit_after_half_written_metadata_is_reported(
    watcher: Watcher, table: IcebergFolder
) -> None:
    snapshot = table.append()
    table.newest.write_text("{")
    watcher.probe_once()
    table.write_file()

    assert snapshots(watcher.reported()) == [snapshot]


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    table = IcebergFolder(tmp_path / "new", version=4)
    table.append()

    assert "format version 4" in failure_of(Watcher(str(table.path)).probe_once())


# Queries


def test_a_query_runs_when_there_are_events_and_not_before(table: IcebergFolder) -> None:
    table.write()
    questions = Questions()
    watcher = Watcher(
        str(table.path), questions=questions, preprocess_query="select * from sensor_new_data"
    )
    watcher.reported()
    idle = list(questions.asked)
    table.append()
    watcher.reported()

    assert (idle, len(questions.asked)) == ([], 1)


def test_a_key_is_read_when_the_query_uses_its_value(table: IcebergFolder) -> None:
    table.append()
    watcher = Watcher(
        str(table.path),
        questions=Questions(largest="7"),
        upstream_key="id",
        preprocess_query="select * from sensor_new_data where id > ?upstream_value",
        on_first_sight=FirstSight.BASELINE,
    )
    watcher.reported()

    assert watcher.upstream.upstream_value == "7"


def test_a_table_that_is_emptied_has_no_row_for_a_query(table: IcebergFolder) -> None:
    table.append()
    watcher = Watcher(str(table.path), preprocess_query="select * from sensor_new_data")
    watcher.reported()
    table.turn_to(None)

    assert watcher.reported() == ()


# Catalogs


def in_warehouse(folder: Path) -> Mapping[str, IcebergCatalog]:
    return {"lake": IcebergCatalog(warehouse=str(folder))}


IN_DATABASE = {"lake": IcebergCatalog(url="jdbc:postgresql://db/lake", catalog_name="prod")}


def test_a_table_of_a_warehouse_is_its_folder(tmp_path: Path) -> None:
    IcebergFolder(tmp_path / "sales" / "eu" / "orders").append()
    watcher = Watcher("lake.sales.eu.orders", catalogs=in_warehouse(tmp_path))

    assert len(watcher.reported()) == 1


def test_a_catalog_that_is_not_configured_is_named_with_those_that_are(tmp_path: Path) -> None:
    result = Watcher("pond.sales.orders", catalogs=in_warehouse(tmp_path)).probe_once()

    assert "heartbeat.yml has no pond under connections.iceberg, only lake." in failure_of(result)


def test_a_name_without_a_catalog_is_refused() -> None:
    assert "must be catalog.schema.table" in failure_of(Watcher("sales.orders").probe_once())


@pytest.fixture
def listed(table: IcebergFolder) -> Watcher:
    """A watcher of a table that a database lists."""
    table.append()
    watcher = Watcher("lake.sales.eu.orders", catalogs=IN_DATABASE)
    watcher.database.rows["prod", "sales.eu", "orders"] = f"file:{table.newest}"
    return watcher


def test_a_table_that_a_database_lists_is_reported(listed: Watcher) -> None:
    assert len(listed.reported()) == 1


def test_where_the_database_names_the_same_file_nothing_is_read(listed: Watcher) -> None:
    listed.reported()
    listed.storage.calls.clear()
    listed.reported()

    assert listed.storage.calls == []


def test_another_file_in_the_database_is_read(listed: Watcher, table: IcebergFolder) -> None:
    listed.reported()
    snapshot = table.append()
    listed.database.rows["prod", "sales.eu", "orders"] = str(table.newest)

    assert snapshots(listed.reported()) == [snapshot]


def test_a_table_that_the_database_lacks_is_a_failure(listed: Watcher) -> None:
    listed.database.rows.clear()

    assert "the table sales.eu.orders does not exist in the catalog lake" in failure_of(
        listed.probe_once()
    )


def test_a_database_that_is_down_is_a_failure_of_each_of_its_tables(listed: Watcher) -> None:
    listed.database.is_down = True
    group = [listed.upstream, replace(listed.upstream, upstream_id="v", sensor_id="lake.a.b")]

    assert ["refused" in failure_of(result) for result in listed.probe.probe(group, at=AT)] == [
        True
    ] * 2


def test_all_tables_of_a_database_are_one_question(listed: Watcher) -> None:
    group = [
        replace(listed.upstream, upstream_id=str(n), sensor_id=f"lake.sales.t{n}")
        for n in range(100)
    ]
    listed.probe.probe(group, at=AT)

    assert len(listed.database.asked) == 1


def test_tables_of_a_database_are_probed_together_and_others_alone(tmp_path: Path) -> None:
    catalogs = {**IN_DATABASE, "files": IcebergCatalog(warehouse=str(tmp_path))}
    watcher = Watcher("lake.a.b", catalogs=catalogs)

    def group(sensor_id: str) -> str:
        return watcher.probe.group_of(replace(watcher.upstream, sensor_id=sensor_id))

    assert [group(each) for each in ("lake.a.b", "files.a.b", "/a/b", "nowhere.a.b")] == [
        "lake:",
        "u",
        "u",
        "u",
    ]

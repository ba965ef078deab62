"""Files: which of them are data, and when one is new."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.config.sources import FirstSight
from harness.events.event import TableFormat
from harness.platform.storage import FileStat, Listed, Listing, LocalStorage, Storages
from harness.sense.preprocess.run import Rows
from harness.sense.probe import ProbeResult
from harness.sense.sources.file.probe import FileProbe
from harness.store.work_lists import Upstream
from tests.support.watching import Watching


class FakeQuestions:
    """Returns the answers that it was given, and records the queries."""

    def __init__(self, *, largest: str | None = None, returns_row: bool = True) -> None:
        self.answer_largest = largest
        self.returns_row = returns_row
        self.asked: list[str] = []

    def largest(self, rows: Rows, column: str) -> str | None:
        self.asked.append(column)
        return self.answer_largest

    def any_row(self, rows: Rows, query: str) -> bool:
        self.asked.append(query)
        return self.returns_row


class Place(Watching):
    """A folder with files, which is probed again and again."""

    def __init__(self, root: Path, sensor_id: str = "", **more: object) -> None:
        self.root = root / "in"
        self.root.mkdir(exist_ok=True)
        self.upstream = Upstream(
            upstream_id="u",
            source="file",
            sensor_id=str(self.root) + sensor_id,
            read_type="streaming",
            **more,  # type: ignore[arg-type]
        )
        self.questions = FakeQuestions()
        self.restart()

    def restart(self) -> None:
        local = LocalStorage()
        self.probe = FileProbe(Storages(local, local), self.questions)

    def put(self, name: str, text: str = "x", seconds: int = 100) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (seconds, seconds))
        return file

    def reported(self, looks: int = 1) -> list[tuple[str, str]]:
        events = []
        for _ in range(looks):
            result = self.probe_once()
            assert result.failure is None, result.failure
            events += result.events
        return [
            (os.path.relpath(event.tags["path"], self.root), event.operation_type.value)
            for event in events
        ]

    def quietly(self) -> list[tuple[str, str]]:
        """Probe until files that no longer change are reported."""
        return self.reported(looks=2)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def known(place: Place) -> Place:
    place.put("a.csv")
    place.quietly()
    return place


NEW = [("b.csv", "APPEND")]


# Files that are being written


def test_a_file_is_not_reported_when_it_is_first_seen(known: Place) -> None:
    known.put("b.csv")

    assert known.reported() == []


def test_a_file_that_two_probes_found_the_same_is_reported(known: Place) -> None:
    known.put("b.csv")
    known.reported()

    assert known.reported() == NEW


def test_a_growing_file_is_reported_once_when_it_has_stopped_growing(known: Place) -> None:
    reported = []
    for length in range(1, 5):
        known.put("b.csv", "x" * length, seconds=100 + length)
        reported += known.reported()

    assert (reported, known.reported(), known.reported()) == ([], NEW, [])


def test_a_file_that_waits_for_its_second_probe_survives_a_restart(known: Place) -> None:
    known.put("b.csv")
    known.reported()
    known.restart()

    assert known.reported() == NEW


def test_a_file_that_is_written_again_and_grows_is_one_update(known: Place) -> None:
    reported = []
    for length in range(2, 5):
        known.put("a.csv", "x" * length, seconds=100 + length)
        reported += known.reported()

    assert (reported, known.quietly()) == ([], [("a.csv", "UPDATE")])


def test_an_empty_file_is_no_data_yet(known: Place) -> None:
    known.put("b.csv", "")
    empty = known.quietly()
    known.put("b.csv", "x")

    assert (empty, known.quietly()) == ([], NEW)


@pytest.mark.parametrize(
    "name",
    [
        "b.csv.tmp",
        "b.csv.part",
        "b.csv.filepart",
        "b.csv.crdownload",
        "b.CSV.TMP",
        "b.csv._COPYING_",
        "b.csv~",
        "_b.csv",
        ".b.csv.x7Yz",
        ".b.csv.crc",
        "b.csv.done",
        "_temporary/0/b.csv",
        "_temporary/day=1/b.csv",
        ".spark-staging/day=1/b.csv",
        "_day=1/b.csv",
    ],
)
def test_what_is_being_written_is_not_data(known: Place, name: str) -> None:
    known.put(name)

    assert known.quietly() == []


def test_a_file_that_gets_its_name_at_the_end_is_new(known: Place) -> None:
    known.put("b.csv.part").rename(known.root / "b.csv")

    assert known.quietly() == NEW


# Markers


@pytest.fixture
def marked(tmp_path: Path) -> Place:
    return Place(tmp_path, "/_SUCCESS")


def test_data_without_its_marker_is_not_reported(marked: Place) -> None:
    marked.put("b.csv")

    assert marked.quietly() == []


def test_a_marker_is_reported_at_once_though_it_is_empty(marked: Place) -> None:
    marked.probe_once()
    marked.put("_SUCCESS", "")

    assert marked.reported() == [("_SUCCESS", "APPEND")]


def test_a_marker_written_again_is_reported_again(marked: Place) -> None:
    marked.put("_SUCCESS", "")
    marked.probe_once()
    marked.put("_SUCCESS", "", seconds=101)

    assert marked.reported() == [("_SUCCESS", "UPDATE")]


def test_markers_may_be_in_many_folders(tmp_path: Path) -> None:
    place = Place(tmp_path, "/day=*/_SUCCESS")
    place.put("day=1/_SUCCESS", "")
    place.put("day=2/_SUCCESS", "")
    place.put("day=3/b.csv")

    assert place.reported() == [("day=1/_SUCCESS", "APPEND"), ("day=2/_SUCCESS", "APPEND")]


def test_each_file_may_have_a_marker_of_its_own(tmp_path: Path) -> None:
    place = Place(tmp_path, "/*.done")
    place.put("a.csv")
    place.put("b.csv")
    place.put("b.csv.done", "")

    assert place.reported() == [("b.csv.done", "APPEND")]


# Changes


def test_an_overwrite_of_the_same_size_is_an_update(known: Place) -> None:
    known.put("a.csv", "y", seconds=101)

    assert known.quietly() == [("a.csv", "UPDATE")]


def test_an_overwrite_within_the_same_second_is_an_update(known: Place) -> None:
    os.utime(known.root / "a.csv", ns=(0, 100_000_000_001))

    assert known.quietly() == [("a.csv", "UPDATE")]


def test_an_update_follows_what_the_file_was(place: Place) -> None:
    place.put("a.csv")
    place.probe_once()
    [first] = place.probe_once().events
    place.put("a.csv", "more")
    place.probe_once()
    [second] = place.probe_once().events

    assert (first.prev_snapshot_id, second.prev_snapshot_id) == (None, first.snapshot_id)


def test_a_deletion_is_no_event(known: Place) -> None:
    (known.root / "a.csv").unlink()

    assert known.quietly() == []


def ids(result: ProbeResult) -> list[str]:
    return [event.id_at("u") for event in result.events]


def test_a_file_put_back_is_another_event_than_before(place: Place) -> None:
    place.put("a.csv")
    place.probe_once()
    first = ids(place.probe_once())
    (place.root / "a.csv").unlink()
    place.probe_once()
    place.put("a.csv")
    place.probe_once()
    again = ids(place.probe_once())

    assert (len(first), len(again), first == again) == (1, 1, False)


def test_a_file_overwritten_and_then_as_it_was_is_another_event_than_before(place: Place) -> None:
    seen = []
    for seconds in (100, 101, 100):
        place.put("a.csv", seconds=seconds)
        place.probe_once()
        seen += ids(place.probe_once())

    assert len(set(seen)) == 3


def test_a_file_of_the_future_does_not_hide_a_later_one(known: Place) -> None:
    known.put("future.csv", seconds=4_000_000_000)
    first = known.quietly()
    known.put("b.csv", seconds=200)

    assert (first, known.quietly()) == ([("future.csv", "APPEND")], NEW)


def test_a_file_of_the_past_is_as_new_as_any(known: Place) -> None:
    known.put("b.csv", seconds=1)

    assert known.quietly() == NEW


# First sight


def test_a_file_that_grows_during_the_baseline_is_reported_when_it_is_whole(tmp_path: Path) -> None:
    place = Place(tmp_path, on_first_sight=FirstSight.BASELINE)
    place.put("a.csv")
    place.put("b.csv", "x")
    first = place.reported()
    place.put("b.csv", "xx", seconds=101)

    assert (first, place.quietly()) == ([], [("b.csv", "UPDATE")])


# Places


def test_partition_folders_are_probed_and_others_are_not(known: Place) -> None:
    known.put("day=1/hour=2/b.csv")
    known.put("archive/b.csv")

    assert known.quietly() == [("day=1/hour=2/b.csv", "APPEND")]


def test_the_partition_of_a_file_is_that_of_its_folders(known: Place) -> None:
    known.put("day=2025-04-23/place=S%C3%A3o/hour=__HIVE_DEFAULT_PARTITION__/b.csv")
    known.probe_once()
    [event] = known.probe_once().events

    assert event.partition == ('"2025-04-23"', '"São"', "null")


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("/*.csv", ["a.csv"]),
        ("/?.csv", ["a.csv"]),
        ("/[ab].*", ["a.csv", "b.txt"]),
        ("/2025-*/orders*.csv", ["2025-01/orders.csv", "2025-02/orders_2.csv"]),
        ("/2025-*", ["2025-01/orders.csv", "2025-01/x.csv", "2025-02/orders_2.csv"]),
        ("/*-02/sub/*.csv", ["2025-02/sub/deep.csv"]),
        ("/a.csv", ["a.csv"]),
        ("/2025-01", ["2025-01/orders.csv", "2025-01/x.csv"]),
        ("/*.parquet", []),
    ],
)
def test_a_place_may_be_a_file_a_folder_or_a_pattern(
    tmp_path: Path, pattern: str, files: list[str]
) -> None:
    place = Place(tmp_path, pattern)
    for name in (
        "a.csv",
        "b.txt",
        "2025-01/orders.csv",
        "2025-01/x.csv",
        "2025-02/orders_2.csv",
        "2025-02/sub/deep.csv",
        ".2025-03/orders.csv",
    ):
        place.put(name)

    assert sorted(path for path, _ in place.quietly()) == files


def test_a_folder_of_a_pattern_that_comes_later_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path, "/2025-*/*.csv")
    first = place.quietly()
    place.put("2025-01/b.csv")

    assert (first, place.quietly()) == ([], [("2025-01/b.csv", "APPEND")])


def test_a_link_to_a_folder_above_does_not_trap_us(known: Place) -> None:
    (known.root / "day=1").symlink_to(known.root)

    assert known.probe_once().failure is None


def test_a_missing_folder_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    place = Place(tmp_path, "/none/*.csv")

    assert place.probe_once().failure == (
        f"The files {place.root}/none/*.csv cannot be sensed: the folder {place.root}/none does not"
        " exist; create it."
    )


def test_access_denied_is_a_failure_in_one_sentence(tmp_path: Path) -> None:
    class Denied(LocalStorage):
        def list_all(self, folder: str) -> Listing:
            raise PermissionError(13, "Permission denied", folder)

    place = Place(tmp_path)
    place.probe = FileProbe(Storages(Denied(), Denied()), place.questions)

    assert place.probe_once().failure == (
        f"The files {place.root} cannot be sensed: access to {place.root} is denied."
    )


class Remote:
    """Records which folders were listed; every one of them is empty."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def stat(self, path: str) -> FileStat | None:
        return None

    def read(self, path: str, *, limit: int) -> bytes:
        return b""

    def list_files(self, folder: str) -> list[Listed]:
        return []

    def list_all(self, folder: str) -> Listing:
        self.asked.append(folder)
        return Listing([], [])


@pytest.mark.parametrize(
    ("sensor_id", "folder"),
    [
        ("s3a://bucket/in/", "s3a://bucket/in"),
        ("s3a://bucket/in/2025-*/x", "s3a://bucket/in"),
        ("abfss://box@account.dfs.core.windows.net/*", "abfss://box@account.dfs.core.windows.net/"),
        ("gs://box/in/_SUCCESS", "gs://box/in"),
    ],
)
def test_an_address_with_a_scheme_is_listed_by_its_store(
    tmp_path: Path, sensor_id: str, folder: str
) -> None:
    place, remote = Place(tmp_path), Remote()
    place.probe = FileProbe(Storages(LocalStorage(), remote), place.questions)
    place.upstream = replace(place.upstream, sensor_id=sensor_id)
    failure = place.probe_once().failure

    assert (failure, remote.asked) == (None, [folder])


# Events


def test_an_event_contains_what_a_reader_of_files_needs(place: Place) -> None:
    file = place.put("a.csv", "12345", seconds=7)
    place.probe_once()
    [event] = place.probe_once().events

    assert (event.table, event.table_format, event.snapshot_ts, event.tags) == (
        str(place.root),
        TableFormat.FILE,
        7000,
        {"path": str(file), "size": "5"},
    )


def test_very_many_files_are_one_event_that_counts_them(place: Place) -> None:
    for number in range(101):
        place.put(f"{number:03}.csv", "xx")
    place.probe_once()
    [event] = place.probe_once().events

    assert (event.tags["files"], event.tags["size"], event.operation_type) == (
        "101",
        "202",
        "APPEND",
    )


def test_many_files_are_an_event_each(place: Place) -> None:
    for number in range(100):
        place.put(f"{number:03}.csv")

    assert len(place.quietly()) == 100


def test_the_position_of_many_files_stays_small(place: Place) -> None:
    for number in range(2000):
        place.put(f"a file with quite a long name, number {number}.csv")
    place.probe_once()

    assert len(place.probe_once().position or "") < 2000 * 9.4 + 100


# Rows


def test_nothing_is_queried_without_a_preprocess_query(tmp_path: Path) -> None:
    place = Place(tmp_path, upstream_key="id")
    place.put("a.csv")
    place.quietly()

    assert place.questions.asked == []


def test_the_query_runs_with_the_largest_value_before_the_probe(tmp_path: Path) -> None:
    query = "select * from sensor_new_data where ?upstream_key > ?upstream_value"
    place = Place(tmp_path, upstream_key="id", preprocess_query=query)
    place.questions.answer_largest = "7"
    place.put("a.csv")
    place.quietly()
    place.put("b.csv")
    place.quietly()

    assert place.questions.asked == [
        "id",
        "select * from sensor_new_data where id > NULL",
        "id",
        "select * from sensor_new_data where id > '7'",
    ]


def test_a_baseline_is_queried_for_its_largest_value_only(tmp_path: Path) -> None:
    query = "select * from sensor_new_data where id > ?upstream_value"
    first = FirstSight.BASELINE
    place = Place(tmp_path, upstream_key="id", preprocess_query=query, on_first_sight=first)
    place.questions.answer_largest = "7"
    place.put("a.csv")
    place.probe_once()

    assert (place.questions.asked, place.upstream.upstream_value) == (["id"], "7")

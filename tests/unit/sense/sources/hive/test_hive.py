"""The Hive probe over folders of this machine and a metastore in memory; no Spark."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation
from harness.platform.storage import LocalStorage, Storages
from harness.sense.preprocess.run import Rows
from harness.sense.sources.hive.metastore import HiveTable, names_of, partition_in_sql
from harness.sense.sources.hive.probe import HiveProbe
from harness.store.work_lists import Upstream
from tests.support.watching import Watching


class Metastore:
    """One table, as a metastore keeps it."""

    def __init__(self, folder: Path, *columns: str) -> None:
        self.folder = folder
        folder.mkdir()
        self.columns = columns
        self.created_ms = 1_745_000_000_000
        self.is_external = False
        self.places: dict[str, str | None] = {}
        self.is_down = False
        self.asked_for_places = 0

    def table(self, name: str) -> HiveTable:
        if self.is_down:
            raise ProbeFailedError("the metastore does not answer: refused")
        return HiveTable(
            created_ms=self.created_ms,
            location=str(self.folder),
            partition_columns=self.columns,
            is_external=self.is_external,
        )

    def partitions(self, name: str) -> list[str]:
        return list(self.places)

    def elsewhere(self, name: str, table: HiveTable, names: Sequence[str]) -> dict[str, str]:
        self.asked_for_places += 1
        return {each: place for each, place in self.places.items() if place is not None}

    def write(self, partition: str, name: str = "", text: str = "rows") -> None:
        """Write a file of a partition, as a writer does before it registers it."""
        place = self.places.get(partition)
        folder = self.folder / partition if place is None else Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        self._files = getattr(self, "_files", 0) + 1
        (folder / (name or f"part-{self._files}.parquet")).write_text(text)

    def add(self, partition: str) -> None:
        """Write a partition and register it."""
        self.write(partition)
        self.places.setdefault(partition, None)

    def drop(self, partition: str) -> None:
        del self.places[partition]
        shutil.rmtree(self.folder / partition)


class Questions:
    def __init__(self) -> None:
        self.asked = 0

    def largest(self, rows: Rows, column: str) -> str | None:
        return "7"

    def any_row(self, rows: Rows, query: str) -> bool:
        self.asked += 1
        return True


class Watcher(Watching):
    """Probes one table again and again, as ticks do."""

    def __init__(self, metastore: Metastore, **more: Any) -> None:
        self.metastore, self.questions = metastore, Questions()
        self.upstream = Upstream(
            upstream_id="u",
            source="hive_table",
            sensor_id="sales.orders",
            read_type="batch",
            **more,
        )
        self.restart()

    def restart(self) -> None:
        storages = Storages(LocalStorage(), LocalStorage())
        self.probe = HiveProbe(storages, self.metastore, self.questions)


@pytest.fixture
def days(tmp_path: Path) -> Metastore:
    """A table partitioned by day, with one day in it."""
    metastore = Metastore(tmp_path / "orders", "day")
    metastore.add("day=1")
    return metastore


@pytest.fixture
def watcher(days: Metastore) -> Watcher:
    watcher = Watcher(days)
    watcher.reported()
    return watcher


@pytest.fixture
def plain(tmp_path: Path) -> Metastore:
    """A table without partitions, and without data."""
    return Metastore(tmp_path / "orders")


def operations(events: Sequence[ChangeEvent]) -> list[tuple[Operation, tuple[str, ...] | None]]:
    return [(event.operation_type, event.partition) for event in events]


def ids(events: Sequence[ChangeEvent]) -> list[str]:
    return [event.id_at("u") for event in events]


# Partitions


def test_a_new_partition_is_an_append_at_once(watcher: Watcher, days: Metastore) -> None:
    days.add("day=2")

    assert operations(watcher.reported()) == [(Operation.APPEND, ('"2"',))]


def test_each_partition_is_an_event(watcher: Watcher, days: Metastore) -> None:
    days.add("day=2")
    days.add("day=3")

    assert [event.tags["partition"] for event in watcher.reported()] == ["day=2", "day=3"]


def test_values_are_reported_as_they_are(tmp_path: Path) -> None:
    metastore = Metastore(tmp_path / "orders", "at", "region")
    watcher = Watcher(metastore)
    watcher.reported()
    metastore.add("at=21%3A40/region=__HIVE_DEFAULT_PARTITION__")

    assert watcher.reported()[0].partition == ('"21:40"', "null")


def test_a_partition_that_is_gone_is_a_delete(watcher: Watcher, days: Metastore) -> None:
    days.drop("day=1")

    assert operations(watcher.reported()) == [(Operation.DELETE, ('"1"',))]


def test_a_partition_written_again_is_an_update_when_it_is_quiet(
    watcher: Watcher, days: Metastore
) -> None:
    days.write("day=1")
    first = watcher.reported()

    assert (first, operations(watcher.reported())) == ((), [(Operation.UPDATE, ('"1"',))])


def test_a_partition_that_goes_on_changing_is_waited_for(watcher: Watcher, days: Metastore) -> None:
    reported = []
    for _ in range(3):
        days.write("day=1")
        reported.append(watcher.reported())

    assert (reported, len(watcher.reported())) == ([(), (), ()], 1)


def test_a_partition_rewritten_with_the_same_size_is_noticed(
    watcher: Watcher, days: Metastore
) -> None:
    [file] = (days.folder / "day=1").iterdir()
    os.utime(file, ns=(1, 1))
    watcher.reported()

    assert len(watcher.reported()) == 1


def test_a_partition_dropped_and_added_again_between_two_probes_is_an_update(
    watcher: Watcher, days: Metastore
) -> None:
    days.drop("day=1")
    days.add("day=1")
    watcher.reported()

    assert operations(watcher.reported()) == [(Operation.UPDATE, ('"1"',))]


def test_the_very_same_partition_dropped_and_added_again_is_another_event(
    days: Metastore, tmp_path: Path
) -> None:
    watcher = Watcher(days)
    watcher.reported()
    days.add("day=2")
    first = watcher.reported()
    (days.folder / "day=2").rename(tmp_path / "kept")
    del days.places["day=2"]
    watcher.reported()
    (tmp_path / "kept").rename(days.folder / "day=2")
    days.places["day=2"] = None
    second = watcher.reported()

    assert (len(second), set(ids(first)).isdisjoint(ids(second))) == (1, True)


def test_two_partitions_with_equal_files_are_two_events(tmp_path: Path) -> None:
    metastore = Metastore(tmp_path / "orders", "day")
    watcher = Watcher(metastore)
    watcher.reported()
    for day in ("day=1", "day=2"):
        metastore.write(day, "part-0")
        os.utime(metastore.folder / day / "part-0", ns=(1, 1))
        metastore.places[day] = None

    assert len(set(ids(watcher.reported()))) == 2


def test_a_partition_is_followed_from_one_state_to_the_next(
    watcher: Watcher, days: Metastore
) -> None:
    days.add("day=2")
    [first] = watcher.reported()
    days.write("day=2")
    watcher.reported()

    assert watcher.reported()[0].prev_snapshot_id == first.snapshot_id


def test_a_folder_that_is_not_registered_reports_nothing(watcher: Watcher, days: Metastore) -> None:
    days.write("day=2")

    assert watcher.reported() == ()


def test_a_partition_without_data_is_silent_until_it_has_some(
    watcher: Watcher, days: Metastore
) -> None:
    days.places["day=2"] = None
    empty = [watcher.reported(), watcher.reported()]
    days.write("day=2")
    watcher.reported()

    assert (empty, operations(watcher.reported())) == ([(), ()], [(Operation.APPEND, ('"2"',))])


def test_a_partition_without_data_that_is_dropped_is_silent(
    watcher: Watcher, days: Metastore
) -> None:
    days.places["day=2"] = None
    watcher.reported()
    del days.places["day=2"]

    assert watcher.reported() == ()


def test_a_partition_that_is_emptied_is_a_delete(watcher: Watcher, days: Metastore) -> None:
    shutil.rmtree(days.folder / "day=1")
    watcher.reported()

    assert operations(watcher.reported()) == [(Operation.DELETE, ('"1"',))]


@pytest.mark.parametrize("name", ["_SUCCESS", ".part-0.crc", "part-0.parquet.tmp"])
def test_files_that_are_no_data_do_not_count(watcher: Watcher, days: Metastore, name: str) -> None:
    days.write("day=1", name)
    watcher.reported()

    assert watcher.reported() == ()


def test_very_many_partitions_are_one_event(watcher: Watcher, days: Metastore) -> None:
    for number in range(2, 103):
        days.add(f"day={number}")
    [event] = watcher.reported()

    assert (event.operation_type, event.partition, event.tags["partitions_count"]) == (
        Operation.APPEND,
        None,
        "101",
    )
    assert ["57"] in json.loads(event.tags["partitions"])


def test_ten_thousand_partitions_are_remembered_in_little_text(tmp_path: Path) -> None:
    metastore = Metastore(tmp_path / "orders", "day", "hour")
    metastore.places = {
        f"day=2025-{n // 720 % 12:02}-{n // 24 % 30:02}-{n}/hour={n % 24:02}": None
        for n in range(10_000)
    }
    watcher = Watcher(metastore)
    watcher.reported()
    metastore.add("day=2026-01-01/hour=00")

    assert len(watcher.upstream.position or "") < 200_000
    assert len(watcher.reported()) == 1


# Partitions elsewhere


def test_a_partition_elsewhere_is_probed_there(days: Metastore, tmp_path: Path) -> None:
    watcher = Watcher(days)
    watcher.reported()
    days.places["day=2"] = str(tmp_path / "archive")
    days.add("day=2")

    assert operations(watcher.reported()) == [(Operation.APPEND, ('"2"',))]


def test_a_partition_elsewhere_is_nothing_new_after_a_restart(
    days: Metastore, tmp_path: Path
) -> None:
    days.places["day=2"] = str(tmp_path / "archive")
    days.write("day=2")
    watcher = Watcher(days)
    watcher.reported()
    watcher.restart()

    assert [watcher.reported(), watcher.reported()] == [(), ()]


def test_a_partition_of_an_external_table_that_is_put_elsewhere_is_an_update(
    watcher: Watcher, days: Metastore, tmp_path: Path
) -> None:
    days.is_external = True
    watcher.reported()
    days.places["day=1"] = str(tmp_path / "swapped")
    days.write("day=1")
    watcher.reported()

    assert operations(watcher.reported()) == [(Operation.UPDATE, ('"1"',))]


def test_the_folders_of_partitions_are_requested_once(watcher: Watcher, days: Metastore) -> None:
    watcher.reported()
    watcher.reported()

    assert days.asked_for_places == 1


# Tables without partitions


def test_data_of_a_table_without_partitions_is_reported_when_it_is_quiet(plain: Metastore) -> None:
    watcher = Watcher(plain)
    watcher.reported()
    plain.write("")
    first = watcher.reported()

    assert (first, operations(watcher.reported())) == ((), [(Operation.APPEND, None)])


def test_a_table_without_partitions_that_is_written_again_is_an_update(plain: Metastore) -> None:
    plain.write("")
    watcher = Watcher(plain)
    watcher.reported()
    plain.write("")
    watcher.reported()

    assert operations(watcher.reported()) == [(Operation.UPDATE, None)]


# The life of a table


def test_first_sight_is_one_append_for_the_whole_table(days: Metastore) -> None:
    days.add("day=2")
    [event] = Watcher(days).reported()

    assert (event.operation_type, event.tags["first_sight"], event.tags["partitions_count"]) == (
        Operation.APPEND,
        "true",
        "2",
    )


def test_first_sight_of_empty_partitions_is_silent(tmp_path: Path) -> None:
    metastore = Metastore(tmp_path / "orders", "day")
    metastore.places["day=1"] = None

    assert Watcher(metastore).reported() == ()


def test_first_sight_as_baseline_is_silent(days: Metastore) -> None:
    assert Watcher(days, on_first_sight=FirstSight.BASELINE).reported() == ()


def test_a_table_created_again_is_one_update_of_a_new_life(
    watcher: Watcher, days: Metastore
) -> None:
    days.created_ms += 1000
    days.add("day=2")
    [event] = watcher.reported()

    assert (event.operation_type, event.tags["recreated"]) == (Operation.UPDATE, "true")
    assert event.lineage == f"{days.created_ms}/1"


def test_a_table_created_again_without_data_is_silent(watcher: Watcher, days: Metastore) -> None:
    days.created_ms += 1000
    days.drop("day=1")

    assert watcher.reported() == ()


# Failures


def test_a_table_whose_folder_is_gone_is_a_failure_and_no_deletion(
    watcher: Watcher, days: Metastore
) -> None:
    shutil.rmtree(days.folder)

    assert "does not exist" in (watcher.probe_once().failure or "")


def test_a_metastore_that_is_down_is_a_failure(watcher: Watcher, days: Metastore) -> None:
    days.is_down = True

    assert watcher.probe_once().failure == (
        "The Hive table sales.orders cannot be sensed: the metastore does not answer: refused."
    )


@pytest.mark.parametrize("name", ["orders", "a.b.c.d", "spark_catalog.a.b.c"])
def test_a_name_of_another_kind_is_refused(name: str) -> None:
    with pytest.raises(ProbeFailedError, match=r"must be schema\.table"):
        names_of(name)


def test_a_name_may_name_the_sessions_catalog() -> None:
    assert names_of("Spark_Catalog.Sales.`Orders`") == ("sales", "orders")


# Queries


def test_a_query_does_not_run_on_what_is_gone(days: Metastore) -> None:
    watcher = Watcher(days, preprocess_query="select * from sensor_new_data")
    watcher.reported()
    days.drop("day=1")

    assert (watcher.reported(), watcher.questions.asked) == ((), 1)


def test_a_query_runs_on_what_is_new(days: Metastore) -> None:
    watcher = Watcher(days, preprocess_query="select * from sensor_new_data")
    watcher.reported()
    days.add("day=2")

    assert (len(watcher.reported()), watcher.questions.asked) == (1, 2)


def test_a_partition_is_spelled_for_a_statement_by_its_values() -> None:
    assert partition_in_sql("day=a%2Fb'c/hour=__HIVE_DEFAULT_PARTITION__") == (
        "`day` = 'a/b\\'c', `hour` = null"
    )

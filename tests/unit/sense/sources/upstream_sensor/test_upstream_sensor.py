"""Sensors of another product: when one has processed its new data."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import TableFormat
from harness.platform.storage import LocalStorage, Storages
from harness.sense.probe import ProbeResult
from harness.sense.sources.delta.history import HistoryRow
from harness.sense.sources.upstream_sensor.probe import UpstreamSensorProbe, split
from harness.sense.sources.upstream_sensor.rows import LakeRowReader, SensorRow, rows_from
from harness.sense.sources.upstream_sensor.tables import (
    VERSIONS_PER_PROBE,
    CatalogSensorsTables,
    SensorsTables,
    Tables,
)
from harness.store.work_lists import Upstream
from tests.support.golden import AT, FakeLocator
from tests.support.sources.worlds import sensors
from tests.unit.sense.sources.file.test_file import FakeQuestions

DONE, BUSY = "PROCESSED_NEW_DATA", "ACQUIRED_NEW_DATA"
Row = tuple[str, Sequence[str], str | None, str | None]


class CountingReader:
    """Counts how often a table is read, and never by Spark."""

    def __init__(self) -> None:
        self.count = 0

    def read(self, table: str, path: str) -> list[SensorRow]:
        self.count += 1
        return LakeRowReader(self._no_session).read(table, path)

    def _no_session(self) -> None:  # type: ignore[return]
        raise AssertionError("Spark was started")


class Catalog:
    """The table by its name, as a workspace shows it; counts what would be statements."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.statements: list[str] = []

    def read_by_spark(self, table: str) -> list[SensorRow]:
        assert table == "`prod-eu`.`sales`.`sensors`"
        self.statements.append("rows")
        return CountingReader().read(table, str(self.path))

    def read_versions(self, table: str, versions: Sequence[int]) -> list[tuple[int, SensorRow]]:
        assert table == "`prod-eu`.`sales`.`sensors`"
        self.statements.append("versions")
        found = []
        for version in versions:
            try:
                content = DeltaTable(self.path, version=version).to_pyarrow_table()
            except FileNotFoundError as error:
                raise ProbeFailedError("its rows cannot be read") from error
            found += [(version, row) for row in rows_from(content.to_pylist())]
        return found

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        self.statements.append("history")
        version = DeltaTable(self.path).version()
        return [
            HistoryRow(version=version, timestamp_ms=0, operation="", parameters={}, metrics={})
        ]

    def table_id(self, table: str) -> str:
        raise AssertionError(f"what table {table} is was asked for")


class Product:
    """Another product's table, whose sensors are probed again and again."""

    def __init__(self, path: Path, *, is_in_workspace: bool = False) -> None:
        self.path, self.is_in_workspace = path, is_in_workspace
        self.questions = FakeQuestions()
        self.watched: dict[str, Upstream] = {}
        self.restart()

    def restart(self) -> None:
        local = LocalStorage()
        self.reader = CountingReader()
        locator = FakeLocator(**{"sales.sensors": str(self.path)})
        tables: Tables = SensorsTables(Storages(local, local), locator, self.reader)
        self.catalog = Catalog(self.path)
        if self.is_in_workspace:
            tables = CatalogSensorsTables("prod-eu", tables, self.catalog, self.catalog)
        self.probe = UpstreamSensorProbe(tables, self.questions)

    def write(self, *rows: Row) -> None:
        write_deltalake(self.path, sensors(rows), mode="overwrite")

    def merge(self, *rows: Row) -> None:
        """Change rows as the model that publishes them does."""
        merger = DeltaTable(self.path).merge(
            sensors(rows), "old.sensor_id = new.sensor_id", source_alias="new", target_alias="old"
        )
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def watch(self, name: str = "orders_1", **more: object) -> None:
        self.watched[name] = Upstream(
            upstream_id=name,
            source="delta_upstream_sensor",
            sensor_id=f"sales.sensors: {name}",
            read_type="batch",
            **more,  # type: ignore[arg-type]
        )

    def results(self) -> list[ProbeResult]:
        results = self.probe.probe(list(self.watched.values()), at=AT)
        for result in results:
            if result.failure is None:
                self.watched[result.upstream_id] = replace(
                    self.watched[result.upstream_id],
                    position=result.position,
                    upstream_value=result.upstream_value,
                )
        return results

    def reported(self) -> list[str]:
        results = self.results()
        assert [result.failure for result in results if result.failure] == []
        return [event.snapshot_id or "" for result in results for event in result.events]


@pytest.fixture(params=["by its log", "by its name"])
def product(tmp_path: Path, request: pytest.FixtureRequest) -> Product:
    """A product whose sensor has found data that its job still works at."""
    product = Product(tmp_path / "sensors", is_in_workspace=request.param == "by its name")
    product.write(("orders_1", ["sales.orders"], BUSY, at(0)), ("other_1", [], DONE, at(0)))
    product.watch()
    product.reported()
    return product


def at(minute: int) -> str:
    return f"2025-04-23T21:{minute:02}:00.000Z"


def test_a_finished_job_is_an_event(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(1)))

    assert product.reported() == [f"orders_1@{at(1)}"]


def test_new_data_that_is_only_found_is_no_event(product: Product) -> None:
    product.merge(("orders_1", [], BUSY, at(1)))

    assert product.reported() == []


def test_a_sensor_without_a_status_is_no_event(product: Product) -> None:
    product.merge(("orders_1", [], None, None))

    assert product.reported() == []


def test_another_sensor_of_the_table_is_no_event(product: Product) -> None:
    product.merge(("other_1", [], DONE, at(1)))

    assert product.reported() == []


def test_a_row_written_again_with_the_same_time_is_no_event(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    product.reported()
    product.merge(("orders_1", ["sales.orders"], DONE, at(1)))

    assert product.reported() == []


def test_an_older_time_is_no_event(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(2)))
    product.reported()
    product.merge(("orders_1", [], DONE, at(1)))

    assert product.reported() == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2025-04-23 21:59:00", "2025-04-23T22:00:00Z"),
        ("2025-04-23T21:59:00Z", "2025-04-23T21:59:00.001Z"),
        ("2025-04-23T23:59:00+02:00", "2025-04-23T22:00:00Z"),
        ("a1", "a2"),
    ],
)
def test_times_are_compared_as_times_however_they_are_written(
    product: Product, earlier: str, later: str
) -> None:
    reported = []
    for changed_at in (earlier, later, earlier):
        product.merge(("orders_1", [], DONE, changed_at))
        reported.append(len(product.reported()))

    assert reported == [1, 1, 0]


def test_an_asset_stands_for_each_sensor_that_has_it(product: Product) -> None:
    product.watch("sales.orders")
    product.reported()
    product.merge(("orders_1", ["sales.orders"], DONE, at(1)))
    product.merge(("late_1", ["a", "sales.orders"], DONE, at(2)))

    results = {result.upstream_id: result.events for result in product.results()}

    assert [event.snapshot_id for event in results["sales.orders"]] == [
        f"orders_1@{at(1)}",
        f"late_1@{at(2)}",
    ]


def test_a_job_that_is_at_work_again_before_the_next_probe_has_finished_all_the_same(
    product: Product,
) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    product.merge(("orders_1", [], BUSY, at(2)))

    assert product.reported() == [f"orders_1@{at(1)}"]


def test_each_of_several_runs_between_two_probes_is_an_event(product: Product) -> None:
    for minute in (1, 2, 3):
        product.merge(("orders_1", [], DONE, at(minute)))

    assert product.reported() == [f"orders_1@{at(minute)}" for minute in (1, 2, 3)]


def test_a_run_that_was_passed_while_we_were_down_is_reported(product: Product) -> None:
    product.restart()
    product.merge(("orders_1", [], DONE, at(1)))
    product.merge(("orders_1", [], BUSY, at(2)))

    assert product.reported() == [f"orders_1@{at(1)}"]


def test_a_probe_that_was_not_recorded_finds_a_passed_run_again(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    product.merge(("orders_1", [], BUSY, at(2)))
    product.probe.probe(list(product.watched.values()), at=AT)

    assert product.reported() == [f"orders_1@{at(1)}"]


def test_an_upstream_that_comes_later_gets_no_report_of_runs_before(product: Product) -> None:
    product.merge(("orders_1", ["x"], DONE, at(1)))
    product.merge(("orders_1", ["x"], BUSY, at(2)))
    product.reported()
    product.watch("x")

    assert (product.reported(), product.reported()) == ([], [])


def test_files_that_were_vacuumed_leave_what_the_table_holds_now(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    old = set(DeltaTable(product.path).file_uris())
    product.merge(("orders_1", [], DONE, at(2)))
    for file in old - set(DeltaTable(product.path).file_uris()):
        Path(file).unlink()

    assert product.reported() == [f"orders_1@{at(2)}"]


def test_a_table_created_again_goes_on_by_its_times(product: Product, tmp_path: Path) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    product.reported()
    product.path.rename(tmp_path / "old")
    product.write(("orders_1", [], DONE, at(1)))
    same = product.reported()
    product.merge(("orders_1", [], DONE, at(2)))

    assert (same, product.reported()) == ([], [f"orders_1@{at(2)}"])


# First sight


def test_a_sensor_that_is_finished_at_first_sight_is_an_event(product: Product) -> None:
    product.watch("other_1")

    assert product.reported() == [f"other_1@{at(0)}"]


def test_a_finished_sensor_as_baseline_is_silent(product: Product) -> None:
    product.watch("other_1", on_first_sight=FirstSight.BASELINE)

    assert (product.reported(), product.reported()) == ([], [])


# One reading for all

by_its_log = pytest.mark.parametrize("product", ["by its log"], indirect=True)
by_its_name = pytest.mark.parametrize("product", ["by its name"], indirect=True)


@by_its_log
def test_the_table_is_read_once_for_all_its_sensors(product: Product) -> None:
    product.watch("other_1")
    product.restart()
    product.reported()

    assert product.reader.count == 1


def test_all_sensors_of_a_table_are_one_group(product: Product) -> None:
    product.watch("other_1")

    assert {product.probe.group_of(each) for each in product.watched.values()} == {"sales.sensors"}


@by_its_log
def test_the_table_is_not_read_while_its_log_has_no_new_commit(product: Product) -> None:
    before = product.reader.count
    product.reported()

    assert product.reader.count == before


@by_its_log
def test_a_new_commit_is_read(product: Product) -> None:
    before = product.reader.count
    product.merge(("other_1", [], DONE, at(1)))
    product.reported()

    assert product.reader.count == before + 1


@by_its_name
def test_an_idle_sensor_of_a_workspace_costs_one_statement_for_its_table(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    product.watch("other_1")
    product.reported()
    product.restart()
    product.merge(("third_1", [], DONE, at(1)))

    assert product.reported() == []
    assert product.catalog.statements == ["rows"]


@by_its_name
def test_a_sensor_of_a_workspace_that_has_moved_costs_two_more(product: Product) -> None:
    product.catalog.statements.clear()
    product.merge(("orders_1", [], DONE, at(1)))
    product.reported()

    assert product.catalog.statements == ["rows", "history", "versions"]


@by_its_name
def test_of_many_versions_of_a_workspace_the_newest_are_read(product: Product) -> None:
    minutes = range(1, VERSIONS_PER_PROBE + 3)
    for minute in minutes:
        product.merge(("orders_1", [], DONE, at(minute)))

    reported = [f"orders_1@{at(minute)}" for minute in minutes[-VERSIONS_PER_PROBE:]]
    assert product.reported() == reported


@by_its_name
def test_a_commit_while_a_table_of_a_workspace_is_read_is_not_passed_over(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = product.catalog.newest

    def newest(table: str, count: int) -> list[HistoryRow]:
        found = history(table, count)
        product.merge(("orders_1", [], DONE, at(2)))
        product.merge(("orders_1", [], BUSY, at(3)))
        monkeypatch.undo()
        return found

    monkeypatch.setattr(product.catalog, "newest", newest)
    product.merge(("orders_1", [], DONE, at(1)))

    assert product.reported() == [f"orders_1@{at(1)}"]
    assert product.reported() == [f"orders_1@{at(2)}"]


@by_its_name
def test_a_path_of_a_workspace_is_sensed_by_its_log(product: Product) -> None:
    product.watch("by path")
    product.watched["by path"] = replace(
        product.watched.pop("by path"), sensor_id=f"{product.path}: other_1"
    )
    product.watched.pop("orders_1")
    product.restart()

    assert product.reported() == [f"other_1@{at(0)}"]
    assert product.catalog.statements == []


# Events


def test_an_event_states_which_sensor_and_what_is_available(product: Product) -> None:
    product.merge(("orders_1", ["sales.orders"], DONE, at(1)))
    [result] = product.results()
    [event] = result.events

    assert (event.table, event.table_format, event.snapshot_ts) == (
        "sales.sensors",
        TableFormat.SENSOR,
        1745442060000,
    )
    assert (event.tags["sensor_id"], json.loads(event.tags["assets"])) == (
        "orders_1",
        ["sales.orders"],
    )


def test_an_event_follows_the_one_before(product: Product) -> None:
    product.merge(("orders_1", [], DONE, at(1)))
    product.merge(("orders_1", [], DONE, at(2)))
    [result] = product.results()

    assert [event.prev_snapshot_id for event in result.events] == [None, f"orders_1@{at(1)}"]


def test_a_query_that_returns_no_row_makes_it_no_event(product: Product) -> None:
    product.watch("other_1", preprocess_query="select * from sensor_new_data")
    product.questions.returns_row = False

    assert (product.reported(), product.reported(), len(product.questions.asked)) == ([], [], 1)


# Failures


def failure_of(product: Product) -> str:
    return [result.failure or "" for result in product.results()][-1]


def test_a_name_that_the_table_does_not_have_is_a_failure(product: Product) -> None:
    product.watch("missing_1")

    assert failure_of(product) == (
        "The upstream sensor sales.sensors: missing_1 cannot be sensed:"
        " sales.sensors has no sensor and no asset missing_1."
    )


def test_a_sensor_taken_out_of_the_table_is_a_failure(product: Product) -> None:
    product.write(("other_1", [], DONE, at(0)))

    assert "has no sensor and no asset orders_1" in failure_of(product)


def test_a_table_with_other_columns_is_a_failure(product: Product) -> None:
    write_deltalake(
        product.path, pa.table({"sensor_id": ["x"]}), mode="overwrite", schema_mode="overwrite"
    )

    assert "it is not a sensors table: it has no column status" in failure_of(product)


@pytest.mark.parametrize(
    ("sensor_id", "parts"),
    [
        ("sales.sensors: orders_1", ("sales.sensors", "orders_1")),
        ("sales.sensors:orders_1", ("sales.sensors", "orders_1")),
        ("sales.sensors: s3://bucket/orders", ("sales.sensors", "s3://bucket/orders")),
        ("s3a://bucket/sensors: orders_1", ("s3a://bucket/sensors", "orders_1")),
        ("/data/sensors: sales: orders", ("/data/sensors", "sales: orders")),
    ],
)
def test_a_table_and_a_name_are_separated(sensor_id: str, parts: tuple[str, str]) -> None:
    assert split(sensor_id) == parts


@pytest.mark.parametrize("sensor_id", ["sales.sensors", "sales.sensors: ", ": x", "/data:x"])
def test_without_a_table_and_a_name_there_is_nothing_to_probe(sensor_id: str) -> None:
    with pytest.raises(ProbeFailedError, match="must name a table and a sensor"):
        split(sensor_id)

"""Real commits, written by Spark and Delta: each is an event, or it is silent."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from harness.errors import ProbeFailedError
from harness.platform.storage import LocalStorage, Storages
from harness.sense.new_rows import SparkNewRows
from harness.sense.pool import ProbePool
from harness.sense.sources.delta.history import SparkTableHistory, operation_by_name
from harness.sense.sources.delta.probe import DeltaProbe
from harness.sense.table_locations import SparkTableLocator
from harness.store.work_lists import Upstream
from tests.support.golden import AT, CountingStorage, FakeLocator, FakeNewRows, Watcher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Table = Callable[..., Path]


class Shop:
    """One Delta table, and a watcher of it that has seen it as it was created."""

    def __init__(self, spark: "SparkSession", path: Path) -> None:
        self.spark = spark
        self.path = path
        self.name = f"delta.`{path}`"
        self.watcher = Watcher(str(path))

    def create(self, more: str = "", columns: str = "id bigint, day string") -> "Shop":
        self.sql(created(more, columns))
        return self

    def copy(self, table: Path) -> "Shop":
        """Copy a table that Spark made once for tests that begin alike, or a later state of it."""
        shutil.copytree(table, self.path, dirs_exist_ok=True)
        return self

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(t=self.name))

    def saw(self, *statements: str) -> list[str]:
        """Run the statements, and return the operations that the watcher finds."""
        for statement in statements:
            self.sql(statement)
        return self.watcher.operations()


def created(more: str = "", columns: str = "id bigint, day string") -> str:
    return f"create table {{t}} ({columns}) using delta {more}"


@pytest.fixture(scope="module")
def table(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Run statements on a new table, or on a copy of one to start from; return its folder."""

    @cache
    def run(*statements: str, start: Path | None = None) -> Path:
        path = tmp_path_factory.mktemp("table") / "orders"
        if start is not None:
            shutil.copytree(start, path)
        for statement in statements:
            spark.sql(statement.format(t=f"delta.`{path}`"))
        return path

    return run


@pytest.fixture
def shop(spark: "SparkSession", tmp_path: Path) -> Shop:
    # VACUUM lists the table in as many tasks as this sets: 10,000 by default.
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    return Shop(spark, tmp_path / "orders")


#: In one file, so that a deletion of one row cannot take the whole file away.
ROWS = "insert into {t} select /*+ coalesce(1) */ * from values (1, 'mon'), (2, 'mon'), (3, 'tue')"
NO_VECTORS = "tblproperties ('delta.enableDeletionVectors' = 'false')"
VECTORS = "tblproperties ('delta.enableDeletionVectors' = 'true')"
MERGE = "merge into {t} t using (select {id} as id, 'wed' as day) s on t.id = s.id"
INSERTS = " when not matched then insert *"

CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "append": (NO_VECTORS, ["insert into {t} values (9, 'wed')"], ["APPEND"]),
    "delete by copying": (NO_VECTORS, ["delete from {t} where id = 1"], ["DELETE"]),
    "delete by vector": (VECTORS, ["delete from {t} where id = 1"], ["DELETE"]),
    "delete of all": (NO_VECTORS, ["delete from {t}"], ["DELETE"]),
    "delete of nothing": (NO_VECTORS, ["delete from {t} where id = 77"], []),
    "update by copying": (NO_VECTORS, ["update {t} set day = 'x' where id = 1"], ["UPDATE"]),
    "update by vector": (VECTORS, ["update {t} set day = 'x' where id = 1"], ["UPDATE"]),
    "merge that only inserts": (NO_VECTORS, [MERGE.replace("{id}", "9") + INSERTS], ["APPEND"]),
    "merge that changes": (
        NO_VECTORS,
        [MERGE.replace("{id}", "1") + " when matched then update set *" + INSERTS],
        ["UPDATE"],
    ),
    "overwrite": (NO_VECTORS, ["insert overwrite {t} values (5, 'thu')"], ["UPDATE"]),
    "replace by a query": (
        NO_VECTORS,
        ["create or replace table {t} using delta as select 7L as id, 'x' as day"],
        ["UPDATE"],
    ),
    "optimize": (NO_VECTORS, ["optimize {t}"], []),
    "vacuum": (NO_VECTORS, ["vacuum {t}"], []),
    "properties": (NO_VECTORS, ["alter table {t} set tblproperties ('team' = 'us')"], []),
    "a new column": (NO_VECTORS, ["alter table {t} add columns (more int)"], []),
    "restore of rows": (
        NO_VECTORS,
        ["delete from {t}", "restore table {t} to version as of 2"],
        ["DELETE", "APPEND"],
    ),
    "truncate": (NO_VECTORS, ["truncate table {t}"], ["DELETE"]),
}


@pytest.mark.parametrize(("options", "statements", "events"), CASES.values(), ids=CASES)
def test_what_spark_did_is_reported_as_it_is(
    shop: Shop, table: Table, options: str, statements: list[str], events: list[str]
) -> None:
    shop.copy(table(created(options), ROWS, "insert into {t} values (4, 'tue')")).saw()

    assert shop.saw(*statements) == events


def test_a_restore_of_vectors_is_no_deletion(shop: Shop, table: Table) -> None:
    shop.copy(table(created(VECTORS), ROWS, "delete from {t} where id = 1")).saw()

    assert shop.saw("restore table {t} to version as of 1") == ["UPDATE"]


def test_vectors_are_what_the_tests_of_vectors_are_about(shop: Shop, table: Table) -> None:
    shop.copy(table(created(VECTORS), ROWS, "delete from {t} where id = 1")).saw()

    assert "deletionVector" in (shop.path / "_delta_log" / f"{2:020d}.json").read_text()


def test_a_created_table_without_rows_is_no_event_and_its_first_rows_are(shop: Shop) -> None:
    shop.create()

    assert (shop.saw(), shop.saw(ROWS)) == ([], ["APPEND"])


def test_an_overwrite_of_one_partition_names_that_partition(shop: Shop) -> None:
    shop.create("partitioned by (day)").saw(ROWS)
    (
        shop.spark.createDataFrame([(8, "tue")], "id long, day string")
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", "day = 'tue'")
        .save(str(shop.path))
    )

    [event] = shop.watcher.probe_once().events

    assert (event.operation_type, event.partition, event.tags["overwrite"]) == (
        "UPDATE",
        ('"tue"',),
        "true",
    )


def test_column_mapped_partitions_keep_their_names_and_types(shop: Shop) -> None:
    columns = "id bigint, year int, month string"
    mapped = "partitioned by (year, month) tblproperties ('delta.columnMapping.mode' = 'name')"
    shop.create(mapped, columns).saw("insert into {t} values (1, 2024, '12')")
    shop.sql("alter table {t} rename column month to mon")
    shop.sql("insert into {t} values (2, 2025, '04')")

    [event] = shop.watcher.probe_once().events

    assert event.partition == ("2025", '"04"')


def test_a_streaming_epoch_without_data_is_silent(
    shop: Shop, spark: "SparkSession", tmp_path: Path
) -> None:
    shop.create(columns="value string")
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    source.mkdir()

    def run() -> None:
        rows = spark.readStream.schema("value string").text(str(source)).where("value <> 'none'")
        query = rows.writeStream.format("delta").option("checkpointLocation", str(checkpoint))
        query.trigger(availableNow=True).start(str(shop.path)).awaitTermination()

    (source / "a.txt").write_text("some\n")
    run()
    with_data = shop.watcher.operations()
    (source / "b.txt").write_text("none\n")
    run()

    assert (with_data, shop.watcher.operations()) == (["APPEND"], [])


def test_checkpoints_and_compactions_in_the_folder_are_no_new_data(shop: Shop) -> None:
    shop.create("tblproperties ('delta.checkpointInterval' = '2')").saw(ROWS, ROWS, ROWS)
    checkpoints = list((shop.path / "_delta_log").glob("*.checkpoint*.parquet"))

    assert (len(checkpoints) > 0, shop.saw()) == (True, [])


def test_first_sight_of_a_table_known_only_by_its_checkpoint_is_one_event(shop: Shop) -> None:
    shop.create("tblproperties ('delta.checkpointInterval' = '2')")
    for _ in range(4):
        shop.sql(ROWS)
    for version in range(4):
        (shop.path / "_delta_log" / f"{version:020d}.json").unlink()

    [event] = shop.watcher.probe_once().events

    assert (event.snapshot_id, event.operation_type, event.tags["first_sight"]) == (
        "4",
        "UPDATE",
        "true",
    )


#: What a checkpoint is made of, how to have it so, and what its files are called.
CHECKPOINTS = {
    "classic": ("classic", None, "*.checkpoint.parquet"),
    "of several parts": ("classic", 2, "*.checkpoint.0000000002.*.parquet"),
    "v2": ("v2", None, "*.checkpoint.????????-*"),
    "v2 with sidecars": ("v2", 2, "_sidecars/*.parquet"),
}


@pytest.fixture(params=CHECKPOINTS)
def checkpointed(shop: Shop, table: Table, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A table with a checkpoint every second commit, and a watcher that read two of its seven."""
    policy, part_size, files = CHECKPOINTS[request.param]
    setting = "spark.databricks.delta.checkpoint.partSize"
    limit = [] if part_size is None else [f"set {setting} = {part_size}"]
    properties = f"'delta.checkpointInterval' = '2', 'delta.checkpointPolicy' = '{policy}'"
    first = table(*limit, created(f"tblproperties ({properties})"), ROWS)
    shop.copy(first).saw()
    shop.copy(table(*[ROWS] * 5, start=first))
    yield shop
    shop.spark.conf.unset(setting)
    assert list((shop.path / "_delta_log").glob(files))


def test_a_log_cleaned_past_us_is_one_event_of_the_same_life(checkpointed: Shop) -> None:
    for version in range(5):
        (checkpointed.path / "_delta_log" / f"{version:020d}.json").unlink()

    result = checkpointed.watcher.probe_once()

    reported = [(event.snapshot_id, event.prev_snapshot_id) for event in result.events]
    assert (result.failure, reported) == (None, [("6", "1")])
    assert result.gap is not None and "versions 2 to 4" in result.gap
    assert checkpointed.saw(ROWS) == ["APPEND"]


def test_a_table_known_only_by_its_checkpoint_is_seen(checkpointed: Shop) -> None:
    for version in range(6):
        (checkpointed.path / "_delta_log" / f"{version:020d}.json").unlink()

    assert Watcher(str(checkpointed.path)).operations() == ["UPDATE"]


def test_after_a_sleep_beyond_the_retention_of_the_log_there_is_one_event_and_all_goes_on(
    shop: Shop,
) -> None:
    shop.create("tblproperties ('delta.checkpointInterval' = '5')").saw(ROWS)
    for _ in range(12):
        shop.sql(ROWS)
    forty_days_ago = time.time() - 40 * 86_400
    for file in (shop.path / "_delta_log").iterdir():
        os.utime(file, (forty_days_ago, forty_days_ago))
    for _ in range(8):
        shop.sql(ROWS)
    # When Delta cleans by itself is not tested here.
    DeltaTable(str(shop.path)).cleanup_metadata()
    kept = sorted((shop.path / "_delta_log").glob("0*.json"))
    assert int(kept[0].stem) > 2, "the log has not been cleaned"
    result = shop.watcher.probe_once()

    [event] = result.events
    assert (
        result.gap is not None and f"versions 2 to {int(kept[0].stem) - 1} are gone" in result.gap
    )
    assert (event.operation_type, event.snapshot_id, event.tags["gap"]) == ("UPDATE", "21", "true")
    assert shop.saw() == []
    assert shop.saw(ROWS, "delete from {t}") == ["APPEND", "DELETE"]


def test_in_commit_timestamps_are_the_time_of_the_snapshot(shop: Shop) -> None:
    shop.create("tblproperties ('delta.enableInCommitTimestamps' = 'true')").saw()
    shop.sql(ROWS)
    os.utime(shop.path / "_delta_log" / f"{1:020d}.json", (1, 1))

    [event] = shop.watcher.probe_once().events

    assert event.snapshot_ts is not None and event.snapshot_ts > 1_700_000_000_000


@pytest.fixture
def many(shop: Shop, tmp_path: Path) -> Iterator[list[Upstream]]:
    shop.create().saw(ROWS)
    yield [
        Upstream(
            upstream_id=f"u{number}",
            source="delta_table",
            sensor_id=str(shop.path),
            read_type="batch",
        )
        for number in range(200)
    ]


def test_an_idle_pass_runs_no_spark_job_and_calls_storage_twice_a_table(
    spark: "SparkSession", many: list[Upstream], job_id: Callable[[], int]
) -> None:
    from dataclasses import replace

    storage = CountingStorage(LocalStorage())
    storages = Storages(storage, storage)
    probe = DeltaProbe(
        storages,
        SparkTableLocator(lambda: spark),
        SparkNewRows(lambda: spark),
        SparkTableHistory(lambda: spark),
    )
    probe_pool = ProbePool({"delta_table": probe})
    results = probe_pool.probe_all(many, at=AT)
    idle = [
        replace(one, position=result.position) for one, result in zip(many, results, strict=True)
    ]
    storage.calls.clear()

    before = job_id()
    probe_pool.probe_all(idle, at=AT)
    after = job_id()

    assert (after - before, len(storage.calls)) == (1, 2 * len(many))


@pytest.fixture
def job_id(spark: "SparkSession") -> Callable[[], int]:
    """Run a job of one's own and return its id."""

    def run() -> int:
        context = spark.sparkContext
        context.setJobGroup("sentinel", "sentinel")
        context.parallelize([1], 1).count()
        jobs = context.statusTracker().getJobIdsForGroup("sentinel")
        context.setLocalProperty("spark.jobGroup.id", "")
        return max(jobs)

    return run


class TestByName:
    """Tables that are registered in the catalog."""

    @pytest.fixture
    def table(self, spark: "SparkSession") -> Iterator[str]:
        spark.sql("create database if not exists sensed")
        spark.sql("create table sensed.orders (id bigint) using delta")
        spark.sql("insert into sensed.orders values (1)")
        yield "sensed.orders"
        spark.sql("drop table if exists sensed.orders")

    @pytest.fixture
    def watcher(self, spark: "SparkSession", table: str) -> Watcher:
        watcher = Watcher(table)
        watcher.locator = SparkTableLocator(lambda: spark)  # type: ignore[assignment]
        watcher.restart()
        return watcher

    @pytest.mark.parametrize("prefix", ["", "spark_catalog."])
    def test_a_table_is_found_by_its_name(
        self, spark: "SparkSession", table: str, prefix: str
    ) -> None:
        path = SparkTableLocator(lambda: spark).locate(prefix + table)

        assert (Path(path) / "_delta_log").is_dir()

    def test_an_event_carries_the_name_that_the_operator_wrote(self, watcher: Watcher) -> None:
        assert [event.table for event in watcher.probe_once().events] == ["sensed.orders"]

    def test_a_name_that_does_not_exist_is_a_failure_in_one_sentence(
        self, spark: "SparkSession"
    ) -> None:
        watcher = Watcher("sensed.nothing")
        watcher.locator = SparkTableLocator(lambda: spark)  # type: ignore[assignment]
        watcher.restart()

        assert watcher.probe_once().failure == (
            "The Delta table sensed.nothing cannot be sensed: "
            "the table sensed.nothing does not exist; create it, or correct its name."
        )

    def test_an_idle_probe_requests_nothing_from_the_catalog(self, watcher: Watcher) -> None:
        watcher.probe_once()
        watcher.locator = FakeLocator()
        watcher.restart()

        assert watcher.probe_once().failure is None

    def test_a_table_replaced_by_name_goes_on_in_the_same_life(
        self, spark: "SparkSession", watcher: Watcher
    ) -> None:
        [first] = watcher.probe_once().events
        spark.sql("create or replace table sensed.orders (id bigint, more int) using delta")

        [event] = watcher.probe_once().events

        assert (event.operation_type, event.tags["replaced"], event.tags["schema_changed"]) == (
            "DELETE",
            "true",
            "true",
        )
        assert (event.lineage, event.prev_snapshot_id) == (first.lineage, first.snapshot_id)

    def test_a_tables_history_is_read_by_name(self, spark: "SparkSession", table: str) -> None:
        newest, oldest = SparkTableHistory(lambda: spark).newest(table, 5)

        assert (newest.version, operation_by_name(newest)) == (1, "APPEND")
        assert (oldest.version, operation_by_name(oldest)) == (0, None)

    @pytest.mark.parametrize(
        ("table", "reason"),
        [("nothing", "the table does not exist"), ("plain", "Spark cannot read its history")],
    )
    def test_a_history_that_cannot_be_read_is_one_sentence(
        self, spark: "SparkSession", table: str, reason: str
    ) -> None:
        spark.sql("create table if not exists sensed.plain (id bigint) using parquet")

        with pytest.raises(ProbeFailedError, match=reason) as raised:
            SparkTableHistory(lambda: spark).newest(f"sensed.{table}", 1)

        assert "\n" not in str(raised.value)

    def test_a_table_dropped_and_created_again_is_reported_as_recreated(
        self, spark: "SparkSession", watcher: Watcher
    ) -> None:
        watcher.probe_once()
        spark.sql("drop table sensed.orders")
        gone = watcher.probe_once().failure
        spark.sql("create table sensed.orders (id bigint) using delta")
        spark.sql("insert into sensed.orders values (5)")

        [event] = watcher.probe_once().events

        assert gone is not None
        assert (event.tags["recreated"], event.prev_snapshot_id) == ("true", None)


def test_rows_are_not_requested_without_a_query_or_key(shop: Shop) -> None:
    shop.create().saw(ROWS)

    assert isinstance(shop.watcher.rows, FakeNewRows)
    assert shop.watcher.rows.asked == []

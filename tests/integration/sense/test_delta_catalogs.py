"""Delta tables that only their catalog locates: where they are, and what their newest commit is."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ProbeFailedError
from harness.sense.new_rows import SparkNewRows
from harness.sense.sources.delta.history import SparkTableHistory
from harness.sense.table_locations import SparkTableLocator, described_location
from tests.support.golden import AT, Watcher
from tests.support.services.commit_catalog import create_managed_table, drop_managed_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def watch(spark: "SparkSession", sensor_id: str, **more: str) -> Watcher:
    """Return a watcher that queries Spark for locations, history and new rows."""
    watcher = Watcher(sensor_id, **more)  # type: ignore[arg-type]
    watcher.locator = SparkTableLocator(lambda: spark)  # type: ignore[assignment]
    watcher.history = SparkTableHistory(lambda: spark)  # type: ignore[assignment]
    watcher.rows = SparkNewRows(lambda: spark)  # type: ignore[assignment]
    watcher.restart()
    return watcher


@pytest.fixture(scope="module")
def shop(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A schema with one of each: a Delta table, a view, a temporary view, a Parquet table."""
    spark.sql("drop database if exists shop cascade")
    spark.sql("create database shop")
    spark.sql("create table shop.orders (id bigint) using delta")
    spark.sql("insert into shop.orders values (1)")
    spark.sql("create view shop.open_orders as select * from shop.orders")
    spark.sql("create table shop.old_orders (id bigint) using parquet")
    place = tmp_path_factory.mktemp("other") / "derby"
    spark.conf.set(
        "spark.sql.catalog.derby",
        "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    )
    spark.conf.set("spark.sql.catalog.derby.url", f"jdbc:derby:;databaseName={place};create=true")
    spark.conf.set("spark.sql.catalog.derby.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
    yield "shop"
    spark.sql("drop database shop cascade")


# Names


GONE = "does not exist; create it, or correct its name"
NO_TABLES = {
    "a missing table": ("shop.nothing", f"the table shop.nothing {GONE}"),
    "a missing schema": ("nowhere.orders", f"the table nowhere.orders {GONE}"),
    "a missing catalog": (
        "nobody.shop.orders",
        "the catalog nobody does not exist in this Spark session; add it in profiles.yml, or correct"
        " the table's name",
    ),
    "a missing table of another catalog": (
        "derby.shop.nothing",
        f"the table derby.shop.nothing {GONE}",
    ),
    "a view": (
        "shop.open_orders",
        "shop.open_orders is a view, which has no log; name the tables that it reads",
    ),
    "a view by three parts": (
        "spark_catalog.shop.open_orders",
        "spark_catalog.shop.open_orders is a view, which has no log; name the tables that it reads",
    ),
    "a Parquet table": (
        "shop.old_orders",
        "shop.old_orders is a table of parquet, not of Delta",
    ),
}


@pytest.mark.parametrize(("name", "reason"), NO_TABLES.values(), ids=NO_TABLES)
def test_a_name_that_is_no_delta_table_is_a_failure_in_one_sentence(
    spark: "SparkSession", shop: str, name: str, reason: str
) -> None:
    failure = watch(spark, name).probe_once().failure

    assert failure == f"The Delta table {name} cannot be sensed: {reason}."


@pytest.mark.parametrize(
    "name", ["shop.orders", "SHOP.Orders", "`shop`.`orders`", "spark_catalog.shop.orders"]
)
def test_a_name_is_found_however_it_is_written(spark: "SparkSession", shop: str, name: str) -> None:
    assert watch(spark, name).operations() == ["APPEND"]


def test_a_name_without_a_schema_is_one_of_the_current_schema(
    spark: "SparkSession", shop: str
) -> None:
    spark.sql("use shop")
    try:
        assert watch(spark, "orders").operations() == ["APPEND"]
    finally:
        spark.sql("use default")


def test_two_parts_are_of_the_current_catalog(spark: "SparkSession", shop: str) -> None:
    spark.sql("use derby")
    try:
        with pytest.raises(ProbeFailedError, match=r"the table shop\.orders does not exist"):
            SparkTableLocator(lambda: spark).locate("shop.orders")
    finally:
        spark.sql("use spark_catalog.default")


def test_a_description_names_the_same_place_as_the_session_catalog(
    spark: "SparkSession", shop: str
) -> None:
    reported = described_location(spark, "spark_catalog.shop.orders")

    assert reported == SparkTableLocator(lambda: spark).locate("shop.orders")


def test_a_view_has_no_place_in_its_description_either(spark: "SparkSession", shop: str) -> None:
    with pytest.raises(ProbeFailedError, match="is a view"):
        described_location(spark, "spark_catalog.shop.open_orders")


def test_a_session_that_runs_is_awake(spark: "SparkSession") -> None:
    assert SparkTableLocator(lambda: spark).is_awake()


def test_a_name_that_is_elsewhere_now_is_followed_though_its_old_folder_stays(
    spark: "SparkSession", shop: str, tmp_path: Path
) -> None:
    def create(folder: str, row: int) -> None:
        spark.sql(
            f"create table shop.outside (id bigint) using delta location '{tmp_path / folder}'"
        )
        spark.sql(f"insert into shop.outside values ({row})")

    create("old", 1)
    watcher = watch(spark, "shop.outside")
    watcher.probe_once()
    spark.sql("drop table shop.outside")
    watcher.at = AT + timedelta(minutes=16)
    dropped = watcher.probe_once().failure
    create("new", 2)
    [event] = watcher.probe_once().events
    spark.sql("insert into shop.outside values (3)")

    assert dropped is not None and "the table shop.outside does not exist" in dropped
    assert (tmp_path / "old" / "_delta_log").is_dir()
    assert (event.tags["recreated"], watcher.operations()) == ("true", ["APPEND"])
    spark.sql("drop table shop.outside")


# Commits that a catalog ratifies


class Managed:
    """A table whose commits its catalog has, and a watcher that has seen it empty."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark
        self.create()
        self.watcher = watch(spark, "shop.managed")
        assert self.watcher.operations() == []

    def create(self) -> None:
        create_managed_table(self.spark, "shop.managed", "id bigint")

    def append(self, *ids: int) -> None:
        for each in ids:
            self.spark.sql(f"insert into shop.managed values ({each})")

    @property
    def log(self) -> Path:
        return Path(SparkTableLocator(lambda: self.spark).locate("shop.managed")) / "_delta_log"


@pytest.fixture
def managed(spark: "SparkSession", shop: str) -> Iterator[Managed]:
    yield Managed(spark)
    drop_managed_table(spark, "shop.managed")


def test_commits_that_only_the_catalog_has_are_each_reported_once(managed: Managed) -> None:
    managed.append(1, 2)
    published = [path.name for path in managed.log.glob("0*.json")]
    staged = list((managed.log / "_staged_commits").glob("*.json"))

    reported = managed.watcher.operations()

    assert (published, len(staged)) == ([f"{0:020d}.json"], 2)
    assert (reported, managed.watcher.operations()) == (["APPEND", "APPEND"], [])


def test_a_staged_commit_that_was_never_ratified_is_no_new_data(managed: Managed) -> None:
    managed.append(1)
    managed.watcher.probe_once()
    [ratified] = (managed.log / "_staged_commits").glob("*1.*.json")
    rejected = ratified.with_name(f"{2:020d}.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    rejected.write_bytes(ratified.read_bytes())

    assert managed.watcher.operations() == []


def test_what_the_catalog_publishes_later_is_not_reported_again(managed: Managed) -> None:
    managed.append(1, 2)
    managed.watcher.probe_once()
    for number in (1, 2):
        [staged] = (managed.log / "_staged_commits").glob(f"{number:020d}.*.json")
        (managed.log / f"{number:020d}.json").write_bytes(staged.read_bytes())

    assert managed.watcher.operations() == []


@pytest.mark.parametrize("appends", [0, 1, 2])
def test_a_managed_table_created_again_is_a_new_life_whatever_its_version(
    managed: Managed, appends: int
) -> None:
    managed.append(1)
    [old] = managed.watcher.probe_once().events
    drop_managed_table(managed.spark, "shop.managed")
    gone = managed.watcher.probe_once().failure
    managed.create()
    managed.append(*range(appends))

    events = managed.watcher.probe_once().events

    assert gone is not None
    assert [event.tags["recreated"] for event in events] == ["true"] * min(appends, 1)
    assert old.id_at("u") not in [event.id_at("u") for event in events]


def test_a_managed_table_by_its_path_is_a_failure_that_names_the_remedy(
    spark: "SparkSession", managed: Managed
) -> None:
    failure = watch(spark, str(managed.log.parent)).probe_once().failure

    assert failure is not None and failure.endswith(
        "its commits are with a catalog: name it as the catalog does, not by its path."
    )

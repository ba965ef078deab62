"""What Spark does to tables of the embedded metastore is sensed, partition by partition."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.events.event import ChangeEvent, Operation
from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources
from harness.sense.sources.hive.metastore import SparkHiveCatalog
from harness.store.work_lists import Upstream
from tests.support.watching import Watching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {
    "of Spark": "(id bigint, day date, hour int) using parquet partitioned by (day, hour)",
    "of Hive": "(id bigint) partitioned by (day date, hour int) stored as parquet",
}


@pytest.fixture(scope="module")
def probe(spark: "SparkSession") -> Probe:
    services = ProbeServices(session=lambda: spark, trigger_files_root="")
    return known_sources().probes(services)["hive_table"]


@pytest.fixture(scope="module")
def schema(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    name = f"hive{time.monotonic_ns()}"
    spark.sql(f"create schema {name} location '{tmp_path_factory.mktemp('hive')}'")
    spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    return name


class Orders(Watching):
    """A table, and a probe of it."""

    def __init__(self, spark: "SparkSession", probe: Probe, name: str) -> None:
        self.spark, self.probe, self.name = spark, probe, name
        self.upstream = Upstream(
            upstream_id="u", source="hive_table", sensor_id=name, read_type="batch"
        )

    def sql(self, *statements: str) -> "Orders":
        for statement in statements:
            self.spark.sql(statement.format(t=self.name))
        return self

    def reported(self) -> Sequence[ChangeEvent]:
        """Probe twice, as is needed for files that may still be written."""
        events: list[ChangeEvent] = []
        for _ in range(2):
            result = self.probe_once()
            assert result.failure is None, result.failure
            events += result.events
        return events

    def asking(self, query: str) -> "Orders":
        self.upstream = replace(self.upstream, preprocess_query=query)
        return self


@pytest.fixture(params=KINDS)
def orders(request: Any, spark: "SparkSession", probe: Probe, schema: str) -> Orders:
    """A table of two days, probed; once of Spark's own kind and once of Hive's."""
    orders = Orders(spark, probe, f"{schema}.t{time.monotonic_ns()}")
    orders.sql(f"create table {{t}} {KINDS[request.param]}")
    orders.sql(
        "insert into {t} values (1, date '2025-04-01', 1), (2, date '2025-04-02', 1)",
    )
    orders.reported()
    return orders


def seen(events: Sequence[ChangeEvent]) -> list[tuple[Operation, tuple[str, ...] | None]]:
    return [(event.operation_type, event.partition) for event in events]


THIRD = "insert into {t} values (3, date '2025-04-03', 2)"
STATEMENTS: dict[str, tuple[str, Operation, tuple[str, str]]] = {
    "a new partition": (THIRD, Operation.APPEND, ('"2025-04-03"', '"2"')),
    "an append": (
        "insert into {t} values (4, date '2025-04-01', 1)",
        Operation.UPDATE,
        ('"2025-04-01"', '"1"'),
    ),
    "an overwrite in place": (
        "insert overwrite {t} partition (day = '2025-04-02', hour = 1) values (9)",
        Operation.UPDATE,
        ('"2025-04-02"', '"1"'),
    ),
    "a drop": (
        "alter table {t} drop partition (day = '2025-04-02', hour = 1)",
        Operation.DELETE,
        ('"2025-04-02"', '"1"'),
    ),
}


@pytest.mark.parametrize("case", STATEMENTS)
def test_each_change_is_an_event_of_its_partition(orders: Orders, case: str) -> None:
    statement, operation, partition = STATEMENTS[case]
    orders.sql(statement)

    assert seen(orders.reported()) == [(operation, partition)]


def test_nothing_is_found_where_nothing_happened(orders: Orders) -> None:
    cursor = orders.upstream.position

    assert (orders.reported(), orders.upstream.position) == ([], cursor)


def test_a_partition_dropped_and_added_again_is_an_update(orders: Orders) -> None:
    orders.sql(
        "alter table {t} drop partition (day = '2025-04-02', hour = 1)",
        "insert into {t} values (2, date '2025-04-02', 1)",
    )

    assert seen(orders.reported()) == [(Operation.UPDATE, ('"2025-04-02"', '"1"'))]


def test_properties_and_statistics_are_silent(orders: Orders) -> None:
    orders.sql(
        "alter table {t} set tblproperties ('team' = 'sales')",
        "analyze table {t} compute statistics",
    )

    assert orders.reported() == []


def test_a_partition_elsewhere_is_found_there(orders: Orders, tmp_path: Path) -> None:
    orders.sql(THIRD)
    orders.reported()
    orders.sql(
        f"alter table {{t}} add partition (day = '2025-04-05', hour = 5) location '{tmp_path}/ö %41'"
    )
    silent = orders.reported()
    orders.sql("insert into {t} values (5, date '2025-04-05', 5)")

    assert (silent, seen(orders.reported())) == ([], [(Operation.APPEND, ('"2025-04-05"', '"5"'))])


def test_a_partition_is_found_elsewhere_though_its_old_folder_stays(
    orders: Orders, tmp_path: Path
) -> None:
    orders.sql(
        f"alter table {{t}} partition (day = '2025-04-01', hour = 1) set location '{tmp_path}'"
    )
    catalog = SparkHiveCatalog(lambda: orders.spark)
    table, names = catalog.table(orders.name), catalog.partitions(orders.name)

    assert catalog.elsewhere(orders.name, table, names) == {"day=2025-04-01/hour=1": str(tmp_path)}


def test_a_folder_counts_when_it_is_registered(orders: Orders) -> None:
    orders.sql(THIRD)
    orders.reported()
    location = SparkHiveCatalog(lambda: orders.spark).table(orders.name).location
    Path(location, "day=2025-04-03", "hour=2").rename(Path(location, "day=2025-04-03", "hour=3"))
    orders.reported()
    outside = orders.reported()
    orders.sql("msck repair table {t}")

    assert (outside, seen(orders.reported())) == ([], [(Operation.APPEND, ('"2025-04-03"', '"3"'))])


def test_a_table_dropped_and_created_again_is_reported(orders: Orders) -> None:
    orders.sql("drop table {t}")
    # The metastore counts in seconds.
    time.sleep(1.1)
    orders.sql("create table {t} using parquet partitioned by (day) as select 1 as id, 'a' as day")

    assert [event.tags.get("recreated") for event in orders.reported()] == ["true"]


def test_a_query_is_given_the_rows_of_new_partitions(orders: Orders) -> None:
    orders.asking("select 1 from sensor_new_data having collect_list(id) = array(3)").sql(THIRD)

    assert len(orders.reported()) == 1


def test_a_query_is_given_the_rows_of_a_partition_written_again(orders: Orders) -> None:
    orders.asking("select 1 from sensor_new_data having collect_list(id) = array(9)").sql(
        STATEMENTS["an overwrite in place"][0]
    )

    assert len(orders.reported()) == 1


def test_a_null_partition_is_reported_and_queried(orders: Orders) -> None:
    orders.asking("select 1 from sensor_new_data having collect_list(id) = array(8)").sql(
        "insert into {t} values (8, null, 1)"
    )

    assert seen(orders.reported()) == [(Operation.APPEND, ("null", '"1"'))]


@pytest.fixture
def plain(spark: "SparkSession", probe: Probe, schema: str) -> Callable[[str], Orders]:
    def make(columns: str) -> Orders:
        orders = Orders(spark, probe, f"{schema}.t{time.monotonic_ns()}")
        return orders.sql(f"create {columns.format(t=orders.name)}")

    return make


def test_a_table_without_partitions_is_reported(plain: Callable[[str], Orders]) -> None:
    orders = plain("table {t} (id bigint) stored as parquet")
    orders.reported()
    orders.sql("insert into {t} values (1)")

    assert seen(orders.reported()) == [(Operation.APPEND, None)]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("table {t} (id bigint) using delta", "it is a table of delta; sense it as delta_table"),
        ("view {t} as select 1 as id", "it is a view"),
    ],
)
def test_a_table_of_another_kind_is_refused(
    plain: Callable[[str], Orders], statement: str, reason: str
) -> None:
    assert reason in (plain(statement).probe_once().failure or "")


def test_a_table_that_is_missing_is_named(spark: "SparkSession", probe: Probe, schema: str) -> None:
    failure = Orders(spark, probe, f"{schema}.missing").probe_once().failure

    assert failure == (
        f"The Hive table {schema}.missing cannot be sensed: the table {schema}.missing does not"
        " exist in the metastore; create it, or correct its name."
    )

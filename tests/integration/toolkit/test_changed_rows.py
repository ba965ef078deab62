"""The rows that changed between two events, of real tables of every format."""

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from examples.incremental.count_rows import count_rows
from harness.errors import ConfigurationError, ProbeFailedError
from harness.sense.probe import Probe
from harness.store.work_lists import Upstream
from harness.toolkit.changes import ChangeEvent, changed_rows, read
from tests.conftest import PROJECT
from tests.support.changing_tables import AT, DeltaOrders, IcebergOrders, Story, as_event, told
from tests.support.services.iceberg import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ProbeOf = Callable[[str], Probe]

FEED = {"delta.enableChangeDataFeed": "true"}
A, B, C, D = (1, "a"), (2, "b"), (3, "c"), (4, None)

DELTA_STORIES = {
    "appends, and maintenance between them": Story(
        steps=("append 3c", "compact", "append 4- 3c"), insert=[C, C, D]
    ),
    "appends to partitions": Story(
        steps=("append 3c 4-", "append 2b"), insert=[C, D, B], properties={"partitioned": ""}
    ),
    "appends to a table whose columns have other names in its files": Story(
        steps=("insert into {t} values (3, 'c')",),
        insert=[C],
        options="tblproperties ('delta.columnMapping.mode' = 'name')",
        reason="its files cannot be read without its log",
    ),
    "a change data feed": Story(
        steps=("append 3c 3c", "remove id = 3", "append 3c", "remove id = 1"),
        insert=[C],
        delete=[A],
        properties=FEED,
    ),
    "a change data feed and deletion vectors": Story(
        steps=(
            "update {t} set day = 'x' where id = 1",
            "merge into {t} using (select 2 as id, 'y' as day union all select 3, 'c') as n"
            " on {t}.id = n.id when matched then update set day = n.day when not matched then"
            " insert *",
        ),
        insert=[(1, "x"), (2, "y"), C],
        delete=[A, B],
        options="tblproperties ('delta.enableDeletionVectors' = 'true',"
        " 'delta.enableChangeDataFeed' = 'true')",
    ),
    "a change data feed that was switched on too late": Story(
        steps=(
            "remove id = 1",
            "alter table {t} set tblproperties ('delta.enableChangeDataFeed' = 'true')",
            "append 3c",
        ),
        insert=[C],
        delete=[A],
        reason="its change data feed does not cover that",
    ),
    "a change data feed whose files are gone": Story(
        steps=("remove id = 1", "append 3c", "lose _change_data", "vacuum"),
        insert=[B, C],
        properties=FEED,
        reason="was removed by VACUUM, and",
        is_complete=True,
    ),
    "deletions without a feed": Story(
        steps=("append 2b 2b", "remove id = 1"),
        insert=[B, B],
        delete=[A],
        reason="rows were changed or deleted",
    ),
    "a version that no event tells of": Story(
        steps=("append 3c", "append 4-", "append 2b"),
        lost=(1,),
        insert=[B, C, D],
        reason="no event covers version 2",
    ),
    "an overwrite": Story(
        steps=("append 3c", "replace 2b 4-"),
        insert=[D],
        delete=[A],
        reason="rows were overwritten in 2",
    ),
    "appended files that are gone, though their rows are not": Story(
        steps=("append 3c", "append 4-", "compact", "vacuum"),
        insert=[A, B, C, D],
        reason="was removed by VACUUM",
        is_complete=True,
    ),
    "a log that was cleaned": Story(
        steps=("append 3c", "append 4-", "clean 1"),
        insert=[A, B, C, D],
        reason="version 1 is not in its log any more",
        is_complete=True,
    ),
}


@pytest.mark.parametrize("story", DELTA_STORIES.values(), ids=DELTA_STORIES)
def test_what_changed_in_a_delta_table_is_reported(
    spark: "SparkSession", tmp_path: Path, story: Story
) -> None:
    orders = DeltaOrders(spark, tmp_path / "orders", story)

    story.check(changed_rows(spark, orders.events(story)))


def test_rows_that_went_and_came_with_one_key_are_updates(
    spark: "SparkSession", tmp_path: Path
) -> None:
    story = Story(steps=("remove id = 1 or day = 'b'", "append 1x 3c"), properties=FEED)
    orders = DeltaOrders(spark, tmp_path / "orders", story)
    answer = changed_rows(spark, orders.events(story), keys="id")

    assert set(told(answer.frame)) == {
        ("update_preimage", *A),
        ("update_postimage", 1, "x"),
        ("delete", *B),
        ("insert", *C),
    }
    assert sorted(map(tuple, answer.rows().collect())) == [(1, "x"), C]


def test_a_new_column_is_compared_with_nothing_in_the_old_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    story = Story(steps=("append 3c",))
    orders = DeltaOrders(spark, tmp_path / "orders", story)
    events = orders.events(story)
    orders.sql("alter table {t} add columns (price map<string, int>)")
    orders.sql("insert into {t} values (4, null, map('eur', 7))")
    events += map(as_event, orders.watcher.probe_once().events)
    # Not all producers report that the schema changed, but the log does.
    answer = changed_rows(spark, [replace(event, tags={}) for event in events])

    assert "the schema changed on the way" in (answer.reason or "")
    kinds = answer.frame.selectExpr("_change_type", "id", "price['eur']").collect()
    assert sorted(map(tuple, kinds)) == [("insert", 3, None), ("insert", 4, 7)]


def test_a_table_that_took_the_place_of_another_is_read_whole(
    spark: "SparkSession", tmp_path: Path
) -> None:
    story = Story(steps=("append 3c", "append 4-"))
    events = DeltaOrders(spark, tmp_path / "one", story).events(story)
    other = DeltaOrders(spark, tmp_path / "another", story)
    other.events(story)
    answer = changed_rows(spark, events, read_as=str(other.path))

    assert answer.is_complete
    assert "another one than when the events came" in (answer.reason or "")


def test_a_delta_table_is_known_by_name_and_what_only_maintains_it_is_nothing(
    spark: "SparkSession", tmp_path: Path
) -> None:
    story = Story(steps=("append 3c", "compact"))
    orders = DeltaOrders(spark, tmp_path / "orders", story)
    [event] = orders.events(story)
    name = f"default.t{time.monotonic_ns()}"
    spark.sql(f"create table {name} using delta location '{orders.path}'")
    compacted = replace(event, table=name, snapshot_id="2", prev_snapshot_id="1")
    answer = changed_rows(spark, [compacted], f"spark_catalog.{name.upper()}")

    assert answer.is_nothing
    assert answer.frame.columns == ["id", "day", "_change_type"]
    both = changed_rows(spark, [compacted, replace(event, table=name)])
    assert (told(both.frame), both.is_incremental) == ({("insert", *C): 1}, True)


def test_a_registered_event_that_follows_maintenance_is_no_gap(
    spark: "SparkSession", tmp_path: Path
) -> None:
    story = Story(steps=("append 3c", "compact", "append 4-"))
    last, first = DeltaOrders(spark, tmp_path / "orders", story).events(story)
    answer = changed_rows(spark, [first, replace(last, prev_snapshot_id="2")])

    assert answer.is_incremental
    assert told(answer.frame) == {("insert", *C): 1, ("insert", *D): 1}


def test_a_key_that_is_no_column_and_a_column_named_as_ours_are_refused(
    spark: "SparkSession", tmp_path: Path
) -> None:
    story = Story(steps=("append 3c",))
    events = DeltaOrders(spark, tmp_path / "orders", story).events(story)
    with pytest.raises(
        ConfigurationError, match="the key no is not a column of the table; it has id"
    ):
        changed_rows(spark, events, keys=["no"])

    odd = tmp_path / "odd"
    write_deltalake(odd, pa.table({"_change_type": ["a"]}))
    first = replace(events[0], table=str(odd), snapshot_id="0", prev_snapshot_id=None, tags={})
    with pytest.raises(ConfigurationError, match="a column _change_type, a name that its changes"):
        changed_rows(spark, [first])


def test_events_of_several_tables_need_the_name_of_one(spark: "SparkSession") -> None:
    events = [as_event_of(name) for name in ("sales.orders", "sales.returns")]
    with pytest.raises(ConfigurationError, match=r"of the tables sales\.orders, sales\.returns"):
        changed_rows(spark, events)

    assert changed_rows(spark, [], "/no/such/table").is_nothing
    with pytest.raises(ProbeFailedError, match=r"the table sales\.orders does not exist"):
        changed_rows(spark, events[:1])
    with pytest.raises(ProbeFailedError, match=r"/no/such/table cannot be read: .*PATH_NOT_FOUND"):
        changed_rows(spark, [as_event_of("/no/such/table")])


def as_event_of(table: str) -> ChangeEvent:
    return ChangeEvent.from_json(
        {"table": table, "table_format": "DELTA", "operation_type": "APPEND", "snapshot_id": "1"}
    )


C_IN, D_IN = "insert into {t} values (3, 'c')", "insert into {t} values (4, null)"
COPY = {"write.delete.mode": "copy-on-write", "write.update.mode": "copy-on-write"}
MARK = {"write.delete.mode": "merge-on-read"}
ICEBERG_STORIES = {
    "appends, and maintenance between them": Story(
        steps=(
            C_IN,
            "call rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))",
            D_IN,
        ),
        insert=[C, D],
    ),
    "rows written anew with their files": Story(
        steps=(C_IN, "update {t} set day = 'x' where id = 1", "delete from {t} where id = 3"),
        insert=[(1, "x")],
        delete=[A],
        properties=COPY,
    ),
    "rows that are only marked as deleted": Story(
        steps=(C_IN, "delete from {t} where id = 1"),
        insert=[C],
        delete=[A],
        properties=MARK,
        reason="marked as deleted",
    ),
    "a snapshot that no event tells of": Story(
        steps=(C_IN, D_IN, "insert into {t} values (2, 'b')"),
        lost=(1,),
        insert=[B, C, D],
        reason="no event covers snapshot",
    ),
    "snapshots that were taken back": Story(
        steps=(C_IN, "call rollback_to_snapshot('{t}', {at})", D_IN),
        lost=(0,),
        insert=[D],
        delete=[C],
        reason="snapshots were rolled back",
    ),
    "snapshots that are expired": Story(
        steps=(
            "delete from {t} where id = 1",
            C_IN,
            "call expire_snapshots(table => '{t}', older_than => timestamp '2100-01-01')",
        ),
        insert=[B, C],
        properties=COPY,
        reason="is expired",
        is_complete=True,
    ),
    "appends after a snapshot that is expired": Story(
        steps=(
            C_IN,
            D_IN,
            "call expire_snapshots(table => '{t}', older_than => timestamp '2100-01-01',"
            " retain_last => 2)",
        ),
        insert=[C, D],
    ),
    "a new column": Story(
        steps=(C_IN, "alter table {t} add column price int", "insert into {t} values (4, null, 7)"),
        insert=[(*C, None), (*D, 7)],
        reason="schema changed",
    ),
}


@pytest.mark.parametrize("story", ICEBERG_STORIES.values(), ids=ICEBERG_STORIES)
def test_what_changed_in_an_iceberg_table_is_reported(
    spark: "SparkSession", lake: Lake, probe_of: ProbeOf, story: Story
) -> None:
    orders = IcebergOrders(lake, probe_of("iceberg_table"), story)
    events = orders.events(story)

    story.check(orders.changed(events))


class HiveOrders:
    """A table of the metastore, a partition a day."""

    def __init__(self, spark: "SparkSession", probe: Probe, name: str) -> None:
        self.spark, self.probe, self.name = spark, probe, name
        self.upstream = Upstream(
            upstream_id="u", source="hive_table", sensor_id=name, read_type="batch"
        )
        self.sql("create table {t} (id bigint, day string) using parquet partitioned by (day)")
        self.sql("insert into {t} values (1, 'a'), (2, 'b')")
        self.reported()

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(t=self.name))

    def reported(self) -> Sequence[ChangeEvent]:
        events = list[ChangeEvent]()
        for _ in range(2):
            [result] = self.probe.probe([self.upstream], at=AT)
            assert result.failure is None, result.failure
            self.upstream = replace(self.upstream, position=result.position)
            events += map(as_event, result.events)
        return events


def test_the_partitions_of_a_hive_table_that_changed_are_read_whole(
    spark: "SparkSession", warehouse: Path, probe_of: ProbeOf
) -> None:
    spark.sql(f"create schema if not exists changes location '{warehouse}/changes'")
    probe = probe_of("hive_table")
    orders = HiveOrders(spark, probe, f"changes.t{time.monotonic_ns()}")
    orders.sql("insert into {t} values (5, 'a'), (3, 'c d'), (4, null)")
    events = orders.reported()
    answer = changed_rows(spark, events)

    assert told(answer.frame) == {
        ("insert", *row): 1 for row in [A, (5, "a"), (3, "c d"), (4, None)]
    }
    assert answer.is_incremental and not answer.is_complete
    assert answer.range.partitions == (('"a"',), ('"c d"',), ("null",))

    odd = changed_rows(spark, [replace(events[0], partition=('"a"', "7"))])
    assert odd.is_complete and "of a table with 1 levels" in (odd.reason or "")
    moved = [*events, replace(as_event_of(orders.name), event_ts=1)]
    unsure = changed_rows(spark, moved)
    assert unsure.is_complete and "was of DELTA before" in (unsure.reason or "")


def handed(events: Sequence[ChangeEvent], table: str) -> str:
    """What Heartbeat passes to the job that it starts."""
    return json.dumps([replace(event, table=table).to_json() for event in events])


def test_the_job_of_the_examples_counts_what_changed(
    lake: Lake, spark: "SparkSession", probe_of: ProbeOf
) -> None:
    story = Story(steps=(C_IN, "delete from {t} where id = 1", D_IN), properties=COPY)
    orders = IcebergOrders(lake, probe_of("iceberg_table"), story)
    events = read(handed(orders.events(story), orders.name))

    assert count_rows(lake.session, events, orders.name) == {"insert": 2, "delete": 1}


def test_the_examples_of_the_page_keep_a_copy_up_to_date(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (PROJECT / "docs" / "how-to" / "read_changed_rows.md").read_text()
    story = Story(steps=("append 3c", "remove id < 3", "append 2x 4-"), properties=FEED)
    orders = DeltaOrders(spark, tmp_path / "orders", story)
    spark.sql("create schema if not exists sales")
    spark.sql(f"create table sales.orders using delta location '{orders.path}'")
    spark.sql("create table sales.orders_copy using delta as select * from sales.orders")
    monkeypatch.setenv("HEARTBEAT_EVENTS", handed(orders.events(story), "sales.orders"))
    names: dict[str, object] = {"spark": spark}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)

    assert names["changed"].is_incremental  # type: ignore[attr-defined]
    copied = sorted(map(tuple, spark.table("sales.orders_copy").collect()))
    spark.sql("drop schema sales cascade")
    assert copied == [(2, "x"), C, D]

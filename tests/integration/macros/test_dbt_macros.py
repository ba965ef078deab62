"""The macros in a dbt project of somebody else, on Spark: what its models register, and what they read."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.events.event import Operation, TableFormat
from harness.events.partition import partition_fields
from harness.platform.delta_log import read_commit
from harness.platform.storage import LocalStorage
from harness.sense.sources.delta.classify import operation_of, partitions_of, tags_of
from harness.sense.sources.delta.history import SparkTableHistory, operation_by_name
from harness.sense.sources.delta.schema import Column, table_of
from harness.sense.sources.iceberg.new_rows import need_runtime
from harness.toolkit.changes import ChangeEvent, changed_rows
from tests.support.shop_project import PACKAGE, REGISTER, SCHEMA, Shop, incremental, model, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE, TWO = "(1, 'Oslo', date'2026-03-01', 7)", "(2, 'Zürich ''\"', date'2026-03-02', 8)"
#: The row of TWO in another state; a row that is new.
MOVED, THREE = "(2, 'Bern', date'2026-03-02', 8)", "(3, 'Bern', date'2026-03-02', 8)"
OTHER = "(4, 'Oslo', date'2026-03-02', 8)"
FEED = {"delta.enableChangeDataFeed": "true"}


def example(page: str) -> str:
    """What a page of the manual shows as a model."""
    text = (PACKAGE / "docs" / page).read_text(encoding="utf-8")
    [found] = re.findall(r"^(?:```|~~~)sql\n(\{\{ config.*?)^(?:```|~~~)$", text, re.M | re.S)
    return str(found)


PRODUCERS: Mapping[str, str] = {
    "replaced": model([ONE], [TWO], materialized="table"),
    "appended": model([ONE], [TWO], **incremental("append")),
    "merged": model(
        [ONE, TWO],
        [MOVED],
        **incremental("merge", unique_key="id", partition_by=["day", "hour"]),
    ),
    "overwritten": model(
        [ONE, TWO], [OTHER], **incremental("insert_overwrite", partition_by=["place"])
    ),
    "deleted": model(
        [ONE],
        [TWO],
        "{% if var('step') == 2 %}delete from {{ this }} where id = 1{% endif %}",
        REGISTER,
        **incremental("append", tblproperties=FEED),
    ),
    "unchanged": model(
        [ONE],
        [],
        "alter table {{ this }} set tblproperties ('step' = '{{ var('step') }}')",
        REGISTER,
        **incremental("append"),
    ),
    "hive": model(
        [ONE, TWO],
        [THREE],
        **incremental("insert_overwrite", file_format="parquet", partition_by=["day"]),
    ),
    "said": model(
        [ONE],
        [ONE],
        "{{ heartbeat.register_change(partition=['Zürich \"'], operation='append') }}",
        materialized="table",
        partition_by=["place"],
    ),
    "documented": example("how-to/register_events.md") + rows(ONE),
}
DELTA = [name for name in PRODUCERS if name not in ("hive", "said")]

READ = "{{{{ config(materialized='table') }}}}\nselect * from {{{{ heartbeat.changed_rows({}) }}}} as changed"
CONSUMERS: Mapping[str, str] = {
    "of_merged": READ.format("ref('merged')"),
    "of_merged_by_key": READ.format("ref('merged'), keys=['id']"),
    "of_merged_with_preimages": READ.format("ref('merged'), keys='id', preimages=true"),
    "of_replaced": READ.format("ref('replaced')"),
    "of_deleted": READ.format("ref('deleted'), events=var('of_deleted')"),
    "of_overwritten": READ.format("ref('overwritten'), events=var('of_overwritten')"),
    "of_hive": READ.format("ref('hive')"),
    "of_said": READ.format("ref('said')"),
}
ICEBERG: Mapping[str, str] = {
    "berg": model([ONE, TWO], [THREE], **incremental("append", file_format="iceberg")),
    "of_berg": "{{ config(materialized='table', file_format='iceberg') }}\n"
    "select * from {{ heartbeat.changed_rows(ref('berg')) }} as changed",
}
VIEW = "{{ config(materialized='view', post_hook='{{ heartbeat.register_change() }}') }}\nselect 1 as id"


@pytest.fixture(scope="module")
def shop(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    models = {**PRODUCERS, **CONSUMERS, **ICEBERG, "a_view": VIEW}
    models["copied"] = example("how-to/read_changed_rows.md").replace(
        "ref('orders')", "ref('merged')"
    )
    project = Shop(tmp_path_factory.mktemp("shop"), models).parse()
    yield project
    spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    spark.sql(f"drop schema if exists {SCHEMA} cascade")


Events = Mapping[str, Sequence[ChangeEvent]]


def by_model(events: Sequence[ChangeEvent]) -> Events:
    found: dict[str, list[ChangeEvent]] = {}
    for event in events:
        found.setdefault(event.table.removeprefix(f"{SCHEMA}."), []).append(event)
    return found


@pytest.fixture(scope="module")
def first(shop: Shop) -> Events:
    return by_model(shop.run(shop.folder / "inbox1", "--select", *PRODUCERS, step=1))


@pytest.fixture(scope="module")
def second(shop: Shop, first: Events) -> Events:
    return by_model(shop.run(shop.folder / "inbox2", "--select", *PRODUCERS, step=2))


def told_by_sensor(spark: "SparkSession", name: str) -> dict[str | None, ChangeEvent]:
    """What the sensor's own functions report of each commit, by its version."""
    [detail] = spark.sql(f"describe detail {SCHEMA}.{name}").collect()
    folder = str(detail.location).removeprefix("file:")
    reported = dict[str | None, ChangeEvent]()
    columns: Sequence[Column] = ()
    version, table_id = 0, ""
    while (commit := read_commit(LocalStorage(), folder, version)) is not None:
        if commit.metadata is not None:
            table = table_of(commit.metadata, {})
            columns, table_id = table.partition_columns, table.table_id
        operation = operation_of(commit)
        if operation is not None:
            partition, tags = partition_fields(partitions_of(commit, columns))
            reported[str(version)] = ChangeEvent(
                table=f"{SCHEMA}.{name}",
                partition=partition,
                snapshot_id=str(version),
                snapshot_ts=commit.timestamp_ms,
                prev_snapshot_id=max(reported, key=lambda each: int(each or 0), default=None),
                table_format=TableFormat.DELTA,
                operation_type=operation,
                tags={**tags_of(commit), **tags, "table_id": table_id},
            )
        version += 1
    return reported


#: The tags that both report; the others are of one of them alone.
_OF_BOTH = frozenset(
    {"operation", "overwrite", "replaced", "partitions", "partitions_truncated", "table_id"}
)


def comparable(event: ChangeEvent) -> ChangeEvent:
    return replace(event, tags={key: event.tags[key] for key in _OF_BOTH & event.tags.keys()})


@pytest.mark.parametrize("name", DELTA)
def test_what_a_model_registers_is_what_the_sensor_reports_of_the_same_commit(
    spark: "SparkSession", first: Events, second: Events, name: str
) -> None:
    reported = told_by_sensor(spark, name)
    registered = {event.snapshot_id: event for event in (*first[name], *second[name])}

    assert {key: comparable(each) for key, each in registered.items()} == {
        key: comparable(each) for key, each in reported.items()
    }


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("replaced", ["APPEND", "UPDATE"]),
        ("appended", ["APPEND", "APPEND"]),
        ("merged", ["APPEND", "UPDATE"]),
        ("overwritten", ["APPEND", "UPDATE"]),
        ("deleted", ["APPEND", "DELETE", "APPEND"]),
        ("hive", ["UPDATE", "UPDATE"]),
    ],
)
def test_each_build_registers_the_commits_that_it_made(
    first: Events, second: Events, name: str, operations: Sequence[str]
) -> None:
    assert [each.operation_type for each in (*first[name], *second[name])] == operations


def test_a_build_that_changed_nothing_registers_the_same_snapshot_again(
    first: Events, second: Events
) -> None:
    assert first["unchanged"] == second["unchanged"]


def test_tags_are_those_of_the_hook_and_the_name_of_the_model(first: Events) -> None:
    [event] = first["appended"]
    assert event.tags["quality"] == "checked"
    assert event.tags["dbt_model"] == "model.shop.appended"


def test_one_partition_is_named_and_several_are_a_tag(first: Events, second: Events) -> None:
    assert first["merged"][0].partition is None
    assert first["merged"][0].tags["partitions"] == '[["2026-03-01",7],["2026-03-02",8]]'
    assert second["merged"][0].partition == ('"2026-03-02"', "8")


def test_a_table_without_snapshots_reports_its_partitions_and_the_time_of_their_files(
    first: Events, second: Events
) -> None:
    [event] = second["hive"]
    assert (event.table_format, event.snapshot_id) == (TableFormat.HIVE, None)
    assert event.partition == ('"2026-03-02"',)
    assert event.snapshot_ts is not None and event.event_id is not None
    assert first["hive"][0].tags["partitions"] == '[["2026-03-01"],["2026-03-02"]]'


def test_a_model_may_itself_state_what_it_did_and_where(first: Events) -> None:
    [event] = first["said"]
    assert event.partition == ('"Zürich \\""',)
    assert event.operation_type == Operation.APPEND


def test_a_build_without_rows_registers_nothing(shop: Shop, second: Events) -> None:
    inbox = shop.folder / "empty"
    assert shop.run(inbox, "--select", "said", "hive", "--empty", step=2) == []


def test_a_view_cannot_register_a_change(shop: Shop) -> None:
    output = shop.refusal("run", "--select", "a_view", "--vars", "{step: 1}")
    assert "register_change: a_view is materialized as view" in output


def test_the_tables_of_this_project_are_no_part_of_a_project_that_takes_it_as_a_package(
    shop: Shop,
) -> None:
    nodes = [*shop.manifest.nodes.values(), *shop.manifest.exposures.values()]
    assert {node.package_name for node in nodes} == {"shop"}


Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def read(shop: Shop, spark: "SparkSession", first: Events, second: Events) -> Mapping[str, Rows]:
    """What the models read, given the events of the second run but for those of one table."""
    payload = [each for name in second if name != "said" for each in second[name]]
    variables = {
        "heartbeat_events": json.dumps([each.to_json() for each in payload]),
        "of_deleted": [each.to_json() for each in second["deleted"]],
        "of_overwritten": [each.to_json() for each in first["overwritten"]],
    }
    shop.run(shop.folder / "read", "--select", "copied", *CONSUMERS, **variables)
    return {name: rows_of(spark, name) for name in CONSUMERS}


def rows_of(spark: "SparkSession", name: str) -> Rows:
    rows = spark.table(f"{SCHEMA}.{name}").select("id", "place", "_change_type").collect()
    return sorted(tuple(row) for row in rows)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("of_merged", [(2, "Bern", "insert"), (2, "Zürich '\"", "delete")]),
        ("of_merged_by_key", [(2, "Bern", "update_postimage")]),
        (
            "of_merged_with_preimages",
            [(2, "Bern", "update_postimage"), (2, "Zürich '\"", "update_preimage")],
        ),
        ("of_replaced", [(1, "Oslo", "delete"), (2, "Zürich '\"", "insert")]),
        ("of_deleted", [(1, "Oslo", "delete"), (2, "Zürich '\"", "insert")]),
        ("of_overwritten", [(1, "Oslo", "insert"), (2, "Zürich '\"", "insert")]),
        ("of_hive", [(3, "Bern", "insert")]),
        ("of_said", []),
    ],
)
def test_a_model_reads_the_rows_that_changed(
    read: Mapping[str, Rows], name: str, changed: Rows
) -> None:
    assert read[name] == changed


@pytest.mark.parametrize("name", ["merged", "replaced", "deleted", "hive"])
def test_a_model_reads_the_same_rows_as_a_python_job(
    spark: "SparkSession", second: Events, read: Mapping[str, Rows], name: str
) -> None:
    changed = changed_rows(spark, second[name], f"{SCHEMA}.{name}")
    rows = changed.frame.select("id", "place", "_change_type").collect()
    assert sorted(tuple(row) for row in rows) == read[f"of_{name}"]


def test_an_incremental_model_that_is_built_first_takes_all_rows(
    spark: "SparkSession", read: Mapping[str, Rows]
) -> None:
    rows = spark.table(f"{SCHEMA}.copied").select("id", "place").collect()
    assert sorted(tuple(row) for row in rows) == [(1, "Oslo"), (2, "Bern")]


def test_the_feed_is_read_where_it_covers_the_range(shop: Shop, read: Mapping[str, Rows]) -> None:
    assert "table_changes('shop.deleted', 1, 2)" in shop.compiled("of_deleted")
    assert "version as of" in shop.compiled("of_merged")


def test_why_changes_are_not_read_one_by_one_is_reported(
    shop: Shop, read: Mapping[str, Rows]
) -> None:
    assert "changed_rows of shop.replaced: the table was replaced in 1" in shop.said
    assert "changed_rows of shop.overwritten: no snapshot comes before the first event" in shop.said


def test_where_the_log_is_not_read_the_history_shows_the_same_but_for_partitions(
    shop: Shop, spark: "SparkSession", second: Events
) -> None:
    names = ["appended", "deleted", "replaced"]
    variables = {"step": 1, "heartbeat_reads_delta_log": False}
    events = by_model(shop.run(shop.folder / "history", "--select", *names, **variables))

    history = SparkTableHistory(lambda: spark)
    for name in names:
        rows = {str(row.version): row for row in history.newest(f"{SCHEMA}.{name}", 10)}
        for event in events[name]:
            row = rows[str(event.snapshot_id)]
            assert event.operation_type == operation_by_name(row)
            assert event.snapshot_ts == row.timestamp_ms
            assert event.prev_snapshot_id == str(row.version - 1)


@pytest.fixture
def lake(spark: "SparkSession", tmp_path: Path) -> Iterator[None]:
    """Iceberg's own catalog in the place of the session's."""
    need_runtime(spark)
    catalog = "spark.sql.catalog.lake"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", str(tmp_path))
    spark.sql("use lake")
    yield
    spark.sql("use spark_catalog")


def test_an_iceberg_table_registers_its_snapshots_and_is_read_between_two(
    shop: Shop, spark: "SparkSession", lake: None, tmp_path: Path
) -> None:
    [created] = shop.run(tmp_path / "inbox1", "--select", "berg", step=1)
    [appended] = shop.run(tmp_path / "inbox2", "--select", "berg", step=2)
    payload = json.dumps([appended.to_json()])
    shop.run(tmp_path / "inbox3", "--select", "of_berg", heartbeat_events=payload)

    snapshots = spark.sql(f"select snapshot_id from {SCHEMA}.berg.snapshots order by committed_at")
    ids = [str(row.snapshot_id) for row in snapshots.collect()]
    assert [(each.prev_snapshot_id, each.snapshot_id) for each in (created, appended)] == [
        (None, ids[0]),
        (ids[0], ids[1]),
    ]
    assert {each.table_format for each in (created, appended)} == {TableFormat.ICEBERG}
    # dbt creates by replacing, which Iceberg calls an overwrite.
    operations = [each.operation_type for each in (created, appended)]
    assert operations == [Operation.UPDATE, Operation.APPEND]
    assert created.tags["operation"] == "overwrite"
    assert rows_of(spark, "of_berg") == [(3, "Bern", "insert")]

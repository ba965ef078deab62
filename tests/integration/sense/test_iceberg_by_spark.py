"""What Spark and Iceberg's own runtime write is sensed, snapshot by snapshot."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from harness.config.sources import FirstSight
from harness.events.event import ChangeEvent, Operation
from harness.sense.probe import Probe, ProbeResult
from harness.store.work_lists import Upstream
from tests.support.services.iceberg import Lake

if TYPE_CHECKING:
    pass

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)


@pytest.fixture(scope="module")
def probe(probe_of: Callable[[str], Probe]) -> Probe:
    return probe_of("iceberg_table")


#: In one file.
TWO_ROWS = "insert into {t} select /*+ coalesce(1) */ * from values (1, 'a'), (2, 'b')"


class Orders:
    """A table, and a probe of it."""

    def __init__(self, lake: Lake, probe: Probe, **more: Any) -> None:
        self.lake, self.probe = lake, probe
        self.name = f"lake.sales.t{time.monotonic_ns()}"
        self.short = self.name.removeprefix("lake.")
        self.upstream = Upstream(
            upstream_id="u",
            source="iceberg_table",
            sensor_id=self.name,
            read_type="batch",
            **more,
        )

    def create(self, more: str = "", **properties: str) -> "Orders":
        options = {"format-version": "2", **properties}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        return self.sql(
            f"create table {{t}} (id bigint, day string) using iceberg {more}"
            f" tblproperties ({listed})"
        )

    def sql(self, *statements: str) -> "Orders":
        self.lake.sql(*(statement.format(t=self.name) for statement in statements))
        return self

    def call(self, procedure: str) -> "Orders":
        self.lake.call(procedure.format(t=self.short))
        return self

    @property
    def head(self) -> int:
        return self.lake.head(self.name)

    def probe_once(self) -> ProbeResult:
        [result] = self.probe.probe([self.upstream], at=AT)
        assert result.failure is None, result.failure
        self.upstream = replace(
            self.upstream, position=result.position, upstream_value=result.upstream_value
        )
        return result

    def reported(self) -> Sequence[ChangeEvent]:
        return self.probe_once().events

    def operations(self) -> list[Operation]:
        return [event.operation_type for event in self.reported()]

    def asking(self, query: str, **more: Any) -> "Orders":
        """Let it have another query from now on, as another upstream at the same place has."""
        self.upstream = replace(self.upstream, preprocess_query=query, **more)
        return self


@pytest.fixture
def make(lake: Lake, probe: Probe) -> Iterator[Callable[..., Orders]]:
    yield lambda **more: Orders(lake, probe, **more)


@pytest.fixture
def orders(make: Callable[..., Orders]) -> Orders:
    """A table with three rows in two snapshots, probed."""
    orders = make().create()
    orders.sql(TWO_ROWS, "insert into {t} values (3, 'c')").reported()
    return orders


MERGE = (
    "merge into {t} using (select 3 as id, 'z' as day union all select 9, 'n') as n"
    " on {t}.id = n.id when matched then update set day = n.day when not matched then insert *"
)


@pytest.mark.parametrize(
    ("statement", "operation"),
    [
        ("insert into {t} values (4, 'd')", Operation.APPEND),
        ("delete from {t} where id = 1", Operation.UPDATE),
        ("delete from {t} where id = 3", Operation.DELETE),
        ("truncate table {t}", Operation.DELETE),
        ("update {t} set day = 'x' where id = 2", Operation.UPDATE),
        (MERGE, Operation.UPDATE),
        ("insert overwrite {t} values (7, 'g')", Operation.UPDATE),
    ],
)
def test_each_statement_is_one_event(orders: Orders, statement: str, operation: Operation) -> None:
    orders.sql(statement)

    assert orders.operations() == [operation]


@pytest.mark.parametrize(
    "statement",
    [
        "insert into {t} select * from {t} where id > 100",
        "delete from {t} where id > 100",
        "update {t} set day = 'x' where id > 100",
        "alter table {t} set tblproperties ('team' = 'sales')",
        "alter table {t} add column price double",
    ],
)
def test_what_changes_no_row_is_silent(orders: Orders, statement: str) -> None:
    orders.sql(statement)

    assert orders.reported() == ()


@pytest.mark.parametrize(
    "procedure",
    [
        "rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))",
        "rewrite_manifests(table => '{t}')",
        "expire_snapshots(table => '{t}', retain_last => 1, older_than => timestamp '2099-01-01')",
    ],
)
def test_maintenance_is_silent(orders: Orders, procedure: str) -> None:
    orders.call(procedure)

    assert orders.reported() == ()


def test_maintenance_did_something(orders: Orders) -> None:
    before = orders.head
    orders.call("rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")

    assert orders.head != before


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_delete_that_only_marks_rows_is_a_delete(
    make: Callable[..., Orders], version: str
) -> None:
    orders = make().create(**{"format-version": version, "write.delete.mode": "merge-on-read"})
    orders.sql(TWO_ROWS).reported()
    orders.sql("delete from {t} where id = 1")

    assert orders.operations() == [Operation.DELETE]


def test_several_snapshots_between_two_probes_are_reported_in_their_order(orders: Orders) -> None:
    orders.sql("insert into {t} values (4, 'd')", "delete from {t} where id = 3")
    orders.call("rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    orders.sql("insert into {t} values (5, 'e')")

    assert orders.operations() == [Operation.APPEND, Operation.DELETE, Operation.APPEND]


def test_an_event_has_the_snapshot_and_the_one_before(orders: Orders) -> None:
    before = orders.head
    orders.sql("insert into {t} values (4, 'd')")
    [event] = orders.reported()

    assert (event.snapshot_id, event.prev_snapshot_id) == (str(orders.head), str(before))
    assert (event.tags["operation"], event.tags["rows_written"]) == ("append", "1")


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_partitions_are_named_whatever_the_summary_names(
    make: Callable[..., Orders], version: str
) -> None:
    orders = make().create("partitioned by (day)", **{"format-version": version})
    orders.reported()
    orders.sql(
        "insert into {t} values (1, '2025/04 23')",
        "insert into {t} values (1, 'a'), (2, 'b'), (3, null)",
        "delete from {t} where day = 'a'",
    )
    first, second, third = orders.reported()

    assert (first.partition, second.partition) == (('"2025/04 23"',), None)
    assert second.tags["partitions"] == '[["a"],["b"],[null]]'
    assert (third.partition, third.operation_type) == (('"a"',), Operation.DELETE)


def test_partitions_are_named_as_iceberg_names_them(make: Callable[..., Orders]) -> None:
    orders = make().sql(
        "create table {t} (id bigint, d date, price decimal(9, 2), at timestamp, zoned timestamp,"
        " m date, y date, name string) using iceberg partitioned by (id, d, price, days(at),"
        " hours(zoned), months(m), years(y), bucket(1, id), truncate(2, name))"
    )
    orders.reported()
    orders.sql(
        "insert into {t} values (7, date'2025-04-23', 1.50, timestamp'1969-12-31 05:06:07Z',"
        " timestamp'2025-04-23 05:06:07Z', date'1969-12-31', date'2025-04-23', 'abc')"
    )
    [event] = orders.reported()

    assert event.partition == (
        "7",
        '"2025-04-23"',
        "1.50",
        '"1969-12-31"',
        '"2025-04-23-05"',
        '"1969-12"',
        '"2025"',
        "0",
        '"ab"',
    )


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_partition_field_that_was_dropped_is_no_level(
    make: Callable[..., Orders], version: str
) -> None:
    orders = make().create("partitioned by (day, id)", **{"format-version": version})
    orders.reported()
    orders.sql("insert into {t} values (1, 'a')")
    orders.lake.table(orders.name).updateSpec().removeField("id").commit()
    orders.sql("insert into {t} values (2, 'b')")

    assert [event.partition for event in orders.reported()] == [('"a"', "1"), ('"b"',)]


def test_compressed_metadata_is_read(make: Callable[..., Orders]) -> None:
    orders = make().create(**{"write.metadata.compression-codec": "gzip"})
    orders.reported()
    orders.sql("insert into {t} values (1, 'a')")

    assert orders.operations() == [Operation.APPEND]


def test_metadata_that_is_cleaned_after_each_commit_is_followed(
    make: Callable[..., Orders],
) -> None:
    orders = make().create(
        **{
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
    )
    orders.reported()
    orders.sql(*[f"insert into {{t}} values ({n}, 'a')" for n in range(4)])

    assert orders.operations() == [Operation.APPEND] * 4


# Branches and history


def test_a_branch_is_silent_until_main_follows_it(orders: Orders) -> None:
    orders.lake.table(orders.name).manageSnapshots().createBranch("audit").commit()
    orders.sql("insert into {t}.branch_audit values (4, 'd')")
    on_the_branch = orders.reported()
    orders.lake.table(orders.name).manageSnapshots().fastForwardBranch("main", "audit").commit()

    assert (on_the_branch, orders.operations()) == ((), [Operation.APPEND])


def test_a_staged_snapshot_is_reported_when_it_is_published(orders: Orders) -> None:
    orders.sql("alter table {t} set tblproperties ('write.wap.enabled' = 'true')")
    orders.lake.session.conf.set("spark.wap.id", "load-1")
    try:
        orders.sql("insert into {t} values (4, 'd')")
    finally:
        orders.lake.session.conf.unset("spark.wap.id")
    staged = orders.reported()
    # Another commit first, so that publishing it makes a snapshot of its own.
    orders.sql("insert into {t} values (5, 'e')")
    orders.reported()
    orders.call("publish_changes('{t}', 'load-1')")
    [event] = orders.reported()

    assert (staged, event.tags["wap_id"]) == ((), "load-1")


def test_a_rollback_is_an_update(orders: Orders) -> None:
    before = orders.head
    orders.sql("insert into {t} values (4, 'd')")
    orders.reported()
    orders.call(f"rollback_to_snapshot('{{t}}', {before})")
    [event] = orders.reported()

    assert (event.operation_type, event.snapshot_id, event.tags["rolled_back"]) == (
        Operation.UPDATE,
        str(before),
        "true",
    )


def test_a_rollback_and_a_commit_between_two_probes_are_two_events(orders: Orders) -> None:
    before = orders.head
    orders.sql("insert into {t} values (4, 'd')")
    orders.reported()
    orders.call(f"rollback_to_snapshot('{{t}}', {before})")
    orders.sql("insert into {t} values (5, 'e')")

    assert orders.operations() == [Operation.UPDATE, Operation.APPEND]


EXPIRE = "expire_snapshots(table => '{t}', retain_last => 1, older_than => timestamp '2099-01-01')"


def test_history_that_is_expired_past_our_snapshot_is_a_gap(orders: Orders) -> None:
    orders.sql(*[f"insert into {{t}} values ({n}, 'n')" for n in (4, 5, 6)])
    orders.call(EXPIRE)
    result = orders.probe_once()

    assert [(event.operation_type, event.tags["gap"]) for event in result.events] == [
        (Operation.UPDATE, "true")
    ]
    assert "are gone" in (result.gap or "")


def test_history_that_is_expired_up_to_our_snapshot_is_none(orders: Orders) -> None:
    orders.sql("insert into {t} values (4, 'd')")
    orders.call(EXPIRE)
    result = orders.probe_once()

    assert ([event.operation_type for event in result.events], result.gap) == (
        [Operation.APPEND],
        None,
    )


@pytest.mark.parametrize("commits", [1, 5])
def test_a_table_dropped_and_created_again_is_reported(orders: Orders, commits: int) -> None:
    orders.sql("drop table {t} purge").create()
    orders.sql(*[f"insert into {{t}} values ({n}, 'n')" for n in range(commits)])

    assert [event.tags.get("recreated") for event in orders.reported()] == ["true"]


def test_a_replaced_table_is_reported(orders: Orders) -> None:
    orders.sql("create or replace table {t} using iceberg as select 1 as id")
    [event] = orders.reported()

    assert (event.operation_type, event.tags["replaced"]) == (Operation.UPDATE, "true")


def test_a_table_replaced_by_an_empty_one_is_a_deletion(orders: Orders) -> None:
    orders.sql("create or replace table {t} (id bigint) using iceberg")

    assert orders.operations() == [Operation.DELETE]


# Rows


def ids_are(*ids: int) -> str:
    """Return a query that finds a row if those are the ids of all new rows."""
    wanted = ", ".join(str(each) for each in ids)
    return f"select 1 from sensor_new_data having sort_array(collect_list(id)) = array({wanted})"


ROWS: Mapping[str, tuple[Sequence[str], Sequence[int]]] = {
    "of an append": (["insert into {t} values (4, 'd')"], [4]),
    "of two appends": (
        ["insert into {t} values (4, 'd')", "insert into {t} values (5, 'e')"],
        [4, 5],
    ),
    "of an append that is deleted again": (
        ["insert into {t} values (4, 'd')", "delete from {t} where id = 4"],
        [4],
    ),
    "of an update, whole files": (["update {t} set day = 'x' where id = 2"], [1, 2]),
    "of a merge and an append": ([MERGE, "insert into {t} values (5, 'e')"], [3, 5, 9]),
    "of an overwrite": (["insert overwrite {t} values (7, 'g')"], [7]),
    "of an append before maintenance": (["insert into {t} values (4, 'd')"], [4]),
    "after a new column": (
        ["alter table {t} add column price double", "insert into {t} values (4, 'd', 1.5)"],
        [4],
    ),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_query_is_given_the_rows(orders: Orders, case: str) -> None:
    statements, expected = ROWS[case]
    orders.sql(*statements)
    if "maintenance" in case:
        orders.call("rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    orders.asking(ids_are(*expected))

    assert len(orders.reported()) == len([each for each in statements if "alter" not in each])


def test_a_query_is_given_no_row_of_a_delete(orders: Orders) -> None:
    orders.sql("delete from {t} where id = 3")

    assert orders.asking("select * from sensor_new_data").reported() == ()


def test_a_query_is_given_the_whole_table_at_first_sight(make: Callable[..., Orders]) -> None:
    orders = make(preprocess_query=ids_are(1, 2)).create()
    orders.sql("insert into {t} values (1, 'a')", "insert into {t} values (2, 'b')")

    assert len(orders.reported()) == 1


def test_a_query_is_given_the_whole_table_after_a_rollback(orders: Orders) -> None:
    before = orders.head
    orders.sql("insert into {t} values (4, 'd')")
    orders.reported()
    orders.call(f"rollback_to_snapshot('{{t}}', {before})")

    assert len(orders.asking(ids_are(1, 2, 3)).reported()) == 1


def test_a_query_is_given_rows_whose_start_is_expired(orders: Orders) -> None:
    orders.sql("insert into {t} values (4, 'd')").call(EXPIRE)

    assert len(orders.asking(ids_are(4)).reported()) == 1


def test_a_query_is_given_the_first_rows_of_an_empty_table(make: Callable[..., Orders]) -> None:
    orders = make(preprocess_query=ids_are(1)).create()
    orders.reported()
    orders.sql("insert into {t} values (1, 'a')")

    assert len(orders.reported()) == 1


def test_the_largest_value_of_a_key_is_kept(make: Callable[..., Orders]) -> None:
    query = "select * from sensor_new_data where id > ?upstream_value"
    more = {"upstream_key": "id", "on_first_sight": FirstSight.BASELINE}
    orders = make(preprocess_query=query, **more).create()
    orders.sql("insert into {t} values (1, 'a'), (7, 'b')").reported()
    orders.sql("insert into {t} values (5, 'e')")
    smaller = orders.reported()
    orders.sql("insert into {t} values (8, 'h')")

    assert (smaller, len(orders.reported()), orders.upstream.upstream_value) == ((), 1, "8")

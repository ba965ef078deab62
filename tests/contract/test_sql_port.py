"""What a port for SQL promises: over a Spark session, and over a SQL warehouse."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.connect.session import SparkSession as RemoteSession

from harness.platform.spark.engine import forget_session
from harness.platform.sql.port import Sql, SqlError
from harness.platform.sql.session import SessionSql
from harness.platform.sql.warehouse import WarehousePlace, WarehouseSql
from harness.platform.sql_names import SchemaName, literal, quoted
from tests.support.services.warehouse.server import (
    CLUSTER_PATH,
    WAREHOUSE_PATH,
    Denied,
    Drop,
    Warehouse,
    When,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.services.connect import Endpoint

PLACE = WarehousePlace(http_path=WAREHOUSE_PATH, catalog="prod-eu", start_seconds=12)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def warehouse(served_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    for name, value in served_warehouse.variables(by_oauth=True).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
    yield served_warehouse
    served_warehouse.recover()


@pytest.fixture
def over_a_warehouse(warehouse: Warehouse) -> Iterator[WarehouseSql]:
    sql = WarehouseSql(PLACE)
    yield sql
    sql.close()


@pytest.fixture
def over_a_session(spark: "SparkSession") -> SessionSql:
    # dbt-spark turns it off in the session of the process, if an earlier test has used dbt.
    spark.conf.set("spark.sql.ansi.enabled", "true")
    return SessionSql(lambda: spark)


@pytest.fixture
def over_an_engine(spark: "SparkSession", spark_endpoint: "Endpoint") -> Iterator[SessionSql]:
    session: Any = RemoteSession.builder.remote(spark_endpoint.url).create()
    yield SessionSql(lambda: session)
    forget_session(session)


@pytest.fixture(params=["session", "engine", "warehouse"])
def sql(request: pytest.FixtureRequest) -> Sql:
    found: Sql = request.getfixturevalue(
        f"over_an_{request.param}" if request.param == "engine" else f"over_a_{request.param}"
    )
    return found


@pytest.fixture
def schema(sql: Sql) -> SchemaName:
    """A schema whose catalog needs quotes, where there are catalogs."""
    catalog = "prod-eu" if isinstance(sql, WarehouseSql) else "spark_catalog"
    found = SchemaName(name="sql_port", catalog=catalog)
    sql.run(f"create schema if not exists {found.in_sql}")
    return found


def test_rows_have_the_types_of_python_and_instants_are_in_utc(sql: Sql) -> None:
    assert sql.run(
        """select cast(9007199254740993 as bigint) as big, 'it''s' as text, cast(1.50 as decimal(10, 2)) as price,
            true as flag, date '2026-03-01' as day, timestamp '2026-03-01 13:00:00.123456 Europe/Berlin' as at,
            cast(null as string) as nothing, x'00ff' as bytes, array(timestamp '2026-03-01 12:00:00.123456Z') as times,
            map('k', 1) as tags, named_struct('at', timestamp '2026-03-01 12:00:00.123456Z', 'n', 1) as one"""
    ) == [
        {
            "big": 9007199254740993,
            "text": "it's",
            "price": Decimal("1.50"),
            "flag": True,
            "day": date(2026, 3, 1),
            "at": NOON,
            "nothing": None,
            "bytes": b"\x00\xff",
            "times": [NOON],
            "tags": {"k": 1},
            "one": {"at": NOON, "n": 1},
        }
    ]
    (row,) = sql.run("select timestamp '2026-03-01 13:00:00 Europe/Berlin' as at")
    assert isinstance(row["at"], datetime)
    assert row["at"].tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    [None, True, 2**62, "it's \\ a `b` \n -- c", NOON],
    ids=lambda each: type(each).__name__,
)
def test_a_value_in_a_statement_comes_back_as_it_is(sql: Sql, value: object) -> None:
    assert sql.run(f"select {literal(value)} as found") == [{"found": value}]


def test_text_is_in_utc_for_dates(sql: Sql) -> None:
    late = literal(datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    assert sql.run(f"select cast({late} as date) as day") == [{"day": date(2026, 3, 1)}]


def test_a_statement_that_returns_nothing_has_no_rows(sql: Sql, schema: SchemaName) -> None:
    table = schema.table("nothing")
    assert sql.run(f"create or replace table {table} (n bigint) using delta") == []
    assert sql.run(f"select * from {table}") == []


def test_a_table_and_a_view_are_read_with_the_types_of_a_query(
    sql: Sql, schema: SchemaName
) -> None:
    table, view = schema.table("read_whole"), schema.table("read_through")
    sql.run(
        f"create or replace table {table} using delta as select 9007199254740993L as big, {literal(NOON)} as at,"
        f" array({literal(NOON)}, null) as times, map('k', 1) as tags, named_struct('at', {literal(NOON)}) as one"
    )
    sql.run(f"create or replace view {view} as select * from {table}")
    tags, one = {"k": 1}, {"at": NOON}
    row = {"big": 2**53 + 1, "at": NOON, "times": [NOON, None], "tags": tags, "one": one}
    before = sql.statement_count
    assert sql.read(table) == sql.read(view) == [row]
    assert sql.statement_count == before + 2


@pytest.mark.parametrize("sql", ["session", "engine"], indirect=True)
def test_a_folder_is_read_by_its_path(sql: Sql, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "a folder", pa.table({"n": [1]}))
    assert sql.read(f"delta.{quoted(str(tmp_path / 'a folder'))}") == [{"n": 1}]


def test_statements_are_counted(sql: Sql) -> None:
    sql.run("select 1 as n")
    before = sql.statement_count
    sql.run("select 1 as n")
    sql.run("select 1 as n")
    assert sql.statement_count == before + 2


def test_a_table_that_is_not_there_is_known_by_its_condition(sql: Sql, schema: SchemaName) -> None:
    for table in (schema.table("absent"), SchemaName("absent", schema.catalog).table("absent")):
        with pytest.raises(SqlError) as missing:
            sql.read(table)
        assert missing.value.is_not_there
    with pytest.raises(SqlError) as other:
        sql.run("select 1 / 0")
    assert not other.value.is_not_there


def test_an_error_is_one_line_without_plan_and_trace(sql: Sql) -> None:
    with pytest.raises(SqlError, match=r"^\[UNRESOLVED_COLUMN") as failed:
        sql.run("select nothing from range(1)")
    assert "\n" not in str(failed.value)
    assert "SQLSTATE" not in str(failed.value)


def test_rows_are_appended_with_a_stamp_over_a_session_alone(sql: Sql, schema: SchemaName) -> None:
    table = schema.table("stamped")
    # A table that is replaced keeps the stamps of its past.
    sql.run(f"drop table if exists {table}")
    sql.run(f"create table {table} (n bigint, at timestamp) using delta")
    stamp: dict[str, str | int] = {"txnAppId": "writer", "txnVersion": 7}
    if isinstance(sql, WarehouseSql):
        with pytest.raises(SqlError, match=r"cannot append to .*; run this command in a Spark"):
            sql.append(table, [{"n": 1, "at": NOON}], stamp)
        return
    sql.append(table, [{"n": 1, "at": NOON}], stamp)
    sql.append(table, [{"n": 2, "at": NOON}], stamp)
    assert sql.run(f"select * from {table}") == [{"n": 1, "at": NOON}]


# Of a warehouse alone.


def test_a_session_that_has_ended_is_opened_again(
    over_a_warehouse: WarehouseSql, warehouse: Warehouse
) -> None:
    before = len(warehouse.calls)
    over_a_warehouse.run("select 1 as n")
    warehouse.sessions.end_sessions()
    assert over_a_warehouse.run("select 2 as n") == [{"n": 2}]
    of_sessions = [each for each in warehouse.calls[before:] if each.endswith("Session")]
    assert of_sessions == ["OpenSession", "CloseSession", "OpenSession"]


def test_the_garbage_collector_calls_no_warehouse_to_close_a_session(
    over_a_warehouse: WarehouseSql, warehouse: Warehouse
) -> None:
    over_a_warehouse.run("select 1 as n")
    before = len(warehouse.calls)
    over_a_warehouse._connection = None
    gc.collect()
    assert warehouse.calls[before:] == []


def test_a_login_that_has_ended_is_renewed(
    over_a_warehouse: WarehouseSql, warehouse: Warehouse
) -> None:
    over_a_warehouse.run("select 1 as n")
    warehouse.expire_logins()
    assert over_a_warehouse.run("select 2 as n") == [{"n": 2}]


def test_a_statement_survives_a_lost_connection(
    over_a_warehouse: WarehouseSql, warehouse: Warehouse
) -> None:
    over_a_warehouse.run("select 1 as n")
    warehouse.drops.append(Drop(When.AFTER, containing="select 3"))
    assert over_a_warehouse.run("select 3 as n") == [{"n": 3}]


def test_a_wrong_login_is_reported_as_such(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABRICKS_CLIENT_ID")
    monkeypatch.delenv("DATABRICKS_CLIENT_SECRET")
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi-unknown")
    with pytest.raises(
        SqlError, match=r"refuses the login \(403\): Invalid access token; log in again"
    ):
        WarehouseSql(PLACE).run("select 1")


def test_a_missing_grant_names_privilege_object_and_statement(
    over_a_warehouse: WarehouseSql, warehouse: Warehouse
) -> None:
    denied = Denied(privilege="SELECT", kind="Table", name="prod-eu.heartbeat.ticks")
    warehouse.denied.append(denied)
    with pytest.raises(
        SqlError,
        match=r"lacks SELECT on the table `prod-eu`\.`heartbeat`\.`ticks`; its owner can run: "
        r"grant select on table `prod-eu`\.`heartbeat`\.`ticks` to",
    ):
        over_a_warehouse.run("select * from `prod-eu`.`heartbeat`.`ticks`")


def test_a_wrong_catalog_names_the_variable(warehouse: Warehouse) -> None:
    place = WarehousePlace(http_path=WAREHOUSE_PATH, catalog="main")
    with pytest.raises(SqlError, match=r"no catalog 'main'.*set HEARTBEAT_CATALOG"):
        WarehouseSql(place).run("select 1")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("stop", "does not run: .*is stopped; start it in the workspace"),
        ("delete", "There is no SQL warehouse .*; set DATABRICKS_HTTP_PATH"),
    ],
)
def test_a_warehouse_that_is_not_there_is_reported_as_such(
    warehouse: Warehouse, state: str, words: str
) -> None:
    getattr(warehouse, state)()
    with pytest.raises(SqlError, match=words):
        WarehouseSql(PLACE).run("select 1")


def test_a_warehouse_that_does_not_start_is_given_up_in_time(warehouse: Warehouse) -> None:
    warehouse.start_in(60)
    with pytest.raises(SqlError, match=r"has not started within 3 s"):
        WarehouseSql(replace(PLACE, start_seconds=3)).run("select 1")


def test_a_cluster_with_an_old_runtime_is_refused(warehouse: Warehouse) -> None:
    place = WarehousePlace(http_path=CLUSTER_PATH, catalog="prod-eu")
    warehouse.sessions.version = "15.4.x-scala2.12"
    try:
        with pytest.raises(SqlError, match=r"Runtime 15\.4.* too old; use 17\.3 or later"):
            WarehouseSql(place).run("select 1")
    finally:
        warehouse.sessions.version = None

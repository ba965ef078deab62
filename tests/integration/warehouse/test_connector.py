"""The warehouse of the tests as the official connector finds it."""

import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from databricks.sdk.core import Config
from databricks.sql import exc

from tests.integration.warehouse.conftest import Connect
from tests.support.services.warehouse.server import (
    CLIENT,
    CLUSTER_PATH,
    HOST,
    SECRET,
    Denied,
    Drop,
    Warehouse,
    When,
)

if TYPE_CHECKING:
    from databricks.sql.client import Connection

SCHEMA = "over_a_socket"


@pytest.fixture
def connection(connect: Connect) -> "Connection":
    return connect()


@pytest.fixture
def numbers(connection: "Connection") -> str:
    """A table of one row."""
    name = f"`prod-eu`.`{SCHEMA}`.`numbers`"
    with connection.cursor() as cursor:
        cursor.execute(f"create schema if not exists `prod-eu`.`{SCHEMA}`")
        cursor.execute(f"create or replace table {name} using delta as select 1 as n")
    return name


def rows(
    connection: "Connection", statement: str, parameters: object = None
) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)  # type: ignore[arg-type]
        return [tuple(row) for row in cursor.fetchall()]


def test_a_value_of_each_type_arrives_as_python_has_it(connection: "Connection") -> None:
    (row,) = rows(
        connection,
        """select cast(9007199254740993 as bigint), 'it''s', cast(1.50 as decimal(10,2)), true, cast(2.5 as double),
            date '2026-03-01', timestamp '2026-03-01 12:00:00.123456 Europe/Berlin', x'00ff', null,
            array(1, 2), named_struct('a', 1, 'at', timestamp '2026-03-01 11:00:00Z'), map('k', 1)""",
    )
    assert row[:6] == (9007199254740993, "it's", Decimal("1.50"), True, 2.5, date(2026, 3, 1))
    assert isinstance(row[6], datetime)
    assert row[6] == datetime(2026, 3, 1, 11, 0, 0, 123456, tzinfo=UTC)
    assert row[7:9] == (b"\x00\xff", None)
    assert list(row[9]) == [1, 2]  # type: ignore[call-overload]
    assert row[10] == {"a": 1, "at": datetime(2026, 3, 1, 11, tzinfo=UTC)}
    assert row[11] == [("k", 1)]


def test_parameters_are_bound_by_name_and_by_place(connection: "Connection") -> None:
    instant = datetime(2026, 3, 1, 11, tzinfo=UTC)
    named = {
        "n": 2**40,
        "text": "o'clock",
        "at": instant,
        "nothing": None,
        "price": Decimal("1.50"),
    }
    statement = "select :n, :text, :at, :nothing, :price"
    assert rows(connection, statement, named) == [
        (2**40, "o'clock", instant, None, Decimal("1.50"))
    ]
    assert rows(connection, "select ?, ?", [1, "a"]) == [(1, "a")]


def test_a_long_result_is_fetched_in_pieces(warehouse: Warehouse, connection: "Connection") -> None:
    warehouse.calls.clear()
    with connection.cursor(arraysize=1000) as cursor:
        cursor.execute("select id from range(2500)")
        assert [row[0] for row in cursor.fetchall()] == list(range(2500))
    assert warehouse.calls.count("FetchResults") >= 2


def test_a_statement_that_takes_long_is_polled(
    warehouse: Warehouse, connection: "Connection"
) -> None:
    warehouse.sessions.direct_seconds = 0.0
    try:
        assert rows(connection, "select count(*) from range(1000000)") == [(1000000,)]
    finally:
        warehouse.sessions.direct_seconds = 5.0
    assert "GetOperationStatus" in warehouse.calls


def test_a_statement_can_be_left_to_run(connection: "Connection") -> None:
    with connection.cursor() as cursor:
        cursor.execute_async("select 7")
        cursor.get_async_execution_result()
        assert [tuple(row) for row in cursor.fetchall()] == [(7,)]


def test_cursors_of_several_threads_do_not_mix(connect: Connect) -> None:
    found: dict[int, list[tuple[object, ...]]] = {}

    def ask(number: int) -> None:
        found[number] = rows(connect(), f"select {number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {number: [(number,)] for number in range(4)}


def test_a_change_reports_how_many_rows(connection: "Connection", numbers: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"update {numbers} set n = 2 where n = 1")
        assert cursor.rowcount == 1
    assert rows(connection, f"select n from {numbers}") == [(2,)]


def test_names_have_three_levels_and_the_catalog_its_own_name(
    connection: "Connection", numbers: str
) -> None:
    assert rows(connection, f"select x.n from {numbers} as x") == [(1,)]
    assert rows(connection, "select current_catalog()") == [("prod-eu",)]
    (schema,) = rows(connection, f"show schemas in `prod-eu` like '{SCHEMA}'")
    assert schema == (SCHEMA,)
    described = dict(row[:2] for row in rows(connection, f"describe extended {numbers}"))
    assert described["Name"] == f"prod-eu.{SCHEMA}.numbers"


def test_tables_and_columns_are_listed(connection: "Connection", numbers: str) -> None:
    with connection.cursor() as cursor:
        cursor.tables(catalog_name="prod-eu", schema_name=SCHEMA)
        assert [(row.TABLE_NAME, row.TABLE_TYPE) for row in cursor.fetchall()] == [
            ("numbers", "TABLE")
        ]
    with connection.cursor() as cursor:
        cursor.columns(catalog_name="prod-eu", schema_name=SCHEMA, table_name="numbers")
        assert [row.COLUMN_NAME for row in cursor.fetchall()] == ["n"]


def test_the_information_schema_reports_when_a_table_was_altered(
    connection: "Connection", numbers: str
) -> None:
    statement = f"""select table_name, table_type, data_source_format, last_altered
        from system.information_schema.tables
        where table_catalog = 'prod-eu' and table_schema = '{SCHEMA}'"""
    ((*facts, before),) = rows(connection, statement)
    assert facts == ["numbers", "MANAGED", "DELTA"]
    rows(connection, f"insert into {numbers} values (3)")
    ((*_, after),) = rows(connection, statement)
    assert isinstance(before, datetime)
    assert isinstance(after, datetime)
    assert after > before


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "select * from `prod-eu`.nowhere.nothing",
            r"\[TABLE_OR_VIEW_NOT_FOUND\].*`prod-eu`.*42P01",
        ),
        ("select * from other.nowhere.nothing", r"\[NO_SUCH_CATALOG_EXCEPTION\] Catalog 'other'"),
        ("select * from spark_catalog.nowhere.nothing", r"Catalog 'spark_catalog' was not found"),
        ("use catalog other", r"Catalog 'other' was not found"),
        ("select * form x", r"\[PARSE_SYNTAX_ERROR\]"),
        ("select 1 / 0", r"\[DIVIDE_BY_ZERO\].*22012"),
    ],
)
def test_an_error_has_the_words_of_a_warehouse(
    connection: "Connection", statement: str, message: str
) -> None:
    with pytest.raises(exc.ServerOperationError, match=f"(?s){message}"):
        rows(connection, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "set spark.databricks.delta.write.txnAppId = x",
        "set spark.sql.variable.substitute = false",
        "add jar '/tmp/x.jar'",
        "insert overwrite directory '/tmp/x' using json select 1",
        "cache table x",
        "create global temporary view v as select 1",
        "select * from delta.`/tmp/x`",
    ],
)
def test_a_warehouse_refuses_what_it_does_not_do(connection: "Connection", statement: str) -> None:
    with pytest.raises(exc.ServerOperationError, match=r"not supported|not available|any file"):
        rows(connection, statement)


def test_a_warehouse_has_its_own_few_settings(connect: Connect) -> None:
    with connect(session_configuration={"timezone": "Asia/Tokyo"}) as connection:
        assert rows(connection, "select current_timezone()") == [("Asia/Tokyo",)]
        rows(connection, "set timezone = UTC")
        assert rows(connection, "select current_timezone()") == [("UTC",)]
    with pytest.raises(exc.DatabaseError, match="CONFIG_NOT_AVAILABLE"):
        connect(session_configuration={"spark.sql.shuffle.partitions": "2"})


def test_a_wrong_catalog_ends_the_connection_at_once(connect: Connect) -> None:
    with pytest.raises(exc.DatabaseError, match="Catalog 'main' was not found"):
        connect(catalog="main")


def test_a_wrong_token_is_refused(connect: Connect) -> None:
    with pytest.raises(exc.RequestError, match="Invalid access token") as refused:
        connect(access_token="dapi-unknown")
    assert refused.value.context["http-code"] == 403


def test_a_client_logs_in_by_oauth_and_its_token_is_renewed(
    warehouse: Warehouse, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABRICKS_TOKEN")
    config = Config(host=f"https://{HOST}", client_id=CLIENT, client_secret=SECRET)
    connection = connect(credentials_provider=lambda: config.authenticate)
    assert rows(connection, "select 1") == [(1,)]
    assert warehouse.logins.count > 0


def test_a_login_that_has_expired_is_refused(
    warehouse: Warehouse, connection: "Connection"
) -> None:
    warehouse.expire_logins()
    with pytest.raises(exc.RequestError, match="Invalid access token"):
        rows(connection, "select 1")


@pytest.mark.parametrize(("lost", "times"), [(When.AFTER, 2), (When.BEFORE, 1)])
def test_a_statement_whose_connection_is_lost_is_sent_again_even_if_it_had_run(
    warehouse: Warehouse, connection: "Connection", numbers: str, lost: When, times: int
) -> None:
    """So each statement that is sent has to bear running twice."""
    value = 100 + times
    warehouse.drops.append(Drop(lost, containing="insert into"))
    rows(connection, f"insert into {numbers} values ({value})")
    assert rows(connection, f"select count(*) from {numbers} where n = {value}") == [(times,)]


def test_a_warehouse_that_is_starting_is_waited_for(warehouse: Warehouse, connect: Connect) -> None:
    warehouse.start_in(2.0)
    assert rows(connect(), "select 1") == [(1,)]


def test_a_warehouse_that_does_not_start_in_time_is_given_up(
    warehouse: Warehouse, connect: Connect
) -> None:
    warehouse.start_in(60.0)
    with pytest.raises(exc.RequestError):
        connect(_retry_stop_after_attempts_duration=2)


@pytest.mark.parametrize("state", ["stop", "delete"])
def test_a_warehouse_that_is_not_there_is_reported(
    warehouse: Warehouse, connect: Connect, state: str
) -> None:
    getattr(warehouse, state)()
    with pytest.raises(exc.RequestError, match=r"the SQL warehouse is stopped|does not exist"):
        connect()


def test_a_missing_grant_names_privilege_and_object(
    warehouse: Warehouse, connection: "Connection", numbers: str
) -> None:
    warehouse.denied.append(
        Denied(privilege="MODIFY", kind="Table", name=f"prod-eu.{SCHEMA}.numbers")
    )
    with pytest.raises(exc.ServerOperationError, match=r"does not have MODIFY on Table 'prod-eu\."):
        rows(connection, f"insert into {numbers} values (7)")
    assert rows(connection, f"select count(*) from {numbers}") == [(1,)]


def test_a_session_that_has_ended_is_reported(
    warehouse: Warehouse, connection: "Connection"
) -> None:
    warehouse.sessions.end_sessions()
    with pytest.raises(exc.DatabaseError, match="Invalid SessionHandle"):
        rows(connection, "select 1")


def test_a_cluster_reports_its_runtime(
    spark: object, warehouse: Warehouse, connect: Connect
) -> None:
    warehouse.sessions.version = "15.4.x-scala2.12"
    try:
        found = rows(
            connect(http_path=CLUSTER_PATH), "SET spark.databricks.clusterUsageTags.sparkVersion"
        )
    finally:
        warehouse.sessions.version = None
    assert found[0][1] == "15.4.x-scala2.12"

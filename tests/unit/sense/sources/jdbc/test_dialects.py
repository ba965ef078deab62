"""What is known of databases and their drivers: addresses, names, types, limits, statements."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from harness.config.connections import SapSystem, SapSystems
from harness.config.sources import FirstSight
from harness.sense.database_queries import (
    Answer,
    Case,
    Column,
    DatabaseDownError,
    Dialect,
    Kind,
    Query,
    Value,
)
from harness.sense.sources.jdbc.address import sqlalchemy_url
from harness.sense.sources.jdbc.dialects import (
    columns_of,
    dialect_of,
    is_too_slow,
    limits_of,
    text_of,
)
from harness.sense.sources.jdbc.watermark_sql import (
    Window,
    largest_query,
    subject_of,
    up_to_query,
    windows_query,
)
from harness.sense.sources.sap import SapProbe
from harness.store.work_lists import Upstream
from tests.support.databases import AT, FakeRuns

HANA = "jdbc:sap://bw.example.com:30015"


@pytest.mark.parametrize(
    ("jdbc", "url"),
    [
        ("jdbc:postgresql://db:5432/shop?user=me", "postgresql+psycopg://me@db:5432/shop"),
        ("jdbc:postgresql://[::1]:5432/shop", "postgresql+psycopg://[::1]:5432/shop"),
        ("jdbc:postgresql:shop", "postgresql+psycopg:///shop"),
        ("jdbc:postgresql://a:1,b:2/shop", "postgresql+psycopg:///shop?host=a%3A1&host=b%3A2"),
        ("jdbc:postgresql://db/a%20b?ssl=true", "postgresql+psycopg://db/a b?sslmode=verify-full"),
        ("jdbc:postgresql://db/shop?loginTimeout=5&prepareThreshold=0&tcpKeepAlive=true", "postgresql+psycopg://db/shop"),
        ("jdbc:postgresql://db/shop?currentSchema=s", "postgresql+psycopg://db/shop?options=-csearch_path%3Ds"),
        ("jdbc:mysql://db:3306/shop?useSSL=false&serverTimezone=UTC", "mysql+pymysql://db:3306/shop"),
        ("jdbc:mariadb://db/shop", "mariadb+pymysql://db/shop"),
        ("jdbc:oracle:thin:@db:1521:ORCL", "oracle+oracledb://db:1521/ORCL"),
        ("jdbc:oracle:thin:@//db:1521/shop", "oracle+oracledb://[db:1521/shop]"),
        ("jdbc:oracle:thin:@(DESCRIPTION=(A=1))", "oracle+oracledb://(DESCRIPTION=(A=1))"),
        ("jdbc:sqlserver://db:1433;databaseName=shop;encrypt=true", "mssql+pymssql://db:1433/shop?encryption=require"),
        (HANA, "hana+hdbcli://bw.example.com:30015"),
        ("jdbc:sap://db:30013/?databaseName=BW&encrypt=true", "hana+hdbcli://db:30013/BW?encrypt=true"),
        ("jdbc:sqlite:/data/shop.db", "sqlite:///file%3A/data/shop.db?mode=ro&uri=true"),
        ("snowflake://account/shop", "snowflake://account/shop"),
    ],
)  # fmt: skip
def test_a_jdbc_address_is_translated_for_the_python_driver(jdbc: str, url: str) -> None:
    assert str(sqlalchemy_url(jdbc)) == url


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("jdbc:derby:memory:x", "no Python driver is known for jdbc:derby; install"),
        ("jdbc:postgresql://db/x?sslfactory=y", "property sslfactory is one of JDBC alone; leave it"),
        ("jdbc:mysql://db/x?useSSL=true", "property useSSL is one of JDBC alone; leave it"),
        ("jdbc:oracle:oci:@x", "of jdbc:oracle only thin is known"),
        ("jdbc:mysql:loadbalance://a,b/x", "the address jdbc:mysql has no host in it"),
        ("postgresql+psycopg://h:port/x", "is not a SQLAlchemy URL"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_translated_is_refused_in_one_sentence(
    address: str, told: str
) -> None:
    with pytest.raises(DatabaseDownError, match=told) as raised:
        sqlalchemy_url(address)
    assert "\n" not in str(raised.value)


def dialect(address: str) -> Dialect:
    return dialect_of(sqlalchemy_url(address).get_dialect()())


def test_names_and_parts_of_time_are_written_as_each_database_has_them() -> None:
    pg, hana = dialect("jdbc:postgresql://h/x"), dialect(HANA)
    server, mysql = dialect("jdbc:sqlserver://h"), dialect("jdbc:mysql://h/x")

    cases = [each.bare_names for each in (pg, hana, server, mysql)]
    assert cases == [Case.LOWER, Case.UPPER, Case.AS_WRITTEN, Case.AS_WRITTEN]
    assert [each.quotes for each in (pg, hana, server, mysql)] == ['""', '""', "[]", "``"]
    assert server.parts["second"] == "DATEPART(second, {0})"
    assert dialect("jdbc:oracle:thin:@h/x").parts["minute"] == (
        "EXTRACT(minute FROM cast({0} as timestamp))"
    )


# HANA: its statements as text; no server has run them.


class Recorded:
    """Writes statements as HANA's dialect has them, and answers with no rows."""

    def __init__(self) -> None:
        self.asked: list[Query] = []

    def dialect(self, database: object) -> Dialect:
        return dialect(HANA)

    def ask(self, database: object, query: Query, *, within: float, most: object = None) -> Answer:
        self.asked.append(query)
        rows = [(None, "2025-04-23 21:40:00")] if len(self.asked) == 1 else []
        return Answer(columns=(), rows=rows)


def test_process_chains_are_queried_in_the_dialect_of_hana() -> None:
    system = SapSystem(url=HANA, log_table="sapabap1.RSPCLOGCHAIN", look_back_days=7)
    queries = Recorded()
    probe = SapProbe(SapSystems(sap_bw=system), queries, FakeRuns())
    chains = [
        Upstream(upstream_id=name, source="sap_bw", sensor_id=name, read_type="batch")
        for name in ("SALES", "STOCK")
    ]
    assert [result.failure for result in probe.probe(chains, at=AT)] == [None, None]

    clock, runs = queries.asked
    assert clock.written() == (
        'select max("DATUM") as newest, current_timestamp as asked_at'
        ' from "SAPABAP1"."RSPCLOGCHAIN"'
    )
    assert runs.written() == (
        'select "CHAIN_ID", "LOG_ID", "DATUM", "ZEIT", "ANALYZED_STATUS",'
        ' current_timestamp as asked_at from "SAPABAP1"."RSPCLOGCHAIN" where "DATUM" >= ?'
        ' and "ANALYZED_STATUS" in (?, ?) and "CHAIN_ID" in (?, ?)'
    )
    assert [each.text for each in runs.parameters] == ["20250415", "F", "G", "SALES", "STOCK"]


def test_tables_are_queried_in_the_dialect_of_hana() -> None:
    hana = dialect(HANA)
    upstream = Upstream(
        upstream_id="u",
        source="jdbc",
        sensor_id="bw: sales.orders",
        read_type="batch",
        upstream_key="changed",
        on_first_sight=FirstSight.EVENT,
    )
    subject = subject_of(upstream, hana)
    column = Column(kind=Kind.TIME, type_name="datetime")
    window = Window(subject=subject, column=column, start="2025-04-23 21:00:00")
    number = Value(kind=Kind.NUMBER, text="7")

    assert largest_query(subject).written() == (
        'select max("CHANGED") as largest, current_timestamp as asked_at from "SALES"."ORDERS"'
    )
    assert up_to_query(subject, number, number).written() == (
        'select count(*) as counted from "SALES"."ORDERS" where "CHANGED" >= ? and "CHANGED" <= ?'
    )
    assert windows_query([window], hana).written() == (
        'select 0 as place, max("CHANGED") as largest, count("CHANGED") as with_key,'
        ' count(*) as all_rows, sum(cast(EXTRACT(second FROM "CHANGED") + 60 *'
        ' EXTRACT(minute FROM "CHANGED") as decimal(31, 6))) as checked,'
        ' current_timestamp as asked_at from "SALES"."ORDERS" where "CHANGED" >= ?'
        ' or "CHANGED" is null'
    )


@pytest.mark.parametrize(
    ("mark", "percent", "text"),
    [
        ("?", "%", "a like '50%?' and b = ? and c = ?"),
        ("%s", "%%", "a like '50%%?' and b = %s and c = %s"),
        (":{}", "%", "a like '50%?' and b = :1 and c = :2"),
    ],
)
def test_parameters_are_marked_as_the_driver_requires_whatever_the_text_holds(
    mark: str, percent: str, text: str
) -> None:
    value = Value(kind=Kind.TEXT, text="x")
    query = Query(("a like '50%?' and b = ", value, " and c = ", value))

    assert query.written(mark, percent) == text


# Types and texts


class OracleType:
    name = "DB_TYPE_TIMESTAMP_LTZ"


class Driver:
    """The groups of types that PEP 249 names."""

    STRING, NUMBER, DATETIME = 1, 2, 3


@pytest.mark.parametrize(
    ("code", "value", "kind", "type_name"),
    [
        (OracleType(), None, Kind.ZONED, "DB_TYPE_TIMESTAMP_LTZ"),
        (None, "2025", Kind.TEXT, "str"),
        (2, Decimal("1.5"), Kind.NUMBER, "Decimal"),
        (2, 7, Kind.NUMBER, "int"),
        (2, 7.5, Kind.FLOAT, "float"),
        (3, datetime.fromisoformat("2025-04-23"), Kind.TIME, "datetime"),
        (3, datetime(2025, 4, 23, tzinfo=UTC), Kind.ZONED, "datetime"),
        (3, date(2025, 4, 23), Kind.DATE, "date"),
        (9, b"x", Kind.OTHER, "bytes"),
        (3, None, Kind.TIME, ""),
        (2, None, Kind.NUMBER, ""),
        (None, None, Kind.TEXT, ""),
    ],
)
def test_a_column_is_compared_by_its_type_or_else_by_its_first_value(
    code: Any, value: object, kind: Kind, type_name: str
) -> None:
    [column] = columns_of(Driver, object(), [("KEY", code, *[None] * 5)], [(None,), (value,)])

    assert column == Column(kind=kind, type_name=type_name, name="KEY")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("x ", "x "),
        (Decimal("0E-7"), "0.0000000"),
        (Decimal("1E+20"), "100000000000000000000"),
        (9007199254740993, "9007199254740993"),
        (datetime.fromisoformat("2025-04-23T21:10:00"), "2025-04-23 21:10:00"),
        (datetime.fromisoformat("2025-04-23T21:10:00.500"), "2025-04-23 21:10:00.5"),
        (datetime(2025, 4, 23, 21, 10, 0, 1, tzinfo=UTC), "2025-04-23 21:10:00.000001+00:00"),
        (date(2025, 4, 23), "2025-04-23"),
        (b"\x01\x02", "0102"),
    ],
)
def test_values_of_python_are_written_as_a_database_does(value: object, text: str | None) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("driver", "limits"),
    [
        ("hdbcli", {"connectTimeout": 4000, "communicationTimeout": 9000}),
        ("pymysql", {"connect_timeout": 4, "read_timeout": 9, "write_timeout": 9}),
        ("psycopg", {"connect_timeout": 4}),
        ("nosuch", {}),
    ],
)
def test_a_login_and_an_answer_are_limited_where_the_driver_can(
    driver: str, limits: dict[str, int]
) -> None:
    assert limits_of(driver, 4.7, 8.5) == limits


def test_a_statement_that_was_given_up_is_distinguished_from_one_that_is_refused() -> None:
    class Coded(Exception):
        sqlstate = "57014"

    assert [is_too_slow(each) for each in (Coded(), Exception(3024, "x"), Exception("x"))] == [
        True,
        True,
        False,
    ]

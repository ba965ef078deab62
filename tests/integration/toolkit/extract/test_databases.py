"""Extracts from real databases over JDBC: values by column, zones, names, pieces."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from harness.errors import ConfigurationError, ExtractError
from harness.toolkit import extract
from tests.support.fake_clock import FakeClock
from tests.support.lake import LONG, Lake, day, zone
from tests.support.services.databases import Writer
from tests.support.services.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class Shop:
    """A table of PostgreSQL, and what is extracted of it."""

    def __init__(self, spark: "SparkSession", url: str) -> None:
        self.spark, self.name = spark, f"x{next(_NUMBERS)}"
        self.database = extract.Database(url=url)
        self.writer = Writer(url)
        self.writer.run(f"create schema {self.name}")
        self.lake = Lake(spark, self.name)
        self.source = extract.Jdbc(
            database=self.database, table=f"{self.name}.orders", column="updated_at"
        )

    def create(self, columns: str, table: str = "orders") -> "Shop":
        self.writer.run(f"create table {self.name}.{table} ({columns})")
        return self

    def add(self, *values: str, table: str = "orders") -> "Shop":
        self.writer.run(*(f"insert into {self.name}.{table} values ({each})" for each in values))
        return self

    def take(self, at: datetime, **options: object) -> extract.Extraction:
        return self.lake.take(at, **{"source": self.source, **options})


@pytest.fixture
def shop(postgres_of_spark: Postgres, spark: "SparkSession") -> Iterator[Shop]:
    shop = Shop(spark, postgres_of_spark.url)
    yield shop
    shop.writer.close()
    shop.lake.drop()


@pytest.mark.parametrize(
    ("column", "values", "since"),
    [
        pytest.param("timestamp", ["'2026-03-01 02:30'", "'2026-03-01 02:30:00.000001'", "'2026-02-01'"], "2026-03-01T02:30:00.000001", marks=LONG),
        ("timestamptz", ["'2026-03-01 02:30+00'", "'2026-03-01 01:30:00.000001-01'", "'2026-02-01Z'"], "2026-03-01T02:30:00.000001+00:00"),
        pytest.param("date", ["'2026-03-01'", "'2026-03-02'", "'2026-02-01'"], "2026-03-02", marks=LONG),
        pytest.param("bigint", ["9007199254740992", "9007199254740993", "9"], "9007199254740993", marks=LONG),
        pytest.param("numeric(30, 3)", ["9007199254740993.001", "9007199254740993.002", "9"], "9007199254740993.002", marks=LONG),
        pytest.param("text", ["'it''s'", "'it''s; --'", "'a'"], "it's; --", marks=LONG),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else None,
)  # fmt: skip
def test_a_table_is_followed_by_a_column_of_any_type(
    shop: Shop, column: str, values: list[str], since: str
) -> None:
    shop.create(f"id int, updated_at {column}")
    shop.add(*(f"{n}, {each}" for n, each in enumerate(values[:2])))
    shop.take(day(1))
    # Of the largest value, and one that is older.
    shop.add(f"2, {values[1]}", f"3, {values[2]}")
    made = shop.take(day(2))

    assert (made.since, made.rows) == (since, 2)
    assert shop.lake.rows("id") == {(0,): 1, (1,): 2, (2,): 1}


@LONG
def test_instants_and_clocks_keep_what_they_are(shop: Shop) -> None:
    shop.create("id int, updated_at timestamptz, opened timestamp")
    shop.add("1, '2026-03-01 02:30+01', '2026-03-01 02:30'")
    shop.take(day(1))

    types = dict(shop.spark.table(shop.lake.bronze).dtypes)
    assert (types["updated_at"], types["opened"]) == ("timestamp", "timestamp_ntz")
    rows = shop.spark.table(shop.lake.bronze)
    [row] = rows.selectExpr("cast(updated_at as string)", "cast(opened as string)").collect()
    assert tuple(row) == ("2026-03-01 01:30:00", "2026-03-01 02:30:00")


def test_the_zone_of_the_machine_hides_no_row(shop: Shop, postgres: Postgres) -> None:
    shop.create("id int, updated_at timestamptz").add("1, '2026-03-01 06:00Z'")
    shop.take(day(1))
    shop.add("2, '2026-03-01 06:30Z'", "3, '2026-03-01 05:30Z'")
    zones = shop.spark._jvm.java.util.TimeZone  # type: ignore[union-attr]
    before = zones.getDefault()
    # PostgreSQL's driver sends the server the zone of the machine.
    zones.setDefault(zones.getTimeZone("America/New_York"))
    try:
        with_west = shop.take(day(2))
        zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
        with_east = shop.take(day(3))
    finally:
        zones.setDefault(before)

    assert (with_west.rows, with_west.since) == (2, "2026-03-01T06:00:00+00:00")
    assert (with_east.rows, with_east.since) == (1, "2026-03-01T06:30:00+00:00")


@LONG
@pytest.mark.parametrize("column", ["timestamp", "timestamptz"])
def test_the_zone_of_the_session_hides_no_row(shop: Shop, column: str) -> None:
    # Of a clock: no such time in Berlin. Of instants: the second time on the clock.
    at = "2026-03-29 02:30" if column == "timestamp" else "2026-10-25 01:30Z"
    shop.create(f"id int, updated_at {column}").add(f"1, '{at}'")
    with zone(shop.spark, "Europe/Berlin"):
        shop.take(day(300))
        shop.add(f"2, timestamp '{at[:16]}:01'" + " at time zone 'UTC'" * (column != "timestamp"))
        shop.add("3, '2026-03-01 00:00Z'")
        made = shop.take(day(301))

    assert made.rows == 2
    assert shop.lake.rows("id") == {(1,): 2, (2,): 1}


@LONG
def test_names_are_quoted_and_a_query_may_stand_for_a_table(shop: Shop) -> None:
    shop.create('id int, "Updated; At" timestamp', '"the ""Orders"" x"')
    shop.add("1, '2026-03-01'", table='"the ""Orders"" x"')
    exact = replace(shop.source, table=f'{shop.name}."the ""Orders"" x"', column="`Updated; At`")
    shop.take(day(1), source=exact)
    made = shop.take(day(2), source=exact)
    assert (made.rows, made.since) == (1, "2026-03-01T00:00:00")
    shop.lake.spark.sql(f"drop table {shop.lake.bronze}")
    query = (
        f'(select id, "Updated; At" as changed from {shop.name}."the ""Orders"" x" where id > 0)'
    )
    made = shop.take(day(1), source=replace(exact, table=query, column="changed"))
    assert made.rows == 1


@LONG
def test_a_backlog_of_a_database_comes_in_pieces(shop: Shop) -> None:
    shop.create("id int, updated_at timestamptz")
    shop.add(*(f"{n}, '2026-03-{n:02} 06:00Z'" for n in (1, 2, 3, 9)), "10, null")
    source = replace(shop.source, piece=timedelta(days=2))
    made = extract.catch_up(shop.spark, source, shop.lake.bronze, clock=FakeClock(day(30)))

    assert [(each.rows, each.is_more) for each in made] == [(2, True), (2, True), (3, False)]
    assert set(shop.lake.rows("id")) == {(1,), (2,), (3,), (9,), (10,)}


def test_what_is_wrong_with_a_database_is_reported_in_one_sentence(shop: Shop) -> None:
    shop.create("id int, updated_at timestamptz, ratio float8").add("1, 'infinity', 1")
    unreachable = extract.Database(url="jdbc:postgresql://127.0.0.1:1/none", timeout_seconds=2)
    nothing = extract.Database(url=shop.database.url, password="env:NO_SUCH_SECRET")
    wrong: list[tuple[dict[str, object], str]] = [
        ({"table": "a; drop table b"}, "is not the name of a table in a database; allowed are"),
        ({"table": "no.such"}, 'no.such cannot be read: .*relation "no.such" does not exist'),
        ({"column": "x"}, 'cannot be read: .*column "x" does not exist'),
        ({"column": "ratio"}, "ratio is float8, which does not show how far"),
        ({"column": "a b"}, "'a b' is not the name of a column"),
        ({"piece": timedelta(1)}, "has the value 'infinity', which cannot be compared"),
        ({"database": unreachable}, "cannot be reached"),
        ({"database": nothing}, "env:NO_SUCH_SECRET is not set"),
    ]
    for options, reason in wrong:
        with pytest.raises((ConfigurationError, ExtractError), match=reason) as raised:
            shop.take(day(1), source=replace(shop.source, **options))  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)

"""How far a bronze table has come, by its last partitions, and what is amiss with that."""

import itertools
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest

from harness.errors import ConfigurationError, ExtractError
from harness.toolkit import extract
from tests.support.lake import LONG, day, zone
from tests.support.local_rows import frame_of_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class Bronze:
    """A bronze table that is filled by hand."""

    def __init__(self, spark: "SparkSession", using: str, partition: str) -> None:
        self.spark, self.name = spark, f"newest.`orders_{next(_NUMBERS)}`"
        self.columns = columns = "id bigint, updated_at timestamp, p_extracted_at " + partition
        spark.sql(
            f"create table {self.name} ({columns}) using {using} partitioned by (p_extracted_at)"
        )

    def add(self, extracted: object, updated: datetime | None) -> "Bronze":
        rows = frame_of_rows(self.spark, [(1, updated, extracted)], self.columns)
        rows.write.insertInto(self.name)
        return self

    def newest(self, now: datetime, **look_back: object) -> object:
        return extract.newest(self.spark, self.name, "updated_at", now=now, **look_back)  # type: ignore[arg-type]

    def lose_older_than(self, instant: datetime) -> None:
        """Take the files of older partitions away, so that nobody can read them."""
        rows = self.spark.sql(f"describe table extended {self.name}").collect()
        [place] = [row["data_type"] for row in rows if row["col_name"] == "Location"]
        for folder in Path(unquote(urlparse(place).path)).glob("p_extracted_at=*"):
            value = unquote(folder.name).split("=")[1].replace("T", " ")[:19]
            if value < f"{instant:%Y-%m-%d %H:%M:%S}":
                for file in folder.glob("*.parquet"):
                    file.write_bytes(b"nobody can read this")


@pytest.fixture(scope="module", autouse=True)
def schema(spark: "SparkSession") -> Iterator[None]:
    spark.sql("create schema newest")
    yield
    spark.sql("drop schema if exists newest cascade")


KINDS = [("delta", "timestamp"), ("parquet", "string")]
MORE_KINDS = [
    ("delta", "string"),
    ("delta", "date"),
    ("parquet", "timestamp"),
    ("delta", "timestamp_ntz"),
]


def as_partition(kind: str, instant: datetime) -> object:
    match kind:
        case "string":
            return instant.isoformat()
        case "date":
            return instant.date()
        case "timestamp_ntz":
            return instant.replace(tzinfo=None)
        case _:
            return instant


@pytest.mark.parametrize(
    ("using", "kind"),
    [*KINDS, *(pytest.param(*each, marks=LONG) for each in MORE_KINDS)],
    ids=[f"{using} {kind}" for using, kind in (*KINDS, *MORE_KINDS)],
)
def test_only_the_partitions_of_the_last_days_are_read(
    spark: "SparkSession", using: str, kind: str
) -> None:
    bronze = Bronze(spark, using, kind)
    for number in (0, 21, 24, 27):
        bronze.add(as_partition(kind, day(number)), day(number - 1))
    # A failed run was made up for: the largest value is not in the newest partition.
    bronze.add(as_partition(kind, day(28)), day(2))
    bronze.lose_older_than(day(22))

    assert bronze.newest(day(29)) == day(26)
    with pytest.raises(ExtractError, match="cannot be read"):
        bronze.newest(day(29), days=9)


def test_of_a_table_that_is_not_there_nothing_is_known(spark: "SparkSession") -> None:
    for name in ("newest.nothing", "no_schema.nothing", "spark_catalog.newest.nothing"):
        assert extract.newest(spark, name, "updated_at", now=day(1)) is None


def test_a_lookback_that_is_too_short_queries_the_whole_table_and_logs_it(
    spark: "SparkSession", caplog: pytest.LogCaptureFixture
) -> None:
    bronze = Bronze(spark, "delta", "timestamp").add(day(0), day(-1))

    assert bronze.newest(day(10)) == day(-1)
    assert "no partition of the last 7 days has a value in updated_at" in caplog.text
    assert day(-1).isoformat() in caplog.text
    caplog.clear()
    assert bronze.newest(day(10), days=11) == day(-1)
    assert caplog.text == ""


@LONG
def test_for_a_table_whose_rows_have_no_value_it_is_logged_that_all_is_extracted_again(
    spark: "SparkSession", caplog: pytest.LogCaptureFixture
) -> None:
    bronze = Bronze(spark, "delta", "timestamp").add(day(0), None)

    assert bronze.newest(day(1)) is None
    assert "has 1 rows, but none with a value in updated_at" in caplog.text


def test_a_value_of_the_future_is_named_and_hides_nothing(
    spark: "SparkSession", caplog: pytest.LogCaptureFixture
) -> None:
    far = day(365_000)
    bronze = Bronze(spark, "delta", "timestamp").add(day(0), day(-1)).add(day(0), far)

    assert bronze.newest(day(1)) == day(-1)
    assert f"the largest updated_at is {far.isoformat()}" in caplog.text
    assert "it was ignored" in caplog.text
    assert bronze.newest(day(1), future=extract.Future.TAKE) == far
    named = rf"is {far.isoformat().replace('+', '.')}, after.*fix that row"
    with pytest.raises(ExtractError, match=named):
        bronze.newest(day(1), future=extract.Future.REFUSE)


@LONG
def test_where_all_values_are_of_the_future_all_is_extracted_again_and_that_is_logged(
    spark: "SparkSession", caplog: pytest.LogCaptureFixture
) -> None:
    bronze = Bronze(spark, "delta", "timestamp").add(day(0), day(500))

    assert bronze.newest(day(1)) is None
    assert "it was ignored" in caplog.text
    assert "everything is extracted again" in caplog.text


@LONG
def test_each_type_of_a_column_is_given_back_as_such(spark: "SparkSession") -> None:
    spark.sql(
        "create table newest.types using delta partitioned by (p_extracted_at) as select"
        " timestamp'2026-10-25T00:30:00.000005Z' as instant,"
        " timestamp_ntz'2026-10-25 02:30:00.000005' as clock, date'2026-03-01' as day,"
        " 9007199254740993 as number, cast(1.50 as decimal(20, 2)) as money, '2026-03-01' as text,"
        " '9999-12-31' as far_text, 'z9' as word, named_struct('at', 7) as nested,"
        " 1.5d as ratio, timestamp'2026-10-25T01:00:00Z' as p_extracted_at"
    )

    def newest(column: str) -> object:
        now = datetime.fromisoformat("2026-10-25T02:00:00Z")
        return extract.newest(spark, "newest.types", column, now=now)

    expected = {
        "instant": datetime.fromisoformat("2026-10-25T00:30:00.000005Z"),
        "clock": datetime(2026, 10, 25, 2, 30, 0, 5),  # noqa: DTZ001
        "day": date(2026, 3, 1),
        "number": 9007199254740993,
        "money": Decimal("1.50"),
        "text": "2026-03-01",
        "far_text": None,
        "word": "z9",
        "nested.at": 7,
    }
    for name in ("UTC", "Europe/Berlin", "America/New_York"):
        with zone(spark, name):
            assert {column: newest(column) for column in expected} == expected
    with pytest.raises(ConfigurationError, match="ratio is double, which does not show"):
        newest("ratio")


@pytest.mark.parametrize(
    ("table", "column", "reason"),
    [
        ("a; drop table b", "id", "is not the name of a table; allowed are schema.table"),
        ("a.b.c.d", "id", "is not the name of a table"),
        ("a..b", "id", "is not the name of a table"),
        ("newest.x", "id) from y --", "is not the name of a column"),
        ("no_catalog.newest.x", "id", "no_catalog.newest.x cannot be read"),
    ],
)
def test_a_name_that_is_none_never_reaches_the_database(
    spark: "SparkSession", table: str, column: str, reason: str
) -> None:
    with pytest.raises((ConfigurationError, ExtractError), match=reason) as raised:
        extract.newest(spark, table, column, now=day(1))
    assert "\n" not in str(raised.value)


def test_a_table_that_is_not_partitioned_is_refused(spark: "SparkSession") -> None:
    spark.sql("create table newest.unpartitioned (id bigint) using delta")
    with pytest.raises(ConfigurationError, match="is partitioned by nothing"):
        extract.newest(spark, "newest.unpartitioned", "id", now=day(1))

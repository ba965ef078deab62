"""One extract after the other into bronze: how far it has come, what is newer, and each once."""

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest

from harness.errors import ConfigurationError, ExtractError
from harness.toolkit import extract
from harness.toolkit.extract import api as appending
from tests.support.fake_clock import FakeClock
from tests.support.lake import LONG, Given, Lake, day, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()
FORMATS = pytest.mark.parametrize("made_as", ["delta", "parquet"])


@pytest.fixture
def lake(spark: "SparkSession", request: pytest.FixtureRequest) -> Iterator[Lake]:
    made_as = getattr(request, "param", "delta")
    lake = Lake(spark, f"a{next(_NUMBERS)}", made_as)
    yield lake
    lake.drop()


BOTH = pytest.mark.parametrize("lake", ["delta", "parquet"], indirect=True)


def folder_of(lake: Lake, at: datetime) -> Path:
    """The folder of a partition, which is to be there."""
    rows = lake.spark.sql(f"describe table extended {lake.bronze}").collect()
    [place] = [row["data_type"] for row in rows if row["col_name"] == "Location"]
    named = {unquote(each.name): each for each in Path(unquote(urlparse(place).path)).glob("p_*")}
    return named[f"p_extracted_at={at:%Y-%m-%d %H:%M:%S}"]


@BOTH
def test_each_extract_takes_what_is_newer_and_the_largest_value_once_more(lake: Lake) -> None:
    lake.create().add(1, "new", day(0)).add(2, "new", day(0.1))
    first = lake.take(day(1))
    lake.add(2, "paid", day(1.1)).add(3, "new", day(0.1))
    second = lake.take(day(2))

    assert (first.is_first, first.rows, first.since, first.until) == (
        True, 2, None, day(0.1).isoformat(),
    )  # fmt: skip
    # Of one instant are the row that bronze has, and one that was committed after it.
    assert (second.is_first, second.rows, second.since, second.until) == (
        False, 3, day(0.1).isoformat(), day(1.1).isoformat(),
    )  # fmt: skip
    assert lake.rows() == {(1, "new"): 1, (2, "new"): 2, (2, "paid"): 1, (3, "new"): 1}
    assert lake.partitions() == [day(1), day(2)]
    assert first.notes == second.notes == ()


@LONG
@BOTH
def test_a_run_after_days_without_one_takes_all_that_was_missed(lake: Lake) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(0.5))
    for number in range(1, 5):
        lake.add(number + 1, "new", day(number))
    made = lake.take(day(5))

    assert made.rows == 5
    assert lake.rows() == {(1, "new"): 2} | {(n, "new"): 1 for n in range(2, 6)}


@BOTH
def test_a_retry_of_an_extract_that_came_through_changes_nothing(lake: Lake) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(1))
    lake.add(2, "new", day(1))
    again = lake.take(day(1))

    assert (again.is_repeat, again.rows) == (True, 1)
    assert lake.rows() == {(1, "new"): 1}
    assert lake.take(day(2)).rows == 2


@BOTH
def test_a_process_killed_between_the_write_and_its_return_doubles_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(1))
    lake.add(2, "new", day(1.5))

    class Killed(BaseException):
        pass

    def write_and_die(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type]
        raise Killed

    write = appending.write
    with monkeypatch.context() as patched:
        patched.setattr(appending, "write", write_and_die)
        with pytest.raises(Killed):
            lake.take(day(2))
    again = lake.take(day(2))

    assert (again.is_repeat, again.rows) == (True, 2)
    assert lake.rows() == {(1, "new"): 2, (2, "new"): 1}


@BOTH
def test_two_processes_with_one_extract_append_it_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(1))
    lake.add(2, "new", day(1.5)).add(3, "new", day(1.6))
    lake.take(day(2))
    # The other one has checked before this one came through.
    results = iter([False])
    has_extract = extract.Bronze.has_extract

    def late(bronze: extract.Bronze) -> bool:
        return next(results, True) and has_extract(bronze)

    monkeypatch.setattr(extract.Bronze, "has_extract", late)
    lake.take(day(2))

    assert lake.partitions() == [day(1), day(2)]
    assert lake.rows() == {(1, "new"): 2, (2, "new"): 1, (3, "new"): 1}


def test_what_a_killed_process_left_in_a_plain_table_is_replaced(spark: "SparkSession") -> None:
    lake = Lake(spark, f"a{next(_NUMBERS)}", "parquet").create().add(1, "new", day(0))
    lake.take(day(1))
    # Files that are at their place already, of a partition that nobody has registered.
    left = folder_of(lake, day(1))
    target = left.with_name(left.name.replace("2026-03-03", "2026-03-04"))
    shutil.copytree(left, target)
    before = lake.rows()
    lake.add(2, "new", day(1.5))
    made = lake.take(day(2))
    after = lake.rows()
    lake.drop()

    assert before == {(1, "new"): 1}
    assert (made.is_repeat, made.rows) == (False, 2)
    assert after == {(1, "new"): 2, (2, "new"): 1}


def test_an_extract_whose_partition_was_deleted_is_not_lost_silently(lake: Lake) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(1))
    lake.spark.sql(f"delete from {lake.bronze}")

    with pytest.raises(
        ExtractError, match=r"had the extract of .* once, and its rows were deleted"
    ):
        lake.take(day(1))
    assert lake.take(day(1.1)).rows == 1


@LONG
@BOTH
def test_a_source_without_rows_leaves_no_partition_and_no_commit(lake: Lake) -> None:
    lake.create()
    made = lake.take(day(1))

    assert (made.rows, made.is_first) == (0, True)
    assert not lake.spark.catalog.tableExists(lake.bronze)


@LONG
@BOTH
def test_rows_that_are_committed_late_come_by_the_overlap(lake: Lake) -> None:
    lake.create().add(1, "new", day(0))
    lake.take(day(1))
    lake.add(2, "late", day(0) - timedelta(minutes=5))
    with_overlap = lake.by_column(overlap=timedelta(minutes=10))

    assert lake.take(day(2)).rows == 1
    assert lake.take(day(3), source=with_overlap).rows == 2


@LONG
def test_rows_without_a_value_are_read_each_time_unless_they_are_excluded(lake: Lake) -> None:
    lake.create().add(1, "new", day(0)).add(2, "unknown", None)
    lake.take(day(1))
    lake.add(3, "unknown", None)

    assert lake.take(day(2)).rows == 3
    assert lake.take(day(3), source=lake.by_column(nulls=False)).rows == 1


@LONG
@BOTH
def test_a_backlog_comes_in_pieces_oldest_first(lake: Lake) -> None:
    lake.create()
    for number in (0, 1, 1.5, 9, 9.2, 30):
        lake.add(int(number * 10), "new", day(number))
    clock = FakeClock(day(40))
    by_days = lake.by_column(piece=timedelta(days=1))
    made = extract.catch_up(lake.spark, by_days, lake.bronze, clock=clock, file_format=lake.made_as)

    # Each begins with the largest value of the one before it; where there is nothing, none is.
    assert [(each.rows, each.until) for each in made] == [
        (1, day(0).isoformat()),
        (3, day(1.5).isoformat()),
        (3, day(9.2).isoformat()),
        (2, day(30).isoformat()),
    ]
    assert [each.is_more for each in made] == [True, True, True, False]
    assert set(lake.rows()) == {(n, "new") for n in (0, 10, 15, 90, 92, 300)}
    assert len(lake.partitions()) == 4


def test_no_session_and_no_process_shifts_an_instant(lake: Lake) -> None:
    lake.create()
    # Twice half past two in Berlin, an hour apart.
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    second = first + timedelta(hours=1)
    with zone(lake.spark, "Europe/Berlin"):
        lake.add(1, "new", first)
        lake.take(first + timedelta(hours=5))
        lake.add(2, "new", second)
        made = lake.take(second + timedelta(hours=5))
        # Delta would write it into the partition of an hour before.
        with pytest.raises(ConfigurationError, match="clock of Europe/Berlin shows that time twi"):
            lake.take(second)

    assert (made.since, made.until, made.rows) == (first.isoformat(), second.isoformat(), 2)
    assert lake.partitions() == [each + timedelta(hours=5) for each in (first, second)]


@LONG
def test_a_plain_table_is_not_written_with_the_time_of_a_zone(spark: "SparkSession") -> None:
    lake = Lake(spark, f"a{next(_NUMBERS)}", "parquet").create().add(1, "new", day(0))
    with zone(spark, "Europe/Berlin"), pytest.raises(ConfigurationError, match="set it to UTC"):
        lake.take(day(1))
    spark.sql(
        f"create table {lake.bronze} (id bigint, status string, updated_at timestamp)"
        " partitioned by (p_extracted_at string) stored as parquet"
    )
    with zone(spark, "Europe/Berlin"):
        assert lake.take(day(1)).rows == 1
        assert lake.take(day(1)).is_repeat
    found = spark.table(lake.bronze).collect()
    lake.drop()
    assert [row["p_extracted_at"] for row in found] == ["2026-03-03T06:00:00+00:00"]


@LONG
@pytest.mark.parametrize(
    ("columns", "partition", "reason"),
    [
        ("p_extracted_at date", "p_extracted_at", "which two extracts of a day would share"),
        ("p_extracted_at int", "p_extracted_at", "p_extracted_at is int; allowed are timestamp"),
        ("p_extracted_at timestamp", None, "is partitioned by nothing; bronze has to be"),
        ("day date", "day", "is partitioned by day; bronze has to be partitioned by p_extracted"),
    ],
)
def test_a_table_that_is_no_bronze_table_is_refused(
    lake: Lake, columns: str, partition: str | None, reason: str
) -> None:
    lake.create().add(1, "new", day(0))
    by = f"partitioned by ({partition})" if partition else ""
    lake.spark.sql(f"create table {lake.bronze} (id bigint, {columns}) using delta {by}")

    with pytest.raises(ConfigurationError, match=reason) as raised:
        lake.take(day(1))
    assert "\n" not in str(raised.value)


def test_what_is_wrong_is_reported_in_one_sentence(lake: Lake) -> None:
    lake.create("id bigint, ratio double, updated_at timestamp")
    source = lake.by_column()
    wrong: list[tuple[dict[str, object], str]] = [
        ({"at": datetime(2026, 3, 1)}, r"datetime\(2026, 3, 1, 0, 0\).*with a zone"),  # noqa: DTZ001
        ({"source": replace(source, table="a b")}, "'a b' is not the name of a table; allowed are"),
        ({"source": replace(source, table="no.such")}, "no.such cannot be read: .*NOT_FOUND"),
        ({"source": replace(source, column="x")}, "has no column x; it has id, ratio, updated_at"),
        ({"source": replace(source, column="x; y")}, "'x; y' is not the name of a column"),
        ({"source": replace(source, column="ratio")}, "ratio is double, which does not show"),
        ({"source": replace(source, overlap=5)}, "overlap is 5, but updated_at is a timestamp;"),
        ({"source": replace(source, piece=timedelta(0))}, "piece is nothing"),
        ({"source": replace(source, overlap=timedelta(-1))}, "allowed is nothing below zero"),
        ({"days": 0}, "days is 0; allowed is an integer from 1"),
        ({"partition": "a.b"}, "'a.b' is not the name of a column to partition by"),
        ({"source": Given("select 1 as id, 2 as ID")}, "the columns id and ID, which no table"),
        ({"source": Given("select 1 as P_extracted_at")}, "a column p_extracted_at of its own"),
    ]
    for options, reason in wrong:
        with pytest.raises((ConfigurationError, ExtractError), match=reason) as raised:
            lake.take(**{"at": day(1), **options})  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)
    assert not lake.spark.catalog.tableExists(lake.bronze)


@LONG
def test_a_view_is_no_bronze_table(lake: Lake) -> None:
    lake.create().add(1, "new", day(0))
    lake.spark.sql(f"create view {lake.bronze} as select 1 as id")

    with pytest.raises(ConfigurationError, match="is a view; name a table to extract into"):
        lake.take(day(1))

"""Extracts from Delta versions and from files: nothing twice, nothing lost."""

import itertools
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ConfigurationError, ExtractError
from harness.toolkit import extract
from tests.support.fake_clock import FakeClock
from tests.support.lake import LONG, Lake, Log, day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


@pytest.fixture
def lake(spark: "SparkSession") -> Iterator[Lake]:
    lake = Lake(spark, f"o{next(_NUMBERS)}")
    yield lake
    lake.drop()


@pytest.fixture
def log(spark: "SparkSession") -> Iterator[Log]:
    log = Log(spark, f"o{next(_NUMBERS)}")
    log.create()
    yield log
    log.drop()


def test_each_version_of_a_delta_table_comes_once(log: Log) -> None:
    log.add(1, "new", day(0)).add(2, "new", day(0))
    first = log.take(day(1))
    log.add(3, "new", day(-5))
    log.spark.sql(f"optimize {log.orders}")
    second = log.take(day(2))
    third = log.take(day(3))

    assert [(each.rows, each.since, each.until) for each in (first, second, third)] == [
        (2, None, "2"),
        (1, "2", "4"),
        (0, None, None),
    ]
    assert log.rows("id", "_source_version") == {(1, 2): 1, (2, 2): 1, (3, 4): 1}
    assert log.partitions() == [day(1), day(2)]


@LONG
def test_changed_rows_of_a_delta_table_come_in_their_new_state(log: Log) -> None:
    log.add(1, "new", day(0)).add(2, "new", day(0))
    log.take(day(1))
    log.spark.sql(f"update {log.orders} set status = 'paid' where id = 1")
    log.spark.sql(f"delete from {log.orders} where id = 2")
    made = log.take(day(2))

    assert made.rows == 1
    assert "its change data feed does not cover that" in made.notes[0]
    assert log.rows() == {(1, "new"): 1, (2, "new"): 1, (1, "paid"): 1}


@LONG
def test_versions_come_in_pieces_and_those_without_rows_stand_in_no_way(log: Log) -> None:
    log.add(1, "new", day(0))
    log.take(day(1))
    for number in range(2, 5):
        log.add(number, "new", day(0))
        log.spark.sql(f"alter table {log.orders} set tblproperties ('n' = '{number}')")
    source = extract.DeltaVersions(table=log.orders, most=1)
    made = extract.catch_up(log.spark, source, log.bronze, clock=FakeClock(day(2)))

    assert [(each.rows, each.is_more) for each in made] == [
        (1, True), (1, True), (1, True), (0, False),
    ]  # fmt: skip
    assert log.rows() == {(n, "new"): 1 for n in range(1, 5)}


@LONG
def test_a_delta_table_that_was_made_again_comes_whole(log: Log) -> None:
    log.add(1, "new", day(0))
    log.take(day(1))
    log.spark.sql(f"drop table {log.orders}")
    log.create().add(5, "again", day(0)).add(6, "again", day(0)).add(7, "again", day(0))
    made = log.take(day(2))

    assert (made.rows, made.since) == (3, None)
    assert "everything is extracted again" in made.notes[-1]
    assert log.take(day(3)).rows == 0


@LONG
def test_a_delta_table_that_is_behind_bronze_is_refused(log: Log, tmp_path: Path) -> None:
    log.add(1, "new", day(0))
    log.take(day(1))
    log.spark.sql(f"update {log.bronze} set _source_version = 9")

    with pytest.raises(ExtractError, match=r"is at version 1, and .* has rows of version 9"):
        log.take(day(2))
    rows = log.spark.table(log.orders)
    rows.write.parquet(str(tmp_path / "plain"))
    log.spark.sql(f"create table {log.schema}.plain using parquet location '{tmp_path}/plain'")
    with pytest.raises((ConfigurationError, ExtractError), match="plain") as raised:
        log.take(day(2), source=extract.DeltaVersions(table=f"{log.schema}.plain"))
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="most is 0; allowed is an integer from 1"):
        log.take(day(2), source=extract.DeltaVersions(table=log.orders, most=0))


class Inbox:
    """A folder that files arrive in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def put(self, name: str, text: str, at: datetime) -> "Inbox":
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, ns=(0, int(at.timestamp() * 1e9)))
        return self


@pytest.fixture
def inbox(lake: Lake, tmp_path: Path) -> Inbox:
    inbox = Inbox(tmp_path / "in box")
    lake.source = extract.Files(path=str(inbox.path))
    return inbox


def test_each_file_comes_once_and_again_when_it_is_written_again(lake: Lake, inbox: Inbox) -> None:
    inbox.put("a 1%+.csv", "id,status\n1,new\n", day(0))
    inbox.put("b.json", '{"id": "2", "status": "new"}\n', day(0))
    inbox.put("_ignored.csv", "id\n9\n", day(0)).put("empty.csv", "id,status\n", day(0))
    first = lake.take(day(1))
    # Copied with its old time, and written again.
    inbox.put("c.csv", "id,status\n3,old\n", day(-0.5))
    inbox.put("a 1%+.csv", "id,status\n1,paid\n", day(1))
    second = lake.take(day(2))
    third = lake.take(day(3))

    assert [each.rows for each in (first, second, third)] == [2, 2, 0]
    assert lake.rows() == {("1", "new"): 1, ("2", "new"): 1, ("3", "old"): 1, ("1", "paid"): 1}
    names = {row[0] for row in lake.rows("_source_file")}
    assert names == {str(inbox.path / each) for each in ("a 1%+.csv", "b.json", "c.csv")}


@LONG
def test_files_come_in_pieces_oldest_first(lake: Lake, inbox: Inbox) -> None:
    for number in range(4):
        text = "id,status\n" + ("" if number == 1 else f"{number},new\n")
        inbox.put(f"{9 - number}.csv", text, day(number / 100))
    source = extract.Files(path=str(inbox.path), most=1)
    made = extract.catch_up(lake.spark, source, lake.bronze, clock=FakeClock(day(2)))

    assert [(each.rows, each.is_more) for each in made] == [(1, True), (1, True), (1, False)]
    ordered = lake.spark.table(lake.bronze).orderBy("p_extracted_at").collect()
    assert [row["id"] for row in ordered] == ["0", "2", "3"]


@LONG
def test_files_that_are_being_written_wait(lake: Lake, inbox: Inbox) -> None:
    inbox.put("a.csv", "id,status\n1,new\n", day(0)).put("b.csv", "id,status\n2,n\n", day(1))
    source = extract.Files(path=str(inbox.path), at_rest=timedelta(minutes=5))

    assert lake.take(day(1) + timedelta(minutes=1), source=source).rows == 1
    assert lake.take(day(1) + timedelta(minutes=6), source=source).rows == 1


@LONG
def test_files_of_partition_folders_are_followed_by_the_folder(lake: Lake, inbox: Inbox) -> None:
    inbox.put("day=2026-03-01/a.csv", "id,status\n1,new\n", day(9))
    inbox.put("day=2026-03-02/kind=a%2Bb c/a.csv", "id,status\n2,new\n", day(9))
    source = extract.Files(path=str(inbox.path), folder="day")
    lake.take(day(1), source=source)
    inbox.put("day=2026-03-01/late.csv", "id,status\n3,new\n", day(9))
    inbox.put("day=2026-03-02/b.csv", "id,status\n4,new\n", day(9))
    inbox.put("day=2026-03-03/c.csv", "id,status\n5,new\n", day(9))
    made = lake.take(day(2), source=source)

    assert (made.rows, made.since, made.until) == (2, "2026-03-02", "2026-03-03")
    assert lake.rows("id", "day", "kind") == {
        ("1", "2026-03-01", None): 1,
        ("2", "2026-03-02", "a+b c"): 1,
        ("4", "2026-03-02", None): 1,
        ("5", "2026-03-03", None): 1,
    }
    inbox.put("loose.csv", "id,status\n1,new\n", day(9))
    with pytest.raises(ConfigurationError, match=r"loose.csv is in no folder day=\.\.\.; name"):
        lake.take(day(3), source=source)


@LONG
def test_what_is_wrong_with_files_is_reported_in_one_sentence(lake: Lake, inbox: Inbox) -> None:
    inbox.put("a.parquet", "this is not parquet", day(0))
    wrong = [
        (extract.Files(path=f"{inbox.path}/none"), "cannot be read: the folder"),
        (extract.Files(path=str(inbox.path)), "cannot be read: "),
        (extract.Files(path=str(inbox.path), most=0), "most is 0; allowed is an integer"),
    ]
    for source, reason in wrong:
        with pytest.raises((ConfigurationError, ExtractError), match=reason) as raised:
            lake.take(day(1), source=source)
        assert "\n" not in str(raised.value)

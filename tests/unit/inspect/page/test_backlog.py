"""What waits for a self-healing model, by the logs of its source and of its own table."""

import json
import shutil
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.inspect.page.backlog import Backlog, Backlogs
from tests.support.ledgers import TEN

#: Days of the source: the model has consumed the first two.
MONDAY = date(2026, 3, 2)
NOW = TEN + timedelta(days=10)
NONE = Backlog(count=0, oldest=None)


class Lake:
    """A source by day, and the record of a model over it."""

    def __init__(self, warehouse: Path) -> None:
        self.warehouse = warehouse
        self.taken: list[dict[str, object]] = []
        self.write_model()
        self.append(MONDAY)
        self.append(MONDAY + timedelta(days=1))
        self.take(MONDAY, MONDAY + timedelta(days=1))

    def table(self, name: str) -> Path:
        return self.warehouse / f"{name.replace('.', '.db/')}"

    def write_model(self) -> None:
        write_deltalake(self.table("silver.orders"), pa.table({"id": [1]}), mode="append")

    def append(self, day: object, rows: int = 1) -> None:
        given = pa.table({"id": [*range(rows)], "day": [day] * rows})
        write_deltalake(self.table("bronze.orders"), given, mode="append", partition_by=["day"])

    def take(self, *days: object, rows: int = 1, look_back_days: int | None = 7) -> None:
        model = DeltaTable(self.table("silver.orders"))
        self.taken += [
            {
                "source_id": str(DeltaTable(self.table("bronze.orders")).metadata().id),
                "partition_column": "day",
                "partition": None if day is None else str(day),
                "stamp": f"{rows}/00FF",
                "look_back_days": look_back_days,
                "table_id": str(model.metadata().id),
                "table_version": model.version(),
                "taken_at": TEN + timedelta(seconds=len(self.taken)),
            }
            for day in days
        ]

    def waiting(self, source: str = "bronze.orders", now: datetime = NOW) -> Backlog | None:
        return Backlogs(warehouse=self.warehouse, now=now).of("silver.orders", source, self.taken)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.mark.parametrize("source", ["bronze.orders", "spark_catalog.bronze.orders"])
def test_nothing_waits_while_every_partition_is_taken(lake: Lake, source: str) -> None:
    assert lake.waiting(source) == NONE


def test_new_partitions_wait_and_the_oldest_is_named(lake: Lake) -> None:
    lake.append(MONDAY + timedelta(days=3))
    lake.append(MONDAY + timedelta(days=2))
    assert lake.waiting() == Backlog(count=2, oldest="2026-03-04")


def test_a_partition_without_a_value_is_one_of_them(lake: Lake) -> None:
    lake.append(pa.scalar(None, pa.date32()).as_py())
    assert lake.waiting() == Backlog(count=1, oldest="null")
    lake.take(None)
    assert lake.waiting() == NONE


def test_a_partition_that_got_more_rows_waits_again(lake: Lake) -> None:
    lake.append(MONDAY, rows=2)
    assert lake.waiting() == Backlog(count=1, oldest="2026-03-02")
    lake.take(MONDAY, rows=3)
    assert lake.waiting() == NONE


def test_a_partition_whose_files_have_no_statistics_is_not_taken_for_one_with_other_rows(
    lake: Lake,
) -> None:
    for commit in (lake.table("bronze.orders") / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    assert lake.waiting() == NONE


def test_what_is_older_than_the_lookback_does_not_wait(lake: Lake) -> None:
    lake.append(MONDAY - timedelta(days=7))
    assert lake.waiting() == NONE
    lake.take(MONDAY, look_back_days=None)
    assert lake.waiting() == Backlog(count=1, oldest="2026-02-23")


def test_a_taken_partition_in_the_future_does_not_move_the_lookback(lake: Lake) -> None:
    ahead = NOW.date() + timedelta(days=300)
    lake.append(ahead)
    lake.take(ahead)
    lake.append(MONDAY - timedelta(days=1))
    assert lake.waiting() == Backlog(count=1, oldest="2026-03-01")


@pytest.mark.parametrize("table", ["bronze.orders", "silver.orders"])
def test_everything_waits_once_the_source_or_the_model_was_created_again(
    lake: Lake, table: str
) -> None:
    shutil.rmtree(lake.table(table))
    lake.write_model()
    lake.append(MONDAY)
    waiting = lake.waiting()
    assert waiting is not None
    assert waiting.count == len(DeltaTable(lake.table("bronze.orders")).partitions())


def test_what_a_restore_of_the_model_has_undone_waits_again(lake: Lake) -> None:
    before = DeltaTable(lake.table("silver.orders")).version()
    lake.write_model()
    lake.append(MONDAY + timedelta(days=2))
    lake.take(MONDAY + timedelta(days=2))
    assert lake.waiting() == NONE
    DeltaTable(lake.table("silver.orders")).restore(before)
    assert lake.waiting() == Backlog(count=1, oldest="2026-03-04")


@pytest.mark.parametrize("source", ["bronze.nothing", "main.bronze.orders", "orders"])
def test_of_a_source_that_is_elsewhere_nothing_is_known(lake: Lake, source: str) -> None:
    assert lake.waiting(source) is None


def test_of_a_source_with_another_partition_column_nothing_is_known(lake: Lake) -> None:
    lake.taken = [{**row, "partition_column": "week"} for row in lake.taken]
    assert lake.waiting() is None

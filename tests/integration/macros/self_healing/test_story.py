"""Two weeks where each step fails once: the next run fixes it, a daily pipeline needs a person."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ExtractError
from harness.inspect.page.backlog import Backlog, Backlogs
from harness.inspect.page.models import read_models
from harness.store.local import LocalStore
from harness.toolkit.extract import Extraction
from tests.support.self_healing.pipeline import Order, Pipeline, SourceDownError
from tests.support.self_healing.story import (
    BRANCH,
    DAYS,
    FAILS,
    Classical,
    branch_file,
    extracted_at,
    handed_over_at,
    source_on,
)
from tests.support.shop_project import PACKAGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MODELS = {"orders": ["orders", "document", "daily"], "calm": ["calm"]}


def hand_over(pipeline: Pipeline, date: datetime) -> None:
    """Append the files of the branch: to calm on the day that they are of, else when they come."""
    for of, (comes, comes_again) in BRANCH.items():
        if of == date:
            pipeline.append(
                branch_file(of, again=comes_again is not None), handed_over_at(of), "calm"
            )
        for arrival, again in ((comes, False), (comes_again, True)):
            if arrival == date:
                pipeline.append(branch_file(of, again=again), handed_over_at(of))


class Lived:
    """The pipeline after its two weeks, with what was reported meanwhile."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.extracts: list[Extraction] = []
        self.last = ""
        for table in ("orders", "calm"):
            pipeline.append([], extracted_at(DAYS[0]), table)
        for date in DAYS:
            self.live(date)

    def live(self, date: datetime) -> None:
        """Let the scheduler do its daily work without intervention: extract, append, run."""
        pipeline, fails = self.pipeline, FAILS.get(date, "")
        hand_over(pipeline, date)
        orders, at = list(source_on(date).values()), extracted_at(date)
        pipeline.extract(orders, at, "calm")
        try:
            self.extracts.append(pipeline.extract(orders, at, fails=fails))
            if fails == "append twice":
                self.extracts.append(pipeline.extract(orders, at))
        except (SourceDownError, ExtractError):
            pipeline.run("calm")
            return
        dies = fails if fails in ("before", "after") else ""
        self.last = pipeline.run(
            "orders", "document", "calm", dies=dies, mortal=["orders", "document"] if dies else []
        )


@pytest.fixture(scope="module")
def lived(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    pipeline = Pipeline(spark, tmp_path_factory.mktemp("healing"), MODELS)
    yield Lived(pipeline)
    pipeline.drop()


def test_the_run_after_the_last_failure_brings_silver_to_where_it_would_be_without_any(
    lived: Lived,
) -> None:
    assert lived.pipeline.rows("silver.orders") == lived.pipeline.rows("silver.calm")
    assert len(lived.pipeline.rows("silver.orders")) > 30


def test_the_full_job_of_every_day_would_give_the_same(lived: Lived) -> None:
    lived.pipeline.run("daily")
    assert lived.pipeline.rows("silver.daily") == lived.pipeline.rows("silver.orders")


def test_silver_contains_what_the_sources_contain(lived: Lived) -> None:
    expected = list(source_on(DAYS[-1]).values())
    for of, (_, again) in BRANCH.items():
        latest = {
            order.number: order
            for order in sorted(
                branch_file(of, again=again is not None), key=lambda o: o.modified_at
            )
        }
        expected += latest.values()
    found = [Order(*row) for row in lived.pipeline.rows("silver.orders")]
    assert sorted(found) == sorted(expected)


def test_bronze_has_the_newest_state_of_every_order_in_both(lived: Lived) -> None:
    newest = "(select shop, order_number, max(last_modified_at) from bronze.{} group by all)"
    rows = [lived.pipeline.rows(newest.format(table), "*") for table in ("orders", "calm")]
    assert rows[0] == rows[1]


def test_the_run_of_monday_takes_the_days_of_the_bug_at_once(lived: Lived) -> None:
    assert lived.pipeline.takes("orders") == [
        f"2024-05-0{number} 23:00:00.000000Z" for number in (3, 4, 5, 6)
    ]
    assert "orders: takes 4 of 4 pending partitions of bronze.orders" in lived.last


def test_an_extract_that_was_done_twice_is_in_bronze_once_and_one_that_was_killed_not_at_all(
    lived: Lived,
) -> None:
    repeats = [each for each in lived.extracts if each.is_repeat]
    assert [each.extracted_at.date().isoformat() for each in repeats] == ["2024-04-28"]
    by = "cast(p_extracted_at as timestamp_ntz), count(*)"
    sizes = dict(lived.pipeline.rows("bronze.orders group by all", by))
    reported = {each.extracted_at.replace(tzinfo=None): each.rows for each in lived.extracts}
    assert reported.items() <= sizes.items()
    failed = {extracted_at(date) for date, fails in FAILS.items() if fails in ("extract", "append")}
    assert not failed & sizes.keys()


def test_every_partition_is_recorded_as_taken(lived: Lived) -> None:
    consumed = lived.pipeline.rows("silver.orders_taken", "distinct cast(partition as timestamp)")
    assert consumed == lived.pipeline.rows("bronze.orders", "distinct p_extracted_at")


def test_the_report_reads_what_was_consumed_of_the_source(lived: Lived, spark_home: Path) -> None:
    warehouse = spark_home / "warehouse"
    backlogs = Backlogs(warehouse=warehouse, now=datetime.now(UTC))
    (model,) = read_models(
        ["silver.orders"], lambda name: LocalStore(warehouse, name), DAYS[0], backlogs
    )
    partitions = lived.pipeline.rows("bronze.orders", "distinct p_extracted_at")
    assert model.problem is None
    assert ("bronze.orders", len(partitions), Backlog(count=0, oldest=None)) in [
        (each.name, each.partition_count, each.backlog) for each in model.sources
    ]


def test_the_model_of_the_document_loses_rows_in_the_same_weeks(lived: Lived) -> None:
    lost = set(lived.pipeline.rows("silver.orders")) - set(lived.pipeline.rows("silver.document"))
    assert {(shop, number) for shop, number, *_ in lost} >= {("branch", 3), ("branch", 504)}


def test_a_daily_pipeline_needs_somebody_to_run_days_again_and_the_manual_states_how_many() -> None:
    classical = Classical()
    classical.live()
    expected = {(o.shop, o.number): o for o in source_on(DAYS[-1]).values()}
    for of, (_, again) in BRANCH.items():
        for order in branch_file(of, again=again is not None):
            expected[order.shop, order.number] = order
    assert classical.silver != expected
    steps = classical.steps_by_hand()
    assert classical.silver == expected
    page = (PACKAGE / "docs" / "how-to" / "self_healing_models.md").read_text(encoding="utf-8")
    [reported] = re.findall(r"(\d+) runs by hand", page)
    assert int(reported) == steps

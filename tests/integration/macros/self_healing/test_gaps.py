"""Where the model of document 004 loses rows silently, and what ours does there."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.support.self_healing.pipeline import Order, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

GAPS = ("same_instant", "out_of_order", "too_late", "from_the_future", "empty_at_first")


def at(day: int, hour: int = 0) -> datetime:
    return datetime.fromisoformat(f"2024-05-{day:02d} {hour:02d}:00:00")


def order(number: int, day: int, status: str = "open") -> Order:
    return Order("web", number, status, number, at(day, 1))


class Gaps:
    """For each gap a bronze table, before and after what the gap is about, with both models over it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        for gap in GAPS[:-1]:
            pipeline.append([order(1, 10)], at(10), gap)
        pipeline.append([], at(10), "empty_at_first")
        pipeline.append([order(2, 11)], datetime.fromisoformat("2262-01-01"), "from_the_future")
        self.run()
        pipeline.append([order(3, 10)], at(10), "same_instant")
        pipeline.append([order(3, 8), order(1, 8, "older")], at(8), "out_of_order")
        pipeline.append([order(3, 2)], at(2), "too_late")
        pipeline.append([order(3, 12)], at(12), "from_the_future")
        pipeline.append([order(1, 10), order(3, 12)], at(12), "empty_at_first")
        self.said = self.run()

    def run(self) -> str:
        models = [f"{kind}_{gap}" for gap in GAPS for kind in ("document", "ours")]
        return self.pipeline.run(*models)

    def numbers(self, model: str) -> list[object]:
        return [
            number for number, _ in self.pipeline.rows(f"silver.{model}", "order_number, status")
        ]


@pytest.fixture(scope="module")
def gaps(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gaps]:
    models = {gap: [f"document_{gap}", f"ours_{gap}"] for gap in GAPS}
    pipeline = Pipeline(spark, tmp_path_factory.mktemp("gaps"), models)
    yield Gaps(pipeline)
    pipeline.drop()


@pytest.mark.parametrize("gap", GAPS)
def test_the_model_of_the_document_does_not_get_the_row(gaps: Gaps, gap: str) -> None:
    assert 3 not in gaps.numbers(f"document_{gap}")


@pytest.mark.parametrize("gap", [gap for gap in GAPS if gap != "too_late"])
def test_ours_finds_it_in_the_next_run(gaps: Gaps, gap: str) -> None:
    assert {1, 3} <= set(gaps.numbers(f"ours_{gap}"))


def test_a_late_partition_brings_nothing_older_back(gaps: Gaps) -> None:
    assert gaps.pipeline.rows("silver.ours_out_of_order", "order_number, status") == [
        (1, "open"),
        (3, "open"),
    ]


def test_what_comes_from_the_future_is_reported(gaps: Gaps) -> None:
    gaps.pipeline.append([order(5, 13)], datetime.fromisoformat("2263-01-01"), "from_the_future")
    output = gaps.pipeline.run("ours_from_the_future")
    assert "partitions of bronze.from_the_future are in the future: 2263-01-01" in output


def test_what_is_older_than_the_lookback_is_reported_and_can_be_taken(gaps: Gaps) -> None:
    assert (
        "ours_too_late: 1 partitions of bronze.too_late were never taken as they are now"
        in gaps.said
    )
    assert gaps.numbers("ours_too_late") == [1]
    gaps.pipeline.run("ours_too_late", look_back_days="all")
    assert gaps.numbers("ours_too_late") == [1, 3]

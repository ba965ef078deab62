"""Ranges that the settings declare, and periods that are closed: what is taken, and what is refused."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Rows, Warehouse, batch, minute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MODELS: dict[str, dict[str, object]] = {
    "readings": {"type": "timestamp", "column": "t"},
    "tickets": {"type": "sequence", "column": "n", "immutable_where": "n < 3"},
}
DAY = 24 * 60


def _timed(*rows: tuple[object, ...]) -> str:
    return batch("t timestamp, v string", *rows)


def _numbered(*rows: tuple[int, str]) -> str:
    return batch("n int, v string", *rows)


class Declared:
    """A day, the same day with other rows, nothing of that day, and what was refused between them."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.warehouse = Warehouse(spark, folder, MODELS)
        text = folder / "models" / "readings.sql"
        bounds = {f"range_{end}": f"RANGE{place}" for place, end in enumerate(("from", "to"))}
        settings = repr({**MODELS["readings"], **bounds})
        for place in range(2):
            value = f"var('range', ['2026-01-01', '2026-01-02'])[{place}]"
            settings = settings.replace(f"'RANGE{place}'", value)
        text.write_text(
            f"{{{{ config(materialized='refresh', meta={{'refresh': {settings}}}) }}}}\n"
            "{{ var('batches')[this.name] }}\n"
        )
        self.warehouse.shop.parse()
        self.outside_at_first = self.bring("2026-01-01", "2026-01-02", _timed((DAY, "b")))
        self.bring("2026-01-01", "2026-01-03", _timed((10, "a"), (DAY - 1, "a"), (DAY + 10, "a")))
        self.one_day = self._hub(self.bring("2026-01-01", "2026-01-02", _timed((20, "b"))))
        self.outside = self.bring("2026-01-01", "2026-01-02", _timed((20, "b"), (DAY, "b")))
        self.turned = self.bring("2026-01-02", "2026-01-01", _timed((20, "b")))
        self.unread = self.bring("soon", "2026-01-01", _timed((20, "b")))
        self.empty = self._hub(self.bring("2026-01-02", "2026-01-03", _timed()))
        self.states = self.warehouse.states("readings")
        given = {"model": "readings", "input_ids": [5]}
        self.warehouse.operate("refresh_unload", **given)
        self.unloaded = self._hub()
        self.warehouse.operate("refresh_reload", **given)
        self.reloaded = self._hub()
        self.warehouse.operate("refresh_reset", model="readings")
        self.reset = self._hub()

    def bring(self, start: str, end: str, query: str) -> str:
        """Run the model over a range; return dbt's output."""
        variables = json.dumps(
            {"batches": {"readings": query, "tickets": ""}, "range": [start, end]}
        )
        # Settings are read when dbt parses.
        _, output = self.warehouse.shop._attempt(
            None, ["run", "--select", "readings", "--vars", variables]
        )
        return " ".join(output.split())

    def _hub(self, _said: str = "") -> Rows:
        return self.warehouse.rows("readings", f"{minute('t')}, v")


@pytest.fixture(scope="module")
def declared(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Declared:
    spark.sql("drop schema if exists shop cascade")
    return Declared(spark, tmp_path_factory.mktemp("refresh") / "project")


def test_a_declared_range_is_replaced_beyond_the_rows_that_are_in_it(declared: Declared) -> None:
    assert declared.one_day == [(20, "b"), (DAY + 10, "a")]


def test_a_batch_without_rows_means_that_there_are_none_in_its_range(declared: Declared) -> None:
    assert declared.empty == [(20, "b")]
    assert declared.states == ["FAILED", "COMPLETE", "COMPLETE", "FAILED", "COMPLETE"]


def test_a_row_outside_of_the_declared_range_refuses_the_batch(declared: Declared) -> None:
    for output in (declared.outside_at_first, declared.outside):
        assert (
            "it has rows whose t is outside of the range that was declared, from 2026-01-01 to "
            "before 2026-01-02"
        ) in output


def test_a_range_that_cannot_be_meant_is_refused(declared: Declared) -> None:
    assert "the range from 2026-01-02 to before 2026-01-01, but both must be instants" in (
        declared.turned
    )
    assert "the range from soon to before 2026-01-01, but both must be instants" in declared.unread


def test_a_declared_range_stays_what_it_was_when_it_is_taken_out_and_taken_again(
    declared: Declared,
) -> None:
    assert declared.unloaded == declared.one_day
    assert declared.reloaded == declared.empty
    assert declared.reset == declared.empty


def test_a_batch_that_would_change_a_closed_period_is_refused(declared: Declared) -> None:
    warehouse = declared.warehouse
    warehouse.receive(tickets=_numbered((1, "a"), (2, "a"), (3, "a"), (4, "a")))
    output = warehouse.refusal(tickets=_numbered((2, "b"), (3, "b")))
    assert "it would change 2 rows of the period that immutable_where closes (n < 3)" in output
    output = warehouse.refusal(tickets=_numbered((1, "a"), (4, "b")))
    assert "it would change 1 rows of the period" in output
    # What is closed comes as it is.
    warehouse.receive(tickets=_numbered((2, "a"), (3, "b")))
    assert warehouse.rows("tickets", "n, v") == [(1, "a"), (2, "a"), (3, "b"), (4, "a")]

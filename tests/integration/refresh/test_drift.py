"""Models whose columns change from one batch to the next: what is taken, and what is refused."""

from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Warehouse, batch
from tests.support.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MODELS: dict[str, dict[str, object]] = {
    "customers": {"type": "key", "key": "k", "updated_at": "t"},
    "clicks": {"type": "none"},
    "prices": {"type": "full"},
    "closed": {"type": "key", "key": "k", "updated_at": "t"},
    "fewer": {"type": "key", "key": "k", "updated_at": "t", "missing_columns": "as_null"},
    "kept": {"type": "key", "key": "k", "updated_at": "t", "missing_columns": "keep"},
}
NARROW = "k int, v int, d decimal(4.1), f float, day date, t timestamp"
WIDE = "k bigint, v bigint, d decimal(9.3), f double, day timestamp_ntz, t timestamp, note string"
DAY = "2026-02-01"
BEYOND_INT = 2**40


def _of(columns: str, *rows: tuple[object, ...]) -> str:
    # The comma of a decimal would end the column's name.
    return batch(columns, *rows).replace("(4.1)", "(4,1)").replace("(9.3)", "(9,3)")


class Drifted:
    """Three batches: narrow, wide with a column more, and narrow again."""

    def __init__(self, warehouse: Warehouse, spark: "SparkSession") -> None:
        self.warehouse = warehouse
        self.spark = spark
        drifting = ("customers", "clicks", "prices")
        warehouse.receive(
            **dict.fromkeys(
                (*drifting, "closed"),
                _of(NARROW, (1, 5, 1.5, 0.5, DAY, 10), (2, 6, 2.5, 0.5, DAY, 10)),
            )
        )
        for model in ("customers", "clicks"):
            spark.sql(
                f"alter table {SCHEMA}.{model} set tblproperties ('delta.enableTypeWidening' = 'true')"
            )
        wide = _of(
            WIDE, (1, 5, 1.5, 0.5, DAY, 20, None), (3, BEYOND_INT, 0.125, 0.1, DAY, 20, "new")
        )
        warehouse.receive(**dict.fromkeys(drifting, wide))
        self.refusal = warehouse.refusal(closed=wide)
        again = _of(
            NARROW + ", note string",
            (2, 6, 2.5, 0.5, DAY, 30, None),
            (3, 7, 0.1, 0.5, DAY, 30, "new"),
        )
        warehouse.receive(**dict.fromkeys(drifting, again))

    def types(self, table: str) -> dict[str, str]:
        """The types of a table's own columns."""
        found = self.spark.sql(
            f"describe query select k, v, d, f, day, note from {SCHEMA}.{table}"
        ).collect()
        return {row[0]: row[1] for row in found}


@pytest.fixture(scope="module")
def drifted(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Drifted:
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    return Drifted(Warehouse(spark, tmp_path_factory.mktemp("shop"), MODELS), spark)


def test_a_wider_type_is_no_change_of_a_value(drifted: Drifted) -> None:
    assert drifted.warehouse.codes("customers", 2) == {"S": 1, "N": 1}
    assert drifted.warehouse.codes("customers", 3) == {"S": 1, "C": 1}


@pytest.mark.parametrize(
    "table",
    [
        "customers",
        "customers_history",
        "customers_batches",
        "clicks",
        "clicks_batches",
        "prices_batches",
    ],
)
def test_columns_are_added_and_widened_in_all_tables(drifted: Drifted, table: str) -> None:
    assert drifted.types(table) == {
        "k": "bigint",
        "v": "bigint",
        "d": "decimal(9,3)",
        "f": "double",
        "day": "timestamp_ntz",
        "note": "string",
    }


def test_the_rows_of_before_and_after_are_all_there(drifted: Drifted) -> None:
    assert drifted.warehouse.rows("customers", "k, v, cast(d as double), note") == [
        (1, 5, 1.5, None),
        (2, 6, 2.5, None),
        (3, 7, 0.1, "new"),
    ]
    assert drifted.warehouse.rows("clicks", "k, v, note") == [
        (1, 5, None),
        (1, 5, None),
        (2, 6, None),
        (2, 6, None),
        (3, 7, "new"),
        (3, BEYOND_INT, "new"),
    ]


def test_a_table_that_may_not_be_widened_refuses_and_states_how_it_may(drifted: Drifted) -> None:
    output = "closed: the column k is bigint now, and int in the table: cast it to that, or set the table property"
    assert output in drifted.refusal
    assert drifted.warehouse.rows("closed", "k, v") == [(1, 5), (2, 6)]
    drifted.warehouse.receive(closed=_of(NARROW, (1, 8, 1.5, 0.5, DAY, 40)))
    assert drifted.warehouse.rows("closed", "k, v") == [(1, 8), (2, 6)]


def test_a_column_that_is_gone_is_refused_or_taken_for_null(drifted: Drifted) -> None:
    columns, less = "k int, note string, t timestamp", "k int, t timestamp"
    warehouse = drifted.warehouse
    warehouse.receive(fewer=batch(columns, (1, "x", 60), (2, None, 60)))
    warehouse.receive(fewer=batch(less, (1, 70), (2, 70)))
    assert warehouse.codes("fewer", 2) == {"C": 1, "S": 1}
    assert warehouse.rows("fewer", "k, note, s_input_id") == [(1, None, 2), (2, None, 1)]
    assert "the model no longer has the column" in warehouse.refusal(closed=batch(less, (1, 70)))


def test_a_column_that_is_gone_keeps_what_the_hub_has_if_it_may(drifted: Drifted) -> None:
    warehouse = drifted.warehouse
    warehouse.receive(
        kept=batch("k int, v int, note string, t timestamp", (1, 1, "x", 60), (2, 1, None, 60))
    )
    # Of key 1 two rows come at one instant, of which the greater one holds.
    less = batch("k int, v int, t timestamp", (1, 8, 70), (1, 2, 70), (2, 1, 70), (3, 1, 70))
    warehouse.receive(kept=less)
    assert warehouse.codes("kept", 2) == {"C": 1, "N": 1, "S": 1, "X": 1}
    assert warehouse.rows("kept", "k, v, note, s_input_id") == [
        *((1, 8, "x", 2), (2, 1, None, 1), (3, 1, None, 2)),
    ]
    # With the column again, a value may become NULL.
    back = batch("k int, v int, note string, t timestamp", (1, 2, None, 80), (3, 1, "z", 80))
    warehouse.receive(kept=back)
    assert warehouse.codes("kept", 3) == {"C": 2}
    assert warehouse.rows("kept", "k, note") == [(1, None), (2, None), (3, "z")]
    undated = batch("k int, v int, note string", (1, 3, "y"))
    assert "meta.refresh.updated_at names the column t, but the model has" in (
        warehouse.refusal(kept=undated)
    )

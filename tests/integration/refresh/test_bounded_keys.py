"""A batch whose keys lie together reads the files that may have them, and no other one."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import Rows, Warehouse, batch
from tests.support.shop_project import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

_KEYED: dict[str, object] = {"type": "key", "updated_at": "t", "count_hub": False}
MODELS: dict[str, dict[str, object]] = {
    "numbers": {**_KEYED, "key": "n"},
    "decimals": {**_KEYED, "key": "d"},
    "days": {**_KEYED, "key": ["day", "place"], "deletes": {"when": "v = 'gone'"}},
    "together": {**_KEYED, "key": "n", "batch_by": "b", "exclude_from_cdc": "b"},
    "nulls": {**_KEYED, "key": "n", "null_keys": "match"},
}
COLUMNS = "n bigint, d decimal(38.0), day date, place string, b int, v string, t timestamp"
#: Keys far from those of the other batches, in a file of their own.
FAR = [(9000, 1), (9500, 1)]


def _rows(*rows: tuple[int, object], at: int, number: int = 0) -> str:
    """Rows of a number, from which each kind of key follows, and a value."""
    cells = [(n, n, f"{2000 + n // 100}-01-{1 + n % 28:02d}", "x", number, v, at) for n, v in rows]
    # The comma of a decimal would end the column's name.
    return batch(COLUMNS, *cells).replace("(38.0)", "(38,0)")


class Bounded:
    """A target table of two files, one hidden while a batch comes that cannot have its keys."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self._spark = spark
        self.warehouse = Warehouse(spark, folder, MODELS)
        self._receive(_rows((-5, 1), (1, 1), (2, 1), at=10, number=1))
        self._receive(_rows(*FAR, at=10, number=2))
        hidden = [path for name in MODELS for path in self._files_of_far_keys(name)]
        for path in hidden:
            path.rename(path.with_suffix(".hidden"))
        near = _rows((-5, "new"), (1, 1), (2, "gone"), (3, 1), at=20, number=3)
        nearer = _rows((4, 1), (1, "newer"), at=30, number=4)
        self.refused = self.warehouse.refusal(nulls=near)
        named = [name for name in MODELS if name not in ("together", "nulls")]
        self.warehouse.receive(**dict.fromkeys(named, near), together=f"{near} union all {nearer}")
        self.warehouse.receive(**dict.fromkeys(named, nearer))
        for path in hidden:
            path.with_suffix(".hidden").rename(path)

    def rows(self, model: str) -> Rows:
        """The rows of a target table by their numbers."""
        return self.warehouse.rows(model, "n, v, s_input_id")

    def _receive(self, rows: str) -> None:
        self.warehouse.receive(**dict.fromkeys(MODELS, rows))

    def _files_of_far_keys(self, model: str) -> list[Path]:
        names = []
        for table in (model, f"{model}_history"):
            found = self._spark.sql(
                f"select distinct input_file_name() from {SCHEMA}.{table} where n >= {FAR[0][0]}"
            )
            names += [Path(row[0].removeprefix("file:")) for row in found.collect()]
        return names


@pytest.fixture(scope="module")
def bounded(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Bounded:
    """Everything that is received, once for all tests."""
    spark.sql(f"drop schema if exists {SCHEMA} cascade")
    return Bounded(spark, tmp_path_factory.mktemp("refresh") / "bounded")


@pytest.mark.parametrize("model", ["numbers", "decimals", "together"])
def test_files_that_cannot_have_a_key_of_the_batch_are_not_read(
    bounded: Bounded, model: str
) -> None:
    assert bounded.rows(model) == [
        *((-5, "new", 3), (1, "newer", 4), (2, "gone", 3), (3, "1", 3), (4, "1", 4)),
        *((9000, "1", 2), (9500, "1", 2)),
    ]


def test_of_a_key_of_several_columns_those_count_that_have_bounds(bounded: Bounded) -> None:
    # The second one was deleted, which only the history records.
    assert [row[:2] for row in bounded.rows("days")] == [
        *((-5, "new"), (1, "newer"), (3, "1"), (4, "1"), (9000, "1"), (9500, "1")),
    ]


def test_where_null_is_a_key_all_files_are_read(bounded: Bounded) -> None:
    assert "does not exist" in bounded.refused or "FILE_NOT_EXIST" in bounded.refused

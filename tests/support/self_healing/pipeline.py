"""The example of docs/how-to/self_healing_models.md as a project in a folder, and what is done to it: extracts, appends, runs that die."""

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from harness.toolkit import extract
from tests.support.local_rows import frame_of_rows
from tests.support.shop_project import PACKAGE, Shop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLE = PACKAGE / "examples" / "self_healing"
#: How a run of the models in `mortal` dies: `before` the merge, or `after` it and before the record.
_HOOKS = """
    +pre-hook: "{% if var('dies', '') == 'before' and this.name in var('mortal') %}{{ exceptions.raise_compiler_error('dies') }}{% endif %}"
    +post-hook: "{% if var('dies', '') == 'after' and this.name in var('mortal') %}{{ exceptions.raise_compiler_error('dies') }}{% endif %}"
"""
#: The models that the manual goes through: a daily full job, that of document 004, and ours.
DAILY, DOCUMENT, OURS = re.findall(
    r"^```sql\n(.*?)^```",
    (PACKAGE / "docs/how-to/self_healing_models.md").read_text("utf-8"),
    re.M | re.S,
)
SAYS = "shop, order_number, status, amount, cast(last_modified_at as timestamp_ntz) as changed_at"


@dataclass(frozen=True, slots=True, order=True)
class Order:
    """A row of a shop's database."""

    shop: str
    number: int
    status: str
    amount: int
    modified_at: datetime


class SourceDownError(Exception):
    """The source does not answer."""


@dataclass(frozen=True, slots=True)
class WebShop:
    """The database of the web shop, as an extract reads it.

    Args:
        orders: The rows of its table.
        fails: `extract`: it does not answer; `append`: the writer of its rows is killed on the way.
    """

    orders: Sequence[Order]
    fails: str = ""
    name: str = "the web shop"

    def read(self, bronze: extract.Bronze) -> extract.Batch:
        """What is as new as the shop's rows in bronze, or newer; the branch's rows do not count."""
        newest = bronze.newest("last_modified_at", where=f.col("shop") == "web")
        if self.fails == "extract":
            raise SourceDownError
        rows = [
            o for o in self.orders if newest is None or o.modified_at.replace(tzinfo=UTC) >= newest
        ]  # type: ignore[operator]
        frame = frame_of(bronze.session, rows)
        if self.fails == "append":
            frame = frame.withColumn(
                "amount", f.expr("if(amount > 0, raise_error('killed'), amount)")
            )
        return extract.Batch(frame=frame, since=str(newest), column="last_modified_at")


def frame_of(spark: "SparkSession", orders: Iterable[Order]) -> "DataFrame":
    """The orders as rows of bronze, without a partition."""
    rows = [(o.shop, o.number, o.status, o.amount, str(o.modified_at)) for o in orders]
    columns = "shop string, order_number int, status string, amount int, modified string"
    return frame_of_rows(spark, rows, columns).selectExpr(
        "shop",
        "order_number",
        "status",
        "amount",
        "cast(modified as timestamp) as last_modified_at",
    )


class Pipeline:
    """Bronze, the project over it, and what a scheduler does each day."""

    def __init__(
        self, spark: "SparkSession", folder: Path, bronze: Mapping[str, Sequence[str]]
    ) -> None:
        """Copy the example, with models like its own over more tables.

        Args:
            spark: The session.
            folder: Where the project goes.
            bronze: By table the models that read it; `document...` and `daily...` are those of the manual.
        """
        self.spark = spark
        kinds = {"daily": DAILY, "document": DOCUMENT}
        models = {
            name: kinds.get(name.split("_")[0], OURS).replace(
                "'bronze', 'orders'", f"'bronze', '{table}'"
            )
            for table, names in bronze.items()
            for name in names
        }
        self.shop = Shop(folder, models)
        for part in ("dbt_project.yml", "profiles.yml"):
            shutil.copy(EXAMPLE / part, folder)
        with (folder / "dbt_project.yml").open("a", encoding="utf-8") as project:
            project.write(_HOOKS)
        tables = ", ".join(f"{{name: {table}}}" for table in bronze)
        sources = f"sources: [{{name: bronze, tables: [{tables}]}}]\n"
        (folder / "models" / "sources.yml").write_text(sources, encoding="utf-8")
        self.shop.parse()
        spark.sql("create schema if not exists bronze")

    def append(self, orders: Iterable[Order], at: datetime, table: str = "orders") -> None:
        """Append rows to a partition of bronze by hand, without an extract."""
        found = frame_of(self.spark, orders).withColumn(
            "p_extracted_at", f.lit(str(at)).cast("timestamp")
        )
        writer = found.coalesce(1).write.format("delta").mode("append")
        writer.partitionBy("p_extracted_at").saveAsTable(f"bronze.{table}")

    def extract(
        self, orders: Sequence[Order], at: datetime, table: str = "orders", fails: str = ""
    ) -> extract.Extraction:
        """Append what the web shop has that is newer than bronze, and as new."""
        source = WebShop(orders, fails)
        return extract.append(self.spark, source, f"bronze.{table}", at=at.replace(tzinfo=UTC))

    def run(
        self, *models: str, dies: str = "", mortal: Sequence[str] = (), **variables: object
    ) -> str:
        """Run models; return what dbt prints. Those that are mortal may die."""
        given = json.dumps({"dies": dies, "mortal": list(mortal), **variables})
        result, output = self.shop._attempt(
            self.shop.manifest, ["run", "--select", *models, "--vars", given]
        )
        failed = {each.node.name for each in result.result.results if str(each.status) != "success"}
        assert failed == (set(mortal) if dies else set()), output
        return " ".join(output.split())

    def rows(self, table: str, columns: str = SAYS) -> list[tuple[object, ...]]:
        """Columns of all rows, in order."""
        found = self.spark.sql(f"select {columns} from {table} order by all nulls first").collect()
        return [tuple(row) for row in found]

    def takes(self, model: str) -> list[str]:
        """The partitions that the last query of a model has named."""
        path = self.shop.folder / "target/compiled/self_healing/models" / f"{model}.sql"
        [note] = re.findall(r"heartbeat.pending_partitions (.*?) \*/", path.read_text())
        return [each["value"] for each in json.loads(note)["partitions"]]

    def drop(self) -> None:
        """Remove all tables."""
        for schema in ("bronze", "silver"):
            self.spark.sql(f"drop schema if exists {schema} cascade")

"""Times self-healing models over a year of bronze partitions, and counts the files that they read.

A year of daily partitions is there and taken. Then days come one at a time, and each is taken by
the model with `pending_partitions`, by that of document 004 (`> max`), and by a daily full job.
Then so many days come while nothing runs: one model takes them at once, another one day by day.
Files are those of bronze, by the metrics of Spark's own plans.

    .venv/bin/python benchmarks/healing.py --rows 5000 --days 30
"""

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.parts.session_of_a_job import session_of_a_job  # noqa: E402
from tests.support.services.files_read import FilesRead  # noqa: E402
from tests.support.shop_project import Shop  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YEAR = 365
_MERGED = (
    "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', "
    "post_hook='{{ heartbeat.record_partitions() }}') }}\n"
    "with source as (select * from {{ source('lake', 'bronze') }} where {{ "
    "heartbeat.pending_partitions(source('lake', 'bronze')) }})\n"
    "select * from {{ heartbeat.deduplicate('source', 'id', 'p_extracted_at desc', "
    "known=this if is_incremental() else none) }}\n"
)
_LATEST = (
    "select * except (rn) from (select *, {{ heartbeat.row_number() }} as rn "
    "from {{ source('lake', 'bronze') }}"
)
MODELS = {
    "pending": _MERGED,
    "day_by_day": _MERGED,
    "document": (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}\n"
        + _LATEST
        + "{% if is_incremental() %} where p_extracted_at > "
        "{{ heartbeat.last_update('p_extracted_at') }}{% endif %}) where rn = 1\n"
    ),
    "full": "{{ config(materialized='table') }}\n" + _LATEST + ") where rn = 1\n",
}


def main() -> None:
    """Make the tables and time what is done to them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000, help="rows of a day")
    parser.add_argument("--days", type=int, default=30, help="days of the standstill")
    options = parser.parse_args()
    with session_of_a_job() as (spark, folder):
        bench = Bench(spark, folder, options.rows)
        bench.fill()
        bench.daily()
        bench.standstill(options.days)


class Bench:
    """Bronze with a partition for each day, and the models over it."""

    def __init__(self, spark: "SparkSession", folder: Path, rows: int) -> None:
        self._spark = spark
        self._rows = rows
        self._days = 0
        self._shop = Shop(folder / "project", MODELS)
        (folder / "project" / "models" / "sources.yml").write_text(
            "sources: [{name: lake, schema: bench, tables: [{name: bronze}]}]\n"
        )
        self._shop.parse()
        spark.sql("create schema if not exists bench")
        self._append(YEAR)
        self._files = FilesRead(spark, "bench.bronze")

    def fill(self) -> None:
        """Let each model take the year."""
        for model in MODELS:
            self._tell(f"the year, {YEAR * self._rows:,} rows", model, *self._run(model))

    def daily(self) -> None:
        """Bring a day, and let each model take it; five times."""
        took: dict[str, list[tuple[float, int]]] = {}
        for _ in range(5):
            self._append(1)
            for model in ("pending", "document", "full"):
                took.setdefault(model, []).append(self._run(model))
        medians = {}
        for model, runs in took.items():
            medians[model] = (
                statistics.median(seconds for seconds, _ in runs),
                int(statistics.median(files for _, files in runs)),
            )
            self._tell("a day more (median of 5)", model, *medians[model])
        (pending, files), (full, all_files) = medians["pending"], medians["full"]
        print(
            f"{'':<34}{'full / pending':<18}{full / pending:>9.2f}{all_files / files:>9.0f}",
            flush=True,
        )
        self._tell("nothing new", "pending", *self._run("pending"))
        self._run("day_by_day")

    def standstill(self, days: int) -> None:
        """Bring many days, and take them at once and one by one."""
        self._append(days)
        once = self._run("pending")
        self._tell(f"{days} days in one run", "pending", *once)
        runs = [self._run("day_by_day", max_batches_per_run=1) for _ in range(days)]
        total = sum(seconds for seconds, _ in runs), sum(files for _, files in runs)
        self._tell(f"{days} days in {days} runs", "pending", *total)
        print(
            f"{'':<34}{'runs / one run':<18}{total[0] / once[0]:>9.2f}{total[1] / once[1]:>9.2f}",
            flush=True,
        )
        rows = [self._spark.table(f"shop.{name}") for name in ("pending", "day_by_day")]
        if rows[0].exceptAll(rows[1]).count() or rows[1].exceptAll(rows[0]).count():
            raise SystemExit("the two ways do not give the same rows")

    def _append(self, days: int) -> None:
        """Append days: a tenth of a day's rows is new, the others are of keys that are there."""
        self._spark.sql(
            f"""select
                id % {self._rows} * 10 + day % 10 as id,
                concat('name ', id, ' ', day) as name,
                id * 7 % 1000 + day as amount,
                timestamp'2025-01-01 01:00:00' + make_interval(0, 0, 0, day) as p_extracted_at
            from (
                select id, cast({self._days} + id div {self._rows} as int) as day
                from range({days * self._rows})
            )"""
        ).repartition(8, "p_extracted_at").write.format("delta").mode("append").partitionBy(
            "p_extracted_at"
        ).saveAsTable("bench.bronze")
        self._days += days

    def _run(self, model: str, **variables: object) -> tuple[float, int]:
        self._files.count()
        began = time.perf_counter()
        self._shop.run(Path(), "--select", model, **variables)
        return time.perf_counter() - began, self._files.count()

    @staticmethod
    def _tell(what: str, name: str, seconds: float, files: int) -> None:
        print(f"{what:<34}{name:<18}{seconds:>9.2f}{files:>9}", flush=True)


if __name__ == "__main__":
    main()

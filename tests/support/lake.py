"""A small lake for extracts: a source table, bronze tables of both kinds, and days that pass."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from harness.toolkit import extract
from tests.support.local_rows import frame_of_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What `make long` runs: each extract takes seconds.
LONG = pytest.mark.long
#: Six in the morning of a day.
DAY = datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
COLUMNS = "id bigint, status string, updated_at timestamp"


def day(number: float) -> datetime:
    """The morning of a day, counted from the first one."""
    return DAY + timedelta(days=number)


class Lake:
    """A source ``orders``, which costs no commit, and what is extracted of it into bronze."""

    def __init__(self, spark: "SparkSession", name: str, made_as: str = "delta") -> None:
        self.spark = spark
        self.made_as = extract.FileFormat(made_as)
        self.schema, self.orders = f"bronze_{name}", f"orders_{name}"
        spark.sql(f"create schema if not exists {self.schema}")
        self.bronze = f"{self.schema}.orders"
        self.source: extract.Source = extract.Table(table=self.orders, column="updated_at")
        self._rows: list[tuple[object, ...]] = []

    def drop(self) -> None:
        self.spark.sql(f"drop schema if exists {self.schema} cascade")
        self.spark.catalog.dropTempView(self.orders)

    def create(self, columns: str = COLUMNS) -> "Lake":
        """An empty source."""
        self._rows = []
        frame_of_rows(self.spark, [], columns).createOrReplaceTempView(self.orders)
        return self

    def add(self, identity: int, status: str | None, at: datetime | None) -> "Lake":
        """One row of the source, as of an instant."""
        self._rows.append((identity, status, at))
        rows = frame_of_rows(self.spark, self._rows, COLUMNS)
        rows.createOrReplaceTempView(self.orders)
        return self

    def by_column(self, **options: object) -> extract.Table:
        """The source with other options."""
        return extract.Table(table=self.orders, column="updated_at", **options)  # type: ignore[arg-type]

    def take(self, at: datetime, **options: object) -> extract.Extraction:
        source = options.pop("source", self.source)
        options.setdefault("file_format", self.made_as)
        return extract.append(self.spark, source, self.bronze, at=at, **options)  # type: ignore[arg-type]

    def rows(self, *columns: str) -> Counter[tuple[object, ...]]:
        """The rows of bronze, each with how often it is there."""
        found = self.spark.table(self.bronze).select(*(columns or ("id", "status")))
        return Counter(tuple(row) for row in found.collect())

    def partitions(self) -> list[datetime]:
        """The instants of bronze."""
        found = self.spark.table(self.bronze).select("p_extracted_at").distinct().collect()
        return sorted(row[0].astimezone(UTC) for row in found)


class Log(Lake):
    """A source that is a Delta table, and is followed by its versions."""

    def __init__(self, spark: "SparkSession", name: str) -> None:
        super().__init__(spark, name)
        self.orders = f"{self.schema}.source"
        self.source = extract.DeltaVersions(table=self.orders)

    def create(self, columns: str = COLUMNS) -> "Log":
        self.spark.sql(f"create table {self.orders} ({columns}) using delta")
        return self

    def add(self, identity: int, status: str | None, at: datetime | None) -> "Log":
        rows = frame_of_rows(self.spark, [(identity, status, at)], COLUMNS)
        rows.write.format("delta").mode("append").saveAsTable(self.orders)
        return self


class Given:
    """A source of one's own: the rows of a query."""

    name = "given"

    def __init__(self, sql: str) -> None:
        self._sql = sql

    def read(self, bronze: extract.Bronze) -> extract.Batch | None:
        return extract.Batch(frame=bronze.session.sql(self._sql))


@contextmanager
def zone(spark: "SparkSession", name: str) -> Iterator[None]:
    """Let the session's clock show another time."""
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

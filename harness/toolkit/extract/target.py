"""Finds how far a bronze table has come, by the partitions of the last days.

The largest value need not be in the newest partition: a failed run may have been repeated later,
and old rows may have arrived late. Anomalies are kept as notes.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Unpack

from harness.errors import ConfigurationError, ExtractError
from harness.platform.sql_names import in_sql, is_column
from harness.toolkit.extract.lookback import (
    DAYS,
    PARTITION,
    Future,
    LookBack,
    checked_days,
    checked_partition,
    checked_table,
    one_sentence,
)
from harness.toolkit.extract.values import (
    Kind,
    Value,
    as_text,
    ceiling,
    collected,
    column_of,
    field_type,
    kind_of,
    literal,
    utc,
    value_from,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

log = logging.getLogger(__name__)


def newest(
    spark: "SparkSession", table: str, column: str, *, now: datetime, **look_back: Unpack[LookBack]
) -> Value | None:
    """Return the largest value of a column of a bronze table; ``None`` at the first run.

    It is looked for in the partitions of the last days, and only where these have none, in the
    whole table, which the log then reports.

    Args:
        spark: The session that reads.
        table: ``schema.table`` or ``catalog.schema.table``; parts may be in backticks.
        column: Of timestamps, dates, integers, decimals or text.
        now: The instant from which days are counted back, with its zone.
        **look_back: ``days`` (7), ``partition`` (``p_extracted_at``) and ``future``, which sets
            what becomes of a value after ``now``.

    Raises:
        ConfigurationError: A name is none, or the table is not partitioned by that column.
        ExtractError: The table cannot be read, or its largest value is refused.
    """
    if not is_column(column):
        raise ConfigurationError(
            f"{column!r} is not the name of a column; use letters, digits and _"
        )
    bronze = Bronze(spark, table, now, look_back)
    if not bronze.is_there:
        log.info("%s is not there, as at the first run", table)
    return bronze.newest(column)


_PARTITIONS = "# Partition Information"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Largest:
    rows: int
    value: Value | None
    #: The largest of all, where that is of the future.
    of_future: Value | None


class Bronze:
    """One bronze table, as it is at the beginning of an extract.

    Args:
        session: Reads it.
        name: ``schema.table`` or ``catalog.schema.table``; parts may be in backticks.
        now: The instant of the extract, from which days are counted back.
        look_back: Where the largest value is looked for.

    Raises:
        ConfigurationError: The name is none, or the table is not partitioned as it should be.
        ExtractError: The catalog cannot be queried.
    """

    def __init__(
        self, session: "SparkSession", name: str, now: datetime, look_back: LookBack
    ) -> None:
        self.session = session
        self.name = checked_table(name)
        self.now = utc(now, "the instant of an extract")
        self.partition = checked_partition(look_back.get("partition", PARTITION))
        self.future = Future(look_back.get("future", Future.IGNORE))
        self._days = checked_days(look_back.get("days", DAYS))
        #: What was found amiss, a sentence each.
        self.notes: list[str] = []
        self.is_there = False
        self._facts: dict[str, str] = {}
        self._schema: StructType | None = None
        self.refresh()

    def refresh(self) -> None:
        """Read from the catalog whether the table is there, and what it is.

        Raises:
            ConfigurationError: It is not partitioned as it should be.
            ExtractError: The catalog cannot be queried.
        """
        with one_sentence(self.name):
            self.is_there = bool(self.session.catalog.tableExists(self.sql_name))
            if self.is_there:
                # Spark lists the files of a plain table once, and keeps the list.
                self.session.catalog.refreshTable(self.sql_name)
                self._facts = self._described()
                self._schema = self.rows().schema
        if self.is_there:
            self._check()

    @property
    def sql_name(self) -> str:
        """Its name as SQL takes it, each part in backticks."""
        return in_sql(self.name)

    @property
    def provider(self) -> str:
        """The format of the table, such as ``delta``; empty before there is one."""
        return self._facts.get("provider", "").lower()

    @property
    def kept_as(self) -> str:
        """The format of a table that stands beside it."""
        return "delta" if self.provider == "delta" else "parquet"

    @property
    def schema(self) -> "StructType":
        """Its columns, with the one of the partitions, as of the last read."""
        from pyspark.sql.types import StructType

        return self._schema or StructType([])

    @property
    def partition_type(self) -> "DataType":
        """The type of the column that it is partitioned by."""
        return field_type(self.schema, self.partition, self.name)

    def rows(self) -> "DataFrame":
        """Return all its rows."""
        return self.session.table(self.sql_name)

    def recent(self) -> "DataFrame":
        """Return the rows of the partitions of the last days; no other is read."""
        return self.rows().where(self._since(self.now - timedelta(days=self._days)))

    def note(self, sentence: str) -> None:
        """Keep what a person should know, and log it."""
        log.warning("%s", sentence)
        self.notes.append(sentence)

    def newest(self, column: str, where: "Column | None" = None) -> Value | None:
        """Return the largest value of a column; ``None`` if there is none to go by.

        Where no partition of the last days has one, the whole table is read.

        Args:
            column: Its name.
            where: Only rows of which this holds count.
        """
        if not self.is_there:
            return None
        kind = kind_of(field_type(self.schema, column, self.name), column, self.name)
        with one_sentence(self.name):
            found = self._largest(_those(self.recent(), where), column, kind)
            if found.value is not None:
                return self._judged(found, column)
            found = self._largest(_those(self.rows(), where), column, kind)
        value = self._judged(found, column)
        if value is not None:
            self.note(
                f"{self.name}: no partition of the last {self._days} days has a value in {column}"
                f" to go by, so the entire table was read; the largest is {as_text(value)}"
            )
        elif found.rows:
            self.note(
                f"{self.name} has {found.rows} rows, but none with a value in {column} to go by,"
                " so everything is extracted again"
            )
        return value

    def newest_by(self, column: str, groups: str, wanted: Sequence[int]) -> dict[int, int]:
        """Return the largest number of a column for each number of another one.

        The whole table is read only for those wanted that no partition of the last days has.
        """
        from pyspark.sql import functions as f

        def largest(rows: "DataFrame") -> dict[int, int]:
            found = rows.groupBy(column_of(groups)).agg(f.max(column_of(column)))
            return {int(group): int(value) for group, value in found.collect() if value is not None}

        if not self.is_there:
            return {}
        with one_sentence(self.name):
            found = largest(self.recent())
            missing = [each for each in wanted if each not in found]
            if missing:
                found |= largest(self.rows().where(column_of(groups).isin(missing)))
        return found

    def has_extract(self) -> bool:
        """Return whether it has rows of this very extract."""
        with one_sentence(self.name):
            return bool(self.extracted().limit(1).count())

    def extracted(self) -> "DataFrame":
        """Return the rows of this very extract: of the partition that bears its instant."""
        return self.rows().where(column_of(self.partition) == self.instant())

    def instant(self) -> "Column":
        """Return the instant of the extract as the partitions of this table are named."""
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        if self.is_there and isinstance(self.partition_type, t.StringType):
            return f.lit(self.now.isoformat())
        if self.is_there and isinstance(self.partition_type, t.TimestampNTZType):
            return literal(self.now.replace(tzinfo=None))
        return f.lit(self.now)

    def _since(self, start: datetime) -> "Column":
        from pyspark.sql import types as t

        column = column_of(self.partition)
        match self.partition_type:
            case t.TimestampNTZType():
                return column >= literal(start.replace(tzinfo=None))
            case t.DateType():
                return column >= literal(start.date())
            case t.StringType():
                # Whatever else is kept as text has no day; the whole table is read then.
                return column.try_cast("timestamp") >= literal(start)
            case _:
                return column >= literal(start)

    def _largest(self, rows: "DataFrame", column: str, kind: Kind) -> _Largest:
        from pyspark.sql import functions as f

        value = column_of(column)
        limit = None if self.future is Future.TAKE else ceiling(kind, self.now)
        usable = value if limit is None else f.when(value <= literal(limit), value)
        counted, largest, last = (
            rows.agg(
                f.count(f.lit(1)), collected(f.max(usable), kind), collected(f.max(value), kind)
            ).collect()
        )[0]
        of_future = None if largest == last else value_from(last, kind)
        if of_future is not None and kind is Kind.TEXT and not str(of_future)[:4].isdigit():
            # It is no date, so it is of no future either.
            largest, of_future = last, None
        return _Largest(rows=counted, value=value_from(largest, kind), of_future=of_future)

    def _judged(self, found: _Largest, column: str) -> Value | None:
        if found.of_future is not None:
            said_of = f"{self.name}: the largest {column} is {as_text(found.of_future)}, after the"
            said_of += f" extract's own instant {as_text(self.now)}"
            if self.future is Future.REFUSE:
                raise ExtractError(
                    f"{said_of}; fix that row, or pass future=Future.IGNORE to go by the largest"
                    " one before it"
                )
            self.note(f"{said_of}; it was ignored")
        return found.value

    def _described(self) -> dict[str, str]:
        rows = self.session.sql(f"describe table extended {self.sql_name}").collect()
        names = [str(row["col_name"]) for row in rows]
        start = names.index(_PARTITIONS) + 2 if _PARTITIONS in names else len(names)
        partitions = takewhile(lambda name: name and not name.startswith("#"), names[start:])
        facts = {str(row["col_name"]).lower(): str(row["data_type"]) for row in rows}
        return {
            "provider": facts.get("provider", ""),
            "type": facts.get("type", ""),
            "partitions": "\n".join(partitions),
        }

    def _check(self) -> None:
        from pyspark.sql import types as t

        if "VIEW" in self._facts["type"].upper():
            raise ConfigurationError(f"{self.name} is a view; name a table to extract into")
        found = self._facts["partitions"].split("\n") if self._facts["partitions"] else []
        if [each.lower() for each in found] != [self.partition.lower()]:
            by = f"by {', '.join(found)}" if found else "by nothing"
            raise ConfigurationError(
                f"{self.name} is partitioned {by}; bronze has to be partitioned by"
                f" {self.partition} alone"
            )
        if not isinstance(
            self.partition_type, t.TimestampType | t.TimestampNTZType | t.DateType | t.StringType
        ):
            raise ConfigurationError(
                f"{self.name}: {self.partition} is {self.partition_type.simpleString()}; allowed"
                " are timestamp, timestamp_ntz, date and string"
            )


def _those(rows: "DataFrame", where: "Column | None") -> "DataFrame":
    return rows if where is None else rows.where(where)

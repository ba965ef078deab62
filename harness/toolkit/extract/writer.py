"""Appends an extract to bronze as one partition, all of it or nothing, and once for its instant.

A Delta table keeps the name of each extract in its log, and leaves a second one of that name out.
Of a plain table of the metastore, rows count once their partition is registered, which Spark does
after it has moved the whole folder to its place; what a killed process left of it is replaced.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql import types as t

from harness.errors import ConfigurationError
from harness.toolkit.extract.lookback import one_sentence
from harness.toolkit.extract.schema.apply import quoted
from harness.toolkit.extract.schema.types import ODD_NAMES, has_odd_names, is_void, without_void
from harness.toolkit.extract.target import Bronze

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})
_PLAIN = frozenset({"parquet", "orc", "hive"})
_APPLICATION = "heartbeat-extract"


class FileFormat(StrEnum):
    """What a bronze table is made as, when there is none yet."""

    DELTA = "delta"
    #: A plain table of the metastore.
    PARQUET = "parquet"


def check_writable(bronze: Bronze, made_as: FileFormat) -> None:
    """Refuse a table that an extract cannot be appended to, or not exactly once.

    Raises:
        ConfigurationError: It is of another format, or its partitions do not distinguish instants.
    """
    provider = bronze.provider or made_as.value
    if provider not in {"delta", *_PLAIN}:
        raise ConfigurationError(
            f"{bronze.name} is a table of {provider}; allowed are Delta and plain tables of the"
            " metastore (parquet, orc, hive)"
        )
    kind = bronze.partition_type if bronze.is_there else t.TimestampType()
    if isinstance(kind, t.DateType):
        raise ConfigurationError(
            f"{bronze.name}: {bronze.partition} is a date, which two extracts of a day would"
            " share; allowed are timestamp, timestamp_ntz and string"
        )
    if isinstance(kind, t.TimestampType):
        _check_zone(bronze, provider)


def _check_zone(bronze: Bronze, provider: str) -> None:
    """Refuse a zone in which Spark would name the partition by another instant.

    It writes the value of a partition as the session's clock shows it, even for Delta.
    """
    zone = str(bronze.session.conf.get(_ZONE))
    if provider in _PLAIN and zone not in _UTC:
        raise ConfigurationError(
            f"{bronze.name} is a plain table, whose folders bear the time of the session's zone,"
            f" and {_ZONE} is {zone}; set it to UTC, or make {bronze.partition} a string"
        )
    if is_shown_twice(bronze.now, zone):
        raise ConfigurationError(
            f"{bronze.name}: Spark cannot name a partition {bronze.now.isoformat()}, since the"
            f" clock of {zone} shows that time twice; set {_ZONE} to UTC, or give another instant"
        )


def is_shown_twice(instant: datetime, zone: str) -> bool:
    """Return whether a clock shows the same time at another instant, when summer time ends."""
    try:
        local = instant.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError):
        # An offset such as +02:00 never changes.
        return False
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()


def columns_for(schema: t.StructType) -> t.StructType:
    """Return the columns of a table that is made after its first extract."""
    return t.StructType(
        [
            t.StructField(each.name, without_void(each.dataType))
            for each in schema
            if not is_void(each.dataType)
        ]
    )


def create(bronze: Bronze, schema: t.StructType, made_as: FileFormat) -> None:
    """Make the table with the columns of its first extract; safe to repeat."""
    columns = t.StructType(
        [*columns_for(schema), t.StructField(bronze.partition, t.TimestampType())]
    )
    empty = bronze.session.createDataFrame([], columns)
    with one_sentence(bronze.name, "cannot be made"):
        writer = empty.write.format(made_as.value).partitionBy(bronze.partition)
        if made_as is FileFormat.DELTA and has_odd_names(columns):
            writer = writer.option(*ODD_NAMES)
        writer.mode("append").saveAsTable(bronze.sql_name)


def write(bronze: Bronze, rows: "DataFrame") -> None:
    """Append rows as the partition of the extract's instant.

    Raises:
        ExtractError: Spark cannot write them, or another process is just doing so.
    """
    rows = rows.withColumn(bronze.partition, bronze.instant())
    with one_sentence(bronze.name, "cannot be appended to"):
        if bronze.provider == FileFormat.DELTA:
            _append(bronze, rows)
        else:
            _put(bronze, rows)


def _append(bronze: Bronze, rows: "DataFrame") -> None:
    # By name, and under a name of its own: the log records which extracts it has.
    writer = rows.write.format("delta").mode("append")
    writer = writer.option("txnAppId", f"{_APPLICATION}:{bronze.now.isoformat()}")
    writer.option("txnVersion", 1).saveAsTable(bronze.sql_name)


def _put(bronze: Bronze, rows: "DataFrame") -> None:
    names = [each for each in bronze.schema.fieldNames() if each != bronze.partition]
    rows = rows.select(*map(quoted, (*names, bronze.partition)))
    with _only_own_partition(bronze.session):
        rows.write.mode("overwrite").insertInto(bronze.sql_name)


@contextmanager
def _only_own_partition(session: "SparkSession") -> Iterator[None]:
    """Let an overwrite replace the partitions that it writes, and leave all others."""
    before = session.conf.get(_OVERWRITE)
    session.conf.set(_OVERWRITE, "dynamic")
    try:
        yield
    finally:
        session.conf.set(_OVERWRITE, str(before))

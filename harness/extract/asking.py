"""Tells how far a bronze table has come: the largest value of a column, by its last partitions."""

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Unpack

from harness.errors import ConfigurationError
from harness.extract.bronze import Bronze
from harness.extract.look_back import LookBack
from harness.extract.values import Value
from harness.names import is_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def newest(
    spark: "SparkSession", table: str, column: str, *, now: datetime, **look_back: Unpack[LookBack]
) -> Value | None:
    """Return the largest value of a column of a bronze table; ``None`` at the first run.

    It is looked for in the partitions of the last days, and only where these have none, in the
    whole table, which the log then says.

    Args:
        spark: The session that reads.
        table: ``schema.table`` or ``catalog.schema.table``; parts may be in backticks.
        column: Of timestamps, dates, whole numbers, decimals or text.
        now: The instant from which days are counted back, with its zone.
        **look_back: ``days`` (7), ``partition`` (``p_extracted_at``) and ``future``, which says
            what becomes of a value after ``now``.

    Raises:
        ConfigurationError: A name is none, or the table is not partitioned by that column.
        ExtractError: The table cannot be read, or its largest value is refused.
    """
    if not is_column(column):
        raise ConfigurationError(f"{column!r} is no name of a column")
    bronze = Bronze(spark, table, now, look_back)
    if not bronze.is_there:
        log.info("%s is not there, as at the first run", table)
    return bronze.newest(column)

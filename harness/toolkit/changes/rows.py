"""Returns the rows of one table that changed, from the events that were passed to a job."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.errors import ConfigurationError, ExitCode, ProbeFailedError
from harness.events.event import ChangeEvent, TableFormat
from harness.platform.spark.session import message_of
from harness.platform.sql_names import in_sql, is_path, table_key
from harness.toolkit.changes import delta, hive, iceberg
from harness.toolkit.changes.answer import Changed, Question, Range, nothing
from harness.toolkit.changes.chain import chain_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_READERS: Mapping[TableFormat, Callable[[Question], Changed]] = {
    TableFormat.DELTA: delta.changed,
    TableFormat.ICEBERG: iceberg.changed,
    TableFormat.HIVE: hive.changed,
}


def changed_rows(
    spark: "SparkSession",
    events: Iterable[ChangeEvent],
    table: str | None = None,
    *,
    keys: str | Sequence[str] | None = None,
    read_as: str | None = None,
) -> Changed:
    """Return the rows that changed between the first and the last of the events of one table.

    Where they cannot be read change by change, both states of the table are compared, or all its
    rows are given; ``reason`` and the log then show why.

    Args:
        spark: The session that reads.
        events: In any order, of any tables.
        table: Whose rows are read; may be left out if all events are of one table.
        keys: The columns that identify a row in both of its states: what went and came with the
            same key is an update.
        read_as: The table's name in this session, where the events call it otherwise.

    Raises:
        ConfigurationError: The events are of several tables, or of a source without rows; a key is
            no column; the table has a column with the name of ours.
        ProbeFailedError: The table cannot be found, or not be read.
    """
    from harness.platform.spark.errors import SPARK_ERRORS

    mine = of_table(events, table)
    name = read_as or (mine[0].table if mine else table)
    try:
        if not mine or name is None:
            return _nothing(spark, name)
        question = Question(
            session=spark,
            name=table_key(name) if is_path(name) else name,
            chain=chain_of(mine),
            keys=(keys,) if isinstance(keys, str) else tuple(keys or ()),
        )
        answer = _READERS[question.chain.table_format](question)
    except SPARK_ERRORS as error:
        raise ProbeFailedError(f"{name} cannot be read: {message_of(error)}") from error
    if not answer.is_incremental:
        log.warning("%s: %s", name, answer.reason)
    return answer


def of_table(events: Iterable[ChangeEvent], table: str | None) -> list[ChangeEvent]:
    """Pick the events of one table, however its name is spelled.

    Raises:
        ConfigurationError: No table is named, and they are of several.
    """
    by_key: dict[str, list[ChangeEvent]] = {}
    for event in events:
        by_key.setdefault(table_key(event.table), []).append(event)
    if table is not None:
        return by_key.get(table_key(table), [])
    if len(by_key) > 1:
        raise ConfigurationError(
            f"the events are of the tables {', '.join(sorted(by_key))}: name the one whose changed"
            " rows are to be read, as in changed_rows(spark, events, 'sales.orders')"
        )
    return next(iter(by_key.values()), [])


def stop_when_nothing(what: Iterable[ChangeEvent] | Changed, table: str | None = None) -> None:
    """End the process with exit code 4 if there is no event, or if no row changed.

    This reports to a scheduler that there was nothing to do; no row is read for it.

    Args:
        what: The events that were passed to a job, before Spark is started; or what changed.
        table: Of the events, only those of this table count.
    """
    if isinstance(what, Changed):
        is_nothing = what.is_nothing
    else:
        mine = list(what) if table is None else of_table(what, table)
        is_nothing = not mine
    if is_nothing:
        log.info("nothing changed, so there is nothing to do")
        raise SystemExit(int(ExitCode.NOTHING_NEW))


def _nothing(spark: "SparkSession", table: str | None) -> Changed:
    from pyspark.sql.types import StructType

    if table is None or is_path(table):
        return nothing(spark.createDataFrame([], StructType([])), Range())
    return nothing(spark.table(in_sql(table)), Range())

"""Makes one extract: how far bronze has come, what is newer, appended once and as a whole."""

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Unpack, cast

from pyspark.sql import types as t

from harness.errors import ExtractError
from harness.platform.clock import Clock
from harness.toolkit.extract.lookback import LookBack, one_sentence
from harness.toolkit.extract.schema.apply import evolve, fitted
from harness.toolkit.extract.schema.plan import Plan, SchemaChange, SchemaRules, plan_for
from harness.toolkit.extract.sources.base import Batch, Source
from harness.toolkit.extract.target import Bronze
from harness.toolkit.extract.values import (
    as_text,
    collected,
    column_of,
    field_type,
    kind_of,
    utc,
    value_from,
)
from harness.toolkit.extract.writer import FileFormat, check_writable, columns_for, create, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_TICK = timedelta(microseconds=1)


class Options(LookBack, total=False):
    """The options of an extract; all are optional."""

    #: What becomes of an extract whose columns differ from those of bronze.
    schema: SchemaRules
    #: What bronze is made as, when there is none yet; Delta.
    file_format: FileFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one extract did."""

    table: str
    source: str
    #: Its instant: the value of ``p_extracted_at`` of its rows.
    extracted_at: datetime
    #: The rows of this partition.
    rows: int = 0
    #: From where rows were requested, that value included; ``None``: all of them.
    since: str | None = None
    #: The largest value that came.
    until: str | None = None
    #: There was no bronze table.
    is_first: bool = False
    #: Bronze had the rows of this instant already, and nothing was done.
    is_repeat: bool = False
    #: The source has more; another extract goes on from here.
    is_more: bool = False
    schema_changes: tuple[SchemaChange, ...] = ()
    #: What a person should know, a sentence each.
    notes: tuple[str, ...] = ()


def append(
    spark: "SparkSession", source: Source, table: str, *, at: datetime, **options: Unpack[Options]
) -> Extraction:
    """Append to bronze what the source has and bronze has not; once for each instant.

    Called again with the instant of an extract that came through, it does nothing; one that was
    killed on the way is made as if it had never begun.

    Args:
        spark: The session that reads and writes.
        source: Where the rows come from.
        table: The bronze table, ``schema.table`` or ``catalog.schema.table``.
        at: The instant of this extract, with its zone; a retry has the same.
        **options: ``days``, ``partition`` and ``future`` as for ``newest``; ``schema``, the rules
            for columns that differ; ``file_format`` of a table that is not there yet.

    Raises:
        ConfigurationError: A name or an option is wrong, or the table is no bronze table.
        ExtractError: The source cannot be read or bronze not be written, or a rule requires a stop.
    """
    made_as = FileFormat(options.get("file_format", FileFormat.DELTA))
    bronze = Bronze(spark, table, at, _lookback(options))
    check_writable(bronze, made_as)
    done = Extraction(
        table=bronze.name,
        source=source.name,
        extracted_at=bronze.now,
        is_first=not bronze.is_there,
    )
    if bronze.is_there and bronze.has_extract():
        return _reported(replace(done, rows=_rows(bronze), is_repeat=True), bronze)
    batch = source.read(bronze)
    if batch is None or _is_empty(source, batch):
        return _reported(done, bronze)
    if _arrived_meanwhile(bronze):
        return _reported(replace(done, rows=_rows(bronze), is_repeat=True), bronze)
    plan = _plan(bronze, batch, options)
    if not bronze.is_there:
        create(bronze, batch.frame.schema, made_as)
        bronze.refresh()
    evolve(bronze, plan)
    write(bronze, fitted(batch.frame, plan.columns))
    rows, last = _written(bronze, batch)
    done = replace(
        done,
        rows=rows,
        since=batch.since,
        until=batch.until or last,
        is_more=batch.is_more,
        schema_changes=plan.changes,
    )
    return _reported(done, bronze)


def catch_up(
    spark: "SparkSession", source: Source, table: str, *, clock: Clock, **options: Unpack[Options]
) -> list[Extraction]:
    """Append all that the source has, in as many extracts as it takes, oldest rows first.

    How much one takes is stated by the source (``piece``, ``most``). Each is a partition of its own
    and stays, whatever becomes of the next; called again, it goes on from there.

    Args:
        spark: The session that reads and writes.
        source: Where the rows come from.
        table: The bronze table.
        clock: Provides the instants of the extracts.
        **options: As for ``append``.

    Raises:
        ConfigurationError: A name or an option is wrong, or the table is no bronze table.
        ExtractError: An extract failed; those before it stay.
    """
    made: list[Extraction] = []
    while not made or made[-1].is_more:
        at = utc(clock.now(), "the clock")
        if made:
            at = max(at, made[-1].extracted_at + _TICK)
        made.append(append(spark, source, table, at=at, **options))
    return made


def _lookback(options: Options) -> LookBack:
    known = LookBack.__annotations__
    return cast(LookBack, {key: value for key, value in options.items() if key in known})


def _plan(bronze: Bronze, batch: Batch, options: Options) -> Plan:
    here = batch.frame.schema
    if bronze.partition.lower() in map(str.lower, here.fieldNames()):
        raise ExtractError(
            f"{bronze.name}: the extract has a column {bronze.partition} of its own; name another"
            " one to partition by, or rename it in the source"
        )
    if not bronze.is_there:
        return plan_for(columns_for(here), here, can_alter_types=True)
    there = t.StructType(
        [each for each in bronze.schema if each.name.lower() != bronze.partition.lower()]
    )
    plan = plan_for(there, here, can_alter_types=bronze.provider == FileFormat.DELTA)
    plan.check(options.get("schema", SchemaRules()), bronze.name)
    return plan


def _arrived_meanwhile(bronze: Bronze) -> bool:
    """Return whether another process with this extract was quicker, where no log would detect it.

    How far bronze has come was read after its rows were there, and what we have is only what
    came later: in the place of that partition it would lose the rest.
    """
    if not bronze.is_there or bronze.provider == FileFormat.DELTA:
        return False
    bronze.refresh()
    return bronze.has_extract()


def _is_empty(source: Source, batch: Batch) -> bool:
    with one_sentence(source.name):
        return not batch.frame.limit(1).count()


def _rows(bronze: Bronze) -> int:
    with one_sentence(bronze.name):
        return bronze.extracted().count()


def _written(bronze: Bronze, batch: Batch) -> tuple[int, str | None]:
    """Read from the table how many rows it has of this extract, and up to which value.

    Raises:
        ExtractError: It has none, since its log has an extract of this instant.
    """
    from pyspark.sql import functions as f

    count, kind = f.count(f.lit(1)), None
    largest = f.lit(None)
    if batch.column is not None:
        data_type = field_type(bronze.schema, batch.column, bronze.name)
        kind = kind_of(data_type, batch.column, bronze.name)
        largest = collected(f.max(column_of(batch.column)), kind)
    with one_sentence(bronze.name):
        rows, last = bronze.extracted().agg(count, largest).collect()[0]
    if not rows:
        raise ExtractError(
            f"{bronze.name} had the extract of {bronze.now.isoformat()} once, and its rows were"
            " deleted since; extract again with an instant of now"
        )
    return rows, None if kind is None else as_text(value_from(last, kind))


def _reported(done: Extraction, bronze: Bronze) -> Extraction:
    done = replace(done, notes=tuple(bronze.notes))
    log.info(
        "%s: %s rows of %s for %s%s", done.table, done.rows, done.source, done.extracted_at,
        ", which it had already" if done.is_repeat else "",
    )  # fmt: skip
    for change in done.schema_changes:
        log.warning("%s: %s", done.table, change.sentence)
    return done

"""Reads how far refresh models and self-healing models are, from the tables beside their own.

A refresh model has a batch log beside its table, and a self-healing model a record of the
partitions that it has taken. Both are read by their names, so neither dbt nor Spark is needed. What
waits for a self-healing model is determined where its source is a table of this warehouse.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from harness.errors import StateError
from harness.inspect.page.backlog import Backlog, Backlogs
from harness.platform.clock import instant_from
from harness.platform.json_file import MALFORMED
from harness.platform.text import first_line
from harness.store.rows import Row, Store, integer, text_or_none, whole_or_none

#: What the package appends to the name of a model's table.
BATCH_LOG, TAKEN = "_ledger", "_taken"
#: The newest batches of each model that are shown.
BATCHES_SHOWN = 20

_BATCHES = ("s_input_id", "step", "state", "received_at", "recorded_at", "record_count", "message")
_PARTITIONS = (
    *("source", "source_id", "partition_column", "partition", "stamp", "look_back_days"),
    *("table_id", "table_version", "taken_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The newest state of one batch of a refresh model."""

    number: int
    state: str
    received_at: datetime | None
    recorded_at: datetime | None
    row_count: int | None
    message: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How far a self-healing model is in one source."""

    #: As SQL has it, in lower case.
    name: str
    partition_count: int
    taken_at: datetime | None
    #: What the next run takes; nothing where that cannot be determined without Spark.
    backlog: Backlog | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model that ``report.models`` names."""

    name: str
    batches: Sequence[Batch] = ()
    sources: Sequence[Source] = ()
    #: Why nothing is known of it.
    problem: str | None = None


def read_models(
    names: Iterable[str],
    tables_of: Callable[[str], Store],
    since: datetime,
    backlogs: Backlogs | None = None,
) -> list[Model]:
    """Read how far models are; one that cannot be read is reported beside the others.

    Args:
        names: Their tables, each with its schema.
        tables_of: Returns the tables of a schema.
        since: Batches whose state is older are left out.
        backlogs: Determines what waits in a source, where the tables are in folders.
    """
    return [_model(name, tables_of, since, backlogs) for name in names]


def _model(
    name: str, tables_of: Callable[[str], Store], since: datetime, backlogs: Backlogs | None
) -> Model:
    schema, _, table = name.rpartition(".")
    try:
        store = tables_of(schema)
        logged = store.read(
            table + BATCH_LOG, where=[("recorded_at", ">", since)], columns=_BATCHES
        )
        taken = store.read(table + TAKEN, columns=_PARTITIONS)
        if not any(store.exists(table + ending) for ending in (BATCH_LOG, TAKEN)):
            problem = f"neither {table}{BATCH_LOG} nor {table}{TAKEN} is there: it has not run yet"
            return Model(name=name, problem=problem)
        return Model(name=name, batches=_batches(logged), sources=_sources(name, taken, backlogs))
    except (StateError, *MALFORMED) as error:
        return Model(name=name, problem=first_line(error, type(error).__name__))


def _batches(rows: Iterable[Row]) -> list[Batch]:
    """Return the newest state of each batch, the newest batch first."""
    newest: dict[int, Row] = {}
    for row in sorted(rows, key=lambda row: whole_or_none(row["step"]) or 0):
        newest[integer(row["s_input_id"])] = row
    return [
        Batch(
            number=number,
            state=str(row["state"]),
            received_at=instant_from(row["received_at"]),
            recorded_at=instant_from(row["recorded_at"]),
            row_count=whole_or_none(row["record_count"]),
            message=text_or_none(row["message"]),
        )
        for number, row in sorted(newest.items(), reverse=True)[:BATCHES_SHOWN]
    ]


def _sources(model: str, rows: Iterable[Row], backlogs: Backlogs | None) -> list[Source]:
    def source(row: Mapping[str, object]) -> str:
        return str(row["source"])

    found = []
    for name, own in groupby(sorted(rows, key=source), key=source):
        taken = [*own]
        instants = [at for row in taken if (at := instant_from(row["taken_at"])) is not None]
        found.append(
            Source(
                name=name,
                partition_count=len({row["partition"] for row in taken}),
                taken_at=max(instants, default=None),
                backlog=None if backlogs is None else backlogs.of(model, name, taken),
            )
        )
    return found

"""Gives the ledgers a past: years of ticks, as if they had been recorded and compacted.

The rows are appended as the harness appends them, by the deltalake package, with the real tables'
schemas, in files of the size that compacting leaves, one commit for each ledger.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from harness.store.rows import Ledger
from harness.tick.housekeeping import TARGET_BYTES

#: Commits that each probe found.
EVENTS_OF_A_LOOK = 10
#: Every job runs once in so many ticks.
TICKS_OF_A_RUN = 10
SECONDS_OF_A_TICK = 30
#: A run of the past names so many of its events, not all, which spares the disk.
NAMED_EVENTS = 10
_ROWS_AT_ONCE = 200_000
#: Fewer, so that the steps of one tick are near each other.
_RUNS_AT_ONCE = 10_000
_BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
_RANDOM = np.random.default_rng(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One upstream as the past had it, and the one job that consumes it."""

    upstream_id: str
    table: str
    position: str
    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """So many ticks, in each of which every upstream had new data."""

    first_tick: int
    last_tick: int
    upstreams: Sequence[Watched]
    #: Those of an event.
    tags: Mapping[str, str]

    @property
    def results(self) -> int:
        """Probes that found something."""
        return (self.last_tick - self.first_tick + 1) * len(self.upstreams)

    @property
    def events(self) -> int:
        """Rows of the ledger of events."""
        return self.results * EVENTS_OF_A_LOOK


def past_of(
    events: int, *, after: int, upstreams: Sequence[Watched], tags: Mapping[str, str]
) -> Past:
    """Return the past that has at least so many events, and ends with a run of every job."""
    of_a_run = len(upstreams) * EVENTS_OF_A_LOOK * TICKS_OF_A_RUN
    ticks = -(-events // of_a_run) * TICKS_OF_A_RUN
    return Past(first_tick=after + 1, last_tick=after + ticks, upstreams=upstreams, tags=tags)


def record(past: Past, folder: Path) -> None:
    """Append it to the ledgers of a schema's folder.

    Args:
        past: What to record.
        folder: The one with the ledgers' tables.
    """
    for ledger, batches in (
        (Ledger.EVENTS, events_of(past)),
        (Ledger.PROBES, _probes(past)),
        (Ledger.RUNS, _runs(past)),
    ):
        append_to(folder / ledger, batches)


def record_ticks(past: Past, folder: Path) -> None:
    """Append the ticks themselves; all of them are compacted."""
    numbers = np.arange(past.first_tick, past.last_tick + 1)
    at = _instants(numbers)
    found = len(past.upstreams)
    columns = {
        "tick_number": numbers,
        "tick_id": [f"{number}-of-the-past" for number in numbers],
        "tick_at": at,
        "sensed_count": np.full(len(numbers), found),
        "event_count": np.full(len(numbers), found * EVENTS_OF_A_LOOK),
        "failed_look_count": np.zeros(len(numbers), int),
        "settled_count": np.zeros(len(numbers), int),
        "started_count": np.zeros(len(numbers), int),
        "folded_through": np.full(len(numbers), past.last_tick),
        "seconds": np.ones(len(numbers)),
    }
    append_to(folder / Ledger.TICKS, iter([columns]))


_Columns = Mapping[str, object]


def append_to(table: Path, batches: Iterator[_Columns]) -> None:
    """Append rows to a table, as compacting leaves them."""
    opened = DeltaTable(table)
    schema = pa.schema(opened.schema().to_arrow())
    made = (_batch(columns, schema) for columns in batches)
    reader = pa.RecordBatchReader.from_batches(schema, itertools.chain.from_iterable(made))
    write_deltalake(opened, reader, mode="append", target_file_size=TARGET_BYTES)
    opened.update_incremental()
    opened.create_checkpoint()


def _batch(columns: _Columns, schema: pa.Schema) -> list[pa.RecordBatch]:
    rows = len(columns["tick_number"])  # type: ignore[arg-type]
    arrays = [_array(columns.get(field.name), field, rows) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema).to_batches()


def _array(values: object, field: pa.Field, rows: int) -> pa.Array:
    if values is None:
        return pa.nulls(rows, field.type)
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array.cast(field.type)


def _parts(count: int, at_once: int = _ROWS_AT_ONCE) -> Iterator[np.ndarray]:
    for start in range(0, count, at_once):
        yield np.arange(start, min(start + at_once, count))


def events_of(past: Past) -> Iterator[_Columns]:
    """Return the rows of its events, some at a time."""
    for numbers in _parts(past.events):
        results = numbers // EVENTS_OF_A_LOOK
        ticks, upstreams = _place(past, results)
        # Each upstream has one version more with each of its events.
        versions = (results // len(past.upstreams)) * EVENTS_OF_A_LOOK + numbers % EVENTS_OF_A_LOOK
        at = _milliseconds(ticks)
        ids = _ids(len(numbers))
        yield {
            "tick_number": ticks,
            "event_ts": at,
            "event_id": ids,
            "upstream_id": _named([each.upstream_id for each in past.upstreams], upstreams),
            "table": _named([each.table for each in past.upstreams], upstreams),
            "snapshot_id": pa.array(versions).cast(pa.string()),
            "snapshot_ts": at - 1000,
            "prev_snapshot_id": pa.array(versions - 1).cast(pa.string()),
            "table_format": _same("DELTA", len(numbers)),
            "operation_type": _same("APPEND", len(numbers)),
            "tags": _tags(past.tags, len(numbers)),
            "change_id": ids,
        }


def _probes(past: Past) -> Iterator[_Columns]:
    for numbers in _parts(past.results):
        ticks, upstreams = _place(past, numbers)
        at = _instants(ticks)
        recent = pa.StructArray.from_arrays(
            [pa.array(ticks), at, pa.array(np.full(len(ticks), EVENTS_OF_A_LOOK))],
            names=["tick_number", "event_at", "event_count"],
        )
        yield {
            "tick_number": ticks,
            "recorded_at": at,
            "upstream_id": _named([each.upstream_id for each in past.upstreams], upstreams),
            "outcome": _same("found", len(ticks)),
            "position": _named([each.position for each in past.upstreams], upstreams),
            "latest_event_tick": ticks,
            "latest_event_at": at,
            "recent_events": _lists(recent, 1),
        }


def _runs(past: Past) -> Iterator[_Columns]:
    count = past.results // TICKS_OF_A_RUN
    for numbers in _parts(count, _RUNS_AT_ONCE):
        ended = past.first_tick - 1 + (numbers // len(past.upstreams) + 1) * TICKS_OF_A_RUN
        jobs = numbers % len(past.upstreams)
        shared = {
            "tick_number": ended,
            "recorded_at": _instants(ended),
            "job_id": np.array([each.job_id for each in past.upstreams])[jobs],
            "job_name": _same("a job of the past", len(numbers)),
            "intent_id": _ids(len(numbers)),
            "attempt": np.ones(len(numbers), int),
            "token": _ids(len(numbers)),
            "decided_tick": ended,
            "decided_at": _instants(ended),
            "consumed": _consumed(past, ended, jobs),
            "event_count": np.full(len(numbers), EVENTS_OF_A_LOOK * TICKS_OF_A_RUN),
            "event_ids": _lists(_ids(len(numbers) * NAMED_EVENTS), NAMED_EVENTS),
            "parameters": _same("{}", len(numbers)),
        }
        known = {"run_id": numbers + 1, "started_at": _instants(ended)}
        for step, (status, said_by, more) in enumerate(
            (
                ("INTENDED", "decision", {}),
                ("STARTED", "answer", known),
                ("SUCCEEDED", "poll", {**known, "ended_at": _instants(ended)}),
            )
        ):
            yield {
                **shared,
                **more,
                "step_number": numbers * 3 + step,
                "run_status": _same(status, len(numbers)),
                "reported_by": _same(said_by, len(numbers)),
            }


def _consumed(past: Past, ended: np.ndarray, jobs: np.ndarray) -> pa.Array:
    consumed = pa.StructArray.from_arrays(
        [
            _named([each.upstream_id for each in past.upstreams], jobs),
            pa.array(ended - TICKS_OF_A_RUN),
            pa.array(ended),
        ],
        names=["upstream_id", "from_tick", "through_tick"],
    )
    return _lists(consumed, 1)


def _place(past: Past, results: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the tick and the upstream of each probe."""
    return past.first_tick + results // len(past.upstreams), results % len(past.upstreams)


def _milliseconds(ticks: np.ndarray) -> np.ndarray:
    return int(_BEGAN.timestamp() * 1000) + ticks * SECONDS_OF_A_TICK * 1000


def _instants(ticks: np.ndarray) -> pa.Array:
    return pa.array(_milliseconds(ticks) * 1000).cast(pa.timestamp("us", tz="UTC"))


def _ids(count: int) -> pa.Array:
    """Return ids of 32 hexadecimal digits."""
    digits = np.frombuffer(_RANDOM.bytes(count * 16).hex().encode(), dtype="S1")
    offsets = np.arange(count + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(digits))


def _named(names: Sequence[str], numbers: np.ndarray) -> pa.Array:
    return pa.array(names).take(pa.array(numbers))


def _same(text: str, count: int) -> pa.Array:
    return pa.repeat(text, count)


def _lists(values: pa.Array, length: int) -> pa.Array:
    offsets = np.arange(len(values) // length + 1, dtype=np.int32) * length
    return pa.ListArray.from_arrays(offsets, values)


def _tags(tags: Mapping[str, str], count: int) -> pa.Array:
    numbers = np.tile(np.arange(len(tags)), count)
    offsets = np.arange(count + 1, dtype=np.int32) * len(tags)
    return pa.MapArray.from_arrays(
        offsets, _named(list(tags), numbers), _named(list(tags.values()), numbers)
    )

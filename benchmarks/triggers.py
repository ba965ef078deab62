"""Times evaluations of many event triggers over ledgers with few and with many data-change events.

An evaluation is what a tick runs: the row that has its time, the slots that open, then the results.
The events of the past lie over so many tables and days, a partition each, as a year of loads leaves
them. Side by side in one run: each size in a folder of its own.

    .venv/bin/python benchmarks/triggers.py --triggers 100000 --events 100000 10000000
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
from deltalake import DeltaTable, write_deltalake  # noqa: E402

from benchmarks.parts.past import append_to  # noqa: E402
from benchmarks.upstreams import BenchContext, copy_project, line, timed  # noqa: E402
from harness.decide.triggers import DUE_SLOTS  # noqa: E402
from harness.publish.publish import compact  # noqa: E402
from harness.store.rows import Ledger, ProbeOutcome, ProbeRow  # noqa: E402
from harness.tick.housekeeping import schema_folder  # noqa: E402

TABLES = 1_000
EVENTS_OF_A_TICK = 1_000
REPEATS = 3
#: One trigger in so many is due where some are.
SOME = 1_000
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_AT_ONCE = 500_000


def main() -> None:
    """Run every size, each in a process and a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triggers", type=int, default=100_000)
    parser.add_argument("--events", type=int, nargs="+", default=[100_000, 10_000_000])
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        os.chdir(options.inside / "project")
        Bench(options.inside, options.triggers, options.events[0]).run()
        return
    print(f"{'events':>8}  {'what':<44}{'seconds':>9}  rows", flush=True)
    for events in options.events:
        folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
        try:
            copy_project(folder / "project")
            (folder / "project" / "heartbeat.yml").write_text("{}\n")
            command = [sys.executable, __file__, "--inside", str(folder)]
            sizes = ["--triggers", str(options.triggers), "--events", str(events)]
            subprocess.run([*command, *sizes], check=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """One size: so many triggers over so many events."""

    def __init__(self, folder: Path, triggers: int, events: int) -> None:
        self._context = BenchContext(folder / "project", folder / "home", 0)
        self._triggers = triggers
        self._events = events
        self._tick = -(-events // EVENTS_OF_A_TICK)
        self._compacted = -1
        self._now = _BEGAN + timedelta(days=events // EVENTS_OF_A_TICK // 2 + 2)

    def run(self) -> None:
        """Fill the tables, and evaluate."""
        context = self._context
        context.dbt.build_everything(with_triggers=True)
        ledgers = schema_folder(context)
        append_to(ledgers / Ledger.EVENTS, self._past())
        self._seed(ledgers)
        terms = timed(lambda: context.dbt.build("trigger_terms"))[0]
        line(self._events, "once for each edit of the CSV", terms)
        self._compact("compacting all events")
        self._probe("the first one, all slots due")
        self._now += timedelta(hours=1)
        self._probe("all slots due")
        for _ in range(REPEATS):
            self._probe("nothing due, nothing came")
        for _ in range(REPEATS):
            self._arrive()
            self._probe("nothing due, one partition came")
        for minute in range(1, REPEATS + 1):
            self._now += timedelta(minutes=minute)
            self._probe(f"one of {SOME} due")
        self._now += timedelta(hours=1)
        self._probe("all slots due, warm")
        self._compact("compacting the results")
        self._probe("nothing due, after a compaction")
        context.close()

    def _compact(self, what: str) -> None:
        """Time the compaction of everything since the last one."""
        before, self._compacted = self._compacted, self._tick
        took = timed(lambda: compact(self._context, before, self._tick))[0]
        line(self._events, what, took)

    def _past(self) -> Iterator[dict[str, object]]:
        """Yield the events of the past: every table has a partition for each day."""
        for start in range(0, self._events, _AT_ONCE):
            numbers = np.arange(start, min(start + _AT_ONCE, self._events))
            days = numbers // EVENTS_OF_A_TICK // 2
            yield _events(numbers, numbers // EVENTS_OF_A_TICK, numbers % TABLES, days)

    def _arrive(self) -> None:
        """Let one event come that half of the triggers of its table wait for."""
        number = np.array([self._events + self._tick])
        day = np.array([(self._now - _BEGAN).days + 3])
        table = schema_folder(self._context) / Ledger.EVENTS
        columns = _events(number, np.array([self._tick + 1]), np.array([8]), day)
        append_to(table, iter([columns]))

    def _seed(self, ledgers: Path) -> None:
        """Write the triggers: nine in ten wait for a table's partition of the day before."""
        numbers = range(self._triggers)
        rows = pa.table(
            {
                "trigger_id": [f"t{number}" for number in numbers],
                "trigger_type": ["SNAPSHOT" if n % 10 == 9 else "PARTITION" for n in numbers],
                "job_id": [str(number + 1) for number in numbers],
                "job_name": ["a job" for _ in numbers],
                "table": [_table(number % TABLES) for number in numbers],
                # Half of them wait for what has come, half for what comes tomorrow.
                "partition": [_partition(number) for number in numbers],
                "start_timestamp": [_start(number) for number in numbers],
                "frequency": ["1" for _ in numbers],
                "frequency_unit": ["HOURS" for _ in numbers],
            }
        )
        table = DeltaTable(ledgers / "event_triggers")
        schema = pa.schema(table.schema().to_arrow())
        arrays = [
            rows[field.name].combine_chunks() if field.name in rows.column_names else None
            for field in schema
        ]
        whole = [
            pa.nulls(len(rows), field.type) if array is None else array.cast(field.type)
            for array, field in zip(arrays, schema, strict=True)
        ]
        write_deltalake(table, pa.Table.from_arrays(whole, schema=schema), mode="append")

    def _probe(self, what: str) -> None:
        """Time an evaluation, and record its results as a tick does."""
        context = self._context
        self._tick += 1
        results = schema_folder(context) / "ledger_trigger_looks"
        stamp = pa.array([self._now]).cast(pa.timestamp("us", tz="UTC"))
        append_to(results, iter([{"tick_number": np.array([self._tick]), "looked_at": stamp}]))
        clock = timed(lambda: context.fill(*DUE_SLOTS))[0]
        took, output = timed(lambda: self._context.rows("queue_trigger_evaluations"))
        assert isinstance(output, list)
        matched = sum(len(row["matched"]) for row in output)
        line(self._events, what, clock + took, f"{len(output):,} have a result, {matched:,} events")
        line(self._events, f"{what}: of it the slots", clock)
        context.store.append(
            Ledger.PROBES,
            [
                ProbeRow(
                    tick_number=self._tick,
                    recorded_at=self._now,
                    upstream_id=row["upstream_id"],
                    outcome=ProbeOutcome.FOUND if row["matched"] else ProbeOutcome.MOVED,
                    reason=row["reason"],
                    failing_since=None,
                    position=row["position"],
                    upstream_value=None,
                    # As if the job had taken the slot at once.
                    latest_event_tick=None,
                    latest_event_at=None,
                    recent_events=(),
                )
                for row in output
            ],
        )


def _events(
    numbers: np.ndarray, ticks: np.ndarray, tables: np.ndarray, days: np.ndarray
) -> dict[str, object]:
    names = pa.array([_table(number) for number in range(TABLES)])
    partitions = pa.array([f'"{_day(number)}"' for number in range(int(days.max()) + 1)])
    at = int(_BEGAN.timestamp() * 1000) + ticks * 1000
    ids = pa.array(numbers).cast(pa.string())
    offsets = np.arange(len(numbers) + 1, dtype=np.int32)
    return {
        "tick_number": ticks,
        "event_ts": at,
        "event_id": ids,
        "change_id": ids,
        "upstream_id": pa.repeat("delta_table:a table:0f98c317", len(numbers)),
        "table": names.take(pa.array(tables)),
        "partition": pa.ListArray.from_arrays(offsets, partitions.take(pa.array(days))),
        "snapshot_id": ids,
        "table_format": pa.repeat("DELTA", len(numbers)),
        "operation_type": pa.repeat("APPEND", len(numbers)),
    }


def _table(number: int) -> str:
    return f"lake.table_{number:04d}"


def _day(number: int) -> str:
    return f"{_BEGAN + timedelta(days=number):%Y-%m-%d}"


def _partition(number: int) -> str | None:
    if number % 10 == 9:
        return None
    return "{-3 days yyyy-MM-dd}" if number % 2 else "{+3 days yyyy-MM-dd}"


def _start(number: int) -> str:
    # One of a thousand has its slots at another minute than the others.
    minute = 1 + number // SOME % 3 if number % SOME == 0 else 0
    return f"2026-01-01T00:{minute:02d}:00Z"


if __name__ == "__main__":
    main()

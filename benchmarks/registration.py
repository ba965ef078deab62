"""Times registered events on their way from a producer, over the inbox, into the ledger.

Every size runs with snapshots (which are looked up in the ledger), without, and once more with the
same snapshots, of which nothing is new. No JVM and no dbt take part in it.

    .venv/bin/python benchmarks/registration.py --events 1000 100000
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from harness.record.batch_inbox import receive_batches, remove_batches  # noqa: E402
from harness.record.correlate import SameChanges  # noqa: E402
from harness.record.registrations import ingest  # noqa: E402
from harness.store.rows import Tick  # noqa: E402
from harness.toolkit.changes import ChangeEvent, Operation, TableFormat, register  # noqa: E402
from tests.support.disk_ledgers import create_ledgers  # noqa: E402

TABLES = 1_000
START = datetime(2026, 3, 1, tzinfo=UTC)


def main() -> None:
    """Run every size in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[1_000, 100_000])
    options = parser.parse_args()
    print(f"{'events':>8}  {'what':<52}{'seconds':>9}{'per second':>12}", flush=True)
    for events in options.events:
        folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
        try:
            bench(folder, events)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def bench(folder: Path, count: int) -> None:
    """Time one size: register and record, event by event."""
    of_snapshots = list(events_of(count))
    of_partitions = [
        replace(event, snapshot_id=None, prev_snapshot_id=None, partition=(f'"{number}"', "1"))
        for number, event in enumerate(of_snapshots)
    ]
    began = time.perf_counter()
    lines = "".join(f"{json.dumps(as_registered(event))}\n" for event in of_snapshots)
    (folder / "events.jsonl").write_text(lines)
    line(count, "(a producer writes the file)", time.perf_counter() - began)
    home = folder / "home"
    environment = {**os.environ, "HEARTBEAT_HOME": str(home), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "harness", "emit", "--file", str(folder / "events.jsonl")]
    began = time.perf_counter()
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, stdout=subprocess.DEVNULL)
    line(count, "emit --file, a process of its own", time.perf_counter() - began)
    ticks = Ticks(home)
    ticks.ingest(count, "recorded: snapshots, all new")
    registered(count, "register(), in a process that goes on", home, of_snapshots)
    ticks.ingest(count, "recorded: the same snapshots again")
    registered(count, "register(), partitions without snapshots", home, of_partitions)
    ticks.ingest(count, "recorded: partitions without snapshots")


class Ticks:
    """Ingests what waits, with ledgers that stay.

    Args:
        home: The state directory.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._store = create_ledgers(home / "warehouse")
        self._number = 0
        self._tables: dict[str, int | None] = {}

    def ingest(self, count: int, what: str) -> None:
        """Time the recording of one batch, until it has left the inbox."""
        self._number += 1
        tick = Tick(number=self._number, at=START + timedelta(minutes=self._number))
        began = time.perf_counter()
        batches = receive_batches(self._home / "inbox", at=tick.at)
        found = ingest(
            batches,
            self._tables,
            tick=tick,
            store=self._store,
            same=SameChanges(self._store, tick),
        )
        remove_batches(found.batches)
        line(count, f"{what}: {len(found.events):,} rows", time.perf_counter() - began)
        self._tables = dict(found.tables)


def registered(count: int, what: str, home: Path, events: list[ChangeEvent]) -> None:
    """Time one call."""
    began = time.perf_counter()
    register(events, home=home)
    line(count, what, time.perf_counter() - began)


def events_of(count: int) -> Iterator[ChangeEvent]:
    """Return events of many tables, as a writer would register them."""
    made_at = int(START.timestamp() * 1000)
    for number in range(count):
        yield ChangeEvent(
            table=f"lake.t{number % TABLES:05d}",
            partition=(f'"2026-03-{number % 28 + 1:02d}"', str(number % 24)),
            snapshot_id=str(number),
            snapshot_ts=made_at + number,
            prev_snapshot_id=str(number - 1),
            table_format=TableFormat.ICEBERG,
            operation_type=Operation.APPEND,
            tags={"completeness": "hourly", "rows": str(number)},
        )


def as_registered(event: ChangeEvent) -> dict[str, object]:
    """Return what a producer writes of an event."""
    return {name: value for name, value in event.to_json().items() if value is not None}


def line(count: int, what: str, seconds: float) -> None:
    """Print one figure."""
    print(f"{count:>8}  {what:<52}{seconds:>9.3f}{count / seconds:>12,.0f}", flush=True)


if __name__ == "__main__":
    main()

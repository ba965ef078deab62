"""Times the way from a change to run-now, in a resident process that ticks once a second.

Three ways: a commit to one of many Delta tables that jobs wait for, the same while an earlier one
is published, and an event that a producer registers of a partition that a trigger waits for.
The loop is that of `run`, with its housekeeping. Changes come at any moment, all but those of the
second way when the run of the last one is settled; runs end at once, so that the second way has
the settling of the earlier one's run in it, too. Below each way is where its ticks spent their
time, by the medians of the steps.

    .venv/bin/python benchmarks/latency.py --tables 1000 --changes 40
"""

import argparse
import os
import queue
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.upstreams import (  # noqa: E402
    FIRST_JOB,
    BenchContext,
    append,
    lay_out,
    line,
    write_triggers,
)
from harness.platform.stopping import Interrupted  # noqa: E402
from harness.tick.engine import Engine  # noqa: E402
from harness.tick.housekeeping import Housekeeper  # noqa: E402
from harness.tick.loop import Listeners, Pace, run_loop  # noqa: E402
from harness.tick.report import TickReport  # noqa: E402
from harness.toolkit.changes import ChangeEvent, Operation, TableFormat, register  # noqa: E402

EVERY_SECONDS = 1.0
WAYS = ("commit", "busy", "event")
#: So many slots are open from the first tick on, one for each day.
DAYS = 400
_TABLE = "lake.registered"


def main() -> None:
    """Run both ways in one folder, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--changes", type=int, default=40, help="changes of each kind")
    parser.add_argument("--warming", type=int, default=15, help="changes before those that count")
    parser.add_argument("--pause", type=float, default=6, help="seconds between two changes")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
    try:
        bench = Bench(folder, options.tables, options.warming, options.pause)
        bench.run(options.changes, options.ways)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """A resident process over so many tables, with one trigger.

    Args:
        folder: Where everything lies.
        tables: How many Delta tables, each with a job of its own.
        warming: How many changes of each kind come before those that count.
        pause: How many seconds pass at least between a start and the next change.
    """

    def __init__(self, folder: Path, tables: int, warming: int, pause: float) -> None:
        self._tables, self._warming, self._pause = tables, warming, pause
        self._paths = [folder / "lake" / f"t{number:05d}" for number in range(tables)]
        for path in self._paths:
            append(path)
        project = folder / "project"
        lay_out(project, self._paths)
        self._trigger_job = FIRST_JOB + tables
        _write_trigger(project, self._trigger_job)
        self._home = folder / "home"
        os.chdir(project)
        self._context = BenchContext(project, self._home, tables + 1)
        # As `run` does.
        self._context.publishes_aside = True
        self._started: queue.Queue[tuple[int, float]] = queue.Queue()
        #: The seconds of the steps of each tick that started a job.
        self._steps: list[Mapping[str, float]] = []
        self._note_starts()

    def run(self, changes: int, ways: Sequence[str]) -> None:
        """Tick, and let changes come meanwhile."""
        engine = Engine(self._context)
        for _ in range(3):
            engine.tick()
            engine.finish()
        while not self._started.empty():
            self._started.get()
        context = self._context
        producer = threading.Thread(target=self._produce, args=[changes, ways])
        producer.start()
        listeners = Listeners(
            on_report=self._note_steps,
            between=Housekeeper(context, alone=engine.finish).between_ticks,
        )
        pace = Pace(every_seconds=EVERY_SECONDS)
        with suppress(Interrupted):
            run_loop(engine, pace, clock=context.clock, stop=context.stop, listeners=listeners)
        producer.join()
        engine.close()
        context.close()

    def _note_steps(self, report: TickReport) -> None:
        if report.started:
            self._steps.append(report.seconds)

    def _note_starts(self) -> None:
        jobs = self._context.jobs
        run_now = jobs.run_now

        def noted(*, job_id: int, **rest: object) -> object:
            self._started.put((job_id, time.perf_counter()))
            return run_now(job_id=job_id, **rest)

        jobs.run_now = noted

    def _produce(self, changes: int, ways: Sequence[str]) -> None:
        def commit(_: int) -> None:
            append(self._paths[0])

        try:
            if "commit" in ways:
                self._time("a commit", changes, FIRST_JOB, commit)
            if "busy" in ways:
                busy = "a commit while another is published"
                self._time(busy, changes, FIRST_JOB, commit, is_busy=True)
            if "event" in ways:
                self._time("a registered event", changes, self._trigger_job, self._register)
        finally:
            self._context.stop.is_wanted = True

    def _time(
        self,
        what: str,
        changes: int,
        job: int,
        change: Callable[[int], None],
        *,
        is_busy: bool = False,
    ) -> None:
        took = []
        for number in range(self._warming + changes):
            if number == self._warming:
                self._steps.clear()
            # What the last change has left is settled, published, and probed once more.
            time.sleep(self._pause + random.random() * EVERY_SECONDS)
            if is_busy:
                append(self._paths[1])
                self._started.get(timeout=120)
                time.sleep(random.random() * EVERY_SECONDS)
            change(number)
            began = time.perf_counter()
            started, at = self._started.get(timeout=120)
            assert started == job, f"job {started} was started instead of {job}"
            took.append(at - began)
        counted = sorted(took[self._warming :])
        p95 = counted[min(len(counted) - 1, round(0.95 * len(counted)))]
        line(self._tables, f"{what}, median of {changes}", statistics.median(counted))
        line(self._tables, f"{what}, 95 of 100 within", p95)
        line(self._tables, f"{what}, the slowest", counted[-1])
        steps = [*self._steps]
        for step in sorted({name for each in steps for name in each}):
            seconds = [each.get(step, 0.0) for each in steps]
            line(self._tables, f"    {step}", statistics.median(seconds))

    def _register(self, number: int) -> None:
        day = _first_day() + timedelta(days=number)
        event = ChangeEvent(
            table=_TABLE,
            partition=(f'"{day:%Y-%m-%d}"',),
            snapshot_id=str(number + 1),
            prev_snapshot_id=str(number) if number else None,
            snapshot_ts=int(time.time() * 1000),
            table_format=TableFormat.ICEBERG,
            operation_type=Operation.APPEND,
        )
        register([event], home=self._home)


def _first_day() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(DAYS)


def _write_trigger(project: Path, job: int) -> None:
    """Write a trigger that has a slot for each day and lets none go."""
    cells = {
        "trigger_id": "days",
        "trigger_type": "PARTITION",
        "job_id": str(job),
        "job_name": f"job {job}",
        "table": _TABLE,
        "partition": "{yyyy-MM-dd}",
        "start_timestamp": f"{_first_day():%Y-%m-%dT00:00:00Z}",
        "frequency": "1",
        "frequency_unit": "DAYS",
        "missed_slots": "ALL",
    }
    write_triggers(project, [cells])


if __name__ == "__main__":
    main()

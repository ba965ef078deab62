"""Times idle ticks over a hundred thousand local Delta upstreams, and how much memory they take.

Every upstream is sensed from the first tick on, and none has new data. Printed are the first tick,
the idle ticks of a resident process in the order in which they ran, the memory of the process after
each part, and an idle tick of a fresh process. Event triggers wait beside them, for what never
comes.

    .venv/bin/python benchmarks/sweep.py --tables 100000 --ticks 40
    .venv/bin/python benchmarks/sweep.py --tables 100 --triggers 100000 --ticks 40
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.upstreams import (  # noqa: E402
    FIRST_JOB,
    BenchContext,
    append,
    cold,
    lay_out,
    line,
    memory_of,
    paths_of,
    print_time,
    timed,
    write_triggers,
)
from harness.tick.engine import Engine  # noqa: E402

#: So many parts of the ticks are reported one by one, to see whether they stay the same.
PARTS = 4


def main() -> None:
    """Make the tables, tick over them, and remove them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--triggers", type=int, default=0, help="a daily one of 1,000 tables each")
    parser.add_argument("--ticks", type=int, default=40, help="idle ticks of a resident process")
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.warm:
        os.chdir(options.warm / "project")
        warm(options.warm, options.ticks)
        return
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
    try:
        make_tables(folder, options.tables)
        lay_out(folder / "project", paths_of(folder))
        write_triggers(folder / "project", triggers(options.triggers, options.tables))
        # Data that was there before Heartbeat is no event: nothing starts.
        (folder / "project" / "heartbeat.yml").write_text("sensing: {first_sight: baseline}\n")
        again = [sys.executable, __file__, "--warm", str(folder), "--ticks", str(options.ticks)]
        subprocess.run(again, check=True)
        cold(folder / "project", folder / "home", options.tables)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def triggers(count: int, jobs: int) -> Iterator[Mapping[str, str]]:
    """Yield triggers whose slot of this day waits; each job has equally many."""
    today = f"{datetime.now(UTC):%Y-%m-%dT00:00:00Z}"
    for number in range(count):
        job = FIRST_JOB + number % jobs
        yield {
            "trigger_id": f"t{number}",
            "trigger_type": "PARTITION",
            "job_id": str(job),
            "job_name": f"job {job}",
            "table": f"lake.waited{number % 1_000}",
            "partition": "{yyyy-MM-dd}",
            "start_timestamp": today,
            "frequency": "1",
            "frequency_unit": "DAYS",
        }


def make_tables(folder: Path, tables: int) -> None:
    """Copy one table, each time with an id of its own: committing takes ten times as long."""
    append(folder / "template")
    (log,) = (folder / "template" / "_delta_log").glob("*.json")
    (data,) = (folder / "template").glob("*.parquet")
    (own_id,) = (part.split('"')[0] for part in log.read_text().split('"metaData":{"id":"')[1:])
    content = log.read_text()
    for number in range(tables):
        place = folder / "lake" / f"t{number:06d}"
        (place / "_delta_log").mkdir(parents=True)
        shutil.copyfile(data, place / data.name)
        own = content.replace(own_id, str(uuid.uuid4()))
        (place / "_delta_log" / log.name).write_text(own)


def warm(folder: Path, ticks: int) -> None:
    """Time a resident process."""
    tables = len(paths_of(folder))
    context = BenchContext(folder / "project", folder / "home", tables)
    engine = Engine(context)
    print_time(tables, "first tick: build, seed, first sight of all", engine.tick)
    engine.tick()
    print_memory(tables)
    size = max(1, ticks // PARTS)
    for part in range(PARTS):
        took = [timed(engine.tick)[0] for _ in range(size)]
        which = f"{part * size + 1} to {(part + 1) * size}"
        line(tables, f"idle ticks {which}, median", statistics.median(took))
        line(tables, f"idle ticks {which}, longest", max(took))
        print_memory(tables)
    context.close()


def print_memory(tables: int) -> None:
    """Print the resident memory of this process, in GiB."""
    now, most = (mebibytes / 1024 for mebibytes in memory_of(os.getpid()))
    print(f"{tables:>7}  {'memory now, at most (GiB)':<44}{now:>9.2f}  {most:.2f}", flush=True)


if __name__ == "__main__":
    main()

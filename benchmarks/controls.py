"""Times ticks over many control rows: the same tables feed more and more jobs, two rows a job.

.venv/bin/python benchmarks/controls.py --rows 1000 10000 100000
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.upstreams import (  # noqa: E402
    FIRST_JOB,
    BenchContext,
    append,
    lay_out,
    print_time,
    write_controls,
)
from harness.tick.engine import Engine  # noqa: E402

TABLES = 100
ROWS_OF_A_JOB = 2


def main() -> None:
    """Run every size, each in a process and a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--in", type=Path, dest="folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        ticks(options.folder, options.rows[0])
        return
    print(f"{'rows':>7}  {'what':<44}{'seconds':>9}  steps", flush=True)
    for rows in options.rows:
        folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
        command = [sys.executable, __file__, "--rows", str(rows), "--in", str(folder)]
        subprocess.run(command, check=True)
        shutil.rmtree(folder, ignore_errors=True)


def ticks(folder: Path, rows: int) -> None:
    """Time the first tick, two that start what the start limit left over, and one with new data."""
    project = folder / "project"
    tables = [folder / "lake" / f"t{number:03d}" for number in range(TABLES)]
    for table in tables:
        append(table)
    lay_out(project, tables)
    (project / "heartbeat.yml").write_text("jobs:\n  starts_per_tick: 50\n")
    write_controls(project, rows_of(tables, rows))
    os.chdir(project)
    context = BenchContext(project, folder / "home", rows // ROWS_OF_A_JOB)
    engine = Engine(context)
    print_time(rows, "first tick: build, seed, first sight of all", engine.tick)
    print_time(rows, "second tick, 50 more starts", engine.tick)
    print_time(rows, "third tick, 50 more starts", engine.tick)
    append(tables[0])
    print_time(rows, "one table changed, 50 more starts", engine.tick)
    context.close()


def rows_of(tables: list[Path], rows: int) -> Iterator[list[object]]:
    """Return the rows of a CSV in which every job needs two tables."""
    for number in range(rows):
        job = FIRST_JOB + number // ROWS_OF_A_JOB
        table = tables[number % TABLES]
        cells = ["delta_table", table, "streaming", "", "", "", job, f"job {job}", "UNPAUSED"]
        yield [*cells, "TRUE"]


if __name__ == "__main__":
    main()

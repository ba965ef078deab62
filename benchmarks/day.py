"""Plays a day of a resident process: 2,880 ticks, one in ten with new data, as fast as they go.

Shows whether the last hundred ticks are as quick as the first: the ledgers grow all the time.

    .venv/bin/python benchmarks/day.py --ticks 2880 --tables 20
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.upstreams import BenchContext, append, lay_out, line, timed  # noqa: E402
from harness.tick.engine import Engine  # noqa: E402
from harness.tick.housekeeping import Housekeeper  # noqa: E402

#: New data comes with every tenth tick.
BUSY_EVERY = 10
#: Ticks between two lines of progress, on standard error.
PROGRESS_EVERY = 100


def main() -> None:
    """Run the day and print its parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=2880)
    parser.add_argument("--tables", type=int, default=20)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-day-"))
    try:
        paths = [folder / "lake" / f"t{number:05d}" for number in range(options.tables)]
        for path in paths:
            append(path)
        lay_out(folder / "project", paths)
        os.chdir(folder / "project")
        day(BenchContext(folder / "project", folder / "home", options.tables), paths, options.ticks)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def day(context: BenchContext, paths: list[Path], ticks: int) -> None:
    """Tick through the day, with the housekeeping that ``run`` does between ticks."""
    engine, housekeeper = Engine(context), Housekeeper(context)
    engine.tick()
    idle: list[float] = []
    busy: list[float] = []
    settled: list[float] = []
    for number in range(ticks):
        has_news = number % BUSY_EVERY == 0
        if has_news:
            append(paths[number // BUSY_EVERY % len(paths)])
        took, _ = timed(engine.tick)
        # The tick after a start settles its run, which is work of its own.
        if number % BUSY_EVERY > 1:
            idle.append(took)
        elif has_news:
            busy.append(took)
        else:
            settled.append(took)
        housekeeper.between_ticks()
        if number % PROGRESS_EVERY == PROGRESS_EVERY - 1:
            part = PROGRESS_EVERY // BUSY_EVERY
            changes, settling = (statistics.median(part_of[-part:]) for part_of in (busy, settled))
            reported = f"{number + 1} ticks: busy {changes:.2f} s, settling {settling:.2f} s\n"
            sys.stderr.write(reported)
    for name, seconds in (("idle", idle), ("busy", busy), ("settling", settled)):
        part = max(1, min(100, len(seconds) // 4))
        first, last = statistics.median(seconds[:part]), statistics.median(seconds[-part:])
        line(len(paths), f"{name} tick, first {part} (median)", first)
        line(len(paths), f"{name} tick, last {part} (median)", last)
        line(len(paths), f"{name} tick, last to first", last / first)
    context.close()


if __name__ == "__main__":
    main()

"""Times the same ticks over ledgers without a past, and with one of millions of events.

What is compacted is not read again, so that both should take as long. Side by side in one run: each
size ticks in a folder of its own.

    .venv/bin/python benchmarks/ledger.py --events 0 10000000
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.parts.past import Past, Watched, past_of, record, record_ticks  # noqa: E402
from benchmarks.upstreams import (  # noqa: E402
    BenchContext,
    append,
    cold,
    delta_rows,
    lay_out,
    line,
    paths_of,
    print_time,
    steps_of,
    timed,
    write_controls,
)
from harness.publish import publish  # noqa: E402
from harness.store.rows import Ledger  # noqa: E402
from harness.tick.checkpoint import load_state  # noqa: E402
from harness.tick.engine import Engine  # noqa: E402
from harness.tick.housekeeping import maintain, schema_folder  # noqa: E402
from harness.tick.report import TickReport  # noqa: E402
from harness.tick.state import TickState  # noqa: E402

TABLES = 100
IDLE_TICKS = 20
REPEATS = 5
#: Tables that have no past: nothing came to them since they were first probed.
IDLE_TABLES = 5


def main() -> None:
    """Run every size, each in processes and a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[0, 10_000_000])
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--warming", type=int, default=0, help="ticks; else until a compaction")
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        fill(options.fill, options.events[0])
    elif options.warm:
        warm(options.warm, options.events[0], options.warming)
    else:
        print(f"{'events':>8}  {'what':<44}{'seconds':>9}  steps", flush=True)
        for events in options.events:
            bench(events, options.tables, options.warming)


def bench(events: int, tables: int, warming: int) -> None:
    """Time one size."""
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
    try:
        paths = [folder / "lake" / f"t{number:05d}" for number in range(tables)]
        for path in paths:
            append(path)
        lay_out(folder / "project", paths)
        # The metastore admits one JVM: each part ends before the next one begins.
        for part in ("--fill", "--warm"):
            command = [sys.executable, __file__, part, str(folder), "--events", str(events)]
            subprocess.run([*command, "--warming", str(warming)], check=True)
        cold(folder / "project", folder / "home", tables, shown_as=events)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def context_in(folder: Path) -> BenchContext:
    """Return the context of a run's folder."""
    os.chdir(folder / "project")
    # One job more, which the last part adds.
    return BenchContext(folder / "project", folder / "home", len(paths_of(folder)) + 1)


def fill(folder: Path, events: int) -> None:
    """Probe everything once, and give the ledgers their past."""
    context = context_in(folder)
    rest(Engine(context))
    state = load_state(context.home.state, context.store)
    assert state is not None
    if events:
        resting = frozenset(map(str, paths_of(folder)[-IDLE_TABLES:]))
        past = past_from(state, events, tags_in(context), resting)
        line(events, "making the past", timed(lambda: record(past, schema_folder(context)))[0])
        took = timed(lambda: publish.compact(context, state.folded_through, past.last_tick))
        line(events, "compacting all of it, once", took[0])
        record_ticks(past, schema_folder(context))
    line(events, "maintain", timed(lambda: maintain(context))[0])
    context.home.state.unlink(missing_ok=True)
    context.close()


def past_from(
    state: TickState, events: int, tags: Mapping[str, str], resting: frozenset[str]
) -> Past:
    """Return a past of the upstreams that are watched, which left them as they are."""
    watched = [
        Watched(
            upstream_id=each.upstream_id,
            table=each.sensor_id,
            position=each.position or "",
            job_id=each.job_ids[0],
        )
        for each in state.upstreams
        if each.sensor_id not in resting
    ]
    return past_of(events, after=state.tick_number, upstreams=watched, tags=tags)


def tags_in(context: BenchContext) -> Mapping[str, str]:
    """Return the tags of a real event."""
    tags = context.store.read(Ledger.EVENTS)[0]["tags"]
    assert isinstance(tags, dict)
    return tags


def warm(folder: Path, events: int, warming: int) -> None:
    """Time a process that has no checkpoint, goes on, and stays."""
    context = context_in(folder)
    engine = Engine(context)
    paths = paths_of(folder)
    print_time(events, "fresh process without a state file", engine.tick)
    append(paths[0])
    print_time(events, "one changed, the first time", engine.tick)
    rest(engine)
    if warming:
        changes(engine, events, "one changed, while it warms up", [paths[:1]] * warming)
    else:
        until_compacted(engine, events, paths)
    idle = [timed(engine.tick)[0] for _ in range(IDLE_TICKS)]
    line(events, f"idle tick, warm (median of {IDLE_TICKS})", statistics.median(idle))
    changes(engine, events, "one changed, warm", [paths[:1]] * REPEATS)
    changes(
        engine, events, "one changed that had been idle", [[each] for each in paths[-IDLE_TABLES:]]
    )
    changes(engine, events, "all changed, warm", [paths] * REPEATS)
    new_job(engine, events, folder, paths)
    context.close()


def rest(engine: Engine) -> None:
    """Tick until there is nothing left to do."""
    while "decide" not in engine.tick().skipped:
        pass


def until_compacted(engine: Engine, events: int, paths: Sequence[Path]) -> None:
    """Tick over changes until the ledgers are compacted, which makes the process warm, too."""
    # As soon as where many rows come; where few come, it is after 300 ticks, half an hour of them.
    publish.COMPACT_ALWAYS_AFTER_TICKS = publish.COMPACT_AFTER_TICKS
    while True:
        append(paths[0])
        for _ in range(2):
            took, report = timed(engine.tick)
            assert isinstance(report, TickReport)
            if report.publication and report.publication.has_compacted:
                line(events, "a tick that compacts", took, steps_of(report))
                rest(engine)
                return


def changes(engine: Engine, events: int, what: str, in_turn: Sequence[Sequence[Path]]) -> None:
    """Time a change of some tables after the other, and print the tick in the middle."""
    reported = []
    for changed in in_turn:
        for path in changed:
            append(path)
        reported.append(timed(engine.tick))
        rest(engine)
    took, report = sorted(reported, key=lambda each: each[0])[len(reported) // 2]
    line(events, f"{what} (median of {len(reported)})", took, steps_of(report))


def new_job(engine: Engine, events: int, folder: Path, paths: Sequence[Path]) -> None:
    """Time the tick in which a job comes to a table with a past, all of which is new to it."""
    write_controls(folder / "project", delta_rows([*paths, paths[0]]))
    print_time(events, "a new job on an old table", engine.tick)
    rest(engine)


if __name__ == "__main__":
    main()

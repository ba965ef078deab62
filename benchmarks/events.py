"""Times queries of one day's data-change events, on a ledger of that day alone and on one of years.

What is queried lies in a few files, so that both should take as long: in Python, without a JVM,
and as the SQL of the macro on a warm session. Side by side: each size has a folder of its own.

    .venv/bin/python benchmarks/events.py --events 0 10000000
"""

import argparse
import contextlib
import io
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.parts.past import Watched, append_to, events_of, past_of  # noqa: E402
from benchmarks.upstreams import BenchContext, copy_project, line, timed  # noqa: E402
from harness.store.rows import Ledger  # noqa: E402
from harness.tick.housekeeping import compact_table, schema_folder  # noqa: E402
from harness.toolkit.changes.search import find, question_of  # noqa: E402

REPEATS = 5
TABLES = 100
#: Every tick of the past has 1,000 events of these tables, so a day has 10,000.
TICKS_OF_A_DAY = 10
EVENTS_OF_A_DAY = 10_000
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
TAGS = {"rows_written": "1204", "table_id": "a" * 36, "operation": "WRITE", "files_added": "1"}


def main() -> None:
    """Run every size, each in a process and a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[0, 10_000_000])
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        bench(options.inside, options.events[0])
        return
    print(f"{'events':>8}  {'what':<44}{'seconds':>9}  answer", flush=True)
    for events in options.events:
        folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
        try:
            command = [sys.executable, __file__, "--inside", str(folder), "--events", str(events)]
            subprocess.run(command, check=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def bench(folder: Path, events: int) -> None:
    """Time one size."""
    project = folder / "project"
    copy_project(project)
    (project / "heartbeat.yml").write_text("{}\n")
    os.chdir(project)
    os.environ["HEARTBEAT_HOME"] = str(folder / "home")
    context = BenchContext(project, folder / "home", 0)
    _ = context.session
    dbt("run", "--select", Ledger.EVENTS)
    ledger = schema_folder(context) / Ledger.EVENTS
    days = max(1, events // EVENTS_OF_A_DAY)
    append_to(ledger, past(days))
    day = days // 2
    line(
        events,
        "compacting",
        timed(lambda: compact_table(ledger, keep_hours=0))[0],
        files(ledger, day),
    )
    in_python(context, events, day)
    in_sql(context, events, day)
    context.close()


def past(days: int) -> Iterator[Mapping[str, object]]:
    """Return the events of so many days, of which a tick is a tenth."""
    watched = [
        Watched(
            upstream_id=f"delta_table:lake.t{n}:ab5c14a4", table=f"lake.t{n}", position="", job_id=n
        )
        for n in range(TABLES)
    ]
    whole = past_of(days * EVENTS_OF_A_DAY, after=-1, upstreams=watched, tags=TAGS)
    began = int(FIRST_DAY.timestamp() * 1000)
    for columns in events_of(whole):
        ticks = columns["tick_number"]
        at = began + ticks * (DAY_MS // TICKS_OF_A_DAY)  # type: ignore[operator]
        yield {**columns, "event_ts": at, "snapshot_ts": at - 1000}


def questions(day: int) -> Mapping[str, dict[str, object]]:
    """Return the arguments of each query, by its name."""
    start = FIRST_DAY + timedelta(days=day)
    within = {"start": start.isoformat(), "end": (start + timedelta(days=1)).isoformat()}
    return {
        "a day": within,
        "a day of one table": {**within, "table": "lake.t7"},
        "a day of one table, by snapshot": {**within, "table": "lake.t7", "by": "snapshot"},
    }


def in_python(context: BenchContext, events: int, day: int) -> None:
    """Time the queries in Python."""
    for name, wanted in questions(day).items():
        rest = {key: value for key, value in wanted.items() if key != "table"}
        question = question_of(wanted.get("table"), rest)  # type: ignore[arg-type]
        print_time(
            events, f"Python: {name}", lambda question=question: len(find(context.store, question))
        )


def in_sql(context: BenchContext, events: int, day: int) -> None:
    """Time the queries of the macro, rendered before."""
    for name, wanted in questions(day).items():
        arguments = ", ".join(f"{key}={value!r}" for key, value in wanted.items())
        compiled = dbt("compile", "--inline", f"{{{{ data_change_events_between({arguments}) }}}}")
        query = compiled.results[0].node.compiled_code  # type: ignore[attr-defined]
        print_time(
            events, f"SQL: {name}", lambda query=query: len(context.session.sql(query).collect())
        )


def print_time(events: int, what: str, asking: Callable[[], int]) -> None:
    """Query once, and then so often that the median is reliable."""
    asking()
    reported = sorted(timed(asking) for _ in range(REPEATS))  # type: ignore[type-var]
    answer = {count for _, count in reported}
    line(
        events,
        f"{what} (median of {REPEATS})",
        statistics.median(t for t, _ in reported),
        f"{answer}",
    )


def files(ledger: Path, day: int) -> str:
    """Return how many files the ledger has, and how many of them have anything of a day."""
    start = int(FIRST_DAY.timestamp() * 1000) + day * DAY_MS
    rows = pa.table(DeltaTable(ledger).get_add_actions(flatten=True)).to_pylist()
    touched = [
        row for row in rows if row["max.event_ts"] >= start and row["min.event_ts"] < start + DAY_MS
    ]
    return f"{len(rows)} files, {len(touched)} with the day"


def dbt(command: str, *arguments: str) -> object:
    """Run dbt in this process."""
    from dbt.cli.main import dbtRunner

    # What is compiled inline is printed, however quiet dbt is to be.
    with contextlib.redirect_stdout(io.StringIO()):
        result = dbtRunner().invoke(["--quiet", command, *arguments])
    assert result.success, result.exception
    return result.result


if __name__ == "__main__":
    main()

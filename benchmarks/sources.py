"""Times ticks over upstreams of every kind at once: tables, folders, topics, databases, chains.

One real Kafka broker and one real PostgreSQL, started for the run, hold a thousand upstreams of
each kind that needs a server. Beside it, in the same run, each kind's usual way: every upstream by
a query or a client of its own, on a sample. Figures are of this machine and this moment; the ratios
are what to compare.

    .venv/bin/python benchmarks/sources.py --each 1000
    .venv/bin/python benchmarks/sources.py --each 20      # to try it
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.parts.databases import ProcessChains  # noqa: E402
from benchmarks.parts.kinds import KINDS  # noqa: E402
from benchmarks.parts.place import Kind, Place, place_in  # noqa: E402
from benchmarks.parts.tables_and_folders import IcebergTables  # noqa: E402
from benchmarks.upstreams import (  # noqa: E402
    FIRST_JOB,
    BenchContext,
    copy_project,
    line,
    print_time,
    steps_of,
    timed,
    write_controls,
)
from harness.context import Context  # noqa: E402
from harness.platform.spark.session import start_session  # noqa: E402
from harness.tick.engine import Engine, TickOptions  # noqa: E402
from harness.tick.report import TickReport  # noqa: E402
from tests.support.services.kafka.broker import Broker  # noqa: E402
from tests.support.services.postgres import Postgres  # noqa: E402

JOBS = 100
#: Busy ticks until a resident process is warm.
WARMING = 6
IDLE_TICKS = 20
REPEATS = 3
SAMPLE = 20


def main() -> None:
    """Start the servers, make the upstreams, and tick over them in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=1000, help="upstreams of each kind")
    parser.add_argument("--iceberg", type=int, default=100, help="Iceberg tables beside them")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="upstreams sensed alone")
    parser.add_argument("--warming", type=int, default=WARMING, help="busy ticks before measuring")
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cold", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--lake", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    fewest = max(1, options.warming)
    if options.each < fewest or 0 < options.iceberg < fewest:
        parser.error(f"--each and --iceberg need {fewest} at least: each busy tick changes another")
    if options.lake:
        fill_lake(options.lake)
    elif options.warm:
        warm(options.warm, options.sample, options.warming)
    elif options.cold:
        cold(options.cold)
    else:
        bench(options)


def bench(options: argparse.Namespace) -> None:
    """Run all of it."""
    print(f"{'all':>7}  {'what':<44}{'seconds':>9}  steps", flush=True)
    with servers() as place_of:
        place = place_of(options.each, options.iceberg)
        kinds = kinds_of(place)
        line(total(kinds), "making the upstreams", timed(lambda: create(place, kinds))[0])
        parts = ["--warm", str(place.folder), "--sample", str(options.sample)]
        # The metastore admits one JVM: each part ends before the next one begins.
        if options.iceberg:
            run_part(["--lake", str(place.folder)])
        run_part([*parts, "--warming", str(options.warming)])
        run_part(["--cold", str(place.folder)])


def run_part(arguments: list[str]) -> None:
    """Run a part of this script in a process of its own."""
    began = time.perf_counter()
    subprocess.run([sys.executable, __file__, *arguments], check=True)
    if arguments[0] == "--cold":
        line(0, "  the same with the process's own start", time.perf_counter() - began)


@contextmanager
def servers():  # type: ignore[no-untyped-def]
    """Start a broker and a database, and end them whatever happens."""
    # A user who ends the run early ends the servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with ExitStack() as ends:
        folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
        ends.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "kafka").mkdir()
        broker = Broker(folder / "kafka")
        ends.callback(broker.kill)
        broker.create()
        database = Postgres()
        ends.callback(database.remove)
        database.start()
        yield lambda each, iceberg: Place(
            folder=folder,
            each=each,
            kafka=broker.address,
            database=database.url,
            iceberg=iceberg,
        )


def kinds_of(place: Place) -> list[Kind]:
    """Return every kind of upstream that there is one of."""
    return [kind for kind in (make(place) for make in KINDS.values()) if kind.count]


def total(kinds: Iterable[Kind]) -> int:
    """Count the upstreams."""
    return sum(kind.count for kind in kinds)


def create(place: Place, kinds: Iterable[Kind]) -> None:
    """Make the upstreams, and a project that watches all of them."""
    place.save()
    for kind in kinds:
        if not isinstance(kind, IcebergTables):
            kind.create()
    project = place.folder / "project"
    copy_project(project)
    (project / "heartbeat.yml").write_text(
        f"trigger_files: {{root: {place.folder / 'triggers'}}}\n"
        "jobs: {starts_per_tick: 10000}\n"
        "connections:\n"
        f"  kafka: {{shop: {{bootstrap_servers: ['{place.kafka}']}}}}\n"
        f"  jdbc: {{shop: {{url: '{place.database}'}}}}\n"
        f"  sap: {{sap_bw: {{url: '{place.database}', log_table: {ProcessChains.log_table}}}}}\n"
        f"  iceberg: {{lake: {{warehouse: '{IcebergTables(place).warehouse}'}}}}\n"
    )
    write_controls(project, rows_of(kinds))


def fill_lake(folder: Path) -> None:
    """Make the Iceberg tables, which takes a Spark with Iceberg's runtime."""
    tables = IcebergTables(place_in(folder))
    os.environ["HEARTBEAT_HOME"] = str(folder / "lake-home")
    start_session(folder / "project", folder / "lake-home")
    line(tables.count, "making the Iceberg tables", timed(tables.create)[0])


def rows_of(kinds: Iterable[Kind]) -> Iterator[list[object]]:
    """Return the rows of one CSV: a few jobs, started by new data of any of their upstreams."""
    for kind in kinds:
        for number in range(kind.count):
            job = FIRST_JOB + number % JOBS
            cells = [kind.source, kind.sensor_id(number), "batch", "", kind.key, "", job]
            yield [*cells, f"job {job}", "UNPAUSED", "FALSE"]


def warm(folder: Path, sample: int, warming: int) -> None:
    """Time a resident engine, and then the usual ways."""
    place = place_in(folder)
    kinds = kinds_of(place)
    count = total(kinds)
    os.chdir(folder / "project")
    context = BenchContext(folder / "project", folder / "home", JOBS)
    engine = Engine(context)
    print_time(count, "first tick: build, seed, first sight of all", lambda: sound(engine.tick()))
    print_time(count, "second tick: first sight of chains, settle", lambda: sound(engine.tick()))
    for number in range(warming):
        changed(engine, kinds, [number % place.each])
    rest(engine)
    idle_each = idle(context, engine, kinds)
    busy(engine, kinds, "one of each changed", [0])
    for kind in kinds:
        busy(engine, [kind], f"all of {kind.source} changed", range(kind.count), repeats=1)
    for kind in kinds:
        usual(context, kind, min(sample, kind.count), idle_each[kind.source])
    context.close()


def sound(report: TickReport) -> TickReport:
    """Return the report of a tick in which every probe succeeded."""
    if report.failures:
        raise SystemExit(f"{len(report.failures)} probes failed: {report.failures[0].failure}")
    return report


def rest(engine: Engine) -> None:
    """Tick until there is nothing left to do."""
    while "decide" not in sound(engine.tick()).skipped:
        pass


def idle(context: Context, engine: Engine, kinds: list[Kind]) -> dict[str, float]:
    """Time idle ticks over all, and over each source alone; return seconds per upstream."""
    reported = [timed(lambda: sound(engine.tick())) for _ in range(IDLE_TICKS)]
    took, report = sorted(reported, key=lambda each: each[0])[IDLE_TICKS // 2]
    line(total(kinds), f"idle tick, warm (median of {IDLE_TICKS})", took, steps_of(report))
    each = {}
    for kind in kinds:
        options = TickOptions(sources=frozenset({kind.source}))
        seconds = [timed(lambda o=options: sound(engine.tick(o)))[0] for _ in range(IDLE_TICKS)]
        alone = statistics.median(seconds)
        line(kind.count, f"  {kind.source} alone (median of {IDLE_TICKS})", alone)
        each[kind.source] = alone / kind.count
    if "session" in vars(context):
        print(f"{total(kinds):>7}  Spark was asked in these idle ticks", flush=True)
    return each


def changed(
    engine: Engine, kinds: Iterable[Kind], numbers: Iterable[int]
) -> tuple[float, TickReport]:
    """Let new data arrive at some upstreams of some kinds; return the tick that reported it."""
    numbers = list(numbers)
    kinds = list(kinds)
    # What is reported at the second probe only comes a tick before the others.
    for probes in sorted({kind.probes_until_reported for kind in kinds}, reverse=True):
        for kind in kinds:
            if kind.probes_until_reported == probes:
                kind.change(numbers)
        if probes > 1:
            sound(engine.tick())
    took, report = timed(lambda: sound(engine.tick()))
    assert isinstance(report, TickReport)
    expected = len(kinds) * len(numbers)
    if report.event_count != expected:
        raise SystemExit(f"{report.event_count} events were reported, and {expected} had come")
    return took, report


def busy(
    engine: Engine, kinds: list[Kind], what: str, numbers: Iterable[int], repeats: int = REPEATS
) -> None:
    """Time changes, and print the tick in the middle."""
    numbers = list(numbers)
    reported = []
    for _ in range(repeats):
        reported.append(changed(engine, kinds, numbers))
        rest(engine)
    took, report = sorted(reported, key=lambda each: each[0])[repeats // 2]
    many = f" (median of {repeats})" if repeats > 1 else ""
    line(len(kinds) * len(numbers), f"{what}{many}", took, steps_of(report))


def usual(context: Context, kind: Kind, sample: int, our_each: float) -> None:
    """Time the usual way on some of the upstreams, one after another."""
    ways = [kind.alone(context.session, number) for number in range(sample)]
    for way in ways:
        way()
    each = statistics.median([timed(way)[0] for way in ways])
    line(sample, f"{kind.source}: {kind.usual}, each", each)
    line(kind.count, "  our idle look, each", our_each)
    line(kind.count, "  ratio", each / our_each)


def cold(folder: Path) -> None:
    """Time an idle tick in this fresh process, which starts no JVM."""
    count = total(kinds_of(place_in(folder)))
    os.chdir(folder / "project")
    context = BenchContext(folder / "project", folder / "home", JOBS)
    print_time(count, "idle tick, fresh process, no JVM", lambda: sound(Engine(context).tick()))
    if "session" in vars(context):
        raise SystemExit("an idle tick has started Spark")
    os._exit(0)


if __name__ == "__main__":
    main()

"""Times ticks over N local Delta upstreams: nothing new, one changed, all changed; warm and cold.

Beside it, in the same run and the same Spark session, the usual way to sense: one ``availableNow``
streaming query per table with a checkpoint of its own. Figures are of this machine and this moment;
the ratios are what to compare.

    .venv/bin/python benchmarks/upstreams.py --tables 10 100 1000
"""

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import write_deltalake

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from harness.__main__ import collect_seldom  # noqa: E402
from harness.config.load import load_settings  # noqa: E402
from harness.context import Context  # noqa: E402
from harness.controls.header import COLUMNS  # noqa: E402
from harness.platform.databricks.api import Outcome  # noqa: E402
from harness.tick.engine import Engine  # noqa: E402
from harness.tick.report import TickReport  # noqa: E402
from tests.support.fake_jobs import FakeJobs  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTS = ("dbt_project.yml", "profiles.yml", "selectors.yml", "log4j2.properties", "macros")
FIRST_JOB = 2**53 + 1
STREAMED_TABLES = 10
#: Busy ticks until a resident process is warm; its JVM compiles what it runs often.
WARMING = 20


class BenchContext(Context):
    """A context whose jobs end at once, so that only our own work is timed."""

    def __init__(self, project: Path, home: Path, tables: int) -> None:
        environment = {**os.environ, "HEARTBEAT_HOME": str(home)}
        super().__init__(load_settings(project, environment), environment)
        jobs = FakeJobs(clock=self.clock)
        for number in range(tables):
            jobs.add_job(FIRST_JOB + number, ends_as=Outcome.SUCCEEDED)
        self.__dict__["jobs"] = jobs
        # As `run` does.
        self.is_resident = True
        collect_seldom()

    def forget_jobs(self) -> None:
        """Do nothing: the fake has every job from the start."""


def main() -> None:
    """Run every size, each in a process and a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--warm", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.warm:
        os.chdir(options.warm / "project")
        warm(options.warm / "project", options.warm / "home", paths_of(options.warm))
        return
    print(f"{'tables':>7}  {'what':<44}{'seconds':>9}  steps")
    for tables in options.tables:
        bench(tables)


def paths_of(folder: Path) -> list[Path]:
    """Return the tables of one size."""
    return sorted((folder / "lake").iterdir())


def bench(tables: int) -> None:
    """Time one size."""
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
    try:
        project, home = folder / "project", folder / "home"
        paths = [folder / "lake" / f"t{number:05d}" for number in range(tables)]
        for path in paths:
            append(path)
        lay_out(project, paths)
        # The metastore admits one JVM: the warm part must have ended when the cold part begins.
        subprocess.run([sys.executable, __file__, "--warm", str(folder)], check=True)
        cold(project, home, tables)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def warm(project: Path, home: Path, paths: list[Path]) -> None:
    """Time a resident engine."""
    tables = len(paths)
    context = BenchContext(project, home, tables)
    engine = Engine(context)
    print_time(tables, "first tick: build, seed, first sight of all", engine.tick)
    append(paths[0])
    print_time(tables, "one changed, the first time", engine.tick)
    for _ in range(WARMING):
        append(paths[0])
        engine.tick()
    idle = [timed(engine.tick)[0] for _ in range(20)]
    line(tables, "idle tick, warm (median of 20)", statistics.median(idle))
    report_of(tables, "one changed, warm", engine, paths[:1])
    report_of(tables, "all changed, warm", engine, paths)
    streamed(context, paths, statistics.median(idle) / tables)
    context.close()


def report_of(tables: int, what: str, engine: Engine, changed: list[Path]) -> None:
    """Time a change of some tables three times, and print the tick in the middle."""
    reported = []
    for _ in range(3):
        for path in changed:
            append(path)
        reported.append(timed(engine.tick))
        engine.tick()
    took, report = sorted(reported, key=lambda each: each[0])[1]
    line(tables, f"{what} (median of 3)", took, steps_of(report))


def streamed(context: Context, paths: list[Path], idle_each: float) -> None:
    """Time the usual way on some of the tables, one after another."""
    some = paths[:STREAMED_TABLES]
    checkpoints = Path(tempfile.mkdtemp(prefix="heartbeat-checkpoints-"))

    def sense(path: Path) -> None:
        stream = context.session.readStream.format("delta").load(str(path))
        available_now(stream, checkpoints / path.name)

    for path in some:
        sense(path)
    each = statistics.median([timed(lambda path=path: sense(path))[0] for path in some])
    line(len(paths), "availableNow query, idle, each (median)", each)
    line(len(paths), "our idle tick, each table", idle_each)
    line(len(paths), "ratio", each / idle_each)
    shutil.rmtree(checkpoints, ignore_errors=True)


def available_now(stream: "DataFrame", checkpoint: Path) -> None:
    """Read what is new in a stream since its checkpoint, and end."""
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def cold(project: Path, home: Path, tables: int, shown_as: int | None = None) -> None:
    """Time fresh processes: an idle tick, and the start of an engine, the metastore and dbt."""
    own = {"HEARTBEAT_HOME": str(home), "PYTHONPATH": str(PROJECT)}
    environment = {**os.environ, **own}
    ticking = (
        "from benchmarks.upstreams import BenchContext, Path; "
        "from harness.tick.engine import Engine; "
        f"Engine(BenchContext(Path({str(project)!r}), Path({str(home)!r}), {tables})).tick()"
    )
    starting = (
        "from pathlib import Path; from harness.platform.spark.session import start_session; "
        f"session = start_session(Path({str(project)!r}), Path({str(home / 'apart')!r})); "
        "session.sql('show databases').collect(); "
        "from dbt.cli.main import dbtRunner; dbtRunner().invoke(['--quiet', 'parse'])"
    )
    for name, code in (("idle tick, cold process", ticking), ("engine, metastore, dbt", starting)):
        command = [sys.executable, "-c", f"{code}; import os; os._exit(0)"]
        took = timed(
            lambda command=command: subprocess.run(
                command, check=True, env=environment, cwd=project
            )
        )
        line(tables if shown_as is None else shown_as, name, took[0])


def append(path: Path) -> None:
    """Commit a data change."""
    write_deltalake(path, pa.table({"day": [1, 2], "place": ["a", "b"]}), mode="append")


def lay_out(project: Path, paths: list[Path]) -> None:
    """Copy the project, with controls of one job per table."""
    copy_project(project)
    (project / "heartbeat.yml").write_text("jobs:\n  starts_per_tick: 10000\n")
    write_controls(project, delta_rows(paths))


def delta_rows(paths: Iterable[Path]) -> Iterator[list[object]]:
    """Return control rows, each of a job of its own."""
    for number, path in enumerate(paths):
        job = FIRST_JOB + number
        cells = ["delta_table", path, "streaming", "", "", "", job, f"job {job}", "UNPAUSED"]
        yield [*cells, "TRUE"]


def copy_project(project: Path) -> None:
    """Copy what a tick reads of the project."""
    project.mkdir(parents=True)
    for part in (*PARTS, "models", "seeds", "tests/dbt"):
        source = PROJECT / part
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, project / part)


def write_controls(project: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write the controls CSV."""
    with (project / "seeds" / "heartbeat_controls.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def write_triggers(project: Path, rows: Iterable[Mapping[str, str]]) -> None:
    """Write event triggers; columns that a row does not name are empty."""
    path = project / "seeds" / "event_triggers.csv"
    with path.open(newline="") as file:
        names = next(csv.reader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Return how long it took, and what came of it."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def print_time(tables: int, what: str, tick: Callable[[], TickReport]) -> None:
    """Time a tick and print its steps."""
    took, report = timed(tick)
    line(tables, what, took, steps_of(report))


def steps_of(report: object) -> str:
    """Return how long each step took."""
    assert isinstance(report, TickReport)
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds.items())


def memory_of(process: int) -> tuple[float, float]:
    """Return the resident memory of a process, now and at most, in MiB."""
    rows = Path(f"/proc/{process}/status").read_text().splitlines()
    kibibytes = {name: text for name, _, text in (row.partition(":") for row in rows)}
    now, most = (int(kibibytes[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def line(tables: int, what: str, seconds: float, steps: str = "") -> None:
    """Print one row of the table."""
    print(f"{tables:>7}  {what:<44}{seconds:>9.4f}  {steps}", flush=True)


if __name__ == "__main__":
    main()

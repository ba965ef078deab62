"""Tells the next tick something, without a JVM and while one runs: what ended, what to try."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness.commands.surroundings import (
    AS_JSON,
    interruptible,
    job_named,
    leave,
    print_json,
    reading,
    real_clock,
    settings_of_project,
)
from harness.errors import ConfigurationError, ExitCode

if TYPE_CHECKING:
    from harness.context import Context

JOB_ID = typer.Option("--job", envvar="HEARTBEAT_JOB_ID", help="The job that has succeeded.")
RUN_ID = typer.Option("--run", envvar="HEARTBEAT_RUN_ID", help="The run, if it is known.")
INTENT_ID = typer.Option(
    "--intent", envvar="HEARTBEAT_INTENT_ID", help="The intent that the run was started for."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(complete)
    app.command()(retry)
    app.command("try-again")(try_again)


def complete(
    job: Annotated[int, JOB_ID],
    run: Annotated[int | None, RUN_ID] = None,
    intent: Annotated[str | None, INTENT_ID] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Say that a job's run has succeeded; meant as the last task of the job.

    The next tick counts it. A run that is polled as well ends once.

    Examples:
        python -m harness complete --job 111111111 --run 987654321

        python -m harness complete        (in a job: ids come from its environment)
    """
    from harness.context import Home
    from harness.inbox import Message, MessageKind, send

    with interruptible("stopped"):
        home = Home(folder=settings_of_project().home)
        message = Message(
            kind=MessageKind.COMPLETE,
            job_id=job,
            run_id=run,
            intent_id=intent or None,
            sent_at=real_clock().now(),
        )
        path = send(home.inbox, message)
    if as_json:
        print_json({"job": str(job), "message": path.name})
    else:
        of = f" of run {run}" if run else ""
        typer.echo(f"success{of} of job {job} noted; the next tick counts it")


def retry(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Id or name of the job.")],
    now: Annotated[bool, typer.Option("--now", help="Tick at once.")] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Run a failed job again, with the same events.

    Refused unless the job's last run failed and holds it.

    Examples:
        python -m harness retry daily-revenue

        python -m harness retry 111111111 --now
    """
    from harness.inbox import Message, MessageKind, send

    with reading() as context:
        job_id, name = _held_job(context, job)
        sent_at = context.clock.now()
        send(context.home.inbox, Message(kind=MessageKind.RETRY, job_id=job_id, sent_at=sent_at))
        is_held = _is_somebody_ticking(context)
    if as_json:
        print_json({"job": str(job_id), "job_name": name})
    else:
        way = (
            "" if is_held or now else "; nobody ticks just now: `python -m harness tick`, or --now"
        )
        typer.echo(f"{name} ({job_id}) runs again with the next tick{way}")
    if now:
        _tick_now(is_held=is_held, is_quiet=as_json)


def try_again(as_json: Annotated[bool, AS_JSON] = False) -> None:
    """Let the next tick look at all that keeps failing, whenever its next try would be.

    Once a system can be reached again, nobody has to wait for the try that `status` tells.

    Examples:
        python -m harness try-again

        python -m harness try-again && python -m harness tick
    """
    from harness.context import Home
    from harness.sense.backoff import end_back_off
    from harness.show.words import count

    with interruptible("stopped"):
        failing = end_back_off(Home(folder=settings_of_project().home).back_off).failing
    if as_json:
        print_json({"upstreams": sorted(failing)})
    elif failing:
        typer.echo(f"the next tick looks at {count(len(failing), 'upstream')} that kept failing")
    else:
        typer.echo("nothing keeps failing: the next tick looks at everything")


def _held_job(context: "Context", wanted: str) -> tuple[int, str]:
    from harness.facts import newest_run_of, recorded_jobs, require_state
    from harness.tables import HOLDING

    require_state(context)
    names = recorded_jobs(context.store)
    job_id = job_named(wanted, names)
    run = newest_run_of(context.store, job_id)
    if run is None:
        raise ConfigurationError(f"{names[job_id]} ({job_id}) was never started: nothing to retry")
    if run.run_status not in HOLDING:
        said = run.run_status.value
        raise ConfigurationError(
            f"{names[job_id]} ({job_id}) is not held: its last run is {said}, nothing to retry"
        )
    return job_id, names[job_id]


def _is_somebody_ticking(context: "Context") -> bool:
    from harness.facts import holder_of

    return holder_of(context.home.folder) is not None


def _tick_now(*, is_held: bool, is_quiet: bool) -> None:
    from harness.commands.ticking import tick

    if is_held:
        leave(ExitCode.DONE)
        return
    tick(quiet=is_quiet)

"""Sends messages to the next tick, without a JVM: completions, retries, releases."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    JOB,
    job_named,
    leave,
    print_json,
    print_line,
    reading,
)
from harness.errors import ConfigurationError, ExitCode

if TYPE_CHECKING:
    from harness.context import Context
    from harness.store.inbox import Message, MessageKind
    from harness.store.rows import Run

JOB_ID = typer.Option(
    "--job",
    envvar="HEARTBEAT_JOB_ID",
    min=1,
    max=2**63 - 1,
    help="The job that has succeeded.",
)
RUN_ID = typer.Option(
    "--run", envvar="HEARTBEAT_RUN_ID", min=1, max=2**63 - 1, help="The run, if it is known."
)
INTENT_ID = typer.Option(
    "--intent", envvar="HEARTBEAT_INTENT_ID", help="The intent that the run was started for."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(complete)
    app.command()(retry)
    app.command()(release)
    app.command("try-again")(try_again)


def complete(
    job: Annotated[int, JOB_ID],
    run: Annotated[int | None, RUN_ID] = None,
    intent: Annotated[str | None, INTENT_ID] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Report that a run has succeeded, as the last task of its job.

    A run counts once the Jobs API has reported its end. One that was started by hand has processed
    the waiting events of an upstream if all of them came before it began. A job on hold is released
    by the next tick. Refused for a job that the controls never had.

    Examples:
        python -m harness complete --job 111111111 --run 987654321

        python -m harness complete    # in a job: ids come from its environment
    """
    from harness.store.inbox import Message, MessageKind, naming_attempt
    from harness.store.queries import newest_run_of, recorded_jobs
    from harness.tick.install import require_state

    with reading() as context:
        require_state(context)
        names = recorded_jobs(context.store)
        name = names[job_named(str(job), names)]
        message = Message(
            kind=MessageKind.COMPLETE,
            job_id=job,
            run_id=run,
            intent_id=intent or None,
            job_name=name,
            sent_at=context.clock.now(),
        )
        seen = newest_run_of(context.store, job)
        if run is None and not intent:
            if seen is None or not (seen.is_open or seen.holds_job):
                raise ConfigurationError(
                    f"{name} ({job}) is neither running nor held: nothing to complete; name a run "
                    "that was started elsewhere with --run"
                )
            message = naming_attempt(message, seen)
        name_of_message = context.inbox.send(message)
    if as_json:
        print_json({"job": str(job), "message": name_of_message})
    else:
        of = f" of run {run}" if run else ""
        print_line(f"success{of} of {name} ({job}) noted; {_effect(seen, message)}")


def _effect(seen: "Run | None", message: "Message") -> str:
    """Return what the next tick does with a report of success."""
    if seen is not None and seen.holds_job:
        if message.attempt is not None:
            return "the next tick lets the job go"
        return "the job is let go once the Jobs API reports the success of that run"
    if seen is None or not seen.is_open:
        if message.intent_id is not None:
            return (
                "it changes nothing: the job is not held, and what waits for it starts it as usual"
            )
        return (
            "once the Jobs API reports the success of that run, the waiting events of an upstream "
            "count as processed if all of them came before the run began"
        )
    if seen.run_id is None and message.attempt is not None:
        return "the next tick counts the start that has had no answer as done"
    return "it counts once the Jobs API reports the end of the run"


def retry(
    job: Annotated[str, JOB],
    now: Annotated[bool, typer.Option("--now", help="Tick at once.")] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Run a failed job again, with the same and newer events.

    Refused unless the job's last run failed and holds it.

    Examples:
        python -m harness retry daily-revenue

        python -m harness retry 111111111 --now
    """
    from harness.store.inbox import MessageKind

    with reading() as context:
        run, name = _held_run(context, job, "retry")
        _send_about(context, run, MessageKind.RETRY)
        is_held = context.holder() is not None
    if as_json:
        print_json({"job": str(run.job_id), "job_name": name})
    else:
        way = "" if now else _way_to_a_tick(is_held=is_held)
        print_line(f"{name} ({run.job_id}) runs again with the next tick{way}")
    if now:
        _tick_now(is_held=is_held, is_quiet=as_json)


def release(
    job: Annotated[str, JOB],
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="The reason; it is recorded permanently."),
    ] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Discard the events of a failed run, and release its job.

    They count as consumed, and what has come since starts the next run. Refused unless the job's
    last run failed and holds it.

    Examples:
        python -m harness release daily-revenue --reason "loaded by hand on Monday"

        python -m harness release 111111111
    """
    from harness.platform.format import count
    from harness.store.inbox import MessageKind

    with reading() as context:
        run, name = _held_run(context, job, "release")
        _send_about(context, run, MessageKind.RELEASE, reason)
        is_held = context.holder() is not None
    if as_json:
        print_json(
            {"job": str(run.job_id), "job_name": name, "events": run.event_count, "reason": reason}
        )
    else:
        discarded = count(run.event_count, "event")
        way = _way_to_a_tick(is_held=is_held, may_tick_now=False)
        print_line(
            f"{name} ({run.job_id}) goes on with the next tick, without the {discarded} of its "
            f"last run{way}"
        )


def try_again(as_json: Annotated[bool, AS_JSON] = False) -> None:
    """Let the next tick probe all failing upstreams.

    Their backoff ends. Use it once a system can be reached again: `status` shows when each would be
    retried.

    Examples:
        python -m harness try-again

        python -m harness try-again && python -m harness tick
    """
    from harness.platform.format import count
    from harness.sense.backoff import end_back_off

    with reading() as context:
        failing = end_back_off(context.home.back_off).failing
        if context.files is not None:
            context.files.save(context.home)
    if as_json:
        print_json({"upstreams": sorted(failing)})
    elif failing:
        print_line(f"the next tick probes {count(len(failing), 'upstream')} that kept failing")
    else:
        print_line("nothing keeps failing: the next tick probes everything")


def _held_run(context: "Context", wanted: str, command: str) -> "tuple[Run, str]":
    from harness.store.queries import newest_run_of, recorded_jobs
    from harness.store.rows import HOLDING
    from harness.tick.install import require_state

    require_state(context)
    names = recorded_jobs(context.store)
    job_id = job_named(wanted, names)
    run = newest_run_of(context.store, job_id)
    if run is None:
        raise ConfigurationError(
            f"{names[job_id]} ({job_id}) was never started: nothing to {command}"
        )
    if run.run_status not in HOLDING:
        ended = run.run_status.value
        raise ConfigurationError(
            f"{names[job_id]} ({job_id}) is not held: its last run is {ended}, nothing to {command}"
        )
    return run, names[job_id]


def _send_about(
    context: "Context", run: "Run", kind: "MessageKind", reason: str | None = None
) -> None:
    """Leave a message that is about this attempt, and about no later one."""
    from harness.store.inbox import Message, naming_attempt

    message = Message(
        kind=kind,
        job_id=run.job_id,
        sent_at=context.clock.now(),
        sent_by=_person(),
        reason=reason,
    )
    message = naming_attempt(message, run)
    context.inbox.send(message)


def _person() -> str:
    """Name who is at the keyboard; a container may have no name for its user."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"user {os.getuid()}"


def _way_to_a_tick(*, is_held: bool, may_tick_now: bool = True) -> str:
    if is_held:
        return ""
    return "; no tick is running: `python -m harness tick`" + (", or --now" * may_tick_now)


def _tick_now(*, is_held: bool, is_quiet: bool) -> None:
    from harness.cli.tick import tick

    if is_held:
        leave(ExitCode.DONE)
        return
    tick(quiet=is_quiet)

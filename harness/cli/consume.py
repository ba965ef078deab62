"""Commands of pull consumers: ``sense`` as the first task, ``processed`` as the last."""

from contextlib import suppress
from typing import Annotated

import typer

from harness.cli.common import AS_JSON, job_names, leave, print_json, print_line, reading
from harness.errors import ExitCode

SENSOR = typer.Argument(
    metavar="SENSOR", help="Id of the sensor in `sensors`, or of its upstream in the controls."
)
JOB = typer.Option(
    "--job",
    metavar="JOB",
    envvar="HEARTBEAT_JOB_ID",
    autocompletion=job_names,
    help="Id or name of the job, if the sensor's id does not name it.",
)
RUN = typer.Option(
    "--run",
    envvar="HEARTBEAT_RUN_ID",
    min=1,
    max=2**63 - 1,
    help="The job's own run; needed only if two of them may go on at once.",
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(sense)
    app.command()(processed)


def sense(
    sensor: Annotated[str, SENSOR],
    job: Annotated[str | None, JOB] = None,
    run: Annotated[int | None, RUN] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Run a tick first, unless one is already running.")
    ] = False,
) -> None:
    """Print the events that a job has not processed, as JSON.

    Ends with 4 when there are none. Meant as the first task of a job that runs on its own schedule
    and is named in seeds/scheduled_jobs.csv. It answers from what the last tick found, without
    Spark and while one runs. Until `processed` is called, the same events come again.

    Examples:
        python -m harness sense sales_orders_111111111

        python -m harness sense sales.orders --job daily-revenue --now > events.json
    """
    from harness.platform.format import instant
    from harness.store.queries import last_decision
    from harness.toolkit.notebook import acquire_in

    if now:
        _tick(sensor, job)
    with reading() as context:
        events = acquire_in(context, sensor, job=job, run=run)
        seen = None if events else context.last_tick_at(last_decision(context.home.status))
    if events:
        print_json(events)
        return
    print_line(f"nothing new at {sensor}, as the last tick saw it: {instant(seen)}", err=True)
    leave(ExitCode.NOTHING_NEW)


def processed(
    sensor: Annotated[str, SENSOR],
    job: Annotated[str | None, JOB] = None,
    run: Annotated[int | None, RUN] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Report that a job has processed the events of `sense`.

    Meant as its last task. The next tick counts it, and `sensors` shows PROCESSED_NEW_DATA. Called
    again, it changes nothing.

    Examples:
        python -m harness processed sales_orders_111111111

        python -m harness processed sales.orders --job daily-revenue
    """
    from harness.toolkit.notebook import process_in

    with reading() as context:
        is_noted = process_in(context, sensor, job=job, run=run)
    if as_json:
        print_json({"sensor": sensor, "noted": is_noted})
    elif is_noted:
        print_line(f"{sensor} noted as processed; the next tick counts it")
    else:
        print_line(f"nothing of {sensor} was waiting to be processed")


def _tick(sensor: str, job: str | None) -> None:
    """Probe the job's upstreams, unless a running tick does so anyway."""
    from harness.cli.tick import tick
    from harness.errors import LockedError
    from harness.store.queries import find_sensor

    with reading() as context:
        found = find_sensor(context.store, sensor, job)
        is_held = context.holder() is not None
    if is_held:
        return
    # What failed is recorded, and may be another job's; who took the lock meanwhile ticks as well.
    with suppress(typer.Exit, LockedError):
        tick(job=[str(found.job_id)], quiet=True)

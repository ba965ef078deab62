"""What a notebook imports from ``harness``: as the commands ``sense`` and ``processed``."""

import os
from contextlib import closing

from harness.config.load import load_settings
from harness.config.project import project_folder
from harness.context import Context
from harness.store.queries import LastDecision, find_sensor, folded_through, last_decision
from harness.tick.install import require_state
from harness.toolkit import consume as consuming
from harness.toolkit.consume import Caller, Place

#: The blocker of a job that starts itself, as the model ``int_rule_blockers`` names it.
PULL_CONSUMER = "on_own_schedule"


def acquired(
    sensor: str, *, job: str | int | None = None, run: int | None = None
) -> list[dict[str, object]]:
    """Return the data-change events that the job has not processed; none when nothing is new.

    Args:
        sensor: Its id in ``sensors``, or the upstream's id in the controls.
        job: Id or name of the job, if the sensor's id does not name it.
        run: The job's own run, if two may go on at once.

    Raises:
        ConfigurationError: There is no such sensor, more than one, or Heartbeat starts the job.
        ProbeFailedError: The upstream cannot be read, so it is unknown whether there is new data.
        StateError: The state directory cannot be used.
    """
    with closing(_context()) as context:
        return acquire_in(context, sensor, job=job, run=run)


def processed(sensor: str, *, job: str | int | None = None, run: int | None = None) -> bool:
    """Record that the job has processed what was passed to it; return whether there was anything.

    Args:
        sensor: Its id in ``sensors``, or the upstream's id in the controls.
        job: Id or name of the job, if the sensor's id does not name it.
        run: The job's own run, the same as for ``acquired``.

    Raises:
        ConfigurationError: There is no such sensor, more than one, or the run received no events.
        StateError: The state directory cannot be used.
    """
    with closing(_context()) as context:
        return process_in(context, sensor, job=job, run=run)


def _context() -> Context:
    return Context(load_settings(project_folder(os.environ), os.environ), os.environ)


def acquire_in(
    context: Context, sensor: str, *, job: str | int | None = None, run: int | None = None
) -> list[dict[str, object]]:
    """Do what ``acquired`` does, with the services of a process."""
    place = place_of(context)
    found = find_sensor(context.store, sensor, _text(job))
    return consuming.acquire(place, found, Caller(at=context.clock.now(), run_id=run))


def process_in(
    context: Context, sensor: str, *, job: str | int | None = None, run: int | None = None
) -> bool:
    """Do what ``processed`` does, with the services of a process."""
    place = place_of(context)
    found = find_sensor(context.store, sensor, _text(job))
    return consuming.processed(place, found, Caller(at=context.clock.now(), run_id=run))


def place_of(context: Context) -> Place:
    """Return where an answer is looked up.

    Raises:
        StateError: The folder is not set up, or belongs to a newer version.
    """
    require_state(context)
    decision = last_decision(context.home.status)
    return Place(
        store=context.store,
        inbox=context.inbox,
        folded_through=folded_through(context.store, decision),
        left_alone=_left_alone(decision),
    )


def _left_alone(decision: LastDecision | None) -> frozenset[int]:
    return frozenset(
        job.job_id
        for job in (decision.jobs if decision else ())
        if any(each.blocker == PULL_CONSUMER for each in job.blockers)
    )


def _text(job: str | int | None) -> str | None:
    return None if job is None or job == "" else str(job)

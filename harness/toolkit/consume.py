"""Passes a job the events that it has not processed yet, and records when it has.

Meant for pull consumers: their first task fetches events, their last one reports completion. It
reads the tables and leaves messages in the inbox; it takes no lock, starts no JVM on the local
target, and decides nothing: which events a job has consumed is read from its runs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.errors import ConfigurationError, ProbeFailedError
from harness.events.payload import as_payload, events_of
from harness.platform.clock import instant_from
from harness.platform.format import instant
from harness.settle.pull_consumers import consumed_of, done_through, last_step
from harness.store.inbox import Inbox, Message, MessageKind, naming_attempt
from harness.store.queries import SCHEDULED_JOBS, Sensor, newest_probe, newest_runs
from harness.store.rows import (
    HOLDING,
    OPEN,
    REQUEUING,
    Consumed,
    Ledger,
    Run,
    RunStatus,
    Store,
    integer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an answer is looked up."""

    store: Store
    inbox: Inbox
    #: Ledger rows up to this tick are in the current-state tables.
    folded_through: int
    #: The jobs that the last decision left alone as pull consumers.
    left_alone: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls, and when."""

    at: datetime
    #: The job's own run, where it is known: what was passed to one run, another has not processed.
    run_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """How far a job has come with an upstream, messages that no tick has applied included."""

    done_through: int
    #: Passed to the job and not processed yet.
    acquired_through: int | None


def acquire(place: Place, sensor: Sensor, caller: Caller) -> list[dict[str, object]]:
    """Return the events that the job has not processed, and record that they were passed to it.

    Called again before they are processed, it returns the same events, and newer ones with them.

    Raises:
        ConfigurationError: The job is one that Heartbeat starts, and no run of it goes on.
        ProbeFailedError: The upstream cannot be read, so it is unknown whether there is new data.
        StateError: A table cannot be read, or the message cannot be left.
    """
    # The inbox first: what a tick applies meanwhile is then seen twice, and never missed.
    messages = _messages(place.inbox, sensor)
    run = _run_of_heartbeat(place, sensor)
    if run is not None:
        return _in_its_hands(place.store, run, sensor)
    if not _is_pull_consumer(place, sensor.job_id):
        raise ConfigurationError(_not_scheduled(sensor))
    if sensor.is_paused:
        return []
    progress = _progress(place, sensor, messages)
    latest = _latest_event_tick(place, sensor, progress.done_through)
    if latest is None:
        return []
    consumed = Consumed(
        upstream_id=sensor.upstream_id, from_tick=progress.done_through, through_tick=latest
    )
    events = as_payload(events_of(consumed, place.store))
    if progress.acquired_through != latest or caller.run_id is not None:
        place.inbox.send(_message(sensor, caller, MessageKind.ACQUIRED, consumed))
    return events


def processed(place: Place, sensor: Sensor, caller: Caller) -> bool:
    """Record that the job has processed what was passed to it; return whether there was anything.

    Raises:
        ConfigurationError: This run of the job received no events.
        StateError: A table cannot be read, or the message cannot be left.
    """
    messages = _messages(place.inbox, sensor)
    run = _run_of_heartbeat(place, sensor)
    if run is not None:
        complete = Message(
            kind=MessageKind.COMPLETE,
            job_id=sensor.job_id,
            run_id=caller.run_id,
            sent_at=caller.at,
        )
        if caller.run_id is None:
            complete = naming_attempt(complete, run)
        place.inbox.send(complete)
        return True
    progress = _progress(place, sensor, messages)
    through = progress.acquired_through
    if caller.run_id is not None:
        payload = _events_passed_to(caller.run_id, place, sensor, messages)
        if not payload and through is not None:
            raise ConfigurationError(_no_events_passed(caller.run_id, sensor))
        through = max(payload, default=None)
    if through is None or through <= progress.done_through:
        return False
    consumed = Consumed(
        upstream_id=sensor.upstream_id, from_tick=progress.done_through, through_tick=through
    )
    place.inbox.send(_message(sensor, caller, MessageKind.PROCESSED, consumed))
    return True


def _messages(inbox: Inbox, sensor: Sensor) -> list[Message]:
    return [
        message
        for message in inbox.peek()
        if message.job_id == sensor.job_id
        and message.taken is not None
        and message.taken.upstream_id == sensor.upstream_id
    ]


def _is_pull_consumer(place: Place, job_id: int) -> bool:
    # While a tick loads an edited seed, its table is empty for a moment.
    if job_id in place.left_alone:
        return True
    return bool(place.store.read(SCHEDULED_JOBS, where=[("job_id", "=", job_id)]))


def _not_scheduled(sensor: Sensor) -> str:
    return (
        f"{sensor.job_name} ({sensor.job_id}) is started by Heartbeat, and no run of it is active: "
        "if it is to run on its own schedule, put its id into seeds/scheduled_jobs.csv, and tick"
    )


def _run_of_heartbeat(place: Place, sensor: Sensor) -> Run | None:
    """Return the job's run that Heartbeat started and that goes on, or holds the job."""
    wanted = sorted(status.value for status in (OPEN | HOLDING) - REQUEUING)
    own_job = ("job_id", "=", sensor.job_id)
    state = place.store.read("run_state", where=[own_job, ("run_status", "in", wanted)])
    runs = newest_runs([*state, *_tail(place, sensor.job_id)])
    followed = [run for run in runs if run.run_status.value in wanted]
    return followed[-1] if followed else None


def _in_its_hands(store: Store, run: Run, sensor: Sensor) -> list[dict[str, object]]:
    consumed = run.consumed_of(sensor.upstream_id)
    return as_payload(events_of(consumed, store)) if consumed else []


def _tail(place: Place, job_id: int) -> list[dict[str, object]]:
    where = [("job_id", "=", job_id), ("tick_number", ">", place.folded_through)]
    return place.store.read(Ledger.RUNS, where=where)


def _progress(place: Place, sensor: Sensor, messages: Sequence[Message]) -> _Progress:
    """Combine what the ledgers record and what waits in the inbox; neither ever goes back."""
    last = last_step(place.store, sensor.job_id, sensor.upstream_id, place.folded_through)
    done = max([done_through(last), *_through(messages, MessageKind.PROCESSED)])
    acquired = _through(messages, MessageKind.ACQUIRED)
    if last is not None and last.run_status is RunStatus.ACQUIRED:
        acquired.append(last.taken.through_tick)
    return _Progress(
        done_through=done,
        acquired_through=max((tick for tick in acquired if tick > done), default=None),
    )


def _through(messages: Iterable[Message], kind: MessageKind) -> list[int]:
    return [each.taken.through_tick for each in messages if each.kind is kind and each.taken]


def _events_passed_to(
    run_id: int, place: Place, sensor: Sensor, messages: Sequence[Message]
) -> list[int]:
    """Return up to where events were passed to one run of the job, for each of its requests."""
    where = [("job_id", "=", sensor.job_id), ("run_id", "=", run_id)]
    recorded = [
        integer(consumed["through_tick"])
        for row in place.store.read(Ledger.RUNS, where=where)
        for consumed in consumed_of(row, sensor.upstream_id)
    ]
    reported = [message for message in messages if message.run_id == run_id]
    return recorded + _through(reported, MessageKind.ACQUIRED)


def _no_events_passed(run_id: int, sensor: Sensor) -> str:
    return (
        f"Run {run_id} of {sensor.job_name} ({sensor.job_id}) received no events of "
        f"{sensor.sensor_id}: call `sense {sensor.sensor_id} --run {run_id}` first, or "
        "both without --run"
    )


def _latest_event_tick(place: Place, sensor: Sensor, done_through: int) -> int | None:
    """Return the newest tick with events that are not processed; nothing when there is none.

    Raises:
        ProbeFailedError: There is none, and the upstream cannot be read: that is not "no data".
    """
    newest = newest_probe(place.store, sensor.upstream_id, place.folded_through)
    if newest is None:
        return None
    latest = newest["latest_event_tick"]
    if latest is not None and integer(latest) > done_through:
        return integer(latest)
    since = instant_from(newest["failing_since"])
    if since is not None:
        raise ProbeFailedError(
            f"{sensor.sensor_id} cannot be read since {instant(since)} ({newest['reason']}), so "
            "whether there is anything new is not known; sense again once a tick has read it"
        )
    return None


def _message(sensor: Sensor, caller: Caller, kind: MessageKind, consumed: Consumed) -> Message:
    return Message(
        kind=kind,
        job_id=sensor.job_id,
        job_name=sensor.job_name,
        run_id=caller.run_id,
        sent_at=caller.at,
        taken=consumed,
    )

"""Applies the messages of the inbox to the runs that are followed, without calling the Jobs API.

A message counts once, however often it is read: it names the attempt or the run that it is about,
and is applied to no other one. A report of success by a run itself ends no run: it waits in the
inbox until the Jobs API has reported the end.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.store.inbox import Message, MessageKind, bind
from harness.store.rows import HOLDING, Run, RunStatus, Tick

log = logging.getLogger(__name__)

#: As much of an operator's reason as is kept.
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What the messages of one tick come to before any run is polled."""

    #: A step for each run for which a message contains something new; they have no number.
    rows: tuple[Run, ...] = ()
    #: By job: reports of success that count once the Jobs API has reported the end of the run.
    waiting: Mapping[int, Sequence[Message]] = field(default_factory=dict)


def apply_messages(messages: Iterable[Message], by_job: Mapping[int, Run], tick: Tick) -> Applied:
    """Work out what each message means for the run that is followed of its job."""
    rows: dict[int, Run] = {}
    waiting: dict[int, list[Message]] = {}
    for message in messages:
        run = by_job.get(message.job_id)
        if run is not None and _waits_for_poll(message, run):
            waiting.setdefault(message.job_id, []).append(message)
        row = _row_of(message, run, tick) if run and message.job_id not in rows else None
        if row:
            rows[row.job_id] = row
        elif message not in waiting.get(message.job_id, ()):
            log.info("inbox: %s of job %s changes nothing", message.kind, message.job_id)
    return Applied(rows=tuple(rows.values()), waiting=waiting)


def named(messages: Iterable[Message], by_job: Mapping[int, Run]) -> list[Message]:
    """Let what an earlier version left without an attempt be about the one that holds its job.

    Before it is applied: read again after a death, it is not about the next attempt.

    Raises:
        StateError: The inbox cannot be written.
    """
    return [
        bind(message, run)
        if (run := by_job.get(message.job_id)) and _means_whatever_is_held(message, run)
        else message
        for message in messages
    ]


def _means_whatever_is_held(message: Message, run: Run) -> bool:
    if message.attempt is not None or not run.holds_job:
        return False
    if message.kind is MessageKind.COMPLETE:
        names_nothing = message.intent_id is None and message.run_id is None
        return names_nothing and message.sent_at >= run.decided_at
    is_of_operator = message.kind in (MessageKind.RETRY, MessageKind.RELEASE)
    return is_of_operator and message.intent_id in (None, run.intent_id)


def released_by(run_id: int | None) -> str:
    """Report which success has let a held job go."""
    return f"released by the success of run {run_id}" if run_id else "released by a later success"


def _row_of(message: Message, run: Run, tick: Tick) -> Run | None:
    match message.kind:
        case MessageKind.COMPLETE:
            return _row_of_completion(message, run, tick)
        case MessageKind.RETRY:
            if not _is_held(message, run):
                return None
            return run.step(tick, RunStatus.RETRY_REQUESTED, "operator")
        case MessageKind.RELEASE:
            return _row_of_release(message, run, tick)
        case MessageKind.ACQUIRED | MessageKind.PROCESSED:
            # The Jobs API has no such run; `pull_consumers` applies them.
            return None


def _is_held(message: Message, run: Run) -> bool:
    """Return whether an operator's message is about this run, and the run still holds its job.

    A message may be read once more after the attempt that it brought about has failed, too.
    """
    return run.holds_job and (message.intent_id, message.attempt) == (run.intent_id, run.attempt)


def _row_of_release(message: Message, run: Run, tick: Tick) -> Run | None:
    if not _is_held(message, run):
        return None
    row = run.step(tick, RunStatus.RELEASED, "operator")
    return replace(row, ended_at=run.ended_at or message.sent_at, message=_given_up(message, run))


def _given_up(message: Message, run: Run) -> str:
    why = f": {_one_line(message.reason)}" if message.reason else ""
    said = f": {run.message}" if run.message else ""
    who = _one_line(message.sent_by or "an operator")
    return f"released by {who}{why}; it was {run.run_status.value}{said}"


def _one_line(text: str) -> str:
    """Leave nothing of a text that could move a terminal's cursor or begin another line."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(printable.split())[:LONGEST_REASON]


def _waits_for_poll(message: Message, run: Run) -> bool:
    """Return whether a report of success counts only with what the Jobs API reports of the run.

    A run reports its success before it has ended: what it reports is true, and the job may not
    start again yet, and may still fail.
    """
    vouches_for_unknown_start = run.run_id is None and message.attempt is not None
    is_report = message.kind is MessageKind.COMPLETE and run.is_open
    return is_report and _is_about(message, run) and not vouches_for_unknown_start


def _row_of_completion(message: Message, run: Run, tick: Tick) -> Run | None:
    if run.is_open:
        return _row_of_open(message, run, tick)
    # Of a run that is lost or parked the Jobs API reported no end: the report of the run counts.
    has_no_end = run.run_status in (RunStatus.PARKED, RunStatus.LOST)
    # The poll detects the success of another run.
    if not _is_about(message, run) or not (has_no_end or message.seen_status in HOLDING):
        return None
    row = run.step(tick, RunStatus.SUCCEEDED_ELSEWHERE, "notice")
    return replace(row, ended_at=message.sent_at, message=released_by(message.run_id))


def _row_of_open(message: Message, run: Run, tick: Tick) -> Run | None:
    if run.run_id is not None or not _is_about(message, run):
        return None
    if message.attempt is not None:
        row = run.step(tick, RunStatus.SUCCEEDED, "notice")
        return replace(row, run_id=message.run_id, ended_at=message.sent_at)
    if message.run_id is None:
        return None
    # The run of a start without an answer has reported its id; from now on it is polled.
    row = run.step(tick, RunStatus.STARTED, "notice")
    return replace(row, run_id=message.run_id, started_at=run.decided_at)


def _is_about(message: Message, run: Run) -> bool:
    """Return whether a report of success names this run; one that names only the job names none."""
    if message.attempt is not None:
        return (message.intent_id, message.attempt) == (run.intent_id, run.attempt)
    if message.run_id is not None and run.run_id is not None:
        return message.run_id == run.run_id
    # Attempts share an intent, so that a late report may be of an earlier one; polls decide.
    return message.intent_id == run.intent_id and run.attempt == 1

"""Says what the messages of the inbox make of the runs that are followed; it asks nobody.

A message counts once, however often it is read: what an operator asks for names the attempt that
it is about, and what has ended does not end again.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from harness.inbox import Message, MessageKind
from harness.state import FollowedRun
from harness.tables import RunRow, RunStatus, Tick

log = logging.getLogger(__name__)

#: As much of an operator's reason as is kept.
LONGEST_REASON = 500


def rows_of_messages(
    messages: Iterable[Message], by_job: Mapping[int, FollowedRun], tick: Tick
) -> list[RunRow]:
    """Return a step for each run about which a message says something new; they have no number."""
    rows: dict[int, RunRow] = {}
    for message in messages:
        run = by_job.get(message.job_id)
        row = _row_of(message, run, tick) if run and message.job_id not in rows else None
        if row:
            rows[row.job_id] = row
        else:
            log.info("inbox: %s of job %s changes nothing", message.kind, message.job_id)
    return list(rows.values())


def released_by(run_id: int | None) -> str:
    """Say which success has let a held job go."""
    return f"released by the success of run {run_id}" if run_id else "released by a later success"


def _row_of(message: Message, run: FollowedRun, tick: Tick) -> RunRow | None:
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
            # No run that the Jobs API knows; `own_schedule` folds them in.
            return None


def _is_held(message: Message, run: FollowedRun) -> bool:
    """Tell whether an operator's message is about this run, and the run still holds its job.

    A message may be read once more after the attempt that it brought about has failed, too.
    """
    is_meant = message.intent_id is None or message.intent_id == run.intent_id
    is_attempt = message.attempt is None or message.attempt == run.attempt
    return run.holds_job and is_meant and is_attempt


def _row_of_release(message: Message, run: FollowedRun, tick: Tick) -> RunRow | None:
    if not _is_held(message, run):
        return None
    row = run.step(tick, RunStatus.RELEASED, "operator")
    return replace(row, ended_at=run.ended_at or message.sent_at, message=_given_up(message, run))


def _given_up(message: Message, run: FollowedRun) -> str:
    why = f": {_one_line(message.reason)}" if message.reason else ""
    said = f": {run.message}" if run.message else ""
    who = _one_line(message.sent_by or "an operator")
    return f"given up by {who}{why}; it was {run.run_status.value}{said}"


def _one_line(text: str) -> str:
    """Leave nothing of a text that could move a terminal's cursor or begin another line."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return " ".join(printable.split())[:LONGEST_REASON]


def _row_of_completion(message: Message, run: FollowedRun, tick: Tick) -> RunRow | None:
    is_same = _is_about(message, run)
    if run.is_open:
        if not is_same:
            return None
        row = run.step(tick, RunStatus.SUCCEEDED, "notice")
        return replace(row, run_id=run.run_id or message.run_id, ended_at=message.sent_at)
    # What ended, ended: only another run of the job can release it. Of a parked start nobody knew.
    is_parked = run.run_status is RunStatus.PARKED
    if (is_same and not is_parked) or message.sent_at < run.decided_at:
        return None
    row = run.step(tick, RunStatus.SUCCEEDED_ELSEWHERE, "notice")
    return replace(row, ended_at=message.sent_at, message=released_by(message.run_id))


def _is_about(message: Message, run: FollowedRun) -> bool:
    """Tell whether a notice is about this run; one that names only the job means its open run."""
    if message.run_id is not None and run.run_id is not None:
        return message.run_id == run.run_id
    if message.intent_id is not None:
        # Attempts share an intent, so that a late notice may be an earlier one's; polls tell.
        return message.intent_id == run.intent_id and run.attempt == 1
    # Which run a start has that nobody has acknowledged yet, only its answer can tell.
    return run.is_open and message.run_id is None

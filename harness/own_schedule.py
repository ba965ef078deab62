"""Records what jobs on their own schedule say: that they were handed events, or processed them.

Such a job starts itself, so the Jobs API is not asked about it. Its consumption is a run in the
ledger all the same: ACQUIRED from the first hand-over on, SUCCEEDED when the job says so. Folding
the same message in twice changes nothing but the number of the tick.
"""

import logging
from collections.abc import Iterable
from hashlib import sha256

from harness.calls import Steps
from harness.fire import events_of
from harness.inbox import Message, MessageKind
from harness.tables import Consumed, Ledger, RunRow, RunStatus, Store, Tick

log = logging.getLogger(__name__)

#: Who tells of the steps of such a run.
REPORTED_BY = "job"

_STATUS = {
    MessageKind.ACQUIRED: RunStatus.ACQUIRED,
    MessageKind.PROCESSED: RunStatus.SUCCEEDED,
}


def fold(
    messages: Iterable[Message], *, tick: Tick, steps: Steps, store: Store
) -> tuple[RunRow, ...]:
    """Append a row for each message of a job on its own schedule, oldest first.

    Raises:
        StateError: The ledger cannot be written; the messages stay in the inbox.
    """
    rows = [
        _row(message, message.taken, tick, steps, store)
        for message in messages
        if message.kind in _STATUS and message.taken is not None
    ]
    store.append(Ledger.RUNS, rows)
    return tuple(rows)


def intent_of(job_id: int, taken: Consumed) -> str:
    """Name the intent of a hand-over: it grows with newer events, so only its beginning counts."""
    begins = f"{job_id}|{taken.upstream_id}|{taken.from_tick}|own"
    return sha256(begins.encode()).hexdigest()[:32]


def _row(message: Message, taken: Consumed, tick: Tick, steps: Steps, store: Store) -> RunRow:
    status = _STATUS[message.kind]
    events = events_of(taken, store)
    intent_id = intent_of(message.job_id, taken)
    log.info("job %s: %s events of %s %s", message.job_id, len(events), taken.upstream_id, status)
    return RunRow(
        tick_number=tick.number,
        step_number=steps.next(),
        recorded_at=tick.at,
        job_id=message.job_id,
        job_name=message.job_name or str(message.job_id),
        intent_id=intent_id,
        attempt=1,
        # Nothing is sent to the Jobs API, so that the name of the intent does.
        token=intent_id,
        run_id=message.run_id,
        run_status=status,
        reported_by=REPORTED_BY,
        decided_tick=message.decided_tick if message.decided_tick is not None else tick.number,
        decided_at=message.decided_at or tick.at,
        started_at=None,
        ended_at=message.sent_at if status is RunStatus.SUCCEEDED else None,
        consumed=(taken,),
        event_count=len(events),
        event_ids=tuple(str(event["event_id"]) for event in events),
        parameters="{}",
    )

"""Sends intents to the Jobs API, side by side and within its rate, and records each answer.

An answer without information leaves the intent as it is: a later tick sends the same token again.
"""

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import assert_never

from harness.fire.parameters import DeclaredParameters
from harness.platform.databricks.api import (
    Accepted,
    JobsApi,
    NotAllowed,
    Refused,
    RunNowAnswer,
    Unknown,
)
from harness.platform.databricks.rate_limit import TokenBucket
from harness.platform.stopping import Stop
from harness.store.rows import Ledger, Run, RunStatus, Store, Tick

log = logging.getLogger(__name__)

#: Calls that wait for an answer at the same time.
CALLS_AT_ONCE = 16

#: What stands for the answer to a start that was not sent yet.
HELD_BACK = Unknown(message="the Jobs API has had too many requests; the start is sent later")
#: The same when the process is to end.
STOPPED = Unknown(message="the tick was stopped before this start was sent; the next tick sends it")


def _side_by_side() -> Executor:
    return ThreadPoolExecutor(max_workers=CALLS_AT_ONCE, thread_name_prefix="calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """What starting jobs needs, wired once."""

    api: JobsApi
    #: Makes the idempotency tokens of this state directory unique in its workspace.
    origin: str
    store: Store
    #: The rate of starts, and the higher one of read requests.
    starts: TokenBucket
    questions: TokenBucket
    #: Where event lists that are too long to pass directly are put.
    payloads: Path
    #: Where a run that is passed a reference finds its row.
    schema: str
    #: Tests stop the process at a named point.
    crash_point: Callable[[str], None]
    #: Which parameters each job declares.
    parameters: DeclaredParameters = field(default_factory=DeclaredParameters)
    #: Raises when another process has taken over, so that nothing is started any more.
    still_ours: Callable[[], None] = lambda: None
    #: Makes what runs the calls; a simulation has one after the other, so that it can be repeated.
    pool: Callable[[], Executor] = _side_by_side
    #: Once a stop is requested nothing is started; the answers of what was sent are still recorded.
    stop: Stop = field(default_factory=Stop)


class Steps:
    """Numbers the steps of runs within one tick."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Return the next number."""
        self._last += 1
        return self._last


def send(
    intents: Sequence[Run], *, tick: Tick, firing: Firing, steps: Steps, again: bool = False
) -> list[Run]:
    """Send intents that are durable already, side by side, and record each answer as it comes.

    Args:
        intents: What to send; each keeps its token and its parameters for ever.
        tick: The present tick.
        firing: The Jobs API and the ledgers.
        steps: Numbers the rows.
        again: They were sent before, so a refusal no longer proves that there is no run: the
            intent stays open, with the refusal's code and words.

    Returns:
        The newest row of each run; unchanged when the answer had nothing new.

    Raises:
        Interrupted: A signal came; what was sent by then is recorded, the rest stays an intent.
    """
    with firing.stop.finishing("the starts that are sent already"):
        return _sent(intents, tick, firing, steps, again=again)


def _sent(
    intents: Sequence[Run], tick: Tick, firing: Firing, steps: Steps, *, again: bool
) -> list[Run]:
    rows: list[Run] = []
    with firing.pool() as pool:
        calls: dict[Future[RunNowAnswer], Run] = {
            # The log of a call names the tick, as that of its caller does.
            pool.submit(copy_context().run, _call, intent, tick, firing): intent
            for intent in intents
        }
        waiting = set(calls)
        while waiting:
            # What has come is recorded at once, and together: a commit takes as long as an answer.
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            came = [each for each in calls if each in done]
            reported = [
                _after_answer(calls[each], each.result(), tick, firing, again=again)
                for each in came
            ]
            firing.crash_point("before_outcome")
            rows += _recorded(reported, [calls[each] for each in came], firing, steps)
            firing.crash_point("after_outcome")
    return rows


def _recorded(
    reported: Sequence[Run], intents: Sequence[Run], firing: Firing, steps: Steps
) -> list[Run]:
    """Append the rows that differ from their intents; return the newest row of each run."""
    newest = [
        intent if row == intent else replace(row, step_number=steps.next())
        for row, intent in zip(reported, intents, strict=True)
    ]
    firing.store.append(
        Ledger.RUNS, [row for row, intent in zip(newest, intents, strict=True) if row != intent]
    )
    return newest


def _call(intent: Run, tick: Tick, firing: Firing) -> RunNowAnswer:
    if firing.starts.waits.holds_back(tick.at, intent.token):
        return HELD_BACK
    if firing.stop.is_wanted:
        return STOPPED
    firing.starts.take()
    firing.still_ours()
    if firing.stop.is_wanted:
        return STOPPED
    firing.crash_point("before_call")
    answer = firing.api.run_now(
        job_id=intent.job_id, token=intent.token, parameters=json.loads(intent.parameters)
    )
    firing.crash_point("after_call")
    firing.starts.waits.note(intent.token, answer, tick.at)
    return answer


def _after_answer(
    intent: Run, answer: RunNowAnswer, tick: Tick, firing: Firing, *, again: bool
) -> Run:
    now = replace(intent, tick_number=tick.number, recorded_at=tick.at, reported_by="answer")
    match answer:
        case Accepted():
            log.info("job %s: run %s started", intent.job_id, answer.run_id)
            return replace(
                now,
                run_status=RunStatus.STARTED,
                run_id=answer.run_id,
                started_at=tick.at,
                message=None,
            )
        case Refused() if not again:
            log.warning("job %s: start refused: %s", intent.job_id, answer.message)
            firing.parameters.forget(intent.job_id)
            sent = sorted(json.loads(intent.parameters))
            advice = firing.parameters.advice(intent.job_id, answer, sent)
            return replace(
                now,
                run_status=RunStatus.REFUSED,
                ended_at=tick.at,
                termination_code=answer.error_code,
                message=answer.message.rstrip(".") + advice if advice else answer.message,
            )
        case Refused():
            log.warning("job %s: refused when sent again: %s", intent.job_id, answer.message)
            firing.parameters.forget(intent.job_id)
            return replace(now, termination_code=answer.error_code, message=answer.message)
        case Unknown() if (answer is HELD_BACK or answer is STOPPED) and intent.message:
            # Why it has no answer is reported already.
            return intent
        case Unknown() | NotAllowed():
            log.warning("job %s: no usable answer: %s", intent.job_id, answer.message)
            return (
                intent if intent.message == answer.message else replace(now, message=answer.message)
            )
        case _ as never:
            assert_never(never)

"""Requests automatic retries whose backoff (computed in SQL) has elapsed.

What a retry policy requests is a step of the failed run, as an operator's `retry` is. The decision
finds it in the ledger; it needs no clock, and a process may die on either side of it.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from harness.controls.load import Rows
from harness.fire.submit import Steps
from harness.settle.settle import Settled
from harness.store.rows import Ledger, Run, RunStatus, Store, Tick
from harness.store.work_lists import PlannedRetry, StateView

log = logging.getLogger(__name__)

#: The origin of the step.
REPORTED_BY = "policy"


def planned_retries(rows: Rows, runs: Sequence[Run]) -> tuple[PlannedRetry, ...]:
    """Read which failed runs start again automatically, and when; most often there is none.

    Args:
        rows: Reads a model.
        runs: The runs that are followed; without one that holds its job nothing is read.

    Raises:
        StateError: The model cannot be read.
    """
    if not any(run.holds_job for run in runs):
        return ()
    found = map(PlannedRetry.from_row, rows("queue_retries"))
    return tuple(sorted(found, key=lambda each: each.job_id))


def request_due_retries(
    settled: Settled, state: StateView, *, tick: Tick, steps: Steps, store: Store
) -> Settled:
    """Requeue the events of each failed run whose back-off is over.

    Not of one that has a new step in this tick, or could not be polled; nor while another run
    of its job goes on that another user has started, or a repair of it.

    Args:
        settled: What following the runs came to in this tick.
        state: What the tick started from.
        tick: The present tick.
        steps: Numbers the steps of the tick.
        store: Takes the steps.

    Raises:
        StateError: The ledger cannot be written; the next tick requests the same.
    """
    kept = {row.job_id for row in settled.rows} | settled.unanswered.keys() | settled.busy
    held = {run.job_id: run for run in state.runs if run.holds_job and run.job_id not in kept}
    due = {each.job_id: each for each in state.retries if each.retry_at <= tick.at}
    wanted = [run for job_id, run in held.items() if job_id in due and due[job_id].is_about(run)]
    rows = [
        replace(run.step(tick, RunStatus.RETRY_REQUESTED, REPORTED_BY), step_number=steps.next())
        for run in wanted
    ]
    store.append(Ledger.RUNS, rows)
    for run in wanted:
        log.info("job %s: attempt %s starts automatically", run.job_id, run.attempt + 1)
    return replace(settled, rows=(*settled.rows, *rows))

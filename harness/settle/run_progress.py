"""Derives the next row of an open run from a poll; it calls no service.

A run that goes on in ordinary words leaves no row. What a person should see does: that it waits in
a queue, that the Jobs API uses unknown words, or has no such run.
"""

import logging
from dataclasses import replace
from datetime import timedelta

from harness.platform.databricks.api import RunReport
from harness.platform.databricks.run_states import is_over, is_understood, is_waiting
from harness.store.rows import Run, RunStatus, Tick

log = logging.getLogger(__name__)

#: A run's message while the Jobs API has no such run; if that lasts for long, the run is lost.
NOT_KNOWN = "the Jobs API has no such run"
LOST_AFTER = timedelta(minutes=10)
#: A run's message while the Jobs API reports no state of the run at all.
NO_STATE = "the Jobs API does not report the state of the run"
#: A run that is over with an unknown result is polled for so long.
PARKED_AFTER = timedelta(minutes=10)

#: Messages of ours, which stand for an answer: another one is new data.
_OWN_WORDS = frozenset({NOT_KNOWN, NO_STATE})


def row_of_poll(run: Run, report: RunReport | None, tick: Tick) -> Run | None:
    """Return the next step of a run that has not ended; nothing when there is nothing to record.

    Args:
        run: The run as it was left.
        report: What the Jobs API reports of it; ``None`` when it has no such run.
        tick: The present tick.
    """
    if report is None:
        return _missing(run, tick)
    if report.outcome is not None:
        return ended(run, report, tick)
    return _going_on(run, report, tick)


def ended(run: Run, report: RunReport, tick: Tick) -> Run:
    """Return the last step of a run, in the words of the Jobs API."""
    outcome = report.outcome
    assert outcome is not None
    log.info("job %s: run %s ended %s", run.job_id, run.run_id, outcome)
    return replace(
        run.step(tick, RunStatus(outcome), "poll"),
        started_at=report.started_at or run.started_at,
        ended_at=report.ended_at or tick.at,
        life_cycle_state=report.life_cycle_state,
        result_state=report.result_state,
        state=report.state,
        termination_code=report.termination_code,
        message=report.message,
        run_page_url=report.run_page_url,
    )


def ways_out(job_id: int) -> str:
    """Report what an operator may do about a run that is parked."""
    return (
        f"`retry {job_id}` starts it again, `complete --job {job_id}` counts it as done, or "
        f"`release {job_id}` discards its events"
    )


def _missing(run: Run, tick: Tick) -> Run | None:
    """Record a run as lost only if the API keeps reporting none: one such answer may be a slip."""
    log.warning("job %s: the Jobs API has no run %s", run.job_id, run.run_id)
    if run.message != NOT_KNOWN or _is_ahead(run, tick):
        return replace(run.step(tick, RunStatus.STARTED, "poll"), message=NOT_KNOWN)
    if tick.at - run.recorded_at < LOST_AFTER:
        return None
    return replace(run.step(tick, RunStatus.LOST, "poll"), ended_at=tick.at)


def _going_on(run: Run, report: RunReport, tick: Tick) -> Run | None:
    reported = _reported(run, report, tick)
    if not _is_unchanged(run, reported):
        if reported.message or reported.state or reported.life_cycle_state:
            log.warning("job %s: run %s is %s", run.job_id, run.run_id, _in_words(report))
        return reported
    if is_over(report) and (_is_ahead(run, tick) or tick.at - run.recorded_at >= PARKED_AFTER):
        return reported if _is_ahead(run, tick) else _parked(reported, report, tick)
    return None


def _reported(run: Run, report: RunReport, tick: Tick) -> Run:
    """Return the run with the API's words, or without any where they are the ordinary ones."""
    row = replace(
        run.step(tick, RunStatus.STARTED, "poll"),
        life_cycle_state=report.life_cycle_state,
        result_state=report.result_state,
        state=report.state,
        termination_code=report.termination_code,
        message=report.message if _in_words(report) else NO_STATE,
    )
    if is_waiting(report) or not is_understood(report):
        return row
    return replace(
        row,
        life_cycle_state=None,
        result_state=None,
        state=None,
        termination_code=None,
        message=None,
    )


def _is_unchanged(run: Run, reported: Run) -> bool:
    """Return whether nothing is new; the API's free text may change all the time."""
    own = {text for text in (run.message, reported.message) if text in _OWN_WORDS}
    return run.words == reported.words and (not own or run.message == reported.message)


def _parked(reported: Run, report: RunReport, tick: Tick) -> Run:
    message = f"the run ended in a state this version does not recognize ({_in_words(report)})"
    more = f": {report.message}" if report.message else ""
    return replace(
        reported,
        run_status=RunStatus.PARKED,
        ended_at=report.ended_at or tick.at,
        message=f"{message}{more}; check it in the workspace, then {ways_out(reported.job_id)}",
    )


def _in_words(report: RunReport) -> str:
    words = (
        report.life_cycle_state,
        report.result_state,
        report.state,
        report.termination_code,
    )
    return ", ".join(dict.fromkeys(word for word in words if word))


def _is_ahead(run: Run, tick: Tick) -> bool:
    """A clock that went back by a day would else have the job wait for that day."""
    return run.recorded_at > tick.at

"""Finds the run of a start among the runs of its job, when no answer to the start has named it.

A run names by one of its parameters the start to which it belongs. A list without such a run
proves nothing: runs are deleted, and jobs, too. Every run of the job is read, since the clock by
which the start was decided may have been wrong.
"""

from dataclasses import dataclass

from harness.errors import UnreportedRunsError
from harness.fire.submit import Firing
from harness.fire.token import TOKEN_PARAMETER
from harness.platform.databricks.api import RunReport
from harness.store.rows import Run

#: What starts runs without any request, in the words of the Jobs API: such a run is not of a start.
_NO_REQUEST = frozenset(
    {
        "PERIODIC",
        "FILE_ARRIVAL",
        "TABLE",
        "MODEL",
        "CONTINUOUS",
        "CONTINUOUS_RESTART",
        "RUN_JOB_TASK",
    }
)

#: Most runs that are queried one by one; a job may have a schedule of its own, too.
MOST_CANDIDATES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What the runs of a job show of one start."""

    #: The run of the start.
    found: RunReport | None = None
    #: Runs that do not show to which start they belong; any of them may be the one.
    untold: tuple[int, ...] = ()
    #: Why not all runs of the job are listed; nothing when they are.
    problem: str | None = None


def find_run(start: Run, firing: Firing) -> Search:
    """Search all listed runs of a start's job for the run of the start.

    Raises:
        JobsApiError: The runs cannot be listed; this has no information about the start.
    """
    listed: list[RunReport] = []
    problem = None
    try:
        # One by one: what came before a list broke off counts.
        for report in firing.api.list_runs(start.job_id):
            listed.append(report)
    except UnreportedRunsError as error:
        problem = str(error)
    # A person can only copy the parameters of a run that is there, so the oldest is the start's.
    reported = [report for report in reversed(listed) if TOKEN_PARAMETER in report.parameters]
    untold = [
        report
        for report in listed
        if TOKEN_PARAMETER not in report.parameters and report.trigger not in _NO_REQUEST
    ]
    found = _of(start, reported)
    if found is not None:
        return Search(found=found)
    # The newest of them: a start is in doubt for days, and its job's runs go back for months.
    looked_at = [_polled(report, firing) for report in reversed(untold[:MOST_CANDIDATES])]
    found = _of(start, looked_at)
    if found is not None:
        return Search(found=found)
    silent = [each for each in looked_at if TOKEN_PARAMETER not in each.parameters]
    beyond = [each.run_id for each in untold[MOST_CANDIDATES:]]
    return Search(untold=(*(each.run_id for each in silent), *beyond), problem=problem)


def _of(start: Run, reports: list[RunReport]) -> RunReport | None:
    own = (each for each in reports if each.parameters.get(TOKEN_PARAMETER) == start.token)
    return next(own, None)


def _polled(report: RunReport, firing: Firing) -> RunReport:
    """Query the single run: a list may leave its parameters out."""
    firing.questions.take()
    return firing.api.get_run(report.run_id) or report

"""Finds the run of a start among the runs of its job, when no answer to the start has named it.

A run tells by one of its parameters to which start it belongs. It only looks: what follows from
what it finds is for ``harness.settle`` to say.
"""

from dataclasses import dataclass
from datetime import timedelta

from harness.calls import Firing
from harness.errors import UntoldRunsError
from harness.jobs.token import TOKEN_PARAMETER
from harness.jobs.types import RunReport
from harness.state import FollowedRun

#: The clock of the Jobs API may be behind ours by so much.
CLOCK_SKEW = timedelta(minutes=10)
#: Most runs that are asked about one by one; a job may have a schedule of its own, too.
LOOKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What the runs of a job tell about one start."""

    #: The run of the start.
    found: RunReport | None = None
    #: Runs that do not tell to which start they belong; any of them may be the one.
    untold: tuple[int, ...] = ()
    #: The API has no word of runs for this job, not even that there are none.
    is_silent: bool = False

    @property
    def proves_none(self) -> bool:
        """Tell whether no run of the job can be that of the start."""
        return self.found is None and not self.untold and not self.is_silent


def find_run(start: FollowedRun, firing: Firing) -> Search:
    """Look for the run of a start among the runs of its job since it was decided.

    Raises:
        JobsApiError: The runs cannot be listed; this says nothing about the start.
    """
    try:
        listed = list(firing.api.list_runs(start.job_id, since=start.decided_at - CLOCK_SKEW))
    except UntoldRunsError:
        return Search(is_silent=True)
    # A person can only copy the parameters of a run that is there, so the oldest is the start's.
    listed.reverse()
    told = [report for report in listed if TOKEN_PARAMETER in report.parameters]
    untold = [report for report in listed if TOKEN_PARAMETER not in report.parameters]
    found = _of(start, told)
    if found is not None:
        return Search(found=found)
    looked_at = [_looked_at(report, firing) for report in untold[:LOOKS]]
    found = _of(start, looked_at)
    if found is not None:
        return Search(found=found)
    silent = [each for each in looked_at if TOKEN_PARAMETER not in each.parameters]
    return Search(untold=tuple(each.run_id for each in (*silent, *untold[LOOKS:])))


def _of(start: FollowedRun, reports: list[RunReport]) -> RunReport | None:
    own = (each for each in reports if each.parameters.get(TOKEN_PARAMETER) == start.token)
    return next(own, None)


def _looked_at(report: RunReport, firing: Firing) -> RunReport:
    """Look at the single run: a list may leave its parameters out."""
    firing.questions.take()
    return firing.api.get_run(report.run_id) or report

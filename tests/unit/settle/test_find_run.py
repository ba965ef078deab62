"""Which of a job's runs may be the one of a start that no answer has named."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pytest

from harness.platform.databricks.api import RunReport
from harness.settle.find_run import find_run
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.following import AT, JOB, firing_of, intended


class TriggeredJobs(FakeJobs):
    """Every run was started by the same trigger."""

    trigger: str | None = None

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        for report in super().list_runs(job_id, since=since):
            yield replace(report, trigger=self.trigger)


@pytest.mark.parametrize(
    ("trigger", "is_candidate"),
    [("PERIODIC", False), ("TABLE", False), ("ONE_TIME", True), ("A_NEW_WORD", True), (None, True)],
)
def test_a_run_of_a_schedule_is_none_of_a_start_and_any_other_may_be(
    trigger: str | None, is_candidate: bool
) -> None:
    jobs = TriggeredJobs(clock=FakeClock(AT))
    jobs.trigger = trigger
    jobs.add_job(JOB, declares=())
    run_id = jobs.start_by_hand(JOB)
    found = find_run(replace(intended(), parameters="{}"), firing_of(jobs, at=AT))
    assert found.found is None
    assert found.untold == ((run_id,) if is_candidate else ())

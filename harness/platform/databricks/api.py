"""What Heartbeat needs of a Jobs API, and the answers it distinguishes.

``JobsApi`` is implemented over the real databricks-sdk in ``client``; a fake for unit
tests passes the same contract tests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Outcome(StrEnum):
    """How a run ended. A run that goes on has none."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    TIMED_OUT = "TIMED_OUT"
    #: Created but never run: too many runs at once, and no queue.
    SKIPPED = "SKIPPED"
    #: The API no longer has a run that it had accepted.
    LOST = "LOST"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run in the API's own words, and what they mean for us."""

    run_id: int
    job_id: int
    #: ``None`` while the run goes on, or while its state is an unknown word.
    outcome: Outcome | None
    life_cycle_state: str | None
    result_state: str | None
    state: str | None
    termination_code: str | None
    message: str | None
    started_at: datetime | None
    ended_at: datetime | None
    run_page_url: str | None = None
    #: What has started the run; ``ONE_TIME`` is a request, of a program or of a person.
    trigger: str | None = None
    #: What the run was started with, as far as the API returns it: a list may leave out what a
    #: request for the single run returns.
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """A job of the workspace, its settings in the API's own words."""

    job_id: int
    created_at: datetime | None
    #: ``name``, ``trigger`` and so on; what a list leaves out is not here.
    settings: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The run exists."""

    run_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The API refused. Only on the first request of an attempt does it prove that no run exists."""

    error_code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Whether a run exists cannot be determined; the same token is to be sent again later."""

    message: str
    #: How long to wait before the same token is sent again.
    wait_seconds: float = 0.0
    #: The workspace has had too many requests: other starts wait as well.
    is_throttled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAllowed:
    """Credentials or permissions are wrong; this gives no information about an earlier request."""

    message: str


RunNowAnswer = Accepted | Refused | Unknown | NotAllowed


class JobsApi(Protocol):
    """Starts runs and reports on them: one HTTP request per call, retries are the caller's."""

    @property
    def workspace(self) -> str:
        """Name the workspace; it is part of every token."""
        ...

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        """Start a run of the job under an idempotency token, or get the one that exists."""
        ...

    def declared_parameters(self, job_id: int) -> frozenset[str] | None:
        """Return the names of the job parameters that a job declares; it accepts no others.

        ``None`` when the API has no such endpoint, so that what a job accepts is unknown.

        Raises:
            NoSuchJobError: The API has no such job.
            JobsApiError: The API did not answer; this gives no information about the job.
        """
        ...

    def get_run(self, run_id: int) -> RunReport | None:
        """Report on one run; ``None`` when the API reports that it does not exist.

        Raises:
            JobsApiError: The API did not answer; this gives no information about the run.
        """
        ...

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        """Report on the runs of a job, newest first, page by page.

        Raises:
            NoSuchJobError: The API has no such job, whose runs may exist all the same.
            UnreportedRunsError: It reports on the job and not on its runs, or has too many of them;
                what was reported before counts.
            JobsApiError: The API did not answer.
        """
        ...

    def list_jobs(self) -> Iterator[JobSettings]:
        """Report on all jobs that the login may see, page by page, without their tasks.

        Raises:
            JobsApiError: The API did not answer; what was reported before is not all.
        """
        ...

    def cancel_run(self, run_id: int) -> None:
        """Request the cancellation of a run; its end is seen later, by ``get_run``."""
        ...

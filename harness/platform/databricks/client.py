"""Calls a Databricks Jobs API through the databricks-sdk: one HTTP request per call.

The retry loop belongs to the caller. Inside the SDK it could hide that a first request started a
run, its answer was lost, and a second request was refused.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, NotFound, ResourceDoesNotExist

from harness.errors import JobsApiError, NoSuchJobError, ThrottledError, UnreportedRunsError
from harness.platform.clock import Clock, RealClock
from harness.platform.databricks.answers import answer_of_error
from harness.platform.databricks.api import (
    Accepted,
    JobSettings,
    Outcome,
    RunNowAnswer,
    RunReport,
    Unknown,
)
from harness.platform.databricks.run_states import exact_id, instant, report_of
from harness.platform.databricks.workspace import (
    BoundedConfig,
    bounded_config,
    described,
    is_about_login,
    workspace_client,
)

logger = logging.getLogger(__name__)

_API = "/api/2.2/jobs"
_RUNS_PER_PAGE = 25
_JOBS_PER_PAGE = 100
#: Most pages of one list: a job that runs every minute has 86,400 runs in 60 days.
MOST_PAGES = 40
#: A login that was refused is renewed at most so often: a permission that is missing stays missing.
LOG_IN_AGAIN_AFTER = timedelta(minutes=10)
#: The code of a path that an API does not have; every workspace has those that are used here.
_NO_ENDPOINT = "ENDPOINT_NOT_FOUND"
_NO_SUCH_JOB = re.compile(r"Job \S+ does not exist")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How to reach a workspace; what is left out, the SDK finds in its own environment."""

    host: str | None = None
    token: str | None = field(default=None, repr=False)
    #: Names the workspace in tokens; taken from the host when not given.
    workspace: str | None = None
    http_timeout_seconds: float = 25.0
    #: What a run that ends as SUCCESS_WITH_FAILURES counts as.
    partial_success: Outcome = Outcome.SUCCEEDED


def connect(settings: ClientSettings) -> WorkspaceClient:
    """Log in to a workspace.

    Raises:
        JobsApiError: There is no host, or there are no credentials that the SDK can use.
    """
    try:
        config = bounded_config(
            host=settings.host,
            token=settings.token,
            http_timeout_seconds=settings.http_timeout_seconds,
        )
        client = workspace_client(config)
    except (ValueError, OSError) as error:
        message = (
            f"The Jobs API cannot be used: {described(error)}; set DATABRICKS_HOST and "
            "DATABRICKS_TOKEN, or another way to log in that the Databricks SDK supports"
        )
        raise JobsApiError(message) from error
    if not config.host:
        raise JobsApiError("The Jobs API cannot be used: DATABRICKS_HOST is not set")
    return client


class DatabricksJobs:
    """The ``JobsApi`` over the real SDK.

    Args:
        settings: Host, credentials and policies.
        clock: Determines when a login may be renewed.
        login: Makes the client.
        before_page: Called before each page of a list but the first, whose caller has waited
            for its turn; keeps long lists under the API's rate limit.

    Raises:
        JobsApiError: There is no host, or there are no credentials that the SDK can use.
    """

    def __init__(
        self,
        settings: ClientSettings | None = None,
        *,
        clock: Clock | None = None,
        login: Callable[[ClientSettings], WorkspaceClient] = connect,
        before_page: Callable[[], object] = lambda: None,
    ) -> None:
        self._settings = settings or ClientSettings()
        self._clock = clock or RealClock()
        self._login = login
        self._before_page = before_page
        self._lock = threading.Lock()
        self._renewed_at: datetime | None = None
        self._client = login(self._settings)
        config = self._client.config
        identity = config.identity if isinstance(config, BoundedConfig) else str(config.host)
        self._workspace = self._settings.workspace or identity

    @property
    def workspace(self) -> str:
        """Name the workspace by what is configured, never by what a host answered today."""
        return self._workspace

    def check(self) -> None:
        """Request any one job.

        Raises:
            JobsApiError: The API did not answer.
        """
        try:
            self._get("list", {"limit": 1})
        except Exception as error:
            raise JobsApiError(f"The Jobs API does not answer: {described(error)}") from error

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        """Start a run of the job under an idempotency token, or get the one that exists."""
        client = self._client
        try:
            waiter = client.jobs.run_now(
                job_id, idempotency_token=token, job_parameters=dict(parameters) or None
            )
            # As it came: the typed answer of newer SDKs rounds a float into some other id.
            return Accepted(run_id=exact_id(waiter.bind()["run_id"], "run_id"))
        except Exception as error:
            # Whatever went wrong after the request left, a run may exist.
            self._renew(client, error)
            answer = answer_of_error(error)
            logger.debug("run-now of job %s: %s", job_id, answer)
            return answer

    def declared_parameters(self, job_id: int) -> frozenset[str] | None:
        """Return the names of the job parameters that a job declares; it accepts no others.

        ``None`` when the API has no such endpoint, so that what a job accepts is unknown.

        Raises:
            NoSuchJobError: The API has no such job.
            JobsApiError: The API did not answer; this gives no information about the job.
        """
        names: set[str] = set()
        query: dict[str, object] = {"job_id": job_id}
        try:
            for _ in range(MOST_PAGES):
                answer = self._get("get", query)
                found = _declared(answer, job_id)
                names |= found
                query["page_token"] = answer.get("next_page_token")
                # A list that has come to its end is empty on the pages of the others.
                if not found or not query["page_token"]:
                    return frozenset(names)
                self._before_page()
            raise ValueError(f"the answer has more than {MOST_PAGES} pages")
        except Exception as error:
            if _is_no_such_job(error):
                raise NoSuchJobError(f"The Jobs API has no job {job_id}") from error
            if isinstance(error, NotFound) and error.error_code == _NO_ENDPOINT:
                return None
            message = f"The Jobs API did not report the settings of job {job_id}"
            raise _failure(message, error) from error

    def get_run(self, run_id: int) -> RunReport | None:
        """Report on one run; ``None`` when the API reports that it does not exist.

        Raises:
            JobsApiError: The API did not answer; this gives no information about the run.
        """
        try:
            run = self._get("runs/get", {"run_id": run_id})
            report = report_of(run, partial_success=self._settings.partial_success)
            if report.run_id != run_id:
                raise ValueError(f"the answer is about run {report.run_id}")
            return report
        except ResourceDoesNotExist:
            return None
        except Exception as error:
            raise _failure(f"The Jobs API did not report on run {run_id}", error) from error

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        """Report on the runs of a job, newest first, page by page.

        Raises:
            NoSuchJobError: The API has no such job, whose runs may exist all the same.
            UnreportedRunsError: It reports on the job and not on its runs, or there are more than
                ``MOST_PAGES`` pages of them; what was reported before counts.
            JobsApiError: The API did not answer.
        """
        query: dict[str, object] = {"job_id": job_id, "limit": _RUNS_PER_PAGE}
        if since is not None:
            query["start_time_from"] = int(since.timestamp() * 1000)
        pages: set[str] = set()
        while True:
            reports, next_page = self._page(job_id, query)
            yield from reports
            if next_page is None:
                return
            if next_page in pages:
                raise JobsApiError(
                    f"The Jobs API did not list the runs of job {job_id} to their end: it gives "
                    "the same page again"
                )
            pages.add(next_page)
            if len(pages) >= MOST_PAGES:
                raise UnreportedRunsError(
                    f"job {job_id} has more than {MOST_PAGES * _RUNS_PER_PAGE} runs, and the older "
                    "ones were not read"
                )
            self._before_page()
            query["page_token"] = next_page

    def list_jobs(self) -> Iterator[JobSettings]:
        """Report on all jobs that the login may see, page by page.

        Raises:
            JobsApiError: The API did not answer; what was reported before is not all.
        """
        query: dict[str, object] = {"limit": _JOBS_PER_PAGE, "expand_tasks": "false"}
        pages: set[str] = set()
        while True:
            try:
                answer = self._get("list", query)
                jobs, page = _jobs_in(answer), _next_page(answer)
                if page in pages:
                    raise ValueError("it gives the same page again")
            except Exception as error:
                raise _failure("The Jobs API did not list its jobs", error) from error
            yield from jobs
            if page is None:
                return
            pages.add(page)
            self._before_page()
            query["page_token"] = page

    def cancel_run(self, run_id: int) -> None:
        """Request the cancellation of a run; its end is seen later, by ``get_run``.

        Raises:
            JobsApiError: The API did not take the request.
        """
        client = self._client
        try:
            client.jobs.cancel_run(run_id)
        except Exception as error:
            self._renew(client, error)
            raise JobsApiError(f"Run {run_id} was not cancelled: {described(error)}") from error

    def _page(self, job_id: int, query: Mapping[str, object]) -> tuple[list[RunReport], str | None]:
        try:
            answer = self._get("runs/list", query)
            if _is_silent(answer):
                has = "has" if self._is_known(job_id) else "does not have"
                raise UnreportedRunsError(
                    f"The Jobs API {has} job {job_id}, and lists none of its runs"
                )
            reports = [
                report_of(run, partial_success=self._settings.partial_success)
                for run in _listed(answer)
            ]
            if any(report.job_id != job_id for report in reports):
                raise ValueError("the answer has runs of other jobs")
            return reports, _next_page(answer)
        except UnreportedRunsError:
            raise
        except Exception as error:
            if _is_no_such_job(error):
                raise NoSuchJobError(f"The Jobs API has no job {job_id}") from error
            message = f"The Jobs API did not list the runs of job {job_id}"
            raise _failure(message, error) from error

    def _is_known(self, job_id: int) -> bool:
        """Return whether there is a job, and verify that it is the Jobs API that states this.

        A workspace leaves ``runs`` out where there are none, and may leave out all else; a proxy's
        empty page looks the same. A workspace that is queried again returns the same every time.
        That a job is gone does not prove that it had no runs: they outlive it.
        """
        try:
            answer = self._get("get", {"job_id": job_id})
        except (BadRequest, NotFound) as error:
            if _is_no_such_job(error):
                return False
            raise
        if str(answer.get("job_id")) != str(job_id):
            raise ValueError("the answer has no list of runs")
        return True

    def _get(self, path: str, query: Mapping[str, object]) -> Mapping[str, object]:
        """Read raw JSON: the SDK's own classes drop a word that they do not recognize."""
        client = self._client
        headers = {"Accept": "application/json"}
        if client.config.workspace_id:
            headers["X-Databricks-Workspace-Id"] = client.config.workspace_id
        try:
            answer = client.api_client.do(
                "GET", f"{_API}/{path}", query=dict(query), headers=headers
            )
        except Exception as error:
            self._renew(client, error)
            raise
        if not isinstance(answer, dict):
            raise ValueError(f"the answer is a {type(answer).__name__}, not a JSON object")
        return cast(Mapping[str, object], answer)

    def _renew(self, refused: WorkspaceClient, error: Exception) -> None:
        """Log in again when a client's login was refused: its secret may have been changed since.

        It has no information about the request, which its sender repeats in its own time.
        """
        if not is_about_login(error):
            return
        with self._lock:
            now = self._clock.now()
            # A clock that went back must not keep the old login for as long.
            is_recent = self._renewed_at and abs(now - self._renewed_at) < LOG_IN_AGAIN_AFTER
            if is_recent or refused is not self._client:
                return
            self._renewed_at = now
            logger.warning("the workspace refuses our login; logging in again")
            try:
                self._client = self._login(self._settings)
            except JobsApiError as failure:
                logger.warning("the login cannot be renewed: %s", failure)


def _failure(message: str, error: Exception) -> JobsApiError:
    sentence, answer = f"{message}: {described(error)}", answer_of_error(error)
    if isinstance(answer, Unknown) and answer.is_throttled:
        return ThrottledError(sentence, wait_seconds=answer.wait_seconds)
    return JobsApiError(sentence)


def _is_no_such_job(error: Exception) -> bool:
    """Return whether an error states that a job is not there."""
    return isinstance(error, BadRequest | NotFound) and bool(_NO_SUCH_JOB.match(str(error)))


def _is_silent(answer: Mapping[str, object]) -> bool:
    """Return whether an answer neither lists runs, nor shows whether there are any."""
    stated = (answer.get("runs"), answer.get("has_more"), answer.get("next_page_token") or None)
    return all(word is None for word in stated)


def _listed(answer: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the runs of a page; an empty answer does not mean that there are none."""
    runs = answer.get("runs")
    if runs is None and answer.get("has_more") is False:
        return []
    if not isinstance(runs, list):
        raise ValueError("the answer has no list of runs")
    return runs


def _jobs_in(answer: Mapping[str, object]) -> list[JobSettings]:
    """Return the jobs of a page; an answer without any has no list."""
    jobs = answer.get("jobs") or []
    if not isinstance(jobs, list):
        raise ValueError("the answer has no list of jobs")
    found = []
    for job in jobs:
        settings = job.get("settings") if isinstance(job, dict) else None
        if not isinstance(settings, dict):
            raise ValueError("the answer has a job without settings")
        created = instant(job.get("created_time"))
        job_id = exact_id(job.get("job_id"), "job_id")
        found.append(JobSettings(job_id=job_id, created_at=created, settings=settings))
    return found


def _declared(answer: Mapping[str, object], job_id: int) -> set[str]:
    """Return the parameters that one page of a job's settings declares."""
    settings = answer.get("settings")
    if str(answer.get("job_id")) != str(job_id) or not isinstance(settings, dict):
        raise ValueError(f"the answer has no settings of job {job_id}")
    listed = settings.get("parameters") or []
    if not isinstance(listed, list):
        raise ValueError("the answer has no list of parameters")
    return {str(each["name"]) for each in listed if isinstance(each, dict) and "name" in each}


def _next_page(answer: Mapping[str, object]) -> str | None:
    token = answer.get("next_page_token")
    if isinstance(token, str) and token:
        return token
    if answer.get("has_more") is True:
        raise ValueError("the answer announces more runs without a page token")
    return None

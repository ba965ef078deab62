"""Talks to a Databricks Jobs API through the databricks-sdk: one HTTP request per call.

The retry loop belongs to the caller. Inside the SDK it could hide that a first request started a
run, its answer was lost, and a second request was refused.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import BadRequest, NotFound, ResourceDoesNotExist

from harness.errors import JobsApiError
from harness.jobs.answers import answer_of_error
from harness.jobs.states import exact_id, report_of
from harness.jobs.types import Accepted, Outcome, RunNowAnswer, RunReport
from harness.workspace import bounded_config, told

logger = logging.getLogger(__name__)

_API = "/api/2.2/jobs"
_RUNS_PER_PAGE = 25
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


class DatabricksJobs:
    """The ``JobsApi`` over the real SDK.

    Args:
        settings: Host, credentials and policies.

    Raises:
        JobsApiError: There is no host, or there are no credentials that the SDK can use.
    """

    def __init__(self, settings: ClientSettings | None = None) -> None:
        settings = settings or ClientSettings()
        try:
            config = bounded_config(
                host=settings.host,
                token=settings.token,
                http_timeout_seconds=settings.http_timeout_seconds,
            )
            self._client = WorkspaceClient(config=config)
        except (ValueError, OSError) as error:
            message = (
                f"The Jobs API cannot be used: {told(error)}; set DATABRICKS_HOST and "
                "DATABRICKS_TOKEN, or another way to log in that the Databricks SDK knows"
            )
            raise JobsApiError(message) from error
        if not config.host:
            raise JobsApiError("The Jobs API cannot be used: DATABRICKS_HOST is not set")
        self._config = config
        self._partial_success = settings.partial_success
        self._workspace = settings.workspace or config.identity

    @property
    def workspace(self) -> str:
        """Name the workspace by what is configured, never by what a host answered today."""
        return self._workspace

    def check(self) -> None:
        """Ask for one job, whichever.

        Raises:
            JobsApiError: The API did not answer.
        """
        try:
            self._get("list", {"limit": 1})
        except Exception as error:
            raise JobsApiError(f"The Jobs API does not answer: {told(error)}") from error

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        """Start a run of the job under an idempotency token, or get the one that exists."""
        try:
            waiter = self._client.jobs.run_now(
                job_id, idempotency_token=token, job_parameters=dict(parameters)
            )
            # As it came: the typed answer of newer SDKs rounds a float into some other id.
            return Accepted(run_id=exact_id(waiter.bind()["run_id"], "run_id"))
        except Exception as error:
            # Whatever went wrong after the request left, a run may exist.
            answer = answer_of_error(error)
            logger.debug("run-now of job %s: %s", job_id, answer)
            return answer

    def get_run(self, run_id: int) -> RunReport | None:
        """Report on one run; ``None`` when the API says that it does not exist.

        Raises:
            JobsApiError: The API did not answer; this says nothing about the run.
        """
        try:
            run = self._get("runs/get", {"run_id": run_id})
            return report_of(run, partial_success=self._partial_success)
        except ResourceDoesNotExist:
            return None
        except Exception as error:
            raise JobsApiError(
                f"The Jobs API did not report on run {run_id}: {told(error)}"
            ) from error

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        """Report on the runs of a job, newest first, all pages; a job that is not there has none.

        Raises:
            JobsApiError: The API did not answer.
        """
        query: dict[str, object] = {"job_id": job_id, "limit": _RUNS_PER_PAGE}
        if since is not None:
            query["start_time_from"] = int(since.timestamp() * 1000)
        while True:
            reports, next_page = self._page(job_id, query)
            yield from reports
            if not next_page or next_page == query.get("page_token"):
                return
            query["page_token"] = next_page

    def cancel_run(self, run_id: int) -> None:
        """Ask for a run to be cancelled; its end is seen later, by ``get_run``.

        Raises:
            JobsApiError: The API did not take the request.
        """
        try:
            self._client.jobs.cancel_run(run_id)
        except Exception as error:
            raise JobsApiError(f"Run {run_id} was not cancelled: {told(error)}") from error

    def _page(self, job_id: int, query: Mapping[str, object]) -> tuple[list[RunReport], str | None]:
        try:
            answer = self._get("runs/list", query)
            runs = answer.get("runs") or []
            if not isinstance(runs, list):
                raise ValueError(f"the answer's runs are {runs!r:.50}, not a list")
            reports = [report_of(run, partial_success=self._partial_success) for run in runs]
        except Exception as error:
            if isinstance(error, BadRequest | NotFound) and _NO_SUCH_JOB.match(str(error)):
                return [], None
            message = f"The Jobs API did not list the runs of job {job_id}: {told(error)}"
            raise JobsApiError(message) from error
        next_page = answer.get("next_page_token")
        return reports, next_page if isinstance(next_page, str) else None

    def _get(self, path: str, query: Mapping[str, object]) -> Mapping[str, object]:
        """Read raw JSON: the SDK's own classes turn a word that they do not know into nothing."""
        headers = {"Accept": "application/json"}
        if self._config.workspace_id:
            headers["X-Databricks-Workspace-Id"] = self._config.workspace_id
        answer = self._client.api_client.do(
            "GET", f"{_API}/{path}", query=dict(query), headers=headers
        )
        if not isinstance(answer, dict):
            raise ValueError(f"the answer is a {type(answer).__name__}, not a JSON object")
        return cast(Mapping[str, object], answer)

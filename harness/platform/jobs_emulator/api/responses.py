"""Shapes jobs, runs and errors as the Jobs API returns them, in the words of Databricks."""

import base64
import binascii
from collections.abc import Mapping
from typing import NoReturn

from harness.platform.jobs_emulator.runs.database import JobRow, RunRow
from harness.platform.jobs_emulator.runs.job_settings import shown_settings


class ApiError(Exception):
    """A request is answered with an error status.

    Args:
        status: The HTTP status.
        error_code: Databricks' name for the error.
        message: One sentence for a person.
        headers: Headers to send with the answer.
    """

    def __init__(
        self, status: int, error_code: str, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.headers = headers or {}


def invalid(message: str) -> ApiError:
    """A parameter is missing or wrong."""
    return ApiError(400, "INVALID_PARAMETER_VALUE", message)


def no_endpoint(method: str, path: str) -> NoReturn:
    """There is no such path.

    Raises:
        ApiError: Always.
    """
    raise ApiError(404, "ENDPOINT_NOT_FOUND", f"No API found for '{method} {path}'")


CREATOR = "heartbeat@localhost"


def run_json(run: RunRow, job: JobRow | None, base_url: str) -> dict[str, object]:
    """Return a run as ``runs/get`` shows it."""
    name = job.settings.get("name") if job else None
    shown: dict[str, object] = {
        "job_id": run.job_id,
        "run_id": run.run_id,
        "number_in_job": run.run_id,
        "original_attempt_run_id": run.run_id,
        "creator_user_name": CREATOR,
        "run_name": name or "Untitled",
        "run_page_url": f"{base_url}/#job/{run.job_id}/run/{run.run_id}",
        "run_type": "JOB_RUN",
        "trigger": "ONE_TIME",
        "start_time": run.created_ms,
        "end_time": run.ended_ms or 0,
        "setup_duration": 0,
        "cleanup_duration": 0,
        "execution_duration": _duration(run),
        "run_duration": _duration(run),
        **run.phase.as_json(),
    }
    if run.parameters:
        shown["job_parameters"] = [
            {"name": name, "value": value} for name, value in run.parameters.items()
        ]
    return shown


def _duration(run: RunRow) -> int:
    return max(0, (run.ended_ms or run.created_ms) - run.created_ms)


def job_json(job: JobRow) -> dict[str, object]:
    """Return a job as ``jobs/get`` shows it."""
    return {
        "job_id": job.job_id,
        "creator_user_name": CREATOR,
        "run_as_user_name": CREATOR,
        "created_time": job.created_ms,
        "settings": shown_settings(job.settings),
    }


def listed_job_json(job: JobRow, *, with_tasks: bool) -> dict[str, object]:
    """Return a job as ``jobs/list`` shows it: without its tasks, unless they are requested."""
    shown = job_json(job)
    settings = shown["settings"]
    assert isinstance(settings, dict)
    left_out = () if with_tasks else ("tasks", "job_clusters")
    return {**shown, "settings": {k: v for k, v in settings.items() if k not in left_out}}


def page_token(place: int) -> str:
    """Encode the place at which a page ended, as an opaque token."""
    return base64.urlsafe_b64encode(f"after:{place}".encode()).decode()


def page_place(query: Mapping[str, object]) -> int | None:
    """Read the place at which the last page ended.

    Raises:
        ApiError: The token is none of ours.
    """
    token = query.get("page_token")
    if not token:
        return None
    try:
        word, _, place = base64.urlsafe_b64decode(str(token).encode()).decode().partition(":")
        if word == "after":
            return int(place)
    except (binascii.Error, ValueError):
        pass
    raise invalid("Invalid page token.")

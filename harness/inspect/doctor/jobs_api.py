"""Checks that the Jobs API answers: the workspace's, or the emulator on this machine."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from harness.config.model import JobsTarget
from harness.errors import JobsApiError
from harness.inspect.doctor.findings import Finding, broken, ok
from harness.inspect.doctor.installation import Patient

_Answer = TypeVar("_Answer")


def within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """Return what a function returns; its thread is left behind when that takes too long.

    Raises:
        TimeoutError: It has not come back.
        Exception: What the function raised.
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="doctor", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answers[0]


_ABOUT = "jobs api"
_SECONDS = 20.0
_HTTP_SECONDS = 10.0
_SQLITE = b"SQLite format 3\0"


def jobs_api(patient: Patient) -> Iterator[Finding]:
    """The Jobs API answers, or will be started by the tick that needs it."""
    if patient.settings is None:
        return
    if patient.settings.jobs.target is JobsTarget.DATABRICKS:
        yield of_workspace(_reach)
    else:
        yield from _of_this_machine(patient.home.folder / "jobs-api")


def _reach() -> str:
    from harness.platform.databricks.client import ClientSettings, DatabricksJobs

    jobs = DatabricksJobs(ClientSettings(http_timeout_seconds=_HTTP_SECONDS))
    jobs.check()
    return jobs.workspace


def of_workspace(reach: Callable[[], str]) -> Finding:
    """Query a workspace, and wait for its answer for a while."""
    try:
        return ok(_ABOUT, "answers", where=within(_SECONDS, reach))
    except (JobsApiError, TimeoutError) as error:
        return broken(
            _ABOUT,
            str(error).rstrip("."),
            todo="see that DATABRICKS_HOST is right and reached from here, and that the login is "
            "good; starts without an answer are sent again with the same token",
        )


def _of_this_machine(folder: Path) -> Iterator[Finding]:
    from harness.platform.jobs_emulator.background import is_answering
    from harness.platform.jobs_emulator.folder import ApiFolder

    file = folder / "state.sqlite"
    if file.exists() and not _is_database(file):
        yield broken(
            _ABOUT,
            "its file of runs and tokens is damaged",
            where=file,
            todo="restore the state directory from the backup: without it a start that is sent "
            "again would be a second run",
        )
        return
    endpoint = ApiFolder(path=folder).read_endpoint()
    if endpoint is not None and is_answering(endpoint):
        yield ok(_ABOUT, "the local one answers", where=endpoint.host)
    else:
        yield ok(_ABOUT, "the local one does not run; a tick starts it when it needs it")


def _is_database(file: Path) -> bool:
    """Return whether a file is a database, by its head: opening it might change it."""
    head = file.read_bytes()[:32]
    # What is just being made is empty, and its first page is in the file beside it.
    return not head or head.startswith(_SQLITE)

"""Finds the local Jobs API of a state directory, or starts one in the background; sends it jobs."""

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.errors import JobsApiError
from harness.platform.clock import Clock, RealClock
from harness.platform.jobs_emulator.admin import PREFIX
from harness.platform.jobs_emulator.folder import ApiFolder, api_folder, set_aside
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.runs.processes import last_line
from harness.platform.jobs_emulator.server import Endpoint
from harness.platform.jobs_emulator.service import DEFAULT_IDLE_MINUTES
from harness.platform.spark.engine import without_engine

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS_TO_ANSWER = 5.0
_SECONDS_TO_START = 30.0
_SECONDS_BETWEEN_CHECKS = 0.05


def ensure_running(
    home: Path, *, idle_minutes: float = DEFAULT_IDLE_MINUTES, clock: Clock | None = None
) -> Endpoint:
    """Return where the local Jobs API of a state directory listens; start it if it does not.

    The server outlives this process, so that runs outlive one tick, and ends on its own when it has
    been idle for long enough and no run goes on. Any number of processes may call this at once.

    Args:
        home: The state directory.
        idle_minutes: After how many idle minutes a server started now ends.
        clock: Waits for the server.

    Raises:
        JobsApiError: The server does not start.
    """
    folder = api_folder(home)
    with folder.lock("start", wait=True):
        endpoint = folder.read_endpoint()
        if endpoint is not None and is_answering(endpoint):
            return endpoint
        return _start(folder, home, idle_minutes, clock or RealClock())


def is_answering(endpoint: Endpoint) -> bool:
    """Return whether a local Jobs API listens there and admits the token."""
    try:
        return _call(endpoint, "health", None).get("service") == "heartbeat-jobs-api"
    except JobsApiError:
        return False


def register_jobs(endpoint: Endpoint, jobs: Iterable[JobDefinition]) -> None:
    """Register jobs under their ids, or replace them; runs that go on are not touched.

    Raises:
        JobsApiError: The server does not answer, or refuses a job.
    """
    sent = [{"job_id": job.job_id, "settings": job.as_settings()} for job in jobs]
    _call(endpoint, "jobs", {"jobs": sent})


def stop_running(home: Path, *, clock: Clock | None = None) -> bool:
    """Stop the local Jobs API of a state directory and its runs; return whether there was one.

    Raises:
        JobsApiError: It does not stop.
    """
    folder = api_folder(home)
    waiting = clock or RealClock()
    with folder.lock("start", wait=True):
        endpoint = folder.read_endpoint()
        if endpoint is None or not is_answering(endpoint):
            return False
        _call(endpoint, "stop", {})
        for _ in range(int(_SECONDS_TO_START / _SECONDS_BETWEEN_CHECKS)):
            with folder.lock("serve", wait=False) as has_ended:
                if has_ended:
                    return True
            waiting.sleep(_SECONDS_BETWEEN_CHECKS)
    raise JobsApiError(f"The local Jobs API at {endpoint.host} does not stop")


def _start(folder: ApiFolder, home: Path, idle_minutes: float, clock: Clock) -> Endpoint:
    folder.forget_endpoint()
    process = _spawn(folder, home, idle_minutes)
    for _ in range(int(_SECONDS_TO_START / _SECONDS_BETWEEN_CHECKS)):
        endpoint = folder.read_endpoint()
        if endpoint is not None and is_answering(endpoint):
            # It is meant to outlive us; should it end first, it must not stay as a zombie.
            threading.Thread(target=process.wait, name="jobs-api-end", daemon=True).start()
            return endpoint
        if process.poll() is not None:
            break
        clock.sleep(_SECONDS_BETWEEN_CHECKS)
    reason = last_line(folder.log_file) or "it printed nothing"
    raise JobsApiError(f"The local Jobs API does not start ({folder.log_file}): {reason}")


def _spawn(folder: ApiFolder, home: Path, idle_minutes: float) -> "subprocess.Popen[bytes]":
    search = os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH")]))
    command = [
        sys.executable,
        "-m",
        "harness.platform.jobs_emulator",
        str(home.resolve()),
        str(idle_minutes),
    ]
    set_aside(folder.log_file)
    with folder.log_file.open("ab") as log:
        return subprocess.Popen(
            command,
            # A job has a Spark of its own.
            env={**without_engine(os.environ), "PYTHONPATH": search},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _call(endpoint: Endpoint, name: str, body: Mapping[str, object] | None) -> Mapping[str, object]:
    request = urllib.request.Request(
        f"{endpoint.host}{PREFIX}{name}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {endpoint.token}", "Content-Type": "application/json"},
    )
    # A proxy of the environment must not carry this machine's own loopback traffic.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_SECONDS_TO_ANSWER) as answer:
            content = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        reason = _message_of(error.read())
        raise JobsApiError(f"The local Jobs API at {endpoint.host} refused: {reason}") from error
    except (OSError, ValueError) as error:
        message = f"The local Jobs API at {endpoint.host} does not answer: {error}"
        raise JobsApiError(message) from error
    return content if isinstance(content, dict) else {}


def _message_of(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return "without a reason"

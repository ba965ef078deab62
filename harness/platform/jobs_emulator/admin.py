"""The private paths of the local Jobs API: its health, its jobs, and what only tests may do."""

import json
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from harness.platform.clock import Clock
from harness.platform.jobs_emulator.api.requests import whole_number
from harness.platform.jobs_emulator.api.responses import invalid, no_endpoint
from harness.platform.jobs_emulator.faults import Faults, fault_from
from harness.platform.jobs_emulator.runs.engine import Engine
from harness.platform.jobs_emulator.runs.registry import Registry

PREFIX = "/_heartbeat/"

Json = Mapping[str, object]


class MovableClock:
    """A clock that can be moved on from outside.

    Args:
        base: The clock that it is ahead of.
    """

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Return the base clock's instant and what it was moved on by."""
        return self._base.now() + self._ahead

    def sleep(self, seconds: float) -> None:
        """Wait on the base clock."""
        self._base.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Move on without waiting."""
        self._ahead += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request as it came, and how it was answered; ``status`` 0 is no answer."""

    at_ms: int
    method: str
    path: str
    fields: Json
    status: int
    fault: str | None


class RequestLog:
    """Every request since the start, for tests to count.

    Args:
        path: A file that keeps them, one JSON object a line, when the server is killed.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._requests: list[LoggedRequest] = []
        self._file = path.open("a") if path else None

    def add(self, request: LoggedRequest) -> None:
        """Add one request."""
        with self._lock:
            self._requests.append(request)
            if self._file is not None:
                self._file.write(json.dumps(asdict(request)) + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def all(self) -> list[LoggedRequest]:
        """Return all requests, oldest first."""
        with self._lock:
            return list(self._requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the private paths reach."""

    registry: Registry
    engine: Engine
    faults: Faults
    clock: MovableClock
    requests: RequestLog
    stop: Callable[[], None]


class Control:
    """Answers the private paths.

    Args:
        world: What they reach.
        for_tests: Whether faults, the clock and runs may be set from outside.
    """

    def __init__(self, world: World, *, for_tests: bool = False) -> None:
        self._world = world
        self._handlers: dict[tuple[str, str], Callable[[Json], Json]] = {
            ("GET", "health"): self._health,
            ("POST", "jobs"): self._put_jobs,
            ("POST", "stop"): self._stop,
        }
        if for_tests:
            self._handlers |= {
                ("POST", "faults"): self._add_fault,
                ("POST", "faults/clear"): self._clear_faults,
                ("POST", "clock"): self._advance_clock,
                ("POST", "runs"): self._put_run,
                ("GET", "requests"): self._requests,
            }

    def answer(self, method: str, path: str, fields: Json) -> Json:
        """Answer one request.

        Raises:
            ApiError: There is no such path, or a field is wrong.
        """
        handler = self._handlers.get((method, path.removeprefix(PREFIX)))
        if handler is None:
            no_endpoint(method, path)
        return handler(fields)

    def _health(self, _: Json) -> Json:
        active = self._world.engine.active_runs()
        return {"service": "heartbeat-jobs-api", "pid": os.getpid(), "active_runs": active}

    def _put_jobs(self, fields: Json) -> Json:
        jobs = fields.get("jobs")
        if not isinstance(jobs, list):
            raise invalid("Missing required field: jobs")
        for job in jobs:
            settings = job.get("settings") if isinstance(job, dict) else None
            if not isinstance(settings, dict):
                raise invalid("Each of jobs must be an object with job_id and settings.")
            self._world.registry.put_job(whole_number(job, "job_id"), settings)
        return {}

    def _stop(self, _: Json) -> Json:
        self._world.stop()
        return {}

    def _add_fault(self, fields: Json) -> Json:
        try:
            self._world.faults.add(fault_from(fields))
        except (TypeError, ValueError) as error:
            raise invalid(f"This is no fault: {error}.") from error
        return {}

    def _clear_faults(self, _: Json) -> Json:
        self._world.faults.clear()
        return {}

    def _advance_clock(self, fields: Json) -> Json:
        seconds = fields.get("advance_seconds")
        if not isinstance(seconds, int | float):
            raise invalid("advance_seconds must be a number.")
        self._world.clock.advance(seconds)
        return {}

    def _put_run(self, fields: Json) -> Json:
        self._world.engine.put_phase(whole_number(fields, "run_id"), fields)
        return {}

    def _requests(self, _: Json) -> Json:
        return {"requests": [asdict(request) for request in self._world.requests.all()]}

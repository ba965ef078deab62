"""The private paths of the local Jobs API: its health, its jobs and its end."""

import os
from collections.abc import Callable, Mapping

from harness.platform.jobs_emulator.api.requests import integer_field
from harness.platform.jobs_emulator.api.responses import invalid, no_endpoint
from harness.platform.jobs_emulator.runs.engine import Engine
from harness.platform.jobs_emulator.runs.registry import Registry

PREFIX = "/_heartbeat/"

Json = Mapping[str, object]


class Control:
    """Answers the private paths.

    Args:
        registry: The jobs.
        engine: The runs.
        stop: Ends the server.
    """

    def __init__(self, registry: Registry, engine: Engine, stop: Callable[[], None]) -> None:
        self._registry = registry
        self._engine = engine
        self._end = stop
        self._handlers: dict[tuple[str, str], Callable[[Json], Json]] = {
            ("GET", "health"): self._health,
            ("POST", "jobs"): self._put_jobs,
            ("POST", "stop"): self._stop,
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
        active = self._engine.active_runs()
        return {"service": "heartbeat-jobs-api", "pid": os.getpid(), "active_runs": active}

    def _put_jobs(self, fields: Json) -> Json:
        jobs = fields.get("jobs")
        if not isinstance(jobs, list):
            raise invalid("Missing required field: jobs")
        for job in jobs:
            settings = job.get("settings") if isinstance(job, dict) else None
            if not isinstance(settings, dict):
                raise invalid("Each of jobs must be an object with job_id and settings.")
            self._registry.put_job(integer_field(job, "job_id"), settings)
        return {}

    def _stop(self, _: Json) -> Json:
        self._end()
        return {}

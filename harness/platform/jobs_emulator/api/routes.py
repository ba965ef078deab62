"""Answers the requests of the Jobs API, each path with one function; no socket is involved here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.platform.jobs_emulator.api.requests import (
    flag,
    integer_field,
    optional_number,
    run_now_from,
)
from harness.platform.jobs_emulator.api.responses import (
    invalid,
    job_json,
    listed_job_json,
    no_endpoint,
    page_place,
    page_token,
    run_json,
)
from harness.platform.jobs_emulator.runs.database import RunFilter, RunRow
from harness.platform.jobs_emulator.runs.engine import Engine
from harness.platform.jobs_emulator.runs.job_settings import LOCAL
from harness.platform.jobs_emulator.runs.registry import Registry

RUNS_PER_PAGE = 25
JOBS_PER_PAGE = 100
_PREFIXES = {"/api/2.1/jobs/": "2.1", "/api/2.2/jobs/": "2.2"}

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request, its query or body read already."""

    method: str
    path: str
    #: The query of a GET, the body of a POST.
    fields: Json = field(default_factory=dict)
    version: str = "2.2"


class Routes:
    """The Jobs API of one workspace.

    Args:
        registry: Its jobs.
        engine: Its runs.
        base_url: Where a person would look at a run.
    """

    def __init__(self, registry: Registry, engine: Engine, base_url: str = "") -> None:
        self._registry = registry
        self._engine = engine
        self.base_url = base_url
        self._handlers: dict[tuple[str, str], Callable[[ApiRequest], Json]] = {
            ("POST", "create"): self._create,
            ("POST", "reset"): self._reset,
            ("POST", "update"): self._update,
            ("POST", "delete"): self._delete,
            ("GET", "get"): self._get,
            ("GET", "list"): self._list,
            ("POST", "run-now"): self._run_now,
            ("GET", "runs/get"): self._get_run,
            ("GET", "runs/get-output"): self._get_output,
            ("GET", "runs/list"): self._list_runs,
            ("POST", "runs/cancel"): self._cancel,
            ("POST", "runs/cancel-all"): self._cancel_all,
            ("POST", "runs/delete"): self._delete_run,
            ("POST", "runs/repair"): self._repair,
        }

    def answer(self, method: str, path: str, fields: Json) -> Json:
        """Answer one request.

        Raises:
            ApiError: The request is refused.
        """
        for prefix, version in _PREFIXES.items():
            handler = self._handlers.get((method, path.removeprefix(prefix)))
            if path.startswith(prefix) and handler is not None:
                return handler(ApiRequest(method=method, path=path, fields=fields, version=version))
        no_endpoint(method, path)

    def _create(self, request: ApiRequest) -> Json:
        # Since 2.2 a job queues by default; before, it skipped.
        queue = {"queue": {"enabled": request.version == "2.2"}}
        return {"job_id": self._registry.new_job({**queue, **request.fields})}

    def _reset(self, request: ApiRequest) -> Json:
        return self._change(request, keep_old=False)

    def _update(self, request: ApiRequest) -> Json:
        return self._change(request, keep_old=True)

    def _change(self, request: ApiRequest, *, keep_old: bool) -> Json:
        job = self._registry.job(integer_field(request.fields, "job_id"))
        settings = request.fields.get("new_settings")
        if not isinstance(settings, dict):
            raise invalid("Missing required field: new_settings")
        # A client without support for local commands does not remove them.
        local = {LOCAL: job.settings[LOCAL]} if LOCAL in job.settings else {}
        base = job.settings if keep_old else local
        self._registry.put_job(job.job_id, {**base, **settings})
        return {}

    def _delete(self, request: ApiRequest) -> Json:
        self._registry.delete_job(integer_field(request.fields, "job_id"))
        return {}

    def _get(self, request: ApiRequest) -> Json:
        return job_json(self._registry.job(integer_field(request.fields, "job_id")))

    def _list(self, request: ApiRequest) -> Json:
        limit = _limit(request.fields, JOBS_PER_PAGE, default=20)
        name = str(request.fields.get("name") or "").casefold()
        jobs = [
            job
            for job in self._registry.jobs()
            if not name or str(job.settings.get("name", "")).casefold() == name
        ]
        start, with_tasks = page_place(request.fields) or 0, flag(request.fields, "expand_tasks")
        page: dict[str, object] = {
            "jobs": [
                listed_job_json(job, with_tasks=with_tasks) for job in jobs[start : start + limit]
            ],
            "has_more": len(jobs) > start + limit,
        }
        if page["has_more"]:
            page["next_page_token"] = page_token(start + limit)
        return page

    def _run_now(self, request: ApiRequest) -> Json:
        run_id = self._engine.run_now(run_now_from(request.fields))
        return {"run_id": run_id, "number_in_job": run_id}

    def _get_run(self, request: ApiRequest) -> Json:
        run = self._engine.run(integer_field(request.fields, "run_id"))
        if not flag(request.fields, "include_history"):
            return self._shown(run)
        first = {"type": "ORIGINAL", "start_time": run.created_ms}
        repairs = [{"type": "REPAIR", "id": each} for each in self._engine.repairs(run.run_id)]
        return {**self._shown(run), "repair_history": [first, *repairs]}

    def _get_output(self, request: ApiRequest) -> Json:
        run = self._engine.run(integer_field(request.fields, "run_id"))
        output: dict[str, object] = {
            "metadata": self._shown(run),
            "logs": self._engine.output(run.run_id),
            "logs_truncated": False,
        }
        if run.phase.is_over and run.phase.result_state != "SUCCESS":
            output["error"] = run.phase.message
        return output

    def _list_runs(self, request: ApiRequest) -> Json:
        fields = request.fields
        limit = _limit(fields, RUNS_PER_PAGE, default=RUNS_PER_PAGE)
        only_active, only_completed = flag(fields, "active_only"), flag(fields, "completed_only")
        if only_active and only_completed:
            raise invalid("Only one of active_only and completed_only may be set.")
        wanted = RunFilter(
            job_id=optional_number(fields, "job_id"),
            is_over=only_completed if only_active or only_completed else None,
            from_ms=optional_number(fields, "start_time_from"),
            to_ms=optional_number(fields, "start_time_to"),
            before=page_place(fields),
        )
        if wanted.job_id is not None and not self._registry.assumptions.lists_deleted_jobs:
            self._registry.job(wanted.job_id)
        runs = self._engine.runs(wanted, limit + 1)
        page: dict[str, object] = {"has_more": len(runs) > limit}
        if runs:
            page["runs"] = [self._shown(run) for run in runs[:limit]]
        if page["has_more"]:
            page["next_page_token"] = page_token(runs[limit - 1].seq)
        return page

    def _cancel(self, request: ApiRequest) -> Json:
        self._engine.cancel(integer_field(request.fields, "run_id"))
        return {}

    def _cancel_all(self, request: ApiRequest) -> Json:
        self._engine.cancel_all(integer_field(request.fields, "job_id"))
        return {}

    def _delete_run(self, request: ApiRequest) -> Json:
        self._engine.delete_run(integer_field(request.fields, "run_id"))
        return {}

    def _repair(self, request: ApiRequest) -> Json:
        run_id = integer_field(request.fields, "run_id")
        latest = optional_number(request.fields, "latest_repair_id")
        return {"repair_id": self._engine.repair(run_id, latest)}

    def _shown(self, run: RunRow) -> dict[str, object]:
        return run_json(run, self._registry.find_job(run.job_id), self.base_url)


def _limit(fields: Json, most: int, *, default: int) -> int:
    limit = optional_number(fields, "limit")
    if limit is None or limit == 0:
        return default
    if not 0 < limit <= most:
        raise invalid(f"limit must be from 1 to {most}, not {limit}.")
    return limit

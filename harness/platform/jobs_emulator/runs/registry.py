"""Keeps the state of the local workspace: its jobs, and the run that each token stands for."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from harness.platform.clock import Clock
from harness.platform.jobs_emulator.api.requests import RunNow
from harness.platform.jobs_emulator.api.responses import ApiError, invalid
from harness.platform.jobs_emulator.runs.database import JobRow, Store, TokenRow
from harness.platform.jobs_emulator.runs.job_settings import job_from

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """How the API behaves where the vendor sets a limit or documents nothing."""

    active_runs: int = 2_000
    queue_hours: float = 48.0
    #: How long a token is recognized; without limit when not given.
    token_memory: timedelta | None = None
    deleted_token_code: str = "INVALID_PARAMETER_VALUE"
    #: How it reports that there is no such job or run: 400 as it does today, or 404.
    missing_status: int = 400
    #: Whether the runs of a deleted job are listed, or the job is stated not to exist.
    lists_deleted_jobs: bool = True


class Effects:
    """Receives every effect, and keeps none."""

    def add(self, at_ms: int, event: str, **facts: object) -> None:
        """Receive one effect."""

    def close(self) -> None:
        """Receive no more."""


class Registry:
    """The jobs and tokens of one workspace. Every public method may be called from any thread.

    Args:
        store: Where jobs, runs and tokens are kept.
        clock: Provides the time.
        effects: Receives every effect.
        assumptions: Limits and undocumented behaviour.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        effects: Effects | None = None,
        assumptions: Assumptions | None = None,
    ) -> None:
        self.store = store
        self.effects = effects or Effects()
        self.assumptions = assumptions or Assumptions()
        self.lock = threading.RLock()
        self.warnings: list[str] = []
        self._clock = clock

    def now_ms(self) -> int:
        """Return the present instant as the API writes instants."""
        return int(self._clock.now().timestamp() * 1000)

    def new_job(self, settings: Mapping[str, object]) -> int:
        """Register a job under a new id."""
        with self.lock:
            job_id = self.store.new_id()
            self.put_job(job_id, settings)
            return job_id

    def put_job(self, job_id: int, settings: Mapping[str, object]) -> None:
        """Register a job under a given id, or replace its settings; runs go on as they were.

        Raises:
            ApiError: A setting is wrong.
        """
        try:
            job_from(job_id, settings)
        except ValueError as error:
            raise invalid(f"Job {job_id}: {error}.") from error
        with self.lock, self.store.one_commit():
            self.store.put_job(JobRow(job_id=job_id, settings=settings, created_ms=self.now_ms()))
        self.effects.add(self.now_ms(), "job_put", job_id=job_id)

    def job(self, job_id: int) -> JobRow:
        """Return one job.

        Raises:
            ApiError: There is no such job.
        """
        found = self.find_job(job_id)
        if found is None:
            raise self.missing("Job", job_id)
        return found

    def missing(self, kind: str, number: int) -> ApiError:
        """Report that there is no such job or run."""
        message = f"{kind} {number} does not exist."
        if self.assumptions.missing_status == 404:
            return ApiError(404, "RESOURCE_DOES_NOT_EXIST", message)
        return invalid(message)

    def find_job(self, job_id: int) -> JobRow | None:
        """Return one job, or nothing."""
        with self.lock:
            return self.store.job(job_id)

    def jobs(self) -> list[JobRow]:
        """Return all jobs, newest first."""
        with self.lock:
            return list(self.store.jobs())

    def delete_job(self, job_id: int) -> None:
        """Forget a job; its runs stay."""
        self.job(job_id)
        with self.lock:
            self.store.delete_job(job_id)
        self.effects.add(self.now_ms(), "job_deleted", job_id=job_id)

    def run_of_token(self, request: RunNow) -> int | None:
        """Return the run that a request's token stands for already.

        Raises:
            ApiError: That run was deleted.
        """
        if request.token is None:
            return None
        known = self.store.token(request.job_id, request.token)
        if known is None or self._is_forgotten(known):
            return None
        if self.store.run(known.run_id) is None:
            message = f"The run {known.run_id} of this idempotency token has been deleted."
            raise ApiError(400, self.assumptions.deleted_token_code, message)
        if known.digest != request.digest:
            self.warnings.append(f"token {request.token} came again with other parameters")
            logger.warning("token %s came again with other parameters", request.token)
        repeated = {"run_id": known.run_id, "job_id": request.job_id, "token": request.token}
        self.effects.add(self.now_ms(), "run_repeated", **repeated)
        return known.run_id

    def _is_forgotten(self, token: TokenRow) -> bool:
        memory = self.assumptions.token_memory
        return memory is not None and self.now_ms() - token.used_ms > memory.total_seconds() * 1000

"""Decides what happens to the runs of the local Jobs API, independently of HTTP."""

from dataclasses import replace

from harness.platform.jobs_emulator.api.requests import RunNow
from harness.platform.jobs_emulator.api.responses import ApiError, invalid
from harness.platform.jobs_emulator.runs import states
from harness.platform.jobs_emulator.runs.database import RunFilter, RunRow, TokenRow
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition, job_from
from harness.platform.jobs_emulator.runs.launcher import Launcher
from harness.platform.jobs_emulator.runs.registry import Registry
from harness.platform.jobs_emulator.runs.states import Phase

#: As long as a workspace keeps runs: 60 days.
RETENTION_MS = 60 * 24 * 3600 * 1000


class Engine:
    """All runs of one workspace. Every public method may be called from any thread.

    Args:
        registry: The jobs, and all else that the workspace keeps.
        launcher: Runs the commands.
    """

    def __init__(self, registry: Registry, launcher: Launcher) -> None:
        self._registry = registry
        self._store = registry.store
        self._effects = registry.effects
        self._assumptions = registry.assumptions
        self._lock = registry.lock
        self._launcher = launcher
        self._is_closed = False
        launcher.listen(self._process_began, self._process_ended)
        self._bury_the_dead()

    def run_now(self, request: RunNow) -> int:
        """Start a run, or return the one that its token stands for.

        Raises:
            ApiError: There is no such job, it does not declare a parameter, its token's run was
                deleted, or the workspace is full.
        """
        with self._lock:
            self.advance()
            row = self._registry.job(request.job_id)
            known = self._registry.run_of_token(request)
            if known is not None:
                return known
            job = job_from(row.job_id, row.settings)
            _require_declared(request, job)
            run = self._admit(job, request)
            self._effects.add(
                run.created_ms,
                "run_created",
                run_id=run.run_id,
                job_id=run.job_id,
                token=run.token,
                parameters=dict(run.parameters),
                phase=run.phase.life_cycle_state,
            )
            if run.phase == states.PENDING:
                self._begin(run, job)
            return run.run_id

    def run(self, run_id: int) -> RunRow:
        """Return one run as it is now.

        Raises:
            ApiError: There is no such run.
        """
        with self._lock:
            self.advance()
            found = self._store.run(run_id)
        if found is None:
            raise self._registry.missing("Run", run_id)
        return found

    def runs(self, wanted: RunFilter, limit: int) -> list[RunRow]:
        """Return the newest runs that a filter admits."""
        with self._lock:
            self.advance()
            return self._store.runs(wanted, limit)

    def output(self, run_id: int) -> str:
        """Return the end of what a run wrote."""
        return self._launcher.output(self.run(run_id).run_id)

    def cancel(self, run_id: int) -> None:
        """Request that a run end; a run that is over does not change."""
        with self._lock:
            run = self.run(run_id)
            if run.phase.is_over or run.phase == states.TERMINATING:
                return
            self._effects.add(
                self._registry.now_ms(), "cancel_asked", run_id=run_id, job_id=run.job_id
            )
            if run.phase.waits:
                self._finish(run, states.CANCELED)
            else:
                self._store.save_run(replace(run, phase=states.TERMINATING))
                self._launcher.stop(run_id)

    def cancel_all(self, job_id: int) -> None:
        """Request that every run of a job end."""
        with self._lock:
            for run in self._store.runs_going_on(job_id):
                self.cancel(run.run_id)

    def delete_run(self, run_id: int) -> None:
        """Forget a run that is over; its token stays taken.

        Raises:
            ApiError: The run is not over.
        """
        with self._lock:
            if not self.run(run_id).phase.is_over:
                raise invalid(f"Run {run_id} is active and cannot be deleted.")
            self._store.delete_run(run_id)
        self._effects.add(self._registry.now_ms(), "run_deleted", run_id=run_id)

    def forget_old_runs(self) -> None:
        """Forget the runs that a workspace would have forgotten, with what they wrote."""
        with self._lock:
            old = self._store.forget_runs(before_ms=self._registry.now_ms() - RETENTION_MS)
        for run_id in old:
            self._launcher.forget(run_id)

    def repair(self, run_id: int, latest_repair_id: int | None) -> int:
        """Let a run that is over run once more under its own id, and return the repair's id.

        Raises:
            ApiError: There is no such run, it is not over, or another repair came before this one.
        """
        with self._lock:
            run = self.run(run_id)
            if not run.phase.is_over:
                raise invalid(f"Run {run_id} is active and cannot be repaired.")
            row = self._registry.job(run.job_id)
            repairs = self._store.repairs(run_id)
            if latest_repair_id != (repairs[-1] if repairs else None):
                raise invalid("latest_repair_id must be the id of the latest repair of the run.")
            repair_id = self._store.add_repair(run_id)
            facts = {"run_id": run_id, "job_id": run.job_id, "repair_id": repair_id}
            self._effects.add(self._registry.now_ms(), "run_repaired", **facts)
            job = job_from(row.job_id, row.settings)
            self._begin(replace(run, ended_ms=None), job)
            return repair_id

    def repairs(self, run_id: int) -> list[int]:
        """Return the ids of a run's repairs, oldest first."""
        with self._lock:
            return self._store.repairs(run_id)

    def active_runs(self) -> int:
        """Count the runs that are not over."""
        with self._lock:
            self.advance()
            return self._store.count_going_on()

    def advance(self) -> None:
        """Bring the queue to the present instant."""
        with self._lock:
            for run in self._store.runs_waiting():
                self._dequeue(run)

    def close(self) -> None:
        """Stop every process; the runs are reported as broken when the API is back."""
        with self._lock:
            self._is_closed = True
        self._launcher.close()
        with self._lock:
            self._bury_the_dead()
            self._store.close()
        self._effects.close()

    # How a run goes

    def _admit(self, job: JobDefinition, request: RunNow) -> RunRow:
        now = self._registry.now_ms()
        run = RunRow(
            run_id=self._store.new_id(),
            job_id=job.job_id,
            token=request.token,
            phase=self._first_phase(job, request),
            created_ms=now,
            parameters=request.parameters,
        )
        if run.phase.is_over:
            run = replace(run, ended_ms=now)
        with self._store.one_commit():
            run = self._store.add_run(run)
            if request.token is not None:
                token = TokenRow(run_id=run.run_id, digest=request.digest, used_ms=now)
                self._store.put_token(job.job_id, request.token, token)
        return run

    def _first_phase(self, job: JobDefinition, request: RunNow) -> Phase:
        waits = job.queue_enabled if request.queue_enabled is None else request.queue_enabled
        if job.max_concurrent_runs == 0:
            return states.SKIPPED
        if self._store.count_going_on(job.job_id) >= job.max_concurrent_runs:
            return states.QUEUED_BEHIND_JOB if waits else states.SKIPPED
        if self._is_full():
            if not waits:
                message = "The workspace has reached its limit of active runs. Try again later."
                raise ApiError(429, "RESOURCE_EXHAUSTED", message)
            return states.QUEUED_BEHIND_WORKSPACE
        return states.PENDING

    def _is_full(self) -> bool:
        return self._running(None) >= self._assumptions.active_runs

    def _running(self, job_id: int | None) -> int:
        return self._store.count_going_on(job_id, waiting_too=False)

    def _begin(self, run: RunRow, job: JobDefinition) -> None:
        run = replace(run, phase=states.PENDING, began_ms=self._registry.now_ms())
        self._store.save_run(run)
        if job.command is not None:
            self._launcher.launch(run, job)
        else:
            self._finish(run, states.SUCCEEDED)

    def _dequeue(self, run: RunRow) -> None:
        row = self._store.job(run.job_id)
        if row is None:
            self._finish(run, states.CANCELED.with_message("The job was deleted."))
        elif self._registry.now_ms() - run.created_ms > self._assumptions.queue_hours * 3_600_000:
            self._finish(run, states.QUEUE_TIMED_OUT)
        else:
            job = job_from(row.job_id, row.settings)
            has_room = self._running(job.job_id) < job.max_concurrent_runs
            if has_room and not self._is_full():
                self._begin(run, job)

    def _finish(self, run: RunRow, phase: Phase, *, at_ms: int | None = None) -> None:
        ended_ms = at_ms if at_ms is not None else self._registry.now_ms()
        self._store.save_run(replace(run, phase=phase, ended_ms=ended_ms))
        self._effects.add(
            ended_ms,
            "run_ended",
            run_id=run.run_id,
            job_id=run.job_id,
            result=phase.result_state,
            message=phase.message,
        )

    def _process_began(self, run_id: int, pid: int, born: str | None) -> None:
        with self._lock:
            run = None if self._is_closed else self._store.run(run_id)
            if run is None or run.phase.is_over:
                return
            phase = run.phase if run.phase == states.TERMINATING else states.RUNNING
            self._store.save_run(replace(run, phase=phase, pid=pid, born=born))

    def _process_ended(self, run_id: int, phase: Phase) -> None:
        with self._lock:
            if self._is_closed:
                return
            run = self._store.run(run_id)
            if run is not None and not run.phase.is_over:
                self._finish(run, phase)
            self.advance()

    def _bury_the_dead(self) -> None:
        """Report the commands that went on when the API last stopped, and end what is left."""
        for run in self._store.runs_going_on():
            if self._has_process(run):
                self._launcher.end_leftover(run)
                self._finish(run, states.BROKEN)

    def _has_process(self, run: RunRow) -> bool:
        return run.began_ms is not None


def _require_declared(request: RunNow, job: JobDefinition) -> None:
    """Refuse parameters that a job does not declare; the words of Databricks are undocumented."""
    unknown = sorted(request.parameters.keys() - set(job.parameters or ()))
    if job.parameters is not None and unknown:
        raise invalid(f"Job {job.job_id} does not define the job parameters {', '.join(unknown)}.")

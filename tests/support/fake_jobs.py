"""A Jobs API in memory, for unit tests and simulations: no socket, no process, no waiting."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from harness.errors import JobsApiError, NoSuchJobError
from harness.platform.clock import Clock
from harness.platform.databricks.api import (
    Accepted,
    JobSettings,
    NotAllowed,
    Outcome,
    Refused,
    RunNowAnswer,
    RunReport,
    Unknown,
)
from harness.platform.databricks.run_states import RunWords, outcome_of
from harness.platform.jobs_emulator.api.requests import RunNow, run_now_from
from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.runs import states
from harness.platform.jobs_emulator.runs.states import Phase
from tests.support.fake_clock import FakeClock

_PHASES: Mapping[Outcome, Phase] = {
    Outcome.SUCCEEDED: states.SUCCEEDED,
    Outcome.FAILED: states.FAILED,
    Outcome.CANCELED: states.CANCELED,
    Outcome.TIMED_OUT: states.TIMED_OUT,
    Outcome.SKIPPED: states.SKIPPED,
}
#: Past what a double can hold exactly, and odd, as the real ids may be.
_FIRST_RUN_ID = 2**53 + 1
_STEP = 7_777_778
#: All that Heartbeat may send.
EVERY = ("heartbeat_events", "heartbeat_intent_id", "heartbeat_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeRequest:
    """One run-now request as it came."""

    job_id: int
    token: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    run_id: int
    job_id: int
    phase: Phase
    started_at: datetime
    ended_at: datetime | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


class FakeJobs:
    """The ``JobsApi`` in memory. A run goes on until it is ended by hand, or as its job defines.

    Args:
        workspace: The workspace's name.
        clock: Determines when runs start and end.
    """

    def __init__(self, *, workspace: str = "fake", clock: Clock | None = None) -> None:
        self._workspace = workspace
        self._clock = clock or FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        self._endings: dict[int, Outcome | None] = {}
        self._declared: dict[int, frozenset[str]] = {}
        self._settings: dict[int, JobSettings] = {}
        self._runs: dict[int, _Run] = {}
        self._tokens: dict[tuple[int, str], int] = {}
        self._forbidden: set[int] = set()
        self._requests_to_lose = 0
        self._answers_to_lose = 0
        self._is_down = False
        self._hides_deleted_jobs = False
        self._started = 0
        #: Every run-now request, answered or not.
        self.requests: list[FakeRequest] = []
        #: The jobs whose settings were requested, answered or not.
        self.asked_settings: list[int] = []
        #: What is raised instead of an answer about a job's settings.
        self.settings_error: JobsApiError | None = None
        #: How many requests of any kind came.
        self.request_count = 0

    # What a test calls

    def add_job(
        self,
        job_id: int,
        *,
        ends_as: Outcome | None = None,
        declares: Iterable[str] = EVERY,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Add a job; with ``ends_as``, each of its runs is over as soon as it starts."""
        self._endings[job_id] = ends_as
        self._declared[job_id] = frozenset(declares)
        self._settings[job_id] = JobSettings(
            job_id=job_id,
            created_at=self._clock.now(),
            settings={"name": f"job {job_id}", **(settings or {})},
        )

    def delete_job(self, job_id: int) -> None:
        """Take a job away; its runs stay."""
        del self._endings[job_id]

    def hide_deleted_jobs(self) -> None:
        """Report that a deleted job does not exist, where its runs are requested."""
        self._hides_deleted_jobs = True

    def forbid(self, job_id: int) -> None:
        """Take away the permission to run a job."""
        self._forbidden.add(job_id)

    def lose_requests(self, count: int = 1) -> None:
        """Let the next run-now requests go wrong before they take effect."""
        self._requests_to_lose = count

    def lose_answers(self, count: int = 1) -> None:
        """Let the next run-now requests take effect, and lose their answers."""
        self._answers_to_lose = count

    def go_down(self, *, is_down: bool = True) -> None:
        """Stop answering anything, or begin again."""
        self._is_down = is_down

    def start_by_hand(self, job_id: int) -> int:
        """Start a run as a person would in the workspace, and return its id."""
        return self._start(job_id, {}).run_id

    def end_run(self, run_id: int, outcome: Outcome, message: str = "") -> None:
        """End a run; ``LOST`` removes it from the API."""
        if outcome is Outcome.LOST:
            del self._runs[run_id]
            return
        run = self._runs[run_id]
        phase = _PHASES[outcome].with_message(message or _PHASES[outcome].message)
        self._runs[run_id] = replace(run, phase=phase, ended_at=self._clock.now())

    def put_phase(self, run_id: int, phase: Phase) -> None:
        """Set a run's state to any words at all."""
        self._runs[run_id] = replace(self._runs[run_id], phase=phase)

    def runs_of(self, job_id: int) -> list[int]:
        """Return the ids of the runs of a job, oldest first."""
        return [run.run_id for run in self._runs.values() if run.job_id == job_id]

    # What the harness calls

    @property
    def workspace(self) -> str:
        """Name the workspace."""
        return self._workspace

    def run_now(self, *, job_id: int, token: str, parameters: Mapping[str, str]) -> RunNowAnswer:
        """Start a run of the job under an idempotency token, or get the one that exists."""
        self.request_count += 1
        request = FakeRequest(job_id=job_id, token=token, parameters=dict(parameters))
        self.requests.append(request)
        if self._is_down or self._requests_to_lose > 0:
            self._requests_to_lose = max(0, self._requests_to_lose - 1)
            return Unknown(message="the request was lost")
        answer = self._answer(request)
        if self._answers_to_lose > 0:
            self._answers_to_lose -= 1
            return Unknown(message="the answer was lost")
        return answer

    def declared_parameters(self, job_id: int) -> frozenset[str] | None:
        """Return the names of the job parameters that a job declares."""
        self.asked_settings.append(job_id)
        self._count()
        if self.settings_error is not None:
            raise self.settings_error
        if job_id not in self._endings:
            raise NoSuchJobError(f"The Jobs API has no job {job_id}")
        return self._declared[job_id]

    def get_run(self, run_id: int) -> RunReport | None:
        """Report on one run; ``None`` when there is none."""
        self._count()
        run = self._runs.get(run_id)
        return _report(run) if run else None

    def list_runs(self, job_id: int, *, since: datetime | None = None) -> Iterator[RunReport]:
        """Report on the runs of a job, newest first."""
        self._count()
        if self._hides_deleted_jobs and job_id not in self._endings:
            raise NoSuchJobError(f"The Jobs API has no job {job_id}")
        for run in reversed(list(self._runs.values())):
            if run.job_id == job_id and (since is None or run.started_at >= since):
                yield _report(run)

    def list_jobs(self) -> Iterator[JobSettings]:
        """Report on all jobs, newest first."""
        self._count()
        yield from [self._settings[job_id] for job_id in reversed(self._endings)]

    def cancel_run(self, run_id: int) -> None:
        """Cancel a run; one that is over stays as it is."""
        self._count()
        if run_id not in self._runs:
            raise JobsApiError(f"Run {run_id} was not cancelled: it does not exist")
        if not self._runs[run_id].phase.is_over:
            self.end_run(run_id, Outcome.CANCELED)

    def _count(self) -> None:
        self.request_count += 1
        if self._is_down:
            raise JobsApiError("The Jobs API does not answer")

    def _answer(self, request: FakeRequest) -> RunNowAnswer:
        if request.job_id in self._forbidden:
            return NotAllowed(message=f"no permission to run job {request.job_id}")
        body = {
            "job_id": request.job_id,
            "idempotency_token": request.token,
            "job_parameters": dict(request.parameters),
        }
        try:
            return Accepted(run_id=self._run_for(run_now_from(body)))
        except ApiError as error:
            return Refused(error_code=error.error_code, message=error.message)

    def _run_for(self, request: RunNow) -> int:
        if request.job_id not in self._endings:
            message = f"Job {request.job_id} does not exist."
            raise ApiError(400, "INVALID_PARAMETER_VALUE", message)
        key = (request.job_id, request.token or "")
        known = self._tokens.get(key)
        if known is None:
            unknown = sorted(request.parameters.keys() - self._declared[request.job_id])
            if unknown:
                names = ", ".join(unknown)
                message = f"Job {request.job_id} does not define the job parameters {names}."
                raise ApiError(400, "INVALID_PARAMETER_VALUE", message)
            started = self._start(request.job_id, request.parameters)
            known = self._tokens[key] = started.run_id
        if known not in self._runs:
            message = f"The run {known} of this idempotency token has been deleted."
            raise ApiError(400, "INVALID_PARAMETER_VALUE", message)
        return known

    def _start(self, job_id: int, parameters: Mapping[str, str]) -> _Run:
        self._started += 1
        run = _Run(
            run_id=_FIRST_RUN_ID + _STEP * self._started,
            job_id=job_id,
            phase=states.RUNNING,
            started_at=self._clock.now(),
            parameters=parameters,
        )
        self._runs[run.run_id] = run
        ending = self._endings.get(job_id)
        if ending is not None:
            self.end_run(run.run_id, ending)
        return run


def _report(run: _Run) -> RunReport:
    words = RunWords(
        life_cycle_state=run.phase.life_cycle_state,
        result_state=run.phase.result_state,
        state=run.phase.state,
        termination_code=run.phase.code,
        termination_type=run.phase.type,
        message=run.phase.message or None,
    )
    return RunReport(
        run_id=run.run_id,
        job_id=run.job_id,
        outcome=outcome_of(words),
        life_cycle_state=words.life_cycle_state,
        result_state=words.result_state,
        state=words.state,
        termination_code=words.termination_code,
        message=words.message,
        started_at=run.started_at,
        ended_at=run.ended_at,
        parameters=run.parameters,
    )

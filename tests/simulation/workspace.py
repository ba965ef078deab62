"""The local Jobs API without a socket: its own routes and engine, behind the real SDK's transport."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from urllib.parse import parse_qsl, urlsplit

import requests
from requests.adapters import BaseAdapter

from harness.platform.databricks.api import Outcome
from harness.platform.databricks.client import ClientSettings, DatabricksJobs, connect
from harness.platform.databricks.run_states import OUTCOME_OF_RESULT, RunWords, outcome_of
from harness.platform.jobs_emulator.api.requests import RunNow
from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.api.routes import Routes
from harness.platform.jobs_emulator.runs.database import RunFilter, RunRow, Store
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.runs.registry import Assumptions, Effects, Registry
from tests.simulation.fate import Fate
from tests.simulation.problem import RUN_NOW, Problem, draw, misbehave, response
from tests.simulation.record import Request
from tests.support.fake_clock import FakeClock
from tests.support.jobs_emulator.scripts import (
    ScriptedEngine,
    ScriptedJob,
    ScriptedRegistry,
    phase_from,
)

#: The port of nobody: whatever is not caught by the adapter is refused at once.
_HOST = "http://127.0.0.1:9"


class _SeededIds(Store):
    """Gives out ids like the real ones, the same at every repetition."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    def new_id(self) -> int:
        return 2**53 + self._chance.randrange(2**61) | 1


class _Told(Effects):
    """Keeps what happened in the API."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[int, str, Mapping[str, object]]] = []

    def add(self, at_ms: int, event: str, **facts: object) -> None:
        self.events.append((at_ms, event, facts))


class _NoLauncher:
    """No run is a process here; the world decides when each ends."""

    def listen(self, began: object, ended: object) -> None: ...

    def launch(self, run: RunRow, job: JobDefinition) -> None: ...

    def stop(self, run_id: int) -> None: ...

    def end_leftover(self, run: RunRow) -> None: ...

    def output(self, run_id: int) -> str:
        return ""

    def forget(self, run_id: int) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Workspace:
    """One workspace: its jobs and runs, what goes wrong on the way to it, and all that came."""

    clock: FakeClock
    fate: Fate
    chance: random.Random
    problem: Problem = field(default_factory=Problem)
    starts: list[Request] = field(default_factory=list)
    #: How each run ended, before and after each repair.
    outcomes: dict[int, set[Outcome]] = field(default_factory=dict)
    #: Returns whether a ledger has the intent of an attempt.
    is_intended: Callable[[str], bool] = lambda token: True
    history: _Told = field(default_factory=_Told)
    #: Lists leave out what a run was started with, as the API may.
    lists_tersely: bool = False
    #: How often each run was reported as missing, although it is there.
    said_unknown: Counter[int] = field(default_factory=Counter)
    _successes: dict[int, datetime] = field(default_factory=dict)
    registry: Registry = field(init=False)
    engine: ScriptedEngine = field(init=False)
    routes: Routes = field(init=False)

    def __post_init__(self) -> None:
        assumptions = Assumptions(token_memory=timedelta(days=30))
        store = _SeededIds(self.chance)
        self.registry = ScriptedRegistry(store, self.clock, self.history, assumptions)
        self.engine = ScriptedEngine(self.registry, _NoLauncher(), cancel_seconds=20.0)
        self.routes = Routes(self.registry, self.engine, _HOST)

    def put_job(self, job_id: int, *, runs_at_once: int, queues: bool) -> None:
        """Register a job whose runs go on until the world ends them."""
        job = ScriptedJob(
            job_id=job_id,
            name=f"job-{job_id}",
            script=({"phase": "RUNNING"},),
            max_concurrent_runs=runs_at_once,
            queue_enabled=queues,
        )
        self.registry.put_job(job_id, job.as_settings())

    def runs(self, job_id: int | None = None, *, is_over: bool | None = None) -> list[RunRow]:
        """Return the runs that are there, oldest first."""
        self.engine.advance()
        wanted = RunFilter(job_id=job_id, is_over=is_over)
        return list(reversed(self.registry.store.runs(wanted, 10_000)))

    def start_by_hand(self, job_id: int) -> int | None:
        """Start a run as a person would."""
        request = RunNow(job_id=job_id, token=None, parameters={}, queue_enabled=None, digest="")
        try:
            return self.engine.run_now(request)
        except ApiError:
            return None

    def put_phase(self, run_id: int, words: Mapping[str, object]) -> None:
        """Set a run's state to any words at all."""
        self.engine.put_phase(run_id, words)
        phase = phase_from(words)
        outcome = outcome_of(
            RunWords(
                life_cycle_state=phase.life_cycle_state,
                result_state=phase.result_state,
                state=phase.state,
                termination_code=phase.code,
                termination_type=phase.type,
            )
        )
        if outcome is not None:
            self.outcomes.setdefault(run_id, set()).add(outcome)
        if outcome is Outcome.SUCCEEDED:
            self._successes[run_id] = self.clock.now()

    def last_successes(self) -> Mapping[int, datetime]:
        """Return when each run succeeded last."""
        return self._successes

    def all_outcomes(self) -> dict[int, set[Outcome]]:
        """Return how each run ended, also those that ended by themselves or were deleted since."""
        self.engine.advance()
        reported = {run_id: set(outcomes) for run_id, outcomes in self.outcomes.items()}
        for _, event, facts in self.history.events:
            if event == "run_created" and facts["phase"] == "SKIPPED":
                reported.setdefault(_id(facts), set()).add(Outcome.SKIPPED)
            result = OUTCOME_OF_RESULT.get(str(facts.get("result")))
            if event == "run_ended" and result is not None:
                reported.setdefault(_id(facts), set()).add(result)
        return reported

    # What the transport calls

    def answer(self, method: str, url: str, body: str | None) -> requests.Response:
        """Answer one request of the SDK, or let it go wrong."""
        parts = urlsplit(url)
        fields = json.loads(body) if body else dict(parse_qsl(parts.query))
        name = f"{method} {parts.path.removeprefix('/api/2.2/jobs/')}"
        self.fate.moment(f"before {name}")
        fault, has_effect = draw(name, self.problem, self.fate)
        reported = self._effect(method, parts.path, fields) if has_effect else (0, "")
        what = fault or str(reported[0])
        self.fate.note(f"  {name}: {what}{', with its effect' if fault and has_effect else ''}")
        if name == RUN_NOW:
            self._log(fields)
        self.fate.moment(f"after {name}")
        if fault == "unknown run":
            self.said_unknown[int(str(fields["run_id"]))] += 1
        if fault == "hang":
            self.clock.sleep(25)
        return response(*reported) if fault is None else misbehave(fault, reported[1], self.chance)

    def _effect(self, method: str, path: str, fields: Mapping[str, object]) -> tuple[int, str]:
        try:
            reported = self.routes.answer(method, path, fields)
            runs = reported.get("runs")
            if self.lists_tersely and isinstance(runs, list):
                for run in runs:
                    run.pop("job_parameters", None)
            return 200, json.dumps(reported)
        except ApiError as error:
            output = {"error_code": error.error_code, "message": error.message}
            return error.status, json.dumps(output)

    def _log(self, fields: Mapping[str, object]) -> None:
        parameters = fields.get("job_parameters")
        assert isinstance(parameters, dict)
        attempt_token = str(parameters.get("heartbeat_token"))
        token = fields.get("idempotency_token")
        self.starts.append(
            Request(
                job_id=int(str(fields["job_id"])),
                attempt_token=attempt_token,
                token=str(token) if token else None,
                body=json.dumps(fields, sort_keys=True),
                was_intended=self.is_intended(attempt_token),
            )
        )


def _id(facts: Mapping[str, object]) -> int:
    return int(str(facts["run_id"]))


class _Transport(BaseAdapter):
    """Passes the SDK's requests to a workspace of this process, one workspace after the other."""

    workspace: Workspace | None = None

    def send(self, request: requests.PreparedRequest, **_: object) -> requests.Response:  # type: ignore[override]
        assert self.workspace is not None and request.method and request.url
        body = request.body.decode() if isinstance(request.body, bytes) else request.body
        answer = self.workspace.answer(request.method, request.url, body)
        answer.request, answer.url = request, request.url
        return answer

    def close(self) -> None: ...


@cache
def _client() -> tuple[DatabricksJobs, _Transport]:
    """Make the one client of the process: what is tested is stateless, and slow to make."""
    settings = ClientSettings(host=_HOST, token="token", workspace="simulated")
    client, transport = connect(settings), _Transport()
    client.api_client._api_client._session.mount("http://", transport)
    # A login that is renewed goes to the same place.
    return DatabricksJobs(settings, login=lambda _: client), transport


def client_of(workspace: Workspace) -> DatabricksJobs:
    """Return the client over the real SDK, bound to a workspace."""
    jobs, transport = _client()
    transport.workspace = workspace
    return jobs

"""A service principal that starts, follows and reads secrets, by OAuth through the real SDK."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.config.secrets import EnvironmentSecrets, SecretReference
from harness.config.workspace_secrets import WorkspaceSecrets
from harness.errors import ConfigurationError, JobsApiError, ThrottledError
from harness.fire.intents import Start, fire
from harness.fire.parameters import DeclaredParameters
from harness.fire.submit import Steps
from harness.platform.databricks.api import Accepted, Refused
from harness.platform.databricks.client import DatabricksJobs
from harness.settle.settle import settle
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Tick
from tests.support.fake_clock import FakeClock
from tests.support.following import firing_of
from tests.support.jobs_emulator.faults import Fault, FaultKind, When
from tests.support.jobs_emulator.logins import TOKEN_PATH
from tests.support.jobs_emulator.scripts import Script, ScriptedJob
from tests.support.jobs_emulator.server import ControlledServer, ControlledSettings
from tests.support.ledgers import ORDERS, event
from tests.support.memory_store import MemoryStore

AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
JOB = 2**53 + 1
SECRET = "very-secret-indeed"
#: A token that the SDK renews before each request, since so short a life is nearly over.
BRIEFLY = 5.0
RUNS_FOR_A_MINUTE: Script = ({"phase": "RUNNING", "seconds": 60}, {"phase": "SUCCESS"})


class Workspace:
    """A workspace, and one installation in memory that ticks against it."""

    def __init__(self, server: ControlledServer) -> None:
        self.server = server
        self.store = MemoryStore()
        self.store.append(Ledger.EVENTS, [event(1, AT, ORDERS, "1")])
        self.parameters = DeclaredParameters()
        self.jobs = DatabricksJobs()
        self.ticks = 1

    def put_job(self, declares: tuple[str, ...], **more: object) -> None:
        job = ScriptedJob(job_id=JOB, name="daily", script=RUNS_FOR_A_MINUTE, parameters=declares)
        self.server.put_job(replace(job, **more))  # type: ignore[arg-type]

    def tick(self) -> Tick:
        self.ticks += 1
        return Tick(number=self.ticks, at=self.server.clock.now())

    def fire(self) -> Run:
        consumed = (Consumed(upstream_id=ORDERS, from_tick=0, through_tick=1),)
        start = Start(job_id=JOB, job_name="daily", intent_id="one", attempt=1, consumed=consumed)
        tick = self.tick()
        firing = replace(
            firing_of(self.jobs, at=tick.at, store=self.store), parameters=self.parameters
        )
        (row,) = fire([start], tick=tick, firing=firing, steps=Steps())
        return row

    def settle(self, run: Run) -> tuple[list[Run], dict[int, str]]:
        tick = self.tick()
        firing = replace(
            firing_of(self.jobs, at=tick.at, store=self.store), parameters=self.parameters
        )
        settled = settle([run], [], tick=tick, firing=firing, steps=Steps())
        return [*settled.rows], dict(settled.unanswered)

    def requests(self, part: str) -> list[int]:
        return [each.status for each in self.server.requests.all() if part in each.path]

    @property
    def sent(self) -> list[object]:
        return [
            each.fields.get("job_parameters")
            for each in self.server.requests.all()
            if each.path.endswith("run-now")
        ]


def server_of(login_seconds: float) -> ControlledServer:
    return ControlledServer(
        ControlledSettings(
            clients={"heartbeat": SECRET},
            login_seconds=login_seconds,
            secrets={("shop", "kafka"): b"the password"},
            readers={"shop": frozenset({"heartbeat"}), "hr": frozenset()},
        ),
        clock=FakeClock(AT),
    )


@pytest.fixture(params=["environment", "profile"])
def login(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[ControlledServer]:
    """A workspace that the environment or a profile logs in to."""
    for name in ("TOKEN", "CLIENT_ID", "CLIENT_SECRET", "HOST", "CONFIG_PROFILE"):
        monkeypatch.delenv(f"DATABRICKS_{name}", raising=False)
    with server_of(BRIEFLY) as server:
        keys = {"host": server.endpoint.host, "client_id": "heartbeat", "client_secret": SECRET}
        if request.param == "environment":
            for name, value in keys.items():
                monkeypatch.setenv(f"DATABRICKS_{name.upper()}", value)
        else:
            profile = "".join(f"{name} = {value}\n" for name, value in keys.items())
            file = tmp_path / ".databrickscfg"
            file.write_text(f"[shop]\n{profile}auth_type = oauth-m2m\n")
            monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(file))
            monkeypatch.setenv("DATABRICKS_CONFIG_PROFILE", "shop")
        yield server


def test_a_principal_whose_token_expires_between_ticks_starts_and_follows_one_run(
    login: ControlledServer,
) -> None:
    workspace = Workspace(login)
    workspace.put_job(declares=())
    started = workspace.fire()
    assert started.run_status is RunStatus.STARTED
    assert (workspace.sent, json.loads(started.parameters)) == ([None], {})

    login.clock.advance(BRIEFLY + 1)
    assert workspace.settle(started) == ([], {})
    login.clock.advance(60)
    ((ended,), _) = workspace.settle(started)
    assert (ended.run_status, ended.run_id) == (RunStatus.SUCCEEDED, started.run_id)
    assert 401 not in workspace.requests("/api/")
    assert len(workspace.requests(TOKEN_PATH)) >= 3
    assert len(workspace.requests("run-now")) == 1


def test_secrets_are_read_with_the_same_login_where_the_scope_admits_it(
    login: ControlledServer,
) -> None:
    secrets = WorkspaceSecrets(EnvironmentSecrets({}))

    def value(reference: str) -> str:
        return SecretReference.parse(reference).resolve(secrets).get_secret_value()

    assert value("secret:shop/kafka") == "the password"
    login.clock.advance(BRIEFLY + 1)
    assert value("secret:shop/kafka") == "the password"
    with pytest.raises(ConfigurationError, match="grant READ on the scope hr"):
        value("secret:hr/salaries")
    with pytest.raises(ConfigurationError, match="has no secret:shop/missing"):
        value("secret:shop/missing")


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose tokens last for an hour."""
    for name in ("TOKEN", "CONFIG_PROFILE"):
        monkeypatch.delenv(f"DATABRICKS_{name}", raising=False)
    with server_of(3600) as server:
        monkeypatch.setenv("DATABRICKS_HOST", server.endpoint.host)
        monkeypatch.setenv("DATABRICKS_CLIENT_ID", "heartbeat")
        monkeypatch.setenv("DATABRICKS_CLIENT_SECRET", SECRET)
        yield Workspace(server)


def test_a_login_that_is_revoked_is_renewed_for_the_next_tick(workspace: Workspace) -> None:
    workspace.put_job(declares=("heartbeat_token",))
    started = workspace.fire()
    secrets = WorkspaceSecrets(EnvironmentSecrets({}))
    reference = SecretReference.parse("secret:shop/kafka")
    assert reference.resolve(secrets)
    workspace.server.logins.revoke_all()

    rows, unanswered = workspace.settle(started)
    assert (rows, list(unanswered)) == ([], [JOB])
    assert workspace.settle(started) == ([], {})
    with pytest.raises(ConfigurationError, match="cannot be fetched"):
        reference.resolve(secrets)
    assert reference.resolve(secrets).get_secret_value() == "the password"


def test_a_start_waits_while_the_job_cannot_be_read_and_starts_one_run_afterwards(
    workspace: Workspace,
) -> None:
    workspace.put_job(declares=("heartbeat_events",))
    for status, headers in ((429, {"Retry-After": "30"}), (503, {}), (403, {})):
        fault = Fault(
            match="jobs/get",
            kind=FaultKind.STATUS,
            status=status,
            headers=headers,
            when=When.BEFORE,
        )
        workspace.server.faults.add(fault)
        with pytest.raises(JobsApiError) as caught:
            workspace.jobs.declared_parameters(JOB)
        assert isinstance(caught.value, ThrottledError) == (status == 429)
        workspace.server.faults.clear()
    workspace.server.faults.add(Fault(match="jobs/get", kind=FaultKind.RESET))
    waiting = workspace.fire()
    assert (waiting.run_status, workspace.sent) == (RunStatus.INTENDED, [])

    ((started,), _) = workspace.settle(waiting)
    assert started.run_status is RunStatus.STARTED
    (sent,) = workspace.sent
    assert isinstance(sent, dict) and list(sent) == ["heartbeat_events"]


def test_an_api_without_that_question_is_sent_everything(workspace: Workspace) -> None:
    workspace.put_job(declares=("heartbeat_events", "heartbeat_intent_id", "heartbeat_token"))
    body = '{"error_code": "ENDPOINT_NOT_FOUND", "message": "No API found"}'
    fault = Fault(match="jobs/get", kind=FaultKind.STATUS, status=404, body=body, when=When.BEFORE)
    workspace.server.faults.add(fault)
    assert workspace.fire().run_status is RunStatus.STARTED
    (sent,) = workspace.sent
    assert isinstance(sent, dict) and len(sent) == 3


@pytest.mark.parametrize("queue", [True, False])
def test_a_start_of_a_job_that_runs_already_is_queued_or_skipped(
    workspace: Workspace, queue: bool
) -> None:
    workspace.put_job(declares=(), queue_enabled=queue)
    by_hand = workspace.jobs.run_now(job_id=JOB, token="by hand", parameters={})
    assert isinstance(by_hand, Accepted)
    started = workspace.fire()
    assert started.run_status is RunStatus.STARTED
    ((row,), _) = workspace.settle(started)
    if not queue:
        assert (row.run_status, row.life_cycle_state) == (RunStatus.SKIPPED, "SKIPPED")
        assert row.termination_code == "MAX_CONCURRENT_RUNS_EXCEEDED"
        assert row.holds_job
        return
    assert (row.run_status, row.state) == (RunStatus.STARTED, "QUEUED")
    assert "maximum concurrent runs" in (row.message or "")
    workspace.server.clock.advance(61)
    ((running,), _) = workspace.settle(row)
    assert (running.run_status, running.state) == (RunStatus.STARTED, None)
    workspace.server.clock.advance(61)
    ((ended,), _) = workspace.settle(running)
    assert (ended.run_status, ended.run_id) == (RunStatus.SUCCEEDED, started.run_id)


def test_a_start_that_waits_in_the_queue_for_too_long_is_skipped_and_holds_its_job(
    workspace: Workspace,
) -> None:
    script = ({"phase": "RUNNING", "seconds": 10**6},)
    workspace.put_job(declares=(), script=script)
    assert isinstance(workspace.jobs.run_now(job_id=JOB, token="by hand", parameters={}), Accepted)
    started = workspace.fire()
    workspace.server.clock.advance(48 * 3600 + 1)
    # The login has ended as well, which this tick finds out.
    assert list(workspace.settle(started)[1]) == [JOB]
    ((row,), _) = workspace.settle(started)
    assert (row.run_status, row.holds_job) == (RunStatus.SKIPPED, True)
    assert "48 hours" in (row.message or "")


def test_a_wrong_secret_of_a_principal_is_no_answer_to_a_start(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.put_job(declares=())
    monkeypatch.setenv("DATABRICKS_CLIENT_SECRET", "wrong")
    with pytest.raises(JobsApiError):
        DatabricksJobs().cancel_run(1)
    answer = DatabricksJobs().run_now(job_id=JOB, token="t", parameters={})
    assert not isinstance(answer, Accepted)
    assert not isinstance(answer, Refused)

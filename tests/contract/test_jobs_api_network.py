"""What the way to the Jobs API, and the local one on demand, can do to a request of the real SDK."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import InvalidParameterValue, NotFound

from harness.errors import JobsApiError
from harness.platform.databricks.api import (
    Accepted,
    NotAllowed,
    Outcome,
    Refused,
    RunNowAnswer,
    Unknown,
)
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from harness.platform.jobs_emulator.runs.registry import Assumptions
from tests.support.jobs_emulator.faults import Fault, FaultKind, When
from tests.support.jobs_emulator.http import LOGIN_PATH
from tests.support.jobs_emulator.scripts import ScriptedJob
from tests.support.jobs_emulator.server import ControlledServer, ControlledSettings

JOB = ScriptedJob(job_id=1, name="job", script=({"phase": "FAILED"},), max_concurrent_runs=1000)


@pytest.fixture
def server() -> Iterator[ControlledServer]:
    with ControlledServer() as made:
        made.put_job(JOB)
        yield made


def client(server: ControlledServer, *, http_timeout_seconds: float = 25.0) -> DatabricksJobs:
    endpoint = server.endpoint
    return DatabricksJobs(
        ClientSettings(
            host=endpoint.host, token=endpoint.token, http_timeout_seconds=http_timeout_seconds
        )
    )


@pytest.fixture
def jobs(server: ControlledServer) -> DatabricksJobs:
    return client(server)


def run_now(jobs: DatabricksJobs, token: str = "t") -> RunNowAnswer:
    return jobs.run_now(job_id=1, token=token, parameters={})


def started(server: ControlledServer) -> int:
    return len(list(client(server).list_runs(1)))


def run_now_requests(server: ControlledServer) -> int:
    return sum(each.path.endswith("run-now") for each in server.requests.all())


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("there", [LOGIN_PATH, "/api/2.2/jobs/run-now"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_no_answer_and_one_request_and_the_same_token_finds_what_was_started(
    server: ControlledServer, jobs: DatabricksJobs, status: int, there: str, when: When
) -> None:
    headers = {"Location": there}
    fault = Fault(
        match="run-now", kind=FaultKind.REDIRECT, status=status, headers=headers, when=when
    )
    server.faults.add(fault)
    assert isinstance(run_now(jobs), NotAllowed)
    assert run_now_requests(server) == 1
    assert started(server) == (1 if when is When.AFTER else 0)
    assert isinstance(run_now(jobs), Accepted)
    assert started(server) == 1


def test_a_lookup_of_a_run_that_ends_at_a_page_to_log_in_proves_nothing_about_it(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    answer = run_now(jobs)
    assert isinstance(answer, Accepted)
    server.faults.add(Fault(match="runs/get", kind=FaultKind.REDIRECT))
    with pytest.raises(JobsApiError):
        jobs.get_run(answer.run_id)


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.EOF, FaultKind.TRUNCATE])
def test_a_lookup_of_a_run_whose_answer_breaks_off_proves_nothing_about_it(
    server: ControlledServer, jobs: DatabricksJobs, kind: FaultKind
) -> None:
    answer = run_now(jobs)
    assert isinstance(answer, Accepted)
    server.faults.add(Fault(match="runs/get", kind=kind))
    with pytest.raises(JobsApiError):
        jobs.get_run(answer.run_id)


@pytest.mark.parametrize("when", list(When))
def test_an_api_that_hangs_is_unknown_and_the_same_token_finds_what_was_started(
    server: ControlledServer, jobs: DatabricksJobs, when: When
) -> None:
    hasty = client(server, http_timeout_seconds=0.2)
    server.faults.add(Fault(match="run-now", kind=FaultKind.HANG, delay=60, when=when))
    assert isinstance(run_now(hasty), Unknown)
    assert isinstance(run_now(jobs), Accepted)
    assert started(server) == 1


def test_an_answer_that_is_slow_and_in_time_is_an_answer(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.SLOW, delay=0.3))
    assert isinstance(run_now(jobs), Accepted)


def test_an_answer_that_is_too_slow_is_unknown_and_the_run_is_there(
    server: ControlledServer,
) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.SLOW, delay=60))
    assert isinstance(run_now(client(server, http_timeout_seconds=0.2)), Unknown)
    assert started(server) == 1


@pytest.mark.parametrize("wait", [None, "0", "2", "3600", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_request_that_is_turned_away_for_now_is_unknown_and_one_request(
    server: ControlledServer, jobs: DatabricksJobs, wait: str | None
) -> None:
    headers = {} if wait is None else {"Retry-After": wait}
    fault = Fault(
        match="run-now", kind=FaultKind.STATUS, status=429, headers=headers, when=When.BEFORE
    )
    server.faults.add(fault)
    assert isinstance(run_now(jobs), Unknown)
    assert [each.status for each in server.requests.all() if "run-now" in each.path] == [0]
    assert started(server) == 0


def test_a_refusal_is_worded_as_today_or_with_404_and_is_a_refusal_both_ways() -> None:
    words = set()
    for status, error in ((400, InvalidParameterValue), (404, NotFound)):
        assumptions = Assumptions(missing_status=status)
        with ControlledServer(ControlledSettings(assumptions=assumptions)) as server:
            endpoint = server.endpoint
            sdk = WorkspaceClient(host=endpoint.host, token=endpoint.token, auth_type="pat")
            with pytest.raises(error):
                sdk.jobs.cancel_run(7)
            answer = run_now(client(server))
            assert isinstance(answer, Refused)
            assert client(server).get_run(7) is None
            words.add(answer.message)
    assert len(words) == 1


def test_a_run_that_is_repaired_keeps_its_id_and_runs_once_more(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    endpoint = server.endpoint
    sdk = WorkspaceClient(host=endpoint.host, token=endpoint.token, auth_type="pat")
    answer = run_now(jobs)
    assert isinstance(answer, Accepted)
    server.put_job(ScriptedJob(job_id=1, name="job", script=({"phase": "SUCCESS"},)))

    repair = sdk.jobs.repair_run(answer.run_id, rerun_all_failed_tasks=True).response

    report = jobs.get_run(answer.run_id)
    assert report is not None
    assert report.outcome is Outcome.SUCCEEDED
    history = sdk.jobs.get_run(answer.run_id, include_history=True).repair_history
    assert history is not None
    assert [each.id for each in history] == [None, repair.repair_id]


def test_a_repair_that_does_not_name_the_one_before_is_refused(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    endpoint = server.endpoint
    sdk = WorkspaceClient(host=endpoint.host, token=endpoint.token, auth_type="pat")
    answer = run_now(jobs)
    assert isinstance(answer, Accepted)
    first = sdk.jobs.repair_run(answer.run_id).response.repair_id
    with pytest.raises(InvalidParameterValue, match="latest_repair_id"):
        sdk.jobs.repair_run(answer.run_id)
    sdk.jobs.repair_run(answer.run_id, latest_repair_id=first)
    with pytest.raises(InvalidParameterValue, match="is active"):
        going_on = ScriptedJob(job_id=2, name="other", script=({"phase": "RUNNING"},))
        server.put_job(going_on)
        other = jobs.run_now(job_id=2, token="t", parameters={})
        assert isinstance(other, Accepted)
        sdk.jobs.repair_run(other.run_id)


def test_the_log_of_requests_outlives_the_server_with_time_fault_and_body(tmp_path: Path) -> None:
    settings = ControlledSettings(folder=tmp_path)
    with ControlledServer(settings) as server:
        server.put_job(JOB)
        server.faults.add(Fault(match="run-now", kind=FaultKind.RESET, when=When.BEFORE))
        run_now(client(server))
        run_now(client(server))
        # It is there before the server ends: the server may be killed, too.
        lines = (tmp_path / "requests.jsonl").read_text().splitlines()
    requests = [each for each in map(json.loads, lines) if each["path"].endswith("run-now")]
    assert [(each["status"], each["fault"]) for each in requests] == [(0, "reset"), (200, None)]
    assert {each["fields"]["idempotency_token"] for each in requests} == {"t"}
    assert requests[0]["at_ms"] <= requests[1]["at_ms"]


def test_a_client_that_was_sent_to_log_in_finds_a_page_there(server: ControlledServer) -> None:
    import urllib.request

    with urllib.request.urlopen(f"{server.endpoint.host}{LOGIN_PATH}") as page:
        assert page.headers["Content-Type"] == "text/html"
        assert b"sign in" in page.read()


def test_a_client_logs_in_for_a_while_and_is_no_longer_known_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = ControlledSettings(clients={"heartbeat": "very secret"}, login_seconds=600)
    with ControlledServer(settings) as server:
        server.put_job(JOB)
        monkeypatch.setenv("DATABRICKS_HOST", server.endpoint.host)
        monkeypatch.setenv("DATABRICKS_CLIENT_ID", "heartbeat")
        monkeypatch.setenv("DATABRICKS_CLIENT_SECRET", "very secret")
        monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
        jobs = DatabricksJobs()
        assert isinstance(run_now(jobs), Accepted)
        server.clock.advance(601)
        assert isinstance(run_now(jobs), NotAllowed)
        assert isinstance(run_now(DatabricksJobs()), Accepted)
        monkeypatch.setenv("DATABRICKS_CLIENT_SECRET", "wrong")
        with pytest.raises(JobsApiError):
            DatabricksJobs().cancel_run(1)
        assert "very secret" not in repr(settings)

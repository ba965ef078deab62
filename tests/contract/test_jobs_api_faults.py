"""The client over the real SDK, when the Jobs API or the way to it goes wrong."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.errors import JobsApiError, NoSuchJobError, UnreportedRunsError
from harness.platform.clock import RealClock
from harness.platform.databricks.answers import LONGEST_WAIT_SECONDS
from harness.platform.databricks.api import (
    Accepted,
    NotAllowed,
    Outcome,
    Refused,
    RunNowAnswer,
    Unknown,
)
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from tests.support.jobs_emulator.faults import Fault, FaultKind, When
from tests.support.jobs_emulator.scripts import ScriptedJob
from tests.support.jobs_emulator.server import ControlledServer, ControlledSettings

JOB = ScriptedJob(job_id=1, name="job", script=({"phase": "RUNNING"},), max_concurrent_runs=1000)


@pytest.fixture
def server() -> Iterator[ControlledServer]:
    with ControlledServer() as made:
        made.put_job(JOB)
        yield made


@pytest.fixture
def jobs(server: ControlledServer) -> DatabricksJobs:
    return client(server)


def client(server: ControlledServer, **more: object) -> DatabricksJobs:
    endpoint = server.endpoint
    return DatabricksJobs(
        ClientSettings(host=endpoint.host, token=endpoint.token, **more)  # type: ignore[arg-type]
    )


def run_now(jobs: DatabricksJobs) -> RunNowAnswer:
    return jobs.run_now(job_id=1, token="t", parameters={})


def run_now_statuses(server: ControlledServer) -> list[int]:
    return [r.status for r in server.requests.all() if r.path.endswith("run-now")]


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("status", [408, 409, 429, 500, 501, 502, 503, 504, 520])
def test_a_passing_status_is_unknown_and_one_request(
    server: ControlledServer, jobs: DatabricksJobs, status: int, when: When
) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.STATUS, status=status, when=when))
    assert isinstance(run_now(jobs), Unknown)
    assert len(run_now_statuses(server)) == 1


@pytest.mark.parametrize("when", list(When))
@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.EOF, FaultKind.HTML])
def test_an_answer_that_is_none_is_unknown_and_one_request(
    server: ControlledServer, jobs: DatabricksJobs, kind: FaultKind, when: When
) -> None:
    server.faults.add(Fault(match="run-now", kind=kind, when=when))
    assert isinstance(run_now(jobs), Unknown)
    assert len(run_now_statuses(server)) == 1


def test_half_an_answer_is_unknown(server: ControlledServer, jobs: DatabricksJobs) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.TRUNCATE))
    assert isinstance(run_now(jobs), Unknown)


def test_an_answer_that_does_not_come_in_time_is_unknown(server: ControlledServer) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.HANG, delay=60))
    assert isinstance(run_now(client(server, http_timeout_seconds=0.2)), Unknown)


@pytest.mark.parametrize(
    "body", ["{}", "", "[]", "null", '{"run_id": 9007199254740993.0}', '{"run_id": null}', "12"]
)
def test_a_200_without_an_exact_run_id_is_unknown(
    server: ControlledServer, jobs: DatabricksJobs, body: str
) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.STATUS, status=200, body=body))
    assert isinstance(run_now(jobs), Unknown)


def test_a_run_id_in_digits_is_accepted(server: ControlledServer, jobs: DatabricksJobs) -> None:
    body = '{"run_id": "9007199254740993"}'
    server.faults.add(Fault(match="run-now", kind=FaultKind.STATUS, status=200, body=body))
    assert run_now(jobs) == Accepted(run_id=9007199254740993)


def test_a_long_retry_after_is_reported_and_not_slept_through(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    headers = {"Retry-After": "3600"}
    fault = Fault(match="run-now", kind=FaultKind.STATUS, status=429, headers=headers)
    server.faults.add(fault)
    answer = run_now(jobs)
    assert isinstance(answer, Unknown)
    assert answer.wait_seconds == LONGEST_WAIT_SECONDS


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_credentials_are_not_allowed(
    server: ControlledServer, jobs: DatabricksJobs, status: int
) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.STATUS, status=status))
    assert isinstance(run_now(jobs), NotAllowed)


@pytest.mark.parametrize("status", [400, 404])
def test_a_clear_no_is_a_refusal(
    server: ControlledServer, jobs: DatabricksJobs, status: int
) -> None:
    fault = Fault(match="run-now", kind=FaultKind.STATUS, status=status, when=When.BEFORE)
    server.faults.add(fault)
    assert isinstance(run_now(jobs), Refused)


def test_a_page_that_shows_404_is_no_refusal(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    page = "<html><title>404 Not Found</title></html>"
    server.faults.add(Fault(match="run-now", kind=FaultKind.STATUS, status=404, body=page))
    assert isinstance(run_now(jobs), Unknown)


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.TRUNCATE, FaultKind.HTML])
def test_after_any_lost_answer_the_same_token_finds_the_one_run(
    server: ControlledServer, jobs: DatabricksJobs, kind: FaultKind
) -> None:
    server.faults.add(Fault(match="run-now", kind=kind, times=3))
    answers = [run_now(jobs) for _ in range(4)]
    (run,) = jobs.list_runs(1)
    assert answers[-1] == Accepted(run_id=run.run_id)


def test_without_a_token_a_lost_answer_makes_two_runs(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    """The negative control: the idempotency token keeps a resend from starting a second run."""
    server.faults.add(Fault(match="run-now", kind=FaultKind.RESET))
    for _ in range(2):
        jobs.run_now(job_id=1, token="", parameters={})
    assert len(list(jobs.list_runs(1))) == 2


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_failing_lookup_of_a_run_proves_nothing_about_it(
    server: ControlledServer, jobs: DatabricksJobs, status: int
) -> None:
    answer = run_now(jobs)
    assert isinstance(answer, Accepted)
    body = '{"error_code": "ENDPOINT_NOT_FOUND", "message": "no"}' if status == 404 else None
    server.faults.add(Fault(match="runs/get", kind=FaultKind.STATUS, status=status, body=body))
    with pytest.raises(JobsApiError, match=f"run {answer.run_id}"):
        jobs.get_run(answer.run_id)


def test_a_page_that_does_not_come_is_an_error_and_not_the_end_of_the_list(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    for number in range(30):
        jobs.run_now(job_id=1, token=f"t{number}", parameters={})
    server.faults.add(Fault(match="runs/list", kind=FaultKind.RESET, offset=1))
    with pytest.raises(JobsApiError, match="did not list the runs of job 1"):
        list(jobs.list_runs(1))


@pytest.mark.parametrize("status", [400, 404])
def test_a_refusal_to_list_the_runs_of_a_missing_job_does_not_mean_that_there_are_none(
    server: ControlledServer, jobs: DatabricksJobs, status: int
) -> None:
    body = '{"error_code": "INVALID_PARAMETER_VALUE", "message": "Job 2 does not exist."}'
    server.faults.add(Fault(match="runs/list", kind=FaultKind.STATUS, status=status, body=body))
    with pytest.raises(NoSuchJobError, match="has no job 2"):
        list(jobs.list_runs(2))


@pytest.mark.parametrize("body", ["{}", ""])
def test_an_api_that_reports_nothing_at_all_of_the_runs_of_a_job_that_it_has_proves_nothing(
    server: ControlledServer, jobs: DatabricksJobs, body: str
) -> None:
    server.faults.add(Fault(match="runs/list", kind=FaultKind.STATUS, status=200, body=body))
    with pytest.raises(UnreportedRunsError, match="lists none of its runs"):
        list(jobs.list_runs(1))


def test_any_other_refusal_to_list_runs_does_not_mean_that_there_are_none(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    body = '{"error_code": "INVALID_PARAMETER_VALUE", "message": "The page does not exist."}'
    server.faults.add(Fault(match="runs/list", kind=FaultKind.STATUS, status=400, body=body))
    with pytest.raises(JobsApiError, match="did not list the runs of job 2"):
        list(jobs.list_runs(2))


def test_unknown_words_arrive_as_they_were_sent(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    answer = run_now(jobs)
    assert isinstance(answer, Accepted)
    words = {"life_cycle_state": "TERMINATED", "result_state": "BRAND_NEW"}
    server.engine.put_phase(answer.run_id, words)
    report = jobs.get_run(answer.run_id)
    assert report is not None
    assert (report.result_state, report.outcome) == ("BRAND_NEW", None)


def test_a_partial_success_counts_as_the_settings_define(server: ControlledServer) -> None:
    strict = client(server, partial_success=Outcome.FAILED)
    answer = run_now(strict)
    assert isinstance(answer, Accepted)
    server.engine.put_phase(answer.run_id, {"phase": "SUCCESS_WITH_FAILURES"})
    reports = [jobs.get_run(answer.run_id) for jobs in (strict, client(server))]
    assert [r.outcome for r in reports if r] == [Outcome.FAILED, Outcome.SUCCEEDED]


def test_threads_do_not_end_each_others_requests(
    server: ControlledServer, jobs: DatabricksJobs
) -> None:
    server.faults.add(Fault(match="run-now", kind=FaultKind.STATUS, status=503, times=40))
    answers: list[RunNowAnswer] = []

    def send() -> None:
        answers.extend(run_now(jobs) for _ in range(10))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(run_now_statuses(server)) == 80
    assert sum(isinstance(answer, Accepted) for answer in answers) == 40


def test_a_host_that_refuses_is_unknown_and_the_client_is_made_at_once() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    started = RealClock().now()
    jobs = DatabricksJobs(ClientSettings(host=f"http://127.0.0.1:{port}", token="t"))
    assert isinstance(run_now(jobs), Unknown)
    # Left to itself, the SDK tries for five minutes; this bound only distinguishes the two.
    assert (RealClock().now() - started).total_seconds() < 60


def test_a_host_that_is_overloaded_at_the_start_does_not_hold_up_the_client(
    server: ControlledServer,
) -> None:
    fault = Fault(match="well-known", kind=FaultKind.STATUS, status=503, times=1_000)
    server.faults.add(fault)
    assert isinstance(run_now(client(server)), Accepted)
    requests = [r for r in server.requests.all() if "well-known" in r.path]
    assert len(requests) == 1


def test_no_host_and_no_credentials_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", "/no/such/file")
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    monkeypatch.delenv("DATABRICKS_TOKEN", raising=False)
    with pytest.raises(JobsApiError, match="set DATABRICKS_HOST and DATABRICKS_TOKEN"):
        DatabricksJobs()


def test_the_environment_of_the_sdk_is_enough(
    server: ControlledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_HOST", server.endpoint.host)
    monkeypatch.setenv("DATABRICKS_TOKEN", server.endpoint.token)
    assert isinstance(run_now(DatabricksJobs()), Accepted)


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    server: ControlledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert isinstance(run_now(client(server)), Accepted)


def test_the_workspace_is_named_by_what_is_configured(
    server: ControlledServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client(server).workspace == server.endpoint.host
    assert client(server, workspace="local").workspace == "local"
    monkeypatch.setenv("DATABRICKS_WORKSPACE_ID", "123")
    assert client(server).workspace == f"{server.endpoint.host}#123"


def test_no_token_shows_in_a_repr(server: ControlledServer) -> None:
    token = server.endpoint.token
    settings = ClientSettings(host=server.endpoint.host, token=token)
    shown = repr(
        (settings, server.endpoint, ControlledSettings(token=token), DatabricksJobs(settings))
    )
    assert token not in shown


#: Sends three starts, one after the other, as soon as it receives a line.
CLIENT = """
import json, sys, urllib.request

sys.stdin.readline()
for token in "abc":
    request = urllib.request.Request(
        sys.argv[1] + "/api/2.2/jobs/run-now",
        data=json.dumps({"job_id": 1, "idempotency_token": token}).encode(),
        headers={"Authorization": "Bearer " + sys.argv[2]},
    )
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
"""


@pytest.mark.parametrize(("when", "run_count"), [(When.BEFORE, 1), (When.AFTER, 2)])
def test_a_client_is_killed_at_its_second_request_before_or_after_the_effect(
    server: ControlledServer, when: When, run_count: int
) -> None:
    endpoint = server.endpoint
    command = [sys.executable, "-c", CLIENT, endpoint.host, endpoint.token]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        server.faults.add(
            Fault(
                match="run-now",
                kind=FaultKind.KILL_CLIENT,
                when=when,
                offset=1,
                pid=process.pid,
            )
        )
        process.communicate(b"go\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert server.engine.active_runs() == run_count

"""The local Jobs API as a workspace would answer the unmodified SDK, and its real commands."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.errors import (
    InvalidParameterValue,
    NotFound,
    ResourceDoesNotExist,
    Unauthenticated,
)
from databricks.sdk.service import jobs as sdk

from harness.platform.clock import RealClock
from harness.platform.databricks.api import Accepted, Outcome, RunReport
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.server import LocalJobsServer
from tests.support.jobs_emulator.scripts import PHASE_BY_NAME, ScriptedJob
from tests.support.jobs_emulator.server import ControlledServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    report: RunReport
    log: str


class Bench:
    """A server, the unmodified SDK and our client on it."""

    def __init__(self, server: LocalJobsServer) -> None:
        self.server = server
        self.host, self.token = server.endpoint.host, server.endpoint.token
        self.sdk = WorkspaceClient(host=self.host, token=self.token, auth_type="pat")
        self.jobs = DatabricksJobs(ClientSettings(host=self.host, token=self.token))

    def start(self, job: JobDefinition, parameters: dict[str, str] | None = None) -> int:
        self.server.put_job(job)
        answer = self.jobs.run_now(job_id=job.job_id, token="t", parameters=parameters or {})
        assert isinstance(answer, Accepted)
        return answer.run_id

    def end_of(self, run_id: int) -> Ended:
        clock = RealClock()
        for _ in range(3_000):
            report = self.jobs.get_run(run_id)
            assert report is not None
            if report.outcome is not None:
                return Ended(report=report, log=self.server.engine.output(run_id))
            clock.sleep(0.01)
        raise AssertionError(f"run {run_id} does not end")

    def get(self, path: str, token: str | None) -> tuple[int, dict[str, object]]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{self.host}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


@pytest.fixture
def bench() -> Iterator[Bench]:
    with ControlledServer() as server:
        yield Bench(server)


def test_a_command_that_exits_0_succeeds(bench: Bench) -> None:
    run_id = bench.start(JobDefinition(job_id=1, name="job", command=("true",)))
    assert bench.end_of(run_id).report.outcome is Outcome.SUCCEEDED


def test_a_command_that_fails_states_why_in_the_words_of_both_vocabularies(bench: Bench) -> None:
    command = "echo working; echo 'ValueError: no rows' >&2; exit 1"
    report = bench.end_of(bench.start(JobDefinition(job_id=1, name="job", command=command))).report
    assert report.outcome is Outcome.FAILED
    assert report.message == "ValueError: no rows"
    assert (report.life_cycle_state, report.result_state) == ("INTERNAL_ERROR", "FAILED")
    assert (report.state, report.termination_code) == ("TERMINATED", "RUN_EXECUTION_ERROR")


def test_a_command_that_takes_too_long_times_out(bench: Bench) -> None:
    job = JobDefinition(job_id=1, name="job", command="sleep 600", timeout_seconds=0.05)
    assert bench.end_of(bench.start(job)).report.outcome is Outcome.TIMED_OUT


def test_a_cancelled_command_ends_as_cancelled(bench: Bench) -> None:
    run_id = bench.start(JobDefinition(job_id=1, name="job", command="exec sleep 600"))
    bench.jobs.cancel_run(run_id)
    assert bench.end_of(run_id).report.outcome is Outcome.CANCELED


def test_a_command_learns_its_intent_its_events_and_its_run(bench: Bench) -> None:
    command = "echo $HEARTBEAT_INTENT_ID $HEARTBEAT_EVENTS $HEARTBEAT_JOB_ID $HEARTBEAT_RUN_ID $X"
    job = JobDefinition(job_id=1, name="job", command=command, env={"X": "own"})
    parameters = {"heartbeat_intent_id": "intent", "heartbeat_events": '[{"table":"a"}]'}
    run_id = bench.start(job, parameters)
    assert bench.end_of(run_id).log == f'intent [{{"table":"a"}}] 1 {run_id} own\n'


def test_a_command_gets_all_parameters_as_json(bench: Bench) -> None:
    job = JobDefinition(job_id=1, name="job", command='printf "%s" "$HEARTBEAT_PARAMETERS"')
    log = bench.end_of(bench.start(job, {"a": 'quote " and é'})).log
    assert json.loads(log) == {"a": 'quote " and é'}


def test_runs_of_one_job_go_one_after_the_other(bench: Bench) -> None:
    job = JobDefinition(job_id=1, name="job", command="sleep 0.1")
    bench.server.put_job(job)
    answers = [bench.jobs.run_now(job_id=1, token=f"t{n}", parameters={}) for n in range(3)]
    ids = [answer.run_id for answer in answers if isinstance(answer, Accepted)]
    states = [bench.jobs.get_run(run_id) for run_id in ids[1:]]
    assert [state.state for state in states if state] == ["QUEUED", "QUEUED"]
    assert {bench.end_of(run_id).report.outcome for run_id in ids} == {Outcome.SUCCEEDED}


def test_closing_the_server_ends_its_commands_in_time() -> None:
    with ControlledServer() as server:
        bench = Bench(server)
        bench.start(JobDefinition(job_id=1, name="job", command="sleep 600"))
    assert [thread.name for thread in threading.enumerate() if thread.name[:4] == "run-"] == []


def test_the_sdk_sees_every_field_that_the_server_sends(bench: Bench) -> None:
    bench.server.put_job(ScriptedJob(job_id=1, name="job", script=({"phase": "RUNNING"},)))
    run_id = bench.sdk.jobs.run_now(1, job_parameters={"a": "b"}).run_id
    for name in PHASE_BY_NAME:
        bench.server.engine.put_phase(run_id, {"phase": name, "message": "why"})
        _, sent = bench.get(f"/api/2.2/jobs/runs/get?run_id={run_id}", bench.token)
        assert sdk.Run.from_dict(sent).as_dict() == sent


def test_the_sdk_waits_for_a_run_of_ours(bench: Bench) -> None:
    bench.server.put_job(JobDefinition(job_id=1, name="job"))
    run = bench.sdk.jobs.run_now(1).result()
    assert run.state is not None
    assert run.state.result_state is sdk.RunResultState.SUCCESS


def test_the_sdk_creates_finds_changes_and_deletes_a_job(bench: Bench) -> None:
    job_id = bench.sdk.jobs.create(name="Nightly", max_concurrent_runs=3).job_id
    assert job_id is not None
    bench.sdk.jobs.reset(job_id, sdk.JobSettings(name="Hourly"))
    (found,) = bench.sdk.jobs.list(name="hourly")
    settings = bench.sdk.jobs.get(job_id).settings
    bench.sdk.jobs.delete(job_id)
    assert found.job_id == job_id
    assert settings is not None
    assert settings.name == "Hourly"
    assert list(bench.sdk.jobs.list()) == []


def test_a_local_python_file_runs_as_a_task(bench: Bench, tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "task.py"
    file.write_text("import sys\nprint('got', sys.argv[1])\n")
    task = sdk.SparkPythonTask(python_file=str(file), parameters=["this"])
    created = bench.sdk.jobs.create(
        name="task", tasks=[sdk.Task(task_key="main", spark_python_task=task)]
    )
    assert created.job_id is not None
    run_id = bench.sdk.jobs.run_now(created.job_id).run_id
    assert bench.end_of(run_id).log == "got this\n"


@pytest.mark.parametrize(("version", "state"), [("2.1", "SKIPPED"), ("2.2", "QUEUED")])
def test_a_job_of_2_2_queues_and_one_of_2_1_skips(bench: Bench, version: str, state: str) -> None:
    settings = {"name": "job", "heartbeat": {"script": [{"phase": "RUNNING"}]}}
    path = f"/api/{version}/jobs/create"
    created = bench.sdk.api_client.do("POST", path, body=settings)
    assert isinstance(created, dict)
    bench.sdk.jobs.run_now(created["job_id"])
    second = bench.jobs.get_run(bench.sdk.jobs.run_now(created["job_id"]).run_id)
    assert second is not None
    assert second.life_cycle_state == state


def test_paths_of_2_1_answer_as_well(bench: Bench) -> None:
    bench.server.put_job(JobDefinition(job_id=1, name="job"))
    status, reported = bench.get("/api/2.1/jobs/get?job_id=1", bench.token)
    assert (status, reported["job_id"]) == (200, 1)


def test_active_and_completed_runs_are_distinguished(bench: Bench) -> None:
    bench.server.put_job(JobDefinition(job_id=1, name="over"))
    bench.server.put_job(ScriptedJob(job_id=2, name="on", script=({"phase": "RUNNING"},)))
    over, going_on = bench.sdk.jobs.run_now(1).run_id, bench.sdk.jobs.run_now(2).run_id
    assert [run.run_id for run in bench.sdk.jobs.list_runs(completed_only=True)] == [over]
    assert [run.run_id for run in bench.sdk.jobs.list_runs(active_only=True)] == [going_on]


def test_both_filters_at_once_are_refused(bench: Bench) -> None:
    with pytest.raises(InvalidParameterValue):
        list(bench.sdk.jobs.list_runs(active_only=True, completed_only=True))


def test_more_than_25_runs_per_page_are_refused(bench: Bench) -> None:
    with pytest.raises(InvalidParameterValue, match="25"):
        list(bench.sdk.jobs.list_runs(limit=26))


def test_a_page_token_of_somebody_else_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidParameterValue, match="page token"):
        list(bench.sdk.jobs.list_runs(page_token="made-up"))


def test_what_a_run_wrote_can_be_read(bench: Bench) -> None:
    run_id = bench.start(JobDefinition(job_id=1, name="job", command="echo hello; exit 1"))
    bench.end_of(run_id)
    output = bench.sdk.jobs.get_run_output(run_id)
    assert (output.logs, output.error) == ("hello\n", "hello")


def test_an_unknown_job_and_run_are_worded_as_databricks_words_them(bench: Bench) -> None:
    with pytest.raises(ResourceDoesNotExist, match="Job 4 does not exist"):
        bench.sdk.jobs.get(4)
    with pytest.raises(ResourceDoesNotExist, match="Run 5 does not exist"):
        bench.sdk.jobs.get_run(5)
    with pytest.raises(InvalidParameterValue, match="Job 4 does not exist"):
        bench.sdk.jobs.run_now(4)


def test_a_wrong_token_is_unauthenticated(bench: Bench) -> None:
    stranger = WorkspaceClient(host=bench.host, token="wrong", auth_type="pat")
    with pytest.raises(Unauthenticated):
        stranger.jobs.get(1)


def test_no_token_is_unauthenticated(bench: Bench) -> None:
    status, reported = bench.get("/api/2.2/jobs/list", None)
    assert (status, reported["error_code"]) == (401, "UNAUTHENTICATED")


def test_an_unknown_path_is_no_endpoint(bench: Bench) -> None:
    with pytest.raises(NotFound, match="No API found for 'GET /api"):
        bench.sdk.api_client.do("GET", "/api/2.2/jobs/nonsense")


def test_a_body_that_is_no_json_is_refused(bench: Bench) -> None:
    request = urllib.request.Request(
        f"{bench.host}/api/2.2/jobs/run-now",
        data=b"{",
        headers={"Authorization": f"Bearer {bench.token}"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused, urllib.request.urlopen(request):
        pass
    assert refused.value.code == 400
    refused.value.close()


def test_requests_of_many_threads_with_one_token_make_one_run(bench: Bench) -> None:
    script = ({"phase": "RUNNING"},)
    bench.server.put_job(ScriptedJob(job_id=1, name="job", script=script))
    barrier = threading.Barrier(8)

    def send() -> None:
        barrier.wait()
        bench.jobs.run_now(job_id=1, token="one", parameters={})

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(bench.jobs.list_runs(1))) == 1


def test_the_control_plane_is_closed_unless_it_is_requested() -> None:
    with LocalJobsServer() as server:
        bench = Bench(server)
        status, _ = bench.get("/_heartbeat/requests", bench.token)
        assert status == 404


def test_the_log_of_requests_contains_the_token_and_the_answer(bench: Bench) -> None:
    bench.start(JobDefinition(job_id=1, name="job"))
    _, reported = bench.get("/_heartbeat/requests", bench.token)
    requests = reported["requests"]
    assert isinstance(requests, list)
    sent = next(r for r in requests if r["path"].endswith("run-now"))
    assert (sent["fields"]["idempotency_token"], sent["status"]) == ("t", 200)

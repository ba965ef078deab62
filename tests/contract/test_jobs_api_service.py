"""The local Jobs API as a process of its own: it starts once, outlives its starter, and ends."""

import multiprocessing
import os
import signal
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import JobsApiError, LockedError
from harness.platform.clock import RealClock
from harness.platform.databricks.api import Accepted, Outcome, RunReport
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from harness.platform.jobs_emulator.background import (
    ensure_running,
    is_answering,
    register_jobs,
    stop_running,
)
from harness.platform.jobs_emulator.folder import api_folder
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.server import Endpoint
from harness.platform.jobs_emulator.service import Idleness, ServiceSettings, serve
from tests.support.processes import ends, wait_for_text


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    stop_running(tmp_path)


def client(endpoint: Endpoint) -> DatabricksJobs:
    return DatabricksJobs(ClientSettings(host=endpoint.host, token=endpoint.token))


def start(endpoint: Endpoint, command: str, token: str = "t") -> int:
    register_jobs(endpoint, [JobDefinition(job_id=1, name="job", command=command)])
    answer = client(endpoint).run_now(job_id=1, token=token, parameters={})
    assert isinstance(answer, Accepted)
    return answer.run_id


def end_of(endpoint: Endpoint, run_id: int) -> RunReport:
    clock, jobs = RealClock(), client(endpoint)
    for _ in range(3_000):
        report = jobs.get_run(run_id)
        if report is not None and report.outcome is not None:
            return report
        clock.sleep(0.01)
    raise AssertionError(f"run {run_id} does not end")


def wait_until_known_to_run(endpoint: Endpoint, run_id: int) -> None:
    """A server that dies before it has noted which process it began leaves that process alone."""
    clock, jobs = RealClock(), client(endpoint)
    for _ in range(3_000):
        report = jobs.get_run(run_id)
        if report is not None and report.life_cycle_state == "RUNNING":
            return
        clock.sleep(0.01)
    raise AssertionError(f"run {run_id} does not begin")


def server_pid(home: Path) -> int:
    return int(api_folder(home).endpoint_file.read_text().split('"pid": ')[1].rstrip("}"))


def kill_server(home: Path) -> None:
    """Kill it as a power cut would, and wait until its lock is free."""
    os.kill(server_pid(home), signal.SIGKILL)
    with api_folder(home).lock("serve", wait=True):
        pass


def test_a_server_that_runs_is_found_again(home: Path) -> None:
    assert ensure_running(home) == ensure_running(home)


def test_processes_that_start_it_at_once_share_one_server(home: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        endpoints = pool.map(ensure_running, [home] * 4)
    assert len({endpoint.host for endpoint in endpoints}) == 1


def test_a_run_outlives_the_process_that_started_it(home: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        endpoint = pool.apply(ensure_running, [home])
        run_id = pool.apply(start, [endpoint, "sleep 0.3"])
    assert end_of(endpoint, run_id).outcome is Outcome.SUCCEEDED


def test_only_its_owner_can_read_where_it_listens(home: Path) -> None:
    ensure_running(home)
    assert stat.S_IMODE(api_folder(home).endpoint_file.stat().st_mode) == 0o600


def test_a_second_server_of_one_folder_is_refused(home: Path) -> None:
    ensure_running(home)
    with pytest.raises(LockedError, match="serves"):
        serve(ServiceSettings(home=home))


def test_runs_and_tokens_outlive_a_server_that_was_stopped(home: Path) -> None:
    first = ensure_running(home)
    run_id = start(first, "true")
    end_of(first, run_id)
    assert stop_running(home)
    second = ensure_running(home)
    assert start(second, "true") == run_id
    assert end_of(second, run_id).outcome is Outcome.SUCCEEDED


def test_a_run_of_a_server_that_was_killed_failed_and_is_not_forgotten(
    home: Path, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    endpoint = ensure_running(home)
    run_id = start(endpoint, f"echo $$ > {note}; exec sleep 600")
    pid = int(wait_for_text(note))
    wait_until_known_to_run(endpoint, run_id)
    kill_server(home)
    report = end_of(ensure_running(home), run_id)
    assert (report.outcome, report.termination_code) == (Outcome.FAILED, "INTERNAL_ERROR")
    assert ends(pid)


def test_a_killed_server_still_recognizes_its_tokens(home: Path) -> None:
    run_id = start(ensure_running(home), "true")
    kill_server(home)
    endpoint = ensure_running(home)
    assert start(endpoint, "true") == run_id
    assert len(list(client(endpoint).list_runs(1))) == 1


def test_a_server_that_is_stopped_takes_its_commands_along(home: Path, tmp_path: Path) -> None:
    note = tmp_path / "note"
    start(ensure_running(home), f"echo $$ > {note}; exec sleep 600")
    pid = int(wait_for_text(note))
    stop_running(home)
    assert ends(pid)


def test_an_idle_server_ends_by_itself_and_takes_back_its_address(home: Path) -> None:
    endpoint = ensure_running(home, idle_minutes=0)
    with api_folder(home).lock("serve", wait=True):
        pass
    assert not is_answering(endpoint)
    assert api_folder(home).read_endpoint() is None


def test_stopping_what_does_not_run_is_no_error(tmp_path: Path) -> None:
    assert not stop_running(tmp_path)


def test_an_address_that_was_left_behind_is_not_believed(home: Path) -> None:
    api_folder(home).write_endpoint(Endpoint(host="http://127.0.0.1:9", token="old"))
    assert is_answering(ensure_running(home))


def test_a_state_file_that_is_broken_is_one_sentence(tmp_path: Path) -> None:
    (api_folder(tmp_path).path / "state.sqlite").write_text("this is no database" * 100)
    with pytest.raises(JobsApiError, match="does not start"):
        ensure_running(tmp_path)


def test_a_state_file_of_another_version_is_one_sentence(tmp_path: Path) -> None:
    with sqlite3.connect(api_folder(tmp_path).path / "state.sqlite") as connection:
        connection.execute("pragma user_version = 99")
    connection.close()
    with pytest.raises(JobsApiError, match="version 99"):
        ensure_running(tmp_path)


def test_the_refusal_of_a_job_states_why(home: Path) -> None:
    endpoint = ensure_running(home)
    wrong = JobDefinition(job_id=1, name="job", max_concurrent_runs=5_000)
    with pytest.raises(JobsApiError, match="Job 1: max_concurrent_runs must be"):
        register_jobs(endpoint, [wrong])


def test_what_was_accepted_is_in_the_state_file_before_the_answer(home: Path) -> None:
    run_id = start(ensure_running(home), "true")
    kill_server(home)
    with sqlite3.connect(api_folder(home).path / "state.sqlite") as connection:
        (found,) = connection.execute("select run_id from tokens where token = 't'").fetchone()
    connection.close()
    assert found == run_id


def test_checks_without_requests_and_runs_add_up_to_idleness() -> None:
    idleness = Idleness(0.05)
    assert [idleness.is_idle(0, has_runs=False) for _ in range(3)] == [False, False, True]


def test_a_request_or_a_run_ends_the_idleness() -> None:
    idleness = Idleness(0.05)
    for _ in range(3):
        idleness.is_idle(0, has_runs=False)
    assert not idleness.is_idle(1, has_runs=False)
    for _ in range(3):
        idleness.is_idle(1, has_runs=False)
    assert not idleness.is_idle(1, has_runs=True)


def test_a_server_without_a_limit_is_never_idle() -> None:
    idleness = Idleness(None)
    assert not any(idleness.is_idle(0, has_runs=False) for _ in range(100_000))

"""The Jobs API as the harness uses it: the same cases against the fake and the real SDK.

The real SDK talks over HTTP to the local Jobs API.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pytest

from harness.errors import JobsApiError, NoSuchJobError
from harness.fire.submit import Steps
from harness.platform.databricks.api import Accepted, JobsApi, NotAllowed, Outcome, Refused, Unknown
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from harness.platform.jobs_emulator.api.requests import run_now_from
from harness.settle.settle import settle
from harness.store.rows import Run, RunStatus, Tick
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import EVERY, FakeJobs
from tests.support.following import firing_of, intended
from tests.support.jobs_emulator.faults import Fault, FaultKind, When
from tests.support.jobs_emulator.scripts import ScriptedJob
from tests.support.jobs_emulator.server import ControlledServer, ControlledSettings

START = datetime(2026, 1, 1, tzinfo=UTC)
JOB = 9007199254740993
WORDS = {
    Outcome.SUCCEEDED: "SUCCESS",
    Outcome.FAILED: "FAILED",
    Outcome.CANCELED: "CANCELED",
    Outcome.TIMED_OUT: "TIMEDOUT",
    Outcome.SKIPPED: "SKIPPED",
}


class Workspace(Protocol):
    """A Jobs API, and what happens in it that the harness does not do."""

    api: JobsApi
    clock: FakeClock

    def add_job(self, job_id: int, declares: tuple[str, ...] = EVERY) -> None: ...
    def add_trigger(self, job_id: int, trigger: Mapping[str, object]) -> None: ...
    def delete_job(self, job_id: int) -> None: ...
    def hide_deleted_jobs(self) -> None: ...
    def start_by_hand(self, job_id: int) -> int: ...
    def end_run(self, run_id: int, outcome: Outcome, message: str = "") -> None: ...
    def forget_run(self, run_id: int) -> None: ...
    def forbid(self, job_id: int) -> None: ...
    def lose_next_request(self) -> None: ...
    def lose_next_answer(self) -> None: ...
    def run_now_count(self) -> int: ...


class FakeWorkspace:
    """The fake."""

    def __init__(self) -> None:
        self.clock = FakeClock(START)
        self.fake = FakeJobs(clock=self.clock)
        self.api: JobsApi = self.fake

    def add_job(self, job_id: int, declares: tuple[str, ...] = EVERY) -> None:
        self.fake.add_job(job_id, declares=declares)

    def add_trigger(self, job_id: int, trigger: Mapping[str, object]) -> None:
        self.fake.add_job(job_id, settings={"trigger": trigger})

    def delete_job(self, job_id: int) -> None:
        self.fake.delete_job(job_id)

    def hide_deleted_jobs(self) -> None:
        self.fake.hide_deleted_jobs()

    def start_by_hand(self, job_id: int) -> int:
        return self.fake.start_by_hand(job_id)

    def end_run(self, run_id: int, outcome: Outcome, message: str = "") -> None:
        self.fake.end_run(run_id, outcome, message)

    def forget_run(self, run_id: int) -> None:
        self.fake.end_run(run_id, Outcome.LOST)

    def forbid(self, job_id: int) -> None:
        self.fake.forbid(job_id)

    def lose_next_request(self) -> None:
        self.fake.lose_requests()

    def lose_next_answer(self) -> None:
        self.fake.lose_answers()

    def run_now_count(self) -> int:
        return len(self.fake.requests)


class ServedWorkspace:
    """The local Jobs API, reached by the real SDK."""

    def __init__(self, server: ControlledServer, clock: FakeClock) -> None:
        self.clock = clock
        self.server = server
        endpoint = server.endpoint
        self.api: JobsApi = DatabricksJobs(ClientSettings(host=endpoint.host, token="narrow"))

    def add_job(self, job_id: int, declares: tuple[str, ...] = EVERY) -> None:
        script = ({"phase": "RUNNING"},)
        job = ScriptedJob(
            job_id=job_id, name="job", script=script, max_concurrent_runs=1000, parameters=declares
        )
        self.server.put_job(job)

    def add_trigger(self, job_id: int, trigger: Mapping[str, object]) -> None:
        settings = {"name": f"job {job_id}", "trigger": trigger, "tasks": [{"task_key": "one"}]}
        self.server.registry.put_job(job_id, settings)

    def delete_job(self, job_id: int) -> None:
        self.server.registry.delete_job(job_id)

    def hide_deleted_jobs(self) -> None:
        registry = self.server.registry
        registry.assumptions = replace(registry.assumptions, lists_deleted_jobs=False)

    def start_by_hand(self, job_id: int) -> int:
        return self.server.engine.run_now(run_now_from({"job_id": job_id}))

    def end_run(self, run_id: int, outcome: Outcome, message: str = "") -> None:
        reported = {"message": message} if message else {}
        self.server.engine.put_phase(run_id, {"phase": WORDS[outcome], **reported})

    def forget_run(self, run_id: int) -> None:
        self.server.engine.put_phase(run_id, {"phase": "SUCCESS"})
        self.server.engine.delete_run(run_id)

    def forbid(self, job_id: int) -> None:
        """Job 13 is the one that the token may not touch."""
        assert job_id == 13

    def lose_next_request(self) -> None:
        self.server.faults.add(Fault(match="run-now", kind=FaultKind.RESET, when=When.BEFORE))

    def lose_next_answer(self) -> None:
        self.server.faults.add(Fault(match="run-now", kind=FaultKind.RESET, when=When.AFTER))

    def run_now_count(self) -> int:
        return sum(r.path.endswith("run-now") for r in self.server.requests.all())


@pytest.fixture(params=["fake", "served"])
def workspace(request: pytest.FixtureRequest) -> Iterator[Workspace]:
    if request.param == "fake":
        yield FakeWorkspace()
        return
    clock = FakeClock(START)
    narrow = {"narrow": frozenset({JOB, 2})}
    with ControlledServer(ControlledSettings(narrow_tokens=narrow), clock=clock) as s:
        yield ServedWorkspace(s, clock)


def accepted(workspace: Workspace, token: str = "t", job_id: int = JOB) -> int:
    answer = workspace.api.run_now(job_id=job_id, token=token, parameters={})
    assert isinstance(answer, Accepted)
    return answer.run_id


def test_a_run_that_goes_on_has_no_outcome(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    report = workspace.api.get_run(accepted(workspace))
    assert report is not None
    assert (report.job_id, report.outcome, report.started_at) == (JOB, None, START)
    assert report.ended_at is None


@pytest.mark.parametrize("outcome", list(WORDS))
def test_every_outcome_is_reported_in_both_vocabularies(
    workspace: Workspace, outcome: Outcome
) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace)
    workspace.clock.sleep(60)
    workspace.end_run(run_id, outcome, "what was said")
    report = workspace.api.get_run(run_id)
    assert report is not None
    assert (report.outcome, report.state) == (outcome, "TERMINATED")
    assert report.message == "what was said"
    assert report.ended_at == START + timedelta(seconds=60)
    assert None not in (report.life_cycle_state, report.result_state, report.termination_code)


def test_the_same_token_is_the_same_run(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    assert accepted(workspace, "t") == accepted(workspace, "t")
    assert len(list(workspace.api.list_runs(JOB))) == 1


def test_the_same_token_is_the_same_run_though_it_failed(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace, "t")
    workspace.end_run(run_id, Outcome.FAILED)
    assert accepted(workspace, "t") == run_id


def test_another_token_is_another_run(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    assert accepted(workspace, "t") != accepted(workspace, "u")


def test_ids_are_exact_past_what_a_double_holds(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace)
    report = workspace.api.get_run(run_id)
    assert report is not None
    assert (report.run_id, report.job_id) == (run_id, JOB)
    assert run_id > 2**53


def test_a_job_that_does_not_exist_is_refused(workspace: Workspace) -> None:
    answer = workspace.api.run_now(job_id=2, token="t", parameters={})
    expected = Refused(error_code="INVALID_PARAMETER_VALUE", message="Job 2 does not exist.")
    assert answer == expected


def test_too_many_bytes_of_parameters_are_refused(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    parameters = {"heartbeat_events": "x" * 10_001}
    answer = workspace.api.run_now(job_id=JOB, token="t", parameters=parameters)
    assert isinstance(answer, Refused)


def test_a_job_shows_the_parameters_that_it_declares(workspace: Workspace) -> None:
    workspace.add_job(JOB, declares=("day", "heartbeat_events"))
    workspace.add_job(2, declares=())
    assert workspace.api.declared_parameters(JOB) == {"day", "heartbeat_events"}
    assert workspace.api.declared_parameters(2) == frozenset()


def test_the_parameters_of_a_job_that_does_not_exist_are_not_none(workspace: Workspace) -> None:
    with pytest.raises(NoSuchJobError, match="has no job 2"):
        workspace.api.declared_parameters(2)


def test_a_parameter_that_the_job_does_not_declare_is_refused_and_nothing_is_started(
    workspace: Workspace,
) -> None:
    workspace.add_job(JOB, declares=("heartbeat_events",))
    parameters = {"heartbeat_events": "[]", "heartbeat_token": "t"}
    answer = workspace.api.run_now(job_id=JOB, token="t", parameters=parameters)
    assert isinstance(answer, Refused)
    assert "heartbeat_token" in answer.message
    assert list(workspace.api.list_runs(JOB)) == []


def test_a_parameter_that_was_declared_when_a_run_started_does_not_hide_the_run_from_its_token(
    workspace: Workspace,
) -> None:
    workspace.add_job(JOB)
    parameters = {"heartbeat_token": "t"}
    first = workspace.api.run_now(job_id=JOB, token="t", parameters=parameters)
    workspace.add_job(JOB, declares=())
    assert workspace.api.run_now(job_id=JOB, token="t", parameters=parameters) == first


def test_a_token_that_is_too_long_is_refused(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    answer = workspace.api.run_now(job_id=JOB, token="t" * 65, parameters={})
    assert isinstance(answer, Refused)


def test_the_token_of_a_forgotten_run_starts_no_other(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    workspace.forget_run(accepted(workspace, "t"))
    answer = workspace.api.run_now(job_id=JOB, token="t", parameters={})
    assert isinstance(answer, Refused)
    assert list(workspace.api.list_runs(JOB)) == []


def test_a_job_that_we_may_not_run_is_not_allowed(workspace: Workspace) -> None:
    workspace.add_job(13)
    workspace.forbid(13)
    answer = workspace.api.run_now(job_id=13, token="t", parameters={})
    assert isinstance(answer, NotAllowed)


def test_a_lost_request_starts_nothing_and_is_unknown(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    workspace.lose_next_request()
    answer = workspace.api.run_now(job_id=JOB, token="t", parameters={})
    assert isinstance(answer, Unknown)
    assert list(workspace.api.list_runs(JOB)) == []


def test_a_lost_answer_is_unknown_and_the_same_token_finds_the_run(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    workspace.lose_next_answer()
    answer = workspace.api.run_now(job_id=JOB, token="t", parameters={})
    assert isinstance(answer, Unknown)
    (started,) = workspace.api.list_runs(JOB)
    assert accepted(workspace, "t") == started.run_id


def test_one_call_is_one_request_even_when_its_answer_is_lost(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    workspace.lose_next_answer()
    workspace.api.run_now(job_id=JOB, token="t", parameters={})
    assert workspace.run_now_count() == 1


def test_a_run_that_does_not_exist_is_none(workspace: Workspace) -> None:
    assert workspace.api.get_run(4) is None


def test_a_forgotten_run_is_none(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace)
    workspace.forget_run(run_id)
    assert workspace.api.get_run(run_id) is None


def test_runs_are_listed_newest_first_over_all_pages(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    ids = [accepted(workspace, f"t{number}") for number in range(60)]
    assert [run.run_id for run in workspace.api.list_runs(JOB)] == ids[::-1]


def test_only_the_runs_of_the_job_are_listed(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    workspace.add_job(2)
    accepted(workspace, "t", 2)
    run_id = accepted(workspace, "t", JOB)
    assert [run.run_id for run in workspace.api.list_runs(JOB)] == [run_id]


def test_runs_are_listed_from_an_instant_on(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    accepted(workspace, "before")
    workspace.clock.sleep(60)
    since = workspace.clock.now()
    run_id = accepted(workspace, "then")
    assert [run.run_id for run in workspace.api.list_runs(JOB, since=since)] == [run_id]


def test_a_run_that_somebody_else_started_is_listed(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    run_id = workspace.start_by_hand(JOB)
    workspace.end_run(run_id, Outcome.SUCCEEDED)
    (run,) = workspace.api.list_runs(JOB)
    assert (run.run_id, run.outcome) == (run_id, Outcome.SUCCEEDED)


def test_a_run_reports_the_parameters_that_it_was_started_with(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    parameters = {"heartbeat_token": "t", "heartbeat_events": '[{"table": "a"}]'}
    workspace.api.run_now(job_id=JOB, token="t", parameters=parameters)
    (listed,) = workspace.api.list_runs(JOB)
    report = workspace.api.get_run(listed.run_id)
    assert report is not None
    assert listed.parameters == report.parameters == parameters


def test_a_run_that_somebody_else_started_without_parameters_reports_none(
    workspace: Workspace,
) -> None:
    workspace.add_job(JOB)
    report = workspace.api.get_run(workspace.start_by_hand(JOB))
    assert report is not None
    assert report.parameters == {}


def test_a_deleted_job_is_refused_even_under_a_known_token_and_its_runs_are_still_listed(
    workspace: Workspace,
) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace, "t")
    workspace.delete_job(JOB)
    answer = workspace.api.run_now(job_id=JOB, token="t", parameters={})
    assert isinstance(answer, Refused)
    assert [run.run_id for run in workspace.api.list_runs(JOB)] == [run_id]


def test_a_job_that_does_not_exist_has_no_runs(workspace: Workspace) -> None:
    assert list(workspace.api.list_runs(2)) == []


def test_a_deleted_job_may_be_one_whose_runs_are_not_listed_though_they_go_on(
    workspace: Workspace,
) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace, "t")
    workspace.delete_job(JOB)
    workspace.hide_deleted_jobs()
    with pytest.raises(NoSuchJobError, match=f"has no job {JOB}"):
        list(workspace.api.list_runs(JOB))
    report = workspace.api.get_run(run_id)
    assert report is not None
    assert report.outcome is None


def _after_a_lost_answer(workspace: Workspace) -> Run:
    """Settle a start whose answer was lost, once its job is gone."""
    workspace.add_job(JOB)
    workspace.lose_next_answer()
    start = replace(intended(), job_id=JOB, decided_at=START)
    parameters = json.loads(start.parameters)
    workspace.api.run_now(job_id=JOB, token=start.token, parameters=parameters)
    workspace.delete_job(JOB)
    firing = firing_of(workspace.api, at=START)
    reported = settle([start], [], tick=Tick(number=4, at=START), firing=firing, steps=Steps())
    (row,) = reported.rows
    return row


def test_a_start_of_a_deleted_job_is_followed_where_its_run_is_listed(workspace: Workspace) -> None:
    row = _after_a_lost_answer(workspace)
    assert row.run_status is RunStatus.STARTED
    assert row.run_id is not None


def test_a_start_of_a_deleted_job_is_parked_and_not_refused_where_no_run_is_listed(
    workspace: Workspace,
) -> None:
    workspace.hide_deleted_jobs()
    row = _after_a_lost_answer(workspace)
    assert (row.run_status, row.ended_at) == (RunStatus.PARKED, None)
    assert f"has no job {JOB}" in (row.message or "")
    assert f"`retry {JOB}`" in (row.message or "")


def test_a_start_whose_run_was_deleted_is_parked_and_not_refused(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    start = replace(intended(), job_id=JOB, decided_at=START)
    parameters = json.loads(start.parameters)
    answer = workspace.api.run_now(job_id=JOB, token=start.token, parameters=parameters)
    assert isinstance(answer, Accepted)
    workspace.forget_run(answer.run_id)
    firing = firing_of(workspace.api, at=START)
    reported = settle([start], [], tick=Tick(number=4, at=START), firing=firing, steps=Steps())
    (row,) = reported.rows
    assert row.run_status is RunStatus.PARKED
    assert "has been deleted" in (row.message or "")


def test_a_cancelled_run_ends_as_cancelled(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace)
    workspace.api.cancel_run(run_id)
    report = workspace.api.get_run(run_id)
    assert report is not None
    assert report.outcome is Outcome.CANCELED


def test_cancelling_a_run_that_succeeded_changes_nothing(workspace: Workspace) -> None:
    workspace.add_job(JOB)
    run_id = accepted(workspace)
    workspace.end_run(run_id, Outcome.SUCCEEDED)
    workspace.api.cancel_run(run_id)
    report = workspace.api.get_run(run_id)
    assert report is not None
    assert report.outcome is Outcome.SUCCEEDED


def test_cancelling_a_run_that_does_not_exist_is_an_error(workspace: Workspace) -> None:
    with pytest.raises(JobsApiError, match="Run 4"):
        workspace.api.cancel_run(4)


def test_the_workspace_has_a_name(workspace: Workspace) -> None:
    assert workspace.api.workspace


def test_every_job_is_listed_with_its_trigger_over_all_pages(workspace: Workspace) -> None:
    watched = {"table_names": ["main.sales.orders"], "condition": "ALL_UPDATED"}
    trigger = {"pause_status": "PAUSED", "table_update": watched}
    for job_id in range(JOB + 1, JOB + 120):
        workspace.add_trigger(job_id, trigger)
    jobs = {job.job_id: job for job in workspace.api.list_jobs()}
    assert len(jobs) == 119
    job = jobs[JOB + 1]
    assert (job.created_at, dict(job.settings)["trigger"]) == (START, trigger)
    assert job.settings["name"] == f"job {JOB + 1}"
    assert "tasks" not in job.settings

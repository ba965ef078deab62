"""A job that fails, and recovers: real commands of the local Jobs API, through the real SDK."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.controls.retry_policies import COLUMNS, RETRY_POLICIES
from harness.inspect.explain import as_json
from harness.inspect.job_history import history_of
from harness.platform.clock import RealClock
from harness.platform.databricks.api import JobsApi, RunReport
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.server import LocalJobsServer
from harness.store.rows import RunStatus
from tests.scenarios.conftest import Story

pytestmark = pytest.mark.long

JOB = 2**53 + 990_001


class JobsOfBoth(DatabricksJobs):
    """The local Jobs API, which also has the runs that earlier stories left open in theirs."""

    def __init__(self, settings: ClientSettings, earlier: JobsApi) -> None:
        super().__init__(settings)
        self._earlier = earlier

    def get_run(self, run_id: int) -> RunReport | None:
        return super().get_run(run_id) or self._earlier.get_run(run_id)


class Healing:
    """A story whose job is a command: it records its payload, and fails twice."""

    def __init__(self, story: Story, server: LocalJobsServer) -> None:
        self.story = story
        self.file = story.folder / "handed.jsonl"
        command = f'echo "$HEARTBEAT_EVENTS" >> {self.file}; [ $(wc -l < {self.file}) -ge 3 ]'
        server.put_job(JobDefinition(job_id=JOB, name=f"job {JOB}", command=command))
        client = ClientSettings(
            host=server.endpoint.host, token=server.endpoint.token, workspace="local"
        )
        jobs = JobsOfBoth(client, story.home.jobs)
        story.jobs = story.home.jobs = jobs  # type: ignore[assignment]
        story.restart()

    @property
    def handed(self) -> list[list[str]]:
        """The ids of the events in the payload of each run."""
        lines = self.file.read_text().splitlines()
        return [[event["event_id"] for event in json.loads(line)] for line in lines]

    def wait_for_the_end(self) -> None:
        """Wait until the newest run of the job is over."""
        newest = self.story.run_rows(JOB)[-1]["run_id"]
        assert isinstance(newest, int)
        for _ in range(3_000):
            report = self.story.jobs.get_run(newest)
            if report is not None and report.outcome is not None:
                return
            RealClock().sleep(0.01)
        raise AssertionError(f"run {newest} does not end")


@pytest.fixture
def healing(story: Story) -> Iterator[Healing]:
    seed: Path = story.home.project / RETRY_POLICIES
    seed.write_text(f"{','.join(COLUMNS)}\n{JOB},3,30,2,,\n")
    fake = story.home.jobs
    with LocalJobsServer(clock=story.clock) as server:
        yield Healing(story, server)
    story.home.jobs = fake
    story.restart()
    seed.write_text(f"{','.join(COLUMNS)}\n")


def test_a_job_that_fails_twice_succeeds_by_itself_with_one_list_of_everything(
    healing: Healing,
) -> None:
    story = healing.story
    orders = story.table("orders")
    story.control(orders, JOB)
    assert story.started(story.tick()) == [JOB]
    healing.wait_for_the_end()

    story.append(orders)
    failed = story.tick()
    assert (story.started(failed), story.blockers(JOB)) == ([], ["backing_off"])
    assert story.status(orders, JOB) == "FAILED"
    idle = story.tick(minutes=20)
    assert idle.skipped == ("decide", "fire", "publish")

    # The process dies between the step that the policy requires and the decision on it.
    story.tick(minutes=20, dies_at="after_settle")
    assert story.run_rows(JOB)[-1]["reported_by"] == "policy"
    second = story.tick()
    assert (story.started(second), second.started[0].attempt) == ([JOB], 2)
    healing.wait_for_the_end()

    story.append(orders)
    assert story.started(story.tick()) == []
    assert story.tick(minutes=50).skipped == ("decide", "fire", "publish")
    third = story.tick(minutes=15)
    assert (story.started(third), third.started[0].attempt) == ([JOB], 3)
    healing.wait_for_the_end()
    assert [row.run_status for row in story.tick().settlement.settled.rows] == [RunStatus.SUCCEEDED]

    first, again, last = healing.handed
    assert [len(each) for each in (first, again, last)] == [1, 2, 3]
    assert (last[:2], again[:1]) == (again, first)
    assert story.status(orders, JOB) == "COMPLETED"
    assert story.tick(minutes=600).skipped == ("decide", "fire", "publish")
    reported = as_json(history_of(story.context.store, JOB, at=story.clock.now(), is_now=True))
    caught_up = reported["caught_up"]
    assert isinstance(caught_up, dict)
    assert caught_up["event_ids_of_failed_runs"] == again
    assert caught_up["event_ids_since"] == last[2:]
    assert (caught_up["attempt"], len(caught_up["failed_run_ids"])) == (3, 2)


def test_after_its_last_attempt_a_job_is_held_and_a_manual_success_lets_it_go(
    healing: Healing,
) -> None:
    story = healing.story
    seed = story.home.project / RETRY_POLICIES
    seed.write_text(f"{','.join(COLUMNS)}\n*,2,0,,,\n")
    orders = story.table("orders")
    story.control(orders, JOB)
    story.tick()
    healing.wait_for_the_end()
    story.tick()
    assert story.started(story.tick()) == [JOB]
    healing.wait_for_the_end()

    story.tick()
    assert story.blockers(JOB) == ["last_run_failed", "waiting_for_required_event"]
    (held,) = [
        row
        for row in story.context.rows("job_blockers")
        if row["job_id"] == JOB and row["blocker"] == "last_run_failed"
    ]
    assert str(held["reason"]).endswith("that was attempt 2, and its retry policy allows 2")
    assert story.tick(minutes=600).skipped == ("decide", "fire", "publish")

    story.jobs.run_now(job_id=JOB, token="by hand", parameters={})
    for _ in range(3_000):
        if len(healing.file.read_text().splitlines()) == 3:
            break
        RealClock().sleep(0.01)
    statuses: list[RunStatus] = []
    for _ in range(20):
        statuses += [row.run_status for row in story.tick().settlement.settled.rows]
        if statuses:
            break
    assert statuses == [RunStatus.SUCCEEDED_ELSEWHERE]

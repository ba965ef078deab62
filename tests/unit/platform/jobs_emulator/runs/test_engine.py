"""What happens to the runs of the local Jobs API; its commands are pretended, its clock stands."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.platform.jobs_emulator.api.requests import RunNow, run_now_from
from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.folder import set_aside
from harness.platform.jobs_emulator.runs import states
from harness.platform.jobs_emulator.runs.database import RunFilter, RunRow, Store
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.runs.launcher import Began, EndedIn
from harness.platform.jobs_emulator.runs.registry import Assumptions
from harness.platform.jobs_emulator.runs.states import Phase
from tests.support.fake_clock import FakeClock
from tests.support.jobs_emulator.scripts import ScriptedEngine, ScriptedJob, ScriptedRegistry

START = datetime(2026, 1, 1, tzinfo=UTC)
COMMAND = JobDefinition(job_id=1, name="command", command=("true",))


class PretendingLauncher:
    """Starts nothing; tests determine how a command goes."""

    def __init__(self) -> None:
        self.launched: list[int] = []
        self.stopped: list[int] = []
        self.leftovers: list[int] = []
        self.forgotten: list[int] = []

    def listen(self, began: Began, ended: EndedIn) -> None:
        self.began, self.ended = began, ended

    def launch(self, run: RunRow, job: JobDefinition) -> None:
        self.launched.append(run.run_id)

    def stop(self, run_id: int) -> None:
        self.stopped.append(run_id)

    def end_leftover(self, run: RunRow) -> None:
        self.leftovers.append(run.run_id)

    def output(self, run_id: int) -> str:
        return ""

    def forget(self, run_id: int) -> None:
        self.forgotten.append(run_id)

    def close(self) -> None:
        pass


class Bench:
    """One engine with everything around it."""

    def __init__(
        self,
        path: Path | None = None,
        assumptions: Assumptions | None = None,
        cancel_seconds: float = 0.0,
    ) -> None:
        self.clock = FakeClock(START)
        self.launcher = PretendingLauncher()
        self.registry = ScriptedRegistry(Store(path), self.clock, assumptions=assumptions)
        self.engine = ScriptedEngine(self.registry, self.launcher, cancel_seconds=cancel_seconds)

    def put(self, job: JobDefinition) -> None:
        self.registry.put_job(job.job_id, job.as_settings())

    def run(self, job_id: int = 1, token: str | None = None, **more: object) -> int:
        return self.engine.run_now(request(job_id, token, **more))

    def phase(self, run_id: int) -> Phase:
        return self.engine.run(run_id).phase


def request(job_id: int = 1, token: str | None = None, **more: object) -> RunNow:
    body: Mapping[str, object] = {"job_id": job_id, "idempotency_token": token, **more}
    return run_now_from(body)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.put(COMMAND)
    yield made
    made.engine.close()


def test_a_job_without_a_command_succeeds_at_once(bench: Bench) -> None:
    bench.put(JobDefinition(job_id=2, name="nothing"))
    assert bench.phase(bench.run(2)) == states.SUCCEEDED


def test_a_command_is_pending_then_running_then_what_became_of_it(bench: Bench) -> None:
    run_id = bench.run()
    seen = [bench.phase(run_id)]
    bench.launcher.began(run_id, 4711, "then")
    seen.append(bench.phase(run_id))
    bench.launcher.ended(run_id, states.FAILED.with_message("no such file"))
    seen.append(bench.phase(run_id))
    assert seen == [states.PENDING, states.RUNNING, states.FAILED.with_message("no such file")]


def test_the_same_token_is_the_same_run_though_it_failed(bench: Bench) -> None:
    first = bench.run(token="t")
    bench.launcher.ended(first, states.FAILED)
    assert bench.run(token="t") == first
    assert bench.launcher.launched == [first]


def test_the_same_token_of_another_job_is_another_run(bench: Bench) -> None:
    bench.put(replace(COMMAND, job_id=2))
    assert bench.run(1, token="t") != bench.run(2, token="t")


def test_a_token_with_other_parameters_is_the_old_run_and_a_warning(bench: Bench) -> None:
    first = bench.run(token="t", job_parameters={"a": "1"})
    assert bench.run(token="t", job_parameters={"a": "2"}) == first
    assert bench.registry.warnings == ["token t came again with other parameters"]


def test_a_token_of_a_deleted_run_is_refused(bench: Bench) -> None:
    run_id = bench.run(token="t")
    bench.launcher.ended(run_id, states.SUCCEEDED)
    bench.engine.delete_run(run_id)
    with pytest.raises(ApiError, match="has been deleted"):
        bench.run(token="t")


def test_a_run_that_goes_on_cannot_be_deleted(bench: Bench) -> None:
    run_id = bench.run()
    with pytest.raises(ApiError, match="is active"):
        bench.engine.delete_run(run_id)


def test_a_token_is_forgotten_after_its_memory() -> None:
    bench = Bench(assumptions=Assumptions(token_memory=timedelta(days=7)))
    bench.put(JobDefinition(job_id=1, name="nothing"))
    first = bench.run(token="t")
    bench.clock.sleep(8 * 86_400)
    assert bench.run(token="t") != first


def test_runs_are_forgotten_two_months_after_their_end_with_what_they_wrote(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "state.sqlite")
    bench.put(COMMAND)
    goes_on, old = bench.run(token="a"), bench.run(token="b")
    bench.launcher.ended(old, states.SUCCEEDED)
    bench.clock.sleep(30 * 86_400)
    young = bench.run(token="c")
    bench.launcher.ended(young, states.SUCCEEDED)
    bench.clock.sleep(31 * 86_400)
    bench.engine.forget_old_runs()
    assert bench.launcher.forgotten == [old]
    assert {each.run_id for each in bench.engine.runs(RunFilter(), 10)} == {goes_on, young}
    assert bench.run(token="a") == goes_on
    assert bench.run(token="b") != old


def test_a_history_that_has_grown_large_is_set_aside_and_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for number in range(3):
        path.write_bytes(bytes(str(number), "ascii") * 11)
        set_aside(path, largest=10)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["history.jsonl.1"]
    assert (tmp_path / "history.jsonl.1").read_text() == "2" * 11


def test_without_a_queue_one_run_too_many_is_skipped(bench: Bench) -> None:
    bench.put(replace(COMMAND, queue_enabled=False))
    bench.run()
    second = bench.run()
    assert bench.phase(second) == states.SKIPPED
    assert second not in bench.launcher.launched


def test_a_job_that_admits_no_runs_skips_each(bench: Bench) -> None:
    bench.put(replace(COMMAND, max_concurrent_runs=0))
    assert bench.phase(bench.run()) == states.SKIPPED


def test_with_a_queue_runs_wait_and_go_in_order(bench: Bench) -> None:
    first, second, third = bench.run(), bench.run(), bench.run()
    assert bench.phase(second) == states.QUEUED_BEHIND_JOB
    bench.launcher.ended(first, states.SUCCEEDED)
    assert bench.launcher.launched == [first, second]
    bench.launcher.ended(second, states.FAILED)
    assert bench.launcher.launched == [first, second, third]


def test_a_request_may_leave_the_queue_out(bench: Bench) -> None:
    bench.run()
    assert bench.phase(bench.run(queue={"enabled": False})) == states.SKIPPED


def test_a_run_waits_in_the_queue_for_48_hours_at_most(bench: Bench) -> None:
    bench.run()
    waiting = bench.run()
    bench.clock.sleep(48 * 3600 + 1)
    assert bench.phase(waiting) == states.QUEUE_TIMED_OUT


def test_two_runs_side_by_side_when_the_job_admits_two(bench: Bench) -> None:
    bench.put(replace(COMMAND, max_concurrent_runs=2))
    runs = [bench.run(), bench.run()]
    assert bench.launcher.launched == runs


def test_a_full_workspace_queues_or_refuses() -> None:
    bench = Bench(assumptions=Assumptions(active_runs=1))
    for job_id, queue_enabled in ((1, True), (2, True), (3, False)):
        bench.put(replace(COMMAND, job_id=job_id, queue_enabled=queue_enabled))
    bench.run(1)
    assert bench.phase(bench.run(2)) == states.QUEUED_BEHIND_WORKSPACE
    with pytest.raises(ApiError) as refused:
        bench.run(3)
    assert refused.value.status == 429


def test_a_script_walks_through_its_states_as_time_goes_by(bench: Bench) -> None:
    script = (
        {"phase": "PENDING", "seconds": 5},
        {"phase": "RUNNING", "seconds": 10},
        {"phase": "TIMEDOUT"},
    )
    bench.put(ScriptedJob(job_id=2, name="scripted", script=script))
    run_id = bench.run(2)
    seen = []
    for _ in range(4):
        seen.append(bench.phase(run_id))
        bench.clock.sleep(5)
    assert seen == [states.PENDING, states.RUNNING, states.RUNNING, states.TIMED_OUT]


def test_a_scripted_run_ends_at_the_time_in_its_script_and_not_when_it_is_queried(
    bench: Bench,
) -> None:
    script = ({"phase": "RUNNING", "seconds": 5}, {"phase": "SUCCESS"})
    bench.put(ScriptedJob(job_id=2, name="scripted", script=script))
    run_id = bench.run(2)
    bench.clock.sleep(500)
    ended_ms = bench.engine.run(run_id).ended_ms
    assert ended_ms == int((START + timedelta(seconds=5)).timestamp() * 1000)


def test_a_cancelled_command_is_terminating_until_it_has_ended(bench: Bench) -> None:
    run_id = bench.run()
    bench.launcher.began(run_id, 4711, None)
    bench.engine.cancel(run_id)
    assert (bench.phase(run_id), bench.launcher.stopped) == (states.TERMINATING, [run_id])
    bench.launcher.ended(run_id, states.CANCELED)
    assert bench.phase(run_id) == states.CANCELED


def test_a_run_that_succeeded_before_the_cancel_arrived_has_succeeded(bench: Bench) -> None:
    run_id = bench.run()
    bench.engine.cancel(run_id)
    bench.launcher.ended(run_id, states.SUCCEEDED)
    assert bench.phase(run_id) == states.SUCCEEDED


def test_cancelling_what_is_over_changes_nothing(bench: Bench) -> None:
    run_id = bench.run()
    bench.launcher.ended(run_id, states.SUCCEEDED)
    bench.engine.cancel(run_id)
    assert (bench.phase(run_id), bench.launcher.stopped) == (states.SUCCEEDED, [])


def test_a_queued_run_is_cancelled_without_ever_starting(bench: Bench) -> None:
    first, waiting = bench.run(), bench.run()
    bench.engine.cancel(waiting)
    bench.launcher.ended(first, states.SUCCEEDED)
    assert bench.phase(waiting) == states.CANCELED
    assert waiting not in bench.launcher.launched


def test_a_scripted_run_takes_its_time_to_cancel() -> None:
    bench = Bench(cancel_seconds=10)
    bench.put(ScriptedJob(job_id=1, name="scripted", script=({"phase": "RUNNING"},)))
    run_id = bench.run()
    bench.engine.cancel(run_id)
    first = bench.phase(run_id)
    bench.clock.sleep(11)
    assert (first, bench.phase(run_id)) == (states.TERMINATING, states.CANCELED)


def test_ids_are_odd_unordered_and_past_what_a_double_holds(bench: Bench) -> None:
    bench.put(JobDefinition(job_id=2, name="nothing"))
    ids = [bench.run(2) for _ in range(30)]
    assert all(run_id > 2**53 and run_id % 2 == 1 for run_id in ids)
    assert ids != sorted(ids)
    assert any(int(float(run_id)) != run_id for run_id in ids)


def test_runs_are_listed_newest_first_and_a_page_goes_on_where_the_last_one_ended(
    bench: Bench,
) -> None:
    bench.put(JobDefinition(job_id=2, name="nothing"))
    ids = [bench.run(2) for _ in range(5)]
    first = bench.engine.runs(RunFilter(job_id=2), 2)
    bench.run(2)
    second = bench.engine.runs(RunFilter(job_id=2, before=first[-1].seq), 10)
    assert [run.run_id for run in [*first, *second]] == list(reversed(ids))


def test_a_server_that_died_reports_its_commands_as_failed(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    before = Bench(file)
    before.put(COMMAND)
    run_id = before.run(token="t")
    before.launcher.began(run_id, 4711, "then")
    after = Bench(file)
    assert after.phase(run_id) == states.BROKEN
    assert after.launcher.leftovers == [run_id]


def test_a_server_that_died_remembers_its_tokens(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    before = Bench(file)
    before.put(COMMAND)
    run_id = before.run(token="t")
    assert Bench(file).run(token="t") == run_id


def test_a_queued_run_outlives_the_server_and_starts(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    before = Bench(file)
    before.put(COMMAND)
    before.run()
    waiting = before.run()
    after = Bench(file)
    after.engine.advance()
    assert after.launcher.launched == [waiting]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "Missing required field: job_id"),
        ({"job_id": "x"}, "must be an int64"),
        ({"job_id": 1, "idempotency_token": "t" * 65}, "at most 64"),
        ({"job_id": 1, "job_parameters": {"a": 1}}, "map of strings"),
        ({"job_id": 1, "job_parameters": {"a": "x" * 10_001}}, "10000 bytes"),
        ({"job_id": 1, "notebook_params": {"a": "x" * 10_001}}, "10000 bytes"),
        ({"job_id": 1, "job_parameters": {"a": "b"}, "jar_params": ["c"]}, "combined"),
        ({"job_id": 1, "python_params": ["é"]}, "ASCII"),
    ],
)
def test_a_wrong_request_is_refused_by_its_field(body: dict[str, object], told: str) -> None:
    with pytest.raises(ApiError, match=told) as refused:
        run_now_from(body)
    assert (refused.value.status, refused.value.error_code) == (400, "INVALID_PARAMETER_VALUE")


@pytest.mark.parametrize(
    "settings",
    [
        {"max_concurrent_runs": 1001},
        {"heartbeat": {"command": [1]}},
        {"heartbeat": {"script": [{"phase": "NO_SUCH"}]}},
        {"heartbeat": {"timeout_seconds": -1}},
    ],
)
def test_a_wrong_job_is_refused(bench: Bench, settings: dict[str, object]) -> None:
    with pytest.raises(ApiError, match="Job 9"):
        bench.registry.put_job(9, settings)

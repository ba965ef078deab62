"""A run that is unreachable is recorded from the first time on, and reported after a while."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.config.model import Attention
from harness.errors import JobsApiError
from harness.inspect.attention import problem_of
from harness.inspect.explain import answer_to
from harness.inspect.job_history import history_of
from harness.inspect.status import Status
from harness.platform.databricks.api import RunReport
from harness.settle.unreachable_runs import Unreachable, load_unreachable, record_unreachable
from harness.store.rows import Run, RunStatus
from harness.tick.checkpoint import load_state, save_state
from harness.tick.engine import Engine
from tests.support.fake_jobs import FakeJobs
from tests.support.following import JOB as FOLLOWED_JOB
from tests.support.following import run_of
from tests.support.ledgers import JOB, a_day, minutes
from tests.unit.inspect.test_status import a_run, page, section, status_of
from tests.unit.tick.test_deferred_upstreams import World

AT = datetime(2026, 3, 1, 10, tzinfo=UTC)
DOWN = {1: "the Jobs API did not report on run 70: 503"}


def followed(run_id: int | None = 70, status: RunStatus = RunStatus.STARTED) -> Run:
    return a_run(1, status, run_id=run_id)


def note(home: Path, after: int, unanswered: dict[int, str], *runs: Run) -> dict[int, Unreachable]:
    record_unreachable(home, runs or [followed()], unanswered, AT + timedelta(minutes=after))
    return load_unreachable(home)


def test_the_first_tick_that_could_not_query_is_remembered_by_all_that_follow(
    tmp_path: Path,
) -> None:
    note(tmp_path, 0, DOWN)
    (reported,) = note(tmp_path, 9, {1: "timed out"}).values()
    assert reported == Unreachable(run_id=70, since=AT, reason="timed out")


def test_a_run_that_could_be_queried_is_forgotten(tmp_path: Path) -> None:
    note(tmp_path, 0, DOWN)
    assert note(tmp_path, 5, {}) == {}
    assert note(tmp_path, 9, DOWN)[1].since == AT + timedelta(minutes=9)


def test_another_run_of_the_job_begins_from_the_start(tmp_path: Path) -> None:
    note(tmp_path, 0, DOWN)
    assert note(tmp_path, 5, DOWN, followed(71))[1].since == AT + timedelta(minutes=5)


def test_a_clock_that_went_back_makes_the_silence_no_shorter_than_it_is(tmp_path: Path) -> None:
    note(tmp_path, 60, DOWN)
    assert note(tmp_path, 0, DOWN)[1].since == AT


@pytest.mark.parametrize("run", [followed(None), followed(status=RunStatus.SUCCEEDED)])
def test_a_start_without_an_answer_and_a_run_that_is_over_are_reported_otherwise(
    tmp_path: Path, run: Run
) -> None:
    assert note(tmp_path, 0, DOWN, run) == {}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"1": {}}', '{"x": null}'])
def test_a_file_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "unasked.json").write_text(content)
    assert load_unreachable(tmp_path) == {}
    assert note(tmp_path, 0, DOWN)[1].since == AT


def silent(status: Status, minutes_ago: int, run_id: int = 70) -> Status:
    since = status.now - timedelta(minutes=minutes_ago)
    return replace(status, unreachable={1: Unreachable(run_id=run_id, since=since, reason="503")})


@pytest.fixture
def runs() -> Sequence[Run]:
    return [a_run(1, RunStatus.STARTED, run_id=70, started_at=status_of(1).now)]


def test_a_run_that_could_not_be_queried_for_long_needs_attention(
    runs: Sequence[Run],
) -> None:
    lines = section(page(silent(status_of(3, runs), 16)), "needs attention 1")
    assert "unreachable" in lines
    assert "the state of run 70 is unknown: 503" in " ".join(lines.split())


def test_a_run_that_could_not_be_queried_for_a_moment_only_runs(runs: Sequence[Run]) -> None:
    assert "70" in section(page(silent(status_of(3, runs), 14)), "running 1")


def test_the_silence_of_an_older_run_means_nothing_for_the_one_that_goes_on(
    runs: Sequence[Run],
) -> None:
    assert "70" in section(page(silent(status_of(3, runs), 600, run_id=69)), "running 1")


@pytest.mark.parametrize(
    ("attention", "what"),
    [
        (Attention(unasked_minutes=4), "unreachable"),
        (Attention(running_minutes=1), "runs long"),
        (Attention(), None),
    ],
)
def test_the_configuration_states_after_how_long_a_run_needs_attention(
    attention: Attention, what: str | None
) -> None:
    status = silent(replace(status_of(3), attention=attention), 5)
    run = a_run(1, RunStatus.STARTED, run_id=70, started_at=status.now - timedelta(minutes=2))
    problem = problem_of(run, status)
    assert (problem and problem.what) == what


def test_the_configuration_states_how_long_a_run_may_wait_in_a_queue() -> None:
    status = replace(status_of(3), attention=Attention(queued_minutes=600))
    run = a_run(1, RunStatus.STARTED, run_id=70, state="QUEUED", recorded_at=minutes(120))
    assert problem_of(run, status) is None
    shorter = replace(status, attention=Attention(queued_minutes=60))
    assert (problem_of(run, shorter) or run) != run


def test_explain_states_since_when_a_run_could_not_be_queried() -> None:
    reported = history_of(a_day(), JOB, at=minutes(55), is_now=False)
    run = reported.last_run
    assert run is not None and run.is_open and run.run_id is not None
    unreachable = Unreachable(run_id=run.run_id, since=minutes(52), reason="503")
    sentence = answer_to(replace(reported, unreachable=unreachable)).sentence
    assert "it has been unreachable since" in sentence and sentence.endswith("(503)")


class _Silent(FakeJobs):
    """Reports nothing of a run until it is set to."""

    tells = False

    def get_run(self, run_id: int) -> RunReport | None:
        if not self.tells:
            raise JobsApiError(f"the Jobs API did not report on run {run_id}: 503")
        return super().get_run(run_id)


def test_a_tick_remembers_the_run_that_it_could_not_query(tmp_path: Path) -> None:
    world = World(tmp_path)
    jobs = _Silent(clock=world.clock)
    jobs.add_job(FOLLOWED_JOB)
    run = run_of(jobs)
    context = world.context()
    state = load_state(context.home.state, world.store)
    assert state is not None
    save_state(context.home.state, replace(state, runs=(run,)), world.store)
    vars(context)["jobs"] = jobs
    engine, began = Engine(context), world.clock.now()
    for _ in range(3):
        world.tick(engine)
    (reported,) = load_unreachable(context.home.folder).values()
    assert (reported.run_id, reported.since) == (run.run_id, began)
    jobs.tells = True
    world.tick(engine)
    assert load_unreachable(context.home.folder) == {}

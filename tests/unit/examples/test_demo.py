"""The demo's folder, its controls and its waiting, without a tick."""

import os
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from examples.flights.demo import PATIENCE_SECONDS, run_demo, wait_for_runs
from examples.flights.jobs.storm_watch import STRONG_GUST
from examples.flights.place import CHECKOUT, Place
from examples.flights.story import ACTS, ASKED_ABOUT, unpause
from harness.config.load import Settings, load_settings
from harness.controls.check import check
from harness.controls.findings import has_errors
from harness.controls.load import job_names
from harness.controls.parse import read_controls
from harness.errors import ConfigurationError, JobsApiError
from harness.platform.databricks.api import Accepted, Outcome
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs

START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(folder=tmp_path / "demo")
    place.claim()
    place.build()
    return place


@pytest.fixture
def settings(place: Place) -> Settings:
    return load_settings(place.project, place.variables)


def test_the_controls_of_the_demo_have_no_error(place: Place) -> None:
    controls = read_controls(place.controls)
    assert len(controls.rows) == 14
    assert not has_errors(check(controls))


def test_every_job_of_the_controls_has_a_command_that_is_there(
    place: Place, settings: Settings
) -> None:
    names = job_names(read_controls(place.controls))
    assert {job_id: job.name for job_id, job in settings.local_jobs.items()} == names
    for job in settings.local_jobs.values():
        python, _, module = job.command
        assert python == "python"
        assert find_spec(module) is not None


def test_the_ids_of_the_jobs_are_beyond_what_a_float_can_hold(settings: Settings) -> None:
    assert min(settings.local_jobs) > 2**53


def test_the_query_of_the_controls_and_its_job_mean_the_same_gusts(place: Place) -> None:
    assert f"wind_gust > {STRONG_GUST}," in place.controls.read_text()


def test_the_acts_start_only_jobs_that_there_are_and_each_of_them(place: Place) -> None:
    names = set(job_names(read_controls(place.controls)).values())
    assert {name for act in ACTS for name in act.starts} == names
    assert ASKED_ABOUT in names


def test_unpausing_a_table_edits_its_rows_and_no_others(place: Place) -> None:
    paused = place.controls.read_text().replace(",UNPAUSED,", ",PAUSED,")
    place.controls.write_text(paused)
    unpause(place.controls, "bronze.airlines")
    after = place.controls.read_text().splitlines()
    changed = [line for line, was in zip(after, paused.splitlines(), strict=True) if line != was]
    assert [line.split(",")[1] for line in changed] == ["bronze.airlines"] * 2
    assert all(",UNPAUSED," in line for line in changed)


def test_the_demo_works_on_a_copy_and_leaves_the_checkout_alone(
    place: Place, settings: Settings
) -> None:
    assert settings.project == place.project
    assert settings.home == place.home
    assert settings.trigger_root == place.lake / "triggers"
    assert (
        place.controls.read_text()
        != (CHECKOUT / place.controls.relative_to(place.project)).read_text()
    )


def test_the_variables_of_the_demo_end_with_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTBEAT_SCHEMA", "elsewhere")
    before, folder = dict(os.environ), Path.cwd()
    with place.inside():
        assert os.environ["HEARTBEAT_HOME"] == str(place.home)
        assert "HEARTBEAT_SCHEMA" not in os.environ
        assert Path.cwd() == place.project
    assert dict(os.environ) == before
    assert Path.cwd() == folder


def test_a_folder_that_holds_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigurationError, match="not of the demo"):
        run_demo([str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_an_earlier_demo_has_left_is_removed_but_for_the_lock(place: Place) -> None:
    (place.lake / "gold").mkdir(parents=True)
    (place.home / "warehouse").mkdir(parents=True)
    (place.home / "state.json").touch()
    (place.home / "lock").touch()
    place.claim()
    place.clear()
    assert [path.name for path in place.home.iterdir()] == ["lock"]
    assert not place.lake.exists()
    assert not place.project.exists()


def test_two_folders_are_one_too_many() -> None:
    with pytest.raises(ConfigurationError, match="one argument at most"):
        run_demo(["here", "there"])


class EndingClock(FakeClock):
    """Ends a run when it has been waited for a second."""

    def __init__(self) -> None:
        super().__init__(START)
        self.jobs = FakeJobs(clock=self)
        self.jobs.add_job(1)
        answer = self.jobs.run_now(job_id=1, token="once", parameters={})
        assert isinstance(answer, Accepted)
        self.run_id = answer.run_id
        self.ends = True

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.ends and self.waited >= 1:
            self.jobs.end_run(self.run_id, Outcome.FAILED)

    @property
    def waited(self) -> float:
        return (self.now() - START).total_seconds()


def test_the_demo_waits_until_a_run_has_ended_however_it_ended() -> None:
    clock = EndingClock()
    wait_for_runs(clock.jobs, [clock.run_id], clock)
    assert 1 <= clock.waited < 2


def test_the_demo_does_not_wait_for_ever() -> None:
    clock = EndingClock()
    clock.ends = False
    with pytest.raises(JobsApiError, match=f"{clock.run_id} has not ended"):
        wait_for_runs(clock.jobs, [clock.run_id], clock)
    assert clock.waited == pytest.approx(PATIENCE_SECONDS, abs=1)

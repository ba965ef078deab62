"""Which folder a process works on, and how a project outside of the checkout gets the models."""

from pathlib import Path

import pytest

from harness.config.project import (
    PACKAGE,
    STATUS_TRANSITIONS,
    dbt_project_of,
    link_package,
    project_folder,
)
from harness.errors import ConfigurationError
from harness.tick.install import models_checksum

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "seeds").mkdir(parents=True)
    (folder / "heartbeat.yml").touch()
    return folder


def links_of(project: Path) -> dict[str, Path]:
    found = [path for path in project.rglob("*") if path.is_symlink()]
    return {path.relative_to(project).as_posix(): path.resolve() for path in found}


def test_a_command_works_on_the_project_around_the_current_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = project / "jobs" / "daily"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert project_folder({}) == project


def test_a_project_that_is_named_comes_first(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert project_folder({"HEARTBEAT_PROJECT": str(tmp_path)}) == tmp_path


def test_elsewhere_the_checkout_is_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert project_folder({}) == CHECKOUT == PACKAGE


def test_a_project_with_a_dbt_project_of_its_own_uses_its_own_models(project: Path) -> None:
    (project / "dbt_project.yml").touch()
    link_package(project)
    assert dbt_project_of(project) == project


def test_a_project_has_links_to_all_that_plain_dbt_needs(project: Path) -> None:
    link_package(project)
    assert dbt_project_of(project) == PACKAGE
    assert all(target == PACKAGE / name for name, target in links_of(project).items())
    assert models_checksum(project) == models_checksum(PACKAGE)
    own = {path.name for path in (project / "seeds").iterdir()}
    assert own == {path.name for path in (PACKAGE / "seeds").iterdir()} - {"heartbeat_controls.csv"}


def test_a_project_has_each_optional_seed_without_rows_and_the_transitions(project: Path) -> None:
    link_package(project)
    seeds = {path.name: path.read_text().splitlines() for path in project.glob("seeds/*.csv")}
    assert len(seeds.pop(STATUS_TRANSITIONS)) > 1
    assert {name: len(lines) for name, lines in seeds.items()} == dict.fromkeys(seeds, 1)


def test_what_a_user_has_put_in_place_stays(project: Path) -> None:
    (project / "selectors.yml").write_text("mine")
    (project / "seeds" / "scheduled_jobs.csv").write_text("job_id,note\n7,mine\n")
    link_package(project)
    assert (project / "selectors.yml").read_text() == "mine"
    assert "7,mine" in (project / "seeds" / "scheduled_jobs.csv").read_text()


def test_a_link_to_an_environment_that_is_gone_is_replaced(project: Path) -> None:
    (project / "models").symlink_to(project / "gone" / "models")
    link_package(project)
    assert (project / "models").resolve() == PACKAGE / "models"


def test_controls_that_are_missing_stay_missing(project: Path) -> None:
    link_package(project)
    assert not (project / "seeds" / "heartbeat_controls.csv").exists()


def test_a_folder_that_takes_no_links_is_no_reason_to_stop(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "tests").write_text("a file where a folder has to be")
    link_package(project)
    assert "plain dbt cannot be used" in caplog.text


def test_a_named_project_without_configuration_is_reported_by_its_reader(tmp_path: Path) -> None:
    from harness.config.load import load_settings

    with pytest.raises(ConfigurationError, match=r"heartbeat\.yml"):
        load_settings(project_folder({"HEARTBEAT_PROJECT": str(tmp_path)}), {})

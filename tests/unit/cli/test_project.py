"""``new`` and the names of the command line."""

import fnmatch
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import __version__
from harness.cli.app import app
from harness.config.load import load_settings
from harness.config.project import PACKAGE
from harness.controls.header import COLUMNS
from harness.controls.load import check_controls
from harness.errors import ConfigurationError, ExitCode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    answer = CliRunner().invoke(app, ["new", str(folder)])
    assert answer.exit_code == ExitCode.DONE, answer.output
    return folder


def test_a_new_project_is_valid_and_has_no_rows(project: Path) -> None:
    load_settings(project, {})
    checked = check_controls(project, None)
    assert [finding.code for finding in checked.findings] == ["no_rows"]
    header = (project / "seeds" / "heartbeat_controls.csv").read_text()
    assert header == ",".join(COLUMNS) + "\n"


def test_the_row_in_the_readme_of_a_project_is_a_valid_one(project: Path) -> None:
    lines = [line.strip() for line in (project / "README.md").read_text().splitlines()]
    begin = lines.index(",".join(COLUMNS))
    text = "".join(f"{line}\n" for line in lines[begin : begin + 2])
    (project / "seeds" / "heartbeat_controls.csv").write_text(text)
    checked = check_controls(project, None)
    assert (len(checked.controls.rows), checked.findings) == (1, ())


def test_no_link_of_a_project_gets_into_version_control(project: Path) -> None:
    ignored = [f"{project}{line}" for line in (project / ".gitignore").read_text().splitlines()]
    links = [path for path in project.rglob("*") if path.is_symlink()]
    assert links
    assert [each for each in links if not any(fnmatch.fnmatch(str(each), p) for p in ignored)] == []


@pytest.mark.parametrize("name", ["heartbeat.yml", "profiles.yml"])
def test_a_new_project_begins_with_the_packaged_settings(project: Path, name: str) -> None:
    assert (project / name).read_bytes() == (PACKAGE / name).read_bytes()


def test_a_folder_that_holds_anything_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    answer = CliRunner().invoke(app, ["new", str(tmp_path)])
    assert isinstance(answer.exception, ConfigurationError)
    assert str(answer.exception).endswith("name a folder that is empty or not there yet")
    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("called", "name"),
    [("/usr/local/bin/heartbeat", "heartbeat"), ("harness/__main__.py", "python -m harness")],
)
def test_help_has_the_name_that_was_called(called: str, name: str) -> None:
    program = f"import sys; sys.argv[0] = {called!r}; from harness.cli.app import main; main"
    answer = subprocess.run(
        [sys.executable, "-c", f"{program}(['tick', '--help'])"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"Usage: {name} tick [OPTIONS]" in answer.stdout
    assert f" {name} tick --source trigger_file" in answer.stdout
    assert ("python -m" in answer.stdout) is (name != "heartbeat")


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"heartbeat {__version__}\n"

"""``new`` and the names of the command line."""

import fnmatch
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from rich.console import Console
from typer.testing import CliRunner

from harness import __version__
from harness.cli.app import app, main
from harness.cli.common import print_line
from harness.cli.views.terminal import Column, print_table
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


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    answer = CliRunner().invoke(app, ["new", str(folder), "--empty"])
    assert answer.exit_code == ExitCode.DONE, answer.output
    return folder


def test_an_empty_project_is_valid_and_has_no_rows(empty: Path) -> None:
    load_settings(empty, {})
    checked = check_controls(empty, None)
    assert [finding.code for finding in checked.findings] == ["no_rows"]
    header = (empty / "seeds" / "heartbeat_controls.csv").read_text()
    assert header == ",".join(COLUMNS) + "\n"
    assert not (empty / "jobs").exists()


def test_a_new_project_has_one_row_without_findings_and_its_job_a_command(project: Path) -> None:
    settings = load_settings(project, {})
    checked = check_controls(project, None, configured=settings)
    assert (len(checked.controls.rows), checked.findings) == (1, ())
    (row,) = checked.controls.rows
    assert DeltaTable(row.sensor_id).version() == 0
    commands = settings.jobs.local.commands
    assert isinstance(commands, dict)
    assert [(job, each.name) for job, each in commands.items()] == [(101, "count-orders")]


def test_the_next_steps_have_the_folder_and_the_program_as_they_were_given(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["new", str(tmp_path / "my project")])
    assert f"cd '{tmp_path / 'my project'}'" in answer.output
    assert "tick   # starts the job count-orders" in answer.output


def ran(project: Path, script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    events = '[{"operation_type": "APPEND", "snapshot_id": "1"}]'
    return subprocess.run(
        [sys.executable, script, *arguments],
        cwd=project,
        env={**os.environ, "HEARTBEAT_EVENTS": events},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_example_succeeds_fails_with_a_reason_and_succeeds_when_it_is_corrected(
    project: Path,
) -> None:
    job = project / "jobs" / "count_orders.py"
    assert ran(project, "write_orders.py").returncode == 0
    good = ran(project, str(job))
    assert good.stdout == "new: APPEND, version 1\n6 orders, 120.00 in all\n"
    ran(project, "write_orders.py", "--broken")
    bad = ran(project, str(job))
    assert (bad.returncode, bad.stderr) == (1, "order 8 has the amount -3.0\n")
    job.write_text(job.read_text().replace("ALLOW_NEGATIVE = False", "ALLOW_NEGATIVE = True"))
    assert "9 orders" in ran(project, str(job)).stdout


def test_the_readme_of_an_empty_project_names_no_example(empty: Path, project: Path) -> None:
    assert "write_orders.py" in (project / "README.md").read_text()
    assert "write_orders.py" not in (empty / "README.md").read_text()


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
def test_an_empty_project_begins_with_the_packaged_settings(empty: Path, name: str) -> None:
    assert (empty / name).read_bytes() == (PACKAGE / name).read_bytes()


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


@pytest.mark.parametrize(
    ("called", "name"),
    [("/usr/local/bin/heartbeat", "heartbeat"), ("harness/__main__.py", "python -m harness")],
)
def test_a_command_that_a_text_names_can_be_repeated_as_it_is(
    called: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [called])
    print_line("run `python -m harness tick`")
    print_table(Console(width=80), [Column(title="todo")], [["python -m harness retry daily"]])
    monkeypatch.setenv("HEARTBEAT_HOME", "/nowhere/at/all")
    assert main(["status"]) == ExitCode.FAILED
    printed = capsys.readouterr()
    assert printed.out.splitlines()[::2] == [f"run `{name} tick`", f"  {name} retry daily"]
    assert printed.err.endswith(f"is not set up yet: run `{name} init` first\n")


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"heartbeat {__version__}\n"

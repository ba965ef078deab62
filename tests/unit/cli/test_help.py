"""The help: commands in groups, options in words, examples alike; and the completion of a shell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from harness.cli.app import app
from harness.cli.help import GROUPS, group_commands
from harness.controls.header import COLUMNS
from tests.unit.cli.conftest import Call

PROGRAM = "python -m harness"
NAMES = [each.name or each.callback.__name__ for each in app.registered_commands if each.callback]


def shown() -> list[str]:
    """The list of the commands as a person at a terminal of 80 columns gets it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEARTBEAT_")}
    answer = subprocess.run(
        [sys.executable, "-m", "harness", "--help"],
        env={**own, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.rstrip() for line in answer.stdout.splitlines()]


def test_the_groups_stand_in_their_order_and_hold_every_command() -> None:
    lines = shown()
    headings = [line.split()[1:-1] for line in lines if line.startswith("╭─")]
    assert [" ".join(words).rstrip(" ─") for words in headings][1:] == list(GROUPS)
    named = [line.split()[1] for line in lines if line.startswith("│ ") and line[2].islower()]
    assert [each for each in named if each in NAMES] == NAMES
    assert [each for names in GROUPS.values() for each in names] == NAMES


def test_each_command_has_one_line_at_eighty_columns() -> None:
    lines = shown()
    begin = next(place for place, line in enumerate(lines) if line.startswith("╭─ Everyday"))
    rows = [line for line in lines[begin:] if line.startswith("│")]
    assert [line for line in rows if line[2] == " "] == []
    assert len(rows) == len(NAMES)


def rendered(answer: str) -> tuple[list[str], list[str]]:
    """The lines of the examples, and those of the options."""
    lines = [line.rstrip() for line in answer.splitlines()]
    begin = lines.index(" Examples:")
    end = next(place for place, line in enumerate(lines) if line.startswith("╭─"))
    return [line for line in lines[begin + 1 : end] if line], lines[end:]


@pytest.mark.parametrize("command", NAMES)
def test_examples_begin_alike_and_fit_a_line_and_no_option_shows_a_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call_here: Call, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    examples, options = rendered(call_here(tmp_path, command, "--help").stdout)
    assert examples
    starts = (f" {PROGRAM} {command}", " HEARTBEAT_HOME=", " cd ")
    assert [each for each in examples if not each.startswith(starts)] == []
    assert [each for each in options if "<" in each or "list[" in each or "x>=" in each] == []


def completed(project: Path, words: str) -> list[str]:
    """What bash offers for the last word."""
    program = "import sys; sys.argv[0] = 'heartbeat'; from harness.cli.app import main; main([])"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project,
        env={
            **os.environ,
            "HEARTBEAT_PROJECT": str(project),
            "_HEARTBEAT_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
            "PYTHONPATH": str(Path(__file__).parents[3]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stderr == ""
    return answer.stdout.split()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "heartbeat.yml").write_text("")
    rows = ["trigger_file,a,streaming,,,,101,orders,UNPAUSED,TRUE"]
    rows += ["trigger_file,b,streaming,,,,102,outlets,UNPAUSED,TRUE"]
    text = "\n".join([",".join(COLUMNS), *rows, ""])
    (tmp_path / "seeds" / "heartbeat_controls.csv").write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("heartbeat expl", ["explain"]),
        ("heartbeat explain ", ["orders", "outlets"]),
        ("heartbeat explain or", ["orders"]),
        ("heartbeat retry 10", ["101", "102"]),
        ("heartbeat tick --job out", ["outlets"]),
    ],
)
def test_a_shell_completes_commands_and_jobs(project: Path, words: str, offered: list[str]) -> None:
    assert completed(project, words) == offered


def test_a_project_without_controls_completes_nothing_and_reports_nothing(project: Path) -> None:
    (project / "seeds" / "heartbeat_controls.csv").unlink()
    assert completed(project, "heartbeat explain ") == []


def test_a_command_of_no_group_is_still_listed() -> None:
    other = typer.Typer()
    other.command("later")(lambda: None)
    other.command("tick")(lambda: None)
    group_commands(other)
    assert [each.name for each in other.registered_commands] == ["tick", "later"]

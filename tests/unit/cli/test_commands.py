"""The command line as a shell sees it: exit codes, one sentence on stderr, and nothing heavy."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.app import app
from harness.errors import ConfigurationError, ExitCode
from harness.sense.backoff import BackOff, Failing, save_back_off
from harness.store.writer.lock import ProcessLock
from tests.support.controls_text import HEADER, line
from tests.unit.cli.conftest import Call

PROJECT = Path(__file__).resolve().parents[3]
COMMANDS = (
    "new",
    "import",
    "init",
    "validate",
    "tick",
    "run",
    "status",
    "explain",
    "jobs",
    "upstreams",
    "runs",
    "logs",
    "events",
    "report",
    "doctor",
    "retry",
    "release",
    "try-again",
    "complete",
    "sense",
    "processed",
    "emit",
    "refresh",
    "maintain",
    "alarms",
    "engine",
    "jobs-api",
    "setup",
    "demo",
    "docs",
)
HEAVY = {"pyspark", "dbt", "databricks", "py4j", "deltalake", "pandas"}

#: Runs the command line and then prints which modules it imported.
TELL_MODULES = """
import sys
from harness.cli.app import main
code = main(sys.argv[1:])
print("modules", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def call(
    home: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    start: Sequence[str] = ("-m", "harness"),
) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEARTBEAT_")}
    return subprocess.run(
        [sys.executable, *start, *arguments],
        cwd=PROJECT,
        env={**own, "HEARTBEAT_HOME": str(home), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def modules_of(home: Path, *arguments: str) -> set[str]:
    answer = call(home, *arguments, start=("-c", TELL_MODULES))
    return set(answer.stderr.partition("modules ")[2].split())


def set_up(home: Path, *, version: int) -> None:
    """Write what distinguishes a state directory from an empty one, without its tables."""
    (home / "version.json").write_text(json.dumps({"state_version": version, "models": "x"}))
    (home / "warehouse" / "heartbeat.db" / "heartbeat_control" / "_delta_log").mkdir(parents=True)


def keep_failing(home: Path) -> None:
    """Save the back-off that ticks leave behind after failed probes."""
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    failing = Failing(
        upstream_id="file:x:ab5c14a4",
        reason="it is down.",
        failed_looks=5,
        since=noon,
        failed_at=noon,
        wait_seconds=900,
    )
    back_off = BackOff(failing={failing.upstream_id: failing})
    save_back_off(home / "back_off.json", back_off, "any")


def is_one_sentence(output: str) -> bool:
    return (
        len(output.splitlines()) == 1 and output.startswith("error: ") and "Traceback" not in output
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str) -> None:
    answer = CliRunner().invoke(app, [command, "--help"], prog_name="python -m harness")
    assert answer.exit_code == ExitCode.DONE
    assert "Examples" in answer.stdout
    assert f"python -m harness {command}" in answer.stdout.partition("Examples")[2]


def test_every_command_is_known() -> None:
    assert (
        tuple(each.name or each.callback.__name__ for each in app.registered_commands) == COMMANDS
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("tick", "--source", "carrier_pigeon"),
        ("run", "--every", "often"),
        ("run", "--ticks", "0"),
        ("tick", "--job", "no such job"),
        ("complete",),
        ("jobs-api", "--stop", "--status"),
        ("doctor", "everything"),
    ],
)
def test_wrong_usage_ends_with_two(
    tmp_path: Path, arguments: Sequence[str], call_here: Call
) -> None:
    answer = call_here(tmp_path, *arguments)
    assert answer.returncode == ExitCode.USAGE
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("unload", "m"), "unload needs --batch"),
        (("reset", "m", "--batch", "1"), "--batch means nothing to reset"),
        (("reload", "m", "--batch", "1", "--without", "1"), "--without means nothing to reload"),
        (("reset", "m", "--keep-days", "1"), "--keep-days means nothing to reset, but to vacuum"),
        (("vacuum", "m"), "vacuum needs --keep-days, a number of days"),
        (("status", "m", "--dry-run"), "--dry-run means nothing to status"),
        (("status", "m", "--project", "nowhere"), "no dbt_project.yml in this folder"),
    ],
)
def test_options_that_an_operation_on_batches_does_not_have_are_refused(
    tmp_path: Path, arguments: Sequence[str], said: str
) -> None:
    answer = CliRunner().invoke(app, ["refresh", *arguments])
    assert isinstance(answer.exception, ConfigurationError)
    assert said in str(answer.exception)


@pytest.mark.parametrize(
    ("arguments", "operation", "handed"),
    [
        (("status", "m"), "status", {}),
        (("recover", "m", "--dry-run"), "recover", {"dry_run": True}),
        (("unload", "m", "--batch", "7", "--batch", "8"), "unload", {"input_ids": [7, 8]}),
        (("reset", "m", "--without", "7"), "reset", {"without": [7]}),
    ],
)
def test_an_operation_on_batches_is_dbts_own_and_its_output_is_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Sequence[str],
    operation: str,
    handed: Mapping[str, object],
) -> None:
    calls: list[tuple[Path | None, str, Mapping[str, object]]] = []

    class Dbt:
        def __init__(self, project: Path | None) -> None:
            self._project = project

        def operate(self, name: str, given: Mapping[str, object]) -> list[str]:
            calls.append((self._project, name, given))
            return ["m batch 1: COMPLETE"]

    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("harness.context.Context.dbt_of", lambda self, project: Dbt(project))
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")

    answer = CliRunner().invoke(app, ["refresh", *arguments, "--project", str(tmp_path)])

    assert (answer.exit_code, answer.stdout) == (ExitCode.DONE, "m batch 1: COMPLETE\n")
    assert calls == [(tmp_path, f"heartbeat.refresh_{operation}", {"model": "m", **handed})]


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("explain", "x"),
        ("jobs",),
        ("upstreams",),
        ("runs",),
        ("logs", "x"),
        ("events",),
        ("report",),
        ("report", "--serve"),
        ("retry", "x"),
        ("release", "x"),
        ("sense", "x"),
        ("processed", "x"),
        ("maintain",),
    ],
)
def test_a_folder_that_is_not_set_up_is_reported_with_the_remedy(
    tmp_path: Path, arguments: Sequence[str], call_here: Call
) -> None:
    answer = call_here(tmp_path, *arguments)
    assert answer.returncode == ExitCode.FAILED
    assert is_one_sentence(answer.stderr)
    assert "python -m harness init" in answer.stderr


@pytest.mark.parametrize("arguments", [("tick",), ("run",), ("init",), ("maintain",)])
def test_a_second_writer_names_the_process_that_holds_the_lock_and_ends_with_three(
    tmp_path: Path, arguments: Sequence[str]
) -> None:
    with ProcessLock(tmp_path, command="tick"):
        answer = call(tmp_path, *arguments)
    assert answer.returncode == ExitCode.LOCKED
    assert is_one_sentence(answer.stderr)
    assert f"pid {os.getpid()}, `tick`" in answer.stderr


@pytest.mark.parametrize("arguments", [("tick",), ("init",), ("complete", "--job", "1")])
def test_a_state_directory_that_cannot_be_made_is_one_sentence(
    tmp_path: Path, arguments: Sequence[str], call_here: Call
) -> None:
    (tmp_path / "file").write_text("no folder")
    answer = call_here(tmp_path / "file" / "home", *arguments)
    assert answer.returncode == ExitCode.FAILED
    assert is_one_sentence(answer.stderr)


@pytest.mark.parametrize("command", ["tick", "status"])
def test_a_state_directory_of_a_newer_version_is_left_alone(
    tmp_path: Path, command: str, call_here: Call
) -> None:
    set_up(tmp_path, version=99)
    answer = call_here(tmp_path, command)
    assert answer.returncode == ExitCode.FAILED
    assert is_one_sentence(answer.stderr)
    assert "newer Heartbeat" in answer.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with controls of its own."""
    copy = tmp_path / "project"
    (copy / "seeds").mkdir(parents=True)
    shutil.copy(PROJECT / "heartbeat.yml", copy / "heartbeat.yml")
    rows = [line(), line(sensor_id="sales.returns")]
    text = "\n".join([HEADER, *rows, ""])
    (copy / "seeds" / "heartbeat_controls.csv").write_text(text)
    return copy


def test_controls_that_are_right_end_with_zero(
    tmp_path: Path, project: Path, call_here: Call
) -> None:
    (project / "heartbeat.yml").write_text("jobs: {local: {default_command: make}}\n")
    answer = call_here(tmp_path, "validate", project=project)
    assert answer.returncode == ExitCode.DONE
    assert "nothing is wrong" in answer.stdout


def test_every_finding_is_printed_and_errors_end_with_two(
    tmp_path: Path, project: Path, call_here: Call
) -> None:
    controls = project / "seeds" / "heartbeat_controls.csv"
    controls.write_text(controls.read_text().replace("UNPAUSED", "ASLEEP"))
    answer = call_here(tmp_path, "validate", project=project)
    assert answer.returncode == ExitCode.USAGE
    assert answer.stdout.count("[job_state]") == 2
    assert "seeds/heartbeat_controls.csv:2: error: job_state: " in answer.stdout
    assert "\x1b" not in answer.stdout


def test_findings_are_json_for_scripts(tmp_path: Path, project: Path, call_here: Call) -> None:
    controls = project / "seeds" / "heartbeat_controls.csv"
    controls.write_text(controls.read_text().replace("111", "no number"))
    answer = call_here(tmp_path, "validate", "--json", project=project)
    content = json.loads(answer.stdout)
    assert content["ok"] is False
    assert content["findings"][0]["code"] == "job_id_number"


@pytest.mark.parametrize("command", ["validate", "tick", "init"])
def test_controls_that_are_not_there_are_one_sentence_and_two(
    tmp_path: Path, project: Path, command: str, call_here: Call
) -> None:
    (project / "seeds" / "heartbeat_controls.csv").unlink()
    answer = call_here(tmp_path, command, project=project)
    assert answer.returncode == ExitCode.USAGE
    assert is_one_sentence(answer.stderr)


def test_settings_that_are_wrong_are_reported_with_file_and_key(
    tmp_path: Path, project: Path, call_here: Call
) -> None:
    (project / "heartbeat.yml").write_text("sensing: {threads: many}\n")
    answer = call_here(tmp_path, "status", project=project)
    assert answer.returncode == ExitCode.USAGE
    assert "heartbeat.yml" in answer.stderr
    assert "threads" in answer.stderr


def test_debug_shows_where_an_error_came_from_wherever_it_stands(tmp_path: Path) -> None:
    assert "Traceback" in call(tmp_path, "status", "--debug").stderr
    assert "Traceback" in call(tmp_path, "--debug", "status").stderr


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, "--help")
    assert "harness" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    "arguments",
    [
        *(("status",), ("explain", "x"), ("retry", "x"), ("release", "x"), ("doctor",)),
        *(("jobs",), ("upstreams",), ("runs",), ("logs", "x")),
        ("complete", "--job", "1"),
    ],
)
def test_reading_needs_no_jvm_and_no_dbt(tmp_path: Path, arguments: Sequence[str]) -> None:
    set_up(tmp_path, version=1)
    assert not modules_of(tmp_path, *arguments) & (HEAVY - {"deltalake"})


def test_doctor_answers_beside_a_tick_and_ends_with_zero_when_nothing_is_broken(
    tmp_path: Path,
) -> None:
    with ProcessLock(tmp_path, command="tick"):
        answer = call(tmp_path, "doctor")
    assert answer.returncode == ExitCode.DONE, answer.stdout
    assert "`tick` is at work" in answer.stdout


def test_doctor_ends_with_one_when_the_configuration_is_broken(tmp_path: Path) -> None:
    file = tmp_path / "other.yml"
    file.write_text("sensing: {threads: many}")
    answer = call(tmp_path, "doctor", "--json", environment={"HEARTBEAT_CONFIG": str(file)})
    assert answer.returncode == ExitCode.FAILED
    assert json.loads(answer.stdout)["findings"][0]["about"] == "configuration"


def test_a_person_ends_every_wait_while_somebody_ticks(tmp_path: Path) -> None:
    keep_failing(tmp_path)
    with ProcessLock(tmp_path, command="run"):
        answer = call(tmp_path, "try-again")
    assert answer.stdout == "the next tick probes 1 upstream that kept failing\n"
    assert not (tmp_path / "back_off.json").exists()


def test_a_script_receives_the_upstreams_whose_wait_has_ended(
    tmp_path: Path, call_here: Call
) -> None:
    keep_failing(tmp_path)
    answer = call_here(tmp_path, "try-again", "--json")
    assert json.loads(answer.stdout) == {"upstreams": ["file:x:ab5c14a4"]}


def test_there_may_be_no_wait_to_end(tmp_path: Path, call_here: Call) -> None:
    answer = call_here(tmp_path, "try-again")
    assert answer.returncode == ExitCode.DONE
    assert answer.stdout == "nothing keeps failing: the next tick probes everything\n"


def test_a_wait_that_cannot_be_ended_is_reported_in_one_sentence(
    tmp_path: Path, call_here: Call
) -> None:
    (tmp_path / "back_off.json").mkdir()
    answer = call_here(tmp_path, "try-again")
    assert answer.returncode == ExitCode.FAILED
    assert is_one_sentence(answer.stderr)


@pytest.mark.parametrize("command", ["validate", "init"])
def test_a_secret_that_cannot_be_fetched_is_reported_before_it_is_needed(
    tmp_path: Path, command: str, call_here: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "other.yml"
    file.write_text("connections: {jdbc: {shop: {url: 'jdbc:x:y', password: 'secret:s/k'}}}")
    monkeypatch.setenv("HEARTBEAT_CONFIG", str(file))
    monkeypatch.setenv("DATABRICKS_HOST", "")
    answer = call_here(tmp_path, command)
    assert answer.returncode == ExitCode.USAGE
    assert is_one_sentence(answer.stderr)
    assert "connections.jdbc.shop.password: secret:s/k" in answer.stderr

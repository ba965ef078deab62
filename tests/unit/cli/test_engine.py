"""The command `engine`, over processes that stand in for an owner and a server."""

import json
import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import Result
from typer.testing import CliRunner

from harness.cli.app import app
from harness.config.load import load_settings
from harness.context import wanted_engine
from harness.errors import ConfigurationError, ExitCode, HeartbeatError, LockedError, StateError
from harness.tick.engine import Engine
from tests.support.fake_engines import TOKEN, a_record, an_engine, used, write_record
from tests.support.processes import ends
from tests.unit.cli.test_commands import HEAVY, PROJECT, modules_of

#: No process has it: it is beyond the largest that Linux gives.
NO_PID = 2**22 + 1


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory, with a configuration beside it."""
    (tmp_path / "heartbeat.yml").write_text("engine: {mode: shared, idle_minutes: 7}\n")
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEARTBEAT_CONFIG", str(tmp_path / "heartbeat.yml"))
    monkeypatch.setenv("HEARTBEAT_PROJECT", str(PROJECT))
    monkeypatch.delenv("HEARTBEAT_TARGET", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    return tmp_path / "home"


def engine(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["engine", *arguments])


def status() -> dict[str, object]:
    content = json.loads(engine("status", "--json").stdout)
    assert isinstance(content, dict)
    return content


def refusal(answer: Result) -> str:
    assert isinstance(answer.exception, HeartbeatError)
    return str(answer.exception)


def test_without_an_engine_status_ends_with_four(home: Path) -> None:
    answer = engine("status")
    assert answer.exit_code == ExitCode.NOTHING_NEW
    assert answer.stdout.splitlines()[0] == "no engine runs"
    assert "engine.mode: shared, engine.idle_minutes: 7" in answer.stdout


@pytest.mark.parametrize("operation", ["status", "stop"])
def test_without_an_engine_nothing_heavy_is_imported_and_no_folder_is_made(
    tmp_path: Path, operation: str
) -> None:
    assert not modules_of(tmp_path / "home", "engine", operation) & HEAVY
    assert not (tmp_path / "home").exists()


def test_a_running_engine_is_reported_with_its_processes_its_port_and_its_use(home: Path) -> None:
    with an_engine(home) as record:
        answer, content = engine("status"), status()
    assert answer.exit_code == ExitCode.DONE
    assert answer.stdout.splitlines()[0] == "the engine runs"
    memory = content.pop("memory_bytes")
    assert isinstance(memory, int)
    assert memory > 1_000_000
    assert content == {
        "state": "running",
        "owner": record.owner,
        "server": record.server,
        "port": record.port,
        "started_at": record.started_at,
        "in_use": False,
        "settings_match": False,
        "mode": "shared",
        "idle_minutes": 7.0,
    }


def test_an_engine_of_the_settings_of_the_next_command_is_reported_as_such(home: Path) -> None:
    settings = load_settings(PROJECT, os.environ)
    with an_engine(home, settings=wanted_engine(settings).checksum):
        assert status()["settings_match"] is True


def test_without_spark_settings_an_engine_cannot_be_compared(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seeds").mkdir()
    monkeypatch.setenv("HEARTBEAT_PROJECT", str(tmp_path))
    with an_engine(home):
        assert status()["settings_match"] is None


def test_a_process_that_uses_the_engine_is_reported(home: Path) -> None:
    with an_engine(home), used(home):
        assert status()["in_use"] is True


@pytest.mark.parametrize("arguments", [("status",), ("status", "--json"), ("stop", "--json")])
def test_the_token_is_never_shown(home: Path, arguments: tuple[str, ...]) -> None:
    with an_engine(home):
        answer = engine(*arguments)
    assert answer.stdout
    assert TOKEN not in answer.output


def test_an_engine_that_does_not_answer_ends_status_with_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.inspect.engine.SECONDS_TO_GREET", 0.2)
    with an_engine(home) as record:
        os.kill(record.server, signal.SIGSTOP)
        answer = engine("status")
    assert answer.exit_code == ExitCode.FAILED
    assert answer.stdout.startswith("the engine does not answer within 5 s")


def test_a_dead_engine_is_none(home: Path) -> None:
    write_record(home, a_record(NO_PID, NO_PID))
    answer = engine("status")
    assert answer.exit_code == ExitCode.NOTHING_NEW
    assert "died" in answer.stdout
    assert status()["state"] == "ended"


@pytest.mark.parametrize("is_frozen", [False, True])
def test_stop_ends_both_processes_of_an_engine(home: Path, *, is_frozen: bool) -> None:
    with an_engine(home) as record:
        if is_frozen:
            os.kill(record.server, signal.SIGSTOP)
        answer = engine("stop", "--json")
        assert ends(record.owner)
        assert ends(record.server)
    assert json.loads(answer.stdout) == {
        "stopped": True,
        "owner": record.owner,
        "server": record.server,
    }
    assert status()["state"] == "none"


def test_stop_names_what_has_ended(home: Path) -> None:
    with an_engine(home) as record:
        answer = engine("stop")
    expected = f"the engine has stopped (server pid {record.server}, owner {record.owner})\n"
    assert (answer.exit_code, answer.stdout) == (ExitCode.DONE, expected)


def test_stop_removes_what_a_dead_engine_has_left(home: Path) -> None:
    write_record(home, a_record(NO_PID, NO_PID))
    answer = engine("stop")
    assert (answer.exit_code, answer.stdout) == (ExitCode.DONE, "no engine was running\n")
    assert status()["state"] == "none"


@pytest.mark.parametrize("operation", ["stop", "restart"])
def test_an_engine_that_another_process_uses_stays(home: Path, operation: str) -> None:
    with an_engine(home) as record, used(home):
        answer = engine(operation)
        assert record.is_alive
    assert isinstance(answer.exception, LockedError)
    assert f"(pid {record.server})" in refusal(answer)
    assert "--force" in refusal(answer)


def test_stop_ends_an_engine_in_use_when_it_is_forced(home: Path) -> None:
    with an_engine(home) as record, used(home):
        answer = engine("stop", "--force")
        assert not record.is_alive
    assert answer.exit_code == ExitCode.DONE


def test_an_engine_that_would_end_with_its_command_is_not_restarted(home: Path) -> None:
    (home.parent / "heartbeat.yml").write_text("engine: {mode: inline}\n")
    with an_engine(home) as record:
        answer = engine("restart")
        assert record.is_alive
    assert isinstance(answer.exception, ConfigurationError)
    assert refusal(answer).startswith("heartbeat.yml: engine.mode is inline")


def test_a_workspace_has_no_engine_to_restart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTBEAT_TARGET", "databricks")
    answer = engine("restart")
    assert isinstance(answer.exception, ConfigurationError)
    assert "HEARTBEAT_TARGET is databricks" in refusal(answer)


def test_beside_a_server_of_the_users_own_no_engine_is_restarted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    with an_engine(home) as record:
        answer = engine("restart")
        assert record.is_alive
    assert isinstance(answer.exception, ConfigurationError)
    assert refusal(answer).startswith("SPARK_REMOTE is set")


def test_nothing_can_be_forced_of_status(home: Path) -> None:
    answer = engine("status", "--force")
    assert isinstance(answer.exception, ConfigurationError)
    assert "--force means nothing to status" in refusal(answer)


def test_an_engine_that_run_has_started_serves_the_others(home: Path) -> None:
    settings = load_settings(PROJECT, os.environ)
    ours, theirs = wanted_engine(settings), wanted_engine(settings, is_resident=True)
    assert (ours.checksum, ours.to_start) == (theirs.checksum, ours.settings)
    assert theirs.to_start != theirs.settings


@pytest.mark.parametrize(("command", "is_resident"), [("run", True), ("tick", False)])
def test_only_run_requests_an_engine_for_hours(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, is_resident: bool
) -> None:
    asked: list[bool] = []

    def tick(self: Engine, *_: object) -> NoReturn:
        asked.append(self._context.is_resident)
        raise StateError("this is as far as it goes")

    monkeypatch.setattr(Engine, "tick", tick)
    CliRunner().invoke(app, [command])
    assert asked == [is_resident]

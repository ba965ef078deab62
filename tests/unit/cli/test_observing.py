"""Those who watch, on the command line: what ticks send, the test message, the probe, the log."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import Result
from deltalake import DeltaTable
from typer.testing import CliRunner

from harness.cli.app import app
from harness.errors import ConfigurationError, DecideError, ExitCode
from harness.platform import masking
from harness.platform.clock import RealClock
from harness.store.public_tables import CONTROL_TABLE
from harness.store.rows import Tick
from harness.store.writer.lock import note_tick
from harness.tick.engine import Engine
from harness.tick.report import TickReport
from tests.support.mail_and_web import Web, free_port, web_server

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
Call = Callable[..., Result]


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, web: Web) -> Path:
    configuration = tmp_path / "other.yml"
    configuration.write_text("alarms: {name: shop, channels: {team: {url: env:ALARM_ADDRESS}}}\n")
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HEARTBEAT_CONFIG", str(configuration))
    monkeypatch.setenv("ALARM_ADDRESS", web.url(path="hook/T0kenT0kenT0ken"))
    monkeypatch.setattr(masking, "_MASKER", masking.Masker())
    return tmp_path / "home"


def fails(self: Engine, *_: object) -> TickReport:
    raise DecideError("dbt did not succeed")


def succeeds(self: Engine, *_: object) -> TickReport:
    return TickReport(tick=Tick(number=1, at=RealClock().now()))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("first", "again"),
    [(("tick",), ("tick",)), (("run", "--ticks", "1"), ("run", "--ticks", "1"))],
)
def test_a_command_that_ticks_sends_that_a_tick_fails_and_that_it_is_over(
    home: Path,
    web: Web,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[str, ...],
    again: tuple[str, ...],
) -> None:
    monkeypatch.setattr(Engine, "tick", fails)
    call(*first)
    monkeypatch.setattr(Engine, "tick", succeeds)
    assert call(*again).exit_code == ExitCode.DONE
    assert [post["title"] for post in web.posts] == [
        "Heartbeat shop: 1 problem",
        "Heartbeat shop: 1 over",
    ]
    assert "ticks fail: dbt did not succeed" in str(web.posts[0]["message"])


def test_a_tick_succeeds_whose_message_cannot_be_sent(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALARM_ADDRESS", f"json://127.0.0.1:{free_port()}/T0kenT0kenT0ken")
    monkeypatch.setattr(Engine, "tick", fails)
    call("tick")
    monkeypatch.setattr(Engine, "tick", succeeds)
    assert call("tick").exit_code == ExitCode.DONE
    written = (home / "logs" / "heartbeat.log").read_text()
    assert written.count("was not sent") == 1
    assert "T0ken" not in written + (home / "alarms.json").read_text()


def test_wrong_usage_is_no_tick_that_fails(home: Path, web: Web) -> None:
    assert isinstance(call("tick", "--job", "no such job").exception, ConfigurationError)
    assert web.posts == []


def test_a_test_message_is_sent_and_reported_as_sent(home: Path, web: Web) -> None:
    answer = call("alarms", "test")
    assert (answer.exit_code, answer.stdout) == (0, "channel team: the message was sent\n")
    assert [post["title"] for post in web.posts] == ["Heartbeat shop: test"]


def test_a_test_message_that_is_refused_ends_with_one_and_a_reason(home: Path, web: Web) -> None:
    web.status = 404
    answer = call("alarms", "test", "--json")
    content = json.loads(answer.stdout)
    assert (answer.exit_code, content["ok"]) == (ExitCode.FAILED, False)
    assert "404" in content["channels"][0]["reason"]
    assert "T0ken" not in answer.stdout


def test_a_channel_that_does_not_exist_names_those_that_do(home: Path) -> None:
    answer = call("alarms", "test", "--channel", "pager")
    assert isinstance(answer.exception, ConfigurationError)
    assert str(answer.exception) == "There is no channel 'pager'; heartbeat.yml has team"


def test_without_a_channel_there_is_nothing_to_test(home: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_text("")
    answer = call("alarms", "test")
    assert isinstance(answer.exception, ConfigurationError)
    assert "alarms.channels.NAME.url" in str(answer.exception)


def set_up(home: Path, ticked: datetime) -> None:
    home.mkdir()
    (home / "version.json").write_text('{"state_version": 1, "models": "x"}')
    columns = pa.schema([(name, pa.string()) for name in CONTROL_TABLE.columns])
    DeltaTable.create(home / "warehouse" / "heartbeat.db" / CONTROL_TABLE.name, columns)
    note_tick(home, ticked)


def test_a_probe_ends_with_nought_and_one_line_while_ticks_come(home: Path) -> None:
    set_up(home, RealClock().now())
    answer = call("status", "--check")
    assert answer.exit_code == ExitCode.DONE, answer.stderr
    assert answer.stdout.startswith("HEARTBEAT OK - ") and answer.stdout.count("\n") == 1


def test_a_probe_ends_with_one_when_no_tick_comes(home: Path) -> None:
    set_up(home, RealClock().now() - timedelta(hours=2))
    answer = call("status", "--check")
    assert answer.exit_code == ExitCode.FAILED
    assert answer.stdout.startswith("HEARTBEAT CRITICAL - 1 alarm: no tick (2h): ")
    content = json.loads(call("status", "--check", "--json").stdout)
    assert (content["ok"], content["alarms"][0]["rule"]) == (False, "no_tick")


@pytest.mark.parametrize(
    ("variable", "configured", "is_json"),
    [("", "json", True), ("JSON", "text", True), ("text", "json", False), ("", "text", False)],
)
def test_the_environment_decides_about_the_format_of_the_log_before_the_file(
    *,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    configured: str,
    is_json: bool,
) -> None:
    (tmp_path / "other.yml").write_text(f"logs: {{format: {configured}}}\n")
    monkeypatch.setenv("HEARTBEAT_LOG_FORMAT", variable)
    monkeypatch.setattr(Engine, "tick", succeeds)
    assert call("run", "--ticks", "1").exit_code == ExitCode.DONE
    first = (home / "logs" / "heartbeat.log").read_text().splitlines()[0]
    assert first.startswith("{") is is_json


def test_a_format_of_the_log_that_does_not_exist_names_those_that_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTBEAT_LOG_FORMAT", "yaml")
    answer = call("run", "--ticks", "1")
    assert isinstance(answer.exception, ConfigurationError)
    assert str(answer.exception) == "HEARTBEAT_LOG_FORMAT is 'yaml'; allowed are text and json"

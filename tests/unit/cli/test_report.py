"""The report as a command writes it, and as ticks keep it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.app import app, main
from harness.errors import ExitCode
from tests.support.pages import content_in
from tests.support.report_world import Job, Upstream, World, write
from tests.support.small_world import SmallWorld

CANARY = "s3cr3t-of-the-erp"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    upstream = Upstream("sales.orders", 3600, unreadable=f"login {CANARY} was refused")
    write(
        World([upstream], [Job(7, "daily-revenue", [(0, True)], 300)]), tmp_path / "state", days=1
    )
    (tmp_path / "heartbeat.yml").write_text("report: {path: kept.html, days: 3}\n")
    (tmp_path / "seeds").mkdir()
    monkeypatch.setenv("HEARTBEAT_PROJECT", str(tmp_path))
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HEARTBEAT_CONFIG", raising=False)
    monkeypatch.setenv("ERP_PASSWORD", CANARY)
    return tmp_path


def test_the_report_goes_to_the_configured_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report"]) == ExitCode.DONE
    assert f"Written: {project / 'kept.html'} (" in capsys.readouterr().out
    assert (project / "kept.html").is_file()


def test_a_place_that_is_named_comes_before_the_configured_one(project: Path) -> None:
    assert main(["report", "--output", "here/page.html", "--days", "1000"]) == ExitCode.USAGE
    assert main(["report", "--output", "here/page.html", "--days", "0.5"]) == ExitCode.DONE
    assert content_in((project / "here" / "page.html").read_text())["now"] == 43_200
    assert not (project / "kept.html").exists()


def test_no_secret_is_in_the_report(project: Path) -> None:
    assert main(["report"]) == ExitCode.DONE
    page = (project / "kept.html").read_text()
    assert "login *** was refused" in page
    assert CANARY not in page


def test_a_page_is_not_served_and_written_at_once(project: Path) -> None:
    assert main(["report", "--serve", "--output", "page.html"]) == ExitCode.USAGE


@pytest.mark.parametrize("command", [["tick", "--quiet"], ["run", "--ticks", "1"]])
def test_a_tick_keeps_the_report_current(world: SmallWorld, command: list[str]) -> None:
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == ExitCode.DONE, answer.output
    assert content_in((world.project / "kept.html").read_text())["jobs"] == []


@pytest.mark.parametrize("command", [["tick", "--quiet"], ["run", "--ticks", "1"]])
def test_a_report_that_cannot_be_written_fails_no_tick(
    world: SmallWorld, command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    (world.project / "kept.html").mkdir()
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == ExitCode.DONE, answer.output
    assert "the report is not written" in caplog.text

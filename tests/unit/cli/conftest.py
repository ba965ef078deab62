"""Commands that run in the test's own process, and an installation in memory for them."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cli.app import main
from harness.context import Context
from harness.tick.install import STATE_VERSION
from tests.support.root_logger import logging_restored
from tests.support.small_world import SmallWorld

PROJECT = Path(__file__).resolve().parents[3]
Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Some commands set up the log of their process."""
    with logging_restored():
        yield


@pytest.fixture
def call_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command line without a process of its own, which takes most of a second to start."""
    for name in [*os.environ]:
        if name.startswith("HEARTBEAT_"):
            monkeypatch.delenv(name)

    def call(
        home: Path, *arguments: str, project: Path = PROJECT
    ) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(project)
        monkeypatch.setenv("HEARTBEAT_HOME", str(home))
        code = main([*arguments])
        output = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, output.out, output.err)

    return call


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallWorld:
    """An installation in memory in which nothing is new, with a report to keep."""
    world = SmallWorld(tmp_path)
    (tmp_path / "heartbeat.yml").write_text("report: {path: kept.html}\n")
    world.remember()
    world.store.replace("heartbeat_control", [])
    version = {"state_version": STATE_VERSION, "models": "", "with_triggers": False}
    (world.home.folder / "version.json").write_text(json.dumps(version))
    monkeypatch.setattr("harness.tick.install.Installation.check", lambda _: None)
    monkeypatch.setattr("harness.tick.install.Installation.ensure", lambda *_, **__: None)

    @contextmanager
    def writing(_command: str) -> Iterator[Context]:
        yield world.context()

    monkeypatch.setattr("harness.cli.tick.writing", writing)
    return world

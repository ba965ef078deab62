"""An installation in memory whose commands run in the test's own process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.context import Context
from harness.tick.install import STATE_VERSION
from tests.support.small_world import SmallWorld


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

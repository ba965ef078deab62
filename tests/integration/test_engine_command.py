"""The command `engine` with a real engine, and what `doctor` finds of it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import ExitCode
from harness.platform.spark.engine import without_engine
from tests.support.processes import ends

PROJECT = Path(__file__).resolve().parents[2]

#: A command that opens the metastore; it reports whether it has a JVM of its own.
QUERY = """
from harness.cli.common import reading
with reading() as context:
    databases = [row[0] for row in context.session.sql("show databases").collect()]
    print(*databases, hasattr(context.session, "_jvm"))
    context.close()
"""


@dataclass
class Shell:
    """A state directory, and its configuration."""

    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        inherited = without_engine(os.environ)
        own = {name: each for name, each in inherited.items() if not name.startswith("HEARTBEAT")}
        home = {"HEARTBEAT_HOME": str(self.folder / "home")}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=PROJECT,
            env={**own, **home, "HEARTBEAT_CONFIG": str(self.folder / "heartbeat.yml")},
            capture_output=True,
            text=True,
            check=False,
        )

    def engine(self, *arguments: str) -> tuple[int, dict[str, object]]:
        answer = self.run("-m", "harness", "engine", *arguments, "--json")
        assert not answer.stderr
        return answer.returncode, json.loads(answer.stdout)

    def doctor(self) -> dict[str, tuple[str, str]]:
        found = json.loads(self.run("-m", "harness", "doctor", "--json").stdout)["findings"]
        return {each["about"]: (each["level"], each["what"]) for each in found}


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "heartbeat.yml").write_text("engine: {idle_minutes: 5}\n")
    shell = Shell(tmp_path)
    yield shell
    shell.run("-m", "harness", "engine", "stop", "--force")


def test_an_engine_is_started_used_examined_replaced_and_stopped(shell: Shell) -> None:
    code, first = shell.engine("restart")
    assert (code, first["state"], first["settings_match"]) == (ExitCode.DONE, "running", True)
    assert first["in_use"] is False

    answer = shell.run("-c", QUERY)
    assert answer.stdout.split() == ["default", "False"], answer.stderr
    reported = shell.doctor()
    assert reported["metastore"] == ("ok", "is open in the engine")
    level, what = reported["engine"]
    assert (level, what.split(",")[0]) == ("ok", "answers")
    assert shell.engine("status")[1]["server"] == first["server"]

    code, second = shell.engine("restart")
    assert (code, second["state"]) == (ExitCode.DONE, "running")
    assert ends(int(str(first["server"])))
    assert second["server"] != first["server"]

    code, stopped = shell.engine("stop")
    assert (code, stopped["stopped"], stopped["server"]) == (ExitCode.DONE, True, second["server"])
    assert ends(int(str(second["owner"])))
    assert ends(int(str(second["server"])))
    assert shell.engine("status")[0] == ExitCode.NOTHING_NEW
    assert shell.doctor()["metastore"] == ("ok", "is free")

"""An Airflow without a database, and a Heartbeat that answers as a test specifies."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

# Airflow reads these when it is imported, and the tests import it.
os.environ |= {
    "AIRFLOW_HOME": tempfile.mkdtemp(prefix="airflow-"),
    "AIRFLOW__CORE__DAGS_FOLDER": str(Path(__file__).resolve().parents[1] / "examples"),
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
}

CLUSTER = "heartbeat_cluster1"
FAKE = """
import json, os, sys, time
from pathlib import Path

here = Path(__file__).parents[1]
asked = {"arguments": sys.argv[1:], "environment": dict(os.environ)}
with (here / "asked.jsonl").open("a") as file:
    file.write(json.dumps(asked) + "\\n")
answers = json.loads((here / "answers.json").read_text())[sys.argv[1]]
before = [json.loads(line)["arguments"][0] for line in (here / "asked.jsonl").open()]
said = before.count(sys.argv[1])
answer = answers[min(said, len(answers)) - 1]
time.sleep(answer["seconds"])
sys.stdout.write(answer["out"])
sys.stderr.write(answer["err"])
sys.exit(answer["code"])
"""


class FakeHeartbeat:
    """A project whose `python -m harness` is a script with prepared answers.

    Args:
        folder: Where the project is.
    """

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self._answers: dict[str, list[dict[str, object]]] = {}
        (self.project / "harness").mkdir(parents=True)
        (self.project / "harness" / "__init__.py").touch()
        (self.project / "harness" / "__main__.py").write_text(FAKE)
        (self.project / "asked.jsonl").touch()

    @property
    def extra(self) -> dict[str, str]:
        """What a connection to it has."""
        return {"project": str(self.project), "python": sys.executable}

    def says(
        self, command: str, out: object = "", *, code: int = 0, err: str = "", seconds: float = 0
    ) -> None:
        """Answer a command so; the last answer is repeated."""
        text = out if isinstance(out, str) else json.dumps(out)
        answer = {"out": text, "err": err, "code": code, "seconds": seconds}
        self._answers.setdefault(command, []).append(answer)
        (self.project / "answers.json").write_text(json.dumps(self._answers))

    @property
    def asked(self) -> list[list[str]]:
        """The arguments of each call."""
        return [each["arguments"] for each in self._lines()]

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of the process of the last call."""
        return self._lines()[-1]["environment"]

    def _lines(self) -> list[dict]:
        return [json.loads(line) for line in (self.project / "asked.jsonl").open()]


@pytest.fixture(scope="session")
def database() -> None:
    """Airflow's own database, in SQLite."""
    airflow("db", "migrate")


def airflow(*arguments: str) -> None:
    """Run Airflow's command line."""
    command = [sys.executable, "-m", "airflow", *arguments]
    message = subprocess.run(command, capture_output=True, text=True, check=False)
    assert message.returncode == 0, message.stdout + message.stderr


@pytest.fixture
def heartbeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHeartbeat:
    """A Heartbeat that the connection of the tests names."""
    fake = FakeHeartbeat(tmp_path)
    connect(monkeypatch, fake.extra)
    return fake


def connect(monkeypatch: pytest.MonkeyPatch, extra: Mapping[str, object]) -> None:
    """Let the connection of the tests have this extra."""
    message = json.dumps({"conn_type": "heartbeat", "extra": extra})
    monkeypatch.setenv(f"AIRFLOW_CONN_{CLUSTER.upper()}", message)


def at(hour: int, minute: int = 0, second: int = 0) -> int:
    """An instant of the tests' day, in epoch milliseconds."""
    return 1_793_491_200_000 + ((hour * 60 + minute) * 60 + second) * 1000


def event(number: int, when: int) -> dict[str, object]:
    """One data-change event."""
    return {
        "event_id": f"e{number}",
        "event_ts": when,
        "table": "lake.data.pageviews",
        "partition": None,
        "snapshot_id": str(number),
        "snapshot_ts": when,
        "prev_snapshot_id": str(number - 1),
        "table_format": "ICEBERG",
        "operation_type": "APPEND",
        "tags": {"operation": "append"},
    }

"""What the page on events shows is run as it stands there, except for Spark's part, which is read."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlglot

from harness.record.batch_inbox import receive_batches
from harness.toolkit.changes import ChangeEvent

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "register_events.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BAD = [
    {"table": "web.visits", "table_format": "HIVE", "partition": ["2026-03-01"]},
    {"table": "web.visits", "table_format": "HIVE", "operation": "APPEND"},
]


def _section(title: str) -> list[tuple[str, str]]:
    text = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [(found[1], found[2]) for found in _BLOCK.finditer(text)]


class Shell:
    """Runs what the page shows, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = folder / ".heartbeat" / "inbox"
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(sys.executable)

    def run(self, kind: str, text: str) -> str:
        match kind:
            case "sh" | "python":
                command = ["bash", "-ec"] if kind == "sh" else [sys.executable, "-c"]
                done = self.start(*command, text)
                assert done.returncode == 0, done.stderr
                return done.stdout
            case "json":
                (self.folder / "events.jsonl").write_text(text, encoding="utf-8")
            case "sql":
                self._as_spark_does(text)
            case _:
                raise AssertionError(f"nobody knows how to run {kind}")
        return ""

    def start(self, *command: str) -> "subprocess.CompletedProcess[str]":
        own = {
            "HEARTBEAT_HOME": str(self.folder / ".heartbeat"),
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            # A link to an interpreter is not in its environment.
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        }
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            check=False,
        )

    def _as_spark_does(self, text: str) -> None:
        path = re.search(r"directory '/data/heartbeat/inbox/(registered-[^']+)' using json", text)
        assert path, text
        (select,) = sqlglot.parse(text[path.end() :], dialect="spark")
        assert select is not None
        row = {each.alias: each.this.this for each in select.selects}
        folder = self.inbox / path[1]
        folder.mkdir()
        (folder / "part-00000.json").write_text(json.dumps(row))
        (folder / "_SUCCESS").touch()

    def registered(self) -> Iterator[ChangeEvent]:
        for batch in receive_batches(self.inbox, at=datetime.now(UTC)):
            yield from batch.events


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("page"))


def test_every_way_to_register_that_the_page_shows_registers(shell: Shell) -> None:
    output = [shell.run(kind, text) for kind, text in _section("Register")]
    assert '{"events": 2}' in "".join(output)
    orders = [event for event in shell.registered() if event.table == "sales.orders"]
    visits = [event for event in shell.registered() if event.table == "web.visits"]
    assert sorted(str(event.snapshot_id) for event in orders) == ["12", "13", "13", "14", "15"]
    assert {event.partition for event in visits} == {
        ('"2026-03-01"', str(hour)) for hour in range(7, 12)
    }
    assert [event.tags for event in visits if event.tags] == [{"completeness": "hourly"}]


def test_errors_are_printed_as_the_page_shows_them(shell: Shell) -> None:
    (shell.folder / "events.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in BAD))
    ((_, expected),) = _section("When something is wrong")
    before = set(shell.inbox.iterdir())
    done = shell.start("bash", "-ec", "python -m harness emit --file events.jsonl")
    assert (done.returncode, done.stderr) == (2, expected)
    assert set(shell.inbox.iterdir()) == before

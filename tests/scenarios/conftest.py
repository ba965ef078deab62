"""The installation of the story tests: real Spark, real Delta, real dbt; time and jobs by hand.

Building every table takes long, so the stories of one process share an installation. Each has
upstreams and jobs of its own, and takes its rows out of the controls at the end. A story of two
products gets a second installation, with its own project, state, schema, jobs and clock.
"""

import csv
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.config.load import load_settings
from harness.context import Context
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.controls.triggers.parse import COLUMNS as TRIGGER_COLUMNS
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.platform.databricks.api import Outcome
from harness.platform.dbt import Dbt
from harness.store.local import LocalStore
from harness.store.rows import Store
from harness.tick.engine import Engine, TickOptions
from harness.tick.report import TickReport
from tests.support.copied import copy_project
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.parsed_project import give_parsed

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession


#: Stories share the warehouse of the test process, and nothing else.
SCHEMA = "stories"
#: The product that follows the one of the stories.
OTHER_SCHEMA = "followers"


class Killed(BaseException):
    """The process died here: nothing catches this."""


class StoryContext(Context):
    """A context whose Spark, Jobs API and death are given."""

    def __init__(self, home: "StoryHome", clock: FakeClock, jobs: FakeJobs) -> None:
        own = {"HEARTBEAT_HOME": str(home.folder), "HEARTBEAT_SCHEMA": home.schema}
        environment = {**os.environ, **own}
        super().__init__(load_settings(home.project, environment), environment, clock)
        self._home = home
        self.__dict__["session"] = home.spark
        self.__dict__["jobs"] = jobs
        self.__dict__["store"] = LocalStore(home.warehouse, self.schema)
        self.dies_at: str | None = None

    @cached_property
    def dbt(self) -> Dbt:
        """dbt, which need not parse again what an earlier process has."""
        dbt = super().dbt
        dbt.manifest = self._home.manifest
        return dbt

    def forget_jobs(self) -> None:
        """Do nothing: the story adds its jobs to the fake."""

    def crash_point(self, name: str) -> None:
        if name == self.dies_at:
            self.dies_at = None
            raise Killed(name)

    def close(self) -> None:
        """The session is the test process's own."""
        if "dbt" in vars(self):
            self._home.manifest = self.dbt.manifest


class StoryHome:
    """One installation: a copy of the project, a state directory, a schema, a clock and a Jobs API.

    Args:
        folder: Where its own files go.
        spark: The session of the process, which only one can be.
        schema: Its schema.
        warehouse: Where its tables are; the schema is made there unless Spark would do so anyway.
    """

    def __init__(
        self, folder: Path, spark: "SparkSession", schema: str, warehouse: Path | None = None
    ) -> None:
        self.folder = folder / "home"
        self.project = folder / "project"
        self.schema = schema
        self.warehouse = warehouse or self.folder / "warehouse"
        self.spark = spark
        if warehouse is not None:
            # The state directory has its tables where the product reads them.
            self.folder.mkdir()
            (self.folder / "warehouse").symlink_to(warehouse)
        else:
            place = self.warehouse / f"{schema}.db"
            spark.sql(f"create database {schema} location '{place}'")
        copy_project(self.project)
        give_parsed(self.folder, schema)
        (self.project / "heartbeat.yml").write_text("trigger_files:\n  root: triggers\n")
        (self.project / "triggers").mkdir()
        self.clock = FakeClock(datetime(2026, 3, 1, 8, 0, tzinfo=UTC))
        # One Jobs API for all its stories: a run that an earlier one left open goes on unreported.
        self.jobs = FakeJobs(clock=self.clock)
        #: The project as dbt has parsed it; no story changes a model.
        self.manifest: Manifest | None = None
        #: What ticks: it goes on from story to story, as `run` does.
        self.process = self._new_process()

    def begin_story(self) -> None:
        """Begin another process if the last story has changed what the present one works with."""
        if not self.process.is_as_configured():
            self.begin_process()

    def begin_process(self) -> None:
        """End the process and begin another one: nothing is kept but what is on disk."""
        self.process.context.close()
        self.process = self._new_process()

    def _new_process(self) -> "Process":
        context = StoryContext(self, self.clock, self.jobs)
        return Process(context, Engine(context), context.store)


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a story."""

    context: StoryContext
    engine: Engine
    #: The store that it began with; some stories give it another one.
    store: Store

    def is_as_configured(self) -> bool:
        """Return whether a new process would be as this one is, but for what is in its memory."""
        context = self.context
        settings = load_settings(context.settings.project, context.environment)
        return context.settings == settings and context.store is self.store


class Story:
    """One story: its upstreams, its jobs, and the methods to write it with."""

    numbers = itertools.count(1)

    def __init__(self, home: StoryHome, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.number = next(self.numbers)
        self.clock, self.jobs = home.clock, home.jobs
        self.clock.set(datetime(2026, 3, 1, 8, 0, tzinfo=UTC) + timedelta(days=self.number))
        self.jobs.requests.clear()
        self.rows: list[dict[str, str]] = []
        self.triggers: list[dict[str, str]] = []
        home.begin_story()

    @property
    def context(self) -> StoryContext:
        """The services of the present process."""
        return self.home.process.context

    def job(self, number: int) -> int:
        """Return the id of one of the story's jobs, and add the job to the Jobs API."""
        job_id = 2**53 + 1000 * self.number + number
        self.jobs.add_job(job_id)
        return job_id

    def table(self, name: str) -> str:
        """Return the path of one of the story's tables, with data in it."""
        path = str(self.folder / name)
        if not DeltaTable.is_deltatable(path):
            self.append(path)
        return path

    def append(self, path: str) -> None:
        """Commit a data change."""
        write_deltalake(path, pa.table({"day": [1, 2], "place": ["a", "b"]}), mode="append")

    def compact(self, path: str) -> None:
        """Commit a rewrite that changes no data."""
        DeltaTable(path).optimize.compact()

    def control(self, sensor_id: str, job_id: int, **cells: str) -> None:
        """Add a row to the controls; hard, unpaused and a Delta table by default."""
        row = {
            "sensor_source": "delta_table",
            "sensor_id": sensor_id,
            "sensor_read_type": "streaming",
            "trigger_job_id": str(job_id),
            "trigger_job_name": f"job {job_id}",
            "job_state": "UNPAUSED",
            "dependency_flag": "TRUE",
        }
        self.rows.append({**row, **cells})
        self.write_controls()

    def write_controls(self) -> None:
        """Write the controls CSV as the operator would save it."""
        with (self.home.project / CONTROLS).open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)

    def trigger(self, trigger_id: str, table: str, job_id: int, **cells: str) -> None:
        """Add a row to the triggers: one of partitions, every hour, by default."""
        row = {
            "trigger_id": trigger_id,
            "trigger_type": "PARTITION",
            "job_id": str(job_id),
            "job_name": f"job {job_id}",
            "table": table,
            "frequency": "1",
            "frequency_unit": "HOURS",
        }
        self.triggers.append({**row, **cells})
        self.write_triggers()

    def write_triggers(self) -> None:
        """Write the CSV of triggers as the operator would save it."""
        with (self.home.project / EVENT_TRIGGERS).open("w", newline="") as file:
            writer = csv.DictWriter(file, TRIGGER_COLUMNS)
            writer.writeheader()
            writer.writerows(self.triggers)

    def tick(self, *, minutes: float = 1, dies_at: str | None = None) -> TickReport:
        """Let time pass and tick; a tick that is to die is followed by a new process."""
        self.clock.sleep(minutes * 60)
        # dbt reads the profile from the environment; the fixture puts the variable back.
        os.environ["HEARTBEAT_SCHEMA"] = self.home.schema
        self.context.dies_at = dies_at
        options = TickOptions(allow_mass_removal=True)
        if dies_at is None:
            return self.home.process.engine.tick(options)
        with pytest.raises(Killed):
            self.home.process.engine.tick(options)
        self.restart()
        return TickReport(tick=None)  # type: ignore[arg-type]

    def restart(self) -> None:
        """Begin a new process."""
        self.home.begin_process()

    def started(self, report: TickReport) -> list[int]:
        """Return the jobs that a tick started."""
        return sorted(row.job_id for row in report.started if row.run_id is not None)

    def control_row(self, sensor_id: str, job_id: int) -> Mapping[str, object]:
        """Return one row of ``heartbeat_control``."""
        rows = self.context.store.read(
            "heartbeat_control",
            where=[("sensor_id", "=", sensor_id), ("trigger_job_id", "=", str(job_id))],
        )
        assert len(rows) == 1, rows
        return rows[0]

    def status(self, sensor_id: str, job_id: int) -> object:
        """Return the status of one control row."""
        return self.control_row(sensor_id, job_id)["status"]

    def blockers(self, job_id: int) -> list[str]:
        """Return what blocks a job, by name, as the model has it now."""
        rows = self.context.rows("job_blockers")
        return sorted(str(row["blocker"]) for row in rows if row["job_id"] == job_id)

    def sensors(self, job_id: int) -> list[dict[str, object]]:
        """Return the rows of the sensors table that are about a job."""
        rows = self.context.store.read("sensors")
        return [row for row in rows if str(row["sensor_id"]).endswith(f"_{job_id}")]

    def run_rows(self, job_id: int) -> list[dict[str, object]]:
        """Return every step of the job's runs, in order."""
        rows = self.context.store.read("ledger_runs", where=[("job_id", "=", job_id)])
        return sorted(rows, key=lambda row: (row["tick_number"], row["step_number"]))

    def end(self, job_id: int, outcome: str = "SUCCEEDED") -> None:
        """End the job's newest run."""
        self.jobs.end_run(self.jobs.runs_of(job_id)[-1], Outcome(outcome))


@pytest.fixture(scope="session")
def story_home(
    spark: "SparkSession", spark_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> StoryHome:
    """The installation that every story of the process shares."""
    folder = tmp_path_factory.mktemp("stories")
    return StoryHome(folder, spark, SCHEMA, spark_home / "warehouse")


@pytest.fixture(scope="session")
def other_home(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> StoryHome:
    """Another installation, whose tables are elsewhere."""
    return StoryHome(tmp_path_factory.mktemp("followers"), spark, OTHER_SCHEMA)


@pytest.fixture
def story(
    story_home: StoryHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Story]:
    """A new story."""
    monkeypatch.setenv("HEARTBEAT_SCHEMA", SCHEMA)
    reported = Story(story_home, tmp_path)
    reported.write_controls()
    reported.write_triggers()
    yield reported
    story_home.spark.catalog.clearCache()


@pytest.fixture
def other_story(story: Story, other_home: StoryHome, tmp_path: Path) -> Story:
    """A story of the other installation, beside the story of the first."""
    return Story(other_home, tmp_path)

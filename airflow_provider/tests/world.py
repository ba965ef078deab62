"""Runs through one day of a small lake, in Heartbeat's interpreter; prints what is where.

Run as `python world.py WAREHOUSE` in a copy of the project, with HEARTBEAT_HOME. The tables are
Iceberg's, the events what real ticks have found; the hours and the Jobs API are made up.
"""

import csv
import json
import os
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from harness.cli.init import _initialise
from harness.config.load import load_settings
from harness.context import Context
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.platform.databricks.api import Outcome
from harness.platform.spark.engine import forget_session, session_beside
from harness.tick.engine import Engine, TickOptions
from harness.tick.single_writer import admitted
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs

TABLE = "lake.data.pageviews"
COUNT_ROWS, REVENUE, HELD = 111, 222, 333


def at(hour: int, minute: int) -> datetime:
    return datetime(2026, 11, 1, hour, minute, tzinfo=UTC)


class FakedContext(Context):
    """A context whose Jobs API is given."""

    def __init__(self, project: Path, clock: FakeClock, jobs: FakeJobs) -> None:
        super().__init__(load_settings(project, os.environ), os.environ, clock)
        self.__dict__["jobs"] = jobs

    def forget_jobs(self) -> None:
        """The fake stays."""


class Day:
    """One day of one installation."""

    def __init__(self, project: Path, warehouse: str) -> None:
        self.clock = FakeClock(at(9, 0))
        self.jobs = FakeJobs(clock=self.clock)
        self.context = FakedContext(project, self.clock, self.jobs)
        self.session = session_beside(self.context.session, {})
        catalog = "spark.sql.catalog.lake"
        self.session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        settings = {"type": "hadoop", "warehouse": warehouse, "cache-enabled": "false"}
        for name, value in settings.items():
            self.session.conf.set(f"{catalog}.{name}", value)

    def close(self) -> None:
        """End the session: PySpark waits for ever for one that is left to Python's end."""
        forget_session(self.session)

    def sql(self, statement: str) -> None:
        self.session.sql(statement).collect()

    def insert(self, *ids: int) -> None:
        rows = ", ".join(f"({each}, '/page/{each}')" for each in ids)
        self.sql(f"insert into {TABLE} values {rows}")

    def tick(self, hour: int, minute: int) -> None:
        self.clock.set(at(hour, minute))
        report = Engine(self.context).tick(TickOptions())
        self.context.lock.note_tick(report.tick.at)

    def end(self, job: int, outcome: Outcome, message: str = "") -> None:
        self.jobs.end_run(self.jobs.runs_of(job)[-1], outcome, message)


def set_up(project: Path, warehouse: str) -> None:
    (project / "heartbeat.yml").write_text(
        f"trigger_files: {{root: triggers}}\nconnections: {{iceberg: {{lake: {{warehouse: {warehouse}}}}}}}\n"
    )
    (project / "triggers").mkdir()
    (project / "seeds" / "scheduled_jobs.csv").write_text(f"job_id,note\n{COUNT_ROWS},Airflow's\n")
    named = {COUNT_ROWS: "count-rows", REVENUE: "daily-revenue", HELD: "held-report"}
    with (project / CONTROLS).open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for job_id, name in named.items():
            writer.writerow(
                {
                    "sensor_source": "iceberg_table",
                    "sensor_id": TABLE,
                    "sensor_read_type": "streaming",
                    "trigger_job_id": job_id,
                    "trigger_job_name": name,
                    "job_state": "UNPAUSED",
                    "dependency_flag": "TRUE",
                }
            )


def live(day: Day) -> None:
    day.sql(f"create table {TABLE} (id bigint, page string) using iceberg")
    for job in (REVENUE, HELD):
        day.jobs.add_job(job)
    # The first hour has rows, in one commit.
    day.insert(1, 2, 3)
    day.tick(10, 10)
    day.end(REVENUE, Outcome.SUCCEEDED)
    day.end(HELD, Outcome.FAILED, "the cluster was gone")
    # The second one has more, in two commits.
    day.insert(4, 5)
    day.insert(6)
    day.tick(11, 10)
    # In the third, files are rewritten and no row changes.
    rewrite = "options => map('min-input-files', '2')"
    day.sql(f"call lake.system.rewrite_data_files(table => 'data.pageviews', {rewrite})")
    day.tick(13, 5)


def main() -> None:
    project, warehouse = Path.cwd(), sys.argv[1]
    set_up(project, warehouse)
    day = Day(project, warehouse)
    with admitted(day.context, "tick"), closing(day):
        _initialise(day.context, allow_mass_removal=True, rebuild=False)
        live(day)
        snapshots = f"select snapshot_id, operation from {TABLE}.snapshots order by committed_at"
        rows = day.session.sql(snapshots).collect()
    print(json.dumps([[str(row[0]), row[1]] for row in rows]))


if __name__ == "__main__":
    main()

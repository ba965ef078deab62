"""A few of the deaths that ``test_killed_process`` plays, for every change.

Only the ticks that die are processes of their own: they come to where they die without a JVM. The
first tick and the last are done here, with the Spark of the test process.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.store.rows import RunStatus
from harness.tick.engine import Engine
from harness.tick.report import TickReport
from tests.recovery.deaths import RUN_NOW, AtCommit, AtPoint, Death, FromServer, die
from tests.recovery.evidence import changes_of_the_past, record_of
from tests.recovery.machine import Machine, serving
from tests.simulation.checker import complaints
from tests.support.jobs_emulator.faults import When
from tests.support.parsed_project import give_parsed

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession

#: All of them in the midst of two starts that have had no answer.
SAMPLE: tuple[Death, ...] = (
    FromServer(RUN_NOW, When.AFTER),
    AtPoint("before_outcome"),
    AtCommit("ledger_runs"),
)


class Host(Machine):
    """An installation whose whole ticks are done in this process.

    Args:
        folder: An empty folder.
        spark: The session of the process.
    """

    schema = "mortals"

    def __init__(self, folder: Path, spark: "SparkSession") -> None:
        super().__init__(folder)
        self._spark = spark
        #: The project as dbt has parsed it.
        self._manifest: Manifest | None = None
        give_parsed(self.home, self.schema)
        tables = self.home / "warehouse" / f"{self.schema}.db"
        spark.sql(f"create database {self.schema} location '{tables}'")

    def tick_here(self) -> TickReport:
        """Do a tick as a process would that has just begun, and lives."""
        self.let_runs_end()
        environment = self.environment()
        os.environ["HEARTBEAT_SCHEMA"] = self.schema
        context = Context(load_settings(self.project, environment), environment)
        vars(context)["session"] = self._spark
        context.dbt.manifest = self._manifest
        report = Engine(context).tick()
        self._manifest = context.dbt.manifest
        self.server.faults.clear()
        self.take_down()
        return report

    def tick(self) -> dict[str, object]:
        return {"fired": [row.job_id for row in self.tick_here().started]}


@pytest.fixture(scope="module")
def host(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """An installation after these deaths, at rest."""
    host = Host(tmp_path_factory.mktemp("sample"), spark)
    with serving(host), pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEARTBEAT_SCHEMA", host.schema)
        host.refuse_to_answer()
        first = host.tick_here()
        assert {row.run_status for row in first.started} == {RunStatus.INTENDED}
        for death in SAMPLE:
            assert die(host, death), f"{death} did not kill the tick"
        host.come_to_rest()
        yield host


@pytest.mark.long(in_sample=True)
def test_a_few_deaths_lose_no_event_and_start_no_job_twice(host: Host) -> None:
    record = record_of(host)
    assert complaints(record) == []
    assert list(changes_of_the_past(host)) == []
    worked = Counter(host.worked.read_text().split())
    assert worked == Counter({str(row["intent_id"]) for row in record.steps})

"""A small installation that an earlier version has left, continued by this one, also killed midway."""

import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.platform.databricks.api import Outcome
from harness.platform.jobs_emulator.runs import states
from harness.store.inbox import receive
from harness.store.rows import Ledger
from harness.tick.engine import Engine, TickOptions
from tests.scenarios.conftest import Killed, StoryContext, StoryHome
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs, _Run
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST = sorted(ARCHIVES.glob("*.tar.xz"))


class KnowingJobs(FakeJobs):
    """A Jobs API that has the runs which the earlier version has started."""

    def __init__(self, clock: FakeClock, runs: list[dict[str, object]]) -> None:
        super().__init__(clock=clock)
        endings = {None: states.RUNNING, "SUCCESS": states.SUCCEEDED}
        for run in runs:
            parameters = run["parameters"]
            job_id, run_id = int(str(run["job_id"])), int(str(run["run_id"]))
            assert isinstance(parameters, dict)
            ended = run.get("end_time")
            self._runs[run_id] = _Run(
                run_id=run_id,
                job_id=job_id,
                phase=endings.get(run.get("result"), states.FAILED),  # type: ignore[call-overload]
                started_at=_instant(run["start_time"]),
                ended_at=_instant(ended) if ended else None,
                parameters=parameters,
            )
            self._tokens[job_id, str(parameters["heartbeat_token"])] = run_id


def _instant(milliseconds: object) -> datetime:
    return datetime.fromtimestamp(int(str(milliseconds)) / 1000, UTC)


class Upgraded:
    """An archived installation, with the code of today."""

    def __init__(self, archive: Path, folder: Path, spark: "SparkSession") -> None:
        self.home = StoryHome(folder, spark, SCHEMA)
        tables = self.home.warehouse / f"{SCHEMA}.db"
        with tarfile.open(archive) as tar:
            # The first releases of Python 3.11 have no filter.
            tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            tar.extractall(folder / "archive")
        kept = folder / "archive" / "home" / "warehouse" / f"{SCHEMA}.db"
        # The metastore has absolute paths and is not kept; its tables are the metastore's own.
        for table in sorted(kept.iterdir()):
            spark.sql(f"create table {SCHEMA}.{table.name} (no_column int) using delta")
            shutil.rmtree(tables / table.name)
            table.rename(tables / table.name)
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        shutil.copytree(folder / "archive", folder, dirs_exist_ok=True)
        # A file is identified by its path and a table by its own, so both are where they were.
        self.former = _former_place(self.home.folder / "state.json")
        # A test that was killed may have left it.
        shutil.rmtree(self.former, ignore_errors=True)
        shutil.copytree(folder / "archive" / "upstreams", self.former / "upstreams")
        root = {"trigger_files": {"root": str(self.former / "upstreams" / "files")}}
        (self.home.project / "heartbeat.yml").write_text(json.dumps(root))
        spark.sql(f"create database shop location '{folder / 'shop'}'")
        orders = self.former / "upstreams" / "orders"
        spark.sql(f"create table {TABLE} using delta location '{orders}'")
        left = json.loads((self.home.folder / "status.json").read_text())
        self.clock = FakeClock(datetime.fromisoformat(left["tick_at"]) + timedelta(minutes=2))
        world = json.loads((folder / "world.json").read_text())
        self.jobs = KnowingJobs(self.clock, world)
        for job_id in (SUCCEEDS, GOES_ON, FAILS, RETRIED, DIES, TRIGGERED, SNAPSHOTS):
            self.jobs.add_job(job_id)
        self.restart()

    def restart(self) -> None:
        self.context = StoryContext(self.home, self.clock, self.jobs)
        self.engine = Engine(self.context)

    def tick(self, *, dies_at: str | None = None) -> None:
        self.clock.sleep(60)
        self.context.dies_at = dies_at
        try:
            self.engine.tick(TickOptions())
        except Killed:
            self.restart()
        else:
            assert dies_at is None

    def runs(self) -> dict[int, int]:
        """Return how many runs the Jobs API has of each job."""
        found = {job: len(self.jobs.runs_of(job)) for job in self.jobs._endings}
        return {job: count for job, count in found.items() if count}

    def statuses(self) -> dict[tuple[str, str], str | None]:
        rows = self.context.store.read("heartbeat_control")
        return {
            (str(row["sensor_id"]), str(row["trigger_job_id"])): _text(row["status"])
            for row in rows
        }

    def ledgers(self) -> Mapping[Ledger, list[str]]:
        return {
            ledger: sorted(json.dumps(row, default=str) for row in self.context.store.read(ledger))
            for ledger in (Ledger.RUNS, Ledger.EVENTS, Ledger.PROBES)
        }


def _former_place(state: Path) -> Path:
    """Return the folder in which the installation was made, as its cursors name it."""
    upstreams = json.loads(state.read_text())["upstreams"]
    (cursor,) = (each["position"] for each in upstreams if each["sensor_id"] == TABLE)
    return Path(json.loads(cursor)["path"]).parents[1]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@pytest.fixture(scope="module", params=OLDEST, ids=lambda path: path.name.partition(".")[0])
def upgraded(
    request: pytest.FixtureRequest,
    spark: "SparkSession",
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Upgraded]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEARTBEAT_SCHEMA", SCHEMA)
        made = Upgraded(request.param, tmp_path_factory.mktemp("upgrade"), spark)
        yield made
    shutil.rmtree(made.former)
    for schema in ("shop", SCHEMA):
        spark.sql(f"drop database {schema} cascade")


@pytest.mark.long(in_sample=True)
def test_an_installation_of_an_earlier_version_goes_on_and_starts_nothing_twice(
    upgraded: Upgraded,
) -> None:
    before, ledgers, statuses = upgraded.runs(), upgraded.ledgers(), upgraded.statuses()
    assert before == dict.fromkeys((SUCCEEDS, GOES_ON, FAILS, RETRIED, DIES, SNAPSHOTS), 1)
    assert statuses["dies", str(DIES)] is None

    upgraded.tick(dies_at="after_intents")
    upgraded.tick()

    # The start without an answer is the run that it was; what the inbox had is done.
    assert upgraded.runs() == {**before, FAILS: 2, TRIGGERED: 1}
    after = upgraded.ledgers()
    assert all(set(rows) <= set(after[ledger]) for ledger, rows in ledgers.items())
    assert receive(upgraded.home.folder / "inbox") == []
    now = upgraded.statuses()
    assert now.keys() == statuses.keys()
    assert now["scheduled", str(OWN_SCHEDULE)] == "COMPLETED"
    assert now["dies", str(DIES)] == "COMPLETED"
    assert now["fails", str(FAILS)] == "IN_PROGRESS"
    assert now["succeeds", str(SUCCEEDS)] == statuses["succeeds", str(SUCCEEDS)] == "COMPLETED"
    assert now["retried", str(RETRIED)] == statuses["retried", str(RETRIED)] == "FAILED"

    # What came while a run went on starts the next one; nothing else is new.
    (going_on,) = upgraded.jobs.runs_of(GOES_ON)
    upgraded.jobs.end_run(going_on, Outcome.SUCCEEDED)
    upgraded.tick()
    assert upgraded.runs() == {**before, FAILS: 2, TRIGGERED: 1, GOES_ON: 2}

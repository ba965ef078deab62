"""`doctor --workspace` against the stand-ins: what it tries, what it reports, and that nothing of it stays."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.inspect.doctor.findings import Finding, Level
from harness.inspect.doctor.workspace import TRIALS, Trial, examine_workspace, settings, swap
from harness.platform.spark.session import prepare_session
from tests.support.fake_jobs import FakeJobs
from tests.support.services.strict import strict_session
from tests.support.services.warehouse.server import Denied, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.services.connect import Endpoint

CONTROLS = """\
sensor_source,sensor_id,sensor_read_type,asset_description,upstream_key,preprocess_query,trigger_job_id,\
trigger_job_name,job_state,dependency_flag
delta_table,lake.orders,batch,,,,111,daily,UNPAUSED,TRUE
"""


@pytest.fixture
def laptop(
    served_warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Context]:
    """The services of a process without Spark."""
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "heartbeat_controls.csv").write_text(CONTROLS)
    (tmp_path / "heartbeat.yml").write_text("jobs: {target: databricks}\n")
    variables = served_warehouse.variables(by_oauth=True)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for name in ("DATABRICKS_TOKEN", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    context = Context(load_settings(tmp_path, variables), variables)
    jobs = FakeJobs()
    jobs.add_job(111)
    context.__dict__["jobs"] = jobs
    yield context
    context.close()
    served_warehouse.recover()


@pytest.fixture
def task(laptop: Context, spark: "SparkSession", spark_endpoint: "Endpoint") -> Context:
    """The same with the session of a task on serverless compute."""
    laptop.__dict__["session"] = strict_session(spark_endpoint, "prod-eu")
    return laptop


def by_name(context: Context) -> dict[str, Finding]:
    return {each.about: each for each in examine_workspace(context)}


def settings_of(context: Context) -> str:
    """Return what the trial of the settings alone reports."""
    (found,) = examine_workspace(context, [settings])
    return found.what


def schemas(spark: "SparkSession") -> list[str]:
    return [row[0] for row in spark.sql("show schemas like 'heartbeat_doctor*'").collect()]


def test_every_assumption_is_tried_from_a_task_and_nothing_stays(
    task: Context, spark: "SparkSession"
) -> None:
    found = by_name(task)
    assert {name: each.what for name, each in found.items() if each.level is not Level.OK} == {}
    assert len(found) == len(TRIALS)
    skipped = {name for name, each in found.items() if "not tried" in each.what}
    assert skipped == {"secrets"}
    assert "through a session" in found["login"].what
    assert schemas(spark) == []


def test_a_laptop_tries_what_a_warehouse_can(laptop: Context, spark: "SparkSession") -> None:
    found = by_name(laptop)
    assert {name: each.what for name, each in found.items() if each.level is not Level.OK} == {}
    assert "not tried, a SQL warehouse cannot append" in found["stamps"].what
    assert schemas(spark) == []


def test_a_missing_grant_is_named_and_stops_no_other_trial(
    laptop: Context, served_warehouse: Warehouse
) -> None:
    served_warehouse.denied.append(Denied(privilege="USE CATALOG", kind="Catalog", name="prod-eu"))
    found = by_name(laptop)
    assert found["schema"].level is Level.BROKEN
    assert "USE CATALOG" in found["schema"].what
    assert found["dbt"].level is Level.OK


def test_what_is_not_as_assumed_is_reported_as_such(laptop: Context) -> None:
    def wrong(trial: Trial) -> str:
        """Two and two is five."""
        assert trial.sql.run("select 2 + 2 = 5 as holds") == [{"holds": True}]
        return ""

    first, second = examine_workspace(laptop, [wrong, swap])
    assert (first.level, first.about) == (Level.BROKEN, "wrong")
    assert first.what.startswith("Two and two is five: no, AssertionError")
    assert second.level is Level.BROKEN


def test_a_session_that_is_not_in_utc_is_reported(task: Context) -> None:
    task.session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert settings_of(task).endswith("no, its time zone is Asia/Tokyo, not UTC")


def test_a_session_that_is_not_in_ansi_mode_is_reported(task: Context) -> None:
    task.session.conf.set("spark.sql.ansi.enabled", "false")
    assert settings_of(task).endswith("no, it is not in ANSI mode")


def test_a_session_of_a_workspace_is_set_as_the_warehouse_is(task: Context) -> None:
    task.session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    task.session.conf.set("spark.sql.ansi.enabled", "false")
    prepare_session(task.session, {})
    assert settings_of(task).endswith("UTC and ANSI mode, in both")

"""What is wrong with a workspace, or with the way to it: one sentence and the right exit code of a command."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.cli.app import main
from harness.controls.header import COLUMNS
from harness.errors import ExitCode, StateError
from harness.platform.sql.warehouse import WarehousePlace, WarehouseSql
from harness.platform.sql_names import SchemaName
from harness.store.catalog_files import CatalogFiles
from harness.store.state_dir import StateDir
from harness.toolkit import acquired, processed
from harness.toolkit.changes import events, read, register
from tests.support.fake_clock import FakeClock
from tests.support.services.warehouse.server import CLUSTER_PATH, WAREHOUSE_PATH, Denied, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[2]
SCHEMA = "workspace_faults"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: What a run in a workspace receives whose list of events is too long for a parameter.
REFERENCE = {
    "events_file": "/of/another/machine/runs/i-1.json",
    "event_count": 1,
    "intent_id": "i",
    "attempt": 1,
    "relation": f"prod-eu.{SCHEMA}.run_state",
}
Command = Callable[..., tuple[int, str]]


def set_variables(served: Warehouse, environment: pytest.MonkeyPatch) -> None:
    for name, value in served.variables(by_oauth=True).items():
        environment.setenv(name, value)
    for name in ("DATABRICKS_TOKEN", "HEARTBEAT_HOME", "SPARK_REMOTE"):
        environment.delenv(name, raising=False)


@pytest.fixture(scope="module")
def workspace(served_warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A workspace with the tables of a state; no test changes them."""
    home = tmp_path_factory.mktemp("home")
    (home / "version.json").write_text("{}")
    schema = SchemaName(SCHEMA, "prod-eu")
    with pytest.MonkeyPatch.context() as environment:
        set_variables(served_warehouse, environment)
        sql = WarehouseSql(WarehousePlace(http_path=WAREHOUSE_PATH, catalog="prod-eu"))
        sql.run(f"create schema if not exists {schema.in_sql}")
        CatalogFiles(sql, schema, FakeClock(NOON)).save(StateDir(folder=home))
        sql.close()
    return served_warehouse


@pytest.fixture
def warehouse(
    workspace: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Warehouse]:
    """The workspace, with a project, as this process' environment has it."""
    (tmp_path / "seeds").mkdir()
    (tmp_path / "heartbeat.yml").write_text("jobs: {target: databricks}\n")
    set_variables(workspace, monkeypatch)
    monkeypatch.setenv("HEARTBEAT_SCHEMA", SCHEMA)
    monkeypatch.setenv("HEARTBEAT_PROJECT", str(tmp_path))
    yield workspace
    workspace.sessions.version = None
    workspace.recover()


@pytest.fixture
def command(warehouse: Warehouse, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command; return its exit code and what it prints on stderr."""

    def run(*words: str) -> tuple[int, str]:
        capfd.readouterr()
        code = main([*words])
        return code, capfd.readouterr().err.strip()

    return run


def stopped(warehouse: Warehouse, _: pytest.MonkeyPatch) -> None:
    warehouse.stop()


def deleted(warehouse: Warehouse, _: pytest.MonkeyPatch) -> None:
    warehouse.delete()


def wrong_catalog(_: Warehouse, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("HEARTBEAT_CATALOG", "main")


def no_catalog(_: Warehouse, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("HEARTBEAT_CATALOG")


def no_select(warehouse: Warehouse, _: pytest.MonkeyPatch) -> None:
    name = f"prod-eu.{SCHEMA}.state_files"
    warehouse.denied.append(Denied(privilege="SELECT", kind="Table", name=name))


def no_use_schema(warehouse: Warehouse, _: pytest.MonkeyPatch) -> None:
    name = f"prod-eu.{SCHEMA}"
    warehouse.denied.append(Denied(privilege="USE SCHEMA", kind="Schema", name=name))


def expired_token(warehouse: Warehouse, environment: pytest.MonkeyPatch) -> None:
    for name in ("DATABRICKS_CLIENT_ID", "DATABRICKS_CLIENT_SECRET"):
        environment.delenv(name)
    environment.setenv("DATABRICKS_TOKEN", "dapi-of-yesterday")


def revoked_secret(_: Warehouse, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("DATABRICKS_CLIENT_SECRET", "dose-of-yesterday")


def no_login(_: Warehouse, environment: pytest.MonkeyPatch) -> None:
    for name in ("DATABRICKS_CLIENT_ID", "DATABRICKS_CLIENT_SECRET"):
        environment.delenv(name)


def old_runtime(warehouse: Warehouse, environment: pytest.MonkeyPatch) -> None:
    warehouse.sessions.version = "15.4.x-scala2.12"
    environment.setenv("DATABRICKS_HTTP_PATH", CLUSTER_PATH)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (stopped, (1, r"warehouse .*feed0001 does not run: .* is stopped; start it")),
        (deleted, (2, r"There is no SQL warehouse .*feed0001; set DATABRICKS_HTTP_PATH")),
        (wrong_catalog, (2, r"There is no catalog 'main'.*; set HEARTBEAT_CATALOG")),
        (no_catalog, (2, r"HEARTBEAT_CATALOG is not set")),
        (
            no_select,
            (
                1,
                rf"\w+ lacks SELECT on the table `prod-eu`\.`{SCHEMA}`\.`state_files`; its owner can"
                rf" run: grant select on table `prod-eu`\.`{SCHEMA}`\.`state_files` to `\w+`",
            ),
        ),
        (
            no_use_schema,
            (1, rf"\w+ lacks USE SCHEMA on the schema `prod-eu`\.`{SCHEMA}`; .*grant use schema"),
        ),
        (expired_token, (1, r"refuses the login \(403\): .*; log in again")),
        (revoked_secret, (1, r"refuses the login: .*; log in again")),
        (no_login, (2, r"There is no login for the SQL warehouse: .*auth login")),
        (old_runtime, (2, r"Runtime 15\.4.* too old; use 17\.3 or later")),
    ],
)
def test_a_fault_is_one_sentence_with_the_way_out_and_its_exit_code(
    warehouse: Warehouse,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Warehouse, pytest.MonkeyPatch], None],
    expected: tuple[int, str],
) -> None:
    fault(warehouse, monkeypatch)
    code, said = command("status")
    assert len(said.splitlines()) == 1, said
    assert re.search(f"^error: .*{expected[1]}", said), said
    assert code == expected[0]


def test_a_message_that_cannot_be_left_names_the_grant(
    warehouse: Warehouse, command: Command
) -> None:
    warehouse.denied.append(
        Denied(privilege="MODIFY", kind="Table", name=f"prod-eu.{SCHEMA}.inbox")
    )
    words = ("--table", "lake.t", "--format", "ICEBERG", "--snapshot-id", "1")
    found, said = command("emit", *words)
    assert found == ExitCode.FAILED
    assert f"lacks MODIFY on the table `prod-eu`.`{SCHEMA}`.`inbox`" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: register({"table": "lake.t", "table_format": "DELTA", "snapshot_id": "1"}),
        lambda: events("lake.t"),
        lambda: read(run_id=7),
        lambda: read(json.dumps(REFERENCE)),
        lambda: acquired("lake.t"),
        lambda: processed("lake.t"),
    ],
    ids=["register", "events", "read of a run", "read of a reference", "acquired", "processed"],
)
def test_a_function_of_the_toolkit_that_fails_leaves_no_session_open(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]
) -> None:
    # The process of the tests has a Spark session, which would be used in place of the warehouse.
    monkeypatch.setattr("harness.toolkit.changes.run_payload._session", lambda: None)
    warehouse.denied.extend(
        Denied(privilege=privilege, kind="Schema", name=f"prod-eu.{SCHEMA}")
        for privilege in ("MODIFY", "SELECT")
    )
    warehouse.calls.clear()
    with pytest.raises(StateError, match="lacks"):
        call()
    assert "OpenSession" in warehouse.calls
    assert warehouse.sessions.open_count == 0


def test_the_session_that_a_job_has_is_used_and_stays_open(
    warehouse: Warehouse, spark: "SparkSession"
) -> None:
    warehouse.calls.clear()
    with pytest.raises(StateError, match="run_state cannot be read"):
        read(json.dumps(REFERENCE))
    assert warehouse.calls == []
    assert spark.sql("select 1 as n").collect()[0]["n"] == 1


def test_validate_reads_from_the_catalog_what_the_tables_are(
    warehouse: Warehouse, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    sql = WarehouseSql(WarehousePlace(http_path=WAREHOUSE_PATH, catalog="prod-eu"))
    for statement in (
        f"create or replace table `prod-eu`.{SCHEMA}.orders (id bigint) using delta",
        f"create or replace view `prod-eu`.{SCHEMA}.summary as select 1 as id",
    ):
        sql.run(statement)
    sql.close()
    rows = [
        f"delta_table,{SCHEMA}.{name},batch,,,,1,j,UNPAUSED,TRUE" for name in ("orders", "summary")
    ]
    rows.append("hive_table,sales.returns,batch,,,,1,j,UNPAUSED,TRUE")
    text = "\n".join([",".join(COLUMNS), *rows, ""])
    (tmp_path / "seeds" / "heartbeat_controls.csv").write_text(text)
    capfd.readouterr()
    assert main(["validate", "--json"]) == ExitCode.DONE
    findings = json.loads(capfd.readouterr().out)["findings"]
    assert sorted((each["line"], each["code"]) for each in findings) == [
        (3, "table_of_catalog"),
        (4, "catalog_without_files"),
    ]
    assert "it is a view, which has no log" in str(findings)


@pytest.mark.parametrize("words", [("status",), ("tick",), ("emit", "--table", "lake.t")])
def test_without_a_warehouse_and_a_session_no_spark_of_this_machine_is_started(
    warehouse: Warehouse, tmp_path: Path, words: tuple[str, ...]
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    del environment["DATABRICKS_HTTP_PATH"]
    ran = subprocess.run(
        [sys.executable, "-m", "harness", *words, *_needed(words)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == ExitCode.USAGE
    assert ran.stderr.startswith("error: This process is on no compute of a workspace, and no SQL")
    assert len(ran.stderr.splitlines()) == 1


def _needed(words: tuple[str, ...]) -> tuple[str, ...]:
    return ("--format", "ICEBERG", "--snapshot-id", "1") if words[0] == "emit" else ()

"""dbt-databricks, unpatched, against the warehouse: a small project, and this one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.errors import ConfigurationError
from harness.platform.sql.warehouse import WarehouseSql
from harness.store.rows import Ledger
from harness.tick.checkpoint import fingerprints
from harness.tick.single_writer import admitted
from tests.support.services.warehouse.server import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

PROJECT = Path(__file__).resolve().parents[3]
SCHEMA = "heartbeat_over_a_socket"


def dbt(
    served_warehouse: Warehouse, folder: Path, *arguments: str, project: Path = PROJECT
) -> subprocess.CompletedProcess[str]:
    """Run dbt in a process of its own, whose environment alone leads to the warehouse."""
    environment = {**os.environ, **served_warehouse.variables(), "HEARTBEAT_SCHEMA": SCHEMA}
    environment |= {"DBT_TARGET_PATH": str(folder / "target"), "DBT_LOG_PATH": str(folder / "logs")}
    command = [sys.executable, "-m", "dbt.cli.main", *arguments]
    ran = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def test_dbt_finds_the_warehouse(served_warehouse: Warehouse, tmp_path: Path) -> None:
    assert "All checks passed!" in dbt(served_warehouse, tmp_path, "debug").stdout


@pytest.fixture(scope="module")
def built(served_warehouse: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of this project, without its tests."""
    folder = tmp_path_factory.mktemp("dbt")
    dbt(served_warehouse, folder, "seed")
    dbt(served_warehouse, folder, "run")
    return folder


def test_this_project_is_built_and_built_again(
    spark: "SparkSession", served_warehouse: Warehouse, built: Path
) -> None:
    columns = spark.table(f"{SCHEMA}.heartbeat_control").columns
    assert columns[:2] == ["sensor_source", "sensor_id"]
    assert len(columns) == 15
    # Tables that are there are merged into, and their columns are queried.
    again = ["ledger_ticks", "upstream_state", "heartbeat_control"]
    dbt(
        served_warehouse, built, "build", "--select", *again, "--exclude-resource-type", "unit_test"
    )


def test_the_harness_reads_the_tables_without_spark(
    served_warehouse: Warehouse, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {**served_warehouse.variables(), "HEARTBEAT_SCHEMA": SCHEMA}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    context = Context(load_settings(PROJECT, variables), variables)
    assert isinstance(context.sql, WarehouseSql)
    assert context.rows("trigger_set") == []
    assert context.store.read(Ledger.TICKS, where=[("tick_number", ">", 0)]) == []
    before = context.sql.statement_count
    assert None not in fingerprints(context.store).values()
    assert context.sql.statement_count == before + 1
    with (
        pytest.raises(ConfigurationError, match="needs a Spark session for the tables of prod-eu"),
        admitted(context, "tick"),
    ):
        pass
    context.close()

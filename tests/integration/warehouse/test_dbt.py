"""dbt-databricks, unpatched, against the warehouse: a small project, and this one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.services.warehouse.server import Warehouse, served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[3]
SCHEMA = "heartbeat_over_a_socket"


@pytest.fixture(scope="module")
def warehouse(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    yield from served(spark, tmp_path_factory.mktemp("warehouse"))


def dbt(
    warehouse: Warehouse, folder: Path, *arguments: str, project: Path = PROJECT
) -> subprocess.CompletedProcess[str]:
    """Run dbt in a process of its own, whose environment alone leads to the warehouse."""
    environment = {**os.environ, **warehouse.variables(), "HEARTBEAT_SCHEMA": SCHEMA}
    environment |= {"DBT_TARGET_PATH": str(folder / "target"), "DBT_LOG_PATH": str(folder / "logs")}
    command = [sys.executable, "-m", "dbt.cli.main", *arguments]
    ran = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def test_dbt_finds_the_warehouse(warehouse: Warehouse, tmp_path: Path) -> None:
    assert "All checks passed!" in dbt(warehouse, tmp_path, "debug").stdout


def test_this_project_is_built_twice(
    spark: "SparkSession", warehouse: Warehouse, tmp_path: Path
) -> None:
    dbt(warehouse, tmp_path, "build", "--exclude-resource-type", "unit_test")
    columns = spark.table(f"{SCHEMA}.heartbeat_control").columns
    assert columns[:2] == ["sensor_source", "sensor_id"]
    assert len(columns) == 15
    dbt(warehouse, tmp_path, "build", "--exclude-resource-type", "unit_test")

"""A lake of Iceberg tables, for the modules that sense it and that read its changes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.config.connections import Connections
from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources
from tests.support.services.iceberg import Lake, NoIcebergError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the lake."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", warehouse: Path) -> Lake:
    """The catalog ``lake``, by Spark and Iceberg's own runtime."""
    try:
        return Lake(spark, {"type": "hadoop", "warehouse": str(warehouse)})
    except NoIcebergError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def probe_of(spark: "SparkSession", warehouse: Path) -> "Callable[[str], Probe]":
    """Return the probe of a source, for which the lake is a connection."""
    known = {"iceberg": {"lake": {"warehouse": str(warehouse)}}}
    services = ProbeServices(
        session=lambda: spark,
        trigger_files_root="",
        connections=Connections.model_validate(known),
    )
    return lambda source: known_sources().probes(services)[source]

"""Delta tables that a catalog knows by name, one of them with its commits at the catalog."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.sense.registry import Surroundings, known_sources
from harness.sense.types import Probe
from tests.services.commit_catalog import create_managed_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBERS = itertools.count()


class NamedTable:
    """A table of the session's catalog; another name takes it away, with its folder."""

    source = "delta_table"
    options: Mapping[str, str] = {}
    looks = 1
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )
    missing_id = "worlds.missing"

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        self._spark: SparkSession = request.getfixturevalue("spark")
        self._rows = 0
        self.sensor_id = f"worlds.orders_{next(_NUMBERS)}"
        self._elsewhere = f"{self.sensor_id}_elsewhere"
        self._spark.sql("create database if not exists worlds")
        for name in (self.sensor_id, self._elsewhere):
            request.addfinalizer(lambda name=name: self._spark.sql(f"drop table if exists {name}"))

    def probe(self) -> Probe:
        surroundings = Surroundings(session=lambda: self._spark, trigger_files_root="")
        return known_sources().probes(surroundings)[self.source]

    def create(self) -> None:
        self._spark.sql(f"create table {self.sensor_id} (id bigint) using delta")

    def add(self) -> None:
        self._rows += 1
        self._spark.sql(f"insert into {self.sensor_id} values ({self._rows})")

    def take_away(self) -> None:
        self._rename(self.sensor_id, self._elsewhere)

    def bring_back(self) -> None:
        self._rename(self._elsewhere, self.sensor_id)

    def _rename(self, name: str, other: str) -> None:
        self._spark.sql(f"alter table {name} rename to {other}")


class CatalogManagedTable(NamedTable):
    """A table whose newest commits only its catalog knows: here Delta's own one in memory."""

    def create(self) -> None:
        create_managed_table(self._spark, self.sensor_id, "id bigint")

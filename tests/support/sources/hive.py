"""A partitioned table in the embedded metastore."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources


class HivePartitions:
    """A table of Parquet files, with a partition for each arrival."""

    source = "hive_table"
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        self.options: dict[str, str] = {}
        self._spark = request.getfixturevalue("spark")
        self._schema = f"hive{time.monotonic_ns()}"
        self._folder = root / "orders"
        self._spark.sql(f"create schema {self._schema} location '{root}'")
        self._rows = 0
        self.sensor_id = f"{self._schema}.orders"
        self.missing_id = f"{self._schema}.missing"

    def probe(self) -> Probe:
        services = ProbeServices(session=lambda: self._spark, trigger_files_root="")
        return known_sources().probes(services)[self.source]

    def create(self) -> None:
        self._spark.sql(
            f"create table {self.sensor_id} (id bigint, day string)"
            " using parquet partitioned by (day)"
        )

    def add(self) -> None:
        self._rows += 1
        # What Spark itself writes is sensed in test_hive_by_spark.py; a file costs no Spark job.
        folder = self._folder / f"day=day {self._rows}"
        folder.mkdir()
        pq.write_table(pa.table({"id": pa.array([self._rows], pa.int64())}), folder / "a.parquet")
        self._spark.sql(f"alter table {self.sensor_id} add partition (day = 'day {self._rows}')")

    def take_away(self) -> None:
        self._spark.sql(f"alter table {self.sensor_id} rename to {self._schema}.elsewhere")

    def bring_back(self) -> None:
        self._spark.sql(f"alter table {self._schema}.elsewhere rename to {self.sensor_id}")

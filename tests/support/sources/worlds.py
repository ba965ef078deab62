"""Small upstreams, one world a source, that a test can create, change, take away and bring back.

To add one: write a class with the members of ``World`` (here, or in ``world_<source>.py`` beside
this file), and name it in ``WORLDS``. A world is made for each test; what is expensive (a broker, a
database) is a session fixture that it gets by ``request``, and a world that cannot be had calls
``pytest.skip`` with one sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness.sense.probe import Probe
from harness.sense.registry import ProbeServices, known_sources
from tests.support.sources.catalogs import DeltaTableOfCatalog
from tests.support.sources.databases import PostgresTable, ProcessChain, SqliteTable
from tests.support.sources.hive import HivePartitions
from tests.support.sources.iceberg import CatalogTable, WarehouseTable
from tests.support.sources.kafka import KafkaTopic

NO_OPTIONS: Mapping[str, str] = {}


class World(Protocol):
    """One upstream of one source, and all that may happen to it."""

    #: Value of ``sensor_source``.
    source: str
    #: What is probed.
    sensor_id: str
    #: Something of the same kind, at the same place, that is not there.
    missing_id: str
    #: More of the control row: ``upstream_key`` where the source needs one.
    options: Mapping[str, str]
    #: How many probes it takes until data is reported: two where a file has to be quiet.
    probes_until_reported: int
    #: A query that finds each row of ``add``, and one that finds none; ``None`` without rows.
    queries: tuple[str, str] | None

    def probe(self) -> Probe:
        """Return a probe as a new process has it."""
        ...

    def create(self) -> None:
        """Let the upstream be there, without data."""
        ...

    def add(self) -> None:
        """Let new data arrive, other than all before."""
        ...

    def take_away(self) -> None:
        """Let the upstream, or the system that it is in, be gone."""
        ...

    def bring_back(self) -> None:
        """Undo that; whatever data there was is there again."""
        ...


def services(request: pytest.FixtureRequest, root: Path) -> ProbeServices:
    """Return what a probe from the registry needs; Spark starts at the first probe that uses it."""
    return ProbeServices(
        session=lambda: request.getfixturevalue("spark"), trigger_files_root=str(root)
    )


class OnThisMachine:
    """What is at a path of this machine, and goes by being renamed."""

    source: str

    def __init__(self, request: pytest.FixtureRequest, root: Path, name: str) -> None:
        self._surroundings = services(request, root)
        self._path, self._elsewhere = root / name, root / "elsewhere"

    def probe(self) -> Probe:
        return known_sources().probes(self._surroundings)[self.source]

    def take_away(self) -> None:
        self._path.rename(self._elsewhere)

    def bring_back(self) -> None:
        self._elsewhere.rename(self._path)


class DeltaTable(OnThisMachine):
    """A Delta table at a path of this machine."""

    source = "delta_table"
    options = NO_OPTIONS
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        super().__init__(request, root, "orders")
        self._rows = 0
        self.sensor_id, self.missing_id = str(self._path), str(root / "missing")

    def create(self) -> None:
        write_deltalake(self._path, pa.table({"id": pa.array([], pa.int64())}))

    def add(self) -> None:
        self._rows += 1
        write_deltalake(self._path, pa.table({"id": [self._rows]}), mode="append")


class TriggerFolder(OnThisMachine):
    """A folder of trigger files on this machine."""

    source = "trigger_file"
    options = NO_OPTIONS
    probes_until_reported = 1
    queries = None
    sensor_id, missing_id = "month_end", "missing"

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        super().__init__(request, root, self.sensor_id)
        self._files = 0

    def create(self) -> None:
        self._path.mkdir()

    def add(self) -> None:
        self._files += 1
        (self._path / f"go-{self._files}").touch()


class Files(OnThisMachine):
    """A folder of CSV files on this machine."""

    source = "file"
    options = NO_OPTIONS
    probes_until_reported = 2
    queries = (
        "select * from sensor_new_data where id > 0",
        "select * from sensor_new_data where id < 0",
    )

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        super().__init__(request, root, "in")
        self._files = 0
        self.sensor_id, self.missing_id = str(self._path), str(root / "missing")

    def create(self) -> None:
        self._path.mkdir()

    def add(self) -> None:
        self._files += 1
        (self._path / f"orders-{self._files}.csv").write_text(f"id,name\n{self._files},a\n")


class UpstreamSensor(OnThisMachine):
    """A sensor in another product's table at a path of this machine."""

    source = "delta_upstream_sensor"
    options = NO_OPTIONS
    probes_until_reported = 1
    queries = (
        "select * from sensor_new_data where status = 'PROCESSED_NEW_DATA'",
        "select * from sensor_new_data where status = 'ACQUIRED_NEW_DATA'",
    )

    def __init__(self, request: pytest.FixtureRequest, root: Path) -> None:
        super().__init__(request, root, "sensors")
        self._minute = 0
        self.sensor_id = f"{self._path}: sales_orders_111"
        self.missing_id = f"{self._path}: sales_returns_111"

    def create(self) -> None:
        self._write("ACQUIRED_NEW_DATA")

    def add(self) -> None:
        self._minute += 1
        self._write("PROCESSED_NEW_DATA")

    def _write(self, status: str) -> None:
        changed_at = f"2025-04-23T21:{self._minute:02}:00.000Z"
        write_deltalake(
            self._path, sensors([("sales_orders_111", [], status, changed_at)]), mode="overwrite"
        )


def sensors(rows: Sequence[tuple[str, Sequence[str], str | None, str | None]]) -> pa.Table:
    """Return the seven columns of ``sensors``: id, assets, status and when it changed given."""
    text, null = pa.string(), [None] * len(rows)
    return pa.table(
        {
            "sensor_id": pa.array([row[0] for row in rows], text),
            "assets": pa.array([list(row[1]) for row in rows], pa.list_(text)),
            "status": pa.array([row[2] for row in rows], text),
            "status_change_timestamp": pa.array([row[3] for row in rows], text),
            "checkpoint_location": pa.array(null, text),
            "upstream_key": pa.array(null, text),
            "upstream_value": pa.array(null, text),
        }
    )


#: One line a world: its name in the test's id, and what makes it.
WORLDS: dict[str, Callable[[pytest.FixtureRequest, Path], World]] = {
    "delta_table": DeltaTable,
    "delta_table-catalog": DeltaTableOfCatalog,
    "trigger_file": TriggerFolder,
    "file": Files,
    "delta_upstream_sensor": UpstreamSensor,
    "kafka": KafkaTopic,
    "jdbc-sqlite": SqliteTable,
    "jdbc-postgres": PostgresTable,
    "sap": ProcessChain,
    "iceberg-warehouse": WarehouseTable,
    "iceberg-database": CatalogTable,
    "hive": HivePartitions,
}

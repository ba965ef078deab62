"""Upstreams that are files: Delta tables, Iceberg tables, and folders of trigger files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession as Session

from benchmarks.parts.place import Place
from benchmarks.upstreams import append, available_now
from harness.config.sources import Source
from tests.support.services.iceberg import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DeltaTables:
    """Delta tables at paths."""

    source = Source.DELTA_TABLE
    key = ""
    probes_until_reported = 1
    usual = "an availableNow query of its own"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return str(self._place.folder / "lake" / f"t{number:05d}")

    def create(self) -> None:
        """Make all of them, with some data in each."""
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        for number in numbers:
            append(Path(self.sensor_id(number)))

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to probe one of them."""
        table, checkpoint = self.sensor_id(number), self._place.folder / "seen" / f"t{number}"
        return lambda: available_now(session.readStream.format("delta").load(table), checkpoint)


class TriggerFolders:
    """Folders of trigger files."""

    source = Source.TRIGGER_FILE
    key = ""
    probes_until_reported = 1
    usual = "an availableNow query of its own"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.each

    @property
    def root(self) -> Path:
        """The folder of the folders."""
        return self._place.folder / "triggers"

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do."""
        return f"folder_{number:05d}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        for number in range(self.count):
            (self.root / self.sensor_id(number)).mkdir(parents=True)
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        for number in numbers:
            folder = self.root / self.sensor_id(number)
            (folder / f"go-{len(list(folder.iterdir()))}").touch()

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to probe one of them."""
        folder = str(self.root / self.sensor_id(number))
        checkpoint = self._place.folder / "seen" / f"f{number}"
        return lambda: available_now(session.readStream.format("text").load(folder), checkpoint)


class IcebergTables:
    """Iceberg tables of a catalog that is a folder."""

    source = Source.ICEBERG_TABLE
    key = ""
    probes_until_reported = 1
    usual = "an availableNow query of its own"

    def __init__(self, place: Place) -> None:
        self._place = place
        self.count = place.iceberg
        self._lake: Lake | None = None

    @property
    def warehouse(self) -> Path:
        """The folder of the catalog."""
        return self._place.folder / "iceberg"

    def sensor_id(self, number: int) -> str:
        """Name one upstream as the controls do, and as Spark does."""
        return f"lake.bench.t{number:05d}"

    def create(self) -> None:
        """Make all of them, with some data in each."""
        for number in range(self.count):
            self.lake.sql(f"create table {self.sensor_id(number)} (id bigint) using iceberg")
        self.change(range(self.count))

    def change(self, numbers: Sequence[int]) -> None:
        """Let new data arrive at some of them."""
        for number in numbers:
            self.lake.sql(f"insert into {self.sensor_id(number)} values (1), (2), (3)")

    def alone(self, session: "SparkSession", number: int) -> Callable[[], object]:
        """Return the usual way to probe one of them."""
        table, checkpoint = self.sensor_id(number), self._place.folder / "seen" / f"i{number}"
        reader = self.lake.session.readStream.format("iceberg")
        return lambda: available_now(reader.load(table), checkpoint)

    @property
    def lake(self) -> Lake:
        """The catalog, in the session of this process."""
        if self._lake is None:
            settings = {"type": "hadoop", "warehouse": str(self.warehouse)}
            self._lake = Lake(Session.builder.getOrCreate(), settings)
        return self._lake

"""Reads the rows of a product's ``sensors`` table: what is in it, not what is new."""

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import ProbeFailedError
from harness.platform.delta_log import read_commit
from harness.platform.spark.session import message_of
from harness.platform.sql.port import Row, rows_of
from harness.platform.sql_names import in_sql, is_path
from harness.platform.storage import Storage, is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FINISHED = "PROCESSED_NEW_DATA"
COLUMNS = {
    "sensor_id": "string",
    "assets": "array<string>",
    "status": "string",
    "status_change_timestamp": "string",
    "checkpoint_location": "string",
    "upstream_key": "string",
    "upstream_value": "string",
}
_NEEDED = ("sensor_id", "status", "status_change_timestamp")
#: A larger data file of such a table is not read on its own.
_FILE_LIMIT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorRow:
    """One sensor of the other product, as one version of its table shows it."""

    sensor_id: str
    assets: tuple[str, ...]
    status: str
    #: As it stands in the table; empty when the status never changed.
    changed_at: str
    checkpoint_location: str | None
    upstream_key: str | None
    upstream_value: str | None

    @property
    def is_finished(self) -> bool:
        """Return whether its job has processed all that its sensor found."""
        return self.status == FINISHED and self.changed_at != ""

    def is_about(self, name: str) -> bool:
        """Return whether a name is that of the sensor or of one of its assets."""
        return name == self.sensor_id or name in self.assets


class RowReader(Protocol):
    """Reads a whole table as it is now."""

    def read(self, table: str, path: str) -> list[SensorRow]:
        """Return its rows.

        Args:
            table: Its name, or the path again.
            path: Where its files are.

        Raises:
            ProbeFailedError: It cannot be read, or is not a sensors table.
        """
        ...


class LakeRowReader:
    """Reads local tables without Spark where it can, and all others by Spark."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def read(self, table: str, path: str) -> list[SensorRow]:
        """Return the rows of a table."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if is_remote(path):
            return self.read_by_spark(table)
        try:
            lake = DeltaTable(path)
            names = [field.name for field in lake.schema().fields]
            content = lake.to_pyarrow_table(columns=_present(names))
        except DeltaError:
            # It uses a feature that only Spark reads.
            return self.read_by_spark(table)
        return rows_from(content.to_pylist())

    def read_by_spark(self, table: str) -> list[SensorRow]:
        """Return the rows of a table as Spark reads it: one by name through its catalog."""

        def present(session: "SparkSession") -> "DataFrame":
            found = (
                session.read.format("delta").load(table)
                if is_path(table)
                else session.table(in_sql(table))
            )
            return found.select(*_present(found.columns))

        return rows_from(self._collected(present))

    def read_versions(self, table: str, versions: Sequence[int]) -> list[tuple[int, SensorRow]]:
        """Return the rows of several versions of a table, each with its version.

        Args:
            table: Its name, as SQL takes it.
            versions: At least one; all are read by one statement.

        Raises:
            ProbeFailedError: One of them cannot be read any more.
        """

        def shown(session: "SparkSession") -> "DataFrame":
            columns = ", ".join(_present(session.table(table).columns))
            parts = (
                f"select {columns}, {version:d} as version from {table} version as of {version:d}"
                for version in versions
            )
            return session.sql(" union all ".join(parts))

        return [
            (int(str(record["version"])), row)
            for record in self._collected(shown)
            for row in rows_from([record])
        ]

    def _collected(self, frame: "Callable[[SparkSession], DataFrame]") -> list[Row]:
        from harness.platform.spark.errors import SPARK_ERRORS

        try:
            # An instant as Python's rows have it depends on the zone of this machine.
            return rows_of(frame(self._session()).toArrow())
        except SPARK_ERRORS as error:
            raise ProbeFailedError(f"its rows cannot be read: {message_of(error)}") from error


def rows_of_commit(storage: Storage, path: str, version: int) -> list[SensorRow]:
    """Return the rows in the data files that one commit added, unchanged ones among them.

    Empty when the commit or a file of it cannot be read on its own any more.
    """
    from pyarrow import ArrowException, parquet

    rows: list[SensorRow] = []
    try:
        commit = read_commit(storage, path, version)
        for file in commit.adds if commit is not None else ():
            address = file.path if "://" in file.path else f"{path}/{file.path}"
            content = storage.read(address, limit=_FILE_LIMIT_BYTES)
            table = parquet.ParquetFile(io.BytesIO(content))
            names = _present(table.schema_arrow.names)
            rows += rows_from(table.read(columns=names).to_pylist())
    except (FileNotFoundError, ArrowException, ProbeFailedError):
        return []
    return rows


def rows_from(records: Iterable[Mapping[str, Any]]) -> list[SensorRow]:
    """Convert records with the columns of a sensors table into rows; one without an id is none."""
    return [
        SensorRow(
            sensor_id=str(record["sensor_id"]),
            assets=tuple(str(asset) for asset in record.get("assets") or ()),
            status=str(record["status"] or "").strip().upper(),
            changed_at=_as_text(record["status_change_timestamp"]),
            checkpoint_location=record.get("checkpoint_location"),
            upstream_key=record.get("upstream_key"),
            upstream_value=record.get("upstream_value"),
        )
        for record in records
        if record["sensor_id"] is not None
    ]


def instant_of(text: str) -> datetime | None:
    """Read a time as it stands in a sensors table; one without a zone is in UTC."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def is_later(text: str, other: str) -> bool:
    """Compare two times as they stand in a sensors table: as times if they are, else as text."""
    left, right = instant_of(text), instant_of(other)
    return left > right if left is not None and right is not None else text > other


def _as_text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def _present(names: Sequence[str]) -> list[str]:
    missing = [column for column in _NEEDED if column not in names]
    if missing:
        raise ProbeFailedError(
            f"it is not a sensors table: it has no column {' and no '.join(missing)}"
        )
    return [column for column in COLUMNS if column in names]

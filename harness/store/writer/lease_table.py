"""The lease as a table of the session's catalog: one row, replaced by conditional updates.

Two updates of one row never both succeed: the table format lets the second one fail, or lets it
look again and find that its condition no longer holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.errors import StateError
from harness.platform.sql_names import text_in_sql
from harness.store.writer.lease import LeaseRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES: Mapping[object, str] = {
    int: "bigint",
    str: "string",
    datetime: "timestamp",
    bool: "boolean",
}


class CatalogLeaseTable:
    """The table ``writer_lease`` of one schema.

    Args:
        session: Returns the session.
        schema: The schema's name, with its catalog where there is one.
    """

    def __init__(self, session: "Callable[[], SparkSession]", schema: str) -> None:
        self._session = session
        self._schema = schema

    @property
    def name(self) -> str:
        """The table's name, with its schema."""
        return f"{self._schema}.writer_lease"

    def read(self) -> LeaseRow | None:
        """Return the row; nothing when there is no table yet.

        Raises:
            StateError: It cannot be read, or has more than one row.
        """
        try:
            session = self._session()
            if not session.catalog.tableExists(self.name):
                return None
            rows = [row.asDict() for row in session.table(self.name).collect()]
        except Exception as error:
            raise _failure(self.name, "read", error) from error
        if len(rows) != 1:
            raise StateError(
                f"The table {self.name} has {len(rows)} rows instead of one: while no harness "
                "process runs, drop it, and the next one recreates it"
            )
        return _row(rows[0])

    def create(self, row: LeaseRow) -> None:
        """Make the table with this row, in one commit.

        Raises:
            StateError: It cannot be made, or another process was faster.
        """
        columns = ", ".join(f"{each.name} {_TYPES[each.type]}" for each in fields(row))
        try:
            session = self._session()
            if not session.catalog.databaseExists(self._schema):
                session.sql(f"create schema if not exists {self._schema}")
            writer = session.createDataFrame([astuple(row)], columns).writeTo(self.name)
            writer.using("delta").tableProperty("delta.isolationLevel", "Serializable").create()
        except Exception as error:
            raise _failure(self.name, "made", error) from error

    def swap(self, row: LeaseRow, *, epoch: int) -> None:
        """Replace the row that has the epoch.

        Raises:
            StateError: It cannot be written, or another process was faster.
        """
        try:
            # Delta's `update` takes no parameters.
            wanted = ", ".join(f"{name} = {_in_sql(value)}" for name, value in asdict(row).items())
            self._session().sql(f"update {self.name} set {wanted} where epoch = {epoch:d}")
        except Exception as error:
            raise _failure(self.name, "written", error) from error


def _row(values: dict[str, object]) -> LeaseRow:
    # Spark collects instants in local time, without a zone.
    aware = {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value
        for name, value in values.items()
    }
    return LeaseRow(**aware)  # type: ignore[arg-type]


def _in_sql(value: object) -> str:
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"cast({text_in_sql(text)} as {_TYPES[type(value)]})"


def _failure(name: str, done: str, error: Exception) -> StateError:
    lines = str(error).strip().splitlines()[:1] or [repr(error)]
    return StateError(f"The table {name} cannot be {done}: {lines[0]}; nothing was started")

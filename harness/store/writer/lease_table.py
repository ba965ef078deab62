"""The lease as a table of a catalog: one row, replaced by conditional updates.

Two updates of one row never both succeed: the table format lets the second one fail, or
evaluates its condition again, which no longer holds. An update that is sent twice changes nothing
the second time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime

from harness.errors import StateError
from harness.platform.sql.port import Row, Sql, SqlError
from harness.platform.sql_names import SchemaName, text_in_sql
from harness.store.writer.lease import LeaseRow

_TYPES: Mapping[object, str] = {
    int: "bigint",
    str: "string",
    datetime: "timestamp",
    datetime | None: "timestamp",
    bool: "boolean",
}
_COLUMNS = {each.name: _TYPES[each.type] for each in fields(LeaseRow)}


class CatalogLeaseTable:
    """The table ``writer_lease`` of one schema.

    Args:
        sql: Runs the statements.
        schema: The schema, with its catalog where there is one.
    """

    def __init__(self, sql: Sql, schema: SchemaName) -> None:
        self._sql = sql
        self._schema = schema
        self._table = schema.table("writer_lease")
        self._held: Sequence[Row] | None = None
        #: Columns that the table of an earlier version does not have.
        self._missing: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The table's name, with its schema, for people."""
        return f"{self._schema}.writer_lease"

    @property
    def query(self) -> str:
        """The query whose rows ``hold`` takes."""
        return f"select * from {self._table}"

    def hold(self, rows: Sequence[Row]) -> None:
        """Take the rows for those of the next ``read``; a swap fails if they are not."""
        self._held = rows

    def read(self) -> LeaseRow | None:
        """Return the row; nothing when there is no table yet.

        Raises:
            StateError: It cannot be read, or has more than one row.
        """
        try:
            held, self._held = self._held, None
            rows = self._sql.run(self.query) if held is None else held
        except Exception as error:
            if isinstance(error, SqlError) and error.is_not_there:
                return None
            raise _failure(self.name, "read", error) from error
        if len(rows) != 1:
            raise StateError(
                f"The table {self.name} has {len(rows)} rows instead of one: while no harness "
                "process runs, drop it, and the next one recreates it"
            )
        self._missing = [each for each in _COLUMNS if each not in rows[0]]
        return LeaseRow(**rows[0])  # type: ignore[arg-type]

    def create(self, row: LeaseRow) -> None:
        """Make the table with this row, in one commit.

        Raises:
            StateError: It cannot be made, or another process was faster.
        """
        columns = ", ".join(f"{value} as {name}" for name, value in _in_sql(row).items())
        statement = (
            f"create table {self._table} using delta"
            f" tblproperties ('delta.isolationLevel' = 'Serializable') as select {columns}"
        )
        try:
            self._made(statement)
        except Exception as error:
            raise _failure(self.name, "made", error) from error

    def _made(self, statement: str) -> None:
        """Make the table, and the schema only when it is missing: few may make one."""
        try:
            self._sql.run(statement)
        except SqlError as error:
            if not error.is_not_there:
                raise
            self._sql.run(f"create schema if not exists {self._schema.in_sql}")
            self._sql.run(statement)

    def swap(self, row: LeaseRow, *, epoch: int) -> bool:
        """Replace the row that has the epoch, and return whether the engine reports that it did.

        Raises:
            StateError: It cannot be written, or another process was faster.
        """
        try:
            # Delta's `update` takes no parameters.
            wanted = ", ".join(f"{name} = {value}" for name, value in _in_sql(row).items())
            if self._missing:
                added = ", ".join(f"{each} {_COLUMNS[each]}" for each in self._missing)
                self._sql.run(f"alter table {self._table} add columns ({added})")
                self._missing = ()
            rows = self._sql.run(f"update {self._table} set {wanted} where epoch = {epoch:d}")
        except Exception as error:
            raise _failure(self.name, "written", error) from error
        return [row.get("num_affected_rows") for row in rows] == [1]


def _in_sql(row: LeaseRow) -> Mapping[str, str]:
    return {
        name: f"cast({_literal(value)} as {_COLUMNS[name]})" for name, value in asdict(row).items()
    }


def _literal(value: object) -> str:
    if value is None:
        return "null"
    return text_in_sql(value.isoformat() if isinstance(value, datetime) else str(value))


def _failure(name: str, done: str, error: Exception) -> StateError:
    lines = str(error).strip().splitlines()[:1] or [repr(error)]
    return StateError(
        f"The table {name} cannot be {done}: {lines[0]}; nothing was started that is not recorded"
    )

"""Reads models that are views."""

import logging

from harness.errors import StateError
from harness.platform.sql.port import Row, Sql, SqlError
from harness.platform.sql_names import SchemaName

log = logging.getLogger(__name__)


class Views:
    """The models of one schema, for reading.

    Args:
        sql: Runs the statements.
        schema: The schema of every model.
        quick: Reads the same in less time, if it can; where it cannot, ``sql`` does.
    """

    def __init__(self, sql: Sql, schema: SchemaName, *, quick: Sql | None = None) -> None:
        self._sql, self._quick = sql, quick
        self._schema = schema

    def rows(self, relation: str) -> list[Row]:
        """Read every row of a model.

        Raises:
            StateError: It cannot be read.
        """
        table = self._schema.table(relation)
        # Another thread may drop the quick way in between.
        quick = self._quick
        try:
            return (quick or self._sql).read(table)
        except SqlError as error:
            if quick is None:
                raise unreadable(f"{self._schema}.{relation}", error) from error
            return self._read_slowly(relation, table, error)

    def _read_slowly(self, relation: str, table: str, failed: SqlError) -> list[Row]:
        try:
            rows = self._sql.read(table)
        except SqlError as error:
            raise unreadable(f"{self._schema}.{relation}", error) from error
        # Else the table is fine, and each further reading would fail first.
        if self._quick is not None:
            self._quick = None
            log.warning(
                "models are read slowly from now on: Delta Kernel cannot read them: %s", failed
            )
        return rows


def unreadable(relation: str, error: SqlError) -> StateError:
    """Return what to report when a table cannot be read, with the way out."""
    if error.remedy:
        return StateError(f"{relation} cannot be read: {error}")
    return StateError(
        f"{relation} cannot be read: {error}; `python -m harness doctor` shows what to do"
    )

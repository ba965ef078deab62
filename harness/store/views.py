"""Reads models that are views.

Spark's analysis of a decision, ten views deep, takes as long as running it. A process that ticks
again and again has every view analysed once, and each reading plans and runs again on the tables as
they are then.
"""

from collections.abc import Callable

from harness.errors import StateError
from harness.platform.sql.port import Row, Sql, SqlError
from harness.platform.sql_names import SchemaName


class Views:
    """The models of one schema, for reading.

    Args:
        sql: Runs the statements.
        schema: The schema of every model.
        keeps: Keep what was analysed until ``forget``; only where no other process makes views.
    """

    def __init__(self, sql: Sql, schema: SchemaName, *, keeps: bool) -> None:
        self._sql = sql
        self._schema = schema
        self._keeps = keeps
        self._analysed: dict[str, Callable[[], list[Row]]] = {}

    def rows(self, relation: str) -> list[Row]:
        """Read every row of a model.

        Raises:
            StateError: It cannot be read.
        """
        try:
            return self._read(relation)
        except SqlError as error:
            raise unreadable(f"{self._schema}.{relation}", error) from error

    def _read(self, relation: str) -> list[Row]:
        statement = f"select * from {self._schema.table(relation)}"
        if not self._keeps:
            return self._sql.run(statement)
        if relation not in self._analysed:
            self._analysed[relation] = self._sql.prepare(statement)
        return self._analysed[relation]()

    def forget(self) -> None:
        """Have every view analysed again: one of them is to change."""
        self._analysed.clear()


def unreadable(relation: str, error: SqlError) -> StateError:
    """Return what to report when a table cannot be read, with the way out."""
    if error.remedy:
        return StateError(f"{relation} cannot be read: {error}")
    return StateError(
        f"{relation} cannot be read: {error}; `python -m harness doctor` shows what to do"
    )

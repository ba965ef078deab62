"""The ledgers as tables of the session's catalog, appended and read by Spark: for Databricks.

There the table format itself admits several writers, so the session is the one way in.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from typing import TYPE_CHECKING

from harness.errors import StateError
from harness.store.rows import FencingToken, Ledger, LedgerRow

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_OPERATORS: Mapping[str, Callable[..., object]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class CatalogStore:
    """Tables of one schema of the session's catalog.

    Args:
        session: Returns the session; asked for only when a table is touched.
        schema: The schema's name, with its catalog where there is one.
    """

    def __init__(self, session: "Callable[[], SparkSession]", schema: str) -> None:
        self._session = session
        self._schema = schema

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None = None
    ) -> None:
        """Append rows in one commit; no rows, no commit, and none below the ledger's last stamp.

        Raises:
            StateError: The ledger cannot be written.
        """
        if rows:
            self._commit(ledger, rows, fencing_token)

    def fence(self, fencing_token: FencingToken) -> None:
        """Commit the stamp alone to every ledger that is there, and see that each keeps it.

        Raises:
            StateError: A ledger cannot be written, or does not keep stamps.
        """
        for ledger in filter(self.exists, Ledger):
            before = self.fingerprint(ledger)
            self._commit(ledger, (), fencing_token)
            after = self.fingerprint(ledger)
            # A second time the same stamp has to count as done: that is what holds others off.
            self._commit(ledger, (), fencing_token)
            if before == after or self.fingerprint(ledger) != after:
                raise StateError(
                    f"The ledger {ledger} does not keep the stamps of its writers, so a process "
                    "that has lost the lease could still write to it: nothing is started; tick "
                    "with a cluster whose Delta Lake has idempotent writes (txnAppId)"
                )

    def _commit(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None
    ) -> None:
        try:
            session = self._session()
            schema = session.table(self._name(ledger)).schema
            values = [asdict(row) for row in rows]
            ordered = [tuple(value[name] for name in schema.names) for value in values]
            frame = session.createDataFrame(ordered, schema)
            # `insertInto` would take no notice of the stamp.
            writer = frame.writeTo(self._name(ledger))
            if fencing_token is not None:
                # The table's own log keeps the newest version, and drops what is not above it.
                writer = writer.option("txnAppId", fencing_token.application)
                writer = writer.option("txnVersion", fencing_token.version)
            writer.append()
        except Exception as error:
            lines = str(error).strip().splitlines()[:1] or [repr(error)]
            message = f"The ledger {ledger} cannot be written: {lines[0]}; nothing was started"
            raise StateError(message) from error

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        """Read a table's rows that meet every condition; a table that is not there has none.

        Raises:
            StateError: The table cannot be read.
        """
        if not self.exists(table):
            return []
        try:
            frame = self._session().table(self._name(table))
            if where:
                frame = frame.where(reduce(operator.and_, map(_condition, where)))
            if columns:
                frame = frame.select(*columns)
            return [row.asDict(recursive=True) for row in frame.collect()]
        except Exception as error:
            lines = str(error).strip().splitlines()[:1] or [repr(error)]
            raise StateError(f"The table {table} cannot be read: {lines[0]}") from error

    def exists(self, table: str) -> bool:
        """Return whether the table is there."""
        return bool(self._session().catalog.tableExists(self._name(table)))

    def fingerprint(self, table: str) -> str | None:
        """Name the newest commit: its version and time."""
        if not self.exists(table):
            return None
        history = self._session().sql(f"describe history {self._name(table)} limit 1").first()
        return f"{history.version}:{history.timestamp}" if history else None

    def _name(self, table: str) -> str:
        return f"{self._schema}.{table}"


def _condition(part: tuple[str, str, object]) -> "Column":
    from pyspark.sql import functions

    column, name, value = part
    field = functions.col(column)
    if name == "in":
        return field.isin(list(value))  # type: ignore[call-overload]
    if name == "contains":
        return functions.lower(field).contains(str(value).lower())
    return _OPERATORS[name](field, value)  # type: ignore[return-value]

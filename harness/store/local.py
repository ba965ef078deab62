"""The ledgers on a local disk, appended and read by the deltalake package, without a JVM.

Safe because one process at a time holds the lock of the state folder, and because within that
process nothing else writes a ledger.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import StateError
from harness.tables import Ledger, LedgerRow

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable


class LocalStore:
    """Delta tables of one schema in a local warehouse folder."""

    def __init__(self, warehouse: Path, schema: str) -> None:
        self._folder = warehouse / f"{schema}.db"

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        """Append rows in one commit; no rows, no commit.

        Raises:
            StateError: The ledger cannot be written.
        """
        if not rows:
            return
        import pyarrow as pa
        from deltalake import write_deltalake

        try:
            table = self._open(ledger)
            schema = _arrow_schema(table)
            # Keys of a map arrive as pairs: a dictionary is no map to Arrow.
            batch = pa.Table.from_pylist([_plain(row) for row in rows], schema=schema)
            write_deltalake(table, batch, mode="append")
        except Exception as error:
            raise StateError(_unwritable(ledger, error)) from error

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
            opened = self._open(table)
            dataset = opened.to_pyarrow_dataset(schema=_arrow_schema(opened))
            found = dataset.to_table(columns=list(columns) or None, filter=_expression(where))
            rows: list[dict[str, object]] = found.to_pylist(maps_as_pydicts="lossy")
        except Exception as error:
            message = f"The table {table} in {self._folder} cannot be read: {_first_line(error)}"
            raise StateError(message) from error
        return rows

    def exists(self, table: str) -> bool:
        """Tell whether the table is there."""
        return (self._folder / table / "_delta_log").is_dir()

    def fingerprint(self, table: str) -> str | None:
        """Name the newest commit: its version, size and time."""
        log = self._folder / table / "_delta_log"
        try:
            newest = max(
                (entry for entry in os.scandir(log) if _is_commit(entry.name)),
                key=lambda entry: entry.name,
                default=None,
            )
            if newest is None:
                return None
            said = newest.stat()
        except OSError:
            return None
        return f"{newest.name}:{said.st_size}:{said.st_mtime_ns}"

    def _open(self, table: str) -> "DeltaTable":
        from deltalake import DeltaTable

        return DeltaTable(self._folder / table)


def _is_commit(name: str) -> bool:
    return len(name) == 25 and name.endswith(".json") and name[:20].isdigit()


def _arrow_schema(table: "DeltaTable") -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def _plain(row: LedgerRow) -> dict[str, object]:
    plain = asdict(row)
    tags = plain.get("tags")
    if isinstance(tags, dict):
        plain["tags"] = list(tags.items())
    return plain


def _expression(where: Sequence[tuple[str, str, object]]) -> "pa.compute.Expression | None":
    import pyarrow.dataset as ds

    whole = None
    for column, operator, value in where:
        part = _operators()[operator](ds.field(column), value)
        whole = part if whole is None else whole & part
    return whole


@cache
def _operators():  # type: ignore[no-untyped-def]
    import operator

    return {
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "in": lambda field, values: field.isin(list(values)),
    }


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else repr(error)


def _unwritable(ledger: Ledger, error: BaseException) -> str:
    return (
        f"The ledger {ledger} cannot be written: {_first_line(error)}; nothing was started that "
        "is not recorded, so make room or make it writable, and tick again"
    )

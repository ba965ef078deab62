"""The ledgers on a local disk, appended and read by the deltalake package, without a JVM.

Safe because one process at a time holds the lock of the state directory, and because within that
process nothing else writes a ledger. A commit counts once it is on the disk, so that a power cut
takes nothing back that a job was started for.
"""

import logging
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import StateError
from harness.platform.files import force
from harness.platform.text import mapped, storable
from harness.store.conditions import DATAFUSION
from harness.store.delta_commits import (
    commit_with,
    force_table,
    log_of,
    newest_commit,
    parts_of,
)
from harness.store.public_tables import PublicTable
from harness.store.rows import Ledger, LedgerRow

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

log = logging.getLogger(__name__)

#: Where a commit carries what distinguishes it from all others.
_MARK = "heartbeat"
#: What the operating system shows when an operator has to free space or change permissions.
_NO_ROOM = re.compile(
    "No space left on device|Read-only file system|Permission denied|Disk quota exceeded"
)
_LONGEST_REASON = 200
#: The name of a table in the statement that reads it.
_TABLE = "wanted"
#: Rows come by commit, the newest first.
_IN_ORDER = {"datafusion.execution.target_partitions": "1"}


class LocalStore:
    """Delta tables of one schema in a local warehouse folder.

    Args:
        warehouse: The folder of all schemas.
        schema: The schema's name.
        force: Forces a file, or the names in a folder, to the disk.
    """

    def __init__(
        self, warehouse: Path, schema: str, *, force: Callable[[Path], None] = force
    ) -> None:
        self._folder = warehouse / f"{schema}.db"
        self._force = force

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        """Append rows in one commit and force it to the disk; no rows, no commit.

        Raises:
            StateError: The ledger cannot be written.
        """
        if not rows:
            return
        try:
            table = self._open(ledger)
            batch = _arrow([_plain(row) for row in rows], _arrow_schema(table))
            commit = self._committed(ledger, table, batch)
            for part in parts_of(self._folder / ledger, commit):
                self._force(part)
        except Exception as error:
            raise StateError(_unwritable(ledger, error)) from error

    def _committed(self, ledger: Ledger, table: "DeltaTable", batch: "pa.Table") -> Path:
        """Commit rows and return the commit.

        What follows a commit, such as a checkpoint, may fail: then the rows are there all the same.
        """
        from deltalake import CommitProperties, write_deltalake

        before, mark = table.version(), uuid.uuid4().hex
        failure: Exception | None = None
        try:
            marked = CommitProperties(custom_metadata={_MARK: mark})
            write_deltalake(table, batch, mode="append", commit_properties=marked)
        except Exception as error:
            failure = error
        commit = commit_with(self._folder / ledger, mark, after=before)
        if commit is None:
            raise failure or StateError("its commit is not there; the next tick appends again")
        if failure is not None:
            log.warning("%s: the rows are committed, but %s", ledger, _reason(failure))
        return commit

    def replace(self, table: PublicTable, rows: Sequence[Mapping[str, object]]) -> None:
        """Give a public table these rows and no others; where it has them already, no commit.

        The table is one small file, which any change writes whole.

        Raises:
            StateError: The table cannot be written.
        """
        try:
            published = self._open(table.name)
            wanted = _with_columns_of(published, rows)
            order = [(name, "ascending") for name in table.key]
            there = published.to_pyarrow_dataset(schema=wanted.schema).to_table()
            if not there.sort_by(order).equals(wanted.sort_by(order)):
                self._overwrite(table.name, published, wanted)
        except Exception as error:
            raise StateError(
                f"The table {table.name} cannot be written: {_reason(error)}; the next tick"
                " publishes again; `python -m harness doctor` shows what to do"
            ) from error

    def fill(self, table: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Give a table that only this process reads these rows and no others.

        Raises:
            StateError: The table cannot be written.
        """
        try:
            filled = self._open(table)
            self._overwrite(table, filled, _with_columns_of(filled, rows))
        except Exception as error:
            raise StateError(
                f"The table {table} cannot be written: {_reason(error)}; "
                "`python -m harness doctor` shows what to do"
            ) from error

    def _overwrite(self, name: str, table: "DeltaTable", wanted: "pa.Table") -> None:
        from deltalake import write_deltalake

        write_deltalake(table, wanted, mode="overwrite")
        force_table(self._folder / name, self._force)

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
            rows = _rows(self._open(table), DATAFUSION.select(_TABLE, where, columns))
        except Exception as error:
            raise StateError(
                f"The table {table} in {self._folder} cannot be read: {_reason(error)}; "
                "`python -m harness doctor` shows which file it is and what to do"
            ) from error
        return rows

    def exists(self, table: str) -> bool:
        """Return whether the table is there."""
        return log_of(self._folder / table).is_dir()

    def fingerprint(self, table: str) -> str | None:
        """Name the newest commit: its version, size and time."""
        newest = newest_commit(self._folder / table)
        return None if newest is None else newest.fingerprint

    def fingerprints(self, tables: Sequence[str]) -> dict[str, str | None]:
        """Name the newest commit of each table."""
        return {table: self.fingerprint(table) for table in tables}

    def _open(self, table: str) -> "DeltaTable":
        from deltalake import DeltaTable

        return DeltaTable(self._folder / table)


def _arrow_schema(table: "DeltaTable") -> "pa.Schema":
    import pyarrow as pa

    return pa.schema(table.schema().to_arrow())


def _with_columns_of(table: "DeltaTable", rows: Sequence[Mapping[str, object]]) -> "pa.Table":
    schema = _arrow_schema(table)
    return _arrow([{name: row[name] for name in schema.names} for row in rows], schema)


def _arrow(rows: list[dict[str, object]], schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except UnicodeEncodeError:
        # Half a character somewhere in what others have written is no reason to record nothing.
        return pa.Table.from_pylist([mapped(row, storable) for row in rows], schema=schema)


def _plain(row: LedgerRow) -> dict[str, object]:
    # Not `asdict`: it copies every value, which takes most of the time of a large append.
    plain = {each.name: _inner(getattr(row, each.name)) for each in fields(row)}
    tags = plain.get("tags")
    if isinstance(tags, dict):
        # Keys of a map arrive as pairs: a dictionary is no map to Arrow.
        plain["tags"] = list(tags.items())
    return plain


def _inner(value: object) -> object:
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        names = [each.name for each in fields(value[0])]
        return [{name: _inner(getattr(each, name)) for name in names} for each in value]
    return value


def _rows(table: "DeltaTable", statement: str) -> list[dict[str, object]]:
    """Run a statement over a table.

    PyArrow, which can read it as well, imports pandas to do so: half of the time of `status`.
    """
    from deltalake import QueryBuilder
    from deltalake.schema import MapType

    found = QueryBuilder(_IN_ORDER).register(_TABLE, table).execute(statement).read_all()
    maps = {field.name for field in table.schema().fields if isinstance(field.type, MapType)}
    columns = [
        [_mapping(pairs) for pairs in column.to_pylist()] if name in maps else column.to_pylist()
        for name, column in zip(found.column_names, found.columns, strict=True)
    ]
    return [dict(zip(found.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _mapping(pairs: Iterable[tuple[str, object]] | None) -> dict[str, object] | None:
    return None if pairs is None else dict(pairs)


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:_LONGEST_REASON] if lines else repr(error)


def _unwritable(ledger: Ledger, error: BaseException) -> str:
    match = _NO_ROOM.search(str(error))
    reason = match.group() if match else _reason(error)
    way_out = (
        "make room or make it writable, and tick again"
        if match
        else "`python -m harness doctor` shows what to do"
    )
    return (
        f"The ledger {ledger} cannot be written: {reason}; nothing was started that is not "
        f"recorded: {way_out}"
    )

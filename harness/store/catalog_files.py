"""Keeps the files of a state directory in a table of the schema: in a workspace no disk lasts.

A process works on a folder of its own. It fills the folder from the table when it begins, and
writes back what has changed, in one statement each. What the ledgers record is never in these
files alone: without them a tick reads everything from the models again.
"""

import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import cast

from harness.errors import StateError
from harness.platform.clock import Clock
from harness.platform.files import unwritable
from harness.platform.sql.port import Row, Sql, SqlError
from harness.platform.sql_names import SchemaName, literal
from harness.store.quarantine import FOLDER as QUARANTINE
from harness.store.rows import integer
from harness.store.state_dir import SHARED_FILES, SHARED_FOLDERS, StateDir
from harness.store.views import unreadable

_TABLE = "state_files"
#: No file is larger; the state of 100,000 upstreams has 50 MiB.
_LARGEST = 512 * 2**20
_COLUMNS = "name string, content binary, written_at timestamp, epoch bigint"


class CatalogFiles:
    """The table ``state_files`` of one schema.

    Args:
        sql: Runs the statements.
        schema: The schema, with its catalog where there is one.
        clock: The one clock.
    """

    def __init__(self, sql: Sql, schema: SchemaName, clock: Clock) -> None:
        self._sql, self._clock = sql, clock
        self._name = f"{schema}.{_TABLE}"
        self._table = schema.table(_TABLE)
        self._is_there = False
        self._epoch = 0
        #: The checksum of each file as the table has it.
        self._kept: dict[str, str] = {}

    @property
    def query(self) -> str:
        """The query whose rows ``restore`` takes."""
        return f"select name, epoch, content from {self._table} where content is not null"

    def read(self) -> list[Row]:
        """Return the rows; none where there is no table yet.

        Raises:
            StateError: The table cannot be read.
        """
        try:
            return self._sql.run(self.query)
        except SqlError as error:
            if error.is_not_there:
                return []
            raise unreadable(f"The table {self._name}", error) from error

    def restore(self, home: StateDir, rows: Sequence[Row]) -> None:
        """Make the shared files of a folder the same as those of the table.

        Raises:
            StateError: A row is damaged, or the folder cannot be written.
        """
        wanted = {str(row["name"]): _content(self._name, row) for row in rows}
        self._is_there = bool(rows)
        self._epoch = max((integer(row["epoch"]) for row in rows), default=0)
        self._kept = {name: _checksum(content) for name, content in wanted.items()}
        try:
            for name in [name for name, _ in _shared(home.folder) if name not in wanted]:
                (home.folder / name).unlink()
            for name, content in wanted.items():
                path = home.folder / name
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                path.write_bytes(content)
        except OSError as error:
            raise unwritable(home.folder, error) from error

    def save(self, home: StateDir, *, epoch: int | None = None) -> None:
        """Write what has changed in a folder to the table; without a change, do nothing.

        Args:
            home: The folder.
            epoch: The lease epoch of the writer; what a later one has written is left as it is.
                Without one, the newest that was restored.

        Raises:
            StateError: The table cannot be written, or a file not be read.
        """
        try:
            found = {name: path.read_bytes() for name, path in _shared(home.folder)}
        except OSError as error:
            raise StateError(
                f"The state directory {home.folder} cannot be read: {error}; make it readable"
            ) from error
        sums = {name: _checksum(content) for name, content in found.items()}
        changed: dict[str, bytes | None] = {
            name: content for name, content in found.items() if self._kept.get(name) != sums[name]
        }
        changed |= {name: None for name in self._kept if name not in found}
        if changed:
            self._write(changed, self._epoch if epoch is None else epoch)
            self._kept = sums

    def _write(self, changed: Mapping[str, bytes | None], epoch: int) -> None:
        now = literal(self._clock.now())
        rows = ", ".join(
            f"({literal(name)}, {_packed(content)}, {now}, {literal(epoch)})"
            for name, content in sorted(changed.items())
        )
        merge = (
            f"merge into {self._table} as kept using (select * from values {rows}"
            " as changed (name, content, written_at, epoch)) as changed on kept.name = changed.name"
            " when matched and kept.epoch <= changed.epoch then update set *"
            " when not matched then insert *"
        )
        try:
            if not self._is_there:
                self._sql.run(f"create table if not exists {self._table} ({_COLUMNS}) using delta")
                self._is_there = True
            self._sql.run(merge)
        except SqlError as error:
            raise StateError(
                f"The table {self._name} cannot be written: {error};"
                " `python -m harness doctor` shows what to do"
            ) from error


def delete_item(schema: SchemaName, name: str) -> str:
    """Return the statement that removes a quarantined item of a workspace, and its reason.

    Args:
        schema: The schema, with its catalog where there is one.
        name: Of the item's file, without its folders.
    """
    prefix = literal(f"inbox/{QUARANTINE}/{name}")
    return f"delete from {schema.table(_TABLE)} where startswith(name, {prefix})"


def _shared(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return the files of a folder that the table has, and their names there."""
    for name in SHARED_FILES:
        if (path := folder / name).is_file():
            yield name, path
    for name in SHARED_FOLDERS:
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path


def _packed(content: bytes | None) -> str:
    if content is None:
        return "cast(null as binary)"
    return f"unbase64('{b64encode(zlib.compress(content)).decode()}')"


def _content(table: str, row: Row) -> bytes:
    """Read one row: what may write to the table could have written anything.

    Raises:
        StateError: The name leads out of the folder, or the content is damaged or too large.
    """
    name, packed = str(row["name"]), row["content"]
    parts = name.split("/")
    is_ours = name in SHARED_FILES or (len(parts) > 1 and parts[0] in SHARED_FOLDERS)
    if not is_ours or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise _damaged(table, name, "no file of a state directory has this name")
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(cast(bytes, packed), _LARGEST)
    except (zlib.error, TypeError) as error:
        raise _damaged(table, name, "its content cannot be unpacked") from error
    if not unpacking.eof:
        raise _damaged(table, name, "its content is cut off or too large")
    return content


def _damaged(table: str, name: str, reason: str) -> StateError:
    return StateError(
        f"The table {table} is damaged at the name '{name}': {reason}; delete this row, and the"
        " next tick reads what it needs from the ledgers"
    )


def _checksum(content: bytes) -> str:
    return sha256(content).hexdigest()

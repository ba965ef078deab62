"""Tables of a lease without a JVM: one in memory, and a real Delta table."""

from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path

from harness.errors import StateError
from harness.lease import LeaseRow


class MemoryLeaseTable:
    """One row in memory; a test may let it fail."""

    name = "memory.writer_lease"

    def __init__(self) -> None:
        self.row: LeaseRow | None = None
        self.is_down = False
        #: The next write lands, and is told to have failed.
        self.loses_answer = False
        self.reads = self.writes = 0

    def read(self) -> LeaseRow | None:
        self.reads += 1
        return self.row

    def create(self, row: LeaseRow) -> None:
        self.row = self.row or row

    def swap(self, row: LeaseRow, *, epoch: int) -> None:
        self.writes += 1
        if self.is_down:
            raise StateError("the table cannot be written: no answer")
        if self.row is not None and self.row.epoch == epoch:
            self.row = row
        if self.loses_answer:
            self.loses_answer = False
            raise StateError("the table cannot be written: the answer was lost")

    def expire(self) -> None:
        """Let the time of the holder be over, by everybody's clock."""
        assert self.row is not None
        self.row = replace(self.row, expires_at=self.row.since)


class DeltaLeaseTable:
    """A Delta table of one row in a folder; as many processes as want to may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = str(folder)

    def read(self) -> LeaseRow | None:
        from deltalake import DeltaTable

        if not (self._folder / "_delta_log" / f"{0:020}.json").exists():
            return None
        rows = DeltaTable(self._folder).to_pyarrow_table().to_pylist()
        if not rows:
            return None
        (row,) = rows
        return LeaseRow(**row)

    def create(self, row: LeaseRow) -> None:
        from deltalake import DeltaTable

        try:
            # The package makes a table and fills it in two commits; the second one is a race, too.
            serializable = {"delta.isolationLevel": "Serializable"}
            batch = _batch(row)
            DeltaTable.create(self._folder, batch.schema, mode="ignore", configuration=serializable)
            DeltaTable(self._folder).merge(
                batch, predicate="true", source_alias="wanted", target_alias="kept"
            ).when_not_matched_insert_all().execute()
        except Exception as error:
            raise StateError(f"{self._folder} cannot be made: {error}") from error

    def swap(self, row: LeaseRow, *, epoch: int) -> None:
        from deltalake import DeltaTable

        try:
            table = DeltaTable(self._folder)
            table.merge(
                _batch(row),
                predicate=f"kept.epoch = {epoch}",
                source_alias="wanted",
                target_alias="kept",
            ).when_matched_update_all().execute()
        except Exception as error:
            raise StateError(f"{self._folder} cannot be written: {error}") from error


def _batch(row: LeaseRow):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    kinds = {
        int: pa.int64(),
        str: pa.string(),
        datetime: pa.timestamp("us", tz="UTC"),
        bool: pa.bool_(),
    }
    schema = pa.schema([(each.name, kinds[each.type]) for each in fields(row)])  # type: ignore[index]
    return pa.Table.from_pylist([asdict(row)], schema=schema)

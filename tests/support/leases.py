"""Tables of a lease, and ledgers that keep stamps, as real Delta tables without a JVM."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import StateError
from harness.store.local import LocalStore, _arrow_schema, _plain
from harness.store.rows import FencingToken, Ledger, LedgerRow, TickRow
from harness.store.writer.lease import LeaseRow


def tick_row(number: int) -> TickRow:
    """A row to append; nothing but its number matters."""
    return TickRow(
        tick_number=number,
        tick_id=str(number),
        tick_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        sensed_count=0,
        event_count=0,
        failed_look_count=0,
        settled_count=0,
        started_count=0,
        folded_through=-1,
        seconds=0.0,
    )


class MemoryLeaseTable:
    """One row in memory; a test may let it fail."""

    name = "memory.writer_lease"

    def __init__(self) -> None:
        self.row: LeaseRow | None = None
        self.is_down = False
        #: The next write lands, and is reported as failed.
        self.loses_answer = False
        self.reads = self.writes = 0

    def read(self) -> LeaseRow | None:
        self.reads += 1
        return self.row

    def create(self, row: LeaseRow) -> None:
        self.row = self.row or row

    def swap(self, row: LeaseRow, *, epoch: int) -> bool:
        self.writes += 1
        if self.is_down:
            raise StateError("the table cannot be written: no answer")
        has_won = self.row is not None and self.row.epoch == epoch
        if has_won:
            self.row = row
        if self.loses_answer:
            self.loses_answer = False
            raise StateError("the table cannot be written: the answer was lost")
        return has_won

    def expire(self) -> None:
        """Let the time of the holder be over, by everybody's clock."""
        assert self.row is not None
        self.row = replace(self.row, expires_at=self.row.since)


class DeltaLeaseTable:
    """A Delta table of one row in a folder; any number of processes may share it."""

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

    def swap(self, row: LeaseRow, *, epoch: int) -> bool:
        from deltalake import DeltaTable

        try:
            table = DeltaTable(self._folder)
            table.merge(
                _batch(row),
                predicate=f"kept.epoch = {epoch}",
                source_alias="wanted",
                target_alias="kept",
            ).when_matched_update_all().execute()
            return False
        except Exception as error:
            raise StateError(f"{self._folder} cannot be written: {error}") from error


class StampedLocalStore(LocalStore):
    """The local ledgers, for several processes: stamped as Spark stamps them."""

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken | None = None
    ) -> None:
        if stamp is None:
            super().append(ledger, rows)
        elif rows:
            self._stamp(ledger, rows, stamp)

    def fence(self, stamp: FencingToken) -> None:
        for ledger in filter(self.exists, Ledger):
            self._stamp(ledger, (), stamp)

    def _stamp(self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken) -> None:
        import pyarrow as pa
        from deltalake import CommitProperties, Transaction, write_deltalake

        try:
            table = self._open(ledger)
            if stamp.version <= (table.transaction_version(stamp.application) or 0):
                return
            batch = pa.Table.from_pylist([_plain(row) for row in rows], schema=_arrow_schema(table))
            # Two that have both read the same last stamp are kept apart by the commit itself.
            stamped = CommitProperties(
                app_transactions=[Transaction(stamp.application, stamp.version)]
            )
            write_deltalake(table, batch, mode="append", commit_properties=stamped)
        except Exception as error:
            raise StateError(f"The ledger {ledger} cannot be written: {error}") from error


def _batch(row: LeaseRow):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    kinds = {
        int: pa.int64(),
        str: pa.string(),
        datetime: pa.timestamp("us", tz="UTC"),
        datetime | None: pa.timestamp("us", tz="UTC"),
        bool: pa.bool_(),
    }
    schema = pa.schema([(each.name, kinds[each.type]) for each in fields(row)])  # type: ignore[index]
    return pa.Table.from_pylist([asdict(row)], schema=schema)

"""Appends for the holder of the lease: with a fencing token, confirmed before anything follows.

The ledger silently drops an append with an older fencing token. So the holder reads the lease after
each append: while it still holds it, the ledger was not fenced before, and the rows are there.
"""

from collections.abc import Sequence
from typing import Protocol

from harness.errors import StateError
from harness.store.rows import FencingStore, FencingToken, Ledger, LedgerRow


class HeldLease(Protocol):
    """The lease while it is held; implemented by the lease."""

    def fencing_token(self) -> FencingToken:
        """Number the next append."""
        ...

    def confirm(self) -> None:
        """Check that the lease is still held."""
        ...

    def append_failed(self) -> None:
        """Record that an append failed, and may still land."""
        ...


class FencedStore:
    """A store that only the holder of the lease appends to.

    Args:
        store: The ledgers.
        lease: The lease.
    """

    def __init__(self, store: FencingStore, lease: HeldLease) -> None:
        self._store = store
        self._lease = lease

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        """Append rows in one commit; when this returns they are there, and the lease is still held.

        Raises:
            LockedError: Another process has the lease; the rows may or may not be there.
            StateError: The ledger cannot be written.
        """
        if not rows:
            return
        fencing_token = self._lease.fencing_token()
        try:
            self._store.append(ledger, rows, fencing_token)
        except BaseException as error:
            self._lease.append_failed()
            if isinstance(error, StateError):
                self._lease.confirm()
            raise
        self._lease.confirm()

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        """Read a table's rows that meet every condition; a table that is not there has none."""
        return self._store.read(table, where=where, columns=columns)

    def exists(self, table: str) -> bool:
        """Return whether the table is there."""
        return self._store.exists(table)

    def fingerprint(self, table: str) -> str | None:
        """Name the newest commit."""
        return self._store.fingerprint(table)

    def fingerprints(self, tables: Sequence[str]) -> dict[str, str | None]:
        """Name the present contents of several tables."""
        return self._store.fingerprints(tables)

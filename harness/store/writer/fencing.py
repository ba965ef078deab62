"""Appends for the holder of the lease: stamped with its turn, confirmed before anything follows.

A stamp of an earlier turn is dropped by the ledger without a word. So the holder looks at the lease
after each append: while it is its own, nobody had fenced the ledger before, and the rows are there.
"""

from collections.abc import Sequence
from typing import Protocol

from harness.errors import StateError
from harness.store.rows import FencingStore, FencingToken, Ledger, LedgerRow


class HeldLease(Protocol):
    """The turn of one holder; implemented by the lease."""

    def fencing_token(self) -> FencingToken:
        """Number the next append."""
        ...

    def confirm(self) -> None:
        """Make sure that the turn goes on."""
        ...

    def append_failed(self) -> None:
        """Note that an append failed, and that nobody knows whether it will still land."""
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
        """Append rows in one commit; when this returns they are there, and the turn goes on.

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
        """Tell whether the table is there."""
        return self._store.exists(table)

    def fingerprint(self, table: str) -> str | None:
        """Name the newest commit."""
        return self._store.fingerprint(table)

"""Appends for the holder of the lease: stamped with its turn, confirmed before anything follows.

A stamp of an earlier turn is dropped by the ledger without a word. So the holder looks at the lease
after each append: while it is its own, nobody had fenced the ledger before, and the rows are there.
"""

from collections.abc import Sequence
from typing import Protocol

from harness.errors import StateError
from harness.store.rows import Ledger, LedgerRow, Stamp, StampedStore


class Turn(Protocol):
    """The turn of one holder; implemented by the lease."""

    def stamp(self) -> Stamp:
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
        turn: The lease.
    """

    def __init__(self, store: StampedStore, turn: Turn) -> None:
        self._store = store
        self._turn = turn

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        """Append rows in one commit; when this returns they are there, and the turn goes on.

        Raises:
            LockedError: Another process has the lease; the rows may or may not be there.
            StateError: The ledger cannot be written.
        """
        if not rows:
            return
        stamp = self._turn.stamp()
        try:
            self._store.append(ledger, rows, stamp)
        except BaseException as error:
            self._turn.append_failed()
            if isinstance(error, StateError):
                self._turn.confirm()
            raise
        self._turn.confirm()

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

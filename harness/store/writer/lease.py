"""Admits one harness process at a time to the tables of a workspace, by a row that it holds.

The lease is for order, not for safety: a holder that was frozen past its end, or whose clock is
wrong, may go on as if it still held it. What keeps such a process from doing harm is its epoch, the
fencing token: every append carries it, a ledger refuses an append with an older one, and after each
append the holder checks that it still holds the lease. Until then it starts nothing. See the
decision page on the lease.
"""

import logging
import os
import socket
import threading
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Protocol, Self

from harness.errors import HeartbeatError, LockedError, StateError
from harness.platform.clock import Clock
from harness.store.rows import FencingStore, FencingToken
from harness.store.writer.lock import Holder

log = logging.getLogger(__name__)

#: How long a holder that was killed keeps the others out; a living one renews at half time.
LEASE_SECONDS = 300

_APPLICATION = "heartbeat-writer"
#: The appends of one lease are numbered below its epoch.
_APPENDS_PER_EPOCH = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """The one row of the lease's table.

    Attributes:
        epoch: The number of the lease; each holder has one more than the one before.
        holder: A unique name of this holder.
        pid: The process.
        command: The subcommand it runs.
        host: The machine.
        since: When its lease began, by its own clock.
        expires_at: When another process may take over, by its own clock.
        is_held: False once it has released the lease.
        needs_fence: The next holder has to fence the ledgers with its epoch before it reads them,
            because an append of this one may still be under way.
        ticked_at: When the last tick began that has ended, of this holder or of an earlier one,
            as known when the row was written last.
    """

    epoch: int
    holder: str
    pid: int
    command: str
    host: str
    since: datetime
    expires_at: datetime
    is_held: bool
    needs_fence: bool
    ticked_at: datetime | None = None

    def described(self, now: datetime) -> str:
        """Report who it is, for people."""
        holder = Holder(
            pid=self.pid, command=self.command, since=self.since.isoformat(), host=self.host
        )
        return holder.described(now)


class LeaseTable(Protocol):
    """A table of one row that can be replaced on a condition."""

    @property
    def name(self) -> str:
        """What people call the table."""
        ...

    def read(self) -> LeaseRow | None:
        """Return the row as it is committed; nothing when there is no table yet.

        Raises:
            StateError: It cannot be read.
        """
        ...

    def create(self, row: LeaseRow) -> None:
        """Make the table with this row, unless another process has made it meanwhile.

        Raises:
            StateError: It cannot be made, or another process was faster.
        """
        ...

    def swap(self, row: LeaseRow, *, epoch: int) -> bool:
        """Put this row in the place of the one that has the epoch; of several writers one wins.

        Returns:
            Whether this writer is known to have won. If not, or after a failure, the caller reads
            the row to find out who has.

        Raises:
            StateError: It cannot be written, or another process was faster.
        """
        ...


class Lease:
    """Holds the tables for one ``with`` block, like the lock of a state directory.

    Args:
        table: Where the row is.
        store: The ledgers, which are fenced when the lease before this one did not end well.
        command: The subcommand, for the process that is refused.
        clock: The one clock.
        seconds: How long the lease lasts without being renewed.
    """

    def __init__(
        self,
        table: LeaseTable,
        store: FencingStore,
        *,
        command: str,
        clock: Clock,
        seconds: float = LEASE_SECONDS,
    ) -> None:
        self._table, self._store = table, store
        self._command, self._clock = command, clock
        self._lasts = timedelta(seconds=seconds)
        # Calls to the Jobs API run side by side, and each checks the lease first.
        self._alone = threading.RLock()
        self._mine: LeaseRow | None = None
        self._ticked_at: datetime | None = None
        self._appends = 0
        self._is_unsure = False
        #: Whether the lease before this one ended in order, so that nothing of it came afterwards.
        self.follows_clean_end = False

    def __enter__(self) -> Self:
        """Take the lease without waiting.

        Raises:
            LockedError: Another process holds it, or has just taken it.
            StateError: The table cannot be used.
        """
        now = self._clock.now()
        seen = self._table.read() or self._first_row()
        if not self._is_free(seen, now):
            raise LockedError(
                f"Another harness process holds the lease in {self._table.name}: "
                f"{seen.described(now)}, until {seen.expires_at:%H:%M:%SZ} unless it renews it; "
                "wait for it, or stop it"
            )
        self._acquire(seen, now)
        self.follows_clean_end = not seen.needs_fence
        try:
            if seen.needs_fence:
                self._store.fence(self._fencing_token())
        except BaseException:
            self._release(is_fenced=False)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release(is_fenced=not self._is_unsure)

    @property
    def epoch(self) -> int | None:
        """The number of this lease; nothing once it is over or lost."""
        return None if self._mine is None else self._mine.epoch

    def check(self) -> None:
        """Renew the lease when half of its time is over; before that, do nothing.

        Raises:
            LockedError: Another process has the lease; nothing may be written or started any more.
            StateError: The holder cannot be determined.
        """
        with self._alone:
            mine, now = self._held(), self._clock.now()
            # A clock that was put back would make the lease look young for ever.
            left = mine.expires_at - now
            if not self._lasts / 2 < left <= self._lasts:
                self._renew(mine, now)

    def confirm(self) -> None:
        """Read the row; without an error, what was done before this call was done in time.

        Raises:
            LockedError: Another process has the lease; nothing may be written or started any more.
            StateError: The holder cannot be determined.
        """
        with self._alone:
            self._verify_ownership(self._held())

    def note_tick(self, at: datetime) -> None:
        """Record when a tick began that came to its end; the row has it once it is renewed."""
        self._ticked_at = at

    def fencing_token(self) -> FencingToken:
        """Number the next append, after making sure that there is time for it.

        Raises:
            LockedError: Another process has the lease.
            StateError: The holder cannot be determined.
        """
        with self._alone:
            self.check()
            self._appends += 1
            return self._fencing_token()

    def append_failed(self) -> None:
        """Record that an append may still land although it failed: the next holder has to fence."""
        self._is_unsure = True

    def _fencing_token(self) -> FencingToken:
        version = self._held().epoch * _APPENDS_PER_EPOCH + self._appends
        return FencingToken(application=_APPLICATION, version=version)

    def _held(self) -> LeaseRow:
        if self._mine is None:
            raise LockedError(
                f"This process does not hold the lease in {self._table.name} any more: "
                "nothing more is written or started; end it, and start it again"
            )
        return self._mine

    def _first_row(self) -> LeaseRow:
        """Make the table; there may be ledgers of before its time, so they are fenced."""
        initial = self._row(epoch=0, now=self._clock.now())
        failure: StateError | None = None
        try:
            self._table.create(replace(initial, is_held=False))
        except StateError as error:
            failure = error
        row = self._table.read()
        if row is None:
            raise failure or StateError(
                f"The table {self._table.name} was created and is not there;"
                " start the process again"
            )
        return row

    def _acquire(self, seen: LeaseRow, now: datetime) -> None:
        self._ticked_at = seen.ticked_at
        wanted = self._row(epoch=seen.epoch + 1, now=now)
        failure: HeartbeatError | None = None
        has_won = False
        try:
            has_won = self._table.swap(wanted, epoch=seen.epoch)
        except StateError as error:
            failure = error
        found = wanted if has_won else self._table.read()
        if found is not None and found.holder == wanted.holder:
            self._mine, self._appends, self._is_unsure = wanted, 0, False
            log.info("turn %s of the lease in %s", wanted.epoch, self._table.name)
            return
        if failure and found == seen:
            raise failure
        who = found.described(now) if found else "another user, who removed its table"
        raise LockedError(
            f"Another harness process has just acquired the lease in {self._table.name}: {who}; "
            "wait for it, or stop it"
        )

    def _renew(self, mine: LeaseRow, now: datetime) -> None:
        row = replace(mine, expires_at=now + self._lasts, ticked_at=self._ticked_at)
        failure = self._swap(row, epoch=mine.epoch)
        self._verify_ownership(mine)
        if failure:
            # The row still names this process, so that no other process is at work.
            log.warning("the lease could not be renewed and is tried again: %s", failure)

    def _verify_ownership(self, mine: LeaseRow) -> None:
        found = self._table.read()
        if found is not None and found.holder == mine.holder and found.is_held:
            self._mine = found
            return
        self._mine = None
        who = found.described(self._clock.now()) if found else "no process: its table is gone"
        raise LockedError(
            f"This process has lost the lease in {self._table.name} after it stood still or its "
            f"clock was wrong; it is held by {who}: this one stops before it writes or starts "
            "anything more, and the next tick goes on from what is recorded"
        )

    def _release(self, *, is_fenced: bool) -> None:
        mine, self._mine = self._mine, None
        if mine is None:
            return
        row = replace(mine, is_held=False, needs_fence=not is_fenced, ticked_at=self._ticked_at)
        failure = self._swap(row, epoch=mine.epoch)
        if failure:
            log.warning("the lease could not be released, it expires: %s", failure)

    def _swap(self, row: LeaseRow, *, epoch: int) -> HeartbeatError | None:
        try:
            self._table.swap(row, epoch=epoch)
        except StateError as error:
            return error
        return None

    def _is_free(self, row: LeaseRow, now: datetime) -> bool:
        """Return whether another process may take over; too long a lease has a wrong clock."""
        is_over = now >= row.expires_at or row.expires_at > now + 2 * self._lasts
        return is_over or not row.is_held

    def _row(self, *, epoch: int, now: datetime) -> LeaseRow:
        return LeaseRow(
            epoch=epoch,
            holder=uuid.uuid4().hex,
            pid=os.getpid(),
            command=self._command,
            host=socket.gethostname(),
            since=now,
            expires_at=now + self._lasts,
            is_held=True,
            needs_fence=True,
            ticked_at=self._ticked_at,
        )

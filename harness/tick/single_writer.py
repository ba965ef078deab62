"""Enforces a single writer: a file lock locally, a lease in a workspace."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from harness.config.load import LOCAL_TARGET
from harness.context import Context
from harness.controls.edits import TABLE as PUBLISHED
from harness.errors import HeartbeatError
from harness.store.catalog import CatalogStore
from harness.store.writer.lease import Lease
from harness.store.writer.lease_table import CatalogLeaseTable
from harness.store.writer.lock import ProcessLock
from harness.tick.checkpoint import WATCHED_TABLES

log = logging.getLogger(__name__)


@contextmanager
def admitted(context: Context, command: str) -> Iterator[None]:
    """Hold what admits one writer, and end in the right order what the context has started.

    Raises:
        LockedError: Another harness process has it.
        StateError: The state directory, or the lease's table, cannot be used.
    """
    with ExitStack() as stack:
        if context.target == LOCAL_TARGET:
            context.lock = stack.enter_context(
                ProcessLock(context.home.folder, command=command, clock=context.clock)
            )
            # The metastore admits one process: it is closed before the next one is let in.
            stack.callback(context.close)
        else:
            # The lease is released through the session.
            stack.callback(context.close)
            # Only a session appends to the ledgers: without one, there is nothing to hold.
            _ = context.session
            table = CatalogLeaseTable(context.sql, context.schema_name)
            found = context.read_state(table, (*WATCHED_TABLES, PUBLISHED))
            if found is not None:
                table.hold(found["lease"])
            tables = CatalogStore(context.sql, context.schema_name)
            lease = Lease(table, tables, command=command, clock=context.clock)
            context.lock = stack.enter_context(lease)
            # Who has not ended in order may have written since.
            context.use_own_state(found if lease.follows_clean_end else None)
            stack.enter_context(_kept(context))
        yield


@contextmanager
def _kept(context: Context) -> Iterator[None]:
    """Keep the state at the end, too: what failed has left behind how it did."""
    try:
        yield
    except BaseException:
        try:
            context.keep_state()
        except HeartbeatError as error:
            log.warning("what this command has left is not kept: %s", error)
        raise
    context.keep_state()

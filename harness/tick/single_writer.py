"""Enforces a single writer: a file lock locally, a lease in a workspace."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from harness.config.load import LOCAL_TARGET
from harness.context import Context
from harness.store.catalog import CatalogStore
from harness.store.writer.lease import Lease
from harness.store.writer.lease_table import CatalogLeaseTable
from harness.store.writer.lock import ProcessLock


@contextmanager
def admitted(context: Context, command: str) -> Iterator[None]:
    """Hold what admits one writer, and end in the right order what the context has started.

    Raises:
        LockedError: Another harness process has it.
        StateError: The state folder, or the lease's table, cannot be used.
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
            context.lock = stack.enter_context(_lease(context, command))
        yield


def _lease(context: Context, command: str) -> Lease:
    # Only a session appends to the ledgers: without one, there is nothing to hold the lease for.
    _ = context.session
    row = CatalogLeaseTable(context.sql, context.schema_name)
    tables = CatalogStore(context.sql, context.schema_name)
    return Lease(row, tables, command=command, clock=context.clock)

"""Events of tables for tests: which snapshot follows which."""

from dataclasses import replace

from harness.toolkit.changes import ChangeEvent, Operation, TableFormat

DELTA, ICEBERG, HIVE = TableFormat.DELTA, TableFormat.ICEBERG, TableFormat.HIVE


def step(before: object, after: object, kind: TableFormat = DELTA, **tags: str) -> ChangeEvent:
    """An event that leads from one snapshot to another."""
    return ChangeEvent(
        event_ts=1_000,
        table="sales.orders",
        snapshot_id=None if after is None else str(after),
        prev_snapshot_id=None if before is None else str(before),
        table_format=kind,
        operation_type=Operation.APPEND,
        tags=tags,
    )


def at(event: ChangeEvent, when: int) -> ChangeEvent:
    """The same, of a commit at some instant."""
    return replace(event, snapshot_ts=when)


def of_partition(*values: str, **tags: str) -> ChangeEvent:
    """An event of one partition of a Hive table."""
    return replace(step(None, "h1", HIVE, **tags), partition=values or None)

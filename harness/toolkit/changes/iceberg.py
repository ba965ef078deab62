"""Reads the rows that changed between two snapshots of an Iceberg table.

If all snapshots append, what they appended; if rows are only ever rewritten with their files,
the changelog of these; else both snapshots are compared, and where the old one is expired all rows
are new.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import ProbeFailedError
from harness.events.event import Operation
from harness.platform.spark.jars import ICEBERG_PACKAGE
from harness.platform.sql_names import in_sql, is_path
from harness.sense.sources.iceberg.classify import operation_of
from harness.sense.sources.iceberg.metadata import Snapshot
from harness.sense.sources.iceberg.new_rows import need_runtime
from harness.toolkit.changes.answer import (
    Changed,
    Question,
    Range,
    compared,
    full_table,
    incremental,
    nothing,
)
from harness.toolkit.changes.chain import Fault
from harness.toolkit.changes.net_changes import check_columns, gained, of_log, why_not_compared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows that are marked as deleted in a file of their own, which a changelog does not cover.
_MARKED = "total-delete-files"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """The snapshots after the old end up to the new one, oldest first."""

    snapshots: tuple[Snapshot, ...]
    #: The old end is among the snapshots that are kept.
    has_start: bool

    @property
    def changes(self) -> tuple[Snapshot, ...]:
        return tuple(each for each in self.snapshots if operation_of(each) is not None)


def changed(question: Question) -> Changed:
    """Return the rows that the events of an Iceberg table describe."""
    _need_iceberg(question)
    if not is_path(question.name):
        # A catalog keeps tables for a while as they were.
        question.session.sql(f"refresh table {in_sql(question.name)}")
    chain = question.chain
    snapshots = _snapshots(question)
    until = None if chain.until is None else _id(chain.until)
    if until is None or until not in snapshots:
        why = chain.why or f"snapshot {chain.until} is expired"
        return full_table(question, _read(question), None, why)
    if chain.since is None:
        return full_table(question, _at(question, until), str(until), chain.why or "")
    line = _line(snapshots, _id(chain.since), until)
    return _of_line(question, line, (_id(chain.since), until))


def _need_iceberg(question: Question) -> None:
    try:
        need_runtime(question.session)
    except ProbeFailedError as error:
        raise ProbeFailedError(
            f"{question.name} cannot be read: this Spark session has no Iceberg; start it with"
            f" the package {ICEBERG_PACKAGE}"
        ) from error


def _of_line(question: Question, line: "_Line | None", ends: tuple[int, int]) -> Changed:
    new = _at(question, ends[1])
    where = Range(since=str(ends[0]), until=str(ends[1]))
    if line is None or not _has_all_events(question, line):
        off = _off_the_line(question)
        if question.chain.fault in (Fault.GAP, Fault.FORK):
            # Which end is the older is then a guess.
            return full_table(question, _read(question), None, off)
        return _compared(question, new, where, off)
    if not line.changes:
        return nothing(new, where)
    check_columns(new.schema, question.keys)
    fault = _fault(question, line)
    if fault is None and line.has_start and _at(question, ends[0]).schema != new.schema:
        fault = "the schema changed on the way"
    if fault is not None:
        return _compared(question, new, where, fault)
    frame, why = _change_by_change(question, line, new, ends)
    if frame is None:
        return _compared(question, new, where, why or "")
    return incremental(frame, where)


def _has_all_events(question: Question, line: "_Line") -> bool:
    passed = {str(each.id) for each in line.snapshots}
    return all(event.snapshot_id in passed for event in question.chain.events)


def _off_the_line(question: Question) -> str:
    chain = question.chain
    message = f"snapshot {chain.since} does not lead by them to {chain.until} any more"
    return message if chain.why is None else f"{chain.why}, and {message}"


def _fault(question: Question, line: _Line) -> str | None:
    """Report why changes cannot be read one by one; the table takes precedence over the events."""
    chain = question.chain
    if chain.fault is Fault.GAP:
        reported = {event.snapshot_id for event in chain.events}
        lost = [each.id for each in line.changes if str(each.id) not in reported]
        if lost:
            return f"no event covers snapshot {lost[0]}"
        return chain.marked
    return chain.why


def _change_by_change(
    question: Question, line: _Line, new: "DataFrame", ends: tuple[int, int]
) -> "tuple[DataFrame | None, str | None]":
    """Return the changed rows, or why they cannot be read without comparing."""
    names = [field.name for field in new.schema]
    if all(operation_of(each) is Operation.APPEND for each in line.changes):
        rows = _read(question, **_between(ends))
        if rows.schema.names == names:
            return gained(rows), None
        return None, "the columns have changed since"
    if not line.has_start:
        return None, f"snapshot {ends[0]} is expired"
    if any(each.summary.get(_MARKED) != "0" for each in line.snapshots):
        return None, "rows are marked as deleted, of which the table keeps no changelog"
    log = _read(question, "changes", **_between(ends))
    if not set(names) <= set(log.columns):
        return None, "the columns have changed since"
    return of_log(log, new.schema, question.keys), None


def _compared(question: Question, new: "DataFrame", where: Range, why: str) -> Changed:
    snapshots = _snapshots(question)
    since = _id(where.since or "")
    if since not in snapshots:
        gone = f"snapshot {where.since} is expired"
        return full_table(question, new, where.until, why if gone in why else f"{why}, and {gone}")
    old = _at(question, since)
    differs = why_not_compared(old.schema, new.schema)
    if differs is not None:
        return full_table(question, new, where.until, f"{why}, and {differs}")
    return compared(question, (old, new), where, why)


def _line(snapshots: Mapping[int, Snapshot], since: int, until: int) -> _Line | None:
    """Walk back from the new end to the old one; ``None`` when it is not on the way."""
    passed = list[Snapshot]()
    at: int | None = until
    while at is not None and at != since:
        snapshot = snapshots.get(at)
        if snapshot is None:
            return None
        passed.append(snapshot)
        at = snapshot.parent
    if at is None:
        return None
    return _Line(snapshots=tuple(reversed(passed)), has_start=since in snapshots)


def _snapshots(question: Question) -> dict[int, Snapshot]:
    rows = _read(question, "snapshots").collect()
    return {
        int(row["snapshot_id"]): Snapshot(
            id=int(row["snapshot_id"]),
            parent=None if row["parent_id"] is None else int(row["parent_id"]),
            sequence=0,
            timestamp_ms=0,
            schema_id=None,
            summary={**(row["summary"] or {}), "operation": row["operation"] or ""},
        )
        for row in rows
    }


def _at(question: Question, snapshot: int) -> "DataFrame":
    return _read(question, versionAsOf=str(snapshot))


def _between(ends: Sequence[int]) -> dict[str, str]:
    return {"start-snapshot-id": str(ends[0]), "end-snapshot-id": str(ends[1])}


def _read(question: Question, part: str = "", **options: str) -> "DataFrame":
    """Read a table, or what Iceberg describes it under another name."""
    name = question.name
    if part:
        name = f"{name}#{part}" if is_path(name) else f"{name}.{part}"
    return question.session.read.format("iceberg").options(**options).load(name)


def _id(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else -1

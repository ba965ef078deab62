"""Makes one probe of many tables of one database, and determines what is new in each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from harness.config.connections import Database, JdbcDatabase
from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.database_queries import DatabaseDownError, Dialect, Value
from harness.sense.preprocess.query import rendered
from harness.sense.probe import ProbeResult, failed
from harness.sense.sources.jdbc.cursor import (
    Change,
    Cursor,
    change_in,
    cursor_from,
    is_same,
    start_after,
)
from harness.sense.sources.jdbc.session import QuerySession
from harness.sense.sources.jdbc.values import milliseconds
from harness.sense.sources.jdbc.watermark_sql import Seen, Subject, Window, subject_of
from harness.store.work_lists import Upstream

_LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceRows:
    """The rows of a table that are new, as far as its key shows."""

    #: As a statement names it after FROM, and its key as a statement names it.
    relation: str
    key: str
    #: Where they begin; ``None`` for all rows.
    start: Value | None
    #: Whether the start is among them, and rows without a key as well.
    with_late: bool = False


class NewTableRows(Protocol):
    """Runs a query over new rows; the only part that may run Spark jobs."""

    def any_row(self, database: Database, rows: SinceRows, query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    subject: Subject
    #: ``None`` at first observation.
    before: Cursor | None
    news: Change
    after: Cursor
    now: str


class Comparison:
    """One probe of one database."""

    def __init__(
        self, session: QuerySession, database: JdbcDatabase, new_rows: NewTableRows
    ) -> None:
        self._session = session
        self._database = database
        self._overlap = timedelta(minutes=database.overlap_minutes)
        self._new_rows = new_rows
        self._made: dict[str, ProbeResult] = {}

    def results(self, group: Sequence[Upstream]) -> list[ProbeResult]:
        """Return one probe per upstream."""
        try:
            self._probe(group)
        except DatabaseDownError as error:
            for upstream in group:
                self._made.setdefault(upstream.upstream_id, failed(upstream, str(error)))
        for upstream in group:
            failure = self._session.failures.get(upstream.upstream_id)
            if failure is not None:
                self._made.setdefault(upstream.upstream_id, failed(upstream, str(failure)))
        return [self._made.get(upstream.upstream_id) or unmoved(upstream) for upstream in group]

    def _probe(self, group: Sequence[Upstream]) -> None:
        dialect = self._session.dialect()
        known: list[tuple[Subject, Cursor]] = []
        new: list[tuple[Subject, Cursor | None]] = []
        for upstream in group:
            try:
                subject = subject_of(upstream, dialect)
                if upstream.position is None:
                    new.append((subject, None))
                else:
                    known.append((subject, cursor_from(upstream.position)))
            except ProbeFailedError as error:
                self._made[upstream.upstream_id] = failed(upstream, str(error))
        changes = self._compared(known, dialect)
        new += [(each.subject, each.before) for each in changes if each.news is Change.EMPTIED]
        changes = [each for each in changes if each.news is not Change.EMPTIED]
        for subject, before in new:
            change = self._sighted(subject, before)
            if change is not None:
                changes.append(change)
        self._settle(changes, dialect)

    def _compared(self, known: Sequence[tuple[Subject, Cursor]], dialect: Dialect) -> list[_Change]:
        windows = [
            Window(subject=subject, column=before.column, start=before.start)
            for subject, before in known
        ]
        seen = self._session.windows(windows, dialect)
        changes = []
        for subject, before in known:
            now = seen.get(subject.id)
            if now is None:
                continue
            try:
                change = change_in(before, now)
            except ProbeFailedError as error:
                self._made[subject.id] = failed(subject.upstream, str(error))
                continue
            if change is not Change.NONE:
                after = _after(before, change, now)
                changes.append(
                    _Change(subject=subject, before=before, news=change, after=after, now=now.now)
                )
        return changes

    def _sighted(self, subject: Subject, before: Cursor | None) -> _Change | None:
        """Probe a table of which nothing is known, or whose known end is gone."""
        answer = self._session.largest(subject)
        if answer is None:
            return None
        largest, now = answer.rows[0]
        column = answer.columns[0]
        after = Cursor(
            kind=column.kind,
            type_name=column.type_name,
            largest=largest,
            start=None,
            rows=0,
            nulls=0,
            check="0",
            life=0 if before is None else before.life + 1,
        )
        return _Change(
            subject=subject, before=before, news=Change.EMPTIED, after=after, now=now or ""
        )

    def _settle(self, changes: Sequence[_Change], dialect: Dialect) -> None:
        """Request the windows that the next probe starts from, and report what is new data."""
        ready = []
        for change in changes:
            try:
                after = start_after(change.after, change.now, self._overlap)
                ready.append(replace(change, after=after))
            except ProbeFailedError as error:
                upstream = change.subject.upstream
                self._made[upstream.upstream_id] = failed(upstream, str(error))
        windows = [
            Window(subject=each.subject, column=each.after.column, start=each.after.start)
            for each in ready
        ]
        seen = self._session.windows(windows, dialect)
        for change in ready:
            now = seen.get(change.subject.id)
            # Rows that disappeared during this probe are left to the next one.
            if now is not None and (now.largest is None) == (change.after.largest is None):
                self._report(replace(change, after=change.after.with_seen(now)))

    def _report(self, change: _Change) -> None:
        upstream = change.subject.upstream
        change = _named(change)
        try:
            counts = _is_event(change, upstream)
            if counts and upstream.preprocess_query:
                if self._session.left < _LEAST_SECONDS:
                    # Found again at the next probe, which has time for it.
                    return
                counts = self._returns_row(change, upstream)
        except ProbeFailedError as error:
            self._made[upstream.upstream_id] = failed(upstream, str(error))
            return
        self._made[upstream.upstream_id] = ProbeResult(
            upstream_id=upstream.upstream_id,
            position=change.after.to_text(),
            events=(_event(change, upstream),) if counts else (),
            upstream_value=change.after.largest,
        )

    def _returns_row(self, change: _Change, upstream: Upstream) -> bool:
        query = rendered(upstream) or ""
        return self._new_rows.any_row(self._database, self._since(change), query)

    def _since(self, change: _Change) -> SinceRows:
        before, subject = change.before, change.subject
        rows = SinceRows(relation=subject.relation, key=subject.key, start=None)
        if before is None or before.largest is None or change.news is Change.EMPTIED:
            return rows
        last = Value(kind=before.kind, text=before.largest)
        if before.start is None:
            return replace(rows, start=last)
        first = Value(kind=before.kind, text=before.start)
        if change.news is Change.GROWN and self._session.count(subject, first, last) == before.rows:
            return replace(rows, start=last)
        return replace(rows, start=first, with_late=True)


def unmoved(upstream: Upstream) -> ProbeResult:
    """Return a result that found nothing."""
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
    )


def _after(before: Cursor, change: Change, seen: Seen) -> Cursor:
    after = before.with_seen(seen)
    if before.largest is None and seen.largest is not None:
        # Only now is there a value to see the type by, where the driver has no word for it.
        after = replace(after, kind=seen.column.kind, type_name=seen.column.type_name)
    if change is Change.GROWN:
        return replace(after, late=0)
    if change is Change.LATE:
        return replace(after, late=before.late + 1)
    if not is_same(before, seen):
        # It fell: the same value may come again and be other rows.
        return replace(after, late=0, life=before.life + 1, marks=())
    return after


def _named(change: _Change) -> _Change:
    """Give rows without any key a name, too."""
    after = change.after
    if after.largest is None and after.nulls and not after.late:
        return replace(change, after=replace(after, late=1))
    return change


def _is_event(change: _Change, upstream: Upstream) -> bool:
    before, after = change.before, change.after
    if before is None:
        holds_data = after.largest is not None or after.nulls > 0
        return holds_data and upstream.on_first_sight is FirstSight.EVENT
    if change.news is Change.EMPTIED:
        return after.largest is not None or after.nulls > before.nulls
    return change.news is not Change.FEWER


def _event(change: _Change, upstream: Upstream) -> ChangeEvent:
    before, after = change.before, change.after
    tags = {"upstream_key": change.subject.key_name}
    if after.largest is not None:
        tags["largest_value"] = after.largest
    if change.news is Change.LATE:
        tags["late"] = "true"
    if before is not None and change.news is Change.EMPTIED:
        tags["largest_value_fell"] = "true"
    has_fallen = "largest_value_fell" in tags
    return ChangeEvent(
        table=upstream.sensor_id,
        snapshot_id=after.snapshot_id,
        snapshot_ts=milliseconds(after.kind, after.largest),
        prev_snapshot_id=None if before is None else before.snapshot_id,
        table_format=TableFormat.JDBC,
        operation_type=Operation.UPDATE if has_fallen else Operation.APPEND,
        tags=tags,
        lineage=str(after.life),
    )

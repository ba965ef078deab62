"""Determines which tables of a catalog may have changed, by one statement for all of them.

The catalog's time of a table is a shortcut, trusted only where it was seen to move with the data,
and checked table by table in turn: a table that is written without the catalog is found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from zlib import crc32

from harness.errors import ProbeFailedError
from harness.sense.catalog_tables import (
    CatalogName,
    CatalogTable,
    CatalogTables,
    name_in,
    refuse_as_delta,
)
from harness.sense.sources.delta.cursor import Cursor, cursor_from
from harness.sense.sources.delta.history import HistoryRow, TableHistory, operation_by_name
from harness.store.work_lists import Upstream

#: Of the idle tables of a catalog, one in so many is checked in each tick.
CHECKED_PART = 1000
#: How far the clocks of the catalog and of a writer may be apart.
_SKEW_MS = 30_000
#: The catalog may record a commit so much later, for that to be the reason for its time.
_SLACK_MS = 5 * 60_000
#: The catalog has so long to record a commit, before it counts as missed.
_GRACE_MS = 10 * 60_000
#: A later change in the same moment would have the same time.
_SETTLED_MS = 2_000
#: Operations that change the definition, too: they do not show that data alone moves the time.
_DEFINES = ("TABLE", "CLONE", "CONVERT", "RESTORE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One upstream of a catalog, and what one statement returns about it."""

    upstream: Upstream
    name: CatalogName
    #: ``None`` when the catalog does not show the table.
    table: CatalogTable | None
    #: Nothing has changed since its history was read.
    is_idle: bool
    #: The catalog's time has proved true for another table of this kind.
    is_kind_proven: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """An upstream that cannot be sensed by its name, and why."""

    upstream: Upstream
    reason: str


class _Kind(NamedTuple):
    catalog: str
    kind: str


class NamedTables:
    """Describes the tables of the workspace's catalogs.

    Args:
        catalog: The catalog of names that have none.
        tables: Queries a catalog.
    """

    def __init__(self, catalog: str, tables: CatalogTables) -> None:
        self._catalog = catalog
        self._tables = tables
        #: Where the check of each catalog has come to.
        self._checked: dict[str, int] = {}

    def catalog_of(self, sensor_id: str) -> str:
        """Return the catalog of a table.

        Raises:
            ProbeFailedError: It is not the name of a table.
        """
        return name_in(self._catalog, sensor_id).catalog

    def known(self, group: Sequence[Upstream], at: datetime) -> list[Named | Refused]:
        """Query a catalog for the tables of a group.

        Args:
            group: The upstreams, all of one catalog.
            at: The instant of the tick; a new process begins its check somewhere.

        Raises:
            ProbeFailedError: The catalog does not answer.
        """
        names = {each.upstream_id: name_in(self._catalog, each.sensor_id) for each in group}
        catalog = self.catalog_of(group[0].sensor_id)
        tables = self._tables.described(catalog, set(names.values()))
        cursors = {each.upstream_id: _cursor_of(each) for each in group}
        proven = {
            _Kind(catalog, table.kind)
            for each in group
            if (table := tables.get(names[each.upstream_id])) is not None
            and (cursor := cursors[each.upstream_id]) is not None
            and cursor.altered_ms is not None
        }
        found = [
            _named(each, names[each.upstream_id], tables, cursors[each.upstream_id], proven)
            for each in group
        ]
        checked = self._to_check(catalog, found, at)
        return [
            replace(each, is_idle=False)
            if isinstance(each, Named) and each.upstream.upstream_id in checked
            else each
            for each in found
        ]

    def _to_check(
        self, catalog: str, found: Sequence[Named | Refused], at: datetime
    ) -> frozenset[str]:
        """Return the idle upstreams whose turn it is to be checked."""
        idle = {
            crc32(each.upstream.upstream_id.encode()): each.upstream.upstream_id
            for each in found
            if isinstance(each, Named) and each.is_idle
        }
        if not idle:
            return frozenset()
        count = -(-len(idle) // CHECKED_PART)
        last = self._checked.get(catalog, crc32(at.isoformat().encode()))
        order = sorted(idle, key=lambda place: (place <= last, place))
        turn = order[:count]
        self._checked[catalog] = turn[-1]
        return frozenset(idle[place] for place in turn)


def _cursor_of(upstream: Upstream) -> Cursor | None:
    try:
        return None if upstream.position is None else cursor_from(upstream.position)
    except ProbeFailedError:
        # The probe itself reports it.
        return None


def _named(
    upstream: Upstream,
    name: CatalogName,
    tables: Mapping[CatalogName, CatalogTable],
    cursor: Cursor | None,
    proven: set[_Kind],
) -> Named | Refused:
    table = tables.get(name)
    if table is None:
        # Its history determines whether it is missing, or only not shown.
        return Named(upstream=upstream, name=name, table=None, is_idle=False, is_kind_proven=False)
    try:
        refuse_as_delta(table)
    except ProbeFailedError as error:
        return Refused(upstream, str(error))
    is_known = cursor is not None and cursor.altered_ms is not None
    return Named(
        upstream=upstream,
        name=name,
        table=table,
        is_idle=is_known and cursor is not None and cursor.altered_ms == table.altered_ms,
        is_kind_proven=_Kind(name.catalog, table.kind) in proven,
    )


class RememberedHistory:
    """Keeps the newest rows of the history that a probe has read."""

    def __init__(self, history: TableHistory) -> None:
        self._history = history
        self.rows: list[HistoryRow] = []

    def table_id(self, table: str) -> str:
        """Return the table's id."""
        return self._history.table_id(table)

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        """Return that many of the newest versions, newest first."""
        self.rows = self._history.newest(table, count)
        return self.rows


def with_catalog_time(cursor: Cursor, named: Named, rows: Sequence[HistoryRow]) -> Cursor:
    """Return a cursor with what the catalog's time is worth, after the history was read.

    Args:
        cursor: The one after the probe.
        named: What the catalog returned before the history was read.
        rows: The newest versions, newest first.
    """
    table = named.table
    if cursor.is_altered_late or table is None:
        return replace(cursor, altered_ms=None)
    data = next((row for row in rows if operation_by_name(row) is not None), None)
    if data is not None and table.altered_ms < data.timestamp_ms - _SKEW_MS:
        is_missed = (
            table.altered_ms < data.timestamp_ms - _SLACK_MS
            and table.asked_ms > data.timestamp_ms + _GRACE_MS
        )
        return replace(cursor, altered_ms=None, is_altered_late=is_missed)
    is_proven = (
        cursor.altered_ms is not None
        or named.is_kind_proven
        or (data is not None and _proves(table, data))
    )
    is_settled = table.asked_ms >= table.altered_ms + _SETTLED_MS
    return replace(cursor, altered_ms=table.altered_ms if is_proven and is_settled else None)


def _proves(table: CatalogTable, data: HistoryRow) -> bool:
    """Return whether a change of data alone has moved the catalog's time."""
    operation = data.operation.upper()
    return (
        data.version > 0
        and not any(word in operation for word in _DEFINES)
        and table.altered_ms <= data.timestamp_ms + _SLACK_MS
    )

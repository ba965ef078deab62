"""Correlates events from different origins that describe the same change.

What a producer registers and what a sensor reads of the same snapshot have one ``change_id`` and
one ``event_ts``; the later row has the tags of both. Whichever came first, the ledger is read once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Protocol

from harness.events.event import EventRow, Operation, TableFormat
from harness.events.partition import as_tags, levels_in
from harness.platform.sql_names import table_key
from harness.store.rows import Ledger, Store, Tick

#: What an upstream is called that producers register with.
REGISTERED = "registered:"
#: What an upstream is called whose events are copies of those that satisfied a trigger.
TRIGGER = "trigger:"

#: No snapshot is known before it was made, except by clocks that differ.
CLOCKS_DIFFER = timedelta(days=1)
#: How far back a change that does not state when it was made is searched for.
LOOKBACK = timedelta(days=7)

#: Of these a snapshot's id means the same to every probe, whatever it searches for.
_WITH_SNAPSHOTS = frozenset({TableFormat.DELTA, TableFormat.ICEBERG, TableFormat.HIVE})
#: An event of many snapshots has the last one's id, and is not that one's alone.
_OF_MANY = "coalesced_from"
_LIFE = "table_id"
_PARTITION_TAGS = frozenset({"partitions", "partitions_truncated"})

Key = tuple[str, str, str]


class Joining(Protocol):
    """Gives rows of events the change that they describe."""

    def __call__(self, rows: Sequence[EventRow]) -> list[EventRow]:
        """Return the rows, each as part of its change."""
        ...


def as_they_are(rows: Sequence[EventRow]) -> list[EventRow]:
    """Leave every event a change of its own."""
    return list(rows)


class SameChanges:
    """Holds the snapshots that this tick or earlier ones have recorded.

    Args:
        store: The ledgers.
        tick: The present tick.
        tables: The names under which sensors have tables.
    """

    def __init__(self, store: Store, tick: Tick, tables: Iterable[str] = ()) -> None:
        self._store = store
        self._tables = tables
        self._known: dict[Key, list[EventRow]] = {}
        #: The tables that producers register, by their keys.
        self.registered: Collection[str] = ()
        #: The instant at which the oldest change was reported: before the tick's, if batches wait.
        self.reported_at = tick.at

    @cached_property
    def _spellings(self) -> Mapping[str, set[str]]:
        # Computed only by a tick that has something registered.
        spellings: dict[str, set[str]] = {}
        for name in self._tables:
            spellings.setdefault(table_key(name), set()).add(name)
        return spellings

    def join(self, rows: Sequence[EventRow]) -> list[EventRow]:
        """Return what sensors saw, each row as part of its change.

        Raises:
            StateError: The ledger cannot be read.
        """
        keys = [self._shared_key(row) for row in rows]
        unknown = [
            row
            for row, key in zip(rows, keys, strict=True)
            if key and key not in self._known and key[0] in self.registered
        ]
        self.read(unknown)
        return [self._joined(row, key) for row, key in zip(rows, keys, strict=True)]

    def _shared_key(self, row: EventRow) -> Key | None:
        key = _key_of(row)
        is_shared = key and (row.table_format in _WITH_SNAPSHOTS or key[0] in self.registered)
        return key if is_shared else None

    def _joined(self, row: EventRow, key: Key | None) -> EventRow:
        if key is None:
            return row
        joined = self.as_part(row)
        self.add(joined)
        return joined

    def as_part(self, row: EventRow) -> EventRow:
        """Return a row as part of its change, with what is known of that already."""
        earlier = self.earlier(row)
        if earlier is None:
            return row
        seen = [each for each in (*self._same(row), row) if not _is_registered(each)]
        # A probe reads what was done to the data; a registration need not state it.
        joined = merged(earlier, row)
        return replace(joined, operation_type=seen[-1].operation_type) if seen else joined

    def earlier(self, row: EventRow) -> EventRow | None:
        """Return the newest row that is known of the same snapshot."""
        same = self._same(row)
        return max(same, key=lambda each: (each.tick_number, len(each.tags)), default=None)

    def _same(self, row: EventRow) -> list[EventRow]:
        key = _key_of(row)
        return [each for each in self._known.get(key, ()) if _is_same(each, row)] if key else []

    def add(self, row: EventRow) -> None:
        """Keep a row, for those that come later."""
        key = _key_of(row)
        if key is not None:
            self._known.setdefault(key, []).append(row)

    def read(self, rows: Iterable[EventRow]) -> None:
        """Read what the ledger has of the snapshots of rows: once, and only where it can be.

        Raises:
            StateError: The ledger cannot be read.
        """
        wanted = {key: row for row in rows if (key := _key_of(row))}
        if not wanted:
            return
        tables = {name for key, row in wanted.items() for name in (row.table, *self.names(key[0]))}
        since = min(_known_since(row, self.reported_at) for row in wanted.values())
        found = self._store.read(
            Ledger.EVENTS,
            where=[
                ("event_ts", ">=", since),
                ("table", "in", sorted(tables)),
                ("snapshot_id", "in", sorted({key[2] for key in wanted})),
            ],
        )
        for each in map(EventRow.from_row, found):
            # A trigger's copy has tags of its own, which are no part of the change.
            if _key_of(each) in wanted and not each.upstream_id.startswith(TRIGGER):
                self.add(each)

    def spelled(self, key: str) -> str:
        """Return the name of a table as sensors have it; else its key."""
        return min(self._spellings.get(key, ()), default=key)

    def names(self, key: str) -> set[str]:
        """Return every name under which the ledger may have a table."""
        return {key, *self._spellings.get(key, ())}


def merged(earlier: EventRow, row: EventRow) -> EventRow:
    """Return a row as part of the change that an earlier one describes, with what both state."""
    return replace(
        combined((earlier, row)),
        change_id=earlier.change_id,
        event_ts=earlier.event_ts,
        # One change has one name of its table, however each has spelled it.
        table=earlier.table,
    )


def combined(rows: Sequence[EventRow]) -> EventRow:
    """Return the last of several rows of one change with what they all state; the newest wins."""
    newest = rows[::-1]
    operations = {row.operation_type for row in rows}
    said = {name: text for row in rows for name, text in row.tags.items()}
    partitions = {row.partition for row in rows if row.partition is not None}
    partitions.update(*(levels_in(row.tags.get("partitions")) for row in rows))
    are_all = "partitions_truncated" not in said
    is_one = len(partitions) == 1 and are_all
    tags = {name: text for name, text in said.items() if name not in _PARTITION_TAGS}
    return replace(
        rows[-1],
        partition=next(iter(partitions)) if is_one else None,
        snapshot_ts=next((at for row in newest if (at := row.snapshot_ts) is not None), None),
        prev_snapshot_id=next((each for row in newest if (each := row.prev_snapshot_id)), None),
        operation_type=operations.pop() if len(operations) == 1 else Operation.UPDATE,
        tags=tags if is_one else tags | as_tags(partitions, are_all=are_all),
    )


def _key_of(row: EventRow) -> Key | None:
    if not row.snapshot_id or _OF_MANY in row.tags:
        return None
    return table_key(row.table), row.table_format, row.snapshot_id


def _is_registered(row: EventRow) -> bool:
    return row.upstream_id.startswith(REGISTERED)


def _is_same(one: EventRow, other: EventRow) -> bool:
    """Return whether two rows with one id are of the same table generation."""
    lives = {row.tags[_LIFE] for row in (one, other) if _LIFE in row.tags}
    if len(lives) > 1:
        return False
    if one.snapshot_ts is None or other.snapshot_ts is None:
        return True
    return abs(one.snapshot_ts - other.snapshot_ts) <= _ms(CLOCKS_DIFFER)


def _known_since(row: EventRow, reported_at: datetime) -> int:
    now = int(reported_at.timestamp() * 1000)
    if row.snapshot_ts is not None:
        return min(row.snapshot_ts, now) - _ms(CLOCKS_DIFFER)
    return now - _ms(LOOKBACK)


def _ms(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)

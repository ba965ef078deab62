"""Ingests what producers register: each change is recorded once, however often it is reported.

The rows belong to an upstream ``registered:<table>``, which is never probed. Its cursor records
what is known of the table from its registrations.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256

from harness.events.event import ChangeEvent, EventRow
from harness.platform.sql_names import table_key
from harness.record.batch_inbox import Batch
from harness.record.correlate import CLOCKS_DIFFER, LOOKBACK, REGISTERED, SameChanges, combined
from harness.store.rows import Ledger, ProbeOutcome, ProbeRow, Store, Tick, integer

log = logging.getLogger(__name__)

#: The tables that producers register, by key, and how many partition levels each is known to have.
Tables = Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What one tick ingested from producers."""

    #: What may leave the inbox once the state of this process includes what is recorded.
    batches: tuple[Batch, ...] = ()
    events: tuple[EventRow, ...] = ()
    probes: tuple[ProbeRow, ...] = ()
    #: All tables that are known by their registrations, as the next tick finds them.
    tables: Tables = field(default_factory=dict)


def ingest(
    batches: Sequence[Batch], tables: Tables, *, tick: Tick, store: Store, same: SameChanges
) -> Registered:
    """Append a row for each change that contains something new.

    Args:
        batches: What waits in the inbox, oldest first.
        tables: The tables that are known by their registrations.
        tick: The present tick.
        store: Takes the rows.
        same: Holds the snapshots that are recorded; those recorded now are added to it.

    Raises:
        StateError: A ledger cannot be read or written; the batches stay in the inbox.
    """
    reported = [event for batch in batches for event in batch.events]
    same.registered = tables.keys()
    if not reported:
        return Registered(batches=tuple(batches), tables=tables)
    found = _levels(reported, tables)
    same.registered = {*tables, *found}
    same.reported_at = min(batch.sent_at for batch in batches)
    rows = [_of_change(group, tick, same) for group in _by_change(reported).values()]
    events = _unrecorded(rows, store, same)
    probes = _probes(found, tables, events, tick)
    # After a kill between the two, the next tick ingests the batches again and finds nothing new.
    store.append(Ledger.EVENTS, events)
    store.append(Ledger.PROBES, probes)
    log.info("registered: %s events received, %s new rows", len(reported), len(events))
    return Registered(
        batches=tuple(batches),
        events=tuple(events),
        probes=tuple(probes),
        tables={**tables, **found},
    )


def cursor_of(levels: int | None) -> str:
    """Return what the ledger keeps of a table that is known by its registrations."""
    return json.dumps({"levels": levels})


def known_tables(store: Store, folded_through: int) -> dict[str, int | None]:
    """Read which tables are known by their registrations.

    Raises:
        StateError: A table cannot be read.
    """
    ours = [("upstream_id", ">=", REGISTERED), ("upstream_id", "<", REGISTERED[:-1] + ";")]
    columns = ("upstream_id", "position", "tick_number")
    rows = store.read("upstream_state", where=ours, columns=columns)
    tail = [*ours, ("tick_number", ">", folded_through)]
    rows += store.read(Ledger.PROBES, where=tail, columns=columns)
    rows.sort(key=lambda row: integer(row["tick_number"]))
    return {
        str(row["upstream_id"]).removeprefix(REGISTERED): json.loads(str(row["position"]))["levels"]
        for row in rows
    }


def _levels(events: Iterable[ChangeEvent], tables: Tables) -> dict[str, int | None]:
    """Return how many partition levels each table has, by the newest event that states it."""
    levels: dict[str, int | None] = {}
    for event in events:
        key = table_key(event.table)
        levels.setdefault(key, tables.get(key))
        if event.partition is not None:
            levels[key] = len(event.partition)
    return levels


def _probes(
    found: Tables, tables: Tables, events: Iterable[EventRow], tick: Tick
) -> list[ProbeRow]:
    with_events = {event.upstream_id for event in events}
    return [
        _probe(key, levels, has_news=REGISTERED + key in with_events, tick=tick)
        for key, levels in sorted(found.items())
        if REGISTERED + key in with_events or key not in tables or tables[key] != levels
    ]


def _by_change(events: Iterable[ChangeEvent]) -> dict[str, list[ChangeEvent]]:
    groups: dict[str, list[ChangeEvent]] = {}
    for event in events:
        groups.setdefault(_identity(event), []).append(event)
    return groups


def _identity(event: ChangeEvent) -> str:
    """Name what distinguishes a change from others: its snapshot, or all that is stated of it."""
    key = table_key(event.table)
    if event.snapshot_id:
        return "\x1f".join((key, event.table_format, event.snapshot_id))
    tags = sorted(event.tags.items())
    what = [event.table_format, event.operation_type, event.partition, event.snapshot_ts, tags]
    return "\x1f".join((key, json.dumps(what), event.event_id or ""))


def _of_change(group: Sequence[ChangeEvent], tick: Tick, same: SameChanges) -> EventRow:
    rows = [_row(event, tick, same) for event in group]
    is_one = len(rows) == 1 and "partitions" not in rows[0].tags
    return rows[0] if is_one else combined(rows)


def _row(event: ChangeEvent, tick: Tick, same: SameChanges) -> EventRow:
    key, identity = table_key(event.table), _identity(event)
    # A table that is recreated counts its snapshots again; the tick distinguishes its generations.
    change_id = _hash(f"{identity}\x1f{tick.number}" if event.snapshot_id else identity)
    return replace(event, table=same.spelled(key)).recorded(
        tick,
        upstream_id=REGISTERED + key,
        event_id=_hash(f"{REGISTERED}\x1f{change_id}\x1f{tick.number}"),
        change_id=change_id,
    )


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _unrecorded(rows: Iterable[EventRow], store: Store, same: SameChanges) -> list[EventRow]:
    """Return the rows that state what no recorded one does."""
    of_snapshots = [row for row in rows if row.snapshot_id]
    named = [row for row in rows if not row.snapshot_id]
    same.read(of_snapshots)
    recorded = _recorded(named, store, since=same.reported_at - LOOKBACK - CLOCKS_DIFFER)
    changes = [row for row in named if row.change_id not in recorded]
    for row in of_snapshots:
        earlier = same.earlier(row)
        joined = same.as_part(row)
        if earlier is None or not _is_reported(joined, earlier):
            same.add(joined)
            changes.append(joined)
    return changes


def _is_reported(row: EventRow, earlier: EventRow) -> bool:
    """Return whether an earlier row states all that a row does."""
    return earlier == replace(
        row,
        tick_number=earlier.tick_number,
        event_id=earlier.event_id,
        upstream_id=earlier.upstream_id,
    )


def _recorded(rows: Sequence[EventRow], store: Store, *, since: datetime) -> Collection[object]:
    """Read which changes without a snapshot are recorded."""
    if not rows:
        return ()
    where = [
        ("event_ts", ">=", int(since.timestamp() * 1000)),
        ("change_id", "in", sorted(row.change_id for row in rows)),
    ]
    return {
        row["change_id"] for row in store.read(Ledger.EVENTS, where=where, columns=("change_id",))
    }


def _probe(key: str, levels: int | None, *, has_news: bool, tick: Tick) -> ProbeRow:
    return ProbeRow(
        tick_number=tick.number,
        recorded_at=tick.at,
        upstream_id=REGISTERED + key,
        outcome=ProbeOutcome.FOUND if has_news else ProbeOutcome.MOVED,
        reason=None,
        failing_since=None,
        position=cursor_of(levels),
        upstream_value=None,
        latest_event_tick=tick.number if has_news else None,
        latest_event_at=tick.at if has_news else None,
        recent_events=(),
    )

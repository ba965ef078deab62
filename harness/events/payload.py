"""The events that a run is started with: read from the ledger, passed directly or as a file."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.events.order import in_order
from harness.platform.json_file import save
from harness.store.rows import Consumed, Ledger, Run, Store, integer

log = logging.getLogger(__name__)

#: How many bytes may be passed to a run directly; more is passed as a reference.
PARAMETER_BYTES = 10_000

#: Where a run that is passed a reference finds its events.
_FILE = "events_file"

_EVENT_FIELDS = (
    "event_id",
    "event_ts",
    "table",
    "partition",
    "snapshot_id",
    "snapshot_ts",
    "prev_snapshot_id",
    "table_format",
    "operation_type",
    "tags",
)
#: What is read of an event: its fields, and what places it in the ledger.
_COLUMNS = (*_EVENT_FIELDS, "tick_number", "upstream_id")


def _read_old_events(store: Store, after: Mapping[str, int]) -> list[dict[str, object]]:
    """Read events that may lie anywhere in the ledger, but have most often come just now.

    Finding the first of them by one column takes a tenth of the time that reading them would.
    """
    ticks = [integer(row["tick_number"]) for row in _read_events(store, after, ["tick_number"])]
    return _read_events(store, dict.fromkeys(after, min(ticks) - 1)) if ticks else []


def _read_events(
    store: Store, after: Mapping[str, int], columns: Sequence[str] = _COLUMNS
) -> list[dict[str, object]]:
    """Read the events of some upstreams, from the first tick that any of them needs."""
    if not after:
        return []
    where = [("tick_number", ">", min(after.values())), ("upstream_id", "in", sorted(after))]
    return store.read(Ledger.EVENTS, where=where, columns=columns)


def _tick_of(row: Mapping[str, object]) -> tuple[int, ...]:
    return (integer(row["tick_number"]),)


def events_of(consumed: Consumed, store: Store) -> list[dict[str, object]]:
    """Read the events of one upstream that a run consumes, in the order in which they happened."""
    rows = _read_old_events(store, {consumed.upstream_id: consumed.from_tick})
    taken = [row for row in rows if integer(row["tick_number"]) <= consumed.through_tick]
    return in_order(taken, reported_at=_tick_of)


def as_payload(events: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return events as a job gets them: their id and the nine fields of each."""
    return [{name: event[name] for name in _EVENT_FIELDS} for event in events]


def file_of(parameters: str) -> Path | None:
    """Return the file with the events of a run; nothing when they were passed directly."""
    if _FILE not in parameters:
        return None
    payload = json.loads(json.loads(parameters).get("heartbeat_events", "[]"))
    return Path(payload[_FILE]) if isinstance(payload, dict) else None


def restore_payloads(runs: Iterable[Run], store: Store) -> None:
    """Write the events of runs that go on again, where their file has vanished.

    Raises:
        StateError: They cannot be read or written.
    """
    for run in runs:
        path = file_of(run.parameters) if run.is_open else None
        if path is None or path.exists():
            continue
        events = payload_of(run.consumed, run.event_ids, store)
        log.warning("%s is missing; its %s events are rewritten", path, len(events))
        save(path, events, is_lasting=True)


def payload_of(
    consumed: Iterable[Consumed], event_ids: Iterable[str], store: Store
) -> list[dict[str, object]]:
    """Return the events as they were passed to a run, from what its row records as consumed.

    Raises:
        StateError: They cannot be read.
    """
    taken = [event for each in consumed for event in events_of(each, store)]
    found = {str(event["event_id"]): event for event in taken}
    return as_payload(found[event_id] for event_id in event_ids if event_id in found)

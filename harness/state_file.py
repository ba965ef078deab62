"""The file that lets the next process know what this one knows.

It is a shortcut, never the truth: it counts only while the ledgers are exactly as they were when it
was written, and without it the same is read from the models. It is what lets a fresh ``tick`` that
finds nothing end without a JVM.
"""

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path

from harness.clock import instant_from
from harness.files import write_whole
from harness.state import FollowedRun, Orphan, PlannedRetry, TickState, WatchedUpstream
from harness.tables import Ledger, Store

#: Raised when the file's meaning changes; a file of another version is not read.
VERSION = 5

#: The tables that make the file stale when anything else has written to them.
WATCHED_TABLES = (
    *Ledger,
    "heartbeat_controls",
    "scheduled_jobs",
    "retry_policies",
    "sensor_assets",
    "event_triggers",
)


def fingerprints(store: Store) -> dict[str, str | None]:
    """Name the present state of every table that the file stands on."""
    return {str(table): store.fingerprint(table) for table in WATCHED_TABLES}


def save_state(
    path: Path, state: TickState, store: Store, *, confirm: Callable[[], None] = lambda: None
) -> None:
    """Write the file, whole or not at all.

    Args:
        path: The file.
        state: What this process knows.
        store: The ledgers, as they are now.
        confirm: Raises when another process may have written to them meanwhile, of which this one
            knows nothing.

    Raises:
        StateError: It cannot be written; without it the same is read from the tables.
    """
    content = _plain(replace(state, fingerprints=fingerprints(store))) | {"version": VERSION}
    confirm()
    write_whole(path, json.dumps(content, default=_json))


def load_state(path: Path, store: Store) -> TickState | None:
    """Read the file; nothing when it is missing, broken, or older than the tables."""
    try:
        content = json.loads(path.read_text())
        if content.pop("version") != VERSION or content["fingerprints"] != fingerprints(store):
            return None
        content["tick_at"] = instant_from(content["tick_at"])
        content["triggers_due_at"] = instant_from(content["triggers_due_at"])
        content["upstreams"] = tuple(map(WatchedUpstream.from_row, content["upstreams"]))
        content["orphans"] = tuple(Orphan(**each) for each in content["orphans"])
        content["runs"] = tuple(map(FollowedRun.from_row, content["runs"]))
        content["retries"] = tuple(map(PlannedRetry.from_row, content["retries"]))
        return TickState(**content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _json(value: object) -> object:
    """Write what JSON does not know, one level at a time: the file has thousands of upstreams."""
    return value.isoformat() if isinstance(value, datetime) else _plain(value)


def _plain(record: object) -> dict[str, object]:
    if not is_dataclass(record):
        raise TypeError(f"{type(record).__name__} has no place in the state file")
    return {each.name: getattr(record, each.name) for each in fields(record)}

"""Saves the tick state for the next process, and rebuilds it from the models without a valid file.

The file is a shortcut, never the truth: it counts only while the ledgers are exactly as they were
when it was written. It lets a fresh ``tick`` that finds nothing end without a JVM.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from harness.context import Context
from harness.controls.accept import SEEDS
from harness.platform.clock import instant_from
from harness.platform.json_file import load, save
from harness.platform.sql.port import SqlError
from harness.record.correlate import REGISTERED
from harness.record.probes import orphans_among
from harness.record.registrations import known_tables
from harness.settle.retry_policy import planned_retries
from harness.store.rows import Ledger, Run, Store, integer
from harness.store.views import unreadable
from harness.store.work_lists import Orphan, PlannedRetry, Upstream
from harness.tick.state import TickState

#: Raised when the file's meaning changes; a file of another version is not read.
VERSION = 7

#: The tables that make the file stale when anything else has written to them.
WATCHED_TABLES = (*Ledger, *(seed.stem for seed in SEEDS))


def fingerprints(store: Store) -> dict[str, str | None]:
    """Name the present state of every table that the file stands on."""
    return store.fingerprints([str(table) for table in WATCHED_TABLES])


def save_state(
    path: Path, state: TickState, store: Store, *, confirm: Callable[[], None] = lambda: None
) -> None:
    """Write the file, whole or not at all.

    Args:
        path: The file.
        state: The state of this process.
        store: The ledgers, as they are now.
        confirm: Raises when another process may have written to them meanwhile, which the state
            does not include.

    Raises:
        StateError: It cannot be written; without it the same is read from the tables.
    """
    content = _plain(replace(state, fingerprints=fingerprints(store))) | {"version": VERSION}
    confirm()
    save(path, content, default=_json)


def load_state(path: Path, store: Store) -> TickState | None:
    """Read the file; nothing when it is missing, broken, or older than the tables."""
    return load(path, lambda content: _state_in(content, store))


def _state_in(content: Any, store: Store) -> TickState | None:
    if content.pop("version") != VERSION or content["fingerprints"] != fingerprints(store):
        return None
    content["tick_at"] = instant_from(content["tick_at"])
    content["triggers_due_at"] = instant_from(content["triggers_due_at"])
    content["upstreams"] = tuple(map(Upstream.from_row, content["upstreams"]))
    content["orphans"] = tuple(Orphan(**each) for each in content["orphans"])
    content["runs"] = tuple(map(Run.from_row, content["runs"]))
    content["retries"] = tuple(map(PlannedRetry.from_row, content["retries"]))
    return TickState(**content)


def _json(value: object) -> object:
    """Write what JSON cannot express, one level at a time: the file has thousands of upstreams."""
    if isinstance(value, Upstream):
        return value.to_row()
    return value.isoformat() if isinstance(value, datetime) else _plain(value)


def _plain(record: object) -> dict[str, object]:
    if not is_dataclass(record):
        raise TypeError(f"{type(record).__name__} has no place in the state file")
    return {each.name: getattr(record, each.name) for each in fields(record)}


def load_from_models(context: Context) -> TickState:
    """Return the state as the ledgers and the models have it.

    Something may have been left undone, so the first tick decides in any case.
    """
    past = _past(context)
    upstreams = tuple(map(Upstream.from_row, context.rows("queue_upstreams")))
    left: Sequence[dict[str, object]] = ()
    if past.without_end:
        left = context.store.read(Ledger.EVENTS, where=[("tick_number", "in", past.without_end)])
    runs = tuple(map(Run.from_row, context.rows("queue_runs_to_follow")))
    return TickState(
        tick_number=_last_number(context, past.ended),
        ended_tick_number=past.ended,
        tick_at=past.tick_at,
        folded_through=past.folded_through,
        upstreams=upstreams,
        orphans=orphans_among(left, {each.upstream_id: each for each in upstreams}),
        registered=known_tables(context.store, past.folded_through),
        runs=runs,
        retries=planned_retries(context.rows, runs),
        controls_checksum=None,
        must_decide=True,
    )


def newest_tick_number(context: Context) -> int:
    """Return the number of the newest tick, 0 if there was none."""
    return _last_number(context, _past(context).ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What the ledgers have of the ticks before this process."""

    #: The newest tick that came to its end, 0 if none did, and its instant.
    ended: int
    tick_at: datetime | None
    folded_through: int
    #: The ticks that recorded events of probes and did not come to their end.
    without_end: Sequence[int]


def _past(context: Context) -> _Past:
    ticks, events = map(context.schema_name.table, (Ledger.TICKS, Ledger.EVENTS))
    try:
        (row,) = context.sql.run(
            "select max(tick_number) as ended, max_by(folded_through, tick_number) as folded, "
            "max_by(tick_at, tick_number) as tick_at, "
            # Of all times: what a tick has left is found again when its upstream can be read again.
            f"(select collect_set(tick_number) from {events} left anti join {ticks} "
            f"using (tick_number) where not startswith(upstream_id, '{REGISTERED}')) "
            f"as without_end from {ticks}"
        )
    except SqlError as error:
        read = f"{context.schema}.{Ledger.TICKS} or {Ledger.EVENTS}"
        raise unreadable(read, error) from error
    is_first = row["ended"] is None
    return _Past(
        ended=0 if is_first else integer(row["ended"]),
        tick_at=cast(datetime | None, row["tick_at"]),
        folded_through=-1 if is_first else integer(row["folded"]),
        without_end=sorted(cast(Sequence[int], row["without_end"])),
    )


def _last_number(context: Context, ended: int) -> int:
    """Return the newest tick that any ledger has; the ticks' own ledger misses a killed one."""
    newest = [
        row["tick_number"]
        for ledger in Ledger
        for row in context.store.read(ledger, where=[("tick_number", ">", ended)])
    ]
    return max([ended, *(integer(number) for number in newest)])

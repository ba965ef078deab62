"""Finds out what the newest run that repaired a failure caught up on: whose events, and since when.

A run catches up when it is a further attempt for the events of a failed run, however requested. It
receives one list: what the failed attempts had received, and what has come since.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.store.rows import Ledger, Row, Run, Store, integer


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """What a repairing run received of one table."""

    table: str
    #: How many of the events a failed attempt had received, and how many have come since.
    of_failed: int
    since: int
    #: When the first and the last of them were found.
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """One run that repaired a failure, or tries to."""

    run: Run
    #: The attempts before it, oldest first.
    failed: tuple[Run, ...]
    event_ids_of_failed: tuple[str, ...]
    event_ids_since: tuple[str, ...]
    tables: tuple[CaughtUp, ...]

    @property
    def first_at(self) -> datetime | None:
        """When the first of the events was found."""
        return min((each.first_at for each in self.tables), default=None)

    @property
    def last_at(self) -> datetime | None:
        """When the last of the events was found."""
        return max((each.last_at for each in self.tables), default=None)


def healing_of(store: Store, runs: Sequence[Run]) -> Healing | None:
    """Return what the newest of the runs caught up on that is a further attempt.

    Args:
        store: The ledgers.
        runs: The runs of one job, oldest decision first, with all attempts before the newest ones.

    Raises:
        StateError: The ledger cannot be read.
    """
    run = next((each for each in reversed(runs) if each.attempt > 1), None)
    if run is None:
        return None
    failed = [
        each for each in runs if each.intent_id == run.intent_id and each.attempt < run.attempt
    ]
    had = {event_id for each in failed for event_id in each.event_ids}
    payload = run.event_ids
    return Healing(
        run=run,
        failed=tuple(sorted(failed, key=lambda each: each.attempt)),
        event_ids_of_failed=tuple(each for each in payload if each in had),
        event_ids_since=tuple(each for each in payload if each not in had),
        tables=tuple(_by_table(_events(store, run, payload), had)),
    )


def _events(store: Store, run: Run, event_ids: Sequence[str]) -> list[Row]:
    """Read the events of a run; literal numbers of ticks spare the files that have none of them."""
    if not event_ids or not run.consumed:
        return []
    after = min(each.from_tick for each in run.consumed)
    through = max(each.through_tick for each in run.consumed)
    rows = store.read(
        Ledger.EVENTS,
        where=[
            ("tick_number", ">", after),
            ("tick_number", "<=", through),
            ("upstream_id", "in", sorted(each.upstream_id for each in run.consumed)),
        ],
        columns=("event_id", "event_ts", "table"),
    )
    wanted = set(event_ids)
    return [row for row in rows if row["event_id"] in wanted]


def _by_table(events: Iterable[Row], had: set[str]) -> Iterable[CaughtUp]:
    by_table: dict[str, list[Row]] = {}
    for event in events:
        by_table.setdefault(str(event["table"]), []).append(event)
    for table, rows in sorted(by_table.items()):
        instants = [_instant(row) for row in rows]
        of_failed = sum(str(row["event_id"]) in had for row in rows)
        yield CaughtUp(
            table=table,
            of_failed=of_failed,
            since=len(rows) - of_failed,
            first_at=min(instants),
            last_at=max(instants),
        )


def _instant(event: Mapping[str, object]) -> datetime:
    return datetime.fromtimestamp(integer(event["event_ts"]) / 1000, UTC)

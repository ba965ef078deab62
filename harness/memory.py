"""Reads from the models what a process must know before its first tick, when no file says it."""

from harness.context import Context
from harness.record import orphans_among
from harness.registered import known_tables
from harness.retries import planned_retries
from harness.spark import unreadable
from harness.state import FollowedRun, TickState, WatchedUpstream
from harness.tables import Ledger


def load_from_models(context: Context) -> TickState:
    """Return the state as the ledgers and the models have it.

    Something may have been left undone, so the first tick decides in any case.
    """
    ended, folded, tick_at = _last_ended(context)
    upstreams = tuple(map(WatchedUpstream.from_row, context.rows("queue_upstreams")))
    recent = context.store.read(Ledger.EVENTS, where=[("tick_number", ">", folded)])
    runs = tuple(map(FollowedRun.from_row, context.rows("queue_runs_to_follow")))
    return TickState(
        tick_number=_last_number(context, ended),
        ended_tick_number=ended,
        tick_at=tick_at,
        folded_through=folded,
        upstreams=upstreams,
        orphans=orphans_among(recent, {each.upstream_id: each for each in upstreams}),
        registered=known_tables(context.store, folded),
        runs=runs,
        retries=planned_retries(context.rows, runs),
        controls_checksum=None,
        must_decide=True,
    )


def _last_ended(context: Context):  # type: ignore[no-untyped-def]
    table = f"{context.schema}.{Ledger.TICKS}"
    try:
        row = context.session.sql(
            "select max(tick_number) as ended, max_by(folded_through, tick_number) as folded, "
            f"max_by(tick_at, tick_number) as tick_at from {table}"
        ).first()
    except Exception as error:
        told = unreadable(table, error)
        if told is None:
            raise
        raise told from error
    if row is None or row.ended is None:
        return 0, -1, None
    return row.ended, row.folded, row.tick_at.astimezone(context.clock.now().tzinfo)


def _last_number(context: Context, ended: int) -> int:
    """Return the newest tick that any ledger has; the ticks' own ledger misses a killed one."""
    newest = [
        row["tick_number"]
        for ledger in Ledger
        for row in context.store.read(ledger, where=[("tick_number", ">", ended)])
    ]
    return max([ended, *(int(str(number)) for number in newest)])

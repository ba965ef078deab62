"""Finds out from the ledgers alone how one job stood at an instant: now, or any time before.

Of a time before, rows count when they were recorded by then; of now, all do, so that a tick whose
clock is ahead of the reader's is not hidden. A ledger's rows hold the full state after their step,
so the newest of them is how it was.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from harness.inspect.catch_up import Healing, healing_of
from harness.platform.clock import instant_from
from harness.settle.unreachable_runs import Unreachable
from harness.store.conditions import Condition
from harness.store.queries import blocker_from, newest_runs
from harness.store.rows import Blocker, Ledger, Row, Run, RunStatus, Store, integer, text_or_none
from harness.store.trigger_queries import Waiting, triggers_as_controls, waiting_in
from harness.store.work_lists import EVENT_TRIGGER

#: Ledgers are read backwards, so far at a time; what is looked for is nearly always recent.
_WINDOWS = (timedelta(hours=6), timedelta(days=7), timedelta(days=90))

#: When the rows of one read were recorded.
_Window = tuple[Condition, ...]

#: So many runs are reported.
RUNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One control row of the job, its upstream's state, and the run that consumed its event."""

    sensor_source: str
    sensor_id: str
    upstream_id: str
    is_required: bool
    is_paused: bool
    #: When the newest event was found, and what it was; nothing when there was none yet.
    event_at: datetime | None
    event: Row | None
    #: The run that consumed the newest event, if one did.
    consumed_by: Run | None
    failing_since: datetime | None
    failure: str | None
    is_probed: bool
    #: What its users call it, if they do.
    description: str | None = None
    #: What a trigger's open slots wait for.
    waiting: tuple[Waiting, ...] = ()

    @property
    def has_news(self) -> bool:
        """True while an event waits to be consumed."""
        return self.event_at is not None and self.consumed_by is None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """How one job stood at an instant."""

    job_id: int
    job_name: str
    at: datetime
    is_now: bool
    #: The tick that had last recorded anything by then.
    tick_at: datetime | None
    tick_number: int | None
    dependencies: tuple[Dependency, ...]
    #: Newest first.
    runs: tuple[Run, ...]
    #: Nothing when no tick had decided about the job.
    blockers: tuple[Blocker, ...] | None
    #: When these reasons were recorded.
    decided_at: datetime | None
    #: The run that the last tick could not poll, if there is one; of the present only.
    unreachable: Unreachable | None = None
    #: What the newest of the runs caught up on that followed a failed one.
    healing: Healing | None = None

    @property
    def last_run(self) -> Run | None:
        """The run that was decided last."""
        return self.runs[0] if self.runs else None


def history_of(store: Store, job_id: int, *, at: datetime, is_now: bool) -> History:
    """Read how a job stood.

    Args:
        store: The ledgers.
        job_id: The job.
        at: The instant.
        is_now: Whether it is the present one; then rows of a clock that is ahead count, too.
    """
    # Triggers have no ledger of their own: they are reported as their seed has them now.
    windows = _windows(at, is_now=is_now)
    controls = [*_controls(store, job_id, windows[-1]), *triggers_as_controls(store, job_id)]
    decision = _newest(store, Ledger.DECISIONS, ("job_id", "=", job_id), windows)
    tick = _newest_tick(store, windows)
    upstreams = sorted({str(row["upstream_id"]) for row in controls})
    runs = _runs(store, job_id, windows, upstreams)
    probes = {
        each: _newest(store, Ledger.PROBES, ("upstream_id", "=", each), windows)
        for each in upstreams
    }
    name = next(
        (str(row["job_name"]) for row in (*controls, *([decision] if decision else ()))), ""
    )
    blockers = decision["blockers"] if decision else None
    assert blockers is None or isinstance(blockers, Sequence)
    return History(
        job_id=job_id,
        job_name=name,
        at=at,
        is_now=is_now,
        tick_at=instant_from(tick["tick_at"]) if tick else None,
        tick_number=integer(tick["tick_number"]) if tick else None,
        dependencies=tuple(
            _dependency(store, row, probes[str(row["upstream_id"])], runs) for row in controls
        ),
        runs=tuple(reversed(runs[-RUNS:])),
        healing=_healing(store, runs),
        blockers=None if blockers is None else tuple(map(blocker_from, blockers)),
        decided_at=instant_from(decision["recorded_at"]) if decision else None,
    )


def _windows(at: datetime, *, is_now: bool) -> list[_Window]:
    """Return the conditions on when a row was recorded, the last of them over all time."""
    until: _Window = () if is_now else (("recorded_at", "<=", at),)
    return [*((*until, ("recorded_at", ">", at - each)) for each in _WINDOWS), until]


def _controls(store: Store, job_id: int, recorded: _Window) -> list[Row]:
    """Return the control rows that the job had: the newest row of each, unless it was removed."""
    newest: dict[str, Row] = {}
    rows = store.read(Ledger.CONTROLS, where=[("job_id", "=", job_id), *recorded])
    for row in sorted(rows, key=lambda row: (integer(row["tick_number"]), str(row["change"]))):
        newest[str(row["control_id"])] = row
    kept = [row for row in newest.values() if row["change"] != "removed"]
    return sorted(
        kept, key=lambda row: (str(row["dependency_flag"]) == "FALSE", str(row["sensor_id"]))
    )


def _newest(store: Store, ledger: Ledger, key: Condition, windows: Iterable[_Window]) -> Row | None:
    for window in windows:
        rows = store.read(ledger, where=[key, *window])
        if rows:
            return max(rows, key=lambda row: integer(row["tick_number"]))
    return None


def _newest_tick(store: Store, windows: Iterable[_Window]) -> Row | None:
    for window in windows:
        renamed = [("tick_at", operator, value) for _, operator, value in window]
        rows = store.read(Ledger.TICKS, where=renamed)
        if rows:
            return max(rows, key=lambda row: integer(row["tick_number"]))
    return None


def _runs(
    store: Store, job_id: int, windows: Iterable[_Window], upstreams: Sequence[str]
) -> list[Run]:
    """Return enough runs for the last ones and the consumer of each upstream's newest event."""
    runs: list[Run] = []
    for window in windows:
        runs = newest_runs(store.read(Ledger.RUNS, where=[("job_id", "=", job_id), *window]))
        consumed = {each.upstream_id for run in runs for each in run.consumed}
        if len(runs) > RUNS and consumed.issuperset(upstreams):
            break
    return runs


def _healing(store: Store, runs: Sequence[Run]) -> Healing | None:
    """Return what one of the runs that are reported caught up on, if one did."""
    found = healing_of(store, runs)
    return found if found and found.run in runs[-RUNS:] else None


def _dependency(store: Store, control: Row, probe: Row | None, runs: Iterable[Run]) -> Dependency:
    upstream_id = str(control["upstream_id"])
    tick = integer(probe["latest_event_tick"]) if probe and probe["latest_event_tick"] else None
    return Dependency(
        sensor_source=str(control["sensor_source"]),
        sensor_id=str(control["sensor_id"]),
        upstream_id=upstream_id,
        is_required=str(control["dependency_flag"]) != "FALSE",
        is_paused=str(control["job_state"]) == "PAUSED",
        event_at=instant_from(probe["latest_event_at"]) if probe else None,
        event=None if tick is None else _event(store, upstream_id, tick),
        consumed_by=None if tick is None else _taker(upstream_id, tick, runs),
        failing_since=instant_from(probe["failing_since"]) if probe else None,
        failure=str(probe["reason"]) if probe and probe["failing_since"] else None,
        is_probed=probe is not None,
        description=text_or_none(control.get("asset_description")),
        waiting=_waiting(control, probe),
    )


def _waiting(control: Row, probe: Row | None) -> tuple[Waiting, ...]:
    if probe is None or control["sensor_source"] != EVENT_TRIGGER:
        return ()
    return waiting_in(str(probe["position"]) if probe["position"] else None)


def _event(store: Store, upstream_id: str, tick: int) -> Row | None:
    where = [("tick_number", "=", tick), ("upstream_id", "=", upstream_id)]
    rows = store.read(Ledger.EVENTS, where=where)
    return max(rows, key=lambda row: integer(row["snapshot_ts"] or 0), default=None)


def _taker(upstream_id: str, tick: int, runs: Iterable[Run]) -> Run | None:
    """Return the newest run that consumed the events of this tick; one requeued consumes none."""
    for run in sorted(runs, key=lambda run: run.decided_at, reverse=True):
        consumed = run.consumed_of(upstream_id)
        if consumed:
            has_requeued = run.run_status is RunStatus.RETRY_REQUESTED
            is_in = consumed.through_tick >= tick
            return run if is_in and not has_requeued else None
    return None

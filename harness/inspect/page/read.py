"""Reads what the report shows: the status, and the ledgers of the last days.

A ledger may have millions of rows, so everything is bounded by time, and the time by the number of
events that the ticks in it recorded.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from harness.config.load import LOCAL_TARGET
from harness.inspect.page.backlog import Backlogs
from harness.inspect.page.models import Model, read_models
from harness.inspect.status import Status, read_status
from harness.platform.clock import instant_from
from harness.store.queries import folded_through, step_order
from harness.store.rows import Ledger, Question, Row, Run, RunStatus, integer
from harness.store.trigger_queries import triggers_as_controls

if TYPE_CHECKING:
    from harness.context import Context

#: The report covers fewer days where their ticks recorded more events and starts than this.
MOST_READ = 60_000
_BEFORE_FIRST_TICK = timedelta(minutes=1)
#: So many of the newest events are listed one by one, at least.
EVENTS_LISTED = 500

_TICKS = ("tick_number", "tick_at", "event_count", "started_count", "failed_look_count")
_CONTROLS = (
    "tick_number",
    "control_id",
    "change",
    "upstream_id",
    "sensor_source",
    "sensor_id",
    "sensor_read_type",
    "asset_description",
    "upstream_key",
    "preprocess_query",
    "job_id",
    "job_name",
    "job_state",
    "dependency_flag",
)
_PROBES = (
    "tick_number",
    "recorded_at",
    "upstream_id",
    "outcome",
    "reason",
    "failing_since",
)
_UPSTREAMS = ("upstream_id", "tick_number", "latest_event_at", "failing_since", "reason")
_DECISIONS = ("tick_number", "recorded_at", "job_id", "blockers")
#: Not the parameters nor the ids of events, which are long.
_RUNS = (
    "tick_number",
    "step_number",
    "job_id",
    "intent_id",
    "attempt",
    "run_id",
    "run_status",
    "decided_at",
    "started_at",
    "ended_at",
    "message",
    "run_page_url",
    "event_count",
)
_INTENTS = ("tick_number", "intent_id", "consumed")
_EVENTS = (
    "tick_number",
    "upstream_id",
    "event_ts",
    "table",
    "partition",
    "snapshot_id",
    "operation_type",
    "tags",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the report is made from, as rows of the tables."""

    status: Status
    #: The ledgers were read from this instant on.
    since: datetime
    #: The newest row of each control that was not removed, and the triggers.
    controls: Sequence[Row]
    #: Oldest first, as all that follow.
    ticks: Sequence[Row] = ()
    probes: Sequence[Row] = ()
    decisions: Sequence[Row] = ()
    #: The newest row of each attempt.
    runs: Sequence[Row] = ()
    #: By intent, the upstreams whose events it consumes.
    consumed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: The newest ones only.
    events: Sequence[Row] = ()
    #: How many events each tick found at each upstream.
    found: Mapping[tuple[int, str], int] = field(default_factory=dict)
    #: When each upstream had its newest event, also before ``since``.
    latest_event_at: Mapping[str, datetime] = field(default_factory=dict)
    #: How far the models are that the configuration names.
    models: Sequence[Model] = ()
    #: After so many usual gaps an upstream is late, as for alarms; 0: never.
    overdue_factor: float = 3


def read_recorded(context: "Context", *, days: float) -> Recorded:
    """Read what the report shows, without a JVM and while a tick runs.

    Args:
        context: The services.
        days: How many days of the ledgers are read at most.

    Raises:
        StateError: A table cannot be read.
    """
    store = context.store
    status = read_status(context, every_run=False)
    oldest = status.now - timedelta(days=days)
    ticks = _read(context, Question(table=Ledger.TICKS, where=_after("tick_at", oldest)), _TICKS)
    since = covered_since(ticks, oldest)
    recent = _after("recorded_at", since)
    compacted = folded_through(store, status.decision)
    tail = [("tick_number", ">", compacted)]
    covered = [row for row in ticks if _instant(row["tick_at"]) >= since]
    first, listed = first_tick_of(covered), first_tick_of(covered, EVENTS_LISTED)
    intended = ("run_status", "=", RunStatus.INTENDED.value)
    questions = {
        "controls": Question(table=Ledger.CONTROLS, columns=_CONTROLS),
        "probes": Question(table=Ledger.PROBES, where=recent, columns=_PROBES),
        "decisions": Question(table=Ledger.DECISIONS, where=recent, columns=_DECISIONS),
        "runs": Question(table=Ledger.RUNS, where=recent, columns=_RUNS),
        "intents": Question(table=Ledger.RUNS, where=[*recent, intended], columns=_INTENTS),
        "state": Question(table="upstream_state", columns=_UPSTREAMS),
        "tail": Question(table=Ledger.PROBES, where=tail, columns=_UPSTREAMS),
        "found": Question(table=Ledger.EVENTS, where=_from(first), columns=_EVENTS[:2]),
        "events": Question(table=Ledger.EVENTS, where=_from(listed), columns=_EVENTS),
    }
    context.expect(list(questions.values()))
    rows = {
        name: sorted(
            store.read(each.table, where=each.where, columns=each.columns), key=_tick_number
        )
        for name, each in questions.items()
    }
    return Recorded(
        status=status,
        since=since,
        overdue_factor=context.settings.alarms.overdue_factor,
        controls=[*newest_controls(rows["controls"]), *triggers_as_controls(store)],
        ticks=covered,
        probes=rows["probes"],
        decisions=rows["decisions"],
        # What holds a job may have ended long before.
        runs=newest_of_attempts([*rows["runs"], *_older(status.runs, since)]),
        consumed={
            **{each.intent_id: [c.upstream_id for c in each.consumed] for each in status.runs},
            **{str(row["intent_id"]): _upstreams_of(row["consumed"]) for row in rows["intents"]},
        },
        events=rows["events"],
        found=Counter((_tick_number(row), str(row["upstream_id"])) for row in rows["found"]),
        latest_event_at=_latest_events([*rows["state"], *rows["tail"]]),
        models=read_models(
            context.settings.report.models, context.tables_of, since, _backlogs(context, status.now)
        ),
    )


def _backlogs(context: "Context", now: datetime) -> Backlogs | None:
    is_local = context.target == LOCAL_TARGET
    return Backlogs(warehouse=context.home.warehouse, now=now) if is_local else None


def _read(context: "Context", question: Question, columns: Sequence[str]) -> list[Row]:
    rows = context.store.read(question.table, where=question.where, columns=columns)
    return sorted(rows, key=_tick_number)


def _after(column: str, instant: datetime) -> list[tuple[str, str, object]]:
    return [(column, ">", instant)]


def _from(tick_number: int) -> list[tuple[str, str, object]]:
    return [("tick_number", ">=", tick_number)]


def _older(runs: Iterable[Run], since: datetime) -> list[Row]:
    return [
        {name: getattr(run, name) for name in _RUNS} for run in runs if run.recorded_at <= since
    ]


def _upstreams_of(consumed: object) -> list[str]:
    assert isinstance(consumed, Sequence)
    return [str(each["upstream_id"]) for each in consumed]


def _tick_number(row: Row) -> int:
    return integer(row["tick_number"])


def _instant(value: object) -> datetime:
    at = instant_from(value)
    assert at is not None
    return at


def covered_since(ticks: Sequence[Row], oldest: datetime, most: int = MOST_READ) -> datetime:
    """Return from when on the ledgers are read.

    Args:
        ticks: The ticks of the wanted time, oldest first.
        oldest: Where that time begins.
        most: Where the ticks recorded more events and starts, fewer of them are read.
    """
    total = 0
    for row in reversed(ticks):
        total += integer(row["event_count"]) + integer(row["started_count"])
        if total > most:
            return _instant(row["tick_at"])
    if ticks and _tick_number(ticks[0]) <= 1:
        # A young installation has no empty days before its first tick.
        return max(oldest, _instant(ticks[0]["tick_at"]) - _BEFORE_FIRST_TICK)
    return oldest


def first_tick_of(ticks: Sequence[Row], wanted: float = math.inf) -> int:
    """Return the tick from which on at least so many events were recorded, or the first one."""
    total = 0
    for row in reversed(ticks):
        total += integer(row["event_count"])
        if total >= wanted:
            return integer(row["tick_number"])
    return integer(ticks[0]["tick_number"]) if ticks else 0


def newest_controls(rows: Iterable[Row]) -> list[Row]:
    """Return the newest row of each control, unless it was removed."""
    newest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (_tick_number(row), str(row["change"]))):
        newest[str(row["control_id"])] = row
    return [row for row in newest.values() if row["change"] != "removed"]


def newest_of_attempts(rows: Iterable[Row]) -> list[Row]:
    """Return the newest row of each intent and attempt, oldest decision first."""
    ordered = sorted(
        rows, key=lambda row: (str(row["intent_id"]), integer(row["attempt"]), step_order(row))
    )
    newest = [
        [*steps][-1]
        for _, steps in groupby(
            ordered, key=lambda row: (str(row["intent_id"]), integer(row["attempt"]))
        )
    ]
    return sorted(newest, key=lambda row: (_instant(row["decided_at"]), integer(row["attempt"])))


def _latest_events(rows: Iterable[Row]) -> dict[str, datetime]:
    latest = {}
    for row in sorted(rows, key=_tick_number):
        at = instant_from(row["latest_event_at"])
        if at is not None:
            latest[str(row["upstream_id"])] = at
    return latest

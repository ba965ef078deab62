"""Reads where everything stands, for the page that a person sees and for scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from harness.config.model import Attention
from harness.controls.accept import quarantined_rows
from harness.platform.format import iso, upstream_name
from harness.sense.backoff import Failing, load_back_off
from harness.settle.unreachable_runs import Unreachable, load_unreachable
from harness.store.public_tables import CONTROL_TABLE
from harness.store.quarantine import Quarantined, quarantined, quarantined_settings
from harness.store.queries import (
    LastDecision,
    LockHolder,
    folded_through,
    last_decision,
    newest_by_job,
    newest_runs,
    questions_of_runs,
    runs_now,
)
from harness.store.rows import Ledger, Question, Row, Run, RunStatus, Store, integer
from harness.store.trigger_queries import FailingTrigger, failing_triggers, question_of_triggers

if TYPE_CHECKING:
    from harness.context import Context

#: What a script gets of a run; the job's parameters are as long as its events and stay out.
RUN_COLUMNS = (
    "job_id",
    "job_name",
    "intent_id",
    "attempt",
    "token",
    "run_id",
    "run_status",
    "reported_by",
    "decided_at",
    "started_at",
    "ended_at",
    "event_count",
    "event_ids",
    "consumed",
    "life_cycle_state",
    "result_state",
    "state",
    "termination_code",
    "message",
    "run_page_url",
    "recorded_at",
)

#: What an operator discarded is shown for so long, unless the job has run since.
DISCARDED_SHOWN_FOR = timedelta(days=7)

_IDS = frozenset({"job_id", "run_id", "trigger_job_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything that `status` reports."""

    now: datetime
    control: Sequence[Row]
    sensors: Sequence[Row]
    runs: Sequence[Run]
    decision: LastDecision | None
    holder: LockHolder | None
    #: A tick that found nothing leaves no row, but it was there.
    last_tick_at: datetime | None
    #: Upstreams that cannot be read, and when they are tried again.
    failing: Sequence[Failing] = ()
    #: Triggers that cannot be evaluated.
    failing_triggers: Sequence[FailingTrigger] = ()
    #: Newest runs whose events an operator has recently released.
    discarded: Sequence[Run] = ()
    #: Runs that the last tick could not poll, by job.
    unreachable: Mapping[int, Unreachable] = field(default_factory=dict)
    #: After how long a run needs a person.
    attention: Attention = field(default_factory=Attention)
    #: What could not be read and was gone on without.
    quarantined: Sequence[Quarantined] = ()


def read_status(context: "Context", *, every_run: bool) -> Status:
    """Read where everything stands, without a JVM and while a tick runs."""
    store = context.store
    decision = last_decision(context.home.status)
    now, compacted = context.clock.now(), folded_through(store, decision)
    discarded_after = now - DISCARDED_SHOWN_FOR
    context.expect(
        [
            Question(table="heartbeat_control"),
            Question(table="sensors"),
            *questions_of_runs(compacted, only_relevant=not every_run),
            question_of_triggers(),
            *_questions_of_discarded(discarded_after, compacted),
        ]
    )
    return Status(
        now=now,
        control=sorted(
            store.read("heartbeat_control"),
            key=lambda row: (integer(row["trigger_job_id"]), str(row["sensor_id"])),
        ),
        sensors=sorted(store.read("sensors"), key=lambda row: str(row["sensor_id"])),
        runs=runs_now(store, folded_through=compacted, only_relevant=not every_run),
        decision=decision,
        holder=context.holder(),
        last_tick_at=context.last_tick_at(decision),
        failing=sorted(
            load_back_off(context.home.back_off).failing.values(),
            key=lambda each: each.upstream_id,
        ),
        failing_triggers=failing_triggers(store, compacted),
        discarded=discarded_since(store, discarded_after, folded_through=compacted),
        unreachable=load_unreachable(context.home.folder),
        attention=context.settings.jobs.attention,
        quarantined=[
            *quarantined(context.home.inbox),
            *quarantined_rows(context.home.accepted),
            *quarantined_settings(context.settings.file, context.settings.quarantined),
        ],
    )


def discarded_since(store: Store, since: datetime, *, folded_through: int) -> list[Run]:
    """Return the newest run of each job whose events an operator has discarded since then."""
    tail = ("tick_number", ">", folded_through)
    rows = [
        row
        for each in _questions_of_discarded(since, folded_through)
        for row in store.read(each.table, where=each.where, columns=each.columns)
    ]
    if not rows:
        return []
    of_jobs = ("job_id", "in", sorted({integer(row["job_id"]) for row in rows}))
    runs = newest_runs(
        [
            *store.read("run_state", where=[of_jobs]),
            *store.read(Ledger.RUNS, where=[of_jobs, tail]),
        ]
    )
    newest = newest_by_job(runs).values()
    return [run for run in newest if run.run_status is RunStatus.RELEASED]


def _questions_of_discarded(since: datetime, folded_through: int) -> list[Question]:
    where = [("run_status", "=", RunStatus.RELEASED.value), ("recorded_at", ">", since)]
    tail = ("tick_number", ">", folded_through)
    return [
        Question(table="run_state", where=where, columns=["job_id"]),
        Question(table=Ledger.RUNS, where=[*where, tail], columns=["job_id"]),
    ]


def as_json(status: Status) -> dict[str, object]:
    """Return the status as one object for scripts: instants in ISO 8601, ids as strings."""
    jobs = status.decision.jobs if status.decision else ()
    return {
        "control": [_plain(row, CONTROL_TABLE.columns) for row in status.control],
        "blockers": [
            _plain({"job_id": job.job_id, "job_name": job.job_name, **asdict(each)})
            for job in jobs
            for each in job.blockers
        ],
        "runs": [_plain(asdict(run), RUN_COLUMNS) for run in status.runs],
        "sensors": [_plain(row) for row in status.sensors],
        "failing": [
            {
                "sensor_id": upstream_name(each.upstream_id),
                "upstream_id": each.upstream_id,
                "reason": each.reason,
                "failing_since": iso(each.since),
                "failed_looks": each.failed_looks,
                "last_look_at": iso(each.failed_at),
                "next_look_at": _iso_or_none(each.next_probe(status.now)),
            }
            for each in status.failing
        ],
        "failing_triggers": [
            {
                "trigger_id": each.trigger_id,
                "reason": each.reason,
                "failing_since": iso(each.since),
            }
            for each in status.failing_triggers
        ],
        "quarantined": [
            {
                "name": each.name,
                "since": iso(each.since),
                "reason": each.reason,
                "path": str(each.path),
            }
            for each in status.quarantined
        ],
        # Ticks come one after the other: what has an earlier event_ts is in the ledger by now.
        "last_tick_at": _iso_or_none(status.last_tick_at),
    }


def _iso_or_none(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


def _plain(row: Row, columns: Sequence[str] | None = None) -> dict[str, object]:
    return {name: _value(name, row[name]) for name in columns or tuple(row)}


def _value(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    if name in _IDS and value is not None:
        return str(value)
    return value


#: Without a tick for so long the picture is old, and the reader is warned.
OLD_AFTER_SECONDS = 900.0

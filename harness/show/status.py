"""Shows where everything stands: what needs attention first, then what runs, then what waits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console

from harness.show.facts import (
    JobReasons,
    LastDecision,
    LockHolder,
    Row,
    RunFact,
    folded_through,
    holder_of,
    instant_from,
    last_decision,
    newest_by_job,
    runs_now,
    whole,
)
from harness.show.terminal import Column, line, table
from harness.show.tick import main_reason, name_of, reason_in_words
from harness.show.words import age, count, instant, iso
from harness.tables import RunStatus

if TYPE_CHECKING:
    from harness.context import Context

#: The columns of the control table, as document and table have them.
CONTROL_COLUMNS = (
    "sensor_source",
    "sensor_id",
    "sensor_read_type",
    "asset_description",
    "upstream_key",
    "preprocess_query",
    "latest_event_fetched_timestamp",
    "trigger_job_id",
    "trigger_job_name",
    "status",
    "status_change_timestamp",
    "job_start_timestamp",
    "job_end_timestamp",
    "job_state",
    "dependency_flag",
)

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

_IDS = frozenset({"job_id", "run_id", "trigger_job_id"})

#: Without a tick for so long the picture is old, and the person is told.
OLD_AFTER_SECONDS = 900.0
#: A run that goes on for so long is worth a look.
LONG_RUN_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything that `status` knows."""

    now: datetime
    control: Sequence[Row]
    sensors: Sequence[Row]
    runs: Sequence[RunFact]
    decision: LastDecision | None
    holder: LockHolder | None
    #: When the newest row of any kind was recorded: a tick that found nothing leaves none.
    last_tick_at: datetime | None


def read_status(context: "Context", *, every_run: bool) -> Status:
    """Read where everything stands, without a JVM and while a tick runs."""
    store = context.store
    decision = last_decision(context.home.status)
    runs = runs_now(
        store, folded_through=folded_through(store, decision), only_relevant=not every_run
    )
    return Status(
        now=context.clock.now(),
        control=sorted(
            store.read("heartbeat_control"),
            key=lambda row: (whole(row["trigger_job_id"]), str(row["sensor_id"])),
        ),
        sensors=sorted(store.read("sensors"), key=lambda row: str(row["sensor_id"])),
        runs=runs,
        decision=decision,
        holder=holder_of(context.home.folder),
        last_tick_at=decision.tick_at if decision else None,
    )


def as_json(status: Status) -> dict[str, object]:
    """Return the status as one object for scripts: instants in ISO 8601, ids as strings."""
    jobs = status.decision.jobs if status.decision else ()
    return {
        "control": [_plain(row, CONTROL_COLUMNS) for row in status.control],
        "blockers": [
            _plain({"job_id": job.job_id, "job_name": job.job_name, **asdict(each)})
            for job in jobs
            for each in job.blockers
        ],
        "runs": [_plain(run.row, RUN_COLUMNS) for run in status.runs],
        "sensors": [_plain(row) for row in status.sensors],
    }


def _plain(row: Row, columns: Sequence[str] | None = None) -> dict[str, object]:
    return {name: _value(name, row[name]) for name in columns or tuple(row)}


def _value(name: str, value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    if name in _IDS and value is not None:
        return str(value)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, as a line of the status."""

    job_id: int
    name: str
    reasons: JobReasons | None
    run: RunFact | None

    @property
    def blocker(self) -> str:
        """The name of the reason that is told; empty when the last decision had none."""
        reasons = self.reasons.blockers if self.reasons else ()
        return main_reason(reasons).blocker if reasons else ""


def jobs_of(status: Status) -> list[Job]:
    """Return every job of the controls, by id."""
    runs = newest_by_job(status.runs)
    reasons = {job.job_id: job for job in (status.decision.jobs if status.decision else ())}
    names = {whole(row["trigger_job_id"]): str(row["trigger_job_name"]) for row in status.control}
    return [
        Job(
            job_id=job_id,
            name=name_of(job_id, name),
            reasons=reasons.get(job_id),
            run=runs.get(job_id),
        )
        for job_id, name in sorted(names.items())
    ]


def show(console: Console, status: Status, *, every_job: bool) -> None:
    """Print the status so that it fits a screen; every job when asked for."""
    jobs = jobs_of(status)
    _show_head(console, status, jobs)
    room = None if every_job else _Room(lines=max(16, min(console.height, 40) - 8))
    _show_attention(console, status, jobs, room)
    _show_running(console, status, jobs, room)
    _show_waiting(console, status, jobs, room)


def _show_head(console: Console, status: Status, jobs: Sequence[Job]) -> None:
    held = sum(_is_held(job) for job in jobs)
    running = sum(_is_running(job) for job in jobs)
    parts = [
        count(len(jobs), "job"),
        *([f"{held} failed"] if held else []),
        *([f"{running} running"] if running else []),
    ]
    console.print(line((", ".join(parts), "bold"), "   ", _last_tick(status)), soft_wrap=True)
    if status.holder:
        since = age(status.holder.since, status.now)
        what = f"`{status.holder.command}` has been at work for {since} (pid {status.holder.pid})"
        console.print(line((what, "dim")), soft_wrap=True)


def _last_tick(status: Status) -> str | tuple[str, str]:
    if status.decision is None:
        return "no tick has decided anything yet: python -m harness tick", "yellow"
    at = status.decision.tick_at
    since = age(at, status.now)
    said = (
        f"last change {since} ago, tick {status.decision.tick_number} at {instant(at, status.now)}"
    )
    return said, "dim"


@dataclass(slots=True)
class _Room:
    """The lines that are left on the screen."""

    lines: int


def _is_held(job: Job) -> bool:
    return bool(job.run and job.run.holds_job)


def _is_running(job: Job) -> bool:
    return bool(job.run and job.run.is_open and job.run.run_id is not None)


def _show_attention(
    console: Console, status: Status, jobs: Sequence[Job], room: _Room | None
) -> None:
    rows: list[tuple[str | tuple[str, str], ...]] = []
    for job in jobs:
        if job.run and job.run.holds_job:
            rows.append(_row_of_held(job.name, job.run, status.now))
        elif job.run and job.run.is_open and job.run.run_id is None:
            since = age(job.run.decided_at, status.now)
            said = job.run.message or "the Jobs API has not answered; every tick sends it again"
            rows.append((job.name, ("start unanswered", "yellow"), since, said))
        elif job.run and _is_long(job.run, status.now):
            since = age(job.run.started_at, status.now)
            rows.append((job.name, ("runs for long", "yellow"), since, f"run {job.run.run_id}"))
    rows += _rows_of_unreadable(status, jobs)
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="what"),
        Column(title="since", is_number=True),
        Column(title="why", may_wrap=True),
    )
    _section(console, "needs attention", columns, rows, room, "red")


def _is_long(run: RunFact, now: datetime) -> bool:
    began = run.started_at or run.decided_at
    return run.is_open and (now - began).total_seconds() > LONG_RUN_SECONDS


def _row_of_held(name: str, run: RunFact, now: datetime) -> tuple[str | tuple[str, str], ...]:
    said = run.message or "the Jobs API gave no reason"
    words = "refused" if run.run_status is RunStatus.REFUSED else run.run_status.value.lower()
    since = age(run.ended_at or run.recorded_at, now)
    return name, (words.replace("_", " "), "red"), since, said


def _rows_of_unreadable(
    status: Status, jobs: Iterable[Job]
) -> list[tuple[str | tuple[str, str], ...]]:
    """Return one row per upstream that cannot be read, with how many jobs wait for it."""
    waiting: dict[str, tuple[list[str], datetime | None]] = {}
    for job in jobs:
        for each in job.reasons.blockers if job.reasons else ():
            if " cannot be read: " in each.reason:
                why = each.reason.split(" cannot be read: ", 1)[1]
                names, since = waiting.get(why, ([], each.since))
                waiting[why] = (
                    [*names, job.name],
                    min(filter(None, (since, each.since)), default=None),
                )
    return [
        (
            names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}",
            ("unreadable", "red"),
            age(since, status.now),
            why,
        )
        for why, (names, since) in waiting.items()
    ]


def _show_running(
    console: Console, status: Status, jobs: Sequence[Job], room: _Room | None
) -> None:
    rows = [
        (
            job.name,
            str(job.run.run_id),
            age(job.run.started_at or job.run.decided_at, status.now),
            count(job.run.event_count, "event"),
        )
        for job in jobs
        if job.run and _is_running(job) and not _is_long(job.run, status.now)
    ]
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="run"),
        Column(title="for", is_number=True),
        Column(title="handed", is_number=True),
    )
    _section(console, "running", columns, rows, room, "green")


#: Headings for the reasons for which jobs wait, in the order in which they are shown.
_WAITING: Mapping[str, str] = {
    "over_start_limit": "ready, over the limit of starts",
    "required_row_paused": "a hard dependency is PAUSED",
    "waiting_for_required_event": "waiting",
    "nothing_new": "nothing new",
    "job_paused": "paused",
}


def _show_waiting(
    console: Console, status: Status, jobs: Sequence[Job], room: _Room | None
) -> None:
    waiting = [job for job in jobs if job.blocker in _WAITING and not _is_attended(job)]
    order = list(_WAITING)
    far = datetime.max.replace(tzinfo=status.now.tzinfo)
    waiting.sort(key=lambda job: (order.index(job.blocker), _since(job) or far, job.name))
    rows = [(job.name, age(_since(job), status.now), _why(job)) for job in waiting]
    counts = {name: sum(job.blocker == name for job in waiting) for name in order}
    told = ", ".join(f"{number} {_WAITING[name]}" for name, number in counts.items() if number)
    columns = (
        Column(title="job", may_shrink=True),
        Column(title="since", is_number=True),
        Column(title="why not", may_wrap=True),
    )
    _section(console, "waiting", columns, rows, room, "", told)


def _is_attended(job: Job) -> bool:
    return bool(job.run and (job.run.holds_job or job.run.is_open))


def _since(job: Job) -> datetime | None:
    return main_reason(job.reasons.blockers).since if job.reasons else None


def _why(job: Job) -> str:
    return reason_in_words(job.reasons.blockers) if job.reasons else ""


def _section(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | tuple[str, str]]],
    room: _Room | None,
    style: str,
    told: str = "",
) -> None:
    if not rows:
        return
    heading = f"{title} {len(rows)}"
    console.print(line((heading, f"bold {style}".strip()), (f"  {told}" if told else "", "dim")))
    shown = len(rows) if room is None else max(3, min(len(rows), room.lines))
    console.print(table(columns, rows[:shown]))
    if shown < len(rows):
        console.print(line((f"  and {len(rows) - shown} more: --all shows every job", "dim")))
    if room:
        room.lines -= shown + 3


__all__ = ["Status", "as_json", "instant_from", "jobs_of", "read_status", "show"]

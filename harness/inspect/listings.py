"""Lists jobs, upstreams and runs as the tables have them, for people and for scripts.

Each listing is a few reads of tables that exist; nothing is decided here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from harness.errors import ConfigurationError
from harness.inspect.attention import CANNOT_BE_READ, Job, jobs_of, problem_of
from harness.inspect.status import Status
from harness.platform.clock import instant_from
from harness.platform.format import iso
from harness.store.queries import runs_now
from harness.store.rows import Ledger, Row, Run, Store, integer, text_or_none
from harness.store.trigger_queries import triggers_as_controls


class JobState(StrEnum):
    """How a job stands, in the order in which jobs are listed."""

    HELD = "held"
    #: Its run, its start or an upstream of it needs a person, or will be retried.
    ATTENTION = "attention"
    RUNNING = "running"
    READY = "ready"
    WAITING = "waiting"
    #: No tick has decided about it yet.
    NEW = "new"
    PULL = "pull"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedJob:
    """One job, how it stands and why."""

    job: Job
    state: JobState
    why: str
    since: datetime | None


_STATES = {
    "over_start_limit": JobState.READY,
    "on_own_schedule": JobState.PULL,
    "job_paused": JobState.PAUSED,
}


def list_jobs(status: Status) -> list[ListedJob]:
    """Return every job of the controls: held ones first, each state by name."""
    listed = [_listed(job, status) for job in jobs_of(status)]
    order = list(JobState)
    return sorted(listed, key=lambda each: (order.index(each.state), each.job.name.lower()))


def _listed(job: Job, status: Status) -> ListedJob:
    problem = problem_of(job.run, status) if job.run else None
    if problem is not None:
        state = JobState.HELD if problem.is_bad else JobState.ATTENTION
        return ListedJob(job=job, state=state, why=problem.why, since=problem.since)
    if job.run is not None and job.run.is_open:
        began = job.run.started_at or job.run.decided_at
        return ListedJob(job=job, state=JobState.RUNNING, why="", since=began)
    if job.reasons is None:
        return ListedJob(job=job, state=JobState.NEW, why="no tick has decided yet", since=None)
    state = _STATES.get(job.blocker, JobState.WAITING)
    if CANNOT_BE_READ in job.why:
        state = JobState.ATTENTION
    return ListedJob(job=job, state=state, why=job.why, since=job.since)


def job_as_json(each: ListedJob) -> dict[str, object]:
    """Return a job as one object for scripts."""
    run = each.job.run
    return {
        "job_id": str(each.job.job_id),
        "job_name": each.job.name,
        "state": each.state.value,
        "since": each.since and iso(each.since),
        "why": each.why or None,
        "last_run": None if run is None else run_as_json(run),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedUpstream:
    """One upstream, what its users call it, and how it stands."""

    upstream_id: str
    sensor_source: str
    sensor_id: str
    #: What the controls call it, if they do.
    descriptions: tuple[str, ...]
    jobs: tuple[str, ...]
    is_paused: bool
    last_event_at: datetime | None
    failing_since: datetime | None
    failure: str | None
    is_probed: bool

    @property
    def state(self) -> str:
        """How it stands, in one word."""
        if self.is_paused:
            return "paused"
        if self.failure is not None:
            return "unreadable"
        return "ok" if self.is_probed else "new"


def list_upstreams(store: Store, *, folded_through: int) -> list[ListedUpstream]:
    """Return every upstream of the controls: what cannot be read first, then by name.

    Raises:
        StateError: A table cannot be read.
    """
    rows = [*_controls_now(store), *triggers_as_controls(store)]
    tail = [("tick_number", ">", folded_through)]
    probes: dict[str, Row] = {}
    recorded: list[Row] = [*store.read("upstream_state"), *store.read(Ledger.PROBES, where=tail)]
    for row in recorded:
        before = probes.get(str(row["upstream_id"]))
        if before is None or integer(row["tick_number"]) >= integer(before["tick_number"]):
            probes[str(row["upstream_id"])] = row
    by_upstream: dict[str, list[Row]] = {}
    for row in rows:
        by_upstream.setdefault(str(row["upstream_id"]), []).append(row)
    listed = [
        _upstream(upstream_id, of_it, probes.get(upstream_id))
        for upstream_id, of_it in by_upstream.items()
    ]
    return sorted(listed, key=lambda each: (each.state != "unreadable", each.sensor_id.lower()))


def _controls_now(store: Store) -> list[Row]:
    """Return the control rows in force: the newest of each, without those that were removed."""
    newest: dict[str, Row] = {}
    rows = store.read(Ledger.CONTROLS)
    for row in sorted(rows, key=lambda row: (integer(row["tick_number"]), str(row["change"]))):
        newest[str(row["control_id"])] = row
    return [row for row in newest.values() if row["change"] != "removed"]


def _upstream(upstream_id: str, rows: Sequence[Row], probe: Row | None) -> ListedUpstream:
    names = (str(row["job_name"]) or str(row["job_id"]) for row in rows)
    described = (text_or_none(row.get("asset_description")) for row in rows)
    failing_since = instant_from(probe["failing_since"]) if probe else None
    return ListedUpstream(
        upstream_id=upstream_id,
        sensor_source=str(rows[0]["sensor_source"]),
        sensor_id=str(rows[0]["sensor_id"]),
        descriptions=tuple(dict.fromkeys(each for each in described if each)),
        jobs=tuple(sorted(dict.fromkeys(names))),
        is_paused=all(str(row["job_state"]).upper() == "PAUSED" for row in rows),
        last_event_at=instant_from(probe["latest_event_at"]) if probe else None,
        failing_since=failing_since,
        failure=str(probe["reason"]) if probe and failing_since else None,
        is_probed=probe is not None,
    )


def upstream_as_json(each: ListedUpstream) -> dict[str, object]:
    """Return an upstream as one object for scripts."""
    return {
        "upstream_id": each.upstream_id,
        "sensor_source": each.sensor_source,
        "sensor_id": each.sensor_id,
        "descriptions": list(each.descriptions),
        "state": each.state,
        "last_event_at": each.last_event_at and iso(each.last_event_at),
        "failing_since": each.failing_since and iso(each.failing_since),
        "reason": each.failure,
        "jobs": list(each.jobs),
    }


def list_runs(
    store: Store, *, folded_through: int, job_id: int | None, limit: int | None
) -> list[Run]:
    """Return runs, newest first.

    Args:
        store: The tables.
        folded_through: Ledger rows up to this tick are in ``run_state``.
        job_id: Only runs of this job.
        limit: So many at most.

    Raises:
        StateError: A table cannot be read.
    """
    found = [
        run
        for run in reversed(runs_now(store, folded_through=folded_through))
        if job_id in (None, run.job_id)
    ]
    return found[:limit]


def run_as_json(run: Run) -> dict[str, object]:
    """Return a run as one object for scripts."""
    return {
        "job_id": str(run.job_id),
        "job_name": run.job_name,
        "run_id": None if run.run_id is None else str(run.run_id),
        "attempt": run.attempt,
        "run_status": run.run_status.value,
        "decided_at": iso(run.decided_at),
        "started_at": run.started_at and iso(run.started_at),
        "ended_at": run.ended_at and iso(run.ended_at),
        "events": run.event_count,
        "message": run.message,
        "run_page_url": run.run_page_url,
    }


def run_named(wanted: str, runs: Iterable[Run], names: Iterable[str]) -> Run:
    """Return the run that a text means: its id, the end of it, or a job for its newest run.

    Args:
        wanted: What the user wrote.
        runs: Every run, newest first.
        names: Every job.

    Raises:
        ConfigurationError: No run, or more than one, is meant.
    """
    text = wanted.strip().lstrip("…").lower()
    known = [run for run in runs if run.run_id is not None]
    of_job = [run for run in known if text in (run.job_name.lower(), str(run.job_id))]
    if of_job:
        return of_job[0]
    meant = [run for run in known if text.isdigit() and str(run.run_id).endswith(text)]
    exact = [run for run in meant if str(run.run_id) == text]
    if len(exact or meant) == 1:
        return (exact or meant)[0]
    if meant:
        listed = ", ".join(str(run.run_id) for run in meant[:5])
        raise ConfigurationError(f"Runs {listed} end in '{wanted}': name one by its whole id")
    if text in {name.lower() for name in names}:
        raise ConfigurationError(f"{wanted} has no run yet: `python -m harness explain {wanted}`")
    raise ConfigurationError(f"There is no run '{wanted}'; `python -m harness runs` lists them")

"""A made-up past of jobs, their controls, events and runs, written into the real ledgers.

Ticks are plain numbers. When the models are queried, everything up to ``FOLDED`` is in the
current-state tables, the rest only in the ledgers' tail, so that each answer combines both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.support.local_rows import frame_of_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The last tick that is compacted into the current-state tables.
FOLDED = 50
#: The tick that decides.
NOW = 100

Row = Mapping[str, object]
Range = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One line of the controls, and the ticks in which its upstream had events."""

    name: str
    flag: str = "TRUE"
    state: str = "UNPAUSED"
    source: str = "delta_table"
    events: Sequence[int] = ()
    #: The tick of the probe that failed after those events.
    failed_at: int | None = None
    #: False: the line was there when a run consumed its events, and is gone now.
    in_controls: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt: the tick that intended it, what it consumed, and the steps after that."""

    tick: int
    takes: Mapping[str, Range]
    #: Tick and status of each further step.
    steps: Sequence[tuple[int, str]] = ()
    intent: str = "first"
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job with its dependencies and all that its runs went through."""

    job_id: int
    dependencies: Sequence[Dependency]
    runs: Sequence[Run] = ()
    #: What its retry policy allows, if it has one.
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The models' decision on one job: what it starts with, or why it waits."""

    consumed: Mapping[str, Range] | None = None
    attempt: int | None = None
    intent_id: str | None = None
    blockers: Sequence[tuple[str, str]] = ()
    status: Mapping[str, str | None] = field(default_factory=dict)


def at(tick: int) -> datetime:
    """Return the instant of a tick."""
    return datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=tick)


def sensor_id(job: Job, name: str) -> str:
    """Name the upstream: each job has its own, unless its name begins with ``shared``."""
    return f"db.{name}" if name.startswith("shared") else f"db.{name}_{job.job_id}"


def control_rows(jobs: Iterable[Job], *, all_of_them: bool = False) -> Iterator[Row]:
    """Return the lines of the controls CSV; with ``all_of_them`` also those that are gone."""
    for job in jobs:
        for each in job.dependencies:
            if each.in_controls or all_of_them:
                yield {
                    "sensor_source": each.source,
                    "sensor_id": sensor_id(job, each.name),
                    "sensor_read_type": "streaming",
                    "trigger_job_id": str(job.job_id),
                    "trigger_job_name": f"job-{job.job_id}",
                    "job_state": each.state,
                    "dependency_flag": each.flag,
                }


def policy_rows(jobs: Iterable[Job]) -> Iterator[Row]:
    """Return the lines of the retry policies."""
    for job in jobs:
        if job.max_attempts is not None:
            attempts = str(job.max_attempts)
            yield {"job_id": str(job.job_id), "max_attempts": attempts, "backoff_minutes": "15"}


def probe_rows(jobs: Iterable[Job], upstream_ids: Mapping[tuple[int, str], str]) -> Iterator[Row]:
    """Return the ledger's rows of all probes, each the whole state of its upstream."""
    reported = set()
    for job in jobs:
        for each in job.dependencies:
            upstream_id = upstream_ids[job.job_id, sensor_id(job, each.name)]
            if upstream_id in reported:
                continue
            reported.add(upstream_id)
            yield from _results(each, upstream_id)


def _results(dependency: Dependency, upstream_id: str) -> Iterator[Row]:
    recent: list[tuple[int, datetime, int]] = []
    for tick in dependency.events:
        recent.append((tick, at(tick), 1))
        yield _probe(upstream_id, tick, recent) | {"outcome": "found"}
    if dependency.failed_at is not None:
        failed = {"outcome": "failed", "reason": "no such table"}
        since = {"failing_since": at(dependency.failed_at)}
        yield _probe(upstream_id, dependency.failed_at, recent) | failed | since


def _probe(upstream_id: str, tick: int, recent: Sequence[tuple[int, datetime, int]]) -> dict:
    return {
        "tick_number": tick,
        "recorded_at": at(tick),
        "upstream_id": upstream_id,
        "latest_event_tick": recent[-1][0] if recent else None,
        "latest_event_at": recent[-1][1] if recent else None,
        "recent_events": list(recent),
    }


def run_rows(jobs: Iterable[Job], upstream_ids: Mapping[tuple[int, str], str]) -> Iterator[Row]:
    """Return the ledger's rows of all runs, each the whole state of its run."""
    for job in jobs:
        for run in job.runs:
            for number, (tick, status) in enumerate([(run.tick, "INTENDED"), *run.steps], start=1):
                # A retry is requested before, and in the same tick as, the attempt that it brings.
                yield {
                    "tick_number": tick,
                    "step_number": number + 10 * run.attempt,
                    "recorded_at": at(tick),
                    "job_id": job.job_id,
                    "job_name": f"job-{job.job_id}",
                    "intent_id": f"{run.intent}-{job.job_id}",
                    "attempt": run.attempt,
                    "token": f"{run.intent}-{job.job_id}-{run.attempt}",
                    "run_id": job.job_id * 100 if number > 1 else None,
                    "run_status": status,
                    "decided_tick": run.tick,
                    "decided_at": at(run.tick),
                    "consumed": [
                        (upstream_ids[job.job_id, sensor_id(job, name)], *consumed)
                        for name, consumed in run.takes.items()
                    ],
                }


def append(spark: "SparkSession", table: str, rows: Iterable[Row]) -> None:
    """Append rows to a table; columns that a row lacks are null."""
    schema = spark.table(table).schema
    values = [tuple(row.get(name) for name in schema.names) for row in rows]
    if values:
        frame = frame_of_rows(spark, values, schema)
        frame.coalesce(1).write.format("delta").mode("append").insertInto(table)

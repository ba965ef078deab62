"""Reads runs, decisions, jobs and sensors from the tables and the state directory.

It needs no JVM and takes no lock.
"""

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import ConfigurationError
from harness.platform.clock import instant_from
from harness.platform.json_file import UNREADABLE, load
from harness.store.rows import HOLDING, OPEN, Blocker, Ledger, Question, Row, Run, Store, integer
from harness.store.trigger_queries import triggers_as_controls
from harness.store.writer.lock import LAST_TICK


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReasons:
    """Why one job may not run now, as the last tick that decided left it."""

    job_id: int
    job_name: str
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastDecision:
    """What the last tick that decided left for people."""

    tick_id: str
    tick_number: int
    tick_at: datetime
    jobs: tuple[JobReasons, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """The process that holds the state directory."""

    pid: int
    command: str
    since: datetime


def holder_of(home: Path) -> LockHolder | None:
    """Return the process that holds the lock; nothing when it is free or its file is unreadable."""
    try:
        descriptor = os.open(home / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _holder_in(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _holder_in(descriptor: int) -> LockHolder | None:
    with suppress(*UNREADABLE):
        content = json.loads(os.pread(descriptor, 4096, 0))
        since = datetime.fromisoformat(content["since"]).astimezone(UTC)
        return LockHolder(pid=int(content["pid"]), command=str(content["command"]), since=since)
    return None


def last_decision(path: Path) -> LastDecision | None:
    """Read what the last tick that decided left; nothing when none has."""
    return load(path, _decision_in)


def _decision_in(content: Any) -> LastDecision:
    return LastDecision(
        tick_id=str(content["tick_id"]),
        tick_number=int(content["tick_number"]),
        tick_at=datetime.fromisoformat(content["tick_at"]).astimezone(UTC),
        jobs=tuple(
            JobReasons(
                job_id=int(job["job_id"]),
                job_name=str(job["job_name"]),
                blockers=tuple(map(blocker_from, job["blockers"])),
            )
            for job in content["jobs"]
        ),
    )


def last_tick_at(home: Path, decision: LastDecision | None) -> datetime | None:
    """Return when the last tick was that came to its end."""
    signs = [decision.tick_at] if decision else []
    with suppress(OSError):
        signs.append(datetime.fromtimestamp((home / LAST_TICK).stat().st_mtime, UTC))
    return max(signs, default=None)


def blocker_from(row: Row) -> Blocker:
    """Read a blocker from a row of a table or of the status file."""
    return Blocker(
        blocker=str(row["blocker"]),
        reason=str(row["reason"]),
        waits_for=str(row["waits_for"]),
        since=instant_from(row["since"]),
    )


def newest_probe(
    store: Store, upstream_id: str, folded_through: int
) -> Mapping[str, object] | None:
    """Return the newest probe row of an upstream; nothing when it was never probed.

    Raises:
        StateError: A table cannot be read.
    """
    where = [("upstream_id", "=", upstream_id)]
    tail = [*where, ("tick_number", ">", folded_through)]
    rows = [*store.read("upstream_state", where=where), *store.read(Ledger.PROBES, where=tail)]
    return max(rows, key=lambda row: integer(row["tick_number"]), default=None)


def runs_now(store: Store, *, folded_through: int, only_relevant: bool = False) -> list[Run]:
    """Return the newest row of each intent and attempt, oldest decision first.

    Args:
        store: The tables.
        folded_through: Ledger rows up to this tick are in ``run_state``.
        only_relevant: Leave out, where files and statistics allow it, what ended well long ago.
    """
    questions = questions_of_runs(folded_through, only_relevant=only_relevant)
    return newest_runs(
        row for each in questions for row in store.read(each.table, where=each.where)
    )


def questions_of_runs(folded_through: int, *, only_relevant: bool) -> list[Question]:
    """Return what ``runs_now`` reads."""
    wanted = sorted(status.value for status in OPEN | HOLDING)
    return [
        Question(table="run_state", where=[("run_status", "in", wanted)] if only_relevant else []),
        Question(table=Ledger.RUNS, where=[("tick_number", ">", folded_through)]),
    ]


def newest_runs(rows: Iterable[Row]) -> list[Run]:
    """Return the newest of the given rows of each intent and attempt, oldest decision first."""
    newest: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (str(row["intent_id"]), integer(row["attempt"]))
        if key not in newest or step_order(row) > step_order(newest[key]):
            newest[key] = row
    ordered = sorted(
        newest.values(), key=lambda row: (integer(row["decided_tick"]), step_order(row))
    )
    return [Run.from_row(row) for row in ordered]


def step_order(row: Row) -> tuple[int, int]:
    """Return the place of a row of the ledger of runs among the others."""
    return integer(row["tick_number"]), integer(row["step_number"])


def newest_run_of(store: Store, job_id: int) -> Run | None:
    """Return the run of a job that was decided last, with its newest state."""
    where = [("job_id", "=", job_id)]
    runs = newest_runs(
        [*store.read("run_state", where=where), *store.read(Ledger.RUNS, where=where)]
    )
    return runs[-1] if runs else None


def newest_by_job(runs: Iterable[Run]) -> dict[int, Run]:
    """Return the run of each job that was decided last."""
    return {run.job_id: run for run in runs}


def folded_through(store: Store, decision: LastDecision | None) -> int:
    """Return up to which tick the ledgers are compacted into the current-state tables, at least."""
    where = [("tick_number", ">=", decision.tick_number)] if decision else []
    rows = store.read(Ledger.TICKS, where=where) or store.read(Ledger.TICKS)
    newest = max(rows, key=lambda row: integer(row["tick_number"]), default=None)
    return -1 if newest is None else integer(newest["folded_through"])


def recorded_jobs(store: Store) -> dict[int, str]:
    """Return every job that the controls have or ever had, or a trigger has, by its newest name."""
    triggers = store.read("event_triggers", columns=["job_id", "job_name"])
    names = {integer(str(row["job_id"]).strip()): str(row["job_name"]).strip() for row in triggers}
    controls = store.read(Ledger.CONTROLS, columns=["tick_number", "job_id", "job_name"])
    names |= {
        integer(row["job_id"]): str(row["job_name"])
        for row in sorted(controls, key=lambda row: integer(row["tick_number"]))
    }
    shown = {
        integer(row["trigger_job_id"]): str(row["trigger_job_name"])
        for row in store.read("heartbeat_control", columns=["trigger_job_id", "trigger_job_name"])
    }
    return names | shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """One upstream of one job."""

    sensor_id: str
    upstream_id: str
    job_id: int
    job_name: str
    is_paused: bool


def find_sensor(store: Store, wanted: str, job: str | None = None) -> Sensor:
    """Return the sensor that an id means: its own, or its upstream's in the controls.

    Raises:
        ConfigurationError: No sensor, or more than one, has the id.
    """
    name = wanted.strip()
    rows = _recorded(store, name)
    meant = {key: row for key, row in rows.items() if job is None or _is_job(row, job)}
    if len(meant) > 1:
        listed = " and ".join(sorted(meant))
        raise ConfigurationError(
            f"{len(meant)} sensors have the id '{name}': name one by its own id, {listed}"
            + ("" if job else ", or its job with --job")
        )
    if not meant:
        of = f" of job '{job}'" if job else ""
        known = f"the sensors of that id are {' and '.join(sorted(rows))}" if rows else ""
        raise ConfigurationError(
            f"There is no sensor '{name}'{of}; {known or 'the table sensors has every one by id'}"
        )
    row = next(iter(meant.values()))
    return Sensor(
        sensor_id=str(row["control_id"]),
        upstream_id=str(row["upstream_id"]),
        job_id=integer(row["job_id"]),
        job_name=str(row["job_name"]),
        is_paused=row["job_state"] == "PAUSED",
    )


def _recorded(store: Store, name: str) -> dict[str, Row]:
    """Return the control rows that have an id, as the ledger last recorded them."""
    found = [
        str(row["control_id"])
        for column in ("control_id", "sensor_id")
        for row in store.read(Ledger.CONTROLS, where=[(column, "=", name)])
    ]
    if not found:
        named = (row for row in triggers_as_controls(store) if _is_called(row, name))
        return {str(row["control_id"]): row for row in named}
    rows = store.read(Ledger.CONTROLS, where=[("control_id", "in", sorted(set(found)))])
    newest: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (integer(row["tick_number"]), str(row["change"]))):
        newest[str(row["control_id"])] = row
    return {key: row for key, row in newest.items() if _has_id(row, name)}


def _has_id(row: Row, name: str) -> bool:
    return row["change"] != "removed" and _is_called(row, name)


def _is_called(row: Row, name: str) -> bool:
    return name in (row["control_id"], row["sensor_id"])


def _is_job(row: Row, job: str) -> bool:
    wanted = job.strip()
    if wanted == str(row["job_id"]):
        return True
    return wanted.lower() == str(row["job_name"]).strip().lower()


#: Jobs that Heartbeat never starts; filled from an optional seed.
SCHEDULED_JOBS = "scheduled_jobs"

"""Records what an earlier sensor had passed to jobs, when an upstream is probed for the first time.

Existing data is an event at a first probe. What the earlier sensor had passed to a job is consumed
by a run that stands in the ledger of runs for that job's last one; only what changed later, and
what a job was waiting for, starts a job.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256

from harness.controls.imported_sensors import PROCESSED, UNFINISHED, ImportedSensor
from harness.controls.load import newest_controls
from harness.events.event import ChangeEvent
from harness.sense.probe import ProbeResult
from harness.settle.run_progress import ways_out
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Store, Tick, integer
from harness.store.work_lists import NOTHING_CONSUMED, StateView

log = logging.getLogger(__name__)

#: Who reports such a run.
REPORTED_BY = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOver:
    """The results of a sweep without what was processed, and the runs that consumed it."""

    results: tuple[ProbeResult, ...]
    rows: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one job had processed of one upstream."""

    job_id: int
    job_name: str
    sensor: ImportedSensor
    consumed: Consumed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Control:
    job_id: int
    job_name: str
    sensor: ImportedSensor | None

    def is_news(self, event: ChangeEvent) -> bool:
        """Return whether the job is to be started for a change."""
        if self.sensor is None or self.sensor.status not in PROCESSED:
            return True
        until = self.sensor.processed_until
        # Without both times, existing data counts as processed.
        if until is None or event.snapshot_ts is None:
            return False
        return event.snapshot_ts > until.timestamp() * 1000


def first_probes(results: Iterable[ProbeResult], state: StateView) -> frozenset[str]:
    """Return the upstreams that a sweep has probed for the first time."""
    begun = {each.upstream_id for each in state.upstreams if each.position is not None}
    return frozenset(
        each.upstream_id
        for each in results
        if each.failure is None and each.position is not None and each.upstream_id not in begun
    )


def carry_over(
    results: Sequence[ProbeResult],
    imported: Mapping[str, ImportedSensor],
    state: StateView,
    *,
    tick: Tick,
    store: Store,
) -> CarriedOver:
    """Return what is new, and the runs that have consumed the rest; they have no numbers yet.

    The runs have to be recorded before the results are: a tick that is killed between the two is
    repeated by the next one, and no job starts for what the earlier sensor had passed to it.

    Args:
        results: The results of a sweep.
        imported: How far an earlier sensor had come, by control_id.
        state: The state of this process.
        tick: The present tick.
        store: Has the recorded controls and the runs.

    Raises:
        StateError: A ledger cannot be read.
    """
    first = first_probes(results, state) if imported else frozenset()
    if not first:
        return CarriedOver(results=tuple(results))
    controls = _controls_of(first, imported, store)
    kept: list[ProbeResult] = []
    parts: list[_Part] = []
    for result in results:
        rows = controls.get(result.upstream_id, ())
        news = [each for each in result.events if any(row.is_news(each) for row in rows)]
        kept.append(replace(result, events=tuple(news)) if rows else result)
        parts += _parts(result.upstream_id, rows, news, tick)
    return CarriedOver(results=tuple(kept), rows=tuple(_runs(parts, state, tick, store)))


def _controls_of(
    upstream_ids: frozenset[str], imported: Mapping[str, ImportedSensor], store: Store
) -> Mapping[str, Sequence[_Control]]:
    """Return the control rows of upstreams, those of paused rows included."""
    found: dict[str, list[_Control]] = {}
    for control_id, row in newest_controls(store).items():
        if str(row["upstream_id"]) in upstream_ids:
            control = _Control(
                job_id=integer(row["job_id"]),
                job_name=str(row["job_name"]),
                sensor=imported.get(control_id),
            )
            found.setdefault(str(row["upstream_id"]), []).append(control)
    return found


def _parts(
    upstream_id: str, rows: Iterable[_Control], news: Sequence[ChangeEvent], tick: Tick
) -> Iterable[_Part]:
    for row in rows:
        if row.sensor is None or row.sensor.status not in PROCESSED:
            continue
        waits = any(map(row.is_news, news))
        through = tick.number - 1 if waits else tick.number
        yield _Part(
            job_id=row.job_id,
            job_name=row.job_name,
            sensor=row.sensor,
            consumed=Consumed(
                upstream_id=upstream_id, from_tick=NOTHING_CONSUMED, through_tick=through
            ),
        )


def _runs(parts: Iterable[_Part], state: StateView, tick: Tick, store: Store) -> Iterable[Run]:
    of_jobs: dict[int, list[_Part]] = {}
    for part in parts:
        of_jobs.setdefault(part.job_id, []).append(part)
    followed = {run.job_id: run for run in state.runs}
    where = [("job_id", "in", sorted(of_jobs))]
    started = store.read(Ledger.RUNS, where=where, columns=["job_id"]) if of_jobs else []
    with_runs = {integer(row["job_id"]) for row in started}
    for job_id, own in of_jobs.items():
        if (run := followed.get(job_id)) is not None:
            # It goes on, or holds its job: another run would end that.
            yield _extended(run, own, tick)
        else:
            yield _run(own, tick, may_hold=job_id not in with_runs)


def _extended(run: Run, parts: Sequence[_Part], tick: Tick) -> Run:
    taken = tuple(part.consumed for part in parts)
    replaced = {each.upstream_id for each in taken}
    others = tuple(each for each in run.consumed if each.upstream_id not in replaced)
    # Nothing but what it consumed changes, so it stays as old as it is.
    step = run.step(replace(tick, at=run.recorded_at), run.run_status, REPORTED_BY)
    return replace(step, consumed=(*others, *taken))


def _run(parts: Sequence[_Part], tick: Tick, *, may_hold: bool) -> Run:
    sensors = [part.sensor for part in parts]
    unfinished = [each for each in sensors if each.status in UNFINISHED]
    holds = may_hold and bool(unfinished)
    status = RunStatus.PARKED if holds else RunStatus.SUCCEEDED
    detected = _latest(each.processed_until for each in unfinished if holds) or _latest(
        each.processed_until for each in sensors
    )
    began = _latest(each.job_started_at for each in sensors) or detected or tick.at
    job_id = parts[0].job_id
    # One for each job, whichever upstreams it is about: a tick that was killed is repeated.
    intent_id = sha256(f"{job_id}|import".encode()).hexdigest()[:32]
    log.info("job %s: carried over as %s from an earlier sensor", job_id, status)
    return Run(
        tick_number=tick.number,
        step_number=0,
        # As the earlier sensor published it, and never later than now.
        recorded_at=min(_latest(each.changed_at for each in sensors) or tick.at, tick.at),
        job_id=job_id,
        job_name=parts[0].job_name,
        intent_id=intent_id,
        attempt=1,
        # Nothing is sent to the Jobs API, so that the name of the intent does.
        token=intent_id,
        run_status=status,
        reported_by=REPORTED_BY,
        decided_tick=tick.number,
        decided_at=began,
        # The earlier sensor recorded a start after it was made: a success since the event counts.
        started_at=min(detected or began, began),
        ended_at=None if holds else _latest(each.job_ended_at for each in sensors),
        message=_unknown_end(job_id) if holds else "carried over from an earlier sensor",
        consumed=tuple(part.consumed for part in parts),
        event_count=0,
        event_ids=(),
        parameters="{}",
    )


def _unknown_end(job_id: int) -> str:
    return (
        "an earlier sensor started it and recorded no end: a run that succeeds releases the job;"
        f" else check the job, then {ways_out(job_id)}"
    )


def _latest(instants: Iterable[datetime | None]) -> datetime | None:
    return max((each for each in instants if each is not None), default=None)

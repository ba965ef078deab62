"""An installation with a past to show: jobs and upstreams of a shop, and days of ticks.

The past is played with a fixed seed and written into ledgers on a disk, as the harness writes them.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from harness.events.event import EventRow, Operation, TableFormat
from harness.sense.backoff import BackOff, Failing, save_back_off
from harness.store.public_tables import CONTROL_TABLE
from harness.store.rows import (
    Blocker,
    Consumed,
    ControlChangeRow,
    DecisionRow,
    Ledger,
    ProbeOutcome,
    ProbeRow,
    RecentEvents,
    Run,
    RunStatus,
    TickRow,
)
from harness.store.writer.lock import note_tick
from harness.tick.install import STATE_VERSION
from tests.support.disk_ledgers import create_ledgers

NOW = datetime(2026, 3, 6, 15, 42, tzinfo=UTC)
_DAYS = 7
_TICK = 60
_PAGE = "https://adb-1001.azuredatabricks.net/?o=1001#job/{job}/run/{run}"
_AREAS = ("sales", "stock", "web", "finance", "crm", "logistics", "risk", "ads")
_THINGS = ("orders", "customers", "payments", "clicks", "shipments", "returns", "prices", "stores")
_DEEDS = ("daily-revenue", "churn-features", "stock-forecast", "session-facts", "margin-report")


@dataclass
class Upstream:
    """A table, and how often it changes."""

    name: str
    period: float
    description: str = ""
    source: str = "delta_table"
    #: Seconds before now since when it has been silent, or unreadable.
    silent: float = 0
    unreadable: str = ""
    arrivals: list[tuple[int, int]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return f"{self.source}:{self.name}:ab5c14a4"


@dataclass
class Job:
    """A job, its dependencies as (upstream, is required), and how long its runs take."""

    id: int
    name: str
    needs: list[tuple[int, bool]]
    seconds: float
    fails: float = 0.0
    ends_failed: str = ""
    is_paused: bool = False


@dataclass
class World:
    """All of it."""

    upstreams: list[Upstream]
    jobs: list[Job]


def shop() -> World:
    """A dozen jobs, among them one of each state."""
    hour = 3600.0
    upstreams = [
        Upstream("sales.orders", 0.5 * hour, "Orders of all shops, one row per line"),
        Upstream("sales.customers", 6 * hour, "Customers as the CRM exports them"),
        Upstream("finance.payments", hour, "Payments and refunds"),
        Upstream("web.clicks", 0.25 * hour, "Page views and clicks", "kafka"),
        Upstream("stock.levels", 2 * hour, "Stock per store and article", silent=11 * hour),
        Upstream("logistics.shipments", 3 * hour, "Shipments of the carriers", "trigger_file"),
        Upstream(
            "ZC_SALES_DELTA",
            24 * hour,
            "Nightly chain of SAP BW",
            "sap_bw",
            unreadable=(
                "The system ERP cannot be reached: connection timed out after 10 s;"
                " check host and port of connections.sap.ERP"
            ),
        ),
        Upstream("crm.tickets", 1.5 * hour, "Support tickets", "jdbc"),
        Upstream("ref.exchange_rates", 24 * hour, "Rates of the central bank", "file"),
    ]
    jobs = [
        Job(501, "daily-revenue", [(0, True), (2, True), (8, False)], 540),
        Job(502, "session-facts", [(3, True)], 300),
        Job(503, "churn-features", [(1, True), (7, True), (3, False)], 1500, fails=0.1),
        Job(
            504,
            "stock-forecast",
            [(4, True), (0, True)],
            2400,
            ends_failed=(
                "Task forecast failed: SparkException: Job aborted due to stage failure: Task 3 in"
                " stage 12.0 failed 4 times: java.lang.OutOfMemoryError: Java heap space"
            ),
        ),
        Job(505, "margin-report", [(0, True), (6, True)], 900),
        Job(506, "delivery-times", [(5, True)], 420),
        Job(507, "fraud-scores", [(2, True), (3, True)], 660),
        Job(508, "campaign-attribution", [(3, True), (0, False)], 1200, fails=0.04),
        Job(509, "finance-close", [(2, True), (8, True)], 3000),
        Job(510, "customer-360", [(1, True), (0, False), (7, False)], 1800),
        Job(511, "legacy-export", [(0, True)], 600, is_paused=True),
        Job(512, "ticket-routing", [(7, True)], 200, fails=0.05),
    ]
    return World(upstreams, jobs)


def many(count: int) -> World:
    """So many jobs on as many upstreams, most of them in small groups, some on a shared table."""
    chance = random.Random(7)
    upstreams = [
        Upstream(
            f"{_AREAS[number % 8]}.{_THINGS[number // 8 % 8]}_{number:04}",
            chance.choice((1800, 3600, 3600, 14_400, 86_400)),
            f"{_THINGS[number // 8 % 8].capitalize()} of the {_AREAS[number % 8]} system",
            silent=chance.choice((0,) * 60 + (200_000,)),
        )
        for number in range(count)
    ]
    jobs = []
    for number in range(count):
        group = number // 6 * 6
        near = [
            min(count - 1, group + chance.randrange(6)) for _ in range(chance.choice((1, 2, 3)))
        ]
        shared = [chance.randrange(3)] if number % 97 == 0 else []
        jobs.append(
            Job(
                100_000 + number,
                f"{_AREAS[number % 8]}-{_DEEDS[number % 5]}-{number:04}",
                [
                    (each, at == 0 or chance.random() < 0.8)
                    for at, each in enumerate({*near, *shared})
                ],
                chance.uniform(60, 2400),
                fails=0.02,
                ends_failed="The cluster was terminated: CLOUD_PROVIDER_LAUNCH_FAILURE"
                if number % 83 == 0
                else "",
                is_paused=number % 41 == 0,
            )
        )
    return World(upstreams, jobs)


def write(world: World, home: Path, *, now: datetime = NOW, days: float = _DAYS) -> None:
    """Write the past of a world into a state directory that commands can read."""
    _Past(world, now, days).write(home)


class _Past:
    def __init__(self, world: World, now: datetime, days: float) -> None:
        self._world = world
        self._chance = random.Random(42)
        self._now = now
        self._began = now - timedelta(days=days)
        self._last = int(days * 86_400 / _TICK)
        self._decisions: dict[int, list[DecisionRow]] = defaultdict(list)
        self._runs: list[Run] = []
        self._starts: dict[int, int] = defaultdict(int)
        self._run_id = 874_000_000_000

    def _at(self, tick: float) -> datetime:
        return self._began + timedelta(seconds=tick * _TICK)

    def write(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        for upstream in self._world.upstreams:
            upstream.arrivals = [*self._arrivals_of(upstream)]
        for job in self._world.jobs:
            self._play(job)
        store = create_ledgers(home / "warehouse")
        store.append(Ledger.TICKS, self._ticks())
        store.append(Ledger.CONTROLS, [*self._controls()])
        store.append(Ledger.PROBES, sorted(self._probes(), key=lambda row: row.tick_number))
        store.append(Ledger.EVENTS, sorted(self._events(), key=lambda row: row.tick_number))
        store.append(Ledger.RUNS, sorted(self._runs, key=lambda row: row.tick_number))
        rows = [row for rows in self._decisions.values() for row in rows]
        store.append(Ledger.DECISIONS, sorted(rows, key=lambda row: row.tick_number))
        self._compact(home)
        self._write_public(home)
        version = {"state_version": STATE_VERSION, "models": "", "with_triggers": False}
        (home / "version.json").write_text(json.dumps(version))
        (home / "status.json").write_text(json.dumps(self._status(), default=str))
        save_back_off(home / "back_off.json", BackOff(failing=self._failing()), "")
        note_tick(home, self._now - timedelta(seconds=20))

    def _arrivals_of(self, upstream: Upstream) -> Iterator[tuple[int, int]]:
        at = upstream.period * self._chance.random()
        end = self._last * _TICK - upstream.silent
        end -= 26_000 if upstream.unreadable else 0
        while at < end:
            yield int(at // _TICK) + 1, self._chance.choice((1, 1, 1, 2, 3))
            at += upstream.period * self._chance.uniform(0.8, 1.25)

    def _play(self, job: Job) -> None:
        needs = [(self._world.upstreams[number], hard) for number, hard in job.needs]
        found = {upstream.id: {tick for tick, _ in upstream.arrivals} for upstream, _ in needs}
        news = sorted(set().union(*found.values()))
        consumed = {upstream.id: 0 for upstream, _ in needs}
        fresh: dict[str, int] = {}
        free = 0
        for tick in news:
            for upstream, _ in needs:
                if tick in found[upstream.id]:
                    fresh[upstream.id] = tick
            hard = [upstream.id for upstream, is_hard in needs if is_hard]
            if job.is_paused or not all(each in fresh for each in hard):
                self._waits(job, tick, needs, fresh)
                continue
            start = max(tick, free)
            if start > self._last:
                break
            is_last = start + 3 * job.seconds / _TICK > self._last
            fails = bool(job.ends_failed and start > self._last * 0.93)
            end = self._run(job, start, dict(fresh), consumed, is_failing=fails)
            consumed.update(fresh)
            fresh = {}
            free = end
            if fails or (is_last and end > self._last):
                break
            self._waits(job, end, needs, fresh)

    def _waits(
        self, job: Job, tick: int, needs: Sequence[tuple[Upstream, bool]], fresh: dict[str, int]
    ) -> None:
        if tick > self._last:
            return
        blockers = [
            Blocker(
                blocker="waiting_for_required_event",
                reason=f"its hard dependency {upstream.name} has nothing new since its last event"
                " was taken",
                waits_for=f"a new data-change event of {upstream.name}",
                since=self._at(tick),
            )
            for upstream, hard in needs
            if hard and upstream.id not in fresh
        ]
        if job.is_paused:
            blockers = [_blocker("job_paused", "all its rows are PAUSED", "UNPAUSED", self._at(0))]
        self._decide(job, tick, *blockers)

    def _decide(self, job: Job, tick: int, *blockers: Blocker) -> None:
        rows = self._decisions[job.id]
        if rows and [b.reason for b in rows[-1].blockers] == [b.reason for b in blockers]:
            return
        rows.append(
            DecisionRow(
                tick_number=tick,
                recorded_at=self._at(tick),
                job_id=job.id,
                job_name=job.name,
                blockers=tuple(blockers),
            )
        )

    def _run(
        self,
        job: Job,
        start: int,
        fresh: dict[str, int],
        consumed: dict[str, int],
        *,
        is_failing: bool,
    ) -> int:
        self._run_id += self._chance.randrange(1, 5000)
        self._starts[start] += 1
        lasts = max(1, round(job.seconds * self._chance.uniform(0.7, 1.5) / _TICK))
        end = start + lasts
        first = Run(
            tick_number=start,
            step_number=1,
            recorded_at=self._at(start),
            job_id=job.id,
            job_name=job.name,
            intent_id=f"{job.id}-{start}",
            attempt=1,
            token=f"token-{job.id}-{start}",
            run_status=RunStatus.INTENDED,
            reported_by="decision",
            decided_tick=start,
            decided_at=self._at(start),
            consumed=tuple(
                Consumed(upstream_id=each, from_tick=consumed[each], through_tick=tick)
                for each, tick in fresh.items()
            ),
            event_count=len(fresh) + self._chance.randrange(3),
            event_ids=(),
            parameters="{}",
        )
        page = _PAGE.format(job=job.id, run=self._run_id)
        known = {"run_id": self._run_id, "run_page_url": page}
        started = replace(
            first, step_number=2, run_status=RunStatus.STARTED, started_at=self._at(start), **known
        )
        self._runs += [first, started]
        goes_on = f"its run {self._run_id} goes on"
        self._decide(job, start)
        self._decide(
            job, start + 1, _blocker("run_in_progress", goes_on, "its end", self._at(start))
        )
        has_failed = is_failing or self._chance.random() < job.fails
        if end <= self._last:
            status = RunStatus.FAILED if has_failed else RunStatus.SUCCEEDED
            message = (
                (job.ends_failed or "Task load failed with exit code 1") if has_failed else None
            )
            self._runs.append(
                replace(
                    started,
                    tick_number=end,
                    step_number=1,
                    recorded_at=self._at(end),
                    run_status=status,
                    ended_at=self._at(end),
                    message=message,
                    reported_by="poll",
                )
            )
            if has_failed:
                reason = f"its last run {self._run_id} ended FAILED: {message}"
                held = _blocker("last_run_failed", reason, "a successful run", self._at(end))
                self._decide(job, end, held)
            if has_failed and not is_failing:
                again = replace(
                    started,
                    attempt=2,
                    run_id=self._run_id + 1,
                    run_page_url=_PAGE.format(job=job.id, run=self._run_id + 1),
                    started_at=self._at(end + 9),
                    ended_at=self._at(end + 9 + lasts),
                    decided_at=self._at(end + 9),
                    tick_number=end + 9 + lasts,
                    recorded_at=self._at(end + 9 + lasts),
                    run_status=RunStatus.SUCCEEDED,
                )
                requeued = replace(
                    self._runs[-1],
                    tick_number=end + 9,
                    recorded_at=self._at(end + 9),
                    run_status=RunStatus.RETRY_REQUESTED,
                )
                self._runs += [requeued, again]
                return end + 9 + lasts
        return end

    def _ticks(self) -> list[TickRow]:
        found: dict[int, int] = defaultdict(int)
        for upstream in self._world.upstreams:
            for tick, count in upstream.arrivals:
                found[tick] += count
        worth = sorted({*found, *self._starts, 1, self._last})
        return [
            TickRow(
                tick_number=tick,
                tick_id=f"{tick}-x",
                tick_at=self._at(tick),
                sensed_count=len(self._world.upstreams),
                event_count=found[tick],
                failed_look_count=sum(bool(each.unreadable) for each in self._world.upstreams)
                if tick > self._last - 400
                else 0,
                settled_count=0,
                started_count=self._starts[tick],
                folded_through=self._last,
                seconds=0.4,
            )
            for tick in worth
        ]

    def _controls(self) -> Iterator[ControlChangeRow]:
        for job in self._world.jobs:
            for number, is_required in job.needs:
                upstream = self._world.upstreams[number]
                yield ControlChangeRow(
                    tick_number=1,
                    recorded_at=self._began,
                    control_id=f"{upstream.name}_{job.id}",
                    change="added",
                    upstream_id=upstream.id,
                    sensor_source=upstream.source,
                    sensor_id=upstream.name,
                    sensor_read_type="streaming",
                    asset_description=upstream.description or None,
                    upstream_key=None,
                    preprocess_query=None,
                    job_id=job.id,
                    job_name=job.name,
                    job_state="PAUSED" if job.is_paused else "UNPAUSED",
                    dependency_flag="TRUE" if is_required else "FALSE",
                )

    def _probes(self) -> Iterator[ProbeRow]:
        for upstream in self._world.upstreams:
            newest = None
            for tick, count in upstream.arrivals:
                newest = tick
                yield ProbeRow(
                    tick_number=tick,
                    recorded_at=self._at(tick),
                    upstream_id=upstream.id,
                    outcome=ProbeOutcome.FOUND,
                    reason=None,
                    failing_since=None,
                    position="{}",
                    upstream_value=None,
                    latest_event_tick=tick,
                    latest_event_at=self._at(tick),
                    recent_events=(
                        RecentEvents(tick_number=tick, event_at=self._at(tick), event_count=count),
                    ),
                )
            if upstream.unreadable:
                yield ProbeRow(
                    tick_number=self._last - 400,
                    recorded_at=self._at(self._last - 400),
                    upstream_id=upstream.id,
                    outcome=ProbeOutcome.FAILED,
                    reason=upstream.unreadable,
                    failing_since=self._at(self._last - 400),
                    position="{}",
                    upstream_value=None,
                    latest_event_tick=newest,
                    latest_event_at=None if newest is None else self._at(newest),
                    recent_events=(),
                )

    def _events(self) -> Iterator[EventRow]:
        for upstream in self._world.upstreams:
            for number, (tick, count) in enumerate(upstream.arrivals):
                for each in range(count):
                    snapshot = 40 + 4 * number + each
                    at = int(self._at(tick).timestamp() * 1000)
                    yield EventRow(
                        tick_number=tick,
                        event_ts=at,
                        event_id=f"{upstream.name}-{snapshot}",
                        upstream_id=upstream.id,
                        table=upstream.name,
                        partition=(f"{self._at(tick):%Y-%m-%d}",) if number % 3 else None,
                        snapshot_id=str(snapshot),
                        snapshot_ts=at - 31_000,
                        prev_snapshot_id=str(snapshot - 1),
                        table_format=TableFormat.DELTA,
                        operation_type=(Operation.APPEND, Operation.UPDATE)[number % 5 == 4],
                        tags={"rows_written": str(1000 + 37 * snapshot)},
                        change_id=f"{upstream.name}-{snapshot}",
                    )

    def _compact(self, home: Path) -> None:
        """Write what compacting leaves: the newest row of each run."""
        folder = home / "warehouse" / "heartbeat.db"
        newest = {(row.intent_id, row.attempt): row for row in self._runs}
        schema = pa.schema(DeltaTable(folder / Ledger.RUNS).schema().to_arrow())
        rows = [asdict(row) for row in newest.values() if row.is_open or row.holds_job]
        write_deltalake(folder / "run_state", pa.Table.from_pylist(rows, schema=schema))

    def _write_public(self, home: Path) -> None:
        rows = [
            dict.fromkeys(CONTROL_TABLE.columns)
            | {
                "sensor_source": row.sensor_source,
                "sensor_id": row.sensor_id,
                "asset_description": row.asset_description,
                "trigger_job_id": str(row.job_id),
                "trigger_job_name": row.job_name,
                "job_state": row.job_state,
                "dependency_flag": row.dependency_flag,
            }
            for row in self._controls()
        ]
        schema = pa.schema([(name, pa.string()) for name in CONTROL_TABLE.columns])
        folder = home / "warehouse" / "heartbeat.db" / "heartbeat_control"
        write_deltalake(folder, pa.Table.from_pylist(rows, schema=schema))

    def _status(self) -> dict[str, object]:
        return {
            "tick_id": f"{self._last}-x",
            "tick_number": self._last,
            "tick_at": self._at(self._last).isoformat(),
            "jobs": [
                {
                    "job_id": job.id,
                    "job_name": job.name,
                    "blockers": [
                        {
                            "blocker": each.blocker,
                            "reason": each.reason,
                            "waits_for": each.waits_for,
                            "since": each.since and each.since.isoformat(),
                        }
                        for rows in [self._decisions.get(job.id)]
                        for each in (rows[-1].blockers if rows else ())
                    ],
                }
                for job in self._world.jobs
            ],
        }

    def _failing(self) -> dict[str, Failing]:
        return {
            each.id: Failing(
                upstream_id=each.id,
                reason=each.unreadable,
                failed_looks=26,
                since=self._at(self._last - 400),
                failed_at=self._at(self._last - 3),
                source=each.source,
            )
            for each in self._world.upstreams
            if each.unreadable
        }


def _blocker(name: str, reason: str, waits_for: str, since: datetime) -> Blocker:
    return Blocker(blocker=name, reason=reason, waits_for=waits_for, since=since)

"""The machine on which Heartbeat runs: the real engine and steps, in processes that come and go.

Real are the tick, every step, the inbox, the checkpoint and the client with its SDK. In memory are
the ledgers, the models, the upstreams and the workspace.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import cast

from harness.config.load import Settings, load_settings
from harness.config.sources import FirstSight
from harness.context import Context
from harness.controls.header import COLUMNS
from harness.errors import DecideError, LockedError, StateError
from harness.events.event import EventRow
from harness.fire.submit import Firing
from harness.platform.databricks.api import JobsApi
from harness.platform.sql.port import Row
from harness.record.correlate import REGISTERED
from harness.store.public_tables import PublicTable
from harness.store.queries import step_order
from harness.store.rows import FencingToken, Ledger, LedgerRow
from harness.store.state_dir import StateDir
from harness.store.work_lists import Upstream
from harness.store.writer.fencing import FencedStore, HeldLease
from harness.store.writer.lease import Lease
from harness.tick.checkpoint import load_from_models, load_state
from harness.tick.engine import Engine, TickOptions
from harness.tick.report import TickReport
from harness.toolkit.consume import acquire
from tests.simulation import consumers, policies, triggers
from tests.simulation.fate import Fate, OneAfterTheOther
from tests.simulation.models import CONTROLS, POLICIES, SCHEDULED, TRIGGERS, Models
from tests.simulation.policies import Policy
from tests.simulation.sources import ProbePool, Sources
from tests.support.background import Background
from tests.support.fake_clock import FakeClock
from tests.support.leases import MemoryLeaseTable
from tests.support.memory_store import MemoryStore

LedgerRowAsRead = dict[str, object]
#: By job.
Reasons = Mapping[int, tuple[str, ...]]
_CONFIGURATION = "jobs: {target: databricks}\n"
#: Short, so that the successor of a killed process need not wait for most of a history.
LEASE_SECONDS = 20


class SkewedClock:
    """The machine's clock: it goes as the world's does, and may be wrong by some time."""

    def __init__(self, world: FakeClock) -> None:
        self._world = world
        self.ahead = timedelta()

    def now(self) -> datetime:
        return self._world.now() + self.ahead

    def right(self) -> datetime:
        """Return the instant by the clocks of others."""
        return self._world.now()

    def sleep(self, seconds: float) -> None:
        self._world.sleep(seconds)


class Ledgers(MemoryStore):
    """The ledgers, on a disk that fails at times: before a commit, or after it has landed."""

    def __init__(self, fate: Fate, world_clock: FakeClock) -> None:
        super().__init__()
        self._fate = fate
        self._clock = world_clock
        #: When each step of a run was really recorded, whatever the machine's clock showed.
        self.instants: list[datetime] = []
        #: The same of each event.
        self.seen: dict[object, datetime] = {}
        #: How many of a thousand commits fail.
        self.faults = 0
        #: The retry policies that were ever in force, and after how many steps of runs.
        self.fed: list[tuple[int, Sequence[Policy]]] = []
        #: How often several ticks became public together.
        self.coalesced = 0

    def feed_policies(self) -> None:
        """Record which retry policies are in force from now on."""
        lines = [Policy.from_cells(row) for row in self.read(POLICIES)]
        self.fed.append((len(self.read(Ledger.RUNS)), lines))

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken | None = None
    ) -> None:
        if not rows:
            return
        self._fate.moment(f"before commit {ledger}")
        self._fail(ledger)
        commits = len(self.commits)
        super().append(ledger, rows, stamp)
        if ledger is Ledger.RUNS and len(self.commits) > commits:
            self.instants += [self._clock.now()] * len(rows)
        self.coalesced += ledger is Ledger.TICKS and len(rows) > 1
        if ledger is Ledger.EVENTS:
            self.seen.update(
                (row.event_id, self._clock.now()) for row in cast(Sequence[EventRow], rows)
            )
        self._fate.moment(f"after commit {ledger}")
        self._fail(ledger)

    def fold(self, through: int) -> None:
        """Put the newest rows up to a tick into the tables of the current state."""
        probes: dict[object, LedgerRowAsRead] = {}
        for row in self._up_to(Ledger.PROBES, through):
            probes[row["upstream_id"]] = row
        attempts: dict[object, LedgerRowAsRead] = {}
        consumed: dict[object, LedgerRowAsRead] = {}
        for row in sorted(self._up_to(Ledger.RUNS, through), key=step_order):
            attempts[row["intent_id"], row["attempt"]] = row
            for each in cast(list[LedgerRowAsRead], row["consumed"]):
                consumed[row["job_id"], each["upstream_id"]] = {**row, **each}
        self.replace("upstream_state", [*probes.values()])
        self.replace("run_state", [*attempts.values()])
        self.replace("dependency_state", [*consumed.values()])

    def _up_to(self, ledger: Ledger, tick: int) -> list[LedgerRowAsRead]:
        return self.read(ledger, where=[("tick_number", "<=", tick)])

    def fingerprint(self, table: str) -> str | None:
        if table == Ledger.RUNS:
            self._fate.moment("at the state file")
        return super().fingerprint(table)

    def _fail(self, ledger: Ledger) -> None:
        if self._fate.falls(self.faults / 1000):
            raise StateError(f"The ledger {ledger} cannot be written: the disk has a fault")


def _controls_in(project: Path) -> list[dict[str, str]]:
    with (project / "seeds" / f"{CONTROLS}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


#: The seeds that are played, and what reads the CSV of each.
_SEEDS = {
    CONTROLS: _controls_in,
    POLICIES: policies.read,
    SCHEDULED: consumers.read,
    TRIGGERS: triggers.read,
}


class Dbt:
    """Builds nothing but the seed: the models are functions of the ledgers here."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def build(self, selector: str, variables: Mapping[str, object] | None = None) -> None:
        self._machine.fate.moment(f"before dbt {selector}")
        if self._machine.fate.falls(self._machine.dbt_faults / 1000):
            raise DecideError("dbt build: the simulation lets it fail")
        numbers = {
            name: value for name, value in (variables or {}).items() if isinstance(value, int)
        }
        models = self._machine.models
        models.starts_per_tick = numbers.get("starts_per_tick", models.starts_per_tick)
        if selector == "fold":
            self._machine.store.fold(numbers["folded_through"])
        if selector == "tail":
            models.folded_through = numbers["folded_through"]

    def load_seeds(self, names: Sequence[str]) -> None:
        self._machine.fate.moment("before dbt seed")
        accepted = self._machine.home.accepted
        for name in _SEEDS.keys() & {*names}:
            self._machine.store.replace(name, _SEEDS[name](accepted))
        self._machine.store.feed_policies()
        self._machine.fate.moment("after dbt seed")

    def build_everything(self, *, with_triggers: bool) -> None:
        self.load_seeds([*_SEEDS])
        self._machine.models.starts_per_tick = 1


class _Sql:
    """Answers the one query that is in SQL: which ticks have come to their end."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def run(self, statement: str) -> list[Row]:
        rows = self._store.read(Ledger.TICKS)
        newest = max(rows, key=lambda row: int(str(row["tick_number"])), default={})
        ended = {row["tick_number"] for row in rows}
        probed = [
            row
            for row in self._store.read(Ledger.EVENTS)
            if not str(row["upstream_id"]).startswith(REGISTERED)
        ]
        return [
            {
                "ended": newest.get("tick_number"),
                "folded": newest.get("folded_through"),
                "tick_at": newest.get("tick_at"),
                "without_end": {row["tick_number"] for row in probed} - ended,
            }
        ]


class _Process(Context):
    """The wiring of one process of the machine."""

    def __init__(self, machine: "Machine") -> None:
        super().__init__(machine.settings, {}, machine.clock)
        self._machine = machine
        parts = {
            "store": machine.store,
            "dbt": Dbt(machine),
            "sql": _Sql(machine.store),
            "probe_pool": machine.wiring.probe_pool(machine.sources, machine.clock),
            "jobs": machine.wiring.jobs(machine.jobs),
        }
        self.__dict__.update(parts)
        self.publishes_aside = machine.publishes_aside
        if machine.wiring.turn:
            self.lock = machine.lease()
            self.__dict__["store"] = FencedStore(machine.store, machine.wiring.turn(self.lock))

    def rows(self, relation: str) -> list[dict[str, object]]:
        return self._machine.models.rows(relation)

    def publishing(self) -> Executor:
        if not self.publishes_aside:
            return OneAfterTheOther()
        background = Background()
        self._machine.fate.beside = background.advance
        return background

    def show(self, tables: Sequence[PublicTable]) -> None:
        for table in tables:
            self._machine.fate.moment(f"before show {table.name}")
            if self._machine.fate.falls(self._machine.dbt_faults / 1000):
                raise StateError("show: the simulation lets it fail")

    def fill(self, table: str, model: str) -> None:
        self._machine.fate.moment(f"before fill {table}")
        if self._machine.fate.falls(self._machine.dbt_faults / 1000):
            raise StateError("fill: the simulation lets it fail")

    def forget_jobs(self) -> None: ...

    @property
    def firing(self) -> Firing:
        return replace(super().firing, pool=OneAfterTheOther)

    def crash_point(self, name: str) -> None:
        self._machine.fate.moment(f"at {name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How the parts are put together; the negative controls put a wrong one in."""

    jobs: Callable[[JobsApi], JobsApi] = lambda jobs: jobs
    probe_pool: Callable[[Sources, SkewedClock], object] = lambda sources, clock: ProbePool(
        sources, clock.right
    )
    store: Callable[[Fate, FakeClock], Ledgers] = Ledgers
    models: Callable[[MemoryStore], Models] = Models
    acquire: consumers.Acquire = acquire
    #: Processes take turns by a lease, which may be lost; without it, there is one at a time.
    turn: Callable[[Lease], HeldLease] | None = None


@cache
def _settings() -> Settings:
    """Read a configuration once for all histories; each puts its own folders in."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "heartbeat.yml").write_text(_CONFIGURATION)
        return load_settings(Path(folder), {})


class Machine:
    """One state directory and one project folder, and the processes that work on them."""

    def __init__(
        self, folder: Path, *, jobs: JobsApi, fate: Fate, world_clock: FakeClock, wiring: Wiring
    ) -> None:
        self.fate, self.wiring, self.jobs = fate, wiring, jobs
        self.clock = SkewedClock(world_clock)
        self.store = wiring.store(fate, world_clock)
        self.models = wiring.models(self.store)
        self.sources = Sources()
        self._lease_table = MemoryLeaseTable()
        self.dbt_faults = 0
        #: Processes publish while they tick on.
        self.publishes_aside = False
        #: Most ticks are followed by the next one without a pause in which they would be published.
        self.is_pressed = False
        #: Why each job waited at the end of a tick, by its number and its instant: a process that
        #: wakes up goes on with a number that another one has used meanwhile.
        self._reasons: dict[tuple[int, datetime], list[Reasons]] = {}
        self._judged = 0
        project, home = folder / "project", folder / "home"
        (project / "seeds").mkdir(parents=True)
        home.mkdir()
        # Else random, and tokens with it: no history could be repeated.
        (home / "installation").write_text("simulated")
        file = project / "heartbeat.yml"
        file.write_text(_CONFIGURATION)
        self.settings = replace(_settings(), project=project, home=home, file=file)
        self.home = StateDir(folder=home)
        self.controls_file = project / "seeds" / "heartbeat_controls.csv"
        self._process: tuple[_Process, Engine] | None = None
        #: When the newest tick began, by the machine's own clock.
        self.ticked_at = self.clock.now()

    def configure(self, *, starts_per_tick: int, first_sight: FirstSight) -> None:
        """Set what an operator may set."""
        jobs = self.settings.jobs.model_copy(update={"starts_per_tick": starts_per_tick})
        sensing = self.settings.sensing.model_copy(update={"first_sight": first_sight})
        self.settings = replace(self.settings, jobs=jobs, sensing=sensing)

    def write_controls(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Save the CSV as an operator does."""
        with self.controls_file.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)

    @property
    def has_news(self) -> bool:
        """True when the process that is there would tick for the inbox at once."""
        return self._process is not None and self._process[1].has_news

    def tick(self, *, allow_mass_removal: bool = False, is_for_inbox: bool = False) -> TickReport:
        """Do one tick, in the process that is there or in a fresh one."""
        if self._process is None:
            process = _Process(self)
            if self.wiring.turn:
                process.lock.__enter__()
            self._process = process, Engine(process)
        process, engine = self._process
        self.ticked_at = self.clock.now()
        options = TickOptions(allow_mass_removal=allow_mass_removal, is_for_inbox=is_for_inbox)
        try:
            report = engine.tick(options)
        except LockedError:
            if self._process == (process, engine):
                self._process = None
            raise
        if self.publishes_aside and "decide" not in report.skipped:
            number = report.tick.number
            # Until the ticks before it are public, what they started counts for the limit, too.
            reasons = [self._reasons_now(), self._reasons_now(ended=number - 1)]
            self._reasons.setdefault((number, report.tick.at), []).extend(reasons)
        if not self.is_pressed:
            engine.publish()
        return report

    def pass_time(self, parts: int) -> None:
        """Let the background of the process that is there come some parts farther between ticks."""
        if self._process is None or not self.publishes_aside:
            return
        for _ in range(parts):
            self.fate.beside()
        self._process[1].collect()
        if parts:
            self._process[1].publish()

    def finish(self) -> None:
        """Have the process that is there publish everything."""
        if self._process is not None:
            self._process[1].finish()

    def _reasons_now(self, *, ended: int = -1) -> Reasons:
        self.models.ended_through = ended
        reasons: dict[int, tuple[str, ...]] = {}
        for row in self.models.rows("job_blockers"):
            job_id = int(str(row["job_id"]))
            reasons[job_id] = (*reasons.get(job_id, ()), str(row["reason"]))
        self.models.ended_through = -1
        return reasons

    def untrue_reasons(self) -> list[str]:
        """Return the decisions made public since the last call that differ from how a tick ended."""
        rows = self.store.read(Ledger.DECISIONS)
        new, self._judged = rows[self._judged :], len(rows)
        untrue = []
        for row in new:
            told = tuple(each["reason"] for each in cast(list[LedgerRowAsRead], row["blockers"]))
            true = [
                reasons.get(int(str(row["job_id"])), ())
                for reasons in self._reasons.get(_tick_of(row), ())
            ]
            if true and told not in true:
                untrue.append(
                    f"job {row['job_id']} is said to wait for {told} at the end of tick"
                    f" {row['tick_number']}, not for {' or '.join(map(str, true))}"
                )
        return untrue

    def forgotten_starts(self) -> list[str]:
        """Return the jobs that may start, where nothing makes the process decide again."""
        state = self._process[1]._state if self._process else None
        if state is None or state.must_decide or state.must_publish or state.is_recovering:
            return []
        return [f"job {row['job_id']}" for row in self.models.rows("trigger_set")]

    def lease(self) -> Lease:
        """Return a lease that a process can take."""
        return Lease(
            self._lease_table,
            self.store,
            command="tick",
            clock=self.clock,
            seconds=LEASE_SECONDS,
        )

    def freeze(self, *, is_noticed: bool) -> None:
        """Let the process stand still, so that others go on in its place.

        Args:
            is_noticed: Its clock will show it; else the others take over because theirs is wrong.
        """
        self._process = None
        if not is_noticed:
            self._lease_table.expire()

    def end_process(self, *, is_killed: bool = False) -> None:
        """Drop all that a process holds; one that is killed releases nothing."""
        if self._process and not is_killed:
            self._process[0].lock.__exit__(None, None, None)
        self._process = None

    def lose_state_file(self, *, half: bool) -> None:
        """Take the checkpoint away, or leave half of it."""
        if half and self.home.state.exists():
            self.home.state.write_text(self.home.state.read_text()[:200])
        else:
            self.home.state.unlink(missing_ok=True)

    def forgetfulness(self) -> list[str]:
        """Return how the checkpoint differs from the models, which are the truth."""
        state = load_state(self.home.state, self.store)
        if state is None:
            return []
        truth = load_from_models(_Process(self))
        reported = {each.upstream_id: each for each in state.upstreams}
        true = {each.upstream_id: each for each in truth.upstreams}
        differing = [
            f"{name}: the state file has {_sorted(reported.get(name))}, the models {_sorted(true.get(name))}"
            for name in sorted({*reported, *true})
            if _sorted(reported.get(name)) != _sorted(true.get(name))
        ]
        if dict(state.registered) != dict(truth.registered):
            differing.append(f"the state file has {state.registered}, not {truth.registered}")
        # What is to be published is decided first, and reads them again.
        if not state.must_publish and state.retries != truth.retries:
            differing.append(f"the state file has {state.retries}, the models {truth.retries}")
        runs = {run.job_id: run for run in state.runs}
        true_runs = {run.job_id: run for run in truth.runs}
        return differing + [
            f"job {job_id}: the state file has {runs.get(job_id)}, the models {true_runs.get(job_id)}"
            for job_id in sorted({*runs, *true_runs})
            if runs.get(job_id) != true_runs.get(job_id)
        ]


def _tick_of(row: LedgerRowAsRead) -> tuple[int, datetime]:
    return int(str(row["tick_number"])), cast(datetime, row["recorded_at"])


def _sorted(upstream: Upstream | None) -> Upstream | None:
    """The order of what jobs have consumed means nothing."""
    if upstream is None:
        return None
    return replace(upstream, taken=tuple(sorted(upstream.taken, key=lambda each: each.job_id)))

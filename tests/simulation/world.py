"""The world round the machine: jobs, upstreams, a workspace, and people with a CSV and a keyboard."""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness import inbox
from harness.clock import FakeClock
from harness.inbox import Message, MessageKind
from harness.jobs.local.store import RunRow
from harness.jobs.token import TOKEN_PARAMETER
from harness.sense.types import FirstSight
from harness.tables import HOLDING, OPEN, Ledger
from tests.simulation import policies
from tests.simulation.fate import Fate
from tests.simulation.machine import Machine, Wiring
from tests.simulation.sources import Source
from tests.simulation.trouble import Trouble
from tests.simulation.workspace import Workspace, client_of

BEGINNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
_FIRST_JOB = 2**53 + 1


@dataclass(slots=True)
class Line:
    """One line of the controls CSV, as the operator has it at the moment."""

    sensor_id: str
    job_id: int
    flag: str
    state: str = "UNPAUSED"
    is_there: bool = True

    def cells(self) -> Mapping[str, str]:
        return {
            "sensor_source": "delta_table",
            "sensor_id": self.sensor_id,
            "sensor_read_type": "streaming",
            "asset_description": "",
            "upstream_key": "",
            "preprocess_query": "",
            "trigger_job_id": str(self.job_id),
            "trigger_job_name": f"job-{self.job_id}",
            "job_state": self.state,
            "dependency_flag": self.flag,
        }


class World:
    """Jobs, upstreams and people, and the machine among them.

    Args:
        folder: An empty folder of this history.
        chance: Draws what is there.
        note: Writes a line of the history down.
        wiring: How the machine is put together.
    """

    def __init__(
        self, folder: Path, chance: random.Random, note: Callable[[str], None], wiring: Wiring
    ) -> None:
        self.note = note
        self.clock = FakeClock(BEGINNING)
        self.fate = Fate(note)
        self.workspace = Workspace(
            clock=self.clock, fate=self.fate, chance=random.Random(chance.random())
        )
        self.machine = Machine(
            folder,
            jobs=client_of(self.workspace),
            fate=self.fate,
            world_clock=self.clock,
            wiring=wiring,
        )
        self.workspace.is_intended = self._is_intended
        #: Runs of which somebody has said that they are complete.
        self.noticed: set[int] = set()
        #: Jobs of which an operator has said that they are done.
        self.vouched: set[int] = set()
        self.deleted: set[int] = set()
        #: The attempts that an operator wanted again, or gave up.
        self.asked: dict[MessageKind, set[tuple[str, int]]] = defaultdict(set)
        #: The machine's clock was wrong by more than is allowed for.
        self.has_wrong_clock = False
        self._build(chance)

    def _build(self, chance: random.Random) -> None:
        names = [f"db.u{number}" for number in range(chance.randint(1, 4))]
        for name in names:
            versions = [(False, self.clock.now())]
            versions += [(True, self.clock.now())] * chance.choice((0, 0, 1, 3))
            self.machine.sources.by_id[name] = Source(versions=versions)
        self.jobs = [_FIRST_JOB + 2 * number for number in range(chance.randint(1, 3))]
        self._jobs_as: dict[int, tuple[int, bool]] = {}
        self.lines: list[Line] = []
        for job_id in self.jobs:
            self._jobs_as[job_id] = (chance.choice((1, 1, 1000)), chance.random() < 0.5)
            self.put_job(job_id)
            for name in chance.sample(names, chance.randint(1, min(3, len(names)))):
                flag = chance.choice(("TRUE", "TRUE", "FALSE"))
                # Some lines come later, and their upstreams with them.
                is_there = chance.random() < 0.85
                self.lines.append(Line(sensor_id=name, job_id=job_id, flag=flag, is_there=is_there))
        self.starts_per_tick = chance.choice((1, 2, 50))
        self.machine.configure(
            starts_per_tick=self.starts_per_tick,
            first_sight=chance.choice((FirstSight.EVENT, FirstSight.EVENT, FirstSight.BASELINE)),
        )
        self.machine.store.faults = chance.choice((0, 0, 10, 40))
        self.machine.dbt_faults = chance.choice((0, 0, 50))
        faults = chance.choice((0, 5, 20, 50))
        refuses = chance.random() < 0.5
        self.workspace.trouble = Trouble(faults=faults, refuses=refuses)
        self.workspace.lists_tersely = chance.random() < 0.3
        registry = self.workspace.registry
        lists_deleted = chance.random() < 0.5
        registry.assumptions = replace(registry.assumptions, lists_deleted_jobs=lists_deleted)
        self.save_controls()

    def put_job(self, job_id: int) -> None:
        """Register a job in the workspace, as it always was."""
        runs_at_once, queues = self._jobs_as[job_id]
        self.workspace.put_job(job_id, runs_at_once=runs_at_once, queues=queues)

    def _is_intended(self, token: str) -> bool:
        return bool(self.machine.store.read(Ledger.RUNS, where=[("token", "=", token)]))

    def save_controls(self) -> None:
        """Write the CSV as the lines are now."""
        self.machine.write_controls([line.cells() for line in self.lines if line.is_there])

    def ours(self, *, is_over: bool | None = None) -> list[RunRow]:
        """Return the runs that Heartbeat started and that are still there."""
        return [r for r in self.workspace.runs(is_over=is_over) if TOKEN_PARAMETER in r.parameters]

    def commit(self, name: str, *, brings: bool = True) -> None:
        """Commit a version to an upstream."""
        self.machine.sources.by_id[name].versions.append((brings, self.clock.now()))

    def ask_for(self, kind: MessageKind, job_id: int) -> str:
        """An operator asks for something that the command line sends for held jobs only."""
        newest = self.machine.models.newest_runs().get(job_id)
        if newest is None or newest["run_status"] not in HOLDING:
            return ""
        intent_id, attempt = str(newest["intent_id"]), int(str(newest["attempt"]))
        self.asked[kind].add((intent_id, attempt))
        self.send(
            Message(
                kind=kind,
                job_id=job_id,
                intent_id=intent_id,
                attempt=attempt,
                sent_at=self.instant(),
            )
        )
        return f"job {job_id}"

    def instant(self) -> datetime:
        """Return an instant that no message has yet."""
        # No two at the same instant: a message's file is named by it, and by chance.
        self.clock.sleep(0.001)
        return self.clock.now()

    def send(self, message: Message) -> None:
        """Leave a message in the inbox."""
        inbox.send(self.machine.home.inbox, message)

    def make_peace(self) -> None:
        """Put everything right that went wrong from outside, and every line back."""
        self.workspace.trouble = Trouble()
        self.machine.store.faults = self.machine.dbt_faults = 0
        for source in self.machine.sources.by_id.values():
            source.is_down = False
        for job_id in self.jobs:
            self.put_job(job_id)
        for line in self.lines:
            line.state, line.is_there = "UNPAUSED", True
        self.save_controls()

    def end_all_runs(self) -> None:
        """Let every run end well in known words, and those in the queue after them."""
        for run in self.workspace.runs(is_over=True):
            if run.phase.result_state == "SOMETHING_NEW":
                self.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})
        while active := [r for r in self.workspace.runs(is_over=False) if not r.phase.waits]:
            for run in active:
                self.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})

    def has_open_starts(self) -> bool:
        """Tell whether a start or a run goes on, as far as the ledgers know."""
        return any(row["run_status"] in OPEN for row in self.machine.models.newest_runs().values())

    def draw_policies(self, chance: random.Random) -> None:
        """Let an operator write other retry policies."""
        drawn = policies.draw(chance, self.jobs)
        policies.write(self.machine.settings.project, drawn)
        told = (f"{p.job_id}: {p.max_attempts} after {p.backoff_minutes}" for p in drawn)
        self.note(f"policies {', '.join(told) or 'none'}")

    def backs_off(self, job_id: int) -> bool:
        """Tell whether a failed job starts again by itself, and soon."""
        at = self.machine.models.retries().get(job_id)
        return at is not None and at - self.machine.clock.now() < timedelta(hours=2)

    def held_jobs(self) -> list[int]:
        """Return the jobs that wait for an operator or a success."""
        newest = self.machine.models.newest_runs()
        return [job_id for job_id, row in newest.items() if row["run_status"] in HOLDING]

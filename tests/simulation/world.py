"""The world round the machine: jobs, upstreams, a workspace, and people with a CSV and a keyboard."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness.config.sources import FirstSight
from harness.fire.token import TOKEN_PARAMETER
from harness.platform.jobs_emulator.runs.database import RunRow
from harness.store import inbox
from harness.store.inbox import Message, MessageKind
from harness.store.rows import HOLDING, OPEN, Ledger, RunStatus
from tests.simulation import policies
from tests.simulation.consumers import Consumers
from tests.simulation.consumers import write as write_scheduled_jobs
from tests.simulation.fate import Fate
from tests.simulation.machine import Machine, Wiring
from tests.simulation.problem import Problem
from tests.simulation.record import attempt_of
from tests.simulation.sources import Source
from tests.simulation.triggers import Producers, Triggers
from tests.simulation.upstreams import KINDS, Systems, some
from tests.simulation.workspace import Workspace, client_of
from tests.support.fake_clock import FakeClock
from tests.support.trigger_keeper import Trigger

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
    source: str = "delta_table"
    key: str = ""

    def cells(self) -> Mapping[str, str]:
        return {
            "sensor_source": self.source,
            "sensor_id": self.sensor_id,
            "sensor_read_type": "streaming",
            "asset_description": "",
            "upstream_key": self.key,
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
        #: When each run began that somebody started by hand and that reported itself.
        self.reported: dict[int, datetime] = {}
        #: Every message, as its file was left: name and content.
        self.sent: list[tuple[str, str, Message]] = []
        #: Attempts of which an operator has said that their work is done.
        self.vouched: set[tuple[str, int]] = set()
        self.deleted: set[int] = set()
        #: The attempts that an operator wanted again, or discarded.
        self.asked: dict[MessageKind, set[tuple[str, int]]] = defaultdict(set)
        #: The machine's clock was wrong by more than is allowed for.
        self.has_wrong_clock = False
        self.triggers: Triggers | None = None
        self.producers: Producers | None = None
        self.consumers: Consumers | None = None
        #: What came up to this tick has to be consumed by now; ``None``: everything.
        self.through_tick: int | None = None
        self._build(chance)

    def add_triggers(self, chance: random.Random) -> None:
        """Let the operator have triggers, and producers register events."""
        if chance.random() < 0.6:
            self._add_job(chance)
        sensed = [*self.machine.sources.by_id]
        self.triggers = Triggers(chance, self.jobs, sensed, BEGINNING)
        self.producers = Producers(self.machine.home.inbox, self.clock, self.triggers)
        self.save_controls()

    def add_upstreams(self, folder: Path, chance: random.Random) -> None:
        """Let jobs depend on upstreams of other kinds, too."""
        sources = self.machine.sources
        sources.systems = Systems(folder=folder)
        for number in range(chance.choice((1, 2, 3, 4))):
            made = some(chance.choice(KINDS), number, sources.systems)
            sources.others[made.sensor_id] = made
            for _ in range(chance.choice((0, 0, 1, 3))):
                made.commit(self.clock.now(), brings=True)
            for job_id in chance.sample(self.jobs, chance.randint(1, len(self.jobs))):
                flag, is_there = chance.choice(("TRUE", "TRUE", "FALSE")), chance.random() < 0.85
                line = Line(made.sensor_id, job_id, flag, is_there=is_there)
                line.source, line.key = made.source, made.key
                self.lines.append(line)
        self.save_controls()

    def add_consumers(self, chance: random.Random) -> None:
        """Let a job be a pull consumer, which fetches its events by itself."""
        self._add_job(chance)
        job_id, upstreams = self.jobs[-1], sorted(self.machine.sources.all.items())
        for name, source in chance.sample(upstreams, min(len(upstreams), chance.choice((1, 2)))):
            line = Line(name, job_id, "TRUE")
            line.source, line.key = source.source, source.key
            self.lines.append(line)
        lines = [(line.job_id, line.sensor_id) for line in self.lines if line.job_id == job_id]
        machine = self.machine
        write_scheduled_jobs(machine.settings.project, [job_id])
        self.consumers = Consumers(machine.store, machine.home.inbox, lines, machine.wiring.acquire)
        self.save_controls()

    def _add_job(self, chance: random.Random) -> None:
        job_id = self.jobs[-1] + 2
        self.jobs.append(job_id)
        self._jobs_as[job_id] = (chance.choice((1, 1, 1000)), chance.random() < 0.5)
        self.put_job(job_id)

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
        self.workspace.problem = Problem(faults=faults, refuses=refuses)
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
        """Write the CSVs as the lines are now."""
        if self.triggers:
            self.triggers.write(self.machine.settings.project)
        self.machine.write_controls([line.cells() for line in self.lines if line.is_there])

    def ours(self, *, is_over: bool | None = None) -> list[RunRow]:
        """Return the runs that Heartbeat started and that are still there."""
        return [r for r in self.workspace.runs(is_over=is_over) if TOKEN_PARAMETER in r.parameters]

    def commit(self, name: str, *, brings: bool = True) -> None:
        """Commit a version to an upstream."""
        self.machine.sources.all[name].commit(self.clock.now(), brings=brings)

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

    def vouch_for(self, job_id: int, *, is_named: bool) -> None:
        """An operator says that the work of a held job's last attempt is done."""
        newest = self.machine.models.newest_runs()[job_id]
        attempt = str(newest["intent_id"]), int(str(newest["attempt"]))
        self.vouched.add(attempt)
        message = Message(kind=MessageKind.COMPLETE, job_id=job_id, sent_at=self.instant())
        status = RunStatus(str(newest["run_status"]))
        named = replace(message, intent_id=attempt[0], attempt=attempt[1], seen_status=status)
        self.send(named if is_named else message)

    def report(self, job_id: int, run_id: int) -> None:
        """A run that somebody started by hand just now reports its success."""
        self.reported[run_id] = self.clock.now()
        self.send(
            Message(kind=MessageKind.COMPLETE, job_id=job_id, run_id=run_id, sent_at=self.instant())
        )

    def instant(self) -> datetime:
        """Return an instant that no message has yet."""
        # No two at the same instant: a message's file is named by it, and by chance.
        self.clock.sleep(0.001)
        return self.clock.now()

    def send(self, message: Message) -> None:
        """Leave a message in the inbox."""
        path = inbox.send(self.machine.home.inbox, message)
        self.sent.append((path.name, path.read_text(), message))

    def repeat(self, chance: random.Random) -> str:
        """Let a message come once more, as a person or a script sends it that saw no answer."""
        # What names nothing but its job is about whatever run the job has.
        named = [each for each in self.sent if each[2].run_id or each[2].intent_id]
        if not named:
            return ""
        name, text, message = chance.choice(named[-20:])
        (self.machine.home.inbox / name).write_text(text)
        return f"{message.kind} of job {message.job_id}"

    def ask_for_older(self, kind: MessageKind, chance: random.Random) -> str:
        """An operator asks for an attempt that is not the newest one of its job any more."""
        steps = self.machine.store.read(Ledger.RUNS)
        newest = self.machine.models.newest_runs()
        older = [
            row for row in steps if attempt_of(row) != attempt_of(newest[int(str(row["job_id"]))])
        ]
        if not older:
            return ""
        row = chance.choice(older)
        (intent_id, attempt), job_id = attempt_of(row), int(str(row["job_id"]))
        # By a clock that goes wrong, or in a file that was long on its way.
        sent_at = self.instant() + timedelta(minutes=chance.choice((-600, -5, 0, 0, 5)))
        self.send(
            Message(kind=kind, job_id=job_id, intent_id=intent_id, attempt=attempt, sent_at=sent_at)
        )
        return f"job {job_id}, attempt {attempt} of {intent_id}"

    def make_peace(self) -> None:
        """Put everything right that went wrong from outside, and every line back."""
        self.workspace.problem = Problem()
        self.machine.store.faults = self.machine.dbt_faults = 0
        for source in self.machine.sources.all.values():
            source.is_down = False
        for job_id in self.jobs:
            self.put_job(job_id)
        for line in self.lines:
            line.state, line.is_there = "UNPAUSED", True
        if self.triggers:
            self.triggers.restore()
        self.save_controls()

    def commit_everywhere(self) -> None:
        """Let every upstream have one more change."""
        for name in self.machine.sources.all:
            self.commit(name)

    def satisfy(self, trigger: Trigger) -> None:
        """Wait for a trigger's next slot, and register what its slots wait for."""
        assert self.producers is not None
        now, place = (
            self.machine.clock.now(),
            self._places_of_triggers().get(trigger.upstream_id, {}),
        )
        opened = place.get("opened_through")
        # Slots that opened while the clock was ahead do not open again.
        latest = max(now, datetime.fromisoformat(opened)) if opened else now
        due = trigger.slot(trigger.number_at(latest) + 1)
        self.clock.sleep((due - now).total_seconds())
        waiting = map(datetime.fromisoformat, place.get("waiting", ()))
        self.producers.satisfy(trigger, [due, *waiting])

    def newest_tick(self) -> int:
        """Return the newest tick that any ledger has."""
        rows = (row for ledger in Ledger for row in self.machine.store.read(ledger))
        return max((int(str(row["tick_number"])) for row in rows), default=-1)

    def waiting_slots(self) -> int:
        """Count the slots that wait, as the ledger has them."""
        return sum(len(each.get("waiting", ())) for each in self._places_of_triggers().values())

    def _places_of_triggers(self) -> dict[str, dict[str, Any]]:
        rows = self.machine.store.read(Ledger.PROBES)
        # A trigger that could not be evaluated the first time has no position.
        return {
            str(row["upstream_id"]): json.loads(str(row["position"] or "{}"))
            for row in rows
            # A trigger that could not be evaluated before its first position has none.
            if str(row["upstream_id"]).startswith("trigger:") and row["position"]
        }

    def end_all_runs(self) -> None:
        """Let every run end well in known words, and those in the queue after them."""
        for run in self.workspace.runs(is_over=True):
            if run.phase.result_state == "SOMETHING_NEW":
                self.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})
        while active := [r for r in self.workspace.runs(is_over=False) if not r.phase.waits]:
            for run in active:
                self.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})

    def has_open_starts(self) -> bool:
        """Return whether a start or a run goes on, according to the ledgers."""
        newest = self.machine.models.newest_runs().values()
        return any(row["run_status"] in OPEN - {RunStatus.ACQUIRED} for row in newest)

    def draw_policies(self, chance: random.Random) -> None:
        """Let an operator write other retry policies."""
        drawn = policies.draw(chance, self.jobs)
        policies.write(self.machine.settings.project, drawn)
        reported = (f"{p.job_id}: {p.max_attempts} after {p.backoff_minutes}" for p in drawn)
        self.note(f"policies {', '.join(reported) or 'none'}")

    def backs_off(self, job_id: int) -> bool:
        """Return whether a failed job starts again by itself, and soon."""
        at = self.machine.models.retries().get(job_id)
        return at is not None and at - self.machine.clock.now() < timedelta(hours=2)

    def held_jobs(self) -> list[int]:
        """Return the jobs that wait for an operator or a success."""
        newest = self.machine.models.newest_runs()
        return [job_id for job_id, row in newest.items() if row["run_status"] in HOLDING]

"""The world round the machine, and all that may happen in it; each move is drawn from a seed."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.clock import FakeClock
from harness.inbox import Message, MessageKind, send
from harness.jobs.local.problems import ApiError
from harness.jobs.local.store import RunRow
from harness.jobs.token import TOKEN_PARAMETER
from harness.sense.types import FirstSight
from harness.tables import HOLDING, OPEN, Ledger
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
        self.fate.meanwhile = self._meanwhile
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
            self._put_job(job_id)
            for name in chance.sample(names, chance.randint(1, min(3, len(names)))):
                flag = chance.choice(("TRUE", "TRUE", "FALSE"))
                self.lines.append(Line(sensor_id=name, job_id=job_id, flag=flag))
        self.machine.configure(
            starts_per_tick=chance.choice((1, 2, 50)),
            first_sight=chance.choice((FirstSight.EVENT, FirstSight.EVENT, FirstSight.BASELINE)),
        )
        self.machine.store.faults = chance.choice((0, 0, 10, 40))
        self.machine.dbt_faults = chance.choice((0, 0, 50))
        self.faults = chance.choice((0, 5, 20, 50))
        self.refuses = chance.random() < 0.3
        self.workspace.trouble = Trouble(faults=self.faults, refuses=self.refuses)
        # Some histories are full of what others lack: what meets seldom meets often in some.
        self._weights = {name: weight * chance.choice((0, 1, 1, 4)) for name, weight in _MOVES}
        self._weights["commit"] = self._weights["commit"] or 30
        self.save_controls()

    def _put_job(self, job_id: int) -> None:
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

    # Moves

    def move(self, chance: random.Random) -> None:
        """Let one thing happen."""
        (name,) = chance.choices([*self._weights], [*self._weights.values()])
        done = getattr(self, f"_{name}")(chance)
        if done:
            self.note(f"{name} {done}")

    def _meanwhile(self) -> None:
        moves, weights = zip(*_MEANWHILE, strict=True)
        (name,) = self.fate.chance.choices(moves, weights)
        done = getattr(self, f"_{name}")(self.fate.chance)
        if done:
            self.note(f"  meanwhile {name} {done}")

    def commit(self, name: str, *, brings: bool = True) -> None:
        """Commit a version to an upstream."""
        self.machine.sources.by_id[name].versions.append((brings, self.clock.now()))

    def _commit(self, chance: random.Random) -> str:
        name = chance.choice(sorted(self.machine.sources.by_id))
        brings = chance.random() < 0.85
        # Sixty events are more than a run can be handed directly.
        count = chance.choice((1, 1, 1, 1, 1, 2, 2, 4, 4, 60))
        for _ in range(count):
            self.commit(name, brings=brings)
        return f"{name} {count} times {'data' if brings else 'nothing'}"

    def _forget(self, chance: random.Random) -> str:
        name = chance.choice(sorted(self.machine.sources.by_id))
        source = self.machine.sources.by_id[name]
        source.oldest_told = source.newest
        return f"{name} before {source.newest}"

    def _wait(self, chance: random.Random) -> str:
        seconds = chance.choice((1, 5, 30, 60, 60, 300, 700, 3600))
        self.clock.sleep(seconds)
        return f"{seconds} s"

    def _long_wait(self, chance: random.Random) -> str:
        days = chance.choice((1, 3, 8, 40))
        self.clock.sleep(86_400 * days)
        return f"{days} days"

    def _clock_jump(self, chance: random.Random) -> str:
        # Ten minutes are allowed for where a run is looked for, so none farther to the front.
        seconds = chance.choice((-86_400, -3600, -300, 0, 0, 240, 540))
        self.machine.clock.ahead = timedelta(seconds=seconds)
        self.has_wrong_clock |= abs(seconds) > 600
        return f"to {seconds} s"

    def _one(self, runs: list[RunRow], chance: random.Random) -> RunRow | None:
        return chance.choice(runs) if runs else None

    def _end_run(self, chance: random.Random) -> str:
        run = self._one(self.workspace.runs(is_over=False), chance)
        if run is None or run.phase.waits:
            return ""
        words = chance.choices(_ENDS, (20, 5, 2, 2, 1, 1, 1, 1, 1, 1, 1))[0]
        self.workspace.put_phase(run.run_id, words)
        return f"{run.run_id} {words}"

    def _complete(self, chance: random.Random) -> str:
        """The last task of a run says that it is done, and the run ends well soon after."""
        run = self._one(self.ours(is_over=False), chance)
        if run is None or run.phase.waits:
            return ""
        what = self._notice(run, chance)
        if chance.random() < 0.6:
            self.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})
            what += " and ends"
        return f"{run.run_id} {what}"

    def _late_notice(self, chance: random.Random) -> str:
        """A notice comes once more, or only after the run was seen to have ended."""
        ended = [
            run
            for run in self.ours(is_over=True)
            if run.phase.result_state == "SUCCESS" or run.run_id in self.noticed
        ]
        run = self._one(ended, chance)
        return f"{run.run_id} {self._notice(run, chance)}" if run else ""

    def _notice(self, run: RunRow, chance: random.Random) -> str:
        self.noticed.add(run.run_id)
        says = chance.choice(("both", "run", "intent"))
        self._send(
            Message(
                kind=MessageKind.COMPLETE,
                job_id=run.job_id,
                run_id=None if says == "intent" else run.run_id,
                intent_id=None if says == "run" else run.parameters["heartbeat_intent_id"],
                sent_at=self._instant(),
            )
        )
        return f"naming {says}"

    def _strange_notice(self, chance: random.Random) -> str:
        """Somebody says that a run is done which nobody knows."""
        job_id = chance.choice([*self.jobs, 7])
        self._send(
            Message(
                kind=MessageKind.COMPLETE,
                job_id=job_id,
                run_id=chance.choice((5, None)),
                intent_id="nobody's",
                sent_at=self._instant(),
            )
        )
        return f"of job {job_id}"

    def _retry(self, chance: random.Random) -> str:
        return self.ask_for_retry(chance.choice(self.jobs))

    def ask_for_retry(self, job_id: int) -> str:
        """An operator wants a job to run again; the command line sends this for held jobs only."""
        newest = self.machine.models.newest_runs().get(job_id)
        if newest is None or newest["run_status"] not in HOLDING:
            return ""
        self._send(Message(kind=MessageKind.RETRY, job_id=job_id, sent_at=self._instant()))
        return f"job {job_id}"

    def _vouch(self, chance: random.Random) -> str:
        """An operator says that a held job's work is done, whoever did it."""
        held = self.held_jobs()
        if not held:
            return ""
        job_id = chance.choice(held)
        self.vouched.add(job_id)
        self._send(
            Message(kind=MessageKind.COMPLETE, job_id=job_id, run_id=None, sent_at=self._instant())
        )
        return f"for job {job_id}"

    def _instant(self) -> datetime:
        # No two at the same instant: a message's file is named by it, and by chance.
        self.clock.sleep(0.001)
        return self.clock.now()

    def _send(self, message: Message) -> None:
        send(self.machine.home.inbox, message)

    def _cancel(self, chance: random.Random) -> str:
        run = self._one(self.workspace.runs(is_over=False), chance)
        if run is None:
            return ""
        self.workspace.engine.cancel(run.run_id)
        if chance.random() < 0.4:
            # It was quicker than the cancel.
            self.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})
            return f"{run.run_id} too late"
        return f"{run.run_id}"

    def _repair(self, chance: random.Random) -> str:
        failed = [run for run in self.ours(is_over=True) if run.phase.result_state != "SUCCESS"]
        run = self._one(failed, chance)
        if run is None or run.phase.life_cycle_state == "SKIPPED":
            return ""
        self.workspace.put_phase(run.run_id, {"phase": "RUNNING"})
        return f"{run.run_id}"

    def _manual_run(self, chance: random.Random) -> str:
        job_id = chance.choice(self.jobs)
        run_id = self.workspace.start_by_hand(job_id)
        if run_id is None:
            return ""
        how = chance.choice(("goes on", "SUCCESS", "FAILED"))
        run = self.workspace.engine.run(run_id)
        if how != "goes on" and not run.phase.is_over and not run.phase.waits:
            self.workspace.put_phase(run_id, {"phase": how})
        return f"{run_id} {how}"

    def _delete_run(self, chance: random.Random) -> str:
        run = self._one(self.ours(is_over=True), chance)
        if run is None:
            return ""
        self.workspace.engine.delete_run(run.run_id)
        self.deleted.add(run.run_id)
        return f"{run.run_id}"

    def _delete_job(self, chance: random.Random) -> str:
        job_id = chance.choice(self.jobs)
        try:
            self.workspace.registry.delete_job(job_id)
        except ApiError:
            self._put_job(job_id)
            return f"{job_id} is there again"
        return f"{job_id} is gone"

    def _edit(self, chance: random.Random) -> str:
        line = chance.choice(self.lines)
        what = chance.choice(("pause", "pause", "remove", "remove", "flag", "spoil", "mend"))
        match what:
            case "pause":
                line.state = "PAUSED" if line.state == "UNPAUSED" else "UNPAUSED"
            case "remove":
                line.is_there = not line.is_there
            case "flag":
                line.flag = "FALSE" if line.flag == "TRUE" else "TRUE"
        self.save_controls()
        if what == "spoil":
            with self.machine.controls_file.open("a") as file:
                file.write("delta_table,half a li")
        return f"{what} {line.sensor_id} of {line.job_id}"

    def _source_down(self, chance: random.Random) -> str:
        name = chance.choice(sorted(self.machine.sources.by_id))
        source = self.machine.sources.by_id[name]
        source.is_down = not source.is_down
        return f"{name} {source.is_down}"

    def _outage(self, chance: random.Random) -> str:
        trouble = self.workspace.trouble
        if trouble.is_down or trouble.is_forbidden:
            self.workspace.trouble = replace(trouble, is_down=False, is_forbidden=False)
            return "over"
        is_down = chance.random() < 0.6
        self.workspace.trouble = replace(trouble, is_down=is_down, is_forbidden=not is_down)
        return "down" if is_down else "forbidden"

    def _lose_state(self, chance: random.Random) -> str:
        self.machine.end_process()
        self.machine.lose_state_file(half=chance.random() < 0.5)
        return "file"

    # The end

    def make_peace(self) -> None:
        """Put everything right that went wrong from outside, and every line back."""
        self.workspace.trouble = Trouble()
        self.machine.store.faults = self.machine.dbt_faults = 0
        for source in self.machine.sources.by_id.values():
            source.is_down = False
        for job_id in self.jobs:
            self._put_job(job_id)
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

    def held_jobs(self) -> list[int]:
        """Return the jobs that wait for an operator or a success."""
        newest = self.machine.models.newest_runs()
        return [job_id for job_id, row in newest.items() if row["run_status"] in HOLDING]


_ENDS: tuple[Mapping[str, object], ...] = (
    {"phase": "SUCCESS"},
    {"phase": "FAILED", "message": "no such column"},
    {"phase": "INTERNAL_ERROR"},
    {"phase": "TIMEDOUT"},
    {"phase": "CANCELED"},
    {"phase": "SUCCESS_WITH_FAILURES"},
    {"phase": "TERMINATING"},
    {"life_cycle_state": "TERMINATED", "result_state": "SOMETHING_NEW"},
    {"life_cycle_state": "WARMING_UP", "state": "WARMING_UP"},
    {"state": "TERMINATED", "code": "SUCCESS", "type": "SUCCESS"},
    {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"},
)

_MOVES = (
    *(("commit", 30), ("wait", 18), ("end_run", 22), ("complete", 10), ("late_notice", 3)),
    *(
        ("strange_notice", 1),
        ("vouch", 1),
        ("retry", 5),
        ("cancel", 2),
        ("repair", 3),
        ("manual_run", 3),
    ),
    *(("delete_run", 1), ("delete_job", 1), ("edit", 5), ("source_down", 3), ("outage", 3)),
    *(("clock_jump", 2), ("long_wait", 1), ("lose_state", 1), ("forget", 1)),
)
#: What may happen while a tick is at work.
_MEANWHILE = (
    *(("commit", 8), ("end_run", 8), ("complete", 6), ("cancel", 2), ("retry", 1), ("wait", 2)),
    *(("edit", 1), ("delete_run", 1), ("manual_run", 1)),
)

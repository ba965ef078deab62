"""One history: a seed decides what is there, what happens, when processes die; then all is judged."""

import contextlib
import logging
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from harness.errors import HeartbeatError
from harness.publish import publish
from harness.store.inbox import MessageKind
from harness.store.rows import Ledger
from harness.tick.report import TickReport
from tests.simulation.checker import complaints
from tests.simulation.evidence import record_of
from tests.simulation.fate import KilledError
from tests.simulation.machine import LEASE_SECONDS, Wiring
from tests.simulation.moves import MEANWHILE, MEANWHILE_OF, draw_weights, draw_weights_of, move
from tests.simulation.world import World

#: Most moves of a history, ticks among them.
MOVES = 60
#: Folders in memory: a history forces hundreds of files to the disk, and the power does not fail here.
_IN_MEMORY = Path("/dev/shm")
_LONGEST_TICK = 30
_ROUNDS_TO_REST = 15

#: Where the product lets a test kill it while it evaluates triggers.
RELEASE_POINTS = ("before_release", "within_release", "after_release")
#: Every other such point.
CRASH_POINTS = (
    *("after_settle", "before_record", "after_record", "after_decide"),
    *("before_intents", "after_intents", "before_call", "after_call"),
    *("before_outcome", "after_outcome", "within_publish", "after_publish", "before_end"),
)
MOMENTS = (
    *(f"at {name}" for name in CRASH_POINTS),
    *(f"{when} POST run-now" for when in ("before", "after")),
    *(f"{when} GET get" for when in ("before", "after")),
    *(f"{when} GET runs/get" for when in ("before", "after")),
    *(f"{when} GET runs/list" for when in ("before", "after")),
    *(
        f"{when} commit ledger_{name}"
        for name in ("ticks", "controls", "data_change_events", "probes", "runs", "decisions")
        for when in ("before", "after")
    ),
    *("before dbt seed", "after dbt seed", "before dbt decide"),
    *("before dbt fold", "before dbt tail"),
    *("before show heartbeat_control", "before show sensors"),
    "at the state file",
)


#: Those of histories with triggers.
TRIGGER_MOMENTS = (
    *(f"at {name}" for name in RELEASE_POINTS),
    *(f"{when} commit ledger_trigger_looks" for when in ("before", "after")),
    *("before fill int_trigger_due_slots", "before dbt trigger_terms"),
)
EVERY_MOMENT = (*MOMENTS, *TRIGGER_MOMENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """What came of a history."""

    seed: int
    lines: list[str]
    complaints: list[str]
    died_at: frozenset[str]
    #: Every status that some start had.
    statuses: frozenset[str]
    starts: int
    #: How often several ticks became public together.
    coalesced: int = 0
    #: Everybody who reported a step.
    reporters: frozenset[str] = frozenset()
    #: The moves that were played, by their numbers, and what each of them was; ticks are named so.
    moves: Mapping[int, str] = field(default_factory=dict)
    #: How often a move came at a moment of a tick, or before a tick that died at the moment.
    cells: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def broken(self) -> frozenset[str]:
        """The rules that the history breaks."""
        return frozenset(each.partition(":")[0] for each in self.complaints)


def play(
    seed: int, *, moves: Container[int] | None = None, wiring: Wiring | None = None
) -> HistoryResult:
    """Play the history of a seed, the same one every time.

    Args:
        seed: Decides everything.
        moves: Play only the moves of these numbers; each draws for itself, so they stay as they are.
        wiring: How the machine is put together.
    """
    where = _IN_MEMORY if _IN_MEMORY.is_dir() else None
    # No history has hundreds of ticks, nor long rows of them without a pause.
    sooner = patch.multiple(publish, COMPACT_AFTER_TICKS=8, _MANY_ROWS=0, _MOST_IN_VAIN=2)
    with tempfile.TemporaryDirectory(dir=where) as folder, _quiet(), sooner:
        return _Player(seed, Path(folder), wiring or Wiring()).play(moves)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nobody reads the log of thousands of histories."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class _Player:
    def __init__(self, seed: int, folder: Path, wiring: Wiring) -> None:
        self._seed = seed
        self._lines: list[str] = []
        self._complaints: list[str] = []
        chance = random.Random(f"{seed}/world")
        self._world = world = World(folder, chance, self._lines.append, wiring)
        world.fate.meanwhile = self._meanwhile
        world.fate.freeze = self._freeze
        self._freezes = wiring.turn is not None
        self._weights = draw_weights(chance)
        self._deaths = chance.choice((0.0, 0.2, 0.5, 0.8))
        self._moving = chance.choice((0.0, 0.02, 0.1))
        self._is_resident = chance.random() < 0.5
        self._moves = chance.randint(MOVES // 4, MOVES)
        self._played: dict[int, str] = {}
        self._cells: Counter[tuple[str, str]] = Counter()
        #: The moves since the last tick.
        self._recent: list[str] = []
        # Drawn apart, so that the histories without policies are what they were.
        policies = random.Random(f"{seed}/retries")
        self._edits_policies = policies.choice((0.0, 0.0, 0.02, 0.1))
        if self._edits_policies:
            world.draw_policies(policies)

        # So are those in which a resident process publishes while it ticks on.
        aside = random.Random(f"{seed}/aside")
        if self._is_resident and aside.random() < 0.7:
            world.machine.publishes_aside = True
            world.fate.pace_beside = aside.choice((0.0, 0.02, 0.1, 0.3))
            # Most ticks without a pause after them, and some for the inbox alone.
            world.machine.is_pressed = random.Random(f"{seed}/pauses").random() < 0.4

        self._meanwhile_weights = dict(MEANWHILE)
        # Drawn apart, too: the histories without further parts are what they were.
        parts = random.Random(f"{seed}/parts")
        if parts.random() < 0.4:
            self._add("triggers", parts)
            world.add_triggers(parts)
        if parts.random() < 0.4:
            (folder / "systems").mkdir()
            world.add_upstreams(folder / "systems", parts)
        if parts.random() < 0.5:
            self._add("operators", parts)
        if parts.random() < 0.3:
            self._add("consumers", parts)
            world.add_consumers(parts)

    def _add(self, part: str, chance: random.Random) -> None:
        self._weights |= draw_weights_of(part, chance)
        self._meanwhile_weights |= MEANWHILE_OF.get(part, {})

    def play(self, moves: Container[int] | None) -> HistoryResult:
        for number in range(self._moves):
            if moves is not None and number not in moves:
                continue
            # Each move draws for itself: those that are left out change no other.
            chance = random.Random(f"{self._seed}/{number}")
            policies = random.Random(f"{self._seed}/{number}/retries")
            if policies.random() < self._edits_policies:
                self._world.draw_policies(policies)
            if chance.random() < 0.45:
                self._played[number] = "tick"
                self._tick(chance)
            else:
                name = move(self._world, chance, self._weights)
                self._played[number] = name
                self._recent.append(name)
            if self._complaints:
                break
        else:
            self._come_to_rest()
        steps = self._world.machine.store.read(Ledger.RUNS)
        return HistoryResult(
            seed=self._seed,
            lines=self._lines,
            complaints=self._complaints,
            died_at=frozenset(self._world.fate.died_at),
            statuses=frozenset(str(row["run_status"]) for row in steps),
            reporters=frozenset(str(row["reported_by"]) for row in steps),
            starts=len(self._world.workspace.starts),
            coalesced=self._world.machine.store.coalesced,
            moves=self._played,
            cells=self._cells,
        )

    def _meanwhile(self) -> None:
        fate = self._world.fate
        name = move(self._world, fate.chance, self._meanwhile_weights, within="  meanwhile ")
        self._cells[name, fate.now] += 1

    def _tick(self, chance: random.Random) -> None:
        dies_at: str | int | None = None
        if chance.random() < self._deaths:
            by_name = chance.random() < 0.5
            dies_at = chance.choice(MOMENTS) if by_name else chance.randint(1, _LONGEST_TICK)
            more = random.Random(chance.random()) if self._world.triggers else None
            if more and more.random() < 0.3:
                dies_at = more.choice(TRIGGER_MOMENTS)
        self._world.clock.sleep(chance.choice((0, 1, 10, 30)))
        self._world.fate.begin(chance, dies_at=dies_at, moves=self._moving)
        if self._freezes:
            self._world.fate.freezes_at = chance.choice(MOMENTS)
        deaths = self._world.fate.deaths
        machine = self._world.machine
        is_early = machine.is_pressed and random.Random(chance.getstate()[1][2]).random() < 0.3
        self._one_tick(
            allow_mass_removal=chance.random() < 0.5,
            is_for_inbox=is_early and machine.has_news,
        )
        if self._world.fate.deaths > deaths:
            self._cells.update((name, self._world.fate.now) for name in self._recent)
        self._recent.clear()
        self._pass_time(random.Random(chance.getstate()[1][1]))
        if not self._is_resident or chance.random() < 0.1:
            self._world.machine.end_process()

    def _pass_time(self, chance: random.Random) -> None:
        """Let what is published in the background come farther, or lag."""
        try:
            self._world.machine.pass_time(chance.choice((0, 0, 1, 2)))
        except HeartbeatError as error:
            self._lines.append(f"publishing failed: {error}")
        self._complain_of_what_is_public()

    def _complain_of_what_is_public(self) -> None:
        if self._world.machine.publishes_aside:
            untrue = self._world.machine.untrue_reasons()
            self._complaints += [f"what_is_public_is_true: {each}" for each in untrue]
            forgotten = self._world.machine.forgotten_starts()
            self._complaints += [f"what_may_start_is_decided_on: {each}" for each in forgotten]

    def _freeze(self) -> None:
        """Let the process stand still, and others tick; then it wakes up in the midst of its step."""
        machine, chance = self._world.machine, self._world.fate.chance
        machine.freeze(is_noticed=chance.random() < 0.5)
        self._lines.append("  frozen")
        for _ in range(chance.choice((1, 2, 4))):
            self._world.clock.sleep(chance.choice((0, 0, LEASE_SECONDS, 700)))
            with contextlib.suppress(HeartbeatError):
                report = machine.tick(allow_mass_removal=True)
                self._lines.append(f"  another ticks {report.tick.id}: {_told(report)}")
            move(self._world, chance, self._meanwhile_weights, within="    meanwhile ")
        machine.end_process(is_killed=chance.random() < 0.3)
        self._lines.append("  awake")

    def _one_tick(self, *, allow_mass_removal: bool = False, is_for_inbox: bool = False) -> bool:
        """Tick; return whether anything came of it."""
        world = self._world
        commits = len(world.machine.store.commits)
        try:
            report = world.machine.tick(
                allow_mass_removal=allow_mass_removal, is_for_inbox=is_for_inbox
            )
            self._lines.append(f"tick {report.tick.id}: {_told(report)}")
        except KilledError:
            world.machine.end_process(is_killed=True)
        except HeartbeatError as error:
            self._lines.append(f"tick failed: {error}")
        except Exception as error:
            self._complaints.append("no_tick_breaks: " + "".join(traceback.format_exception(error)))
        finally:
            world.fate.calm()
        differing = world.machine.forgetfulness()
        self._complaints += [f"the_state_file_is_a_shortcut: {each}" for each in differing]
        return len(world.machine.store.commits) > commits

    def _come_to_rest(self) -> None:
        """Make peace, give each job new data of all dependencies, and tick until it is quiet."""
        world = self._world
        world.make_peace()
        self._lines.append("peace")
        world.machine.end_process()
        triggers = world.triggers.all if world.triggers else []
        for _ in range(2):
            if triggers or world.machine.sources.systems:
                # Slots and some kinds of upstream come later than the changes beside them.
                world.through_tick = world.newest_tick()
            # A trigger that is needed has its slot alone: another's may not have come yet.
            for trigger in triggers or [None]:
                world.commit_everywhere()
                if trigger:
                    world.satisfy(trigger)
                if not self._ticks_until_quiet():
                    self._complaints.append("it_comes_to_rest: it goes on and on")
                    return
        self._complaints += complaints(record_of(world))

    def _ticks_until_quiet(self) -> bool:
        world, done, enough = self._world, 0, _ROUNDS_TO_REST
        # Slots that a long wait has brought are there once a tick has evaluated them.
        while done < (enough := max(enough, _ROUNDS_TO_REST + 6 * world.waiting_slots())):
            done += 1
            world.clock.sleep(1200)
            has_moved = self._one_tick(allow_mass_removal=True)
            world.machine.finish()
            self._complain_of_what_is_public()
            if world.consumers:
                has_moved |= world.consumers.drain(world.instant)
            world.end_all_runs()
            held = world.held_jobs()
            # What starts again by itself is left to do so.
            requests = [
                world.ask_for(MessageKind.RETRY, job_id)
                for job_id in held
                if not world.backs_off(job_id)
            ]
            if self._complaints:
                return True
            if not has_moved and not held and not any(requests) and not world.has_open_starts():
                return True
        return False


def _told(report: TickReport) -> str:
    steps = report.settlement.settled.rows
    settled = [f"{row.job_name} {row.run_status}" for row in steps]
    started = [f"{row.job_name} {row.run_status}" for row in report.started]
    events = len(report.findings.recorded.events)
    return f"{events} events, settled {settled}, started {started}"

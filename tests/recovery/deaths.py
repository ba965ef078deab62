"""Ways to die in the middle of a tick, each for real and by SIGKILL."""

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import Protocol

from harness.errors import ExitCode
from harness.platform.clock import RealClock
from tests.recovery.machine import Machine
from tests.support.jobs_emulator.faults import Fault, FaultKind, When

Process = subprocess.Popen[bytes]

RUN_NOW = "POST /api/2.2/jobs/run-now"
GET_RUN = "GET /api/2.2/jobs/runs/get"
_SECONDS_BETWEEN_CHECKS = 0.005


class Death(Protocol):
    """How one tick dies."""

    @property
    def has_news(self) -> bool:
        """Whether the upstreams change before the tick."""
        ...

    @property
    def kills_tick(self) -> bool:
        """Whether the process of the tick dies, and not its engine alone."""
        ...

    def befall(self, machine: Machine) -> Process:
        """Start a tick that is to die."""
        ...


@dataclass(frozen=True, slots=True)
class AtPoint:
    """At a named crash point: the process, whose engine goes on, or the engine alone."""

    point: str
    has_news: bool = False
    kills_tick: bool = True

    def befall(self, machine: Machine) -> Process:
        return machine.start(dies_at=self.point if self.kills_tick else f"engine {self.point}")


@dataclass(frozen=True, slots=True)
class FromServer:
    """By the Jobs API, at the n-th request of a kind, before the request takes effect or after."""

    match: str
    when: When
    number: int = 1
    has_news: bool = False
    kills_tick: bool = True

    def befall(self, machine: Machine) -> Process:
        process = machine.start()
        machine.server.faults.add(
            Fault(
                match=self.match,
                kind=FaultKind.KILL_CLIENT,
                when=self.when,
                offset=self.number - 1,
                pid=process.pid,
            )
        )
        return process


@dataclass(frozen=True, slots=True)
class AtCommit:
    """At the moment of the tick's n-th commit to a table: the engine, and the process with it."""

    #: Any table when empty.
    table: str = ""
    number: int = 1
    has_news: bool = False
    kills_tick: bool = True

    def befall(self, machine: Machine) -> Process:
        before, clock = machine.commits(self.table), RealClock()
        process = machine.start()
        while process.poll() is None:
            new = machine.commits(self.table) - before
            if len(new) >= self.number:
                if self.kills_tick:
                    os.killpg(process.pid, signal.SIGKILL)
                machine.kill_engine()
                break
            clock.sleep(_SECONDS_BETWEEN_CHECKS)
        return process


# One story of five parts, which the tests play: in each part every tick recovers what the one
# before left. Where a tick that ended well left only runs to query, the next ones need no JVM.

#: Two starts have had no answer; each death comes a step farther with them.
RESENDING: tuple[Death, ...] = (
    AtPoint("before_call"),
    FromServer(RUN_NOW, When.BEFORE),
    FromServer(RUN_NOW, When.AFTER),
    AtPoint("after_call"),
    AtPoint("before_outcome"),
    AtPoint("after_outcome"),
)
#: Nothing is new any more but the ends of the runs.
PUBLISHING: tuple[Death, ...] = (
    AtPoint("within_publish"),
    AtPoint("after_publish"),
    AtPoint("before_end"),
)
#: Runs go on, and the upstreams have new data.
FOLLOWING: tuple[Death, ...] = (
    FromServer(GET_RUN, When.BEFORE),
    AtPoint("after_settle"),
    AtPoint("before_record"),
    AtPoint("after_record"),
)
#: The runs have ended, so that their jobs may start again.
STARTING: tuple[Death, ...] = (
    AtPoint("after_decide"),
    AtPoint("before_intents"),
    AtPoint("after_intents"),
    # Between the events and what their upstream has become, then in the midst of publishing.
    AtCommit("ledger_data_change_events", has_news=True),
    AtCommit("heartbeat_control"),
)
#: A trigger has new data. The other parts do without one: its evaluation needs a JVM.
RELEASING: tuple[Death, ...] = (
    AtPoint("before_release", has_news=True),
    AtPoint("within_release"),
    AtPoint("after_release"),
)


#: The engine dies, and the tick ends cleanly, or with one sentence.
OF_ENGINE: tuple[Death, ...] = (
    AtPoint("before_record", has_news=True, kills_tick=False),
    AtPoint("after_record", kills_tick=False),
    AtPoint("after_decide", has_news=True, kills_tick=False),
    AtPoint("after_intents", has_news=True, kills_tick=False),
    AtCommit("heartbeat_control", has_news=True, kills_tick=False),
    AtPoint("after_publish", has_news=True, kills_tick=False),
)


def die(machine: Machine, death: Death) -> bool:
    """Let a tick die; return whether it did, for some come to their end before."""
    if death.has_news:
        machine.append()
    code = machine.end_of(death.befall(machine))
    if not death.kills_tick:
        assert code in (ExitCode.DONE, ExitCode.FAILED), f"{death}: {code}: {machine.complaint()}"
        assert code == ExitCode.DONE or machine.complaint().count("error: ") == 1
        return True
    assert code in (0, -signal.SIGKILL), f"{death}: {code}: {machine.complaint()}"
    return code != 0

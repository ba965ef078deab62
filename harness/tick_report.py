"""What one tick did, step by step: for its own row, for people and for scripts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from harness.inbox import Message
from harness.manual_runs import ManualRuns
from harness.publish import FOLD_AFTER_TICKS, Publication
from harness.quarantine import Quarantined
from harness.record import Recorded
from harness.registered import Registered
from harness.sense.round import PutOff
from harness.sense.types import Look, Upstream
from harness.settle import Settled
from harness.state import TickState, WatchedUpstream
from harness.tables import EventRow, LookOutcome, ProbeRow, RunRow, RunStatus, Tick

#: Starts without a run: not answered yet, or nothing more is to be expected unless somebody acts.
_NO_RUN = frozenset({RunStatus.INTENDED, RunStatus.REFUSED, RunStatus.PARKED})


@dataclass(slots=True, kw_only=True)
class TickReport:
    """What a tick did, for people and for ``--json``."""

    tick: Tick
    sensed: int = 0
    #: What was to be looked at, and how each is asked.
    upstreams: tuple[Upstream, ...] = ()
    looks: tuple[Look, ...] = ()
    #: What was to be looked at and was not: neither failures nor "nothing new".
    put_off: tuple[PutOff, ...] = ()
    #: What producers have told.
    registered: Registered = field(default_factory=Registered)
    recorded: Recorded | None = None
    #: What the triggers said; nothing when they were not asked.
    released: Recorded | None = None
    #: The triggers that cannot be evaluated, whether or not this tick tried.
    failing_triggers: tuple[WatchedUpstream, ...] = ()
    settled: Settled | None = None
    #: Steps of runs that Heartbeat did not start: jobs on their own schedule, and by hand.
    own_steps: tuple[RunRow, ...] = ()
    manual_runs: ManualRuns = field(default_factory=ManualRuns)
    started: tuple[RunRow, ...] = ()
    publication: Publication | None = None
    control_changes: int = 0
    #: The controls were fed in this tick, whether or not a row differed from what was recorded.
    has_fed_controls: bool = False
    #: Somebody else has written into the control table; what was published is to be put back.
    must_restore: bool = False
    warnings: tuple[str, ...] = ()
    #: What this tick could not read and went on without.
    quarantined: tuple[Quarantined, ...] = ()
    skipped: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    #: How long the command took up to the end of the tick, whatever it did.
    wall_seconds: float = 0.0

    @property
    def waiting(self) -> tuple[Message, ...]:
        """The messages that stay in the inbox until the Jobs API has reported an end."""
        return (*self.manual_runs.waiting, *(self.settled.waiting if self.settled else ()))

    @property
    def failures(self) -> tuple[Look, ...]:
        """The looks that failed, whether or not that was known already."""
        return tuple(look for look in self.looks if look.failure is not None)

    @property
    def probes(self) -> tuple[ProbeRow, ...]:
        """What upstreams have become by being looked at, and triggers by being asked."""
        parts = (self.recorded, self.released)
        return tuple(row for each in parts if each is not None for row in each.probes)

    @property
    def events(self) -> tuple[EventRow, ...]:
        """The data-change events that were recorded, by whoever they were learned."""
        return (*self.registered.events, *(self.recorded.events if self.recorded else ()))

    @property
    def event_count(self) -> int:
        """How many data-change events were recorded."""
        return len(self.events)

    @property
    def has_moved(self) -> bool:
        """True when looks, producers or triggers have left a row, even one that is no news."""
        return bool(self.registered.probes or self.probes or self.released)

    @property
    def is_clean(self) -> bool:
        """True when nothing fails that an operator should look at, whether or not it is put off."""
        sent = (*self.started, *(self.settled.rows if self.settled else ()))
        has_no_run = any(row.run_status in _NO_RUN for row in sent)
        unanswered = bool(self.settled and self.settled.unanswered)
        failing = self.failures or self.put_off or self.failing_triggers or self.quarantined
        return not (failing or has_no_run or unanswered)

    @property
    def counts(self) -> Mapping[str, int]:
        """What a tick did in numbers, under the names of ``ledger_ticks``."""
        return {
            "sensed_count": self.sensed,
            "event_count": self.event_count,
            "failed_look_count": len(self.failures),
            "settled_count": len(self.own_steps) + (len(self.settled.rows) if self.settled else 0),
            "started_count": sum(row.run_id is not None for row in self.started),
        }


def clock_warnings(before: datetime | None, at: datetime) -> tuple[str, ...]:
    """Return what is to be told when a tick's instant lies before that of the tick before."""
    if before is None or at >= before:
        return ()
    behind = before - at
    return (
        f"the clock went back by {behind.total_seconds():.0f} s since the last tick; order is kept "
        "by tick numbers, but times in the tables will look reversed",
    )


def must_decide(state: TickState, report: TickReport) -> bool:
    """Tell whether anything happened that a decision could depend on."""
    settled = bool(report.own_steps) or bool(report.settled and report.settled.rows)
    news = any(row.outcome is not LookOutcome.MOVED for row in report.probes)
    # Positions that move in silence and registered events, on which no job depends by themselves,
    # make the ledgers' tail longer; publishing folds it.
    tail = report.tick.number - state.folded_through
    must_fold = report.has_moved and tail > 2 * FOLD_AFTER_TICKS
    return state.must_decide or settled or news or must_fold

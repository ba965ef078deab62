"""What one tick did, step by step: for its own row, for people and for scripts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from harness.decide.trigger_due import Findings
from harness.publish.publish import Publication
from harness.sense.probe import ProbeResult
from harness.sense.schedule import Sweep
from harness.settle.manual_runs import ManualRuns
from harness.settle.settle import Settled
from harness.store.inbox import Message
from harness.store.quarantine import Quarantined
from harness.store.rows import Run, RunStatus, Tick
from harness.store.work_lists import Upstream

#: Starts without a run: not answered yet, or nothing more is to be expected without intervention.
_NO_RUN = frozenset({RunStatus.INTENDED, RunStatus.REFUSED, RunStatus.PARKED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What became of the runs that had been started before the tick."""

    #: Steps of runs that Heartbeat did not start: those of pull consumers, and those by hand.
    pull_steps: tuple[Run, ...] = ()
    manual_runs: ManualRuns = field(default_factory=ManualRuns)
    settled: Settled = field(default_factory=Settled)

    @property
    def steps(self) -> tuple[Run, ...]:
        """The newest row of each run that took a step."""
        return (*self.pull_steps, *self.settled.rows)

    @property
    def waiting(self) -> tuple[Message, ...]:
        """The messages that stay in the inbox until the Jobs API has reported an end."""
        return (*self.manual_runs.waiting, *self.settled.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickReport:
    """What a tick did, for people and for ``--json``; assembled at its end, from its results."""

    tick: Tick
    sensed: Sweep = field(default_factory=Sweep)
    findings: Findings = field(default_factory=Findings)
    #: The triggers that cannot be evaluated, whether or not this tick tried.
    failing_triggers: tuple[Upstream, ...] = ()
    settlement: Settlement = field(default_factory=Settlement)
    started: tuple[Run, ...] = ()
    #: The runs that go on, or hold their job, after the tick.
    followed: tuple[Run, ...] = ()
    publication: Publication | None = None
    #: How many control rows were added, changed and removed.
    control_changes: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    #: What this tick could not read and went on without.
    quarantined: tuple[Quarantined, ...] = ()
    skipped: tuple[str, ...] = ()
    #: Whether anything is probed or evaluated, triggers included.
    has_upstreams: bool = True
    #: By step; complete once the tick has ended.
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: How long the command took up to the end of the tick, whatever it did.
    wall_seconds: float = 0.0

    @property
    def results(self) -> tuple[ProbeResult, ...]:
        """The probes that were made."""
        return self.sensed.results

    @property
    def event_count(self) -> int:
        """How many data-change events were recorded."""
        return len(self.findings.events)

    @property
    def failures(self) -> tuple[ProbeResult, ...]:
        """The probes that failed, whether or not that was known already."""
        return tuple(result for result in self.results if result.failure is not None)

    @property
    def is_clean(self) -> bool:
        """True when nothing fails that needs an operator, whether or not it is deferred."""
        sent = (*self.started, *self.settlement.settled.rows)
        has_no_run = any(row.run_status in _NO_RUN for row in sent)
        failing = self.failures or self.sensed.deferred or self.failing_triggers or self.quarantined
        return not (failing or has_no_run or self.settlement.settled.unanswered)


def counts_of(
    results: Sequence[ProbeResult],
    findings: Findings,
    settlement: Settlement,
    started: Sequence[Run],
) -> Mapping[str, int]:
    """Return what a tick did in numbers, under the names of ``ledger_ticks``."""
    return {
        "sensed_count": len(results),
        "event_count": len(findings.events),
        "failed_look_count": sum(result.failure is not None for result in results),
        "settled_count": len(settlement.steps),
        "started_count": sum(row.run_id is not None for row in started),
    }


def clock_warnings(before: datetime | None, at: datetime) -> tuple[str, ...]:
    """Return what is to be reported when a tick's instant lies before that of the tick before."""
    if before is None or at >= before:
        return ()
    behind = before - at
    return (
        f"the clock went back by {behind.total_seconds():.0f} s since the last tick; order is kept "
        "by tick numbers, but times in the tables will look reversed",
    )

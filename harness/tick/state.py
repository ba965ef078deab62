"""What a process keeps between two ticks, as the work lists of the models have it.

``harness.tick.checkpoint`` passes it to the next process.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from harness.decide.triggers import Evaluation
from harness.publish.publish import Publication
from harness.store.rows import Run, Tick
from harness.store.work_lists import AT_ONCE, EVENT_TRIGGER, Orphan, PlannedRetry, Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class TickState:
    """Everything that a tick starts from."""

    #: The last tick that recorded something; the next one is one more.
    tick_number: int
    tick_at: datetime | None
    #: Ledger rows up to this tick are in the current-state tables.
    folded_through: int
    upstreams: tuple[Upstream, ...]
    runs: tuple[Run, ...]
    #: Which of them start again automatically.
    retries: tuple[PlannedRetry, ...] = ()
    #: The controls CSV that is seeded, by its checksum.
    controls_checksum: str | None
    #: The last tick that came to its end; a later one that recorded something was killed.
    ended_tick_number: int
    #: They are found again some day.
    orphans: tuple[Orphan, ...] = ()
    #: The tables that producers register, by key, and how many partition levels each has, if known.
    registered: Mapping[str, int | None] = field(default_factory=dict)
    #: True when the last tick left something to decide: a limit, or it did not come to its end.
    must_decide: bool
    #: True while a tick that decided is not public: the next process decides and publishes again.
    must_publish: bool = False
    #: When a trigger may release an event without any new event; ``None``: never.
    triggers_due_at: datetime | None = AT_ONCE
    #: What every table was when this was written.
    fingerprints: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_recovering(self) -> bool:
        """True when the last tick was killed before it came to its end."""
        return self.tick_number > self.ended_tick_number

    @property
    def sensed(self) -> tuple[Upstream, ...]:
        """The upstreams that are probed."""
        return tuple(each for each in self.upstreams if each.source != EVENT_TRIGGER)

    @property
    def triggers(self) -> tuple[Upstream, ...]:
        """The upstreams that are evaluated in SQL."""
        return tuple(each for each in self.upstreams if each.source == EVENT_TRIGGER)

    @property
    def failing_triggers(self) -> tuple[Upstream, ...]:
        """The triggers that cannot be evaluated."""
        return tuple(each for each in self.triggers if each.failing_since is not None)

    @property
    def reported_snapshots(self) -> dict[str, frozenset[str]]:
        """What the killed tick reported, by upstream."""
        reported: dict[str, set[str]] = {}
        for orphan in self.orphans:
            reported.setdefault(orphan.upstream_id, set()).add(orphan.snapshot_id)
        return {upstream_id: frozenset(each) for upstream_id, each in reported.items()}

    def moved(self, tick: Tick) -> "TickState":
        """Return a copy after a tick that recorded something and had nothing to decide."""
        # Earlier ticks that are not public have no row yet, so this one has not ended, either.
        ended = self.ended_tick_number if self.must_publish else tick.number
        return replace(self, tick_number=tick.number, ended_tick_number=ended, tick_at=tick.at)

    def decided(self, tick: Tick) -> "TickState":
        """Return a copy after a tick that decided and is to be published."""
        return replace(
            self, tick_number=tick.number, tick_at=tick.at, must_decide=False, must_publish=True
        )

    def with_runs(self, rows: Iterable[Run]) -> "TickState":
        """Return a copy in which runs have taken further steps."""
        rows = tuple(rows)
        if not rows:
            return self
        runs = {run.job_id: run for run in self.runs}
        for row in rows:
            runs[row.job_id] = row
        kept = [run for run in runs.values() if run.is_open or run.holds_job]
        return replace(self.with_consumed(rows), runs=tuple(kept))

    def with_consumed(self, rows: Iterable[Run]) -> "TickState":
        """Return a copy in which runs have consumed events; no run is followed because of it."""
        rows = tuple(rows)
        if not rows:
            # An idle tick of many thousands is faster without a copy of the list.
            return self
        upstreams = {each.upstream_id: each for each in self.upstreams}
        for row in rows:
            for each in row.consumed:
                if each.upstream_id in upstreams:
                    before = upstreams[each.upstream_id]
                    upstreams[each.upstream_id] = before.consumed_by(row.job_id, each)
        return replace(self, upstreams=tuple(upstreams.values()))

    def published(self, publication: Publication, *, must_publish: bool) -> "TickState":
        """Return a copy after a publication.

        Args:
            publication: What was made public.
            must_publish: Later ticks wait for theirs.
        """
        return replace(
            self,
            retries=publication.retries,
            folded_through=publication.folded_through,
            ended_tick_number=publication.tick.number if must_publish else self.tick_number,
            must_decide=self.must_decide or publication.has_ready,
            must_publish=must_publish,
        )

    def with_evaluation(self, found: Evaluation) -> "TickState":
        """Return a copy after the triggers were evaluated."""
        return replace(
            self.with_upstreams(found.recorded.changed),
            triggers_due_at=found.due_at,
            must_decide=self.must_decide or found.waits_otherwise,
        )

    def with_upstreams(self, changed: Mapping[str, Upstream]) -> "TickState":
        """Return a copy with some upstreams replaced."""
        if not changed:
            return self
        upstreams = tuple(changed.get(each.upstream_id, each) for each in self.upstreams)
        return replace(self, upstreams=upstreams)

"""One tick: controls, settle, sense, record, triggers, decide, fire, publish, in this order.

``Engine`` keeps the state of a process between ticks. Each step can be repeated: whatever dies
between two of them, the next tick goes on from the ledgers. In a resident process ticks are
published while the next ones go on, and this thread records it as soon as it is done.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from harness.context import Context
from harness.controls.accept import imported_in_force
from harness.controls.load import record_changes
from harness.decide.trigger_due import Findings, TriggerTables, triggers_are_due
from harness.decide.triggers import Evaluation, evaluate_triggers
from harness.errors import DecideError
from harness.events.payload import restore_payloads
from harness.fire.intents import Start, fire
from harness.fire.submit import Steps
from harness.platform.logs import log_as_tick
from harness.platform.stopping import Stop
from harness.publish.publish import COMPACT_AFTER_TICKS, Publication, Publisher
from harness.record import registrations
from harness.record.batch_inbox import receive_batches, remove_batches
from harness.record.correlate import SameChanges
from harness.record.probes import Known, record
from harness.sense.probe import ProbeResult
from harness.sense.schedule import Listening, Sweep, Sweeps
from harness.settle import manual_runs, pull_consumers
from harness.settle.carried_over import carry_over, first_probes
from harness.settle.retry_policy import planned_retries, request_due_retries
from harness.settle.settle import settle
from harness.settle.unreachable_runs import record_unreachable
from harness.store.inbox import Message, receive, remove
from harness.store.quarantine import Quarantine, Quarantined, quarantined_settings
from harness.store.rows import Ledger, ProbeOutcome, Run, Tick
from harness.store.work_lists import AT_ONCE, Upstream
from harness.tick.checkpoint import load_from_models, load_state, save_state
from harness.tick.install import Installation, desk_of, published_of
from harness.tick.report import Settlement, TickReport, clock_warnings, counts_of
from harness.tick.state import TickState

log = logging.getLogger(__name__)

#: What is shown of each step while it goes on.
PHASES = {
    "controls": "reading the controls",
    "settle": "following the runs that go on",
    "sense": "probing the upstreams",
    "record": "recording what was found",
    "triggers": "evaluating the triggers",
    "decide": "deciding",
    "fire": "starting jobs",
    "publish": "publishing the tables",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TickOptions:
    """Which upstreams a tick probes; it always decides about all jobs."""

    sources: frozenset[str] = frozenset()
    jobs: frozenset[int] = frozenset()
    #: Probe nothing: the tick is for what was left in the inbox.
    is_for_inbox: bool = False
    #: Accept the removal of many control rows.
    allow_mass_removal: bool = False
    #: Called with each result, for a progress bar; ``on_plan`` first, with their number.
    on_result: Callable[[ProbeResult], None] | None = None
    on_plan: Callable[[int], None] | None = None
    #: When the command began (`time.monotonic`), for the time that it took; else the tick itself.
    began: float | None = None

    def wants(self, upstream: Upstream) -> bool:
        """Return whether this tick probes the upstream."""
        by_source = not self.sources or upstream.source in self.sources
        by_job = not self.jobs or bool(self.jobs & set(upstream.job_ids))
        return by_source and by_job and not self.is_for_inbox


class Engine:
    """Ticks, and keeps the state between ticks.

    Args:
        context: The services; wired once.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._installation = Installation(context)
        self._sweeps = Sweeps(context.settings, context.home.back_off)
        self._trigger_tables = TriggerTables(context.settings.project, context.home.accepted)
        self._publisher = Publisher(context, published_of(context), context.publishing())
        self._state: TickState | None = None
        #: A tick has looked for edits of the control table since it was last published.
        self._has_examined = False
        #: The terms of the triggers are built, as far as this process has recorded.
        self._has_trigger_terms = True

    def tick(self, options: TickOptions | None = None) -> TickReport:
        """Do one tick.

        Raises:
            ControlsError: Many control rows are gone from the CSV; nothing moved.
            DecideError: dbt did not succeed; what was seen is recorded, nothing was started.
            StateError: The state directory or a ledger cannot be used.
            LockedError: Another process has taken over; nothing more is written or started.
        """
        options = options or TickOptions()
        began = time.monotonic()
        self._context.lock.check()
        at = self._context.clock.now()
        self._context.stop.activity.begin("getting ready")
        self.collect()
        if self._state is None:
            self._installation.check()
        # Before anything is built: building overwrites them, too. What a publication has just
        # written is no edit.
        is_at_work = self._publisher.is_at_work
        edits = () if is_at_work else published_of(self._context).edits(at)
        self._has_examined = not is_at_work
        state = self._ready_state(at, options)
        tick = Tick(number=state.tick_number + 1, at=at)
        timer = _Timer(self._context.stop, setup=round(time.monotonic() - began, 3))
        with log_as_tick(tick.id):
            try:
                self._state, report = self._steps(state, tick, options, edits, timer)
            except BaseException:
                self._forget()
                raise
        seconds = time.monotonic() - (began if options.began is None else options.began)
        return replace(report, wall_seconds=seconds)

    @property
    def is_publishing(self) -> bool:
        """True while some tick is not public."""
        return self._publisher.is_behind

    @property
    def has_news(self) -> bool:
        """True when something was left in the inbox since the last tick read it."""
        return self._context.inbox.has_news()

    def collect(self) -> Publication | None:
        """Record what a publication came to that has ended meanwhile, if one has.

        Raises:
            DecideError: It failed; the next tick decides and publishes again.
            StateError: The same.
            LockedError: Another process has taken over.
        """
        if not self._publisher.is_done or self._state is None:
            return None
        try:
            self._state, publication = self._collected(self._state)
            self._context.keep_state()
        except BaseException:
            self._forget()
            raise
        return publication

    def publish(self) -> None:
        """Begin to publish what waits, in a pause: the next ticks go on beside it."""
        if self._state is not None and self._has_examined:
            self._publisher.launch(self._state)

    def finish(self) -> None:
        """Wait until every tick is public, so that nothing goes on beside what follows.

        Raises:
            DecideError: Publishing failed; the next tick decides and publishes again.
            StateError: The same.
            LockedError: Another process has taken over.
        """
        while self._state is not None and self._publisher.is_behind:
            self._publisher.launch(self._state)
            self._publisher.wait()
            self.collect()

    def close(self) -> None:
        """End what goes on in the background; what is not public, the next process publishes."""
        self._publisher.close()

    def _forget(self) -> None:
        """Let the next tick read the ledgers: what is in memory may be behind them now."""
        self._state = None
        self._publisher.abandon()
        self._context.leave_engine()

    def _collected(self, state: TickState) -> tuple[TickState, Publication | None]:
        self._context.lock.check()
        self._has_examined = False
        publication = self._publisher.record(state)
        if publication is not None:
            state = state.published(publication, must_publish=self._publisher.is_behind)
            self._save(state)
        return state, publication

    def _ready_state(self, at: datetime, options: TickOptions) -> TickState:
        context = self._context
        if self._state is None:
            self._installation.ensure(at, allow_mass_removal=options.allow_mass_removal)
            context.stop.activity.begin("reading the state")
            self._state = load_state(context.home.state, context.store)
        if self._state is None:
            self._state = load_from_models(context)
        if self._state.must_publish and not self._publisher.is_behind:
            # A process has ended before it came to that.
            self._state = replace(self._state, must_decide=True, must_publish=False)
        return self._state

    def _steps(
        self,
        state: TickState,
        tick: Tick,
        options: TickOptions,
        edits: tuple[Quarantined, ...],
        timer: "_Timer",
    ) -> tuple[TickState, TickReport]:
        warnings = clock_warnings(state.tick_at, tick.at)
        if edits:
            # Publishing restores the rows.
            state = replace(state, must_decide=True)
        quarantine = Quarantine(self._context.home.inbox, tick.at)
        has_read = self._publisher.has_read
        with timer.phase("controls"):
            controls, state = self._controls(state, tick, options)
        self._context.inbox.collect()
        messages = receive(self._context.home.inbox, quarantine)
        steps = Steps()
        with timer.phase("settle"):
            settlement, state = self._settle(state, messages, tick, steps)
        with timer.phase("sense"):
            sensed = self._sense(state, tick, options)
        with timer.phase("record"):
            results, consumed = self._carried_over(state, sensed.results, tick, steps)
            findings, state = self._record(state, results, tick, quarantine)
            if consumed:
                state = replace(state.with_runs(consumed), must_decide=True)
        findings = replace(findings, steps=settlement.steps)
        if triggers_are_due(state, tick, findings, self._trigger_tables):
            with timer.phase("triggers"), self._publisher.held_off():
                found = self._triggers(state, tick)
                findings = replace(findings, released=found.recorded)
                state = state.with_evaluation(found)
        skipped: tuple[str, ...] = ("decide", "fire", "publish")
        started: tuple[Run, ...] = ()
        before = state.tick_number
        if _must_decide(state, tick, findings):
            skipped = ()
            with self._publisher.held_off():
                with timer.phase("decide"):
                    starts = self._decide()
                with timer.phase("fire"):
                    started, state = self._fire(state, starts, tick, steps)
            state = state.decided(tick)
            counts = counts_of(sensed.results, findings, settlement, started)
            self._publisher.add(tick, counts)
        elif findings.has_moved:
            # Nothing was decided; keep what moved silently.
            state = state.moved(tick)
            self._save(state)
        if state.tick_number > before and not has_read:
            self._publisher.disturb()
        publication = None
        if self._publisher.is_behind:
            with timer.phase("publish"):
                state, publication = self._publish(state, has_decided=not skipped)
        _clear(messages, settlement, findings)
        self._context.keep_state()
        self._context.inbox.settle()
        return state, TickReport(
            tick=tick,
            sensed=sensed,
            findings=findings,
            failing_triggers=state.failing_triggers,
            settlement=settlement,
            started=started,
            followed=state.runs,
            publication=publication,
            control_changes=controls.changes,
            warnings=(*warnings, *controls.warnings),
            quarantined=(*edits, *controls.quarantined, *self._misconfigured(), *quarantine.items),
            skipped=skipped,
            has_upstreams=bool(state.upstreams),
            seconds=timer.seconds,
        )

    def _publish(
        self, state: TickState, *, has_decided: bool
    ) -> tuple[TickState, Publication | None]:
        """Publish what waits, or let that go on by itself.

        New data often comes in bursts: what would begin after one tick with it takes the processor
        from the decision of the next one, and is in vain if that moves something.
        """
        if not self._context.publishes_aside:
            self._publisher.launch(state)
            self._publisher.wait()
            return self._collected(state)
        if not has_decided or self._publisher.is_pressed:
            self._publisher.launch(state)
        return state, None

    def _controls(
        self, state: TickState, tick: Tick, options: TickOptions
    ) -> tuple["_Controls", TickState]:
        context = self._context
        desk = desk_of(context)
        if desk.checksum() == state.controls_checksum:
            return _Controls(quarantined=desk.quarantined), state
        # What is published has to be of before or of after the edit.
        self._publisher.wait()
        if self._publisher.is_done:
            state, _ = self._collected(state)
        accepted = desk.accept(tick.at, allow_mass_removal=options.allow_mass_removal)
        self._installation.load_seeds(tick.at)
        changes = record_changes(context.rows, context.store, tick)
        context.forget_jobs()
        upstreams = tuple(map(Upstream.from_row, context.rows("queue_upstreams")))
        self._has_trigger_terms = False
        # An edit may be what puts an upstream right.
        self._sweeps.try_again(row.upstream_id for row in changes)
        loaded = _Controls(
            changes=Counter(row.change for row in changes),
            warnings=accepted.warnings,
            quarantined=accepted.quarantined,
        )
        return loaded, replace(
            state,
            upstreams=upstreams,
            retries=planned_retries(context.rows, state.runs),
            controls_checksum=accepted.checksum,
            must_decide=True,
            triggers_due_at=AT_ONCE,
        )

    def _misconfigured(self) -> tuple[Quarantined, ...]:
        settings = self._context.settings
        return tuple(quarantined_settings(settings.file, settings.quarantined))

    def _settle(
        self, state: TickState, messages: Sequence[Message], tick: Tick, steps: Steps
    ) -> tuple[Settlement, TickState]:
        context = self._context
        pull_steps = pull_consumers.apply(
            messages, state, tick=tick, steps=steps, store=context.store
        )
        by_hand = manual_runs.ManualRuns()
        if reports := manual_runs.reports_in(messages, state):
            by_hand = manual_runs.apply(
                reports, state, tick=tick, steps=steps, firing=context.firing
            )
        settlement = Settlement(pull_steps=(*pull_steps, *by_hand.rows), manual_runs=by_hand)
        state = state.with_consumed(settlement.pull_steps)
        if not state.runs:
            return settlement, state
        if context.files is None:
            # In a workspace a run finds its events in the tables.
            restore_payloads(state.runs, context.store)
        settled = settle(state.runs, messages, tick=tick, firing=context.firing, steps=steps)
        settled = request_due_retries(settled, state, tick=tick, steps=steps, store=context.store)
        record_unreachable(context.home.folder, state.runs, settled.unanswered, tick.at)
        context.crash_point("after_settle")
        return replace(settlement, settled=settled), state.with_runs(settled.rows)

    def _sense(self, state: TickState, tick: Tick, options: TickOptions) -> Sweep:
        # In every tick: one that loaded new controls may have died before it came here.
        sensed = state.sensed
        self._sweeps.keep_only(each.upstream_id for each in sensed)
        wanted = [each for each in sensed if options.wants(each)]
        if not wanted:
            return Sweep()
        return self._sweeps.probe(
            wanted,
            lambda: self._context.probe_pool,
            at=tick.at,
            reported=state.reported_snapshots,
            listening=Listening(on_plan=options.on_plan, on_result=options.on_result),
        )

    def _carried_over(
        self, state: TickState, results: Sequence[ProbeResult], tick: Tick, steps: Steps
    ) -> tuple[Sequence[ProbeResult], tuple[Run, ...]]:
        """Record what an earlier sensor had passed to jobs of what is probed for the first time."""
        if not first_probes(results, state):
            return results, ()
        context = self._context
        imported = imported_in_force(context.home.accepted)
        carried = carry_over(results, imported, state, tick=tick, store=context.store)
        rows = tuple(replace(row, step_number=steps.next()) for row in carried.rows)
        # First of all: killed after it, the next tick probes for the first time again.
        context.store.append(Ledger.RUNS, rows)
        return carried.results, rows

    def _record(
        self, state: TickState, results: Sequence[ProbeResult], tick: Tick, quarantine: Quarantine
    ) -> tuple[Findings, TickState]:
        context = self._context
        sensed = state.sensed
        watched = {each.upstream_id: each for each in sensed}
        context.crash_point("before_record")
        batches = receive_batches(context.home.inbox, at=tick.at, quarantine=quarantine)
        if quarantine.items:
            quarantine.tidy()
        same = SameChanges(context.store, tick, (each.sensor_id for each in sensed))
        fresh = registrations.ingest(
            batches, state.registered, tick=tick, store=context.store, same=same
        )
        known = Known(
            event_ids=frozenset(orphan.event_id for orphan in state.orphans), join=same.join
        )
        recorded = record(results, tick=tick, watched=watched, store=context.store, known=known)
        state = replace(state, registered=fresh.tables).with_upstreams(recorded.changed)
        context.crash_point("after_record")
        return Findings(registered=fresh, recorded=recorded), state

    def _triggers(self, state: TickState, tick: Tick) -> Evaluation:
        def prepare() -> None:
            # An evaluation that failed as a whole may have failed at these.
            if self._has_trigger_terms and len(state.failing_triggers) < len(state.triggers):
                return
            self._has_trigger_terms = False
            self._publisher.wait()
            self._installation.ensure_triggers(tick.at)
            self._has_trigger_terms = True

        return evaluate_triggers(self._context, state, tick, prepare=prepare)

    def _decide(self) -> list[Start]:
        context = self._context
        limit = context.settings.jobs.starts_per_tick
        rows = context.rows("trigger_set")
        # Another limit, or a plain `dbt build`, has made the views with another one. It has started
        # nothing yet, and where no job may start, no limit matters.
        if any(row["starts_per_tick"] != limit for row in rows):
            self._publisher.wait()
            context.dbt.build("decide", {"starts_per_tick": limit})
            rows = context.rows("trigger_set")
        context.crash_point("after_decide")
        starts = [Start.from_row(row) for row in rows]
        if len({start.job_id for start in starts}) < len(starts):
            raise DecideError("The trigger set names a job twice, so nothing was started")
        return starts

    def _fire(
        self, state: TickState, starts: Sequence[Start], tick: Tick, steps: Steps
    ) -> tuple[tuple[Run, ...], TickState]:
        if not starts:
            return (), state
        rows = fire(starts, tick=tick, firing=self._context.firing, steps=steps)
        return tuple(rows), state.with_runs(rows)

    def _save(self, state: TickState) -> None:
        context = self._context
        save_state(context.home.state, state, context.store, confirm=context.lock.confirm)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Controls:
    """What reading the controls CSV and the seeds beside it came to."""

    #: How many rows were added, changed and removed.
    changes: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()


class _Timer:
    """Measures the phases of a tick; none begins once the process is to end."""

    def __init__(self, stop: Stop, **seconds: float) -> None:
        self._stop = stop
        self.seconds = dict(seconds)

    @contextmanager
    def phase(self, step: str) -> Iterator[None]:
        """Measure one phase, under the name of its step."""
        self._stop.check()
        self._stop.activity.begin(PHASES[step])
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = round(time.perf_counter() - began, 3)


def _must_decide(state: TickState, tick: Tick, findings: Findings) -> bool:
    """Return whether anything happened that a decision could depend on."""
    is_change = any(row.outcome is not ProbeOutcome.MOVED for row in findings.probes)
    # Cursors that move in silence and registered events, on which no job depends on their own,
    # make the ledgers' tail longer; publishing checks now and then whether it has to be compacted.
    tail = tick.number - state.folded_through
    must_compact = findings.has_moved and tail % (2 * COMPACT_AFTER_TICKS) == 0
    return state.must_decide or bool(findings.steps) or is_change or must_compact


def _clear(messages: Sequence[Message], settlement: Settlement, findings: Findings) -> None:
    """Empty the inbox of what the ledgers have; a report of success waits for the run's end."""
    waiting = settlement.waiting
    for message in messages:
        if message not in waiting:
            remove(message)
    remove_batches(findings.registered.batches)

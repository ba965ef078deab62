"""One tick: controls, settle, sense, record, triggers, decide, fire, publish, in this order.

``Engine`` keeps what a process knows between ticks. Each step can be repeated: whatever dies
between two of them, the next tick goes on from the ledgers.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from harness import feed, manual_runs, own_schedule, registered
from harness.batches import Batch, receive_batches, remove_batches
from harness.calls import Steps
from harness.context import Context
from harness.errors import DecideError
from harness.fire import Start, fire, restore_handed_over
from harness.inbox import Message, receive, remove
from harness.installation import Installation, desk_of, published_of
from harness.logs import log_as_tick
from harness.memory import load_from_models
from harness.publish import publish
from harness.quarantine import Quarantine, quarantined_settings
from harness.record import Known, Recorded, record
from harness.retries import planned_retries, want_again
from harness.same_change import SameChanges
from harness.sense.round import Listening, Rounds
from harness.sense.types import Look
from harness.settle import settle
from harness.state import AT_ONCE, TickState, WatchedUpstream
from harness.state_file import load_state, save_state
from harness.tables import Tick
from harness.tick_report import TickReport, clock_warnings, must_decide
from harness.trigger_due import TriggerTables, triggers_are_due
from harness.trigger_looks import look_at_triggers
from harness.unasked import note_unasked

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
    """Which part of the upstreams a tick looks at; what it decides is always the whole."""

    sources: frozenset[str] = frozenset()
    jobs: frozenset[int] = frozenset()
    #: Many control rows may leave the CSV at once.
    allow_mass_removal: bool = False
    #: Called with each look, for a progress bar, and first with the number of looks to come.
    on_look: Callable[[Look], None] | None = None
    on_plan: Callable[[int], None] | None = None
    #: When the command began (`time.monotonic`), for the time that it took; else the tick itself.
    began: float | None = None

    def wants(self, upstream: WatchedUpstream) -> bool:
        """Tell whether this tick looks at the upstream."""
        by_source = not self.sources or upstream.sensor_source in self.sources
        return by_source and (not self.jobs or bool(self.jobs & set(upstream.job_ids)))


class Engine:
    """Ticks, and remembers between ticks.

    Args:
        context: The services; wired once.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._installation = Installation(context)
        self._rounds = Rounds(context.settings, context.home.back_off)
        self._trigger_tables = TriggerTables(context.settings.project, context.home.accepted)
        self._state: TickState | None = None
        #: What the triggers ask for is worked out, as far as this process knows.
        self._has_trigger_terms = True
        #: The limit of starts that one of the decision's views was built with.
        self._limit_in_views: int | None = None

    def tick(self, options: TickOptions | None = None) -> TickReport:
        """Do one tick.

        Raises:
            ControlsError: Many control rows are gone from the CSV; nothing moved.
            DecideError: dbt did not succeed; what was seen is recorded, nothing was started.
            StateError: The state folder or a ledger cannot be used.
            LockedError: Another process has taken over; nothing more is written or started.
        """
        options = options or TickOptions()
        began = time.monotonic()
        self._context.lock.check()
        at = self._context.clock.now()
        self._context.stop.activity.begin("getting ready")
        if self._state is None:
            self._installation.check()
        # Before anything is built: building overwrites them, too.
        edits = published_of(self._context).edits(at)
        state = self._ready_state(at, options)
        tick = Tick(number=state.tick_number + 1, at=at)
        warnings = clock_warnings(state.tick_at, at)
        report = TickReport(tick=tick, warnings=warnings, quarantined=edits)
        if edits:
            # Publishing restores the rows.
            report.must_restore = True
            state = replace(state, must_decide=True)
        report.seconds["setup"] = round(time.monotonic() - began, 3)
        with log_as_tick(tick.id):
            try:
                self._state = self._steps(state, report, options)
            except BaseException:
                # What is in memory may be behind the ledgers now; the next tick reads them again.
                self._state = None
                raise
        report.wall_seconds = time.monotonic() - (began if options.began is None else options.began)
        return report

    def _ready_state(self, at: datetime, options: TickOptions) -> TickState:
        context = self._context
        if self._state is None:
            self._limit_in_views = None
            self._installation.ensure(at, allow_mass_removal=options.allow_mass_removal)
            self._state = load_state(context.home.state, context.store)
        if self._state is None:
            self._state = load_from_models(context)
        return self._state

    def _steps(self, state: TickState, report: TickReport, options: TickOptions) -> TickState:
        with self._timed(report, "controls"):
            state = self._controls(state, report, options)
        messages = self._receive(report)
        steps = Steps()
        with self._timed(report, "settle"):
            state = self._settle(state, messages, report, steps)
        with self._timed(report, "sense"):
            looks = self._sense(state, report, options)
        with self._timed(report, "record"):
            state = self._record(state, looks, report)
        if triggers_are_due(state, report, self._trigger_tables):
            with self._timed(report, "triggers"):
                report.released, state = self._triggers(state, report)
        report.failing_triggers = state.failing_triggers
        if not must_decide(state, report):
            report.skipped = ("decide", "fire", "publish")
            return self._rest(state, report, messages)
        with self._timed(report, "decide"):
            starts = self._decide(state)
        with self._timed(report, "fire"):
            state = self._fire(state, starts, report, steps)
        with self._timed(report, "publish"):
            state = self._publish(state, report)
        self._save(state)
        _clear(messages, report)
        return state

    def _controls(self, state: TickState, report: TickReport, options: TickOptions) -> TickState:
        context = self._context
        desk = desk_of(context)
        if desk.checksum() == state.controls_checksum:
            report.quarantined += desk.quarantined
            return state
        accepted = desk.accept(report.tick.at, allow_mass_removal=options.allow_mass_removal)
        report.quarantined += accepted.quarantined
        report.warnings += accepted.warnings
        report.has_fed_controls = True
        context.dbt.seed_controls()
        changes = feed.record_changes(context.rows, context.store, report.tick)
        report.control_changes = len(changes)
        context.forget_jobs()
        upstreams = tuple(map(WatchedUpstream.from_row, context.rows("queue_upstreams")))
        self._has_trigger_terms = False
        # An edit may be what puts an upstream right.
        self._rounds.try_again(row.upstream_id for row in changes)
        return replace(
            state,
            upstreams=upstreams,
            retries=planned_retries(context.rows, state.runs),
            controls_checksum=accepted.checksum,
            must_decide=True,
            triggers_due_at=AT_ONCE,
        )

    def _receive(self, report: TickReport) -> Sequence[Message]:
        inbox = self._context.home.inbox
        settings = self._context.settings
        report.quarantined += tuple(quarantined_settings(settings.file, settings.quarantined))
        quarantine = Quarantine(inbox, report.tick.at)
        messages = receive(inbox, quarantine)
        report.quarantined += tuple(quarantine.items)
        return messages

    def _receive_batches(self, report: TickReport) -> Sequence[Batch]:
        inbox = self._context.home.inbox
        quarantine = Quarantine(inbox, report.tick.at)
        batches = receive_batches(inbox, at=report.tick.at, quarantine=quarantine)
        report.quarantined += tuple(quarantine.items)
        if report.quarantined:
            quarantine.tidy()
        return batches

    def _settle(
        self, state: TickState, messages: Sequence[Message], report: TickReport, steps: Steps
    ) -> TickState:
        report.own_steps = own_schedule.fold(
            messages, state, tick=report.tick, steps=steps, store=self._context.store
        )
        if by_hand := manual_runs.reports_in(messages, state):
            report.manual_runs = manual_runs.fold(
                by_hand, state, tick=report.tick, steps=steps, firing=self._context.firing
            )
            report.own_steps += report.manual_runs.rows
        state = state.with_taken(report.own_steps)
        if not state.runs:
            return state
        restore_handed_over(state.runs, self._context.store)
        settled = settle(
            state.runs, messages, tick=report.tick, firing=self._context.firing, steps=steps
        )
        report.settled = want_again(
            settled, state, tick=report.tick, steps=steps, store=self._context.store
        )
        note_unasked(
            self._context.home.folder, state.runs, report.settled.unanswered, report.tick.at
        )
        self._context.crash_point("after_settle")
        return state.with_runs(report.settled.rows)

    def _sense(self, state: TickState, report: TickReport, options: TickOptions) -> Sequence[Look]:
        # In every tick: one that fed new controls may have died before it came here.
        self._rounds.keep_only(each.upstream_id for each in state.sensed)
        wanted = [each for each in state.sensed if options.wants(each)]
        if not wanted:
            return ()
        made = self._rounds.look(
            wanted,
            lambda: self._context.looker,
            at=report.tick.at,
            told=state.told_snapshots,
            listening=Listening(on_plan=options.on_plan, on_look=options.on_look),
        )
        report.sensed, report.looks = len(made.looks), made.looks
        report.upstreams, report.put_off = made.upstreams, made.put_off
        return made.looks

    def _record(self, state: TickState, looks: Sequence[Look], report: TickReport) -> TickState:
        context = self._context
        watched = {each.upstream_id: each for each in state.sensed}
        self._context.crash_point("before_record")
        tables = (each.sensor_id for each in state.sensed)
        same = SameChanges(context.store, report.tick, tables)
        report.registered = registered.fold(
            self._receive_batches(report),
            state.registered,
            tick=report.tick,
            store=context.store,
            same=same,
        )
        state = replace(state, registered=report.registered.tables)
        report.recorded = record(
            looks,
            tick=report.tick,
            watched=watched,
            store=context.store,
            known=Known(
                event_ids=frozenset(orphan.event_id for orphan in state.orphans), join=same.join
            ),
        )
        state = state.with_upstreams(report.recorded.changed)
        self._context.crash_point("after_record")
        return state

    def _triggers(self, state: TickState, report: TickReport) -> tuple[Recorded, TickState]:
        def prepare() -> None:
            # An evaluation that failed as a whole may have failed at these.
            if self._has_trigger_terms and len(state.failing_triggers) < len(state.triggers):
                return
            self._has_trigger_terms = False
            self._installation.ensure_triggers(report.tick.at, state.folded_through)
            self._has_trigger_terms = True

        return look_at_triggers(self._context, state, report.tick, prepare=prepare)

    def _decide(self, state: TickState) -> list[Start]:
        context = self._context
        limit = context.settings.jobs.starts_per_tick
        if self._limit_in_views != limit:
            variables = {"starts_per_tick": limit, "folded_through": state.folded_through}
            context.dbt.build("decide", variables)
            self._limit_in_views = limit
        context.crash_point("after_decide")
        starts = [Start.from_row(row) for row in context.rows("trigger_set")]
        if len({start.job_id for start in starts}) < len(starts):
            raise DecideError("The trigger set names a job twice, so nothing was started")
        return starts

    def _fire(
        self, state: TickState, starts: Sequence[Start], report: TickReport, steps: Steps
    ) -> TickState:
        if not starts:
            return state
        rows = fire(starts, tick=report.tick, firing=self._context.firing, steps=steps)
        report.started = tuple(rows)
        return state.with_runs(rows)

    def _publish(self, state: TickState, report: TickReport) -> TickState:
        context = self._context
        report.publication, state = publish(
            context,
            state,
            report.tick,
            report.counts,
            controls_changed=report.has_fed_controls or report.must_restore,
        )
        published_of(context).note()
        return state

    def _rest(self, state: TickState, report: TickReport, messages: Sequence[Message]) -> TickState:
        """End a tick that decided nothing; keep what moved silently."""
        if report.has_moved:
            state = state.ended(report.tick, must_decide=False)
            self._save(state)
        _clear(messages, report)
        return state

    def _save(self, state: TickState) -> None:
        context = self._context
        save_state(context.home.state, state, context.store, confirm=context.lock.confirm)

    @contextmanager
    def _timed(self, report: TickReport, step: str) -> Iterator[None]:
        self._context.stop.check()
        self._context.stop.activity.begin(PHASES[step])
        began = time.perf_counter()
        try:
            yield
        finally:
            report.seconds[step] = round(time.perf_counter() - began, 3)


def _clear(messages: Sequence[Message], report: TickReport) -> None:
    """Empty the inbox of what the ledgers have; a report of success waits for the run's end."""
    waiting = report.waiting
    for message in messages:
        if message not in waiting:
            remove(message)
    remove_batches(report.registered.batches)

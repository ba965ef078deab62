"""Probes many upstreams side by side; one probe that raises or hangs stops no other.

A thread takes a share of the tasks of one source, and leaves the results in it. The calling thread
collects them while the pass goes on, lets others do the rest of a share that takes long, and
abandons a probe that passed its limit.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime

from harness.events.event import ChangeEvent
from harness.platform.masking import masked
from harness.platform.text import first_line, storable
from harness.sense.fair_queue import FairQueue
from harness.sense.probe import Continued, Probe, ProbeResult
from harness.store.work_lists import AT_ONCE, Upstream

#: How often results are collected. A share that is there twice takes long.
_COLLECT_EVERY_SECONDS = 0.025
#: A source has so many probes hang in one pass at least before its others are deferred.
_LEAST_HUNG = 2
#: No column of a ledger holds more.
_PAST_LONGS = 2**63


@dataclass(slots=True, eq=False)
class _Group:
    """Upstreams that are probed together, or one that the probe of its group continues."""

    upstreams: list[Upstream]
    continued: Continued | None = None


#: An upstream that is probed alone is a task itself. An object more for each of many thousands
#: would start the garbage collector in every pass, over all that the process holds.
_Task = Upstream | _Group


@dataclass(frozen=True, slots=True)
class _Pass:
    """What holds for one pass."""

    at: datetime
    #: The log of a probe names the tick, as that of its caller does.
    context: Context = field(default_factory=copy_context)
    #: Probes of each source that were abandoned.
    given_up: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, eq=False, kw_only=True)
class _Share:
    """Tasks of one source that a thread has taken."""

    source: str
    probe: Probe
    at: datetime
    began: float
    #: The thread's own lock, so that a quick task need not wait for that of the pool. The calling
    #: thread takes it, too, while it holds that of the pool; never the other way round.
    lock: threading.Lock = field(default_factory=threading.Lock)
    current: _Task | None
    #: The tasks that are not begun.
    rest: deque[_Task]
    #: When the current task began, or the last one ended.
    moved: float
    done: int = 0
    #: Results and further tasks of those that are done; they leave the share when collected.
    results: list[ProbeResult] = field(default_factory=list)
    continuing: list[_Group] = field(default_factory=list)
    #: How long a processor worked for it.
    computed: float = 0.0
    #: It was there already when results were collected.
    is_seen: bool = False
    is_slow: bool = False
    #: The task at which its thread was abandoned.
    abandoned: _Task | None = None

    def work_through(self, monotonic: Callable[[], float]) -> None:
        """Probe one task after another, until none is left or the thread is abandoned."""
        before = time.thread_time()
        task = self.current
        while task is not None:
            results, continuing = _results_of(task, self.probe, self.at)
            task = self._next(results, continuing, monotonic())
        self.computed = time.thread_time() - before

    def _next(
        self, results: Sequence[ProbeResult], continuing: Sequence[_Group], now: float
    ) -> _Task | None:
        with self.lock:
            if self.abandoned:
                return None
            self.results += results
            self.continuing += continuing
            self.done += 1
            self.moved = now
            self.current = self.rest.popleft() if self.rest else None
            return self.current

    def late(self, now: float, limit: float) -> _Task | None:
        """Return the current task if it has passed its limit."""
        return self.current if now - self.moved >= limit else None


class ProbePool:
    """Owns the threads that run probes, for the life of the process.

    A thread whose probe hangs is abandoned, and its upstreams are not probed again before it
    returns. Threads are daemons: a hung probe does not keep the process from ending.

    Args:
        probes: The probe of each source.
        threads: Probes that run in parallel, at most.
        deadline_seconds: Time limit of a probe.
        limits: The same for single sources.
        monotonic: Measures the time limits.
    """

    def __init__(
        self,
        probes: Mapping[str, Probe],
        *,
        threads: int = 32,
        deadline_seconds: float = 120.0,
        limits: Mapping[str, float] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probes = probes
        self._most_threads = threads
        self._deadline_seconds = deadline_seconds
        self._limits = limits or {}
        self._monotonic = monotonic
        lock = threading.Lock()
        self._one_pass_at_a_time = threading.Lock()
        #: Both guard everything below; a thread that has it may take the lock of a share.
        self._work = threading.Condition(lock)
        self._done = threading.Condition(lock)
        self._waiting: FairQueue[_Task] = FairQueue(threads)
        self._running: set[_Share] = set()
        #: The results of the shares that ended.
        self._results: list[ProbeResult] = []
        self._threads = 0
        self._idle_threads = 0
        self._pass = _Pass(AT_ONCE)
        #: Upstreams whose probe hangs, and since when.
        self._hung: dict[str, datetime] = {}

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_result: Callable[[ProbeResult], None] | None = None,
    ) -> list[ProbeResult]:
        """Probe every upstream once.

        Args:
            upstreams: What to probe.
            at: The instant of the tick.
            on_result: Called with each result as it comes in, from the calling thread.

        Returns:
            One result per upstream, in the order in which they were given. Those are missing whose
            turn did not come because too many probes of their source hang: the next pass begins
            again.
        """
        made: dict[str, ProbeResult] = {}

        def report_results(results: Iterable[ProbeResult]) -> None:
            for result in results:
                made[result.upstream_id] = result
                if on_result is not None:
                    on_result(result)

        with self._one_pass_at_a_time:
            tasks, refused = self._tasks(upstreams)
            report_results(refused)
            self._run(_Pass(at), tasks, report_results)
        ids = (upstream.upstream_id for upstream in upstreams)
        return [made[upstream_id] for upstream_id in ids if upstream_id in made]

    def _tasks(
        self, upstreams: Sequence[Upstream]
    ) -> tuple[Mapping[str, Mapping[str, _Task]], list[ProbeResult]]:
        """Return the tasks, by source and group, and the upstreams that are not probed."""
        tasks: dict[str, dict[str, _Task]] = {}
        refused = []
        with self._work:
            hung = dict(self._hung)
        for upstream in upstreams:
            probe = self._probes.get(upstream.source)
            if probe is None:
                known = ", ".join(sorted(self._probes))
                refused.append(
                    _failed(upstream, f"has an unknown sensor_source; allowed are {known}")
                )
            elif upstream.upstream_id in hung:
                since = hung[upstream.upstream_id].isoformat(timespec="seconds")
                refused.append(_failed(upstream, f"has not answered since {since}"))
            else:
                try:
                    group = probe.group_of(upstream)
                except Exception as error:
                    refused.append(_failed(upstream, _what(error)))
                    continue
                of_source = tasks.setdefault(upstream.source, {})
                before = of_source.setdefault(group, upstream)
                if isinstance(before, _Group):
                    before.upstreams.append(upstream)
                elif before is not upstream:
                    of_source[group] = _Group([before, upstream])
        return tasks, refused

    def _run(
        self,
        this_pass: _Pass,
        tasks: Mapping[str, Mapping[str, _Task]],
        report_results: Callable[[Iterable[ProbeResult]], None],
    ) -> None:
        with self._work:
            self._pass = this_pass
            for source, groups in tasks.items():
                self._waiting.add(source, groups.values())
            self._wake()
        is_going_on = True
        while is_going_on:
            with self._work:
                self._done.wait_for(self._is_done, _COLLECT_EVERY_SECONDS)
                results = self._collect()
                is_going_on = not self._is_done()
            report_results(results)

    def _is_done(self) -> bool:
        return not self._running and not self._waiting

    def _wake(self) -> None:
        """Let more threads work, as many as find a task; the lock is held."""
        count = self._waiting.room()
        self._work.notify(count)
        for _ in range(min(count - self._idle_threads, self._most_threads - self._threads)):
            try:
                self._start()
            except RuntimeError:
                # The machine gives no more; those that there are go on.
                return
            self._threads += 1
            # Until it takes its first share: else one more would be started for the same tasks.
            self._idle_threads += 1

    def _start(self) -> None:
        threading.Thread(target=self._serve, name="look", daemon=True).start()

    def _collect(self) -> list[ProbeResult]:
        """Return the new results, with those of probes that are abandoned; the lock is held."""
        now = self._monotonic()
        for share in tuple(self._running):
            with share.lock:
                self._take_results(share)
                late = share.late(now, self._limit_of(share.source))
                if (share.is_seen or late) and not share.is_slow:
                    self._pass_on(share)
                share.is_seen = True
                if late:
                    self._abandon(share, late)
        self._defer_hung()
        if self._waiting:
            # Others in place of those that hang.
            self._wake()
            if not self._threads:
                # So many probes hang that the machine gives us no thread at all.
                self._waiting.drop_all()
        results, self._results = self._results, []
        return results

    def _take_results(self, share: _Share) -> None:
        self._results += share.results
        share.results = []
        self._waiting.add(share.source, share.continuing)
        share.continuing = []

    def _pass_on(self, share: _Share) -> None:
        """Let other threads do what this one has not begun."""
        share.is_slow = True
        self._waiting.slow(share.source, share.rest)
        share.rest = deque()

    def _abandon(self, share: _Share, task: _Task) -> None:
        """Abandon the current probe of a share, and the thread with it."""
        share.abandoned = task
        self._running.discard(share)
        self._waiting.ended(share.source, was_slow=share.is_slow)
        self._threads -= 1
        self._pass.given_up[share.source] += 1
        reason = f"did not answer within {self._limit_of(share.source):g} s"
        for upstream in _upstreams_of(task):
            self._hung[upstream.upstream_id] = share.at
            self._results.append(_failed(upstream, reason))

    def _defer_hung(self) -> None:
        """Let the rest of a source wait for the next pass when too many of its probes hung.

        That is half of all threads, shared among the sources that hang: else a pass would wait for
        each part of them in turn.
        """
        given_up = self._pass.given_up
        most = self._most_threads // 2 // max(1, len(given_up))
        for source, count in given_up.items():
            if count >= max(_LEAST_HUNG, most):
                self._waiting.drop(source)

    def _limit_of(self, source: str) -> float:
        return self._limits.get(source, self._deadline_seconds)

    def _serve(self) -> None:
        share: _Share | None = None
        while True:
            with self._work:
                if share is None:
                    self._idle_threads -= 1
                else:
                    self._end(share)
                    if share.abandoned:
                        # Another thread took this one's place.
                        return
                share, context = self._take()
                # A source may have room for more threads than it had when tasks were added.
                self._wake()
            context.run(share.work_through, self._monotonic)

    def _take(self) -> tuple[_Share, Context]:
        """Wait until there are tasks to take; the lock is held."""
        while (taken := self._waiting.take()) is None:
            self._idle_threads += 1
            self._work.wait()
            self._idle_threads -= 1
        source, tasks = taken
        now = self._monotonic()
        share = _Share(
            source=source,
            probe=self._probes[source],
            at=self._pass.at,
            began=now,
            current=tasks.popleft(),
            rest=tasks,
            moved=now,
        )
        self._running.add(share)
        # No context can be entered twice at a time.
        return share, self._pass.context.copy()

    def _end(self, share: _Share) -> None:
        """Take what is left of a share, and learn from it; the lock is held."""
        if share.abandoned:
            for upstream in _upstreams_of(share.abandoned):
                self._hung.pop(upstream.upstream_id, None)
            return
        self._running.discard(share)
        self._take_results(share)
        seconds = share.moved - share.began
        self._waiting.learn(
            share.source, count=share.done, seconds=seconds, computed=share.computed
        )
        self._waiting.ended(share.source, was_slow=share.is_slow)
        if self._is_done():
            self._done.notify()


def _upstreams_of(task: _Task) -> list[Upstream]:
    return task.upstreams if isinstance(task, _Group) else [task]


def _results_of(
    task: _Task, probe: Probe, at: datetime
) -> tuple[Sequence[ProbeResult], Sequence[_Group]]:
    upstreams = _upstreams_of(task)
    try:
        if isinstance(task, _Group) and task.continued:
            found: Sequence[ProbeResult | Continued] = [task.continued.probe()]
        else:
            found = probe.probe(upstreams, at=at)
        if len(upstreams) == 1 and (idle := _idle_result(found, upstreams[0])):
            return [idle], ()
        by_id = {each.upstream_id: each for each in found}
        results = {
            each.upstream_id: storable_result(each)
            if each.failure is None
            else _without_secrets(each)
            for each in by_id.values()
            if isinstance(each, ProbeResult)
        }
    except Exception as error:
        return [_failed(upstream, _what(error)) for upstream in upstreams], ()
    continuing = {
        upstream.upstream_id: _Group([upstream], each)
        for upstream in upstreams
        if isinstance(each := by_id.get(upstream.upstream_id), Continued)
    }
    return [
        results.get(upstream.upstream_id) or _failed(upstream, "got no result from its probe")
        for upstream in upstreams
        if upstream.upstream_id not in continuing
    ], tuple(continuing.values())


def _idle_result(
    found: Sequence[ProbeResult | Continued], upstream: Upstream
) -> ProbeResult | None:
    """Return what a probe found if it holds nothing that a ledger might refuse."""
    if len(found) != 1 or not isinstance(each := found[0], ProbeResult):
        return None
    has_text = each.failure is not None or each.events or each.gap is not None
    return None if has_text or each.upstream_id != upstream.upstream_id else each


def storable_result(result: ProbeResult) -> ProbeResult:
    """Return a result that a ledger can hold: text that has no UTF-8 would stop every tick."""
    if result.failure is not None:
        return replace(result, failure=storable(result.failure))
    if not result.events and result.gap is None:
        return result
    return replace(
        result,
        events=tuple(_storable_event(event) for event in result.events),
        position=_text_or_none(result.position),
        upstream_value=_text_or_none(result.upstream_value),
        gap=_text_or_none(result.gap),
    )


def _storable_event(event: ChangeEvent) -> ChangeEvent:
    levels = event.partition
    at = event.snapshot_ts
    return replace(
        event,
        partition=None if levels is None else tuple(map(storable, levels)),
        snapshot_id=_text_or_none(event.snapshot_id),
        snapshot_ts=at if at is not None and abs(at) < _PAST_LONGS else None,
        prev_snapshot_id=_text_or_none(event.prev_snapshot_id),
        tags={storable(name): storable(text) for name, text in event.tags.items()},
        lineage=_text_or_none(event.lineage),
    )


def _text_or_none(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _without_secrets(result: ProbeResult) -> ProbeResult:
    """Hide what a system may have repeated of the login: a failure goes into rows and pages."""
    return replace(result, failure=storable(masked(result.failure or "")))


def _what(error: Exception) -> str:
    message = storable(masked(str(error)))
    reason = first_line(message, "").rstrip(".")
    name = type(error).__name__
    return f"cannot be sensed: {name}: {reason}" if reason else f"cannot be sensed: {name}"


def _failed(upstream: Upstream, reason: str) -> ProbeResult:
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        failure=f"{upstream.source} {upstream.sensor_id} {reason}.",
    )

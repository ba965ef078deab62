"""Probes many upstreams side by side; one probe that raises or hangs stops no other."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from harness.events.event import ChangeEvent
from harness.platform.masking import masked
from harness.platform.text import first_line, storable
from harness.sense.fair_queue import FairQueue
from harness.sense.probe import Continued, Probe, ProbeResult
from harness.store.work_lists import Upstream

#: How often finished and hung probes are collected.
_COLLECT_EVERY_SECONDS = 0.05
#: A source has so many probes hang in one pass at least before its others are deferred.
_LEAST_HUNG = 2
#: No column of a ledger holds more.
_PAST_LONGS = 2**63


@dataclass(slots=True, eq=False)
class _Task:
    source: str
    probe: Callable[[Sequence[Upstream]], Sequence[ProbeResult | Continued]]
    upstreams: list[Upstream]
    at: datetime
    #: The log of a probe names the tick, as that of its caller does.
    context: Context = field(default_factory=copy_context)
    started: float = 0.0
    is_abandoned: bool = False


class ProbePool:
    """Owns the threads that run probes, for the life of the process.

    A thread whose probe hangs is abandoned, and its upstreams are not probed again before it
    returns. Threads are daemons: a hung probe does not keep the process from ending.

    Args:
        probes: The probe of each source.
        threads: Probes that run in parallel.
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
        #: Both guard everything below.
        self._work = threading.Condition(lock)
        self._done = threading.Condition(lock)
        self._waiting: FairQueue[_Task] = FairQueue()
        self._running: set[_Task] = set()
        #: The tasks that ended, their results, and the tasks that continue them.
        self._finished: list[tuple[_Task, list[ProbeResult], list[_Task]]] = []
        self._threads = 0
        self._idle_threads = 0
        #: Probes of each source that were given up in this pass.
        self._given_up: Counter[str] = Counter()
        #: Upstreams whose look hangs, and since when.
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
            tasks, refused = self._tasks(upstreams, at)
            report_results(refused)
            self._run(tasks, report_results)
        ids = (upstream.upstream_id for upstream in upstreams)
        return [made[upstream_id] for upstream_id in ids if upstream_id in made]

    def _tasks(
        self, upstreams: Sequence[Upstream], at: datetime
    ) -> tuple[list[_Task], list[ProbeResult]]:
        tasks: dict[tuple[str, str], _Task] = {}
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
                    key = (upstream.source, probe.group_of(upstream))
                except Exception as error:
                    refused.append(_failed(upstream, _what(error)))
                    continue
                if key not in tasks:
                    look = partial(probe.probe, at=at)
                    tasks[key] = _Task(source=upstream.source, probe=look, upstreams=[], at=at)
                tasks[key].upstreams.append(upstream)
        return list(tasks.values()), refused

    def _run(
        self, tasks: list[_Task], report_results: Callable[[Iterable[ProbeResult]], None]
    ) -> None:
        unfinished = len(tasks)
        with self._work:
            self._given_up.clear()
            self._waiting.add(tasks)
            self._wake(len(tasks))
        while unfinished:
            with self._work:
                self._done.wait_for(
                    lambda: not self._waiting and not self._running, _COLLECT_EVERY_SECONDS
                )
                finished, self._finished = self._finished, []
                finished += self._abandon()
                if self._waiting:
                    # Others in place of those that hang.
                    self._wake(self._most_threads)
                    if not self._threads:
                        # So many probes hang that the machine gives us no thread at all.
                        finished += [(task, [], []) for task in self._waiting.drop_all()]
            for _, results, continuing in finished:
                unfinished += len(continuing) - 1
                report_results(results)

    def _wake(self, count: int) -> None:
        """Let that many more threads work, new ones if too few are idle; the lock is held."""
        self._work.notify(count)
        for _ in range(min(count - self._idle_threads, self._most_threads - self._threads)):
            try:
                self._start()
            except RuntimeError:
                # The machine gives no more; those that there are go on.
                return
            self._threads += 1

    def _start(self) -> None:
        threading.Thread(target=self._serve, name="look", daemon=True).start()

    def _abandon(self) -> list[tuple[_Task, list[ProbeResult], list[_Task]]]:
        """Give up the probes that passed their limit; the lock is held."""
        now = self._monotonic()
        late = [task for task in self._running if now - task.started >= self._limit_of(task)]
        for task in late:
            task.is_abandoned = True
            self._running.discard(task)
            self._waiting.ended(task)
            self._threads -= 1
            self._given_up[task.source] += 1
            self._hung.update((upstream.upstream_id, task.at) for upstream in task.upstreams)
        reasons = [f"did not answer within {self._limit_of(task):g} s" for task in late]
        given_up = [
            (task, [_failed(upstream, reason) for upstream in task.upstreams])
            for task, reason in zip(late, reasons, strict=True)
        ]
        deferred = ((task, list[ProbeResult]()) for task in self._defer_hung())
        return [(task, results, []) for task, results in (*given_up, *deferred)]

    def _defer_hung(self) -> Iterable[_Task]:
        """Let the rest of a source wait for the next pass when too many of its probes hung.

        That is half of all threads, shared among the sources that hang: else a pass would wait for
        each part of them in turn.
        """
        most = self._most_threads // 2 // max(1, len(self._given_up))
        for source, count in self._given_up.items():
            if count >= max(_LEAST_HUNG, most):
                yield from self._waiting.drop(source)

    def _limit_of(self, task: _Task) -> float:
        return self._limits.get(task.source, self._deadline_seconds)

    def _serve(self) -> None:
        while True:
            with self._work:
                while not self._waiting:
                    self._idle_threads += 1
                    self._work.wait()
                    self._idle_threads -= 1
                task = self._waiting.take()
                task.started = self._monotonic()
                self._running.add(task)
            results, continuing = task.context.run(_results_of, task)
            with self._work:
                if task.is_abandoned:
                    # Another thread took this one's place.
                    for upstream in task.upstreams:
                        self._hung.pop(upstream.upstream_id, None)
                    return
                self._running.discard(task)
                self._waiting.ended(task)
                self._finished.append((task, results, continuing))
                if continuing:
                    self._waiting.add(continuing)
                    self._wake(len(continuing))
                if not self._waiting and not self._running:
                    self._done.notify()


def _results_of(task: _Task) -> tuple[list[ProbeResult], list[_Task]]:
    try:
        found = {each.upstream_id: each for each in task.probe(task.upstreams)}
        results = {
            each.upstream_id: storable_result(each)
            if each.failure is None
            else _without_secrets(each)
            for each in found.values()
            if isinstance(each, ProbeResult)
        }
    except Exception as error:
        return [_failed(upstream, _what(error)) for upstream in task.upstreams], []
    continuing = {
        upstream.upstream_id: _continuing(task, upstream, each)
        for upstream in task.upstreams
        if isinstance(each := found.get(upstream.upstream_id), Continued)
    }
    return [
        results.get(upstream.upstream_id) or _failed(upstream, "got no result from its probe")
        for upstream in task.upstreams
        if upstream.upstream_id not in continuing
    ], list(continuing.values())


def _continuing(task: _Task, upstream: Upstream, continued: Continued) -> _Task:
    return _Task(
        source=task.source,
        probe=lambda _: [continued.probe()],
        upstreams=[upstream],
        at=task.at,
        # A context cannot be entered twice, and this task ends after the ones that it starts.
        context=task.context.copy(),
    )


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

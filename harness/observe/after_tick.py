"""Informs those who watch after each tick, as far as heartbeat.yml configures it.

What is not configured is not imported. What fails here is logged once and stops no tick; a resident
process never waits for another system, and one that ends waits for a bounded time.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from harness.errors import LockedError
from harness.platform.logs import log_as_tick
from harness.platform.text import first_line

if TYPE_CHECKING:
    from harness.context import Context
    from harness.tick.report import TickReport

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Informs one kind of those who watch."""

    def after(self, report: "TickReport") -> None:
        """Inform about a tick that came to its end."""
        ...

    def failed(self, error: Exception) -> None:
        """Inform about a tick that failed."""
        ...

    def wait(self) -> None:
        """Wait for what is under way, for a bounded time."""
        ...


class Observers:
    """Everything that is configured; most often nothing.

    Args:
        context: The services.
    """

    def __init__(self, context: "Context") -> None:
        self._stop = context.stop
        self._failing: set[str] = set()
        self._observers: dict[str, Observer] = {}
        for name, make in _configured(context):
            with self._guarded(name):
                self._observers[name] = make()

    def after(self, report: "TickReport") -> None:
        """Inform about a tick that came to its end; never raises."""
        with log_as_tick(report.tick.id):
            for name, each in self._observers.items():
                with self._guarded(name):
                    each.after(report)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Inform about a tick that fails inside the block, and wait for the messages."""
        try:
            yield
        except Exception as error:
            self.failed(error)
            self.wait()
            raise

    def failed(self, error: Exception) -> None:
        """Inform about a tick that failed; never raises."""
        # Another process ticks, or what was cancelled has failed.
        if isinstance(error, LockedError) or self._stop.is_wanted:
            return
        for name, each in self._observers.items():
            with self._guarded(name):
                each.failed(error)

    def wait(self) -> None:
        """Wait for what is under way, for a bounded time; never raises."""
        for name, each in self._observers.items():
            with self._guarded(name):
                each.wait()

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if name not in self._failing:
                self._failing.add(name)
                reason = first_line(error, repr(error))
                log.warning("%s: not up to date (%s); the next tick tries again", name, reason)
                log.info("%s failed", name, exc_info=error)
        else:
            self._failing.discard(name)


def _configured(context: "Context") -> Iterator[tuple[str, Callable[[], Observer]]]:
    if context.settings.alarms.is_on:
        from harness.observe.watch import Watch

        yield "alarms", lambda: Watch(context)
    if context.settings.lineage.is_on:
        from harness.observe.lineage import LineageOfRuns

        yield "lineage", lambda: LineageOfRuns(context)
    if context.settings.metrics.is_on:
        from harness.observe.metrics import MetricsOfTicks

        yield "metrics", lambda: MetricsOfTicks(context)

"""Ticks again and again in one process, until a signal ends it.

Slots are counted from the start, so the loop does not drift; a slot that a long tick has run over
is skipped, so there is no burst afterwards.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harness.errors import (
    ConfigurationError,
    ControlsError,
    HeartbeatError,
    LockedError,
    StateError,
)
from harness.platform.clock import Clock
from harness.platform.stopping import Stop
from harness.tick.engine import TickOptions
from harness.tick.report import TickReport

log = logging.getLogger(__name__)

#: A wait for the next slot is cut into pieces, so that a signal ends it soon.
_PIECE_SECONDS = 0.2

#: At the start an error ends the loop; later it goes on, so that errors can be fixed meanwhile.
_FOR_A_PERSON = (ConfigurationError, ControlsError, StateError)

#: So many unforeseen errors in a row, such as those of a JVM that has died, end the process:
#: the service manager starts a fresh one.
_PATIENCE = 5

_GOES_ON = "this tick failed, the next one tries again: %s"


class Ticks(Protocol):
    """Does one tick; implemented by the engine."""

    def tick(self, options: TickOptions | None = None) -> TickReport:
        """Do one tick."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to tick, and how many times or for how long at most."""

    every_seconds: float
    ticks: int | None = None
    for_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Callbacks of the loop."""

    on_report: Callable[[TickReport], None]
    #: Called with the error of a tick that failed.
    on_failure: Callable[[Exception], None] = lambda error: None
    #: Called between ticks, for housekeeping; it may take as long as it likes.
    between: Callable[[], object] = lambda: None


def run_loop(ticks: Ticks, pace: Pace, *, clock: Clock, stop: Stop, listeners: Listeners) -> int:
    """Tick until the pace reports that it is enough, or a signal ends it.

    An error of one tick is logged, and the next slot ticks again.

    Returns:
        How many ticks were done, failed ones included.

    Raises:
        HeartbeatError: The first tick found something that only a person can put right.
        LockedError: Another process has taken over.
        Interrupted: A signal came; the tick in progress was broken off.
        Exception: Too many ticks in a row failed with an unexpected error.
    """
    began = clock.now()
    attempts = _Attempts(ticks, listeners, stop)
    while True:
        attempts.next()
        stop.listen()
        stop.activity.begin("keeping the tables compact")
        _keep_house(listeners)
        spent = max(0.0, (clock.now() - began).total_seconds())
        following = seconds_to_next_slot(spent, pace.every_seconds)
        if _is_enough(pace, attempts.done, spent + following):
            break
        stop.activity.begin("waiting for the next tick")
        _wait(following, clock, stop)
    return attempts.done


def seconds_to_next_slot(spent: float, every: float) -> float:
    """Return how long to wait for the first slot that has not begun."""
    return (math.floor(spent / every) + 1) * every - spent


class _Attempts:
    """Ticks, and decides which errors the loop outlives."""

    def __init__(self, ticks: Ticks, listeners: Listeners, stop: Stop) -> None:
        self._ticks = ticks
        self._listeners = listeners
        self._stop = stop
        self._unforeseen = 0
        self.done = 0

    def next(self) -> None:
        """Do one tick."""
        try:
            self._stop.check()
            self._listeners.on_report(self._ticks.tick())
            self._unforeseen = 0
        except LockedError:
            # Another process ticks now, and continues from what is recorded.
            raise
        except Exception as error:
            # What was cancelled fails, and there is no next tick that tries again.
            self._stop.check()
            self._listeners.on_failure(error)
            if self._is_over(error):
                raise
        self.done += 1

    def _is_over(self, error: Exception) -> bool:
        """Log an error, and return whether the loop ends because of it."""
        if isinstance(error, _FOR_A_PERSON) and self.done == 0:
            return True
        if isinstance(error, HeartbeatError):
            log.error(_GOES_ON, error)
            return False
        self._unforeseen += 1
        if self._unforeseen >= _PATIENCE:
            return True
        log.error(_GOES_ON, repr(error), exc_info=error)
        return False


def _keep_house(listeners: Listeners) -> None:
    try:
        listeners.between()
    except HeartbeatError as error:
        log.warning("housekeeping failed and is tried again later: %s", error)


def _is_enough(pace: Pace, done: int, spent: float) -> bool:
    has_ticked = pace.ticks is not None and done >= pace.ticks
    return has_ticked or (pace.for_seconds is not None and spent > pace.for_seconds)


def _wait(seconds: float, clock: Clock, stop: Stop) -> None:
    left = seconds
    while left > 0:
        stop.check()
        clock.sleep(min(left, _PIECE_SECONDS))
        left -= _PIECE_SECONDS

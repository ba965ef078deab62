"""Ticks again and again in one process, until a signal ends it.

Slots are counted from the start, so the loop does not drift. After a tick that was longer than the
interval the next one begins at once, for all slots that were run over, so there is no burst. What
is left in the inbox between two slots has a tick of its own, which probes nothing.
"""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from harness.publish.publish import Publication
from harness.tick.engine import TickOptions
from harness.tick.report import TickReport

log = logging.getLogger(__name__)

#: A wait for the next slot is cut into pieces, so that a signal ends it soon.
_PIECE_SECONDS = 0.2

#: What a tick has decided is published once nothing has come for so long.
_QUIET_SECONDS = 0.5

#: Ticks for what is left in the inbox: a sixth of the time at most, so that a producer that leaves
#: events all the time does not undo the interval.
_REST = 5

#: At the start an error ends the loop; later it goes on, so that errors can be fixed meanwhile.
_FOR_A_PERSON = (ConfigurationError, ControlsError, StateError)

#: So many unforeseen errors in a row, such as those of a JVM that has died, end the process:
#: the service manager starts a fresh one.
_PATIENCE = 5

_GOES_ON = "this tick failed, the next one tries again: %s"


class Ticks(Protocol):
    """Does one tick, and publishes beside the next ones; implemented by the engine."""

    @property
    def is_publishing(self) -> bool:
        """True while some tick is not public."""
        ...

    @property
    def has_news(self) -> bool:
        """True when something was left in the inbox since the last tick read it."""
        ...

    def tick(self, options: TickOptions | None = None) -> TickReport:
        """Do one tick."""
        ...

    def collect(self) -> Publication | None:
        """Record what a publication came to that has ended meanwhile, if one has."""
        ...

    def publish(self) -> None:
        """Begin to publish what waits."""
        ...

    def finish(self) -> None:
        """Wait until every tick is public."""
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
    #: Called with what was published while ticks went on.
    on_publication: Callable[[Publication], None] = lambda publication: None
    #: Called with the error of a tick that failed.
    on_failure: Callable[[Exception], None] = lambda error: None
    #: Called between ticks, for housekeeping; it may take as long as it likes.
    between: Callable[[], object] = lambda: None


def run_loop(ticks: Ticks, pace: Pace, *, clock: Clock, stop: Stop, listeners: Listeners) -> int:
    """Tick until the pace reports that it is enough, or a signal ends it.

    An error of one tick, or of its publication, is logged, and the next slot ticks again. Before
    the loop ends in order, every tick is public.

    Returns:
        How many ticks were done, failed ones included.

    Raises:
        HeartbeatError: The first tick found something that only a person can put right.
        LockedError: Another process has taken over.
        Interrupted: A signal came; the tick in progress was broken off.
        Exception: Too many ticks in a row failed with an unexpected error.
    """
    began, slot, is_early = clock.now(), 0, False
    attempts = _Attempts(ticks, listeners, stop)

    def elapsed() -> float:
        return max(0.0, (clock.now() - began).total_seconds())

    while True:
        before = elapsed()
        is_well = attempts.next(TickOptions(is_for_inbox=is_early))
        stop.listen()
        stop.activity.begin("keeping the tables compact")
        attempts.keep_house()
        spent = elapsed()
        slot = next_slot(slot - 1 if is_early else slot, spent, pace.every_seconds)
        # A clock that is put back makes the loop wait for an interval, and no longer.
        following = min(max(0.0, slot * pace.every_seconds - spent), pace.every_seconds)
        if _is_enough(pace, attempts.done, spent + following):
            break
        stop.activity.begin("waiting for the next tick")
        # A tick that failed may have left in the inbox what it came for.
        rest = _REST * (spent - before) if is_well else following
        is_early = _wait(following, clock, stop, attempts, rest)
    stop.activity.begin("publishing the tables")
    attempts.finish()
    return attempts.done


def next_slot(slot: int, spent: float, every: float) -> int:
    """Return the number of the slot to tick for: the next one, or the last of those run over."""
    return max(slot + 1, math.floor(spent / every))


class _Attempts:
    """Ticks, and decides which errors the loop outlives."""

    def __init__(self, ticks: Ticks, listeners: Listeners, stop: Stop) -> None:
        self._ticks = ticks
        self._listeners = listeners
        self._stop = stop
        self._unforeseen = 0
        #: The first tick is not public yet.
        self._is_first = True
        self.done = 0

    @property
    def has_news(self) -> bool:
        """True when something waits in the inbox for a tick."""
        return self._ticks.has_news

    def next(self, options: TickOptions) -> bool:
        """Do one tick, and return whether it came to its end."""
        is_well = False
        with self._outlived(is_start=self.done == 0):
            self._stop.check()
            self._listeners.on_report(self._ticks.tick(options))
            if not self._ticks.is_publishing:
                self._unforeseen = 0
            is_well = True
        self.done += 1
        self._is_first = self._is_first and self._ticks.is_publishing
        return is_well

    def pause(self, *, is_quiet: bool) -> None:
        """Record a publication that has ended; begin the next one once it is quiet."""
        with self._outlived(is_start=self._is_first):
            publication = self._ticks.collect()
            if publication is not None:
                self._unforeseen, self._is_first = 0, False
                self._listeners.on_publication(publication)
            if is_quiet:
                self._ticks.publish()

    def keep_house(self) -> None:
        """Do what comes between ticks; what fails in it is tried again later."""
        with self._outlived():
            try:
                self._listeners.between()
            except LockedError:
                raise
            except HeartbeatError as error:
                log.warning("housekeeping failed and is tried again later: %s", error)

    def finish(self) -> None:
        """Wait until every tick is public."""
        with self._outlived(is_start=self._is_first):
            self._ticks.finish()

    @contextmanager
    def _outlived(self, *, is_start: bool = False) -> Iterator[None]:
        try:
            yield
        except LockedError:
            # Another process ticks now, and continues from what is recorded.
            raise
        except Exception as error:
            # What was cancelled fails, and there is no next tick that tries again.
            self._stop.check()
            self._listeners.on_failure(error)
            if self._is_over(error, is_start=is_start):
                raise

    def _is_over(self, error: Exception, *, is_start: bool) -> bool:
        """Log an error, and return whether the loop ends because of it."""
        if isinstance(error, _FOR_A_PERSON) and is_start:
            return True
        if isinstance(error, HeartbeatError):
            log.error(_GOES_ON, error)
            return False
        self._unforeseen += 1
        if self._unforeseen >= _PATIENCE:
            return True
        log.error(_GOES_ON, repr(error), exc_info=error)
        return False


def _is_enough(pace: Pace, done: int, spent: float) -> bool:
    has_ticked = pace.ticks is not None and done >= pace.ticks
    return has_ticked or (pace.for_seconds is not None and spent > pace.for_seconds)


def _wait(seconds: float, clock: Clock, stop: Stop, attempts: _Attempts, rest: float) -> bool:
    """Wait, and return early with True when something comes into the inbox after the rest."""
    waited = 0.0
    while waited < seconds:
        stop.check()
        attempts.pause(is_quiet=waited >= _QUIET_SECONDS)
        if waited >= rest and attempts.has_news:
            return True
        clock.sleep(min(seconds - waited, _PIECE_SECONDS))
        waited += _PIECE_SECONDS
    return False

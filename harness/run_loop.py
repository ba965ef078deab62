"""Ticks again and again in one process, until it is told to end.

Slots are counted from the start, so the loop does not drift; a slot that a long tick has run over
is skipped, so there is no burst afterwards.
"""

import logging
import math
import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Protocol, Self

from harness.clock import Clock
from harness.errors import (
    ConfigurationError,
    ControlsError,
    HeartbeatError,
    LockedError,
    StateError,
)
from harness.tick import TickOptions
from harness.tick_report import TickReport

log = logging.getLogger(__name__)

#: A wait for the next slot is cut into pieces, so that a signal ends it soon.
_PIECE_SECONDS = 0.2

#: At the start somebody still watches; later the loop goes on, and they can be put right meanwhile.
_FOR_A_PERSON = (ConfigurationError, ControlsError, StateError)

#: So many unforeseen errors in a row, such as those of a JVM that has died, end the process:
#: whoever keeps it running starts a fresh one.
_PATIENCE = 5

_GOES_ON = "this tick failed, the next one tries again: %s"


class Ticks(Protocol):
    """Does one tick; implemented by the engine."""

    def tick(self, options: TickOptions | None = None) -> TickReport:
        """Do one tick."""
        ...


class Stop:
    """Remembers that somebody wants the loop to end after the tick in progress.

    The first SIGTERM or SIGINT asks for that; a second one ends the process at once.
    """

    def __init__(self) -> None:
        self.is_wanted = False

    def __enter__(self) -> Self:
        """Begin to listen to signals."""
        self.listen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._let_go()

    def listen(self) -> None:
        """Take the signals, again after each tick: a starting Spark takes SIGINT for itself."""
        if not self.is_wanted:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._want)

    def _want(self, number: int, frame: FrameType | None) -> None:
        self.is_wanted = True
        self._let_go()

    def _let_go(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often to tick, and how many times or for how long at most."""

    every_seconds: float
    ticks: int | None = None
    for_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Who is told what the loop does."""

    on_report: Callable[[TickReport], None]
    #: Called between ticks, for housekeeping; it may take as long as it likes.
    between: Callable[[], object] = lambda: None


def run_loop(ticks: Ticks, pace: Pace, *, clock: Clock, stop: Stop, listeners: Listeners) -> int:
    """Tick until the pace says that it is enough, or somebody wants it to end.

    An error of one tick is logged, and the next slot ticks again.

    Returns:
        How many ticks were done, failed ones included.

    Raises:
        HeartbeatError: The first tick found something that only a person can put right.
        LockedError: Another process has taken over.
        Exception: Too many ticks in a row failed for a reason that nobody foresaw.
    """
    began = clock.now()
    attempts = _Attempts(ticks, listeners)
    while not stop.is_wanted:
        attempts.next()
        stop.listen()
        if not stop.is_wanted:
            _keep_house(listeners)
        spent = max(0.0, (clock.now() - began).total_seconds())
        following = seconds_to_next_slot(spent, pace.every_seconds)
        if _is_enough(pace, attempts.done, spent + following):
            break
        _wait(following, clock, stop)
    return attempts.done


def seconds_to_next_slot(spent: float, every: float) -> float:
    """Return how long to wait for the first slot that has not begun."""
    return (math.floor(spent / every) + 1) * every - spent


class _Attempts:
    """Ticks, and decides which errors the loop outlives."""

    def __init__(self, ticks: Ticks, listeners: Listeners) -> None:
        self._ticks = ticks
        self._listeners = listeners
        self._unforeseen = 0
        self.done = 0

    def next(self) -> None:
        """Do one tick."""
        try:
            self._listeners.on_report(self._ticks.tick())
            self._unforeseen = 0
        except LockedError:
            # Somebody else ticks now, and goes on from what is recorded.
            raise
        except _FOR_A_PERSON as error:
            if self.done == 0:
                raise
            log.error(_GOES_ON, error)
        except HeartbeatError as error:
            log.error(_GOES_ON, error)
        except Exception as error:
            self._unforeseen += 1
            if self._unforeseen >= _PATIENCE:
                raise
            log.exception(_GOES_ON, repr(error))
        self.done += 1


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
    while left > 0 and not stop.is_wanted:
        clock.sleep(min(left, _PIECE_SECONDS))
        left -= _PIECE_SECONDS

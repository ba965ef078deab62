"""Spaces out requests, so that a burst of ready jobs stays under the API's rate limit.

Where the API requests a longer wait, starts are held back. None of this outlives the process: a
new one may send at once, since the same idempotency token is always safe to send.
"""

import threading
from datetime import datetime, timedelta

from harness.platform.clock import Clock
from harness.platform.databricks.api import RunNowAnswer, Unknown

#: Databricks admits 20 run-now requests a second and workspace; half of it leaves room for people.
RUN_NOW_PER_SECOND = 10.0


class Waits:
    """Records until when requests are held back: those of one start, or all of them."""

    def __init__(self) -> None:
        self._all: tuple[datetime, datetime] | None = None
        self._of_token: dict[str, tuple[datetime, datetime]] = {}
        self._lock = threading.Lock()

    def note(self, token: str, answer: RunNowAnswer, at: datetime) -> None:
        """Ingest what the API answered to a start at an instant."""
        with self._lock:
            self._of_token.pop(token, None)
            if isinstance(answer, Unknown) and answer.wait_seconds > 0:
                wait = (at, at + timedelta(seconds=answer.wait_seconds))
                self._of_token[token] = wait
                if answer.is_throttled:
                    self._all = wait

    def hold_all(self, seconds: float, at: datetime) -> None:
        """Hold everything back for a while."""
        with self._lock:
            self._all = (at, at + timedelta(seconds=seconds))

    def holds_back(self, at: datetime, token: str | None = None) -> bool:
        """Return whether a request, or the start with this token, is not to be sent yet."""
        with self._lock:
            waits = (self._all, self._of_token.get(token) if token else None)
        # A clock that went back must not make the wait longer.
        return any(wait is not None and wait[0] <= at < wait[1] for wait in waits)


class TokenBucket:
    """Lets a burst through at once and then one request per interval.

    Args:
        clock: Provides the time, and waits.
        per_second: How many requests a second are admitted in the long run.
        burst: How many may go at once after a pause; a second's worth when not given.
    """

    def __init__(
        self, clock: Clock, *, per_second: float = RUN_NOW_PER_SECOND, burst: int | None = None
    ) -> None:
        if per_second <= 0:
            raise ValueError(f"{per_second} requests a second: the rate must be above zero")
        self._clock = clock
        self._per_second = per_second
        self._burst = float(burst if burst is not None else max(1, int(per_second)))
        self._available = self._burst
        self._filled_at: datetime = clock.now()
        self._lock = threading.Lock()
        #: The waits that the API has requested beyond the rate.
        self.waits = Waits()

    def take(self) -> float:
        """Wait until one more request may go, and return how many seconds that took."""
        with self._lock:
            self._refill()
            self._available -= 1
            wait = max(0.0, -self._available / self._per_second)
        if wait:
            self._clock.sleep(wait)
        return wait

    def _refill(self) -> None:
        now = self._clock.now()
        # A clock that was set back must not take away what was earned.
        elapsed = max(0.0, (now - self._filled_at).total_seconds())
        self._filled_at = now
        self._available = min(self._burst, self._available + elapsed * self._per_second)

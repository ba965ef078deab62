"""Spaces out requests, so that a burst of ready jobs stays under the API's rate limit."""

import threading
from datetime import datetime

from harness.clock import Clock

#: Databricks admits 20 run-now requests a second and workspace; half of it leaves room for people.
RUN_NOW_PER_SECOND = 10.0


class TokenBucket:
    """Lets a burst through at once and then one request per interval.

    Args:
        clock: Tells the time and waits.
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

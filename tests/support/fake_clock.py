"""A clock for tests and simulations."""

from datetime import datetime, timedelta


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the instant that was set."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move on by that many seconds without waiting."""
        self._now += timedelta(seconds=seconds)

    def set(self, instant: datetime) -> None:
        """Jump to an instant, forwards or backwards."""
        self._now = instant

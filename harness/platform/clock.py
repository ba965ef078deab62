"""The one clock of the process, and how instants are read; all else gets them as arguments."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Provides the time, and waits."""

    def now(self) -> datetime:
        """Return the present instant, aware and in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""
        ...


class RealClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present instant, aware and in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait for that many seconds."""
        time.sleep(seconds)


def instant_from(value: object) -> datetime | None:
    """Read an instant in UTC; one without a zone comes from Spark, which collects local time."""
    if value is None:
        return None
    instant = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return instant.astimezone(UTC)

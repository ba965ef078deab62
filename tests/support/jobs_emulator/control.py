"""The clock and the log of requests of a Jobs API for tests."""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from harness.platform.clock import Clock

Json = Mapping[str, object]


class MovableClock:
    """A clock that can be moved on from outside.

    Args:
        base: The clock that it is ahead of.
    """

    def __init__(self, base: Clock) -> None:
        self._base = base
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Return the base clock's instant and what it was moved on by."""
        return self._base.now() + self._ahead

    def sleep(self, seconds: float) -> None:
        """Wait on the base clock."""
        self._base.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Move on without waiting."""
        self._ahead += timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request as it came, and how it was answered; ``status`` 0 is no answer."""

    at_ms: int
    method: str
    path: str
    fields: Json
    status: int
    fault: str | None


class RequestLog:
    """Every request since the start, for tests to count.

    Args:
        path: A file that keeps them, one JSON object a line, when the server is killed.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._requests: list[LoggedRequest] = []
        self._file = path.open("a") if path else None

    def add(self, request: LoggedRequest) -> None:
        """Add one request."""
        with self._lock:
            self._requests.append(request)
            if self._file is not None:
                self._file.write(json.dumps(asdict(request)) + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def all(self) -> list[LoggedRequest]:
        """Return all requests, oldest first."""
        with self._lock:
            return list(self._requests)

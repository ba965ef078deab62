"""Makes chosen requests go wrong, before or after their work is done."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """What goes wrong."""

    #: Another status is answered.
    STATUS = "status"
    #: The connection is reset.
    RESET = "reset"
    #: The connection is closed without an answer.
    EOF = "eof"
    #: Half of the answer arrives.
    TRUNCATE = "truncate"
    #: Nothing arrives for ``delay`` seconds, then the connection is closed.
    HANG = "hang"
    #: The answer arrives after ``delay`` seconds.
    SLOW = "slow"
    #: A web page is answered with status 200.
    HTML = "html"
    #: The client is sent elsewhere, to a web page unless a ``Location`` is given.
    REDIRECT = "redirect"
    #: The process ``pid`` is killed.
    KILL_CLIENT = "kill-client"


class When(StrEnum):
    """Whether the request still takes effect."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One rule: which requests go wrong, how, and how often."""

    #: Part of ``"POST /api/2.2/jobs/run-now"``.
    match: str
    kind: FaultKind
    when: When = When.AFTER
    #: How many matching requests pass first.
    offset: int = 0
    times: int = 1
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    #: What is answered instead; Databricks' error object when not given.
    body: str | None = None
    delay: float = 0.0
    pid: int | None = None


class Faults:
    """The rules in force; each is used up after its number of times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Fault] = []
        self._seen: dict[int, int] = {}

    def add(self, fault: Fault) -> None:
        """Put a rule into force."""
        with self._lock:
            self._rules.append(fault)

    def clear(self) -> None:
        """Take all rules out of force."""
        with self._lock:
            self._rules.clear()
            self._seen.clear()

    def take(self, request_line: str) -> Fault | None:
        """Return the rule that this request falls under, and count it."""
        with self._lock:
            hit = None
            for place, fault in enumerate(self._rules):
                if fault.match not in request_line:
                    continue
                seen = self._seen.get(place, 0)
                self._seen[place] = seen + 1
                if hit is None and fault.offset <= seen < fault.offset + fault.times:
                    hit = fault
            return hit

"""What is judged: the ledgers, what the Jobs API saw, and what was to happen."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import cast

from harness.inbox import MessageKind
from harness.jobs.types import Outcome
from harness.tables import Ledger
from tests.simulation.policies import Policy

Row = Mapping[str, object]
Attempt = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to start a run, as it came to the API."""

    job_id: int
    #: By the parameter that names the attempt; the idempotency token is what is to be judged.
    attempt_token: str
    token: str | None
    body: str
    #: Whether a ledger had the intent when the request came.
    was_intended: bool


@dataclass(frozen=True, kw_only=True)
class Record:
    """Everything that is judged, of a machine that has come to rest."""

    #: Every row of each ledger, in the order in which they were appended.
    ledgers: Mapping[Ledger, Sequence[Row]]
    #: The runs that the API ever made for Heartbeat, by the token of their attempt.
    runs: Mapping[str, Sequence[Mapping[str, object]]]
    starts: Sequence[Request]
    #: What the API thought odd.
    warnings: Sequence[str]
    #: Every outcome that each run ever had.
    outcomes: Mapping[int, set[Outcome]]
    #: The versions of each upstream that have to be events by now.
    due: Mapping[str, set[int]]
    #: Which job depends on which upstream.
    wanted: Sequence[tuple[int, str]]
    starts_per_tick: int
    #: The retry policies that were ever in force, and after how many steps of runs.
    policies: Sequence[tuple[int, Sequence[Policy]]] = ()
    #: Runs that somebody deleted, and those that the API has denied for a while.
    deleted: Container[object] = frozenset()
    denied: Container[object] = frozenset()
    #: Runs that have said themselves that they are complete, and jobs of which an operator has.
    noticed: Set[int] = frozenset()
    vouched: Container[object] = frozenset()
    #: The attempts that operators have asked to be repeated or given up.
    asked: Mapping[MessageKind, Set[Attempt]] = field(default_factory=dict)
    #: When each attempt was really decided and each run succeeded; nothing where no clock can tell.
    decided: Mapping[Attempt, datetime] = field(default_factory=dict)
    successes: Mapping[int, datetime] = field(default_factory=dict)

    @property
    def steps(self) -> Sequence[Row]:
        return self.ledgers[Ledger.RUNS]

    @property
    def events(self) -> Sequence[Row]:
        return self.ledgers[Ledger.EVENTS]

    @cached_property
    def attempts(self) -> Mapping[Attempt, list[Row]]:
        """The steps of each attempt, in their order."""
        attempts: dict[Attempt, list[Row]] = defaultdict(list)
        for row in self.steps:
            attempts[attempt_of(row)].append(row)
        return attempts

    @cached_property
    def by_token(self) -> Mapping[str, list[Row]]:
        return {str(steps[0]["token"]): steps for steps in self.attempts.values()}


def attempt_of(row: Row) -> Attempt:
    """Name the attempt that a step belongs to."""
    return str(row["intent_id"]), cast(int, row["attempt"])

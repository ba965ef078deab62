"""What is judged: the ledgers, what the Jobs API recorded, and what was to happen."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import cast

from harness.platform.databricks.api import Outcome
from harness.settle.pull_consumers import REPORTED_BY
from harness.store.inbox import MessageKind
from harness.store.rows import Ledger
from tests.simulation.consumers import Pull
from tests.simulation.policies import Policy
from tests.support.trigger_keeper import Trigger

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
    #: What the API warned of.
    warnings: Sequence[str]
    #: Every outcome that each run ever had.
    outcomes: Mapping[int, set[Outcome]]
    #: The marks of the changes of each upstream that have to be in events by now.
    due: Mapping[str, set[str]]
    #: Which job depends on which upstream.
    wanted: Sequence[tuple[int, str]]
    starts_per_tick: int
    #: The name of the upstream that a sensed event is of, and the marks of the changes in it.
    name_of: Callable[[Row], str] = lambda row: str(row["table"])
    marks_of: Callable[[Row], Set[str]] = lambda row: {str(row["snapshot_id"])}
    #: The retry policies that were ever in force, and after how many steps of runs.
    policies: Sequence[tuple[int, Sequence[Policy]]] = ()
    #: Runs that somebody deleted, and those that the API has denied for a while.
    deleted: Container[object] = frozenset()
    denied: Container[object] = frozenset()
    #: Runs that have reported their own success.
    noticed: Set[int] = frozenset()
    #: When each run began that was started by hand and has reported its own success.
    reported: Mapping[int, datetime] = field(default_factory=dict)
    #: When each event was really recorded; nothing where no clock shows it.
    seen: Mapping[object, datetime] = field(default_factory=dict)
    #: The attempts of which an operator has said that their work is done.
    vouched: Set[Attempt] = frozenset()
    #: The attempts that operators have asked to be repeated or given up.
    asked: Mapping[MessageKind, Set[Attempt]] = field(default_factory=dict)
    #: When each attempt was really decided and each run succeeded; nothing where no clock shows it.
    decided: Mapping[Attempt, datetime] = field(default_factory=dict)
    successes: Mapping[int, datetime] = field(default_factory=dict)

    #: The numbers in the tags of events that producers have registered in batches that can be read.
    registered: Set[str] = frozenset()
    #: The triggers that are judged.
    triggers: Sequence[Trigger] = ()
    #: How many messages of each kind were sent about each job; one that comes again is the same.
    messages: Mapping[tuple[MessageKind, int], int] = field(default_factory=dict)
    #: What pull consumers fetched and reported, in its order.
    pulls: Sequence[Pull] = ()
    #: When the last tick began, by the machine's clock.
    ticked_at: datetime | None = None
    #: What came up to this tick has to be consumed by now; ``None``: everything.
    through_tick: int | None = None

    @property
    def steps(self) -> Sequence[Row]:
        return self.ledgers[Ledger.RUNS]

    @property
    def events(self) -> Sequence[Row]:
        return self.ledgers[Ledger.EVENTS]

    def is_awaited(self, event: Row) -> bool:
        """Return whether an event came so long ago that each of its jobs has run since."""
        return self.through_tick is None or cast(int, event["tick_number"]) <= self.through_tick

    @cached_property
    def reported_events(self) -> Sequence[Row]:
        """The events that are no copies of a trigger's."""
        return [row for row in self.events if not is_copy(row)]

    @cached_property
    def copies(self) -> Sequence[Row]:
        """What triggers have passed on."""
        return [row for row in self.events if is_copy(row)]

    def copies_of(self, trigger: Trigger) -> list[Row]:
        """Return what one trigger has passed on."""
        return [row for row in self.copies if row["upstream_id"] == trigger.upstream_id]

    def probes_of(self, trigger: Trigger) -> list[Row]:
        """Return what each evaluation of a trigger has left, from the first one that succeeded."""
        rows = self.ledgers[Ledger.PROBES]
        return [
            row
            for row in rows
            if row["upstream_id"] == trigger.upstream_id and row["position"] is not None
        ]

    @cached_property
    def sensed(self) -> Sequence[Row]:
        """The events that sensors have seen."""
        return [row for row in self.reported_events if not is_registered(row)]

    @cached_property
    def attempts(self) -> Mapping[Attempt, list[Row]]:
        """The steps of each attempt, in their order; those of runs that others started are apart."""
        return _by_attempt(
            row for row in self.steps if row["reported_by"] != REPORTED_BY and not is_by_hand(row)
        )

    @cached_property
    def by_hand(self) -> Sequence[Row]:
        """The runs that people started, as they were counted."""
        return [row for row in self.steps if is_by_hand(row)]

    @cached_property
    def pulled(self) -> Mapping[Attempt, list[Row]]:
        """The same of the runs of pull consumers."""
        return _by_attempt(row for row in self.steps if row["reported_by"] == REPORTED_BY)

    @cached_property
    def by_token(self) -> Mapping[str, list[Row]]:
        return {str(steps[0]["token"]): steps for steps in self.attempts.values()}


def _by_attempt(steps: Iterable[Row]) -> Mapping[Attempt, list[Row]]:
    attempts: dict[Attempt, list[Row]] = defaultdict(list)
    for row in steps:
        attempts[attempt_of(row)].append(row)
    return attempts


def attempt_of(row: Row) -> Attempt:
    """Name the attempt that a step belongs to."""
    return str(row["intent_id"]), cast(int, row["attempt"])


def is_by_hand(row: Row) -> bool:
    """Return whether a step is that of a run that a person started: nothing was sent for it."""
    return row["reported_by"] == "notice" and row["token"] == row["intent_id"]


def is_copy(row: Row) -> bool:
    """Return whether an event is one that a trigger passed on."""
    return str(row["upstream_id"]).startswith("trigger:")


def is_registered(row: Row) -> bool:
    """Return whether an event is one that a producer registered."""
    return str(row["upstream_id"]).startswith("registered:")

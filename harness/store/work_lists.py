"""The rows of the models' work lists: upstreams to probe, runs to follow, retries to request."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, cast

from harness.platform.clock import instant_from
from harness.store.rows import Consumed, RecentEvents, Run

#: The ``sensor_source`` of a trigger. No control row may have it: its probe is SQL, and no probe's.
EVENT_TRIGGER = "event_trigger"
#: The triggers are to be asked in any case: when there is anything new to say is not known.
AT_ONCE = datetime.min.replace(tzinfo=UTC)

#: Where the events of a job begin that never had a run.
NOTHING_CONSUMED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumedTicks:
    """The ticks whose events of one upstream the newest run of a job has taken."""

    job_id: int
    from_tick: int
    through_tick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedUpstream:
    """One row of ``queue_upstreams``: what to probe, and how its last row left it."""

    upstream_id: str
    sensor_source: str
    sensor_id: str
    sensor_read_type: str
    upstream_key: str | None
    preprocess_query: str | None
    job_ids: tuple[int, ...]
    position: str | None
    upstream_value: str | None
    latest_event_tick: int | None
    latest_event_at: datetime | None
    recent_events: tuple[RecentEvents, ...]
    #: What the newest run of each job has taken.
    taken: tuple[ConsumedTicks, ...] = ()
    failing_since: datetime | None
    reason: str | None

    @property
    def boundaries(self) -> frozenset[int]:
        """The ticks after which some job's events begin, or would if its run gave them back."""
        consumed = (tick for each in self.taken for tick in (each.from_tick, each.through_tick))
        return frozenset({NOTHING_CONSUMED, *consumed})

    def consumed_by(self, job_id: int, consumed: Consumed) -> "WatchedUpstream":
        """Return a copy after a start of the job."""
        others = (each for each in self.taken if each.job_id != job_id)
        mine = ConsumedTicks(
            job_id=job_id, from_tick=consumed.from_tick, through_tick=consumed.through_tick
        )
        return replace(self, taken=(*others, mine))

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> "WatchedUpstream":
        """Read a row of the model, or of the file."""
        values = dict(row)
        values["job_ids"] = tuple(cast(Iterable[int], row["job_ids"]))
        values["latest_event_at"] = instant_from(row["latest_event_at"])
        values["failing_since"] = instant_from(row["failing_since"])
        values["recent_events"] = tuple(
            RecentEvents(
                tick_number=int(each["tick_number"]),
                event_at=cast(datetime, instant_from(each["event_at"])),
                event_count=int(each["event_count"]),
            )
            for each in cast(Iterable[Mapping[str, str]], row["recent_events"] or ())
        )
        values["taken"] = tuple(
            ConsumedTicks(**dict(each))  # type: ignore[arg-type]
            for each in cast(Iterable[Mapping[str, object]], row["taken"] or ())
        )
        return cls(**values)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRetry:
    """One row of ``queue_retries``: a failed attempt, and when its automatic retry is due."""

    job_id: int
    intent_id: str
    attempt: int
    retry_at: datetime

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> "PlannedRetry":
        """Read a row of the model, or of the file."""
        values = dict(row) | {"retry_at": instant_from(row["retry_at"])}
        return cls(**values)  # type: ignore[arg-type]

    def is_about(self, run: Run) -> bool:
        """Return whether this is the attempt that failed."""
        return (self.intent_id, self.attempt) == (run.intent_id, run.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """An event that a killed tick recorded without moving its upstream."""

    event_id: str
    upstream_id: str
    snapshot_id: str


class StateView(Protocol):
    """What the steps read of the state that a tick starts from."""

    @property
    def folded_through(self) -> int:
        """Ledger rows up to this tick are in the current-state tables."""
        ...

    @property
    def runs(self) -> Sequence[Run]:
        """The runs that are followed."""
        ...

    @property
    def retries(self) -> Sequence[PlannedRetry]:
        """Which of them start again automatically, and when."""
        ...

    @property
    def triggers(self) -> Sequence[WatchedUpstream]:
        """The upstreams that are evaluated in SQL."""
        ...

    @property
    def triggers_due_at(self) -> datetime | None:
        """When a trigger may release an event without any new event; ``None``: never."""
        ...

    @property
    def orphans(self) -> Sequence[Orphan]:
        """The events that a killed tick has left."""
        ...

    @property
    def controls_checksum(self) -> str | None:
        """The checksum of the controls that are loaded."""
        ...

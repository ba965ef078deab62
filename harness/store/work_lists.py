"""The rows of the models' work lists: upstreams to probe, runs to follow, retries to request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from harness.config.sources import FirstSight
from harness.platform.clock import instant_from
from harness.store.rows import Consumed, RecentEvents, Row, Run

#: The ``sensor_source`` of a trigger. No control row may have it: its probe is SQL, and no probe's.
EVENT_TRIGGER = "event_trigger"
#: The triggers are to be evaluated in any case: when one may release an event is not known.
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
class Upstream:
    """One row of ``queue_upstreams``: what to probe, and how its last row left it."""

    upstream_id: str
    source: str
    sensor_id: str
    read_type: str
    upstream_key: str | None = None
    preprocess_query: str | None = None
    job_ids: tuple[int, ...] = ()
    #: JSON text of the last probe that moved; ``None`` at first observation.
    position: str | None = None
    #: The largest value of ``upstream_key`` seen so far, as text; ``None`` when there is no key.
    upstream_value: str | None = None
    latest_event_tick: int | None = None
    latest_event_at: datetime | None = None
    recent_events: tuple[RecentEvents, ...] = ()
    #: What the newest run of each job has taken.
    taken: tuple[ConsumedTicks, ...] = ()
    failing_since: datetime | None = None
    reason: str | None = None
    #: What the configuration specifies now; set by each sweep, and in no row.
    on_first_sight: FirstSight = FirstSight.EVENT
    #: Snapshots of events that a killed tick recorded without recording the cursor after them; set
    #: by each sweep, and in no row.
    reported_snapshots: frozenset[str] = frozenset()

    @property
    def boundaries(self) -> frozenset[int]:
        """The ticks after which some job's events begin, or would if its run requeued them."""
        consumed = (tick for each in self.taken for tick in (each.from_tick, each.through_tick))
        return frozenset({NOTHING_CONSUMED, *consumed})

    def consumed_by(self, job_id: int, consumed: Consumed) -> "Upstream":
        """Return a copy after a start of the job."""
        others = (each for each in self.taken if each.job_id != job_id)
        mine = ConsumedTicks(
            job_id=job_id, from_tick=consumed.from_tick, through_tick=consumed.through_tick
        )
        return replace(self, taken=(*others, mine))

    @classmethod
    def from_row(cls, row: Row) -> "Upstream":
        """Read a row of the model, or of the state file."""
        values: dict[str, Any] = {name: row[column] for name, column in _COLUMNS.items()}
        values["job_ids"] = tuple(values["job_ids"])
        values["latest_event_at"] = instant_from(row["latest_event_at"])
        values["failing_since"] = instant_from(row["failing_since"])
        values["recent_events"] = tuple(
            RecentEvents(**{**each, "event_at": instant_from(each["event_at"])})
            for each in values["recent_events"] or ()
        )
        values["taken"] = tuple(ConsumedTicks(**each) for each in values["taken"] or ())
        return cls(**values)

    def to_row(self) -> dict[str, object]:
        """Return what ``from_row`` reads."""
        return {column: getattr(self, name) for name, column in _COLUMNS.items()}


_RENAMED = {"source": "sensor_source", "read_type": "sensor_read_type"}
_COLUMNS = {
    each.name: _RENAMED.get(each.name, each.name)
    for each in fields(Upstream)
    if each.name not in ("on_first_sight", "reported_snapshots")
}


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
    tick_number: int


class StateView(Protocol):
    """What the steps read of the state that a tick starts from."""

    @property
    def folded_through(self) -> int:
        """Ledger rows up to this tick are in the current-state tables."""
        ...

    @property
    def upstreams(self) -> Sequence[Upstream]:
        """What is probed or evaluated, and how its last row left it."""
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
    def triggers(self) -> Sequence[Upstream]:
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

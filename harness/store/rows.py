"""The rows that the harness appends, one frozen type per ledger, and the store's protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from harness.platform.clock import instant_from

Row = Mapping[str, object]


class Ledger(StrEnum):
    """The append-only tables of the heartbeat schema."""

    TICKS = "ledger_ticks"
    CONTROLS = "ledger_controls"
    EVENTS = "ledger_data_change_events"
    PROBES = "ledger_probes"
    RUNS = "ledger_runs"
    DECISIONS = "ledger_decisions"
    TRIGGER_EVALUATIONS = "ledger_trigger_looks"


class RunStatus(StrEnum):
    """What a run's step means; described once, in the model ``run_statuses``."""

    INTENDED = "INTENDED"
    STARTED = "STARTED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    TIMED_OUT = "TIMED_OUT"
    SKIPPED = "SKIPPED"
    LOST = "LOST"
    REFUSED = "REFUSED"
    PARKED = "PARKED"
    SUCCEEDED_ELSEWHERE = "SUCCEEDED_ELSEWHERE"
    RETRY_REQUESTED = "RETRY_REQUESTED"
    RELEASED = "RELEASED"
    ACQUIRED = "ACQUIRED"


#: A run that goes on. The same as ``is_open`` in the model ``run_statuses``; a test compares them.
OPEN = frozenset({RunStatus.INTENDED, RunStatus.STARTED, RunStatus.ACQUIRED})
#: A run that keeps its job from starting until some run of it succeeds: ``holds_job``.
HOLDING = frozenset(
    {
        RunStatus.FAILED,
        RunStatus.CANCELED,
        RunStatus.TIMED_OUT,
        RunStatus.SKIPPED,
        RunStatus.LOST,
        RunStatus.REFUSED,
        RunStatus.PARKED,
    }
)
#: A run that has consumed nothing, whatever was passed to it: ``gives_back_events``.
REQUEUING = frozenset({RunStatus.RETRY_REQUESTED, RunStatus.ACQUIRED})


#: Stands for the parameters of a start that waits until the settings of its job can be read.
UNDETERMINED = "null"


class ProbeOutcome(StrEnum):
    """What a probe that is worth a row amounted to."""

    #: Data-change events.
    FOUND = "found"
    #: The cursor moved and nothing that counts as data changed.
    MOVED = "moved"
    #: Events may be missing between the last cursor and this one.
    GAP = "gap"
    FAILED = "failed"
    #: The first good probe after failed ones, with nothing new.
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvents:
    """How many events one tick found at an upstream."""

    tick_number: int
    event_at: datetime
    event_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """Events of one upstream that a run consumes: after ``from_tick``, up to ``through_tick``."""

    upstream_id: str
    from_tick: int
    through_tick: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One reason why a job may not run, in words, and what it waits for."""

    blocker: str
    reason: str
    waits_for: str
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TickRow:
    """A tick that recorded something."""

    tick_number: int
    tick_id: str
    tick_at: datetime
    sensed_count: int
    event_count: int
    failed_look_count: int
    settled_count: int
    started_count: int
    folded_through: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """An upstream after a probe that changed something."""

    tick_number: int
    recorded_at: datetime
    upstream_id: str
    outcome: ProbeOutcome
    reason: str | None
    failing_since: datetime | None
    position: str | None
    upstream_value: str | None
    latest_event_tick: int | None
    latest_event_at: datetime | None
    recent_events: tuple[RecentEvents, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRow:
    """A job whose reasons for not running changed; without reasons it was started."""

    tick_number: int
    recorded_at: datetime
    job_id: int
    job_name: str
    blockers: tuple[Blocker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlChangeRow:
    """A control row that was added, changed or removed."""

    tick_number: int
    recorded_at: datetime
    control_id: str
    change: str
    upstream_id: str
    sensor_source: str
    sensor_id: str
    sensor_read_type: str
    asset_description: str | None
    upstream_key: str | None
    preprocess_query: str | None
    job_id: int
    job_name: str
    job_state: str
    dependency_flag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One tick: its number orders everything, its instant is the only time that it uses."""

    number: int
    at: datetime

    @property
    def id(self) -> str:
        """Name the tick for people: number and instant."""
        return f"{self.number}-{self.at:%Y%m%dT%H%M%SZ}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt to run a job, as its newest step left it: a row of the ledger of runs."""

    tick_number: int
    step_number: int
    recorded_at: datetime
    job_id: int
    job_name: str
    intent_id: str
    attempt: int
    token: str
    run_id: int | None = None
    run_status: RunStatus
    #: ``decision``, ``answer``, ``poll``, ``notice``, ``operator``, ``policy``, ``job``, ``import``
    reported_by: str
    decided_tick: int
    decided_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    life_cycle_state: str | None = None
    result_state: str | None = None
    state: str | None = None
    termination_code: str | None = None
    message: str | None = None
    run_page_url: str | None = None
    consumed: tuple[Consumed, ...]
    event_count: int
    event_ids: tuple[str, ...]
    #: The job parameters that are sent, as one JSON object: a resent request has the same body.
    #: ``UNDETERMINED`` while it is not known which the job accepts; nothing was sent then.
    parameters: str

    @property
    def is_open(self) -> bool:
        """True while the run goes on."""
        return self.run_status in OPEN

    @property
    def holds_job(self) -> bool:
        """True while the run keeps its job from starting again."""
        return self.run_status in HOLDING

    @property
    def is_unanswered(self) -> bool:
        """True while the Jobs API has not reported that there is a run."""
        return self.is_open and self.run_id is None and self.run_status is not RunStatus.ACQUIRED

    @property
    def awaits_parameters(self) -> bool:
        """True while it is not determined what to send, so that nothing was sent yet."""
        return self.is_unanswered and self.parameters == UNDETERMINED

    @property
    def words(self) -> tuple[str | None, ...]:
        """The state in the words of the Jobs API, as far as they are worth a row."""
        return self.life_cycle_state, self.result_state, self.state, self.termination_code

    def consumed_of(self, upstream_id: str) -> Consumed | None:
        """Return the events of an upstream that the run consumes, if it consumes any."""
        return next((each for each in self.consumed if each.upstream_id == upstream_id), None)

    def step(self, tick: Tick, status: RunStatus, reported_by: str) -> "Run":
        """Return the row of a further step; it has no number yet."""
        return replace(
            self,
            tick_number=tick.number,
            step_number=0,
            recorded_at=tick.at,
            run_status=status,
            reported_by=reported_by,
        )

    @classmethod
    def from_row(cls, row: Row) -> "Run":
        """Read a row of the ledger, of a model over it or of the state file."""
        values: dict[str, Any] = {each.name: row[each.name] for each in fields(cls)}
        for name in ("recorded_at", "decided_at", "started_at", "ended_at"):
            values[name] = instant_from(row[name])
        values["run_status"] = RunStatus(str(row["run_status"]))
        values["event_ids"] = tuple(values["event_ids"])
        values["consumed"] = tuple(Consumed(**each) for each in values["consumed"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEvaluationRow:
    """A tick that evaluates the triggers, and the instant that is their present."""

    tick_number: int
    looked_at: datetime


class LedgerRow(Protocol):
    """A dataclass with a field for each column of its ledger; its other fields are not kept."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def tick_number(self) -> int:
        """The tick that recorded it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FencingToken:
    """Orders the appends of several processes: a ledger accepts only a token above its last one."""

    application: str
    version: int


class Store(Protocol):
    """Appends to the ledgers, and reads tables without querying a model."""

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        """Append rows in one commit; no rows, no commit.

        Raises:
            StateError: The ledger cannot be written.
        """
        ...

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        """Read a table's rows, filtered by ``(column, operator, value)`` conditions, all of them.

        Operators: ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, and ``contains``, for text
        in any case. Files whose statistics rule a condition out are not opened. A table that is not
        there has no rows. Without ``columns`` the rows have all of them.

        Raises:
            StateError: The table cannot be read.
        """
        ...

    def exists(self, table: str) -> bool:
        """Return whether the table is there."""
        ...

    def fingerprint(self, table: str) -> str | None:
        """Name the table's present state: equal while nothing has been written to it."""
        ...

    def fingerprints(self, tables: Sequence[str]) -> dict[str, str | None]:
        """Name the present contents of several tables at once; nothing for one that is missing.

        Equal while no row of the table has changed. It is no ``fingerprint``.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What one ``read`` of a store requests."""

    table: str
    where: Sequence[tuple[str, str, object]] = ()
    columns: Sequence[str] = ()


class FencingStore(Store, Protocol):
    """A store whose ledgers keep the newest token in their own log, in one commit with the rows."""

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], fencing_token: FencingToken | None = None
    ) -> None:
        """Append rows in one commit; no rows, no commit.

        With a token that is not above the ledger's last one nothing is appended. Some table
        formats do not show, so this does not, either: the caller checks afterwards.

        Raises:
            StateError: The ledger cannot be written, or another token came in between.
        """
        ...

    def fence(self, fencing_token: FencingToken) -> None:
        """Make every ledger refuse appends whose fencing token is not above this one.

        Raises:
            StateError: A ledger cannot be written, or does not keep fencing tokens.
        """
        ...


def integer(value: object) -> int:
    """Read an integer."""
    return int(str(value))


def whole_or_none(value: object) -> int | None:
    """Read a whole number that may be absent."""
    return None if value is None else integer(value)


def text_or_none(value: object) -> str | None:
    """Read a text that may be absent."""
    return None if value is None else str(value)

"""A store in memory, and one job's day in it: what the tests of `explain` and `status` read."""

import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta

from harness.events.event import EventRow, Operation, TableFormat
from harness.store.rows import (
    Blocker,
    Consumed,
    ControlChangeRow,
    DecisionRow,
    Ledger,
    LedgerRow,
    ProbeOutcome,
    ProbeRow,
    Run,
    RunStatus,
    TickRow,
)

TEN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
JOB = 2**53 + 1
ORDERS = "delta_table:sales.orders:ab5c14a4"
CUSTOMERS = "delta_table:sales.customers:ab5c14a4"

_OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": lambda value, text: str(text).lower() in str(value).lower(),
    "in": lambda value, values: value in values,
}


@dataclass
class FakeStore:
    """Keeps rows as the real store returns them."""

    tables: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def append(self, ledger: Ledger, rows: Sequence[LedgerRow]) -> None:
        self.tables.setdefault(ledger, []).extend(_as_read(asdict(row)) for row in rows)

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        return [
            {name: row[name] for name in columns or row}
            for row in self.tables.get(table, [])
            if all(
                row[column] is not None and _OPERATORS[sign](row[column], value)
                for column, sign, value in where
            )
        ]

    def exists(self, table: str) -> bool:
        return table in self.tables

    def fingerprint(self, table: str) -> str | None:
        return str(len(self.tables[table])) if table in self.tables else None

    def fingerprints(self, tables: Sequence[str]) -> dict[str, str | None]:
        return {table: self.fingerprint(table) for table in tables}


def _as_read(value: object) -> dict[str, object]:
    plain = _plain(value)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def minutes(number: int) -> datetime:
    """The instant so many minutes after ten."""
    return TEN + timedelta(minutes=number)


def control(tick: int, at: datetime, sensor_id: str, **changed: object) -> ControlChangeRow:
    row = ControlChangeRow(
        tick_number=tick,
        recorded_at=at,
        control_id=f"{sensor_id}_{JOB}",
        change="added",
        upstream_id=f"delta_table:{sensor_id}:ab5c14a4",
        sensor_source="delta_table",
        sensor_id=sensor_id,
        sensor_read_type="streaming",
        asset_description=None,
        upstream_key=None,
        preprocess_query=None,
        job_id=JOB,
        job_name="daily-revenue",
        job_state="UNPAUSED",
        dependency_flag="TRUE",
    )
    return replace(row, **changed)


def probe(tick: int, at: datetime, upstream_id: str, **changed: object) -> ProbeRow:
    row = ProbeRow(
        tick_number=tick,
        recorded_at=at,
        upstream_id=upstream_id,
        outcome=ProbeOutcome.FOUND,
        reason=None,
        failing_since=None,
        position="{}",
        upstream_value=None,
        latest_event_tick=tick,
        latest_event_at=at,
        recent_events=(),
    )
    return replace(row, **changed)


def event(tick: int, at: datetime, upstream_id: str, snapshot: str) -> EventRow:
    return EventRow(
        tick_number=tick,
        event_ts=int(at.timestamp() * 1000),
        event_id=f"e{tick}",
        upstream_id=upstream_id,
        table=upstream_id.split(":")[1],
        partition=None,
        snapshot_id=snapshot,
        snapshot_ts=int(at.timestamp() * 1000),
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        tags={"rows_written": "1204"},
        change_id=f"e{tick}",
    )


def run(tick: int, step: int, at: datetime, status: RunStatus, **changed: object) -> Run:
    row = Run(
        tick_number=tick,
        step_number=step,
        recorded_at=at,
        job_id=JOB,
        job_name="daily-revenue",
        intent_id="first",
        attempt=1,
        token="t",
        run_status=status,
        reported_by="decision",
        decided_tick=tick,
        decided_at=at,
        consumed=(Consumed(upstream_id=ORDERS, from_tick=-1, through_tick=1),),
        event_count=1,
        event_ids=("e1",),
        parameters="{}",
    )
    return replace(row, **changed)


def decision(tick: int, at: datetime, *blockers: tuple[str, str]) -> DecisionRow:
    return DecisionRow(
        tick_number=tick,
        recorded_at=at,
        job_id=JOB,
        job_name="daily-revenue",
        blockers=tuple(
            Blocker(blocker=name, reason=reason, waits_for=f"the cure of {name}", since=at)
            for name, reason in blockers
        ),
    )


def tick(number: int, at: datetime) -> TickRow:
    return TickRow(
        tick_number=number,
        tick_id=f"{number}-x",
        tick_at=at,
        sensed_count=2,
        event_count=1,
        failed_look_count=0,
        settled_count=0,
        started_count=0,
        folded_through=-1,
        seconds=0.1,
    )


NOTHING_NEW = (
    "waiting_for_required_event",
    "its hard dependency sales.orders has nothing new since its last event was consumed",
)
GOES_ON = ("run_in_progress", "its run 70 goes on")
FAILED = ("last_run_failed", "its last run 71 ended FAILED: boom")


def a_day() -> FakeStore:
    """Ten o'clock: first run. 10:10 it succeeds. 10:20 second run. 10:30 it fails. 10:40 retried,
    without an answer. 10:50 the retry is started. 11:00 the job leaves the controls.
    """
    store = FakeStore()
    second = {"intent_id": "second", "decided_tick": 3, "decided_at": minutes(20)}
    second |= {"consumed": (Consumed(upstream_id=ORDERS, from_tick=1, through_tick=3),)}
    second |= {"event_ids": ("e3",)}
    again = {**second, "attempt": 2, "decided_tick": 5, "decided_at": minutes(40)}
    started = {"run_id": 70, "started_at": TEN}
    failed = {"run_id": 71, "started_at": minutes(20)}
    soft = {"dependency_flag": "FALSE"}
    store.append(Ledger.TICKS, [tick(number, minutes(number * 10 - 10)) for number in range(1, 8)])
    store.append(
        Ledger.CONTROLS,
        [
            control(1, TEN, "sales.customers", **soft),
            control(1, TEN, "sales.orders"),
            control(7, minutes(60), "sales.customers", change="removed", **soft),
            control(7, minutes(60), "sales.orders", change="removed"),
        ],
    )
    store.append(Ledger.PROBES, [probe(1, TEN, ORDERS), probe(3, minutes(20), ORDERS)])
    store.append(Ledger.EVENTS, [event(1, TEN, ORDERS, "40"), event(3, minutes(20), ORDERS, "41")])
    ended = {**started, "ended_at": minutes(5), "decided_tick": 1, "decided_at": TEN}
    store.append(
        Ledger.RUNS,
        [
            run(1, 1, TEN, RunStatus.INTENDED),
            run(1, 2, TEN, RunStatus.STARTED, **started),
            run(2, 1, minutes(10), RunStatus.SUCCEEDED, **ended),
            run(3, 1, minutes(20), RunStatus.INTENDED, **second),
            run(3, 2, minutes(20), RunStatus.STARTED, **second, **failed),
            run(
                4,
                1,
                minutes(30),
                RunStatus.FAILED,
                **second,
                **failed,
                ended_at=minutes(29),
                message="The command ended with 1.",
            ),
            run(5, 1, minutes(40), RunStatus.RETRY_REQUESTED, **second, **failed),
            run(5, 2, minutes(40), RunStatus.INTENDED, **again, message="503"),
            run(6, 1, minutes(50), RunStatus.STARTED, **again, run_id=72, started_at=minutes(50)),
        ],
    )
    store.append(
        Ledger.DECISIONS,
        [
            decision(1, TEN, GOES_ON),
            decision(2, minutes(10), NOTHING_NEW),
            decision(3, minutes(20), GOES_ON, NOTHING_NEW),
            decision(4, minutes(30), FAILED, NOTHING_NEW),
            decision(5, minutes(40), ("run_in_progress", "its start is not acknowledged yet")),
        ],
    )
    return store

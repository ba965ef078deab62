"""Senses ``sap_bw`` and ``sap_b4``: runs of process chains that have ended well, by their log id.

A run that failed and was repaired keeps its id and its time, so a largest time would pass it by;
and a chain may show that it has ended and go on. So every run of the last days is probed again,
and one counts when it is green at two probes, one after the other. Times are those of the server.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from harness.config.connections import SapSystem, SapSystems
from harness.config.identifiers import Name, names_from
from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.cursor import read_cursor
from harness.sense.database_queries import (
    Dialect,
    Kind,
    Queries,
    Query,
    QueryTooSlowError,
    Value,
    listed,
)
from harness.sense.preprocess.query import rendered
from harness.sense.probe import ProbeResult, failed
from harness.store.work_lists import Upstream

_CURSOR_VERSION = 1
#: Ended well: G is green, F is completed.
_GOOD = frozenset({"G", "F"})
#: Chains in one statement; databases take a thousand values at most.
_MOST_CHAINS = 500
_LEAST_SECONDS = 0.05
_COLUMNS = ("CHAIN_ID", "LOG_ID", "DATUM", "ZEIT", "ANALYZED_STATUS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a chain that has ended well."""

    log_id: str
    day: str
    time: str
    status: str

    @property
    def load_date(self) -> str:
        """When it started, by the server's clock, in digits."""
        return self.day + self.time

    def columns(self, chain: str) -> dict[str, str]:
        """Return it as ``sensor_new_data`` has it."""
        values = (chain, self.log_id, self.day, self.time, self.status)
        return {**dict(zip(_COLUMNS, values, strict=True)), "LOAD_DATE": self.load_date}


class NewRuns(Protocol):
    """Runs a query over new runs; the only part that may run Spark jobs."""

    def any_of(self, rows: Sequence[Mapping[str, str]], query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cursor:
    #: Runs that started before this day are none of ours.
    floor: str
    #: Log ids that were reported, or were there before us, and the day on which each started.
    reported: Mapping[str, str]
    #: Log ids that were green at one probe so far.
    pending: frozenset[str]
    last: str | None

    def to_text(self) -> str:
        record = {
            "v": _CURSOR_VERSION,
            "floor": self.floor,
            "reported": dict(sorted(self.reported.items())),
            "pending": sorted(self.pending),
            "last": self.last,
        }
        return json.dumps(record, separators=(",", ":"))


class SapProbe:
    """Probes all chains of one system in one query.

    Args:
        systems: The two systems, as ``heartbeat.yml`` has them.
        queries: Reads from their databases.
        new_runs: Runs preprocess queries.
        monotonic: Measures time limits.
    """

    def __init__(
        self,
        systems: SapSystems,
        queries: Queries,
        new_runs: NewRuns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._systems: Mapping[str, SapSystem | None] = {
            "sap_bw": systems.sap_bw,
            "sap_b4": systems.sap_b4,
        }
        self._queries = queries
        self._new_runs = new_runs
        self._monotonic = monotonic
        #: The day that the last answer of each system came, by the system's database.
        self._today: dict[str, date] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the source: it is one system."""
        return upstream.source

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per chain of one system; the instant plays no part."""
        source = group[0].source
        system = self._systems[source]
        if system is None:
            reason = f"heartbeat.yml has no {source} under connections.sap"
            return [failed(each, reason) for each in group]
        try:
            floor, runs = self._runs(source, system, sorted({_chain(each) for each in group}))
        except ProbeFailedError as error:
            return [failed(each, str(error)) for each in group]
        return [self._probe(each, system, floor, runs.get(_chain(each), {})) for each in group]

    def _probe(
        self, upstream: Upstream, system: SapSystem, floor: str, runs: Mapping[str, Run]
    ) -> ProbeResult:
        try:
            if any(each.isspace() for each in upstream.sensor_id):
                raise ProbeFailedError("its sensor_id is not a chain id, which has no space in it")
            before = _cursor_from(upstream.position)
            after, reported = _compared(upstream, before, floor, runs)
            query = rendered(upstream) if reported else None
            rows = [run.columns(_chain(upstream)) for run in reported]
            counts = query is None or self._new_runs.any_of(rows, query)
        except ProbeFailedError as error:
            return failed(upstream, str(error))
        values = [run.load_date for run in reported]
        if upstream.upstream_value is not None:
            values.append(upstream.upstream_value)
        former = before.last if before else None
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=upstream.position if after == before else after.to_text(),
            events=tuple(_events(upstream, system, reported, former)) if counts else (),
            upstream_value=max(values, default=None),
        )

    def _runs(
        self, source: str, system: SapSystem, chains: Sequence[str]
    ) -> tuple[str, dict[str, dict[str, Run]]]:
        ends = self._monotonic() + system.timeout_seconds

        def left() -> float:
            seconds = ends - self._monotonic()
            if seconds <= _LEAST_SECONDS:
                limit = f"{system.timeout_seconds:g} s"
                raise QueryTooSlowError(f"the database did not answer within {limit}")
            return seconds

        dialect = self._queries.dialect(system)
        if source not in self._today:
            answer = self._queries.ask(system, _clock_query(system, dialect), within=left())
            self._today[source] = _day_of(answer.rows[0][1])
        # A day more: the database's clock may be of another zone than SAP's.
        floor = (self._today[source] - timedelta(days=system.look_back_days + 1)).strftime("%Y%m%d")
        found: dict[str, dict[str, Run]] = {}
        for at in range(0, len(chains), _MOST_CHAINS):
            query = _runs_query(system, dialect, floor, chains[at : at + _MOST_CHAINS])
            for row in self._queries.ask(system, query, within=left()).rows:
                chain, log_id, day, started, status = ((each or "").strip() for each in row[:5])
                self._today[source] = _day_of(row[5])
                run = Run(log_id=log_id, day=day, time=started, status=status)
                found.setdefault(chain.upper(), {})[log_id] = run
        return floor, found


def _chain(upstream: Upstream) -> str:
    return upstream.sensor_id.strip().upper()


def _day_of(clock: str | None) -> date:
    return date.fromisoformat((clock or "")[:10])


def _clock_query(system: SapSystem, dialect: Dialect) -> Query:
    day = dialect.quoted((Name("DATUM"),))
    table = dialect.quoted(names_from(system.log_table))
    return Query((f"select max({day}) as newest, current_timestamp as asked_at from {table}",))


def _runs_query(system: SapSystem, dialect: Dialect, floor: str, chains: Sequence[str]) -> Query:
    columns = [dialect.quoted((Name(name),)) for name in _COLUMNS]
    chain, _, day, _, status = columns
    text = (
        f"select {', '.join(columns)}, current_timestamp as asked_at"
        f" from {dialect.quoted(names_from(system.log_table))} where {day} >= "
    )
    first, *good = (Value(kind=Kind.TEXT, text=each) for each in (floor, *sorted(_GOOD)))
    named = [Value(kind=Kind.TEXT, text=each) for each in chains]
    return Query(
        (text, first, f" and {status} in ", *listed(good), f" and {chain} in ", *listed(named))
    )


def _compared(
    upstream: Upstream, before: _Cursor | None, floor: str, runs: Mapping[str, Run]
) -> tuple[_Cursor, tuple[Run, ...]]:
    """Return the next cursor, and the runs that are new data, the oldest first."""
    if before is None:
        return _first_sight(upstream, floor, runs), ()
    new = {each for each, run in runs.items() if run.day >= before.floor} - before.reported.keys()
    confirmed = new & before.pending
    if not confirmed and new == before.pending:
        return before, ()
    confirmed_runs = sorted((runs[each] for each in confirmed), key=_by_start)
    floor = max(before.floor, floor)
    reported = {**before.reported, **{run.log_id: run.day for run in confirmed_runs}}
    after = _Cursor(
        floor=floor,
        reported={each: day for each, day in reported.items() if day >= floor},
        pending=frozenset(new - confirmed),
        last=confirmed_runs[-1].log_id if confirmed_runs else before.last,
    )
    return after, tuple(confirmed_runs)


def _first_sight(upstream: Upstream, floor: str, runs: Mapping[str, Run]) -> _Cursor:
    """The last run is the data that is there; the earlier ones are in it."""
    in_order = sorted(runs.values(), key=_by_start)
    pending = in_order[-1:] if upstream.on_first_sight is FirstSight.EVENT else []
    return _Cursor(
        floor=floor,
        reported={run.log_id: run.day for run in in_order if run not in pending},
        pending=frozenset(run.log_id for run in pending),
        last=None,
    )


def _by_start(run: Run) -> tuple[str, str]:
    return run.load_date, run.log_id


def _events(
    upstream: Upstream, system: SapSystem, runs: Sequence[Run], former: str | None
) -> Iterator[ChangeEvent]:
    for run in runs:
        yield ChangeEvent(
            table=upstream.sensor_id,
            snapshot_id=run.log_id,
            snapshot_ts=_milliseconds(run, system.time_zone),
            prev_snapshot_id=former,
            table_format=TableFormat.SAP,
            operation_type=Operation.APPEND,
            tags={"chain": _chain(upstream), "status": run.status, "started": run.load_date},
            lineage="",
        )
        former = run.log_id


def _milliseconds(run: Run, time_zone: str | None) -> int | None:
    """Return the instant of the start, where the zone of the server's clock is known."""
    if time_zone is None:
        return None
    try:
        zone = ZoneInfo(time_zone)
        started = datetime.strptime(run.load_date, "%Y%m%d%H%M%S").replace(tzinfo=zone)
    except ValueError:
        return None
    return int(started.timestamp() * 1000)


def _cursor_from(text: str | None) -> _Cursor | None:
    if text is None:
        return None
    return read_cursor(text, _CURSOR_VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> _Cursor:
    return _Cursor(
        floor=record["floor"],
        reported=dict(record["reported"]),
        pending=frozenset(record["pending"]),
        last=record["last"],
    )

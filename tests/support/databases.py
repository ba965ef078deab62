"""Databases in memory that run the probes' own statements, and fail where a test sets it."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from harness.config.connections import Database, JdbcDatabase, SapSystem, SapSystems
from harness.events.event import ChangeEvent
from harness.sense.database_queries import (
    Answer,
    Column,
    DatabaseDownError,
    Dialect,
    Kind,
    Query,
    QueryRefusedError,
    QueryTooSlowError,
)
from harness.sense.probe import ProbeResult
from harness.sense.sources.jdbc.compare import SinceRows
from harness.sense.sources.jdbc.probe import JdbcProbe
from harness.sense.sources.sap import SapProbe
from harness.store.work_lists import Upstream

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)
NOW = "2025-04-23 21:40:00"


class FakeQueries:
    """Answers from SQLite. Its columns have no types: the declared type gives the kind."""

    def __init__(self, dialect: Dialect | None = None) -> None:
        self.sql = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.sql.create_function("clock", 0, lambda: self.now)
        self.now = NOW
        self.kind = Kind.TIME
        #: The driver's name for the type; the kind, where it has none of its own.
        self.type_name: str | None = None
        self.asked: list[str] = []
        self.is_down = False
        #: Names of tables whose lock somebody holds.
        self.locked: set[str] = set()
        #: Called with the limit of each statement that a lock stops.
        self.on_wait: Callable[[float], None] = lambda seconds: None
        self._dialect = dialect or Dialect()

    def dialect(self, database: Database) -> Dialect:
        return self._dialect

    def ask(
        self, database: Database, query: Query, *, within: float, most: int | None = None
    ) -> Answer:
        self._reach()
        self.asked.append(query.written())
        if any(f'"{name}"' in query.written() for name in self.locked):
            self.on_wait(within)
            raise QueryTooSlowError("the database gave the query up: it waited for a lock")
        text = query.written().replace("current_timestamp", "clock()")
        try:
            rows = self.sql.execute(text, [self._bound(each) for each in query.parameters])
        except sqlite3.Error as error:
            raise QueryRefusedError(f"the database refuses the query: {error}") from error
        found = [tuple(None if each is None else str(each) for each in row) for row in rows]
        name = self.kind.value if self.type_name is None else self.type_name
        column = Column(kind=self.kind, type_name=name)
        return Answer(columns=(column,) * len(rows.description), rows=found)

    def _bound(self, value: Any) -> object:
        return int(value.text) if value.kind is Kind.NUMBER else value.text

    def _reach(self) -> None:
        if self.is_down:
            raise DatabaseDownError("the database cannot be reached: connection refused")


@dataclass
class FakeNewRows:
    """Returns the configured answer, and records which rows it was queried about."""

    answer: bool = True
    asked: list[tuple[SinceRows, str]] = field(default_factory=list)

    def any_row(self, database: Database, rows: SinceRows, query: str) -> bool:
        self.asked.append((rows, query))
        return self.answer


class Shop:
    """A database with tables, and a probe of all of them."""

    def __init__(self, *, timeout: float = 30, overlap: int = 10, **more: Any) -> None:
        self.queries = FakeQueries(**more)
        self.new_rows = FakeNewRows()
        self.seconds = 0.0
        self.database = JdbcDatabase(
            url="jdbc:fake:shop", timeout_seconds=timeout, overlap_minutes=overlap
        )
        self.upstreams: dict[str, Upstream] = {}
        self.restart()

    def restart(self) -> None:
        self.probe = JdbcProbe(
            {"shop": self.database}, self.queries, self.new_rows, lambda: self.seconds
        )

    def table(self, name: str = "orders", *keys: object, **more: Any) -> None:
        """Make a table, and let it be watched."""
        self.queries.sql.execute(f'create table "{name}" (id integer primary key, changed)')
        self.watch(name, **more)
        self.add(*keys, to=name)

    def watch(self, name: str, **more: Any) -> None:
        self.upstreams[name] = Upstream(
            upstream_id=name,
            source="jdbc",
            sensor_id=f"shop: {name}",
            read_type="batch",
            upstream_key=more.pop("upstream_key", "changed"),
            **more,
        )

    def add(self, *keys: object, to: str = "orders") -> None:
        for key in keys:
            self.queries.sql.execute(f'insert into "{to}" (changed) values (?)', (key,))

    def run(self, statement: str) -> None:
        self.queries.sql.execute(statement)

    def results(self, names: Sequence[str] = ()) -> dict[str, ProbeResult]:
        """Probe all once, and keep each result that is no failure."""
        group = [self.upstreams[name] for name in names or self.upstreams]
        results = {result.upstream_id: result for result in self.probe.probe(group, at=AT)}
        for name, result in results.items():
            if result.failure is None:
                self.upstreams[name] = replace(
                    self.upstreams[name],
                    position=result.position,
                    upstream_value=result.upstream_value,
                )
        return results

    def events(self, name: str = "orders") -> list[ChangeEvent]:
        result = self.results()[name]
        assert result.failure is None, result.failure
        return list(result.events)

    def sighted(self) -> "Shop":
        """Probe once, so that the next probe has a position to start from."""
        self.results()
        self.queries.asked.clear()
        return self


class FakeRuns:
    """Returns the configured answer, and records which runs it was queried about."""

    def __init__(self) -> None:
        self.answer = True
        self.asked: list[tuple[list[Mapping[str, str]], str]] = []

    def any_of(self, rows: Sequence[Mapping[str, str]], query: str) -> bool:
        self.asked.append((list(rows), query))
        return self.answer


class Warehouse:
    """An SAP system with process chains, and a probe of them."""

    def __init__(self, **more: Any) -> None:
        self.queries = FakeQueries()
        self.queries.kind = Kind.TEXT
        self.system = SapSystem(url="jdbc:fake:bw", **more)
        self.new_runs = FakeRuns()
        self.upstreams: dict[str, Upstream] = {}
        self.queries.sql.execute(
            "create table RSPCLOGCHAIN"
            " (CHAIN_ID text, LOG_ID text primary key, DATUM text, ZEIT text, ANALYZED_STATUS text)"
        )
        self.restart()

    def restart(self) -> None:
        systems = SapSystems(sap_bw=self.system)
        self.probe = SapProbe(systems, self.queries, self.new_runs)

    def watch(self, chain: str = "SALES", **more: Any) -> "Warehouse":
        more.setdefault("source", "sap_bw")
        self.upstreams[chain] = Upstream(
            upstream_id=chain, sensor_id=chain, read_type="batch", **more
        )
        return self

    def run(
        self, log_id: str, status: str = "G", at: str = "20250423010000", chain: str = "SALES"
    ) -> None:
        """Let a run have this status, whether it is there already or not."""
        values = (chain, log_id, at[:8], at[8:], status)
        self.queries.sql.execute("insert or replace into RSPCLOGCHAIN values (?,?,?,?,?)", values)

    def results(self) -> dict[str, ProbeResult]:
        results = {
            result.upstream_id: result
            for result in self.probe.probe([*self.upstreams.values()], at=AT)
        }
        for name, result in results.items():
            if result.failure is None:
                self.upstreams[name] = replace(
                    self.upstreams[name],
                    position=result.position,
                    upstream_value=result.upstream_value,
                )
        return results

    def events(self, results: int = 2, chain: str = "SALES") -> list[str | None]:
        """Probe so often, and return the reported log ids."""
        reported = []
        for _ in range(results):
            result = self.results()[chain]
            assert result.failure is None, result.failure
            reported += [event.snapshot_id for event in result.events]
        return reported

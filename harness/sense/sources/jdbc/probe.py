"""Senses ``jdbc``: tables of a database by the largest value of a column, all in one statement."""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from harness.config.connections import JdbcDatabase
from harness.config.identifiers import relation_from
from harness.sense.database_queries import Queries
from harness.sense.probe import ProbeResult, failed
from harness.sense.sources.jdbc.compare import Comparison, NewTableRows
from harness.sense.sources.jdbc.session import QuerySession
from harness.sense.sources.jdbc.watermark_sql import NO_RELATION
from harness.store.work_lists import Upstream


class JdbcProbe:
    """Probes all tables of one database together.

    Args:
        databases: The databases by the names that ``heartbeat.yml`` gives them.
        queries: Reads from them.
        new_rows: Runs preprocess queries over new rows.
        monotonic: Measures time limits.
    """

    def __init__(
        self,
        databases: Mapping[str, JdbcDatabase],
        queries: Queries,
        new_rows: NewTableRows,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._databases = databases
        self._queries = queries
        self._new_rows = new_rows
        self._monotonic = monotonic
        #: Upstreams that failed at their last probe.
        self._alone: dict[str, set[str]] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the connection: its tables are queried in one statement."""
        relation = relation_from(upstream.sensor_id)
        return upstream.upstream_id if relation is None else f"{relation.connection}:"

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream of one connection; the instant plays no part."""
        relation = relation_from(group[0].sensor_id)
        if relation is None:
            return [failed(each, NO_RELATION) for each in group]
        name = relation.connection
        database = self._databases.get(name)
        if database is None:
            known = ", ".join(sorted(self._databases)) or "none"
            reason = f"heartbeat.yml has no {name} under connections.jdbc, only {known}"
            return [failed(each, reason) for each in group]
        alone = self._alone.setdefault(name, set())
        session = QuerySession(self._queries, database, alone, self._monotonic)
        return Comparison(session, database, self._new_rows).results(group)

"""Probes tables of the Hive metastore: which partitions there are, and which files in them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation
from harness.platform.storage import Storages, reason_of
from harness.sense.cursor import next_lineage
from harness.sense.preprocess.run import Questions, evaluate
from harness.sense.probe import ProbeResult
from harness.sense.sources.hive.cursor import WHOLE_TABLE, Cursor, compare, cursor_from
from harness.sense.sources.hive.events import event_of_all, events_of
from harness.sense.sources.hive.metastore import HiveCatalog, HiveTable
from harness.sense.sources.hive.new_rows import rows_of
from harness.sense.sources.hive.partitions import EMPTY, State, states_of
from harness.store.work_lists import Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    table: HiveTable
    position: Cursor
    events: tuple[ChangeEvent, ...]
    #: Where the new rows are; ``None`` stands for the whole table.
    partitions: Sequence[str] | None


class HiveProbe:
    """Senses ``hive_table``. No Spark job is run unless a row has a ``preprocess_query``.

    Args:
        storages: List the files.
        catalog: Finds tables and partitions.
        questions: Queries new rows.
    """

    def __init__(self, storages: Storages, catalog: HiveCatalog, questions: Questions) -> None:
        self._storages = storages
        self._catalog = catalog
        self._questions = questions
        #: Upstreams whose partitions' folders this process has requested.
        self._located: set[str] = set()

    def group_of(self, upstream: Upstream) -> str:
        """Return the upstream's own id: each table is probed alone."""
        return upstream.upstream_id

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream; the instant plays no part."""
        return [self._probe(upstream) for upstream in group]

    def _probe(self, upstream: Upstream) -> ProbeResult:
        try:
            before = None if upstream.position is None else cursor_from(upstream.position)
            found = self._found(upstream, before)
            is_baseline = before is None and upstream.on_first_sight is FirstSight.BASELINE
            is_change, value = self._filtered(upstream, found, is_baseline=is_baseline)
        except (ProbeFailedError, OSError) as error:
            return ProbeResult(
                upstream_id=upstream.upstream_id,
                position=upstream.position,
                upstream_value=upstream.upstream_value,
                failure=(
                    f"The Hive table {upstream.sensor_id} cannot be sensed: {reason_of(error)}."
                ),
            )
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=found.position.to_text(),
            events=found.events if is_change else (),
            upstream_value=value,
        )

    def _found(self, upstream: Upstream, before: Cursor | None) -> _Found:
        name = upstream.sensor_id
        table = self._catalog.table(name)
        if self._storages.of(table.location).stat(table.location) is None:
            raise ProbeFailedError(f"the folder {table.location} does not exist")
        names = self._catalog.partitions(name) if table.partition_columns else [WHOLE_TABLE]
        elsewhere = self._elsewhere(upstream, table, names, before)
        states = states_of(self._storages, table.location, names, elsewhere)
        if before is None or before.created_ms != table.created_ms:
            start = replace(_start(table, before), elsewhere=elsewhere)
            tag = "first_sight" if before is None else "recreated"
            return _all_of(table, states, start, lambda at: event_of_all(name, states, at, tag))
        cursor, changes = compare(states, replace(before, elsewhere=elsewhere))
        return _Found(
            table=table,
            position=cursor,
            events=events_of(name, changes, cursor),
            partitions=[each.name for each in changes if each.operation is not Operation.DELETE],
        )

    def _elsewhere(
        self, upstream: Upstream, table: HiveTable, names: Sequence[str], before: Cursor | None
    ) -> Mapping[str, str]:
        """Return the folders that only the metastore has; listing them takes time."""
        if not table.partition_columns:
            return {}
        is_known = (
            before is not None
            and before.created_ms == table.created_ms
            and upstream.upstream_id in self._located
            and not table.is_external
            and not before.elsewhere
            and before.known.keys() >= set(names)
        )
        if is_known:
            return {}
        found = self._catalog.elsewhere(upstream.sensor_id, table, names)
        self._located.add(upstream.upstream_id)
        return found

    def _filtered(
        self, upstream: Upstream, found: _Found, *, is_baseline: bool
    ) -> tuple[bool, str | None]:
        is_change = bool(found.events) and not is_baseline
        if not found.events or not upstream.preprocess_query:
            return is_change, upstream.upstream_value
        partitions = found.partitions
        if partitions is not None and not partitions:
            # There are no rows in what is gone.
            return False, upstream.upstream_value
        if not found.table.partition_columns:
            partitions = None
        rows = rows_of(upstream.sensor_id, found.table, partitions)
        answer = evaluate(self._questions, upstream, rows, is_baseline=is_baseline)
        return answer.is_change, answer.upstream_value


def _start(table: HiveTable, before: Cursor | None) -> Cursor:
    life = str(table.created_ms)
    lineage = f"{life}/0" if before is None else next_lineage(before.lineage, life)
    return Cursor(created_ms=table.created_ms, lineage=lineage, known={})


def _all_of(
    table: HiveTable,
    states: Mapping[str, State],
    start: Cursor,
    event_at: Callable[[Cursor], ChangeEvent],
) -> _Found:
    """Report a table as a whole, as it is now."""
    cursor = replace(start, known={name: state.identity for name, state in states.items()})
    holds_data = any(state.identity != EMPTY for state in states.values())
    return _Found(
        table=table,
        position=cursor,
        events=(event_at(cursor),) if holds_data else (),
        partitions=None,
    )

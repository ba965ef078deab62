"""Upstreams in memory: each has versions, some of which bring data, and a pool that probes them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from harness.config.sources import FirstSight
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.probe import Probe, ProbeResult
from harness.store.work_lists import Upstream
from tests.simulation.upstreams import Other, Row, Systems, look_at


@dataclass(slots=True)
class Source:
    """One upstream. Version 0 is there from the beginning and brings nothing."""

    #: Whether each version brings data, and when it was committed.
    versions: list[tuple[bool, datetime]]
    source: str = "delta_table"
    key: str = ""
    is_down: bool = False
    #: The version of the first probe; what is newer has to become an event.
    first_sight: int | None = None
    #: There is no record any more of what the versions before this one brought.
    oldest_told: int = 0
    #: Versions that no probe could have found.
    excused: set[int] = field(default_factory=set)

    @property
    def newest(self) -> int:
        return len(self.versions) - 1

    def commit(self, at: datetime, *, brings: bool) -> None:
        """Commit a version."""
        self.versions.append((brings, at))

    def forget(self) -> None:
        """Drop the record of what the versions brought."""
        self.oldest_told = self.newest

    def marks_of(self, event: Row) -> set[str]:
        """Return the versions that an event is about."""
        return {str(event["snapshot_id"])}

    def due(self) -> set[str]:
        """Return the versions that have to be events by the time that everything was probed."""
        first = self.first_sight if self.first_sight is not None else self.newest
        due = {n for n, (brings, _) in enumerate(self.versions) if brings and n > first}
        return set(map(str, due - self.excused))


@dataclass(slots=True)
class Sources:
    """All upstreams by their sensor id; reads them as a probe does, from position to position."""

    by_id: dict[str, Source] = field(default_factory=dict)
    #: Those of other kinds, and what they are in.
    others: dict[str, Other] = field(default_factory=dict)
    systems: Systems | None = None

    @property
    def all(self) -> Mapping[str, Source | Other]:
        """Every upstream by its sensor id."""
        return {**self.by_id, **self.others}

    def probe(self, upstream: Upstream, at: datetime) -> ProbeResult:
        """Probe one upstream; the clock plays no part."""
        source = self.by_id[upstream.sensor_id]
        if source.is_down:
            return ProbeResult(upstream_id=upstream.upstream_id, failure="it is down")
        cursor = json.dumps({"version": source.newest})
        if upstream.position is None:
            source.first_sight = source.newest
            has_data = any(brings for brings, _ in source.versions)
            is_event = has_data and upstream.on_first_sight is FirstSight.EVENT
            events = [change(upstream, source.newest)] if is_event else []
        else:
            after = json.loads(upstream.position)["version"]
            if after < source.oldest_told - 1:
                return _after_a_gap(source, upstream, after)
            events = [
                change(upstream, number)
                for number in range(after + 1, source.newest + 1)
                if source.versions[number][0]
            ]
        return ProbeResult(upstream_id=upstream.upstream_id, position=cursor, events=tuple(events))


class ProbePool:
    """Probes all upstreams, as one process does.

    Args:
        sources: What there is.
        now: The instant by the clocks of databases.
    """

    def __init__(self, sources: Sources, now: Callable[[], datetime]) -> None:
        self._sources = sources
        self._now = now
        self._probes: Mapping[str, Probe] = sources.systems.probes() if sources.systems else {}

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_result: Callable[[ProbeResult], None] | None = None,
    ) -> list[ProbeResult]:
        others = self._looks_at_others(upstreams, at)
        return [others.get(each.upstream_id) or self.probe(each, at) for each in upstreams]

    def probe(self, upstream: Upstream, at: datetime) -> ProbeResult:
        """Probe an upstream with versions."""
        return self._sources.probe(upstream, at)

    def _looks_at_others(
        self, upstreams: Sequence[Upstream], at: datetime
    ) -> Mapping[str, ProbeResult]:
        others = self._sources.others
        ours = [each for each in upstreams if each.sensor_id in others]
        if self._sources.systems:
            self._sources.systems.let_it_be(self._now())
        down = [each for each in ours if others[each.sensor_id].is_down]
        up = [each for each in ours if not others[each.sensor_id].is_down]
        failed = {
            e.upstream_id: ProbeResult(upstream_id=e.upstream_id, failure="it is down")
            for e in down
        }
        return failed | look_at(self._probes, up, others, self._now())


def _after_a_gap(source: Source, upstream: Upstream, after: int) -> ProbeResult:
    """Return one event for all versions that have no record any more."""
    source.excused |= set(range(after + 1, source.newest))
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=json.dumps({"version": source.newest}),
        events=(change(upstream, source.newest),),
        gap=f"the history before version {source.oldest_told} is gone",
    )


def change(upstream: Upstream, version: int) -> ChangeEvent:
    """Return the event of one version."""
    return ChangeEvent(
        table=upstream.sensor_id,
        snapshot_id=str(version),
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        lineage="1",
    )

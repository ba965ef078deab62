"""Upstreams in memory: each has versions, some of which bring data, and a looker that reads them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from harness.sense.types import DataChange, FirstSight, Look, Operation, TableFormat, Upstream


@dataclass(slots=True)
class Source:
    """One upstream. Version 0 is there from the beginning and brings nothing."""

    #: Whether each version brings data, and when it was committed.
    versions: list[tuple[bool, datetime]]
    is_down: bool = False
    #: The version of the first look; what is newer has to become an event.
    first_sight: int | None = None
    #: Nobody can tell any more what the versions before this one brought.
    oldest_told: int = 0
    #: Versions that no look could have found.
    excused: set[int] = field(default_factory=set)

    @property
    def newest(self) -> int:
        return len(self.versions) - 1

    def due(self) -> set[int]:
        """Return the versions that have to be events by the time that everything was looked at."""
        first = self.first_sight if self.first_sight is not None else self.newest
        due = {n for n, (brings, _) in enumerate(self.versions) if brings and n > first}
        return due - self.excused


@dataclass(slots=True)
class Sources:
    """All upstreams by their sensor id; looks at them as a probe does, from position to position."""

    by_id: dict[str, Source] = field(default_factory=dict)

    def look_at_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_look: Callable[[Look], None] | None = None,
    ) -> list[Look]:
        return [self.look(each, at) for each in upstreams]

    def look(self, upstream: Upstream, at: datetime) -> Look:
        """Look at one upstream; the clock plays no part."""
        source = self.by_id[upstream.sensor_id]
        if source.is_down:
            return Look(upstream_id=upstream.upstream_id, failure="it is down")
        position = json.dumps({"version": source.newest})
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
        return Look(upstream_id=upstream.upstream_id, position=position, events=tuple(events))


def _after_a_gap(source: Source, upstream: Upstream, after: int) -> Look:
    """One event stands for all that cannot be told."""
    source.excused |= set(range(after + 1, source.newest))
    return Look(
        upstream_id=upstream.upstream_id,
        position=json.dumps({"version": source.newest}),
        events=(change(upstream, source.newest),),
        gap=f"the history before version {source.oldest_told} is gone",
    )


def change(upstream: Upstream, version: int) -> DataChange:
    """Return the event of one version."""
    return DataChange(
        table=upstream.sensor_id,
        snapshot_id=str(version),
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation=Operation.APPEND,
        lineage="1",
    )

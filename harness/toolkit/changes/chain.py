"""Orders the events of one table and says from where to where they lead, and whether without break.

It knows events, not tables: what is missing between two events may have changed nothing, which
only the table's own log can tell. It never takes a list with a change missing for a whole one.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent, TableFormat


class Fault(StrEnum):
    """Why the rows between the two ends cannot be taken change by change."""

    #: A change between two events is no event of the list.
    GAP = "gap"
    #: Two events follow the same snapshot, or one follows two.
    FORK = "fork"
    #: All rows were rewritten, or snapshots were taken back.
    REWRITE = "rewrite"
    SCHEMA = "schema"
    #: No snapshot comes before the first event.
    FIRST_SIGHT = "first_sight"
    #: The table is another one than at the first event.
    RECREATED = "recreated"
    #: The events do not say what they follow.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The events of one table in their order, and the range that they describe."""

    table: str
    table_format: TableFormat
    #: Oldest first, each once.
    events: tuple[ChangeEvent, ...]
    #: The snapshot before the first change; ``None``: all rows of the table count as new.
    since: str | None = None
    #: The snapshot after the last change; ``None``: the table as it is now.
    until: str | None = None
    #: The partitions that changed, one JSON value per level; ``None``: only snapshots tell.
    partitions: tuple[tuple[str, ...], ...] | None = None
    fault: Fault | None = None
    #: The fault in words, to go on from "because ".
    why: str | None = None

    @property
    def table_ids(self) -> frozenset[str]:
        """Return the ids of the tables that the events were of: one for each life of it."""
        return frozenset(
            event.tags["table_id"] for event in self.events if "table_id" in event.tags
        )

    @property
    def is_complete(self) -> bool:
        """Return whether each change between the two ends is an event of the list."""
        return self.fault is None


def chain_of(events: Iterable[ChangeEvent]) -> Chain:
    """Chain the events of one table; the order in which they come, and repetitions, do not matter.

    Raises:
        ConfigurationError: There is no event, or they are of a format without readable rows.
    """
    events = tuple(events)
    if not events:
        raise ConfigurationError("there are no events, so there is no range of changes to read")
    newest = max(events, key=_reported_at)
    make = _CHAINS.get(newest.table_format)
    if make is None:
        raise ConfigurationError(
            f"the rows that changed in {newest.table} cannot be read: its events are of"
            f" {newest.table_format}, and rows are read of {', '.join(sorted(_CHAINS))}"
        )
    start = Chain(table=newest.table, table_format=newest.table_format, events=events)
    formats = {event.table_format for event in events}
    if len(formats) > 1:
        others = ", ".join(sorted(formats - {newest.table_format}))
        return _broken(start, Fault.RECREATED, f"the table was of {others} before")
    return make(start)


def _reported_at(event: ChangeEvent) -> tuple[int, int]:
    return event.event_ts or 0, event.snapshot_ts or 0


def _broken(chain: Chain, fault: Fault, why: str) -> Chain:
    return replace(chain, fault=fault, why=why)


def _delta(chain: Chain) -> Chain:
    """Chain versions: an event describes all after the one that it follows, up to its own.

    Versions that only maintain the table are no events, so the one before need not be the last.
    """
    for event in chain.events:
        if not _is_version(event.snapshot_id) or not _is_version(event.prev_snapshot_id or "0"):
            link = event.snapshot_id, event.prev_snapshot_id
            return _broken(chain, Fault.UNKNOWN, f"{link[0]!r} after {link[1]!r} is no version")
    events = sorted(_once(chain.events), key=lambda each: (version_of(each), since_of(each)))
    chain = replace(chain, events=tuple(events))
    if _spans_generations(chain):
        return _broken(chain, Fault.RECREATED, "the table was dropped and created again")
    backwards = [each for each in events if since_of(each) >= version_of(each)]
    if backwards:
        link = backwards[0].snapshot_id, backwards[0].prev_snapshot_id
        return _broken(chain, Fault.UNKNOWN, f"version {link[0]} cannot follow version {link[1]}")
    chain = replace(chain, until=events[-1].snapshot_id)
    if _is_first(events):
        return _broken(chain, Fault.FIRST_SIGHT, _NO_PREDECESSOR)
    chain = replace(chain, since=str(min(map(since_of, events))))
    uncovered = _uncovered(events)
    if uncovered is not None:
        return _broken(chain, Fault.GAP, f"no event covers version {uncovered}")
    return with_flags(chain)


def _is_version(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdigit()


def version_of(event: ChangeEvent) -> int:
    """Return the version that an event of a Delta table ends with."""
    return int(event.snapshot_id or 0)


def since_of(event: ChangeEvent) -> int:
    """Return the version after which an event of a Delta table begins."""
    return -1 if event.prev_snapshot_id is None else int(event.prev_snapshot_id)


def _uncovered(events: Sequence[ChangeEvent]) -> int | None:
    """Return the first version between the two ends that is in no event."""
    reached: int | None = None
    for event in sorted(events, key=since_of):
        if reached is not None and since_of(event) > reached:
            return reached + 1
        reached = max(reached or 0, version_of(event))
    return None


def _iceberg(chain: Chain) -> Chain:
    """Chain snapshots, each by the id of the one that it follows."""
    events = sorted(_once(chain.events), key=_committed_at)
    chain = replace(chain, events=tuple(events))
    if any(each.snapshot_id is None for each in events):
        return _broken(chain, Fault.RECREATED, "the table was replaced by one without data")
    if _spans_generations(chain):
        return _broken(chain, Fault.RECREATED, "the table was dropped and created again")
    twice = _met_twice(events)
    if twice is not None:
        return _broken(_by_time(chain), Fault.FORK, f"two events lead from or to {twice}")
    return _linked(chain)


def _met_twice(events: Sequence[ChangeEvent]) -> str | None:
    """Name a snapshot that two events follow, or that two lead to."""
    for ends in (
        Counter(event.prev_snapshot_id for event in events),
        Counter(event.snapshot_id for event in events),
    ):
        snapshot, count = ends.most_common(1)[0]
        if count > 1:
            return snapshot or "no snapshot"
    return None


def _linked(chain: Chain) -> Chain:
    """Put the events in a row from one predecessor to the next."""
    following = {event.prev_snapshot_id: event for event in chain.events}
    snapshots = {event.snapshot_id for event in chain.events}
    starts = [event for event in chain.events if event.prev_snapshot_id not in snapshots]
    if not starts:
        return _broken(chain, Fault.FORK, "the events lead in a circle")
    if len(starts) > 1:
        lost = starts[1].prev_snapshot_id or "the first one"
        return _broken(_by_time(chain), Fault.GAP, f"no event leads to snapshot {lost}")
    row = [starts[0]]
    while (after := following.get(row[-1].snapshot_id)) is not None:
        row.append(after)
    if len(row) < len(chain.events):
        return _broken(chain, Fault.FORK, "some of the events lead in a circle")
    chain = replace(chain, events=tuple(row), until=row[-1].snapshot_id)
    if _is_first(row):
        return _broken(chain, Fault.FIRST_SIGHT, _NO_PREDECESSOR)
    return with_flags(replace(chain, since=row[0].prev_snapshot_id))


def _by_time(chain: Chain) -> Chain:
    """Take the two ends from the times of the commits, where these tell."""
    events = chain.events
    times = {event.snapshot_ts for event in events}
    if None in times or len(times) < len(events):
        return chain
    if any("rolled_back" in event.tags for event in events):
        # The newest is then not the last.
        return chain
    if _is_first(events):
        return chain
    return replace(chain, since=events[0].prev_snapshot_id, until=events[-1].snapshot_id)


def _committed_at(event: ChangeEvent) -> tuple[int, int]:
    return event.snapshot_ts or 0, event.event_ts or 0


def _hive(chain: Chain) -> Chain:
    """Collect the partitions: each is read whole, as it is now, so nothing has to be chained."""
    chain = replace(chain, events=tuple(sorted(_once(chain.events), key=_reported_at)))
    if _spans_generations(chain):
        return _broken(chain, Fault.RECREATED, "the table was dropped and created again")
    partitions = set[tuple[str, ...]]()
    for event in chain.events:
        named = partitions_of(event)
        if named is None:
            return _broken(chain, Fault.FIRST_SIGHT, "an event covers the entire table")
        partitions.update(named)
    return replace(chain, partitions=tuple(sorted(partitions)))


def partitions_of(event: ChangeEvent) -> tuple[tuple[str, ...], ...] | None:
    """Return the partitions that an event names, ``None`` when it does not name all."""
    if event.partition is not None:
        return (event.partition,)
    listed = event.tags.get("partitions")
    if listed is None or "partitions_truncated" in event.tags:
        return None
    try:
        rows = json.loads(listed)
        return tuple(tuple(json.dumps(value) for value in row) for row in rows)
    except (ValueError, TypeError):
        return None


def _once(events: Iterable[ChangeEvent]) -> list[ChangeEvent]:
    """Put those together that tell the same step, with the tags of all."""
    known: dict[tuple[object, ...], ChangeEvent] = {}
    for event in events:
        key: tuple[object, ...] = event.prev_snapshot_id, event.snapshot_id
        if event.table_format is TableFormat.HIVE:
            key = *key, event.partition, event.event_id
        former = known.get(key)
        tags = {**(former.tags if former else {}), **event.tags}
        known[key] = replace(former or event, tags=tags)
    return list(known.values())


def _spans_generations(chain: Chain) -> bool:
    return len(chain.table_ids) > 1 or any("recreated" in event.tags for event in chain.events)


def _is_first(events: Iterable[ChangeEvent]) -> bool:
    """Return whether one of the events stands for all that the table had."""
    return any(each.prev_snapshot_id is None or "first_sight" in each.tags for each in events)


def with_flags(chain: Chain) -> Chain:
    """Record what an event says of itself that no change by change can follow."""
    for tag, fault, why in _FLAGS:
        for event in chain.events:
            if event.tags.get(tag, "false") != "false":
                return _broken(chain, fault, why.format(event.snapshot_id))
    return chain


_NO_PREDECESSOR = "no snapshot comes before the first event"
_FLAGS = (
    ("gap", Fault.GAP, "changes before {} were lost before they were seen"),
    ("rolled_back", Fault.REWRITE, "snapshots were rolled back, to {}"),
    ("replaced", Fault.REWRITE, "the table was replaced in {}"),
    ("overwrite", Fault.REWRITE, "rows were overwritten in {}"),
    ("schema_changed", Fault.SCHEMA, "the schema changed before {}"),
)
_CHAINS: Mapping[TableFormat, Callable[[Chain], Chain]] = {
    TableFormat.DELTA: _delta,
    TableFormat.ICEBERG: _iceberg,
    TableFormat.HIVE: _hive,
}

"""What one look at a Delta table found, and how what is too much for single events is told as one.

Every commit that changes data is an event of its own up to a number; a table that ran far ahead
gives one more for all the rest of the look.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from harness.sense.delta.classify import Partitions, told_partitions
from harness.sense.delta.current import Current
from harness.sense.delta.log import Commit
from harness.sense.delta.position import Position
from harness.sense.storage import Storage
from harness.sense.types import DataChange, Operation

#: So many changes of one look are an event each; those that follow are one event together.
TOLD_SINGLY = 500
#: One look reads at most this many versions; the position tells the next look where to go on.
VERSIONS_PER_LOOK = 10_000
#: Past the first ``TOLD_SINGLY`` versions a look reads no longer, and keeps no more, than this.
READING_SECONDS = 20.0
FILES_PER_LOOK = 200_000

#: What a commit says of itself that holds for a row of many, if one of them says it.
_FLAGS = ("schema_changed", "overwrite", "replaced", "by_history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One event, and what it tells of."""

    event: DataChange
    #: None when it tells of the whole table, or when the log was not read.
    commits: tuple[Commit, ...] = ()
    partitions: Partitions = field(default_factory=Partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a look at the log found, before anyone asked the rows."""

    position: Position
    changes: tuple[Change, ...] = ()
    gap: str | None = None
    #: Set when the look had to find out what the table is now.
    current: Current | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """How far one look goes on; a look that is made again goes exactly as far.

    A tick that dies between the events and the position leaves events that the next look finds
    again. A row of many commits is the same row only if it ends with the same commit, however many
    have come since.
    """

    #: Versions with which events end that were recorded, though the position after them was not.
    told: frozenset[int] = frozenset()
    has_time: Callable[[], bool] = field(default=lambda: True)

    def is_full(self, *, version: int, read: int, changes: int, files: int = 0) -> bool:
        """Tell whether a look stops at a version.

        Args:
            version: Where it has come to.
            read: The versions it has read.
            changes: How many of them changed data.
            files: The files that these added or removed.
        """
        if changes > TOLD_SINGLY and version in self.told:
            return True
        if any(each > version for each in self.told):
            return False
        return read >= TOLD_SINGLY and (files > FILES_PER_LOOK or not self.has_time())


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The table of one look: where it is, what it is called, what matters of it."""

    storage: Storage
    path: str
    sensor_id: str
    #: The column that ``upstream_key`` names.
    key_name: str | None
    portion: Portion = field(default_factory=Portion)


def told(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes of one look as they are told: the first one by one, the rest as one."""
    rest = changes[TOLD_SINGLY:]
    if len(rest) < 2:
        return tuple(changes)
    return (*changes[:TOLD_SINGLY], _as_one(rest))


def _as_one(changes: Sequence[Change]) -> Change:
    events = [change.event for change in changes]
    first, last = events[0], events[-1]
    partitions = _partitions_of(changes)
    partition, partition_tags = told_partitions(partitions)
    operations = {event.operation for event in events}
    tags = {
        "coalesced_from": str(first.snapshot_id),
        "coalesced_commits": str(len(changes)),
        "coalesced_operations": json.dumps(_names(events)),
        "prev_version": first.tags.get("prev_version"),
        "table_id": last.tags.get("table_id"),
        **{flag: "true" for flag in _FLAGS if any(flag in event.tags for event in events)},
        **partition_tags,
    }
    event = replace(
        last,
        partition=partition,
        prev_snapshot_id=first.prev_snapshot_id,
        operation=operations.pop() if len(operations) == 1 else Operation.UPDATE,
        tags={key: value for key, value in tags.items() if value is not None},
    )
    commits = tuple(commit for change in changes for commit in change.commits)
    return Change(event=event, commits=commits, partitions=partitions)


def _names(events: Sequence[DataChange]) -> list[str]:
    return sorted({event.tags["operation"] for event in events if "operation" in event.tags})


def _partitions_of(changes: Sequence[Change]) -> Partitions:
    if any("schema_changed" in change.event.tags for change in changes):
        # The columns that the values belong to may have become others on the way.
        return Partitions(are_all=False)
    return Partitions(
        values=frozenset().union(*(change.partitions.values for change in changes)),
        are_all=all(change.partitions.are_all for change in changes),
    )

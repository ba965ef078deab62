"""Compares what a cluster reports of a topic with the last cursor; it sends no request."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.sense.sources.kafka.cursor import Cursor
from harness.sense.sources.kafka.types import Range

_Bounds = TypeVar("_Bounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicNow:
    """A topic's id, and the end offset of each of its partitions."""

    topic_id: str
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What differs between the last cursor and now."""

    before: Cursor | None
    after: Cursor
    #: By partition, the offsets that are new and still there.
    ranges: Mapping[int, Range] = field(default_factory=dict)
    #: By partition, the first offset that is left, where unseen ones before it are gone.
    lost: Mapping[int, int] = field(default_factory=dict)
    #: By partition, where the probe would have gone on, and the smaller offset where it ends now.
    truncated: Mapping[int, Range] = field(default_factory=dict)

    @property
    def is_recreated(self) -> bool:
        """The topic of the last probe is gone; this one has its name."""
        return self.before is not None and self.before.topic_id != self.after.topic_id

    @property
    def counts_unread(self) -> bool:
        """Something happened to data, whether or not a message can still be read."""
        return bool(self.lost or self.truncated)

    @property
    def records_upper_bound(self) -> int:
        """Markers and holes count as well, so there may be fewer messages, never more."""
        return sum(end - first for first, end in self.ranges.values())

    @property
    def gap(self) -> str | None:
        """Report what can no longer be known."""
        message = []
        if self.is_recreated:
            message.append(
                "the topic was created again, so what came last into the old one is gone"
            )
        if self.truncated:
            falls = _each(self.truncated, lambda fall: f"from {fall.first} to {fall.end}")
            message.append(f"its offsets fell back ({falls}), so messages were lost or replaced")
        if self.lost:
            firsts = _each(self.lost, lambda first: f"before {first}")
            message.append(f"messages were deleted before a probe could read them ({firsts})")
        return "; ".join(message) or None


def unknown_starts(cursor: Cursor | None, now: TopicNow) -> list[int]:
    """Return the partitions of which the first offset has to be known: new ones, and moved ones."""
    ours = _known_offsets(cursor, now)
    return [
        partition
        for partition, end in enumerate(now.ends)
        if partition >= len(ours) or end > ours[partition]
    ]


def compare(cursor: Cursor | None, now: TopicNow, starts: Mapping[int, int]) -> Finding:
    """Return what is new.

    Args:
        cursor: Where the last probe came to.
        now: What the cluster reports.
        starts: The first offset of each of the ``unknown_starts``.
    """
    ours = _known_offsets(cursor, now)
    ranges, lost, truncated = {}, {}, {}
    for partition, end in enumerate(now.ends):
        start = starts.get(partition, 0)
        # A partition that a known topic has got since should still have its first message.
        first = ours[partition] if partition < len(ours) else (0 if ours else start)
        if end < first:
            truncated[partition] = Range(first, end)
            continue
        if start > first:
            lost[partition] = start
        if end > max(first, start):
            ranges[partition] = Range(max(first, start), end)
    truncations = cursor.truncations if cursor is not None and ours else 0
    return Finding(
        before=cursor,
        after=Cursor(
            topic_id=now.topic_id, offsets=now.ends, truncations=truncations + bool(truncated)
        ),
        ranges=ranges,
        lost=lost,
        truncated=truncated,
    )


def event_of(finding: Finding, table: str, more_tags: Mapping[str, str]) -> ChangeEvent:
    """Return the one event of a probe of a topic."""
    before = None if finding.is_recreated else finding.before
    touched = sorted({*finding.ranges, *finding.lost, *finding.truncated})
    return ChangeEvent(
        table=table,
        partition=(str(touched[0]),) if len(touched) == 1 else None,
        snapshot_id=_offsets_text(finding.after.offsets),
        snapshot_ts=None,
        prev_snapshot_id=None if before is None else _offsets_text(before.offsets),
        table_format=TableFormat.KAFKA,
        operation_type=Operation.UPDATE if finding.truncated else Operation.APPEND,
        tags={**_tags(finding), **more_tags},
        lineage=finding.after.lineage,
    )


def _tags(finding: Finding) -> dict[str, str]:
    tags = {
        "topic_id": finding.after.topic_id,
        "offsets": _compact({str(each): list(span) for each, span in finding.ranges.items()}),
        "records_upper_bound": str(finding.records_upper_bound),
    }
    if finding.is_recreated:
        tags["recreated"] = "true"
    if finding.lost:
        tags["lost_before"] = _compact({str(each): at for each, at in finding.lost.items()})
    if finding.truncated:
        falls = {str(each): list(fall) for each, fall in finding.truncated.items()}
        tags["truncated"] = _compact(falls)
    return tags


def _known_offsets(cursor: Cursor | None, now: TopicNow) -> tuple[int, ...]:
    if cursor is None or cursor.topic_id != now.topic_id:
        return ()
    return cursor.offsets


def _offsets_text(offsets: Sequence[int]) -> str:
    return _compact({str(partition): offset for partition, offset in enumerate(offsets)})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _each(by_partition: Mapping[int, _Bounds], describe: Callable[[_Bounds], str]) -> str:
    return ", ".join(f"partition {each} {describe(what)}" for each, what in by_partition.items())

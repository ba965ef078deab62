"""Describes new files as data-change events."""

import json
from collections.abc import Sequence
from hashlib import sha256

from harness.events.event import Operation, TableFormat
from harness.sense.probe import DataChange, Upstream
from harness.sense.sources.file.cursor import News, Position

#: More files than this in one look are one event that counts them.
EVENTS_PER_LOOK = 100


def events_of(
    upstream: Upstream, news: Sequence[News], position: Position
) -> tuple[DataChange, ...]:
    """Return one event per file, or a single one for very many.

    Args:
        upstream: Where they are.
        news: The files.
        position: The one after the look.
    """
    lineage = str(position.departures)
    if len(news) > EVENTS_PER_LOOK:
        return (_of_all(upstream, news, lineage),)
    return tuple(_of_one(upstream, each, lineage) for each in news)


def _of_one(upstream: Upstream, news: News, lineage: str) -> DataChange:
    file = news.file
    return DataChange(
        table=upstream.sensor_id,
        partition=_partition(news),
        snapshot_id=news.identity.hex(),
        snapshot_ts=file.mtime_ns // 1_000_000,
        prev_snapshot_id=None if news.former is None else news.former.hex(),
        table_format=TableFormat.FILE,
        operation=Operation.APPEND if news.former is None else Operation.UPDATE,
        tags={"path": _readable(file.path), "size": str(file.length)},
        lineage=lineage,
    )


def _of_all(upstream: Upstream, news: Sequence[News], lineage: str) -> DataChange:
    partitions = {_partition(each) for each in news}
    only_new = all(each.former is None for each in news)
    return DataChange(
        table=upstream.sensor_id,
        partition=partitions.pop() if len(partitions) == 1 else None,
        snapshot_id=sha256(b"".join(sorted(each.identity for each in news))).hexdigest()[:32],
        snapshot_ts=max(each.file.mtime_ns for each in news) // 1_000_000,
        prev_snapshot_id=None,
        table_format=TableFormat.FILE,
        operation=Operation.APPEND if only_new else Operation.UPDATE,
        tags={
            "files": str(len(news)),
            "size": str(sum(each.file.length for each in news)),
            "first_path": _readable(news[0].file.path),
            "last_path": _readable(news[-1].file.path),
        },
        lineage=lineage,
    )


def _partition(news: News) -> tuple[str, ...] | None:
    values = [value for _, value in news.file.partition]
    return tuple(json.dumps(value, ensure_ascii=False) for value in values) or None


def _readable(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")

"""Senses files that appear, or are written again, in a folder under one root.

A file is the same file as long as its path, size and modified time are the same. The cursor is
28 characters a file (a name's digest, an identity's digest): 20,000 files make 560 kB, not more.
Two names may have one digest: no file is lost by that, whatever the order of a listing.
"""

import base64
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.platform.storage import Listed, Storages, is_remote, normalized, reason_of
from harness.platform.text import storable
from harness.sense.cursor import read_cursor
from harness.sense.probe import ProbeResult
from harness.store.work_lists import Upstream

_CURSOR_VERSION = 2
_NAME_SIZE, _IDENTITY_SIZE = 16, 12
#: Length of a name's digest by the version that wrote the cursor. The first was so short that
#: anyone could find two names for one digest.
_NAME_SIZES = {1: 6, _CURSOR_VERSION: _NAME_SIZE}
_IGNORED_STARTS = ("_", ".")
_IGNORED_ENDS = (".tmp", ".crc", "._COPYING_")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cursor:
    #: Digest of a name, and digest of the identity that the file had.
    files: frozenset[tuple[str, str]]
    #: Probes that saw a file gone. It makes a file that is put back another event than before.
    departures: int
    #: Characters of a name's digest.
    name_size: int = _NAME_SIZE

    def to_text(self) -> str:
        packed = "".join(name + identity for name, identity in sorted(self.files))
        record = {"v": _CURSOR_VERSION, "departures": self.departures, "files": packed}
        return json.dumps(record, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Idle:
    listing: frozenset[Listed]
    answer: ProbeResult


class TriggerFileProbe:
    """Senses ``trigger_file``: one listing per folder and probe."""

    def __init__(self, storages: Storages, root: str) -> None:
        self._storages = storages
        self._root = normalized(root)
        self._idle: dict[str, _Idle] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the upstream's own id: each folder is probed alone."""
        return upstream.upstream_id

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream; the instant plays no part."""
        return [self._probe(upstream) for upstream in group]

    def _probe(self, upstream: Upstream) -> ProbeResult:
        try:
            return self._probe_closely(upstream)
        except (ProbeFailedError, OSError) as error:
            missing = (
                f"the folder {upstream.sensor_id} does not exist under {self._root}; create it"
            )
            reason = reason_of(error, missing=missing)
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=upstream.position,
            upstream_value=upstream.upstream_value,
            failure=f"The trigger folder {upstream.sensor_id} cannot be sensed: {reason}.",
        )

    def _probe_closely(self, upstream: Upstream) -> ProbeResult:
        if upstream.preprocess_query:
            raise ProbeFailedError("a trigger file has no rows, so preprocess_query must be empty")
        folder = self._folder(upstream.sensor_id)
        found = self._storages.of(folder).list_files(folder)
        listing = frozenset(file for file in found if is_trigger(file.name))
        idle = self._idle.get(upstream.upstream_id)
        if (
            idle is not None
            and idle.answer.position == upstream.position
            and idle.listing == listing
        ):
            return idle.answer
        before = _cursor_from(upstream.position)
        after, events = _compare(upstream, folder, listing, before)
        is_moved = upstream.position is None or after is not before
        answer = ProbeResult(
            upstream_id=upstream.upstream_id,
            position=after.to_text() if is_moved else upstream.position,
            upstream_value=upstream.upstream_value,
        )
        self._idle[upstream.upstream_id] = _Idle(listing, answer)
        if upstream.position is None and upstream.on_first_sight is FirstSight.BASELINE:
            return answer
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=answer.position,
            events=events,
            upstream_value=upstream.upstream_value,
        )

    def _folder(self, sensor_id: str) -> str:
        parts = PurePosixPath(sensor_id).parts
        if not parts or sensor_id.startswith("/") or ".." in parts or "\0" in sensor_id:
            raise ProbeFailedError(
                "its name leads out of the root, and only folders in it are read"
            )
        folder = f"{self._root}/{'/'.join(parts)}"
        if not is_remote(folder) and self._leads_out(parts):
            raise ProbeFailedError("its name is a link that leads out of the root")
        return folder

    def _leads_out(self, parts: Sequence[str]) -> bool:
        depths = range(1, len(parts) + 1)
        if not any(os.path.islink("/".join((self._root, *parts[:depth]))) for depth in depths):
            # Resolving every path would take longer than listing the folder.
            return False
        root, real = os.path.realpath(self._root), os.path.realpath("/".join((self._root, *parts)))
        return os.path.commonpath([root, real]) != root


def is_trigger(name: str) -> bool:
    """Distinguish a trigger file from one that is being written or only accompanies another."""
    return not name.startswith(_IGNORED_STARTS) and not name.endswith(_IGNORED_ENDS)


def _compare(
    upstream: Upstream, folder: str, listing: frozenset[Listed], before: _Cursor
) -> tuple[_Cursor, tuple[ChangeEvent, ...]]:
    now = {(_digest(file.name, _NAME_SIZE), _identity(folder, file)): file for file in listing}
    # A cursor of an earlier version holds the beginning of each digest.
    seen = {(name[: before.name_size], identity) for name, identity in now}
    if seen == before.files:
        return before, ()
    formers = _by_name(before.files - seen)
    events = []
    for (name, identity), file in sorted(now.items(), key=lambda each: each[1]):
        known = name[: before.name_size]
        if (known, identity) not in before.files:
            # Of two names with one digest, each former identity is followed once.
            former = formers[known].pop() if formers.get(known) else None
            events.append(_event(upstream, file, identity, former))
    events.sort(key=lambda event: (event.snapshot_ts or 0, event.tags["path"]))
    departures = before.departures + (1 if any(formers.values()) else 0)
    lineage = str(departures)
    return (
        _Cursor(files=frozenset(now), departures=departures),
        tuple(replace(event, lineage=lineage) for event in events),
    )


def _by_name(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    by_name = defaultdict[str, list[str]](list)
    for name, identity in sorted(files, reverse=True):
        by_name[name].append(identity)
    return by_name


def _event(upstream: Upstream, file: Listed, identity: str, former: str | None) -> ChangeEvent:
    return ChangeEvent(
        table=upstream.sensor_id,
        snapshot_id=identity,
        snapshot_ts=file.mtime_ns // 1_000_000,
        prev_snapshot_id=former,
        table_format=TableFormat.FILE,
        operation_type=Operation.APPEND if former is None else Operation.UPDATE,
        tags={"path": storable(f"{upstream.sensor_id}/{file.name}"), "size": str(file.length)},
        lineage="",
    )


def _identity(folder: str, file: Listed) -> str:
    return _digest(f"{folder}/{file.name}\x1f{file.length}\x1f{file.mtime_ns}", _IDENTITY_SIZE)


def _digest(text: str, size: int) -> str:
    # A name that is no UTF-8 comes from the file system with surrogates.
    digest = sha256(text.encode(errors="surrogateescape")).digest()
    return base64.urlsafe_b64encode(digest).decode()[:size]


def _cursor_from(text: str | None) -> _Cursor:
    if text is None:
        return _Cursor(files=frozenset(), departures=0)
    return read_cursor(text, _NAME_SIZES, _from_record)


def _from_record(record: dict[str, Any]) -> _Cursor:
    packed: str = record["files"]
    name_size = _NAME_SIZES[record["v"]]
    size = name_size + _IDENTITY_SIZE
    entries = (packed[at : at + size] for at in range(0, len(packed), size))
    return _Cursor(
        files=frozenset((entry[:name_size], entry[name_size:]) for entry in entries),
        departures=int(record["departures"]),
        name_size=name_size,
    )

"""Senses files that appear, or are written again, in a folder under one root.

A file is the same file as long as its path, size and modified time are the same. The position is
18 characters a file (a name's digest, an identity's digest): 20,000 files make 360 kB, not more.
"""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

from harness.errors import LookFailedError
from harness.sense.positions import read_position
from harness.sense.storage import Listed, Storages, is_remote, normalized, reason_of
from harness.sense.types import (
    DataChange,
    FirstSight,
    Look,
    Operation,
    TableFormat,
    Upstream,
)
from harness.text import storable

_POSITION_VERSION = 1
_NAME_SIZE, _IDENTITY_SIZE = 6, 12
_ENTRY_SIZE = _NAME_SIZE + _IDENTITY_SIZE
_IGNORED_STARTS = ("_", ".")
_IGNORED_ENDS = (".tmp", ".crc", "._COPYING_")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Position:
    #: Digest of a name -> digest of the identity that the file had.
    files: Mapping[str, str]
    #: Looks that saw a file gone. It makes a file that is put back another event than before.
    departures: int

    def to_text(self) -> str:
        packed = "".join(name + self.files[name] for name in sorted(self.files))
        record = {"v": _POSITION_VERSION, "departures": self.departures, "files": packed}
        return json.dumps(record, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Idle:
    listing: frozenset[Listed]
    answer: Look


class TriggerFileProbe:
    """Senses ``trigger_file``: one listing per folder and look."""

    def __init__(self, storages: Storages, root: str) -> None:
        self._storages = storages
        self._root = normalized(root)
        self._idle: dict[str, _Idle] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the upstream's own id: each folder is looked at alone."""
        return upstream.upstream_id

    def look(self, group: Sequence[Upstream], *, at: datetime) -> list[Look]:
        """Return one look per upstream; the instant plays no part."""
        return [self._look(upstream) for upstream in group]

    def _look(self, upstream: Upstream) -> Look:
        try:
            return self._look_closely(upstream)
        except (LookFailedError, OSError) as error:
            reason = reason_of(error, missing=f"there is no such folder under {self._root}")
        return Look(
            upstream_id=upstream.upstream_id,
            position=upstream.position,
            upstream_value=upstream.upstream_value,
            failure=f"The trigger folder {upstream.sensor_id} cannot be sensed: {reason}.",
        )

    def _look_closely(self, upstream: Upstream) -> Look:
        if upstream.preprocess_query:
            raise LookFailedError("a trigger file has no rows, so preprocess_query must be empty")
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
        before = _position_from(upstream.position)
        after, events = _compare(upstream, folder, listing, before)
        answer = Look(
            upstream_id=upstream.upstream_id,
            position=after.to_text(),
            upstream_value=upstream.upstream_value,
        )
        self._idle[upstream.upstream_id] = _Idle(listing, answer)
        if upstream.position is None and upstream.on_first_sight is FirstSight.BASELINE:
            return answer
        return Look(
            upstream_id=upstream.upstream_id,
            position=answer.position,
            events=events,
            upstream_value=upstream.upstream_value,
        )

    def _folder(self, sensor_id: str) -> str:
        parts = PurePosixPath(sensor_id).parts
        if not parts or sensor_id.startswith("/") or ".." in parts or "\0" in sensor_id:
            raise LookFailedError("its name leads out of the root, and only folders in it are read")
        folder = f"{self._root}/{'/'.join(parts)}"
        if not is_remote(folder) and self._leads_out(parts):
            raise LookFailedError("its name is a link that leads out of the root")
        return folder

    def _leads_out(self, parts: Sequence[str]) -> bool:
        depths = range(1, len(parts) + 1)
        if not any(os.path.islink("/".join((self._root, *parts[:depth]))) for depth in depths):
            # Resolving every path would take longer than listing the folder.
            return False
        root, real = os.path.realpath(self._root), os.path.realpath("/".join((self._root, *parts)))
        return os.path.commonpath([root, real]) != root


def is_trigger(name: str) -> bool:
    """Tell a trigger file from one that is being written, or that only accompanies another."""
    return not name.startswith(_IGNORED_STARTS) and not name.endswith(_IGNORED_ENDS)


def _compare(
    upstream: Upstream, folder: str, listing: frozenset[Listed], before: _Position
) -> tuple[_Position, tuple[DataChange, ...]]:
    now = {_digest(file.name, _NAME_SIZE): (file, _identity(folder, file)) for file in listing}
    departures = before.departures + (0 if before.files.keys() <= now.keys() else 1)
    events = [
        _event(upstream, file, identity, before.files.get(name))
        for name, (file, identity) in now.items()
        if before.files.get(name) != identity
    ]
    events.sort(key=lambda event: (event.snapshot_ts or 0, event.tags["path"]))
    files = {name: identity for name, (_, identity) in now.items()}
    lineage = str(departures)
    return (
        _Position(files=files, departures=departures),
        tuple(_of_lineage(event, lineage) for event in events),
    )


def _event(upstream: Upstream, file: Listed, identity: str, former: str | None) -> DataChange:
    return DataChange(
        table=upstream.sensor_id,
        snapshot_id=identity,
        snapshot_ts=file.mtime_ns // 1_000_000,
        prev_snapshot_id=former,
        table_format=TableFormat.FILE,
        operation=Operation.APPEND if former is None else Operation.UPDATE,
        tags={"path": storable(f"{upstream.sensor_id}/{file.name}"), "size": str(file.length)},
        lineage="",
    )


def _of_lineage(event: DataChange, lineage: str) -> DataChange:
    return replace(event, lineage=lineage)


def _identity(folder: str, file: Listed) -> str:
    return _digest(f"{folder}/{file.name}\x1f{file.length}\x1f{file.mtime_ns}", _IDENTITY_SIZE)


def _digest(text: str, size: int) -> str:
    # A name that is no UTF-8 comes from the file system with surrogates.
    digest = sha256(text.encode(errors="surrogateescape")).digest()
    return base64.urlsafe_b64encode(digest).decode()[:size]


def _position_from(text: str | None) -> _Position:
    if text is None:
        return _Position(files={}, departures=0)
    return read_position(text, _POSITION_VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> _Position:
    packed: str = record["files"]
    starts = range(0, len(packed), _ENTRY_SIZE)
    return _Position(
        files={
            packed[at : at + _NAME_SIZE]: packed[at + _NAME_SIZE : at + _ENTRY_SIZE]
            for at in starts
        },
        departures=int(record["departures"]),
    )

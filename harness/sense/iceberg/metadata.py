"""Reads a table's metadata file, Iceberg's own JSON; it says what stands there, not what is new."""

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import LookFailedError
from harness.sense.storage import Storage

#: A file with the history of a table is larger than this only if nobody ever expires snapshots.
METADATA_LIMIT_BYTES = 256 * 1024 * 1024
#: Versions of the format whose snapshots are written as they are read here.
_FORMATS = (1, 2, 3)
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One state of a table, and what made it out of its parent."""

    id: int
    parent: int | None
    #: Grows with each commit to the table; 0 in tables of format 1.
    sequence: int
    timestamp_ms: int
    schema_id: int | None
    summary: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What one metadata file says."""

    #: Empty in old tables of format 1.
    uuid: str
    #: The snapshot that a reader sees, on the branch ``main``; ``None`` while there is none.
    head: int | None
    #: Those that are not expired, on every branch.
    snapshots: Mapping[int, Snapshot]

    @property
    def current(self) -> Snapshot | None:
        """Return the snapshot that a reader sees."""
        return None if self.head is None else self.snapshots[self.head]


def read_metadata(storage: Storage, path: str) -> Metadata:
    """Read a metadata file.

    Raises:
        LookFailedError: It is too large, half-written, no metadata, or of a newer format.
        FileNotFoundError: It is not there.
    """
    content = storage.read(path, limit=METADATA_LIMIT_BYTES + 1)
    if len(content) > METADATA_LIMIT_BYTES:
        limit = METADATA_LIMIT_BYTES // (1024 * 1024)
        raise LookFailedError(f"{path} has more than {limit} MiB; expire snapshots of the table")
    try:
        record = json.loads(gzip.decompress(content) if content.startswith(_GZIP) else content)
        version = record["format-version"]
        if version in _FORMATS:
            return _metadata_from(record)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OSError,
        EOFError,
        zlib.error,
    ) as error:
        raise LookFailedError(f"{path} is half-written, or no metadata of an Iceberg table") from (
            error
        )
    raise LookFailedError(
        f"it is of Iceberg's format version {version}, and Heartbeat reads 1, 2 and 3"
    )


def _metadata_from(record: Mapping[str, Any]) -> Metadata:
    snapshots = [_snapshot_from(each) for each in record.get("snapshots") or ()]
    metadata = Metadata(
        uuid=str(record.get("table-uuid") or ""),
        head=_id_from(record.get("current-snapshot-id")),
        snapshots={each.id: each for each in snapshots},
    )
    if metadata.head is not None and metadata.head not in metadata.snapshots:
        raise KeyError(metadata.head)
    return metadata


def _snapshot_from(record: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        id=int(record["snapshot-id"]),
        parent=_id_from(record.get("parent-snapshot-id")),
        sequence=int(record.get("sequence-number") or 0),
        timestamp_ms=int(record["timestamp-ms"]),
        schema_id=record.get("schema-id"),
        summary={str(key): str(value) for key, value in (record.get("summary") or {}).items()},
    )


def _id_from(value: object) -> int | None:
    # Java writes -1 where there is no snapshot.
    return None if value in (None, -1) else int(str(value))

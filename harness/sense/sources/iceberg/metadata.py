"""Reads a table's metadata file, Iceberg's own JSON: what stands there, not what is new."""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import ProbeFailedError
from harness.platform.storage import Storage

#: A file with the history of a table is larger than this only if snapshots never expire.
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
    #: The file that lists the manifests; ``None`` where the metadata file lists them itself.
    manifest_list: str | None = None
    manifests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One level of a partition."""

    #: How its value is made of a column's, such as ``identity`` or ``day``.
    transform: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What one metadata file contains."""

    #: Empty in old tables of format 1.
    uuid: str
    #: The snapshot that a reader sees, on the branch ``main``; ``None`` while there is none.
    head: int | None
    #: Those that are not expired, on every branch.
    snapshots: Mapping[int, Snapshot]
    #: Each way in which the table is or was partitioned, by its id.
    specs: Mapping[int, tuple[PartitionField, ...]] = field(default_factory=dict)

    @property
    def current(self) -> Snapshot | None:
        """Return the snapshot that a reader sees."""
        return None if self.head is None else self.snapshots[self.head]


def read_metadata(storage: Storage, path: str) -> Metadata:
    """Read a metadata file.

    Raises:
        ProbeFailedError: It is too large, half-written, no metadata, or of a newer format.
        FileNotFoundError: It is not there.
    """
    content = storage.read(path, limit=METADATA_LIMIT_BYTES + 1)
    if len(content) > METADATA_LIMIT_BYTES:
        raise _too_large(path)
    try:
        record = json.loads(_plain(content, path))
    except (ValueError, RecursionError, zlib.error) as error:
        raise _no_metadata(path) from error
    return metadata_of(record, path)


def metadata_of(record: Any, path: str) -> Metadata:
    """Read the content of a metadata file, which a catalog may also return.

    Raises:
        ProbeFailedError: It is no metadata, or of a newer format.
    """
    try:
        version = record["format-version"]
        if version in _FORMATS:
            return _metadata_from(record)
        version = _long(version)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _no_metadata(path) from error
    raise ProbeFailedError(
        f"it is of Iceberg's format version {version}, and Heartbeat reads 1, 2 and 3"
    )


def _no_metadata(path: str) -> ProbeFailedError:
    return ProbeFailedError(f"{path} is half-written, or no metadata of an Iceberg table")


def _plain(content: bytes, path: str) -> bytes:
    if not content.startswith(_GZIP):
        return content
    inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
    plain = inflater.decompress(content, METADATA_LIMIT_BYTES + 1)
    if len(plain) > METADATA_LIMIT_BYTES:
        raise _too_large(path)
    if not inflater.eof:
        raise ValueError("half a file")
    return plain


def _too_large(path: str) -> ProbeFailedError:
    limit = METADATA_LIMIT_BYTES // (1024 * 1024)
    return ProbeFailedError(f"{path} has more than {limit} MiB; expire snapshots of the table")


def _metadata_from(record: Mapping[str, Any]) -> Metadata:
    snapshots = [_snapshot_from(each) for each in record.get("snapshots") or ()]
    metadata = Metadata(
        uuid=str(record.get("table-uuid") or ""),
        head=_id_from(record.get("current-snapshot-id")),
        snapshots={each.id: each for each in snapshots},
        specs=_specs_from(record),
    )
    if metadata.head is not None and metadata.head not in metadata.snapshots:
        raise KeyError(metadata.head)
    return metadata


def _snapshot_from(record: Mapping[str, Any]) -> Snapshot:
    listed = record.get("manifest-list")
    return Snapshot(
        id=_long(record["snapshot-id"]),
        parent=_id_from(record.get("parent-snapshot-id")),
        sequence=_long(record.get("sequence-number") or 0),
        timestamp_ms=_long(record["timestamp-ms"]),
        schema_id=None if record.get("schema-id") is None else _long(record["schema-id"]),
        summary={str(key): str(value) for key, value in (record.get("summary") or {}).items()},
        manifest_list=None if listed is None else str(listed),
        manifests=tuple(str(each) for each in record.get("manifests") or ()),
    )


def _specs_from(record: Mapping[str, Any]) -> dict[int, tuple[PartitionField, ...]]:
    specs = {
        _long(each["spec-id"]): _fields_from(each["fields"])
        for each in record.get("partition-specs") or ()
    }
    # Old tables of format 1 have only the one in force.
    return specs or {0: _fields_from(record.get("partition-spec") or ())}


def _fields_from(fields: Iterable[Mapping[str, Any]]) -> tuple[PartitionField, ...]:
    return tuple(PartitionField(transform=str(each["transform"])) for each in fields)


def _id_from(value: object) -> int | None:
    # Java writes -1 where there is no snapshot.
    return None if value in (None, -1) else _long(value)


def _long(value: object) -> int:
    number = int(str(value))
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} is not a long")
    return number

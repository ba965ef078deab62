"""Where the last probe of an Iceberg table ended, as small JSON text."""

import json
from dataclasses import dataclass
from typing import Any

from harness.platform.storage import FileStat
from harness.sense.cursor import read_cursor

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """The metadata file that holds a table's present state."""

    location: str
    #: Where no catalog distinguishes the generations of a file; ``None`` where one does.
    fingerprint: FileStat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """What must be recorded of a table to determine what is new in it."""

    uuid: str
    #: The last snapshot that was probed; ``None`` while there is none.
    snapshot: int | None
    #: Of that snapshot, also when it is expired.
    sequence: int
    timestamp_ms: int
    #: The last snapshot reported, or the baseline; ``None`` while there was no data.
    data: int | None
    #: The schema of that snapshot.
    schema_id: int | None
    #: The table generation: its id, and how often its history was rolled back or recreated.
    lineage: str
    #: The metadata file that was read to its end; ``None`` while snapshots are left to be reported.
    pointer: Pointer | None

    def to_text(self) -> str:
        """Return the cursor as text; equal cursors give equal text."""
        pointer = self.pointer
        record = {
            "v": _VERSION,
            "table": self.uuid,
            "snapshot": self.snapshot,
            "sequence": self.sequence,
            "at": self.timestamp_ms,
            "data": self.data,
            "schema": self.schema_id,
            "lineage": self.lineage,
            "file": None if pointer is None else [pointer.location, pointer.fingerprint],
        }
        return json.dumps(record, separators=(",", ":"))


def cursor_from(text: str) -> Cursor:
    """Read a cursor back.

    Raises:
        ProbeFailedError: The text was written by another version, or is none of ours.
    """
    return read_cursor(text, _VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> Cursor:
    return Cursor(
        uuid=record["table"],
        snapshot=record["snapshot"],
        sequence=record["sequence"],
        timestamp_ms=record["at"],
        data=record["data"],
        schema_id=record["schema"],
        lineage=record["lineage"],
        pointer=_pointer_from(*record["file"]) if record["file"] else None,
    )


def _pointer_from(location: str, fingerprint: list[int] | None) -> Pointer:
    return Pointer(location=location, fingerprint=FileStat(*fingerprint) if fingerprint else None)

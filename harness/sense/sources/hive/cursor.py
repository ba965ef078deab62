"""What is recorded of a table's partitions, and what that makes of those that are there now.

A partition is recorded as its name and six bytes of a digest of its files. Names are packed:
those of 10,000 days and hours make some 30 kB of text.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.events.event import Operation
from harness.sense.cursor import next_lineage, read_cursor
from harness.sense.sources.hive.partitions import EMPTY, IDENTITY_SIZE, State

_VERSION = 1
#: The partition of a table that has none.
WHOLE_TABLE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The partitions known so far."""

    created_ms: int
    #: The generation of the table: when it began, and how often something of it went away.
    lineage: str
    #: Name and identity of each that was reported, taken as the baseline, or holds no data.
    known: Mapping[str, bytes]
    #: Seen once with other files, and reported if the next probe finds them unchanged.
    pending: Mapping[str, bytes] = field(default_factory=dict)
    #: The folders of those that are not below the table.
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def to_text(self) -> str:
        """Return the cursor as text; equal cursors give equal text."""
        record = {
            "v": _VERSION,
            "created": self.created_ms,
            "lineage": self.lineage,
            "known": _packed(self.known),
            "pending": _packed(self.pending),
            "elsewhere": dict(sorted(self.elsewhere.items())),
        }
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChange:
    """One partition that is new, was rewritten, or is gone."""

    name: str
    operation: Operation
    #: ``None`` for one that is gone.
    state: State | None
    #: What it was before.
    former: bytes | None


def cursor_from(text: str) -> Cursor:
    """Read a cursor back.

    Raises:
        ProbeFailedError: The text was written by another version, or is none of ours.
    """
    return read_cursor(text, _VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> Cursor:
    return Cursor(
        created_ms=record["created"],
        lineage=record["lineage"],
        known=_unpacked(record["known"]),
        pending=_unpacked(record["pending"]),
        elsewhere=record["elsewhere"],
    )


def compare(now: Mapping[str, State], before: Cursor) -> tuple[Cursor, list[PartitionChange]]:
    """Return what is recorded from now on, and the partitions that are new data.

    A new partition is registered when it is complete, and counts at once. Files that change in one
    that is known may still be changing, and count when two probes in a row find them the same.
    """
    known, pending, changes = dict(before.known), dict[str, bytes](), list[PartitionChange]()
    for name, state in sorted(now.items()):
        former = known.get(name)
        if former == state.identity or (former is None and state.identity == EMPTY):
            known[name] = state.identity
        elif former is None or before.pending.get(name) == state.identity:
            known[name] = state.identity
            changes.append(_written(name, state, former))
        else:
            pending[name] = state.identity
    for name in sorted(before.known.keys() - now.keys()):
        former = known.pop(name)
        if former != EMPTY:
            changes.append(
                PartitionChange(name=name, operation=Operation.DELETE, state=None, former=former)
            )
    lineage = before.lineage
    if any(each.former not in (None, EMPTY) for each in changes):
        # What was there before may come back, and is then another event.
        lineage = next_lineage(lineage, str(before.created_ms))
    return replace(before, known=known, pending=pending, lineage=lineage), changes


def _written(name: str, state: State, former: bytes | None) -> PartitionChange:
    if state.identity == EMPTY:
        operation = Operation.DELETE
    else:
        operation = Operation.APPEND if former in (None, EMPTY) else Operation.UPDATE
    return PartitionChange(name=name, operation=operation, state=state, former=former)


def _packed(partitions: Mapping[str, bytes]) -> list[str]:
    names = sorted(partitions)
    text = zlib.compress("\n".join(names).encode(errors="surrogateescape"), 9)
    identities = b"".join(partitions[name] for name in names)
    return [base64.b64encode(text).decode(), base64.b64encode(identities).decode()]


def _unpacked(record: list[str]) -> dict[str, bytes]:
    text, identities = (base64.b64decode(each, validate=True) for each in record)
    each = [identities[at : at + IDENTITY_SIZE] for at in range(0, len(identities), IDENTITY_SIZE)]
    if not each:
        return {}
    names = zlib.decompress(text).decode(errors="surrogateescape").split("\n")
    return dict(zip(names, each, strict=True))

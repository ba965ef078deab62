"""What is recorded of the files of one place, and what that makes of the files that are there.

A file is recorded as seven bytes: three of a digest of its path, four of one of path, size and
modified time. 20,000 files make less than 190 kB of text, as many names would make megabytes. The
price: one overwriting in four billion is not noticed.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from harness.sense.cursor import read_cursor
from harness.sense.sources.file.listing import Found

_VERSION = 1
_NAME_SIZE, _IDENTITY_SIZE = 3, 4
_SIZE = _NAME_SIZE + _IDENTITY_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """The files known so far."""

    #: Reported, or taken as the baseline.
    known: frozenset[bytes]
    #: Seen once, and reported if the next probe finds them unchanged.
    pending: frozenset[bytes] = frozenset()
    #: Probes that found a known file gone or replaced. Put back, it is another event than before.
    departures: int = 0

    def to_text(self) -> str:
        """Return the cursor as text; equal cursors give equal text."""
        record = {
            "v": _VERSION,
            "departures": self.departures,
            "known": _packed(self.known),
            "pending": _packed(self.pending),
        }
        return json.dumps(record, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """One file that is new, or was written again."""

    file: Found
    identity: bytes
    #: What it was before it was written again.
    former: bytes | None


def cursor_from(text: str | None) -> Cursor:
    """Read a cursor back; at first observation nothing is known.

    Raises:
        ProbeFailedError: The text was written by another version, or is none of ours.
    """
    if text is None:
        return Cursor(known=frozenset())
    return read_cursor(text, _VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> Cursor:
    return Cursor(
        known=_unpacked(record["known"]),
        pending=_unpacked(record["pending"]),
        departures=int(record["departures"]),
    )


def identities_of(files: Iterable[Found]) -> Mapping[bytes, Found]:
    """Return each file under what is recorded of it."""
    return {_identity(file): file for file in files}


def compare(
    now: Mapping[bytes, Found], before: Cursor, *, at_once: bool
) -> tuple[Cursor, list[NewFile]]:
    """Return what is recorded from now on, and the files that are new data.

    Args:
        now: The files that are there.
        before: What was recorded.
        at_once: Whether a file is new data when it is first seen, and not only when a second probe
            finds it unchanged.
    """
    fresh = now.keys() - before.known
    reported = fresh if at_once else fresh & before.pending
    pending = fresh - reported
    gone = before.known - now.keys()
    formers = {_name(identity): identity for identity in gone}
    changes = [
        NewFile(file=now[identity], identity=identity, former=formers.get(_name(identity)))
        for identity in reported
    ]
    changes.sort(key=lambda each: (each.file.mtime_ns, each.file.path))
    # A file that is being written again is neither known as it is now nor gone.
    awaited = {_name(identity) for identity in pending}
    kept = {identity for identity in gone if _name(identity) in awaited}
    after = Cursor(
        known=(before.known - gone) | reported | kept,
        pending=frozenset(pending),
        departures=before.departures + (1 if gone - kept else 0),
    )
    return after, changes


def _identity(file: Found) -> bytes:
    # A name that is no UTF-8 comes from the file system with surrogates.
    path = file.path.encode(errors="surrogateescape")
    identity = b"%b\x1f%d\x1f%d" % (path, file.length, file.mtime_ns)
    return _digest(path, _NAME_SIZE) + _digest(identity, _IDENTITY_SIZE)


def _digest(text: bytes, size: int) -> bytes:
    return blake2b(text, digest_size=size).digest()


def _name(identity: bytes) -> bytes:
    return identity[:_NAME_SIZE]


def _packed(identities: frozenset[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(identities))).decode()


def _unpacked(text: str) -> frozenset[bytes]:
    raw = base64.b64decode(text, validate=True)
    return frozenset(raw[at : at + _SIZE] for at in range(0, len(raw), _SIZE))

"""The cursor of a topic: its id, and the next offset of each partition."""

import json
from dataclasses import dataclass
from typing import Any

from harness.sense.cursor import read_cursor

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where the next probe of a topic starts."""

    topic_id: str
    #: By partition number, the next offset to probe.
    offsets: tuple[int, ...]
    #: How often offsets were seen to fall back: the same offset then stands for another message.
    truncations: int = 0

    @property
    def lineage(self) -> str:
        """Within one lineage an offset stands for one message."""
        return f"{self.topic_id}/{self.truncations}"

    def to_text(self) -> str:
        """Return the cursor as JSON text, always the same for the same cursor."""
        record = {
            "v": _VERSION,
            "topic_id": self.topic_id,
            "truncations": self.truncations,
            "offsets": self.offsets,
        }
        return json.dumps(record, separators=(",", ":"))


def cursor_from(text: str) -> Cursor:
    """Read a cursor.

    Raises:
        ProbeFailedError: Another version wrote it.
    """
    return read_cursor(text, _VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> Cursor:
    return Cursor(
        topic_id=str(record["topic_id"]),
        offsets=tuple(int(each) for each in record["offsets"]),
        truncations=int(record["truncations"]),
    )

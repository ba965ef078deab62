"""What the cursors of all sources share: read back completely or refused."""

import json
import zlib
from collections.abc import Callable, Container
from typing import Any, TypeVar

from harness.errors import ProbeFailedError

T = TypeVar("T")


def read_cursor(
    text: str, version: int | Container[int], made_of: Callable[[dict[str, Any]], T]
) -> T:
    """Read a cursor.

    Args:
        text: What was written, a JSON object with its version as ``v``.
        version: The only version that is read, or those that are.
        made_of: Makes the cursor of the object; what it stumbles over is no cursor.

    Raises:
        ProbeFailedError: Another version wrote the text, or it is none of ours.
    """
    try:
        record = json.loads(text)
        versions = (version,) if isinstance(version, int) else version
        if record["v"] not in versions:
            raise ValueError(record["v"])
        return made_of(record)
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise ProbeFailedError(
            "the recorded cursor cannot be read: another version of Heartbeat wrote it"
        ) from error


def next_lineage(old: str, table_id: str) -> str:
    """Return the lineage of a table that was created again."""
    count = int(old.rpartition("/")[2])
    return f"{table_id}/{count + 1}"

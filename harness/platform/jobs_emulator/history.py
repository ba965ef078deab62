"""Writes every effect of the local Jobs API as a line of JSON, as evidence for later checks.

A file that has grown large is set aside when the server starts, in the place of the one before.
"""

import json
import os
import threading
from pathlib import Path

#: Two files of this size at most, and what one server adds.
LARGEST_FILE = 16 * 2**20


def set_aside(path: Path, largest: int = LARGEST_FILE) -> None:
    """Rename a file that is larger, to the same name with ``.1``; the one before is replaced."""
    if path.is_file() and path.stat().st_size > largest:
        path.replace(path.with_name(f"{path.name}.1"))


class History:
    """An append-only file; with no path, nothing is kept.

    Args:
        path: The file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        if path:
            set_aside(path)
        self._file = path.open("ab") if path else None

    def add(self, at_ms: int, event: str, **facts: object) -> None:
        """Append one event; ids are written as texts, so that no reader rounds them."""
        if self._file is None:
            return
        exact = {key: str(value) if key.endswith("_id") else value for key, value in facts.items()}
        line = json.dumps({"at_ms": at_ms, "event": event, **exact}) + "\n"
        with self._lock:
            self._file.write(line.encode())
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

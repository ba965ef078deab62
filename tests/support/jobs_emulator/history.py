"""Writes every effect of the local Jobs API as a line of JSON, as evidence for later checks."""

import json
import os
import threading
from pathlib import Path

from harness.platform.jobs_emulator.runs.registry import Effects


class History(Effects):
    """An append-only file; with no path, nothing is kept.

    Args:
        path: The file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
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

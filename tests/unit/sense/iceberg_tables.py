"""Iceberg tables without Spark: metadata files as a writer leaves them, of any history."""

import gzip
import json
from pathlib import Path
from typing import Any
from uuid import uuid4


class IcebergFolder:
    """A table in a folder of its own, as a catalog of type hadoop keeps it."""

    def __init__(self, path: Path, *, version: int = 2) -> None:
        self.path = path
        self.format = version
        self.version = 0
        self.end = ".metadata.json"
        self.next_id = 100
        self.begin()

    def begin(self) -> "IcebergFolder":
        """Begin the life of a table."""
        self.uuid = str(uuid4())
        self.head: int | None = None
        self.sequence = 0
        self.snapshots: dict[int, dict[str, Any]] = {}
        return self

    def append(self, **more: Any) -> int:
        return self.commit("append", {"added-data-files": "1", "added-records": "2"}, **more)

    def commit(
        self,
        operation: str | None,
        counts: dict[str, str],
        *,
        parent: int | None = -1,
        is_current: bool = True,
        schema_id: int = 0,
    ) -> int:
        """Add a snapshot; on ``main`` unless said otherwise."""
        self.next_id += 1
        self.sequence += 1
        # The longs that Iceberg draws do not fit into a double.
        snapshot_id = 3_000_000_000_000_000_000 + self.next_id
        parent = self.head if parent == -1 else parent
        summary = {"operation": operation} if operation else {}
        self.snapshots[snapshot_id] = {
            "snapshot-id": snapshot_id,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            **({"sequence-number": self.sequence} if self.format > 1 else {}),
            "timestamp-ms": 1_745_000_000_000 + self.next_id,
            "summary": {**summary, "changed-partition-count": "0", **counts},
            "schema-id": schema_id,
        }
        if is_current:
            self.head = snapshot_id
        self.write()
        return snapshot_id

    def turn_to(self, head: int | None) -> None:
        """Let ``main`` name another snapshot."""
        self.head = head
        self.write()

    def expire(self, *snapshot_ids: int) -> None:
        for each in snapshot_ids:
            del self.snapshots[each]
        self.write()

    @property
    def newest(self) -> Path:
        return self.path / "metadata" / f"v{self.version}{self.end}"

    def write(self) -> None:
        """Write the next metadata file, and the hint after it."""
        self.version += 1
        self.write_file()
        self.hint(self.version)

    def write_file(self) -> None:
        self.newest.parent.mkdir(parents=True, exist_ok=True)
        text = self.text().encode()
        self.newest.write_bytes(gzip.compress(text) if "gz" in self.end else text)

    def text(self) -> str:
        return json.dumps(
            {
                "format-version": self.format,
                "table-uuid": self.uuid,
                "current-snapshot-id": -1 if self.head is None else self.head,
                "snapshots": list(self.snapshots.values()),
            }
        )

    def hint(self, version: int) -> None:
        (self.path / "metadata" / "version-hint.text").write_text(str(version))

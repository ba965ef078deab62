"""Writes Delta logs by hand, commit by commit, and stands in for what a probe calls."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.platform.storage import FileStat, Listed, LocalStorage, Storage, Storages
from harness.sense.probe import NewFiles, ProbeResult
from harness.sense.sources.delta.history import HistoryRow
from harness.sense.sources.delta.probe import DeltaProbe
from harness.sense.table_locations import NoSuchTableError
from harness.store.work_lists import Upstream
from tests.support.watching import AT, Watching

FIELDS = (("id", "long"), ("day", "date"), ("name", "string"))
Action = dict[str, object]


def add(path: str, **more: object) -> Action:
    body = {
        "path": path,
        "partitionValues": {},
        "size": 9,
        "modificationTime": 1,
        "dataChange": True,
    }
    return {"add": body | more}


def remove(path: str, **more: object) -> Action:
    return {"remove": {"path": path, "partitionValues": {}, "dataChange": True} | more}


def info(operation: str, **more: object) -> Action:
    return {"commitInfo": {"operation": operation, "timestamp": 5} | more}


def metadata(
    table_id: str = "t-1",
    *,
    fields: Sequence[tuple[str, str]] = FIELDS,
    partitions: Sequence[str] = (),
    physical: dict[str, str] | None = None,
) -> Action:
    schema = {
        "type": "struct",
        "fields": [
            {
                "name": name,
                "type": kind,
                "nullable": True,
                "metadata": {"delta.columnMapping.physicalName": physical[name]}
                if physical
                else {},
            }
            for name, kind in fields
        ],
    }
    configuration = {"delta.columnMapping.mode": "name"} if physical else {}
    return {
        "metaData": {
            "id": table_id,
            "format": {"provider": "parquet"},
            "schemaString": json.dumps(schema),
            "partitionColumns": list(partitions),
            "configuration": configuration,
        }
    }


def protocol(*features: str) -> Action:
    body: Action = {"minReaderVersion": 3 if features else 1, "minWriterVersion": 7}
    if features:
        body["readerFeatures"] = list(features)
    return {"protocol": body}


def vector(rows: int) -> dict[str, object]:
    return {"storageType": "u", "pathOrInlineDv": f"dv{rows}", "cardinality": rows}


def stats(rows: int = 3, *, nulls: int = 0, **largest: object) -> str:
    return json.dumps(
        {"numRecords": rows, "maxValues": largest, "nullCount": dict.fromkeys(largest, nulls)}
    )


class GoldenTable:
    """A Delta table whose log is written by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "_delta_log"
        self.log.mkdir(parents=True)
        self.version = -1

    def create(self, *actions: Action, **described: object) -> "GoldenTable":
        self.commit(info("CREATE TABLE"), protocol(), metadata(**described), *actions)  # type: ignore[arg-type]
        return self

    def commit(self, *actions: Action) -> int:
        self.version += 1
        text = "".join(json.dumps(action) + "\n" for action in actions)
        self.file(self.version).write_text(text)
        return self.version

    def file(self, version: int) -> Path:
        return self.log / f"{version:020d}.json"


class CountingStorage:
    """Records the calls to another storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.calls: list[str] = []

    def stat(self, path: str) -> FileStat | None:
        self.calls.append(f"stat {os.path.basename(path)}")
        return self._storage.stat(path)

    def read(self, path: str, *, limit: int) -> bytes:
        self.calls.append(f"read {os.path.basename(path)}")
        return self._storage.read(path, limit=limit)

    def list_files(self, folder: str) -> list[Listed]:
        self.calls.append(f"list {os.path.basename(folder)}")
        return self._storage.list_files(folder)


class FakeNewRows:
    """Returns the configured answers, and records what it was queried about."""

    def __init__(self, *, largest: str | None = None, returns_row: bool = True) -> None:
        self.answer_largest = largest
        self.returns_row = returns_row
        self.asked: list[tuple[NewFiles, str]] = []

    def largest(self, files: NewFiles, column: str) -> str | None:
        self.asked.append((files, column))
        return self.answer_largest

    def any_row(self, files: NewFiles, query: str) -> bool:
        self.asked.append((files, query))
        return self.returns_row


class FakeLocator:
    """A catalog of names."""

    def __init__(self, **paths: str) -> None:
        self.paths = paths
        self.asked: list[str] = []
        self.awake = True
        self.is_down = False

    def is_awake(self) -> bool:
        return self.awake

    def locate(self, name: str) -> str:
        self.asked.append(name)
        if self.is_down:
            raise ProbeFailedError("the catalog cannot locate it: it does not answer")
        if name not in self.paths:
            raise NoSuchTableError(
                f"the table {name} does not exist; create it, or correct its name"
            )
        return self.paths[name]


class FakeHistory:
    """A table's history, newest first; without rows it is one that Spark cannot read either."""

    def __init__(self, *rows: HistoryRow, table_id: str = "t-1") -> None:
        self.rows = list(rows)
        self.id = table_id

    def table_id(self, table: str) -> str:
        if not self.rows:
            raise ProbeFailedError("Spark cannot read its history: no such feature")
        return self.id

    def newest(self, table: str, count: int) -> list[HistoryRow]:
        self.table_id(table)
        return self.rows[:count]


class Watcher(Watching):
    """Probes one upstream repeatedly, as ticks do, and keeps the position between."""

    def __init__(
        self,
        sensor_id: str,
        *,
        source: str = "delta_table",
        key: str | None = None,
        query: str | None = None,
        first: FirstSight = FirstSight.EVENT,
    ) -> None:
        self.upstream = Upstream(
            upstream_id="u-1",
            source=source,
            sensor_id=sensor_id,
            read_type="batch",
            upstream_key=key,
            preprocess_query=query,
            on_first_sight=first,
        )
        self.storage = CountingStorage(LocalStorage())
        self.rows = FakeNewRows()
        self.locator = FakeLocator()
        self.history = FakeHistory()
        self.at = AT
        #: Seconds that pass with every reading of the clock.
        self.slowness = 0.0
        self._seconds = 0.0
        self.restart()

    def restart(self) -> None:
        """Drop all that is only in memory, as a new process does."""
        storages = Storages(self.storage, self.storage)
        self.probe = DeltaProbe(
            storages, self.locator, self.rows, self.history, monotonic=self._monotonic
        )

    def _monotonic(self) -> float:
        self._seconds += self.slowness
        return self._seconds

    def die_after_the_events(self) -> ProbeResult:
        """Probe, record the events, and die before the position after them is recorded."""
        result = self.peek()
        reported = {event.snapshot_id or "" for event in result.events}
        self.upstream = replace(
            self.upstream, reported_snapshots=self.upstream.reported_snapshots | reported
        )
        self.restart()
        return result

    def operations(self) -> list[str]:
        """Probe, and return the operations of the events; the probe has to succeed."""
        result = self.probe_once()
        assert result.failure is None, result.failure
        return [event.operation_type.value for event in result.events]

"""A disk that is really full: what was seen is not lost, and nothing is recorded by half."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from harness.errors import StateError
from harness.record import record
from harness.sense.types import DataChange, Look, Operation, TableFormat
from harness.store.local import LocalStore
from harness.tables import Ledger, Tick
from tests.unit.watched import NEVER_SEEN

_INSTANT = pa.timestamp("us", tz="UTC")
_RECENT = pa.struct(
    [("tick_number", pa.int64()), ("event_at", _INSTANT), ("event_count", pa.int64())]
)
_COLUMNS = {
    Ledger.EVENTS: [
        ("tick_number", pa.int64()),
        ("event_ts", pa.int64()),
        ("event_id", pa.string()),
        ("upstream_id", pa.string()),
        ("table", pa.string()),
        ("partition", pa.list_(pa.string())),
        ("snapshot_id", pa.string()),
        ("snapshot_ts", pa.int64()),
        ("prev_snapshot_id", pa.string()),
        ("table_format", pa.string()),
        ("operation_type", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
    ],
    Ledger.PROBES: [
        ("tick_number", pa.int64()),
        ("recorded_at", _INSTANT),
        ("upstream_id", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("failing_since", _INSTANT),
        ("position", pa.string()),
        ("upstream_value", pa.string()),
        ("latest_event_tick", pa.int64()),
        ("latest_event_at", _INSTANT),
        ("recent_events", pa.list_(_RECENT)),
    ],
}
_UPSTREAM = NEVER_SEEN


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes of its own."""
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small file system")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.fixture
def store(small_disk: Path) -> LocalStore:
    """The two ledgers of what is seen, empty."""
    for ledger, columns in _COLUMNS.items():
        DeltaTable.create(small_disk / "heartbeat.db" / ledger, pa.schema(columns))
    return LocalStore(small_disk, "heartbeat")


def test_what_a_look_found_on_a_full_disk_is_recorded_once_as_soon_as_there_is_room(
    store: LocalStore, small_disk: Path
) -> None:
    filler = _fill(small_disk)
    with pytest.raises(StateError, match=r"cannot be written: .*No space left.*make room"):
        _record(store)
    filler.unlink()

    assert store.read(Ledger.EVENTS) == []
    _record(store)
    assert [row["snapshot_id"] for row in store.read(Ledger.EVENTS)] == ["4"]
    assert [row["position"] for row in store.read(Ledger.PROBES)] == ["at 4"]


def test_what_was_recorded_before_the_disk_was_full_can_still_be_read(
    store: LocalStore, small_disk: Path
) -> None:
    _record(store)
    _fill(small_disk)
    with pytest.raises(StateError):
        _record(store, number=2)
    assert [row["tick_number"] for row in store.read(Ledger.PROBES)] == [1]


def _record(store: LocalStore, number: int = 1) -> None:
    change = DataChange(
        table="flights",
        snapshot_id="4",
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation=Operation.APPEND,
        lineage="a",
    )
    look = Look(upstream_id=_UPSTREAM.upstream_id, position="at 4", events=(change,))
    tick = Tick(number=number, at=datetime(2026, 3, 1, 8, tzinfo=UTC))
    watched = {_UPSTREAM.upstream_id: replace(_UPSTREAM, position="at 3")}
    record([look], tick=tick, watched=watched, store=store)


def _fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk has no end")

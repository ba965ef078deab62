"""A disk that is really full, or read-only: nothing is lost, recorded by half, or unreported."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.controls.edits import PublishedTable
from harness.errors import ExitCode, StateError
from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.record.probes import record
from harness.sense.backoff import BackOff, Failing, save_back_off
from harness.sense.probe import ProbeResult
from harness.store.inbox import Message, MessageKind, receive, send
from harness.store.local import LocalStore
from harness.store.quarantine import Quarantine
from harness.store.rows import Ledger, Tick
from harness.store.writer.lock import ProcessLock
from harness.tick.checkpoint import save_state
from tests.support.disk_ledgers import create_ledgers
from tests.support.memory_store import MemoryStore
from tests.support.small_disk import fill
from tests.support.watched import NEVER_SEEN
from tests.unit.tick.test_state import STATE

_UPSTREAM = NEVER_SEEN
_AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
_MESSAGE = Message(kind=MessageKind.RETRY, job_id=7, sent_at=_AT)
_FAILING = BackOff(
    failing={"a": Failing(upstream_id="a", reason="down", failed_looks=1, since=_AT, failed_at=_AT)}
)


@pytest.fixture
def store(small_disk: Path) -> LocalStore:
    """Every ledger, empty."""
    return create_ledgers(small_disk)


def test_what_a_probe_found_on_a_full_disk_is_recorded_once_as_soon_as_there_is_room(
    store: LocalStore, small_disk: Path
) -> None:
    filler = fill(small_disk)
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
    fill(small_disk)
    with pytest.raises(StateError):
        _record(store, number=2)
    assert [row["tick_number"] for row in store.read(Ledger.PROBES)] == [1]


@pytest.fixture
def read_only(small_disk: Path) -> Path:
    """A file system with an inbox, a message that nobody can read, and ledgers: all of it frozen."""
    create_ledgers(small_disk)
    (small_disk / "inbox").mkdir()
    (small_disk / "inbox" / "1.json").write_text("{half")
    remounting = ["mount", "-o", "remount,ro", str(small_disk)]
    subprocess.run(remounting, capture_output=True, check=True)
    return small_disk


_WRITERS: Mapping[str, Callable[[Path], object]] = {
    "the lock": lambda disk: ProcessLock(disk, command="tick").__enter__(),
    "a ledger": lambda disk: _record(LocalStore(disk, "heartbeat")),
    "a message": lambda disk: send(disk / "inbox", _MESSAGE),
    "the state": lambda disk: save_state(disk / "state.json", STATE, MemoryStore()),
    "what was published": lambda disk: PublishedTable(
        disk / "published.json", MemoryStore(), disk
    ).note(None),
    "the waits": lambda disk: save_back_off(disk / "back_off.json", _FAILING, "any"),
}


@pytest.mark.parametrize("writer", _WRITERS)
def test_a_read_only_disk_is_reported_in_one_sentence_whatever_meets_it_first(
    writer: str, read_only: Path
) -> None:
    with pytest.raises(StateError, match=r"(?i)read-only file system") as reported:
        _WRITERS[writer](read_only)
    assert len(str(reported.value).splitlines()) == 1
    assert reported.value.exit_code is ExitCode.FAILED


def test_what_cannot_be_set_aside_on_a_read_only_disk_stays_and_is_reported(
    read_only: Path,
) -> None:
    quarantine = Quarantine(read_only / "inbox", _MESSAGE.sent_at)
    assert receive(read_only / "inbox", quarantine) == []
    [item] = quarantine.items
    assert item.path == read_only / "inbox" / "1.json"
    assert "Read-only file system" in item.reason


def _record(store: LocalStore, number: int = 1) -> None:
    change = ChangeEvent(
        table="flights",
        snapshot_id="4",
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        lineage="a",
    )
    result = ProbeResult(upstream_id=_UPSTREAM.upstream_id, position="at 4", events=(change,))
    tick = Tick(number=number, at=datetime(2026, 3, 1, 8, tzinfo=UTC))
    watched = {_UPSTREAM.upstream_id: replace(_UPSTREAM, position="at 3")}
    record([result], tick=tick, watched=watched, store=store)

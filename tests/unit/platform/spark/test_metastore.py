"""Which process has the embedded metastore open, by the lock that the operating system holds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import ExitCode, LockedError
from harness.platform.spark.metastore import PATIENCE_SECONDS, other_holder, require_free
from tests.support.fake_clock import FakeClock
from tests.support.fake_engines import a_record, write_record

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: As Derby does: a lock on the file for as long as the process lives.
HOLD = """
import fcntl, os, sys
parent = os.getpid()
if sys.argv[2] == "orphan":
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        pass
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def metastore(tmp_path: Path) -> Path:
    """A metastore as a process leaves it that had it open and died."""
    for name in ("db.lck", "dbex.lck"):
        (tmp_path / name).write_bytes(b"\0\0\0\x01")
    return tmp_path


@contextmanager
def held(metastore: Path, kind: str) -> Iterator[int]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(metastore / "dbex.lck"), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdin is not None
    try:
        yield int(child.stdout.readline())
    finally:
        child.stdin.close()
        child.stdout.read()
        child.wait()


def test_the_lock_files_of_a_dead_process_block_no_process(metastore: Path) -> None:
    assert other_holder(metastore) is None
    require_free(metastore, FakeClock(NOON))


def test_a_metastore_that_was_never_made_is_free(tmp_path: Path) -> None:
    assert other_holder(tmp_path / "metastore") is None


def test_another_process_that_has_it_open_is_named_and_nothing_goes_on_beside_it(
    metastore: Path,
) -> None:
    clock = FakeClock(NOON)
    with held(metastore, "orphan") as pid:
        assert other_holder(metastore) == pid
        with pytest.raises(LockedError, match=rf"open \(pid {pid}\): end it") as reported:
            require_free(metastore, clock)
    assert reported.value.exit_code is ExitCode.LOCKED
    assert (clock.now() - NOON).total_seconds() >= PATIENCE_SECONDS


def test_an_engine_that_has_it_open_is_named_with_the_command_that_ends_it(tmp_path: Path) -> None:
    metastore = tmp_path / "home" / "metastore"
    metastore.mkdir(parents=True)
    (metastore / "dbex.lck").write_bytes(b"\0\0\0\x01")
    with held(metastore, "orphan") as pid:
        write_record(tmp_path / "home", a_record(os.getpid(), pid))
        with pytest.raises(LockedError, match=rf"engine of .* \(pid {pid}\) .* engine stop`"):
            require_free(metastore, FakeClock(NOON))


def test_the_jvm_of_a_killed_tick_is_waited_for(metastore: Path) -> None:
    class EndsTheOther(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            os.kill(pid, 9)
            while other_holder(metastore):
                pass

    with held(metastore, "orphan") as pid:
        require_free(metastore, EndsTheOther(NOON))
        assert other_holder(metastore) is None


def test_the_jvm_of_this_very_process_is_no_other(metastore: Path) -> None:
    with held(metastore, "child"):
        assert other_holder(metastore) is None

"""The process lock, between real processes."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import ExitCode, LockedError, StateError
from harness.store.inbox import Message, MessageKind, send
from harness.store.writer.lock import ProcessLock
from tests.support.fake_clock import FakeClock

PROJECT = Path(__file__).resolve().parents[4]
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
HOLD = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from tests.support.fake_clock import FakeClock
from harness.store.writer.lock import ProcessLock

clock = FakeClock(datetime(2026, 3, 1, 8, 12, 3, tzinfo=UTC))
with ProcessLock(Path(sys.argv[1]), command="tick", clock=clock):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process_holding(home: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def take(home: Path, now: datetime = NOON) -> None:
    with ProcessLock(home, command="run", clock=FakeClock(now)):
        pass


def test_the_refusal_of_a_second_process_names_who_holds_the_lock(tmp_path: Path) -> None:
    with another_process_holding(tmp_path) as child, pytest.raises(LockedError) as refused:
        take(tmp_path)
    assert str(refused.value) == (
        f"Another harness process holds {tmp_path}/lock: pid {child.pid}, `tick`, "
        "since 08:12:03Z; wait for it, or stop it"
    )
    assert refused.value.exit_code is ExitCode.LOCKED


def test_a_lock_of_another_day_is_reported_with_its_day(tmp_path: Path) -> None:
    with (
        another_process_holding(tmp_path),
        pytest.raises(LockedError, match="2026-03-01 08:12:03Z"),
    ):
        take(tmp_path, datetime(2026, 3, 4, tzinfo=UTC))


def test_a_lock_ends_with_its_killed_holder_and_the_file_left_behind_blocks_no_process(
    tmp_path: Path,
) -> None:
    with another_process_holding(tmp_path) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert json.loads((tmp_path / "lock").read_text())["pid"] == child.pid
        take(tmp_path)


def test_a_lock_can_be_taken_again_after_it_was_given_back(tmp_path: Path) -> None:
    take(tmp_path)
    take(tmp_path)


def test_a_lock_is_given_back_when_its_block_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ProcessLock(tmp_path, command="tick"):
        raise ZeroDivisionError
    take(tmp_path)


@pytest.mark.parametrize("ask", [ProcessLock.check, ProcessLock.confirm])
@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_holder_of_a_lock_file_that_was_deleted_or_replaced_stops(
    tmp_path: Path, ask: Callable[[ProcessLock], None], is_replaced: bool
) -> None:
    with ProcessLock(tmp_path, command="tick") as lock:
        ask(lock)
        (tmp_path / "lock").unlink()
        if is_replaced:
            (tmp_path / "lock").write_text("")
        with pytest.raises(LockedError, match=r"lock was deleted or replaced .* this one stops"):
            ask(lock)


def test_of_two_holders_after_a_deleted_lock_file_only_the_second_goes_on(tmp_path: Path) -> None:
    with ProcessLock(tmp_path, command="run") as first:
        (tmp_path / "lock").unlink()
        with ProcessLock(tmp_path, command="tick") as second:
            second.confirm()
            with pytest.raises(LockedError):
                first.check()


def test_a_file_that_vanishes_while_it_is_being_locked_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, deleted = fcntl.flock, []

    def flock_and_lose_the_name(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if not deleted:
            deleted.append((tmp_path / "lock").unlink())

    monkeypatch.setattr("harness.store.writer.lock.fcntl.flock", flock_and_lose_the_name)
    with ProcessLock(tmp_path, command="tick") as lock:
        lock.check()
        with pytest.raises(LockedError, match="holds"):
            take(tmp_path)


def test_a_child_process_that_outlives_the_holder_does_not_keep_the_lock(tmp_path: Path) -> None:
    with ProcessLock(tmp_path, command="tick"):
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            close_fds=False,
        )
    try:
        take(tmp_path)
    finally:
        child.communicate()


def test_the_file_names_who_holds_the_lock_and_nothing_of_an_earlier_longer_text(
    tmp_path: Path,
) -> None:
    (tmp_path / "lock").write_text("x" * 3000)
    with ProcessLock(tmp_path, command="tick", clock=FakeClock(NOON)):
        output = json.loads((tmp_path / "lock").read_text())
    assert (output["pid"], output["command"], output["since"]) == (
        os.getpid(),
        "tick",
        "2026-03-01T12:00:00+00:00",
    )


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"since": "later"}'])
def test_a_holder_that_has_not_recorded_who_it_is_still_holds_the_lock(
    tmp_path: Path, text: str
) -> None:
    with another_process_holding(tmp_path):
        (tmp_path / "lock").write_text(text)
        with pytest.raises(LockedError, match=r"lock; wait for it, or stop it$"):
            take(tmp_path)


def test_a_state_directory_that_cannot_be_made_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(StateError, match=r"home cannot be used \(file exists\): .*HEARTBEAT_HOME"):
        take(tmp_path / "home")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full device")
def test_a_full_disk_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("/dev/full")
    with pytest.raises(StateError, match=r"cannot be used \((no space left|invalid)"):
        take(tmp_path)


def test_a_state_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    by_lock, by_message = tmp_path / "lock", tmp_path / "message"
    with ProcessLock(by_lock, command="tick"):
        pass
    send(by_message / "inbox", Message(kind=MessageKind.RETRY, job_id=1, sent_at=NOON))
    assert [path.stat().st_mode & 0o777 for path in (by_lock, by_message)] == [0o700, 0o700]

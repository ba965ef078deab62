"""The record of an engine, and the end of what it names, without a server."""

import fcntl
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

from harness.errors import StateError
from harness.platform.process_tree import born
from harness.platform.spark.engine import (
    EngineFolder,
    EngineRecord,
    GivenServer,
    _channel_of,
    end,
    engine_folder,
)
from tests.support.fake_clock import FakeClock
from tests.support.processes import ends
from tests.support.small_disk import fill

RECORD = EngineRecord(
    owner=2**22 + 1,
    owner_born="boot:1",
    server=2**22 + 2,
    server_born="boot:2",
    port=4711,
    token="secret",
    settings="abc",
    started_at="2026-03-01T12:00:00+00:00",
)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

_VALUES = st.recursive(
    st.sampled_from([None, True, 0, -1, 2**63, 10**400, 1.5, "7", "", "\0", "\ud800"])
    | st.floats()
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
_RECORDS = st.builds(
    lambda changed: json.dumps({**asdict(RECORD), **changed}).encode(),
    st.fixed_dictionaries({}, optional=dict.fromkeys(asdict(RECORD), _VALUES)),
)


@pytest.fixture
def folder(tmp_path: Path) -> EngineFolder:
    folder = engine_folder(tmp_path)
    with folder.starting():
        return folder


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@settings(max_examples=200, deadline=None)
@given(_RECORDS | _VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40))
def test_any_bytes_are_a_record_or_none(content: bytes) -> None:
    with TemporaryDirectory() as home:
        folder = engine_folder(Path(home))
        folder.path.mkdir()
        folder.record_file.write_bytes(content)
        record = folder.record()
        if record is not None:
            assert isinstance(record.is_alive, bool)
            assert isinstance(record.token, str)
            assert record.owner > 1
            assert record.server > 1


@pytest.mark.parametrize("pid", [0, -1, 1, os.getpid()], ids=["group", "all", "first", "self"])
def test_a_damaged_record_ends_no_process_that_cannot_be_an_engine(
    pid: int, folder: EngineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = []
    monkeypatch.setattr(os, "kill", lambda *signalled: killed.append(signalled))
    content = {**asdict(RECORD), "owner": pid, "server": pid, "owner_born": None}
    folder.record_file.write_text(json.dumps({**content, "server_born": None}))
    end(folder, FakeClock(NOON))
    assert [number for _, number in killed if number] == []


def test_a_record_is_read_as_it_was_written_by_its_owner_alone(folder: EngineFolder) -> None:
    folder.write(RECORD)
    assert folder.record() == RECORD
    assert folder.record_file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in folder.path.iterdir()) == ["engine.json", "start.lock"]


def test_a_record_for_which_there_is_no_room_leaves_no_part_of_it(small_disk: Path) -> None:
    folder = engine_folder(small_disk)
    with folder.starting():
        filler = fill(small_disk)
        with pytest.raises(OSError, match="No space left"):
            folder.write(RECORD)
    filler.unlink()
    assert [path.name for path in folder.path.iterdir()] == ["start.lock"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "engine").write_text("a file")
    with (
        pytest.raises(StateError, match=r"engine cannot be written \(file exists\): make room"),
        engine_folder(tmp_path).starting(),
    ):
        pass


def test_an_engine_that_has_ended_needs_no_end(folder: EngineFolder) -> None:
    folder.write(RECORD)
    assert not end(folder, FakeClock(NOON))
    assert folder.record() is None
    assert not end(folder, FakeClock(NOON))


def test_a_process_that_has_got_the_number_of_an_engine_is_left_alone(
    folder: EngineFolder, process: subprocess.Popen[bytes]
) -> None:
    folder.write(replace(RECORD, owner=process.pid, server=process.pid))
    assert not end(folder, FakeClock(NOON))
    assert process.poll() is None


def test_what_is_left_of_an_engine_without_its_owner_is_killed(
    folder: EngineFolder, process: subprocess.Popen[bytes]
) -> None:
    folder.write(replace(RECORD, server=process.pid, server_born=born(process.pid)))
    assert not end(folder, FakeClock(NOON))
    assert process.wait(60) == -signal.SIGKILL


def test_an_owner_that_is_frozen_is_killed(
    folder: EngineFolder, process: subprocess.Popen[bytes]
) -> None:
    process.send_signal(signal.SIGSTOP)
    folder.write(replace(RECORD, owner=process.pid, owner_born=born(process.pid)))
    end(folder, FakeClock(NOON))
    assert ends(process.pid)
    assert process.wait(60) in (-signal.SIGKILL, -signal.SIGTERM)


def test_a_folder_shows_whether_a_process_uses_its_engine(folder: EngineFolder) -> None:
    assert not folder.has_users
    with folder.users_lock() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert folder.has_users
    assert not folder.has_users


def test_a_folder_that_is_not_there_has_no_users(tmp_path: Path) -> None:
    assert not engine_folder(tmp_path).has_users
    assert engine_folder(tmp_path).record() is None


@pytest.fixture
def silent_server() -> Iterator[int]:
    """The port of a server that accepts connections and never sends a byte."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def left_session(silent_server: int, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session of a frozen server that was left."""
    monkeypatch.setattr("harness.platform.spark.engine._SECONDS_TO_LEAVE", 0.2)
    # It is set as long as a session of a given server is used; here it is to go.
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "")
    server = GivenServer(f"sc://localhost:{silent_server}")
    session = server.session()
    server.leave()
    return session


def test_a_session_of_a_frozen_server_is_left_in_time(left_session: SparkSession) -> None:
    assert left_session.is_stopped  # type: ignore[attr-defined]


def test_a_session_that_was_left_closes_nothing_of_another_one_when_python_deletes_it(
    left_session: SparkSession,
) -> None:
    pool = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()
    left_session.__del__()  # type: ignore[attr-defined]
    assert ExecutePlanResponseReattachableIterator._release_thread_pool_instance is pool
    ExecutePlanResponseReattachableIterator.shutdown()


def test_the_token_goes_to_the_address_of_the_engine_alone() -> None:
    # `localhost` may be ::1, too, where another user may listen.
    assert _channel_of(RECORD).endpoint == "127.0.0.1:4711"
    assert RECORD.token not in RECORD.address

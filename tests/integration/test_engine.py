"""The engine of a state directory, with real servers: who may use it, and what ends and replaces it."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from pyspark.sql.connect.proto import ReleaseSessionRequest, UserContext
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

from harness.config.load import load_settings
from harness.context import Context
from harness.errors import LockedError, StateError
from harness.platform.clock import RealClock
from harness.platform.databricks.client import ClientSettings, DatabricksJobs
from harness.platform.jobs_emulator.background import ensure_running, register_jobs, stop_running
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.spark import engine as engine_module
from harness.platform.spark.engine import (
    LocalEngine,
    end,
    engine_folder,
)
from tests.support.engines import (
    PROJECT,
    User,
    end_all,
    happens,
    is_over,
    processes_of,
    record_of,
    user_of,
    wanted,
)
from tests.support.fake_clock import FakeClock
from tests.support.small_disk import fill

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: It runs for longer than any test.
ENDLESS = "select count(*) from range(1000000000000) where id % 7 = 3"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of the tests that leave its engine as it is."""
    home = tmp_path_factory.mktemp("shared")
    with user_of(home) as user:
        assert user.attached == record_of(home).server
        user.ask("create table numbers (n int) using delta")
    yield home
    end_all(home)


@pytest.fixture
def mortal(shared: Path) -> Path:
    """The same, for the tests that harm its engine: they come last, and each gets another one."""
    return shared


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A state directory of one test."""
    home = tmp_path / "home"
    home.mkdir()
    yield home
    end_all(tmp_path)


def temporary_files(home: Path) -> set[str]:
    """Name what Spark and its libraries keep on the disk while they run."""
    return {path.name for path in (engine_folder(home).path / "temporary").glob("*")}


# --- who may use it ---


def test_only_its_owner_can_read_how_to_reach_an_engine(shared: Path) -> None:
    folder = engine_folder(shared)
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.record_file.stat().st_mode & 0o777 == 0o600
    assert folder.log_file.stat().st_mode & 0o777 == 0o600


def test_the_token_is_in_no_argument_no_variable_and_no_other_file(shared: Path) -> None:
    record = record_of(shared)
    secret = record.token.encode()
    assert len(record.token) >= 32
    for pid in (record.owner, record.server):
        assert secret not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert secret not in Path(f"/proc/{pid}/environ").read_bytes()
    files = [path for path in shared.rglob("*") if path.is_file()]
    assert [path.name for path in files if secret in path.read_bytes()] == ["engine.json"]


def test_what_a_process_starts_gets_no_token(shared: Path) -> None:
    token = record_of(shared).token
    engine = LocalEngine(shared, wanted(shared))
    engine.session()
    try:
        assert os.environ["SPARK_REMOTE"] == f"sc://localhost:{record_of(shared).port}"
        child = subprocess.run(["env"], capture_output=True, text=True, check=True)
    finally:
        engine.leave()
    assert token not in child.stdout
    assert "SPARK_REMOTE" not in os.environ


@pytest.mark.parametrize("token", ["", "another-token"], ids=["none", "another"])
def test_a_client_without_the_token_is_refused(shared: Path, token: str) -> None:
    port = record_of(shared).port
    request = ReleaseSessionRequest(session_id=str(NOON), user_context=UserContext(user_id="x"))
    credentials = grpc.local_channel_credentials()
    if token:
        credentials = grpc.composite_channel_credentials(
            credentials, grpc.access_token_call_credentials(token)
        )
    with (
        grpc.secure_channel(f"localhost:{port}", credentials) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        SparkConnectServiceStub(channel).ReleaseSession(request, timeout=30)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


_PLAIN_PYSPARK = """
import sys
from pyspark.sql import SparkSession
SparkSession.builder.remote(sys.argv[1]).getOrCreate().sql("select 1").collect()
"""


@pytest.mark.parametrize("token", ["", "/;token=another"], ids=["none", "another"])
def test_plain_pyspark_without_the_token_is_refused(shared: Path, token: str) -> None:
    command = [sys.executable, "-c", _PLAIN_PYSPARK, record_of(shared).address + token]
    tried = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert tried.returncode == 1
    assert "UNAUTHENTICATED" in tried.stderr


def test_an_engine_listens_on_loopback_alone(shared: Path) -> None:
    listening = _listening(record_of(shared).server)
    assert record_of(shared).port in [port for _, port in listening]
    assert {address for address, _ in listening} == {"127.0.0.1"}


def test_spark_answers_no_call_on_its_own_ports_before_a_login(shared: Path) -> None:
    record = record_of(shared)
    own = [port for _, port in _listening(record.server) if port != record.port]
    assert own
    for port in own:
        assert b"does not have SASL enabled" in _answer_to_a_call(port)


def _listening(pid: int) -> list[tuple[str, int]]:
    """Return the addresses on which a process listens."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                # Words in the machine's order; IPv4 in IPv6 has its address in the last one.
                words = [
                    bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8)
                ]
                is_mapped = len(words) == 4 and b"".join(words[:3]) == bytes(10) + b"\xff\xff"
                family = socket.AF_INET if is_mapped or len(words) == 1 else socket.AF_INET6
                packed = words[-1] if family is socket.AF_INET else b"".join(words)
                found.append((socket.inet_ntop(family, packed), int(port, 16)))
    return found


def _answer_to_a_call(port: int) -> bytes:
    """Call a procedure on one of Spark's ports, as a client that has not logged in."""
    content = b"not a login"
    call = struct.pack(">bqi", 3, 1, len(content)) + content
    with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as client:
        client.sendall(struct.pack(">q", 8 + len(call)) + call)
        return client.recv(1000)


# --- several processes ---


def test_processes_read_and_write_through_one_engine_at_the_same_time(shared: Path) -> None:
    with user_of(shared) as first, user_of(shared) as second:
        assert first.attached == second.attached == record_of(shared).server
        first.begin("insert into numbers values (1)")
        second.begin("select sum(id) from range(100000)")
        assert (first.answer(), second.answer()) == ([], [[4999950000]])
        assert second.ask("select n from numbers") == [[1]]


def test_an_engine_of_other_settings_is_not_taken_from_the_process_that_uses_it(
    shared: Path,
) -> None:
    record = record_of(shared)
    other = wanted(shared, more={"spark.sql.shuffle.partitions": "3"})
    with user_of(shared), pytest.raises(LockedError) as refused:
        LocalEngine(shared, other, clock=FakeClock(NOON)).session()
    assert str(refused.value) == (
        "Another process uses an engine of other settings or of another version"
        f" (pid {record.owner}): wait for it, or end it with `python -m harness engine stop`"
    )
    assert record_of(shared) == record
    assert record.is_alive


def test_a_command_without_an_engine_of_its_own_uses_one_that_runs(shared: Path) -> None:
    context = Context(load_settings(PROJECT, {"HEARTBEAT_HOME": str(shared)}), os.environ)
    try:
        assert context.session.sql("show tables").count() == 1
        assert not hasattr(context.session, "_jvm")
    finally:
        context.close()
    assert record_of(shared).is_alive


def test_the_local_jobs_api_and_its_jobs_have_no_engine(shared: Path, tmp_path: Path) -> None:
    found = tmp_path / "environment"
    engine = LocalEngine(shared, wanted(shared))
    engine.session()
    try:
        endpoint = ensure_running(tmp_path)
        job = JobDefinition(job_id=7, name="seven", command=f"env > {found}", cwd=str(tmp_path))
        register_jobs(endpoint, [job])
        jobs = DatabricksJobs(ClientSettings(host=endpoint.host, token=endpoint.token))
        jobs.run_now(job_id=7, token="t", parameters={})
        assert happens(lambda: found.is_file() and "HEARTBEAT_RUN_ID" in found.read_text())
    finally:
        stop_running(tmp_path)
        engine.leave()
    names = {line.partition("=")[0] for line in found.read_text().splitlines()}
    assert not names & {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"}


# --- its start ---


def test_an_engine_ends_whose_process_is_killed_while_it_starts(home: Path) -> None:
    with user_of(home, waits=False) as user:
        assert happens(lambda: any("Connect" in each for each in processes_of(home).values()))
        user.kill()
        folder = engine_folder(home)
        assert happens(lambda: not processes_of(home) or folder.record() is not None)
        assert folder.record() is None
    assert not list(folder.path.glob("*.properties"))


@pytest.mark.long
def test_an_engine_whose_port_is_taken_meanwhile_gets_another_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        _check_a_start_at(other.getsockname()[1], home, monkeypatch)


def test_an_engine_is_not_mistaken_for_the_one_that_has_its_port(
    shared: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _check_a_start_at(record_of(shared).port, home, monkeypatch)


_FIRST_PORT = """
import socket
from pathlib import Path

class Socket(socket.socket):
    def getsockname(self):
        first = Path(__file__).with_name("first")
        if not first.exists():
            return super().getsockname()
        port = int(first.read_text())
        first.unlink()
        return "127.0.0.1", port

socket.socket = Socket
"""


def _check_a_start_at(port: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start an engine, for which a port was free that is not free any more."""
    (home / "sitecustomize.py").write_text(_FIRST_PORT)
    (home / "first").write_text(str(port))
    monkeypatch.setenv("PYTHONPATH", str(home))
    engine = LocalEngine(home, wanted(home))
    try:
        assert engine.session().sql("select 1").count() == 1
    finally:
        engine.leave()
    assert not (home / "first").exists()
    assert record_of(home).port != port


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("spark.driver.memory", "nonsense", "Invalid maximum heap size: -Xmxnonsense"),
        ("spark.master", "nonsense", "Master must either be yarn or start with"),
    ],
    ids=["java", "spark"],
)
def test_an_engine_that_does_not_start_is_one_sentence_with_the_reason(
    setting: str, value: str, reason: str, home: Path
) -> None:
    engine = LocalEngine(home, wanted(home, more={setting: value}))
    with pytest.raises(StateError, match=f"^Spark does not start: .*{reason}") as failed:
        engine.session()
    _check_that_nothing_is_left(home, failed.value)


def test_an_engine_without_java_is_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home / "no-java"))
    with pytest.raises(
        StateError, match=r"^Spark does not start: .*no-java/bin/java: No such file"
    ) as failed:
        LocalEngine(home, wanted(home)).session()
    _check_that_nothing_is_left(home, failed.value)


def _check_that_nothing_is_left(home: Path, error: StateError) -> None:
    assert len(str(error).splitlines()) == 1
    assert not processes_of(home)
    assert engine_folder(home).record() is None
    assert not list(engine_folder(home).path.glob("*.properties"))
    assert not engine_folder(home).has_users


def test_an_engine_on_a_full_disk_is_one_sentence_and_starts_once_there_is_room(
    small_disk: Path,
) -> None:
    home = small_disk / "home"
    engine = LocalEngine(home, wanted(home))
    filler = fill(small_disk)
    with pytest.raises(StateError, match=r"(?i)no space left") as failed:
        engine.session()
    assert len(str(failed.value).splitlines()) == 1
    filler.unlink()
    with engine_folder(home).starting():
        pass
    filler = fill(small_disk)
    with pytest.raises(StateError, match=r"(?i)no space left") as failed:
        engine.session()
    _check_that_nothing_is_left(home, failed.value)


def test_an_engine_in_a_folder_that_is_read_only_is_one_sentence(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], capture_output=True, check=True)
    with pytest.raises(StateError, match=r"(?i)read-only file system") as failed:
        LocalEngine(small_disk, wanted(small_disk)).session()
    assert len(str(failed.value).splitlines()) == 1


# --- its end ---


def test_an_engine_ends_when_it_is_idle_and_a_killed_process_does_not_use_it(home: Path) -> None:
    with user_of(home, idle_seconds=0.5) as user:
        record = record_of(home)
        RealClock().sleep(3)
        assert user.ask("select 1") == [[1]]
        assert temporary_files(home)
        user.kill()
        assert is_over(record)
    assert not engine_folder(home).record_file.exists()
    assert not temporary_files(home)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(User.exit, marks=pytest.mark.long, id="ends"),
        pytest.param(User.kill, id="is killed"),
    ],
)
def test_an_inline_engine_ends_with_its_process(way: Callable[[User], object], home: Path) -> None:
    with user_of(home, idle_seconds=None) as user:
        record = record_of(home)
        assert user.ask("select 1") == [[1]]
        way(user)
        assert is_over(record)
    assert not engine_folder(home).record_file.exists()


@pytest.mark.parametrize(
    "removed", ["all of it", pytest.param("its first file", marks=pytest.mark.long)]
)
def test_an_engine_ends_with_its_state_directory_and_leaves_nothing_there(
    removed: str, home: Path
) -> None:
    # A removal takes its time, and fails where a file is made behind it.
    first = engine_folder(home).path / "users.lock"
    with user_of(home) as user:
        record = record_of(home)
        user.ask("create table t (n int) using delta")
        if removed == "all of it":
            shutil.rmtree(home)
        else:
            first.unlink()
        assert is_over(record)
    assert not first.exists()
    assert home.exists() == (removed != "all of it")


@pytest.mark.parametrize("victim", [pytest.param("owner", marks=pytest.mark.long), "server"])
def test_an_engine_whose_process_is_killed_ends_whole_and_is_replaced(
    victim: str, mortal: Path
) -> None:
    with user_of(mortal) as user:
        record = record_of(mortal)
        left = temporary_files(mortal)
        os.kill(getattr(record, victim), signal.SIGKILL)
        assert is_over(record)
        user.attach()
        assert user.ask("select 1") == [[1]]
        assert left
        assert not left & temporary_files(mortal)
    assert record_of(mortal).server != record.server


def test_a_statement_fails_soon_when_its_engine_dies_and_the_next_session_works(
    mortal: Path,
) -> None:
    with user_of(mortal) as user:
        user.begin(ENDLESS)
        RealClock().sleep(3)
        os.kill(record_of(mortal).server, signal.SIGKILL)
        assert "UNAVAILABLE" in user.answer(within=60)
        user.attach()
        assert user.ask("select 1") == [[1]]


def test_a_command_whose_engine_has_died_leaves_it_and_gets_another_one(mortal: Path) -> None:
    context = Context(load_settings(PROJECT, {"HEARTBEAT_HOME": str(mortal)}), os.environ)
    try:
        assert context.session.sql("select 1").count() == 1
        os.kill(record_of(mortal).owner, signal.SIGKILL)
        context.leave_engine()
        assert context.session.sql("select 1").count() == 1
    finally:
        context.close()


def test_a_process_whose_engine_has_died_can_end(mortal: Path) -> None:
    with user_of(mortal) as user:
        record = record_of(mortal)
        os.kill(record.server, signal.SIGKILL)
        assert is_over(record)
        assert user.exit() == 0


@pytest.mark.long
def test_a_port_of_a_dead_engine_that_another_server_has_is_not_connected_to(mortal: Path) -> None:
    with user_of(mortal):
        record = record_of(mortal)
    folder = engine_folder(mortal)
    with folder.starting():
        assert end(folder)
    with closing(socket.create_server(("127.0.0.1", record.port))) as other:
        folder.write(record)
        with user_of(mortal) as user:
            assert user.ask("select 1") == [[1]]
            assert record_of(mortal) != record
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.accept()


@pytest.mark.long
@pytest.mark.parametrize(
    "frozen", [("server",), ("server", "owner")], ids=["server", "server and owner"]
)
def test_a_frozen_engine_is_replaced(
    frozen: tuple[str, ...], mortal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "SECONDS_TO_ANSWER", 1.0)
    engine = LocalEngine(mortal, wanted(mortal))
    engine.session()
    record = record_of(mortal)
    for name in frozen:
        os.kill(getattr(record, name), signal.SIGSTOP)
    try:
        assert engine.session().sql("select 1").count() == 1
    finally:
        engine.leave()
    assert is_over(record)


@pytest.mark.long(in_sample=True)
def test_an_engine_that_freezes_during_a_statement_is_ended_by_its_owner(home: Path) -> None:
    with user_of(home, silent_seconds=12) as user:
        record = record_of(home)
        user.begin(ENDLESS)
        RealClock().sleep(3)
        os.kill(record.server, signal.SIGSTOP)
        assert "UNAVAILABLE" in user.answer()
        assert is_over(record)

"""The process that owns an engine: it starts the Spark Connect server, watches it and ends it.

It gets one line of JSON on its standard input: Spark's settings, their checksum, for how long the
engine stays when it is idle, and for how long the server may be silent. It answers with one line on
its standard output, which is empty once the engine can be used and else states in one sentence why
it cannot.

It ends the server when it has been idle, on SIGTERM, when the state directory
or a file that it needs there has gone, and when the server has been silent for too long; an engine
without an idle time ends when its standard input does. The server never outlives it.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import IO

from harness.platform.clock import RealClock
from harness.platform.files import unwritable
from harness.platform.process_tree import born
from harness.platform.spark.engine import EngineFolder, EngineRecord, private_file

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: A port that was free may be taken when the server comes to it.
_ATTEMPTS = 3
_SECONDS_TO_START = 180.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_BETWEEN_GREETINGS = 15.0
_SECONDS_TO_END = 5.0
_SECONDS_TO_OWN = 30.0
#: The log has errors alone; what is older is dropped beyond this size.
_LARGEST_LOG = 4 * 2**20
#: What the script and Java print when they give up, below the reason.
_EMPTY_WORDS = (
    "Error: Could not create the Java Virtual Machine.",
    "Error: A fatal exception has occurred. Program will exit.",
    "CMD: bad array subscript",
    "WARNING: Using incubator modules: jdk.incubator.vector",
)
#: What each client of HTTP/2 sends first, and an empty frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


_CLOCK = RealClock()


class _Wanted(BaseException):
    """The engine is to end."""


class _Failed(Exception):
    """The engine does not start."""


def main(folder: EngineFolder) -> int:
    """Own an engine until it ends."""
    request = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(_Wanted):
        try:
            # Until this process ends, whatever ends it.
            _lock = _own(folder)
            _empty(folder)
            server, record = _started(folder, request)
        except _Failed as error:
            _answer(str(error))
            return 1
        except OSError as error:
            _answer(str(unwritable(folder.path, error)))
            return 1
        try:
            _answer("")
            # No process reads it any more.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            pulse = _Pulse(record.port, request["silent_seconds"])
            _watch(folder, record, server, pulse, request["idle_seconds"])
        finally:
            _kill(server)
            if folder.record() == record:
                folder.record_file.unlink(missing_ok=True)
            _empty(folder)
    return 0


def _own(folder: EngineFolder) -> IO[str]:
    """Wait until no other process owns an engine here: one may have got a SIGTERM just now."""
    lock = (folder.path / "owner.lock").open("a")
    until = time.monotonic() + _SECONDS_TO_OWN
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise _Failed("an earlier engine of this state directory does not end") from None
            _CLOCK.sleep(0.1)
        else:
            return lock


def _empty(folder: EngineFolder) -> None:
    """Remove what a server has left in its temporary folder, one that was killed, too."""
    shutil.rmtree(_temporary(folder), ignore_errors=True)


def _temporary(folder: EngineFolder) -> Path:
    # Not the machine's own, where nothing would remove it after the server was killed.
    return folder.path / "temporary"


def _answer(problem: str) -> None:
    sys.stdout.write(f"{' '.join(problem.split())}\n")
    sys.stdout.flush()


def _end(number: int, frame: FrameType | None) -> None:
    raise _Wanted


def _started(
    folder: EngineFolder, request: Mapping[str, object]
) -> "tuple[subprocess.Popen[bytes], EngineRecord]":
    problem = ""
    for _ in range(_ATTEMPTS):
        port, token = _free_port(), secrets.token_urlsafe(32)
        settings = request["settings"]
        assert isinstance(settings, dict)
        server = None
        try:
            server = _serve(folder, {**settings, **_settings_of(port, token)})
            problem = _wait_until_it_greets(server, port, folder.log_file)
            if not problem:
                record = EngineRecord(
                    owner=os.getpid(),
                    owner_born=born(os.getpid()),
                    server=server.pid,
                    server_born=born(server.pid),
                    port=port,
                    token=token,
                    settings=str(request["checksum"]),
                    started_at=_CLOCK.now().isoformat(timespec="seconds"),
                )
                folder.write(record)
                return server, record
        except BaseException:
            if server is not None:
                _kill(server)
            raise
        finally:
            _properties(folder).unlink(missing_ok=True)
        _kill(server)
        if not _is_taken(port):
            break
    raise _Failed(problem)


def _settings_of(port: int, token: str) -> dict[str, str]:
    return {
        # As each client requests Hive's support.
        "spark.sql.catalogImplementation": "hive",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # Every request needs it, from the first moment on.
        "spark.connect.authenticate.token": token,
        # The ports that Spark opens for itself, too.
        "spark.authenticate": "true",
        "spark.connect.session.manager.defaultSessionTimeout": "12h",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _properties(folder: EngineFolder) -> Path:
    return folder.path / "server.properties"


def _serve(folder: EngineFolder, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    import importlib.util

    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    spark = Path(spec.origin).parent
    # A file, since every user of the machine can read the arguments of a process.
    with private_file(_properties(folder)) as file:
        for key, value in settings.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
            file.write(f"{key}={escaped}\n")
    submit = [str(spark / "bin" / "spark-submit"), "--properties-file", str(_properties(folder))]
    # What an operator has set for every Spark of the machine, as a session in a process has it.
    submit.append("--load-spark-defaults")
    _temporary(folder).mkdir(exist_ok=True)
    place = str(_temporary(folder)).replace("\\", "\\\\").replace('"', '\\"')
    options = f'{os.environ.get("SPARK_SUBMIT_OPTS", "")} "-Djava.io.tmpdir={place}"'
    with private_file(folder.log_file) as log:
        return subprocess.Popen(
            [*submit, "--class", _CLASS, "spark-internal"],
            env={
                **os.environ,
                "SPARK_HOME": str(spark),
                "SPARK_SUBMIT_OPTS": options,
                # Spark queries a Python for the data sources that it has.
                "PYSPARK_PYTHON": sys.executable,
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # This process has one thread.
            preexec_fn=_dies_with_its_owner(),  # noqa: PLW1509
        )


def _dies_with_its_owner() -> Callable[[], object] | None:
    """Return what a new process does so that the kernel ends it with its parent; Linux alone."""
    if sys.platform != "linux":
        return None
    libc, owner = ctypes.CDLL(None), os.getpid()

    def ask() -> None:
        libc.prctl(1, int(signal.SIGKILL))
        if os.getppid() != owner:
            os._exit(1)

    return ask


def _wait_until_it_greets(server: "subprocess.Popen[bytes]", port: int, log: Path) -> str:
    """Wait for a server; return why it cannot be used, or an empty text."""
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until:
        if not _is_awaited():
            raise _Wanted
        if (code := server.poll()) is not None:
            return _reason(log) or f"its server ended with the code {code}"
        with contextlib.closing(_Greeting(port)) as greeting:
            if greeting.has_come(within=0.5):
                return ""
        _CLOCK.sleep(0.05)
    return f"its server does not answer within {_SECONDS_TO_START:g} s"


def _is_awaited() -> bool:
    """Return whether a process waits for the answer; it may have been killed."""
    reader = select.poll()
    reader.register(sys.__stdout__ or 1, 0)
    return not reader.poll(0)


def _reason(log: Path) -> str:
    """Return the most informative line of a log."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    lines = [line for line in lines if line and not line.endswith(_EMPTY_WORDS)]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    # The last cause is what it all comes from.
    return (telling or lines or [""])[-1][:300]


class _Greeting:
    """What the server sends to a client before any request: that it listens."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._is_sent = False
        with contextlib.suppress(BlockingIOError):
            self._socket.connect(("127.0.0.1", port))

    def close(self) -> None:
        """Stop waiting for it."""
        self._socket.close()

    def has_come(self, *, within: float = 0.0) -> bool:
        """Return whether it has come, after so many seconds at most."""
        until = time.monotonic() + within
        while True:
            with contextlib.suppress(OSError):
                if not self._is_sent:
                    self._socket.sendall(_PREFACE)
                    self._is_sent = True
                # The head of a frame, whose kind is 4: the server's own settings.
                head = self._socket.recv(9)
                return len(head) == 9 and head[3] == 4
            if time.monotonic() >= until:
                return False
            _CLOCK.sleep(0.02)


def greets(port: int, *, within: float) -> bool:
    """Return whether a server greets there, after so many seconds at most."""
    with contextlib.closing(_Greeting(port)) as greeting:
        return greeting.has_come(within=within)


def _watch(
    folder: EngineFolder,
    record: EngineRecord,
    server: "subprocess.Popen[bytes]",
    pulse: "_Pulse",
    idle_seconds: float | None,
) -> None:
    """Return when the engine is to end."""
    used = time.monotonic()
    while server.poll() is None and folder.record() == record and pulse.goes_on():
        _bound(folder.log_file)
        if idle_seconds is None:
            if select.select([sys.stdin], [], [], _SECONDS_BETWEEN_LOOKS)[0]:
                return
            continue
        _CLOCK.sleep(min(_SECONDS_BETWEEN_LOOKS, idle_seconds))
        try:
            # A new file would be in the way of a process that just removes the folder.
            lock = folder.users_lock(create=False)
        except FileNotFoundError:
            return
        with lock:
            if not _is_unused(lock):
                used = time.monotonic()
            elif time.monotonic() - used >= idle_seconds:
                # No process can begin to use it until the lock is released.
                folder.record_file.unlink(missing_ok=True)
                _kill(server)
                return


def _is_unused(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Pulse:
    """Requests the greeting of a server repeatedly.

    It greets each client at once, however much it works; unless it is frozen.

    Args:
        port: Where it listens.
        silent_seconds: For how long no greeting may come.
    """

    def __init__(self, port: int, silent_seconds: float) -> None:
        self._port, self._silent_seconds = port, silent_seconds
        self._every_seconds = min(_SECONDS_BETWEEN_GREETINGS, silent_seconds / 4)
        self._greeting: _Greeting | None = None
        self._greeted = time.monotonic()

    def goes_on(self) -> bool:
        """Return whether it has greeted recently; never waits."""
        now = time.monotonic()
        if self._greeting is None:
            if now - self._greeted >= self._every_seconds:
                self._greeting = _Greeting(self._port)
        elif self._greeting.has_come():
            self._greeting.close()
            self._greeting, self._greeted = None, now
        return now - self._greeted < self._every_seconds + self._silent_seconds


def _bound(log: Path) -> None:
    with contextlib.suppress(OSError):
        if log.stat().st_size > _LARGEST_LOG:
            os.truncate(log, 0)


def _kill(server: "subprocess.Popen[bytes]") -> None:
    """End a server; what it has not committed, no process has seen."""
    server.terminate()
    try:
        server.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main(EngineFolder(Path(sys.argv[1]))))

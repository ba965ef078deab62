"""Engines without Spark: an owner and a server that greets as a Spark Connect server does."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.platform.process_tree import born
from harness.platform.spark.engine import EngineRecord, engine_folder

TOKEN = "a-token-that-no-user-sees"

_SERVER = """
import os, socket
listening = socket.create_server(("127.0.0.1", 0))
print(os.getpid(), listening.getsockname()[1], flush=True)
while True:
    client, _ = listening.accept()
    client.recv(64)
    client.sendall(bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
"""
_OWNER = f"""
import signal, subprocess, sys
server = subprocess.Popen([sys.executable, "-c", {_SERVER!r}])
def end(number, frame):
    server.kill()
    server.wait()
    sys.exit()
signal.signal(signal.SIGTERM, end)
sys.stdin.read()
end(0, None)
"""


@contextmanager
def an_engine(home: Path, *, settings: str = "others") -> Iterator[EngineRecord]:
    """Run an engine of a state directory, and end what is left of it."""
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    server, port = map(int, owner.stdout.readline().split())
    record = a_record(owner.pid, server, port=port, settings=settings)
    write_record(home, record)
    try:
        yield record
    finally:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        owner.kill()
        owner.communicate()


def a_record(owner: int, server: int, *, port: int = 1, settings: str = "others") -> EngineRecord:
    """Return the record of two processes that are there."""
    return EngineRecord(
        owner=owner,
        owner_born=born(owner),
        server=server,
        server_born=born(server),
        port=port,
        token=TOKEN,
        settings=settings,
        started_at="2026-03-01T11:58:00+00:00",
    )


def write_record(home: Path, record: EngineRecord) -> None:
    """Leave a record as an engine does."""
    folder = engine_folder(home)
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.write(record)


@contextmanager
def used(home: Path) -> Iterator[None]:
    """Use an engine, as another process does: a lock of another open file is one, too."""
    import fcntl

    with engine_folder(home).users_lock() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield

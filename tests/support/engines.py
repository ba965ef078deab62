"""Engines of tests: processes that use them, and the end of each of them at teardown."""

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.platform.clock import RealClock
from harness.platform.process_tree import is_alive
from harness.platform.spark.engine import EngineRecord, LocalEngine, Wanted, engine_folder
from harness.platform.spark.session import engine_settings

PROJECT = Path(__file__).resolve().parents[2]
#: A bound for hangs, on a busy machine.
_PATIENCE_SECONDS = 120.0


def wanted(
    home: Path,
    *,
    idle_seconds: float | None = 600,
    silent_seconds: float = 60,
    more: Mapping[str, str] | None = None,
) -> Wanted:
    """Return the engine that commands of a state directory require."""
    settings = engine_settings(PROJECT, home)
    return Wanted(
        project=PROJECT,
        settings={**settings, **(more or {})},
        idle_seconds=idle_seconds,
        silent_seconds=silent_seconds,
    )


def record_of(home: Path) -> EngineRecord:
    """Return the record of an engine, which has to be there."""
    record = engine_folder(home).record()
    assert record is not None
    return record


def processes_of(place: Path) -> dict[int, str]:
    """Return the processes of engines below a folder, with their command lines."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            is_engine = "spark.engine_process" in command or "SparkConnectServer" in command
            if is_engine and f"{place}/" in command:
                found[int(folder.name)] = command
    return found


def end_all(place: Path) -> None:
    """Kill every engine below a folder."""
    for pid in processes_of(place):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    assert happens(lambda: not processes_of(place))


def happens(condition: Callable[[], bool], *, within: float = _PATIENCE_SECONDS) -> bool:
    """Return whether something becomes true."""
    clock = RealClock()
    until = clock.now().timestamp() + within
    while not condition():
        if clock.now().timestamp() >= until:
            return False
        clock.sleep(0.05)
    return True


def is_over(record: EngineRecord) -> bool:
    """Return whether both processes of an engine end."""
    processes = ((record.owner, record.owner_born), (record.server, record.server_born))
    return happens(lambda: not any(is_alive(*each) for each in processes))


class User:
    """A process of its own that uses an engine, and runs the statements that it is given."""

    def __init__(self, home: Path, idle_seconds: float | None, silent_seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.engines"],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._send({"home": str(home), "idle": idle_seconds, "silent": silent_seconds})
        #: The server that it uses.
        self.attached: Any = None

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    def ask(self, statement: str) -> Any:
        """Run a statement; return its rows, or the text of its error."""
        self.begin(statement)
        return self.answer()

    def begin(self, statement: str) -> None:
        """Run a statement without waiting for it."""
        self._send(statement)

    def attach(self) -> Any:
        """Leave the engine and request a session again."""
        self._send(None)
        self.attached = self.answer()
        return self.attached

    def answer(self, *, within: float = _PATIENCE_SECONDS) -> Any:
        """Return what it answers next."""
        return json.loads(self._answers.get(timeout=within))

    def kill(self) -> None:
        """Let it vanish."""
        self.process.kill()
        self.process.wait()

    def exit(self) -> int:
        """Let it come to its end, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(_PATIENCE_SECONDS)

    def _send(self, message: object) -> None:
        assert self.process.stdin is not None
        print(json.dumps(message), file=self.process.stdin, flush=True)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)


@contextmanager
def user_of(
    home: Path,
    *,
    idle_seconds: float | None = 600,
    silent_seconds: float = 60,
    waits: bool = True,
) -> Iterator[User]:
    """Start a process that uses the engine of a state directory, and wait until it does."""
    user = User(home, idle_seconds, silent_seconds)
    try:
        if waits:
            user.attached = user.answer()
        yield user
    finally:
        user.kill()


def _main() -> None:
    """Be a user: print the engine's server, then the rows of each statement."""
    request = json.loads(sys.stdin.readline())
    home = Path(request["home"])
    engine = LocalEngine(
        home, wanted(home, idle_seconds=request["idle"], silent_seconds=request["silent"])
    )
    session = None
    for line in itertools.chain(["null"], sys.stdin):
        statement = json.loads(line)
        try:
            if statement is None or session is None:
                session = engine.session()
                answer: object = record_of(home).server
            else:
                answer = [list(row) for row in session.sql(statement).collect()]
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()

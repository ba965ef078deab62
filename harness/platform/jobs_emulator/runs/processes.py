"""Runs the commands of local runs as child processes, each in a group of its own."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

#: How long a run may take to end after it was signalled to, before it is killed.
GRACE_SECONDS = 5.0
_TAIL_BYTES = 8_192
_LONGEST_LINE = 500


class Ending(StrEnum):
    """How a process came to its end."""

    EXITED = "EXITED"
    TIMED_OUT = "TIMED_OUT"
    STOPPED = "STOPPED"
    NOT_STARTED = "NOT_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to run for one run."""

    run_id: int
    command: tuple[str, ...] | str
    env: Mapping[str, str]
    log: Path
    cwd: str | None = None
    timeout_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What is known of a process that ended."""

    ending: Ending
    exit_code: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Callbacks for the begin and the end of a process; both come from the run's own thread."""

    began: Callable[[int, int], None]
    ended: Callable[[int, Ended], None]


class Processes:
    """All processes of one local Jobs API."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going_on: dict[int, subprocess.Popen[bytes]] = {}
        self._stopped: set[int] = set()
        self._threads: dict[int, threading.Thread] = {}
        self._is_closed = False

    def launch(self, task: Task, observer: Observer) -> None:
        """Start a process and return at once; the observer receives the rest."""
        thread = threading.Thread(
            target=self._run, args=(task, observer), name=f"run-{task.run_id}", daemon=True
        )
        with self._lock:
            self._threads[task.run_id] = thread
        thread.start()

    def stop(self, run_id: int) -> None:
        """Signal a process to end, and kill it when it does not; return at once."""
        with self._lock:
            process = self._going_on.get(run_id)
            if process is None and run_id in self._threads:
                # Not started yet: the thread sees the mark before or right after it starts it.
                self._stopped.add(run_id)
            if process is None or process.poll() is not None:
                return
            self._stopped.add(run_id)
        signal_group(process.pid, signal.SIGTERM)
        killer = threading.Timer(GRACE_SECONDS, self._kill_if_alive, args=(process,))
        killer.daemon = True
        killer.start()

    def close(self) -> None:
        """Kill what still runs and wait until it is gone."""
        with self._lock:
            self._is_closed = True
            for run_id, process in self._going_on.items():
                self._stopped.add(run_id)
                signal_group(process.pid, signal.SIGKILL)
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(timeout=GRACE_SECONDS)

    @staticmethod
    def _kill_if_alive(process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            signal_group(process.pid, signal.SIGKILL)

    def _run(self, task: Task, observer: Observer) -> None:
        try:
            observer.ended(task.run_id, self._outcome(task, observer))
        finally:
            with self._lock:
                self._going_on.pop(task.run_id, None)
                self._stopped.discard(task.run_id)
                self._threads.pop(task.run_id, None)

    def _outcome(self, task: Task, observer: Observer) -> Ended:
        try:
            process = self._start(task)
        except OSError as error:
            return Ended(ending=Ending.NOT_STARTED, message=f"The command does not start: {error}")
        if process is None:
            return Ended(ending=Ending.STOPPED, message="stopped before it began")
        observer.began(task.run_id, process.pid)
        try:
            exit_code = process.wait(timeout=task.timeout_seconds)
            ending = Ending.EXITED
        except subprocess.TimeoutExpired:
            signal_group(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=GRACE_SECONDS)
            ending, exit_code = Ending.TIMED_OUT, -1
        # Like a cluster that is taken down: nothing that the command started stays behind.
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
        with self._lock:
            if ending is Ending.EXITED and task.run_id in self._stopped:
                ending = Ending.STOPPED
        return Ended(ending=ending, exit_code=exit_code, message=last_line(task.log))

    def _start(self, task: Task) -> "subprocess.Popen[bytes] | None":
        task.log.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, task.log.open("wb") as log:
            if self._is_closed or task.run_id in self._stopped:
                return None
            process = subprocess.Popen(
                task.command,
                shell=isinstance(task.command, str),
                cwd=task.cwd,
                env={**os.environ, **task.env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._going_on[task.run_id] = process
            return process


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and all it started; none is left is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def last_line(log: Path) -> str:
    """Return the last non-blank line of a log."""
    lines = [line.strip() for line in tail(log, _TAIL_BYTES).splitlines()]
    return next((line for line in reversed(lines) if line), "")[:_LONGEST_LINE]


def tail(log: Path, size: int) -> str:
    """Return the end of a log, or nothing when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace")
    except OSError:
        return ""

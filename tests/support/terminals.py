"""A command under a terminal of its own, as a person has it: keys in, the screen's text out."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_CODES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[=>()][0-9A-B]?)")
LONGEST_SECONDS = 60.0


class Terminal:
    """Starts a command under a pseudo terminal.

    Args:
        command: What is started.
        folder: Where it is started.
        environment: Its variables.
        size: Columns and lines.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        size: tuple[int, int] = (80, 24),
    ) -> None:
        self._main, self._side = pty.openpty()
        columns, lines = size
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.modes_before = termios.tcgetattr(self._side)
        self.raw = ""
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TERM": "xterm-256color"},
            stdin=self._side,
            stdout=self._side,
            stderr=self._side,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._main)
        os.close(self._side)

    @property
    def text(self) -> str:
        """All that was printed, without what moves a cursor or sets a colour."""
        return _CODES.sub("", self.raw)

    @property
    def modes(self) -> list[object]:
        """The modes of the terminal now: echo, lines, signals."""
        return termios.tcgetattr(self._side)

    def press(self, keys: str) -> None:
        """Send keys."""
        os.write(self._main, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; Ctrl-C is SIGINT."""
        self._process.send_signal(number)

    def wait_for(self, words: str, *, after: int = 0) -> None:
        """Read until words were printed, behind the first so many characters."""
        began = time.monotonic()
        while words not in self.text[after:]:
            assert time.monotonic() - began < LONGEST_SECONDS, f"{words!r} not in {self.text!r}"
            self._read()

    def wait_for_end(self) -> int:
        """Read until the command has ended, and return its exit code."""
        began = time.monotonic()
        while self._process.poll() is None:
            assert time.monotonic() - began < LONGEST_SECONDS, f"it goes on: {self.text!r}"
            self._read()
        while self._read():
            pass
        return self._process.returncode

    def _read(self) -> bool:
        """Read what is there, a few thousand characters at most; return whether anything was."""
        readable, _, _ = select.select([self._main], [], [], 0.1)
        if readable:
            self.raw += os.read(self._main, 65_536).decode("utf-8", "replace")
        return bool(readable)

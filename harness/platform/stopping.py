"""Ends a process on Ctrl-C or SIGTERM: at once for the person, and as safely as a crash.

A thread of its own gets the signals, because the main thread may be inside native code for long.
It prints one line, cancels what runs in Spark, and ends the process itself when the main thread
does not come back or when a second signal comes. The main thread is broken off by an exception,
except where it records the answers of calls that are under way.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Self

#: What a shell expects of a process that Ctrl-C has ended; after SIGTERM it is the same.
INTERRUPTED = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: The main thread may take so long to unwind; after that the process ends as if it was killed.
_LONGEST_SECONDS = 20.0
#: A job that Spark starts while it is being stopped is cancelled in turn.
_CANCEL_EVERY_SECONDS = 0.3
_SHOW_CURSOR = "\x1b[?25h"
_QUIET_TRACKER = "ignore:resource_tracker:UserWarning"


class Interrupted(KeyboardInterrupt):
    """The process is to end; what is recorded stays, and the next tick continues from it."""


class Activity:
    """What the process is doing now, in words, for the progress line and for the line of a stop."""

    def __init__(self) -> None:
        self.words = "getting ready"
        self._listeners: list[Callable[[str], object]] = []

    def begin(self, words: str) -> None:
        """Record the phase that begins, or how far it has come."""
        self.words = words
        for listener in tuple(self._listeners):
            listener(words)

    @contextlib.contextmanager
    def heard_by(self, listener: Callable[[str], object]) -> Iterator[None]:
        """Call a function with the words of each phase, for the length of a ``with`` block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)


class Stop:
    """Whether the process is to end; the first SIGINT or SIGTERM sets it, a second one ends it.

    As a context manager it handles the signals of the process; without that it is never set.

    Args:
        leave: Ends the process at once, with an exit code.
    """

    def __init__(self, *, leave: Callable[[int], object] = os._exit) -> None:
        self.is_wanted = False
        self.activity = Activity()
        #: Called repeatedly from a thread of its own after the first signal.
        self.cancel: Callable[[], object] = lambda: None
        self._leave = leave
        self._finishing: str | None = None
        self._is_over = threading.Event()
        self._before: dict[signal.Signals, object] = {}
        self._listener: threading.Thread | None = None
        self._stderr = self._read = self._write = self._wakeup = -1

    def __enter__(self) -> Self:
        """Handle the signals from here on."""
        if threading.current_thread() is not threading.main_thread():
            return self
        # dbt's locks are removed by Python's resource tracker, a process that outlives this one
        # and that would print a warning after our last line.
        if _QUIET_TRACKER not in sys.warnoptions:
            sys.warnoptions.append(_QUIET_TRACKER)
        # Spark's start points descriptor 2 elsewhere for a while.
        self._stderr = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self._listener = threading.Thread(target=self._listen, name="stop", daemon=True)
        self._listener.start()
        self.listen()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the signals be as they were before."""
        if self._listener is None:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        signal.set_wakeup_fd(self._wakeup)
        self._is_over.set()
        os.write(self._write, b"\0")
        # The line is printed before anything that follows.
        self._listener.join()
        self._listener = None
        for descriptor in (self._stderr, self._read, self._write):
            os.close(descriptor)

    def listen(self) -> None:
        """Handle the signals again: a Spark that starts in the main thread takes SIGINT for itself.

        In any other thread this does nothing, and there is nothing to do.
        """
        if self._listener is not None and threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                signal.signal(number, self._break_off)

    @contextlib.contextmanager
    def finishing(self, words: str) -> Iterator[None]:
        """Let what is inside end before the main thread is broken off.

        Args:
            words: What is being finished, for the line.

        Raises:
            Interrupted: A signal came meanwhile.
        """
        self._finishing = words
        try:
            yield
        finally:
            # The line about the signal may come later than the end of this.
            if not self.is_wanted:
                self._finishing = None
        self.check()

    def check(self) -> None:
        """Break off here if a signal came.

        Raises:
            Interrupted: It did.
        """
        if self.is_wanted:
            raise Interrupted

    def _break_off(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal in the main thread; the other thread has been woken by it, too."""
        self.is_wanted = True
        if self._finishing is None:
            raise Interrupted

    def _listen(self) -> None:
        """Read the number of each signal as it comes, whatever the main thread does."""
        began: float | None = None
        while True:
            # Only the first wait has no limit.
            left = None if began is None else max(0.0, began + _LONGEST_SECONDS - time.monotonic())
            readable, _, _ = select.select([self._read], [], [], left)
            came = os.read(self._read, 1)[0] if readable else None
            if came == 0:
                return
            if came is None or (came in _SIGNALS and began is not None):
                self._end()
            elif came in _SIGNALS:
                began = time.monotonic()
                self.is_wanted = True
                self._print(self._sentence())
                threading.Thread(target=self._cancel, name="cancel", daemon=True).start()

    def _sentence(self) -> str:
        doing = self._finishing
        what = f"stopping: finishing {doing}" if doing else f"stopping while {self.activity.words}"
        return f"{what}; no further job is started (Ctrl-C again ends at once)\n"

    def _cancel(self) -> None:
        while not self._is_over.is_set():
            # The session may be half started, or gone already.
            with contextlib.suppress(Exception):
                self.cancel()
            self._is_over.wait(_CANCEL_EVERY_SECONDS)

    def _end(self) -> None:
        self._print("stopped at once; the next tick continues from what is recorded\n")
        self._leave(INTERRUPTED)

    def _print(self, sentence: str) -> None:
        is_terminal = os.isatty(self._stderr)
        # A progress line may stand there, with the cursor hidden.
        text = f"\r\x1b[K{_SHOW_CURSOR}{sentence}" if is_terminal else sentence
        with contextlib.suppress(OSError):
            os.write(self._stderr, text.encode())

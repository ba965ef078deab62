"""Runs ``status --watch``: reads again and again, draws, and follows the keys of a person."""

import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.text import Text

from harness.cli.common import interruptible, print_json, print_line, settings_of_project
from harness.cli.views.terminal import answers
from harness.cli.views.watch import Screen, Snapshot, captured, keys_in
from harness.errors import HeartbeatError
from harness.platform.clock import Clock

if TYPE_CHECKING:
    from harness.context import Context

#: How often the screen checks for a key or for something newly read.
_POLL_SECONDS = 0.2
#: Events of this time are shown.
_EVENTS_OF = timedelta(hours=1)
_MOST_EVENTS = 50
#: A read that is under way when the screen is closed may take so long to end.
_LONGEST_SECONDS = 5.0


def watch(every: timedelta, clock: Clock, *, every_job: bool, as_json: bool) -> None:
    """Show the status until a person ends it.

    Without a terminal, or with ``as_json``, one block after the other is printed.

    Args:
        every: How often it is read.
        clock: Waits.
        every_job: Show every job in a plain block.
        as_json: Print one JSON object a line.
    """
    with interruptible("stopped"):
        if sys.stdin.isatty() and sys.stdout.isatty() and not as_json:
            _watch_on_terminal(every.total_seconds())
            return
        while True:
            _print_block(every_job=every_job, as_json=as_json)
            clock.sleep(every.total_seconds())


def _print_block(*, every_job: bool, as_json: bool) -> None:
    from harness.cli.views.status import Page
    from harness.inspect import status as shown

    try:
        with _reader() as context:
            status = shown.read_status(context, every_run=as_json)
    except HeartbeatError as error:
        # Such as a table that is replaced now: the next block has it.
        print_line(f"error: {error}", err=True)
        return
    if as_json:
        print_json(shown.as_json(status))
    else:
        Page(answers(), status, every_job=every_job).show()
        print_line("")
    sys.stdout.flush()


@contextmanager
def _reader() -> "Iterator[Context]":
    """Give what reads once: files, tables and settings as they are now."""
    from harness.context import Context
    from harness.tick.install import require_state

    context = Context(settings_of_project(may_quarantine=True), os.environ)
    try:
        require_state(context)
        yield context
    finally:
        context.close()


def _read() -> Snapshot:
    from harness.inspect.listings import list_upstreams
    from harness.inspect.status import read_status
    from harness.store.queries import folded_through
    from harness.toolkit.changes.search import find, question_of

    with _reader() as context:
        status = read_status(context, every_run=True)
        compacted = folded_through(context.store, status.decision)
        since = question_of(None, {"start": status.now - _EVENTS_OF, "by": "registration"})
        return Snapshot(
            status=status,
            upstreams=list_upstreams(context.store, folded_through=compacted),
            events=find(context.store, since)[-_MOST_EVENTS:],
        )


def _explained(job_id: int, width: int) -> list[Text]:
    from harness.cli.views.explain import show
    from harness.inspect.job_history import history_of

    with _reader() as context:
        now: datetime = context.clock.now()
        history = history_of(context.store, job_id, at=now, is_now=True)
    return captured(width, lambda console: show(console, history))


class _Reading:
    """Reads in a thread of its own, so that keys are answered at once.

    Args:
        every: How many seconds lie between two reads.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="watch", daemon=True)
        #: What was read last, and why the last read failed.
        self.snapshot: Snapshot | None = None
        self.problem = ""

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End with the read that is under way."""
        self._is_over.set()
        if self._thread.ident is not None:
            self._thread.join(_LONGEST_SECONDS)

    def _go_on(self) -> None:
        while not self._is_over.is_set():
            try:
                self.snapshot = _read()
                self.problem = ""
            except HeartbeatError as error:
                self.problem = str(error)
            self._is_over.wait(self._every)


def _watch_on_terminal(every: float) -> None:
    # What cannot be read at all is reported before the screen is taken.
    screen = Screen(snapshot=_read())
    reading, console = _Reading(every), answers()

    def draw() -> Group:
        lines = screen.lines(console.width, console.height)
        for each in lines:
            each.truncate(console.width, overflow="ellipsis")
        return Group(*lines)

    def explain(job_id: int) -> Sequence[Text]:
        return _explained(job_id, console.width)

    live = Live(draw(), console=console, screen=True, auto_refresh=False)
    with _keyboard() as keys:
        try:
            live.start(refresh=True)
            reading.start()
            while not screen.is_over:
                for key in keys_in(keys(_POLL_SECONDS)):
                    screen = screen.press(key, explain)
                screen = screen.renewed(reading.snapshot, reading.problem)
                live.update(draw(), refresh=True)
        finally:
            live.stop()
            reading.stop()


@contextmanager
def _keyboard() -> Iterator[Callable[[float], bytes]]:
    """Give what waits for keys, in which alone a signal breaks off; the terminal is restored.

    The screen of `rich` cannot be left when a signal breaks off while it is taken. A second
    signal breaks off at once.
    """
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    signals: list[int] = []

    def record(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        if len(signals) > 1:
            raise KeyboardInterrupt

    def pressed(seconds: float) -> bytes:
        readable, _, _ = select.select([descriptor], [], [], seconds)
        if signals:
            raise KeyboardInterrupt
        # Without any data, the terminal is gone.
        return (os.read(descriptor, 1024) or b"q") if readable else b""

    handlers = {each: signal.signal(each, record) for each in (signal.SIGINT, signal.SIGTERM)}
    tty.setcbreak(descriptor)
    try:
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for each, handler in handlers.items():
            signal.signal(each, handler)

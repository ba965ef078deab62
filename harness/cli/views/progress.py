"""Shows what is going on: the phase at work, and a bar while many upstreams are read.

A terminal gets one line that changes. Elsewhere what takes longer than a moment gets a plain line
per phase, so that a quick tick of a scheduler writes nothing.
"""

import threading
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars

from harness.platform.masking import masked
from harness.platform.stopping import Activity
from harness.platform.text import escaped
from harness.sense.probe import ProbeResult

#: Fewer upstreams than this are read before a bar has been drawn.
BAR_FROM = 50
#: A phase that is over before gets no plain line.
_MOMENT_SECONDS = 2.0
#: One that goes on gets another line after so long.
_STILL_SECONDS = 5.0


class PlainLines:
    """Decides which plain lines are written, and when.

    Args:
        words: The phase at the start.
        now: A monotonic instant, in seconds.
    """

    def __init__(self, words: str, now: float) -> None:
        self._words = self._written = words
        self._since = self._written_at = now
        self._began = now
        self._has_written = False

    def heard(self, words: str, now: float) -> None:
        """Record what is at work now."""
        if _phase(words) != _phase(self._words):
            self._since = now
        self._words = words

    def due(self, now: float) -> str | None:
        """Return the line to write now; nothing while there is none."""
        if now - self._since < _MOMENT_SECONDS:
            return None
        is_new = not self._has_written or _phase(self._words) != _phase(self._written)
        if not is_new and now - self._written_at < _STILL_SECONDS:
            return None
        self._written, self._written_at, self._has_written = self._words, now, True
        return f"{self._words} ... {now - self._began:.0f} s"


class Progress:
    """What the harness is doing, on the screen for the length of a ``with`` block.

    Args:
        console: Where it is shown.
        activity: What is at work.
        is_shown: False keeps quiet.
    """

    def __init__(self, console: Console, activity: Activity, *, is_shown: bool = True) -> None:
        self._console = console
        self._activity = activity
        self._is_plain = is_shown and not console.is_terminal
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not (is_shown and console.is_terminal),
        )
        self._results = Bars(
            TextColumn("  sensing"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=self._bars.disable,
        )
        self._now = self._bars.add_task(_shown(activity.words), total=None)
        self._looked = self._results.add_task("", total=0)
        self._lines = PlainLines(activity.words, time.monotonic())
        self._is_over = threading.Event()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Begin to show."""
        self._stack.enter_context(self._activity.heard_by(self._hear))
        self._bars.start()
        if self._is_plain:
            writer = threading.Thread(target=self._write_lines, name="progress", daemon=True)
            writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._stack.close()
        self._results.stop()
        self._bars.stop()

    def _hear(self, words: str) -> None:
        self._lines.heard(words, time.monotonic())
        self._bars.update(self._now, description=_shown(words))

    def _write_lines(self) -> None:
        while not self._is_over.wait(0.5):
            line = self._lines.due(time.monotonic())
            if line:
                self._console.print(_shown(line), soft_wrap=True)

    def on_plan(self, count: int) -> None:
        """Set the number of results to expect."""
        self._results.reset(self._looked, total=count)
        if count > BAR_FROM:
            self._bars.stop()
            self._results.start()

    def on_result(self, result: ProbeResult) -> None:
        """Count a result."""
        self._results.advance(self._looked)
        if self._results.finished:
            self._results.stop()
            self._bars.start()


def _phase(words: str) -> str:
    """Return the words of a phase without how far it has come."""
    return words.partition(" (")[0]


def _shown(words: str) -> str:
    return escaped(masked(words))[:100]

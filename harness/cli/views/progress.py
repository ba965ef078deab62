"""Shows what is going on: the phase at work, how far it has come, and for how long.

A terminal gets one line that changes. Elsewhere what takes longer than a moment gets a plain line
per phase, and one more while it goes on, so that a quick tick of a scheduler writes nothing. The
seconds of a plain line are those since the command began.
"""

import threading
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from harness.platform.masking import masked
from harness.platform.stopping import Activity
from harness.platform.text import escaped
from harness.sense.probe import ProbeResult

#: Fewer upstreams than this are read before a bar has been drawn.
BAR_FROM = 50
#: A phase that is over before gets no plain line of its own.
_MOMENT_SECONDS = 2.0
#: How often a plain line may become due, and after how long without one it is.
_POLL_SECONDS = 0.5
_STILL_SECONDS = 4.0


class PlainLines:
    """Decides which plain lines are written, and when.

    Args:
        words: The phase at the start.
        now: A monotonic instant, in seconds.
        began: When the command began.
    """

    def __init__(self, words: str, now: float, *, began: float | None = None) -> None:
        self._words = words
        self._written: str | None = None
        self._since = self._written_at = now
        self._began = now if began is None else began

    def heard(self, words: str, now: float) -> None:
        """Record what is at work now."""
        if phase_of(words) != phase_of(self._words):
            self._since = now
        self._words = words

    def due(self, now: float) -> str | None:
        """Return the line to write now; nothing while there is none."""
        is_new = self._written is None or phase_of(self._words) != phase_of(self._written)
        is_due = is_new and now - self._since >= _MOMENT_SECONDS
        if not is_due and now - self._written_at < _STILL_SECONDS:
            return None
        self._written, self._written_at = self._words, now
        return f"{self._words} ... {now - self._began:.0f} s"


class _Seconds(ProgressColumn):
    """The seconds of the phase, and those since the command began.

    Args:
        began: When the command began.
    """

    def __init__(self, began: float) -> None:
        super().__init__()
        self._began = began

    def render(self, task: Task) -> Text:
        """Return the seconds as they are now."""
        since = task.fields.get("since", self._began)
        now = time.monotonic()
        return Text(f"{now - since:.0f} s, {now - self._began:.0f} s in all", style="dim")


class Progress:
    """What the harness is doing, on the screen for the length of a ``with`` block.

    Args:
        console: Where it is shown.
        activity: What is at work.
        is_shown: False keeps quiet.
        began: When the command began (`time.monotonic`); now, if that is not given.
    """

    def __init__(
        self,
        console: Console,
        activity: Activity,
        *,
        is_shown: bool = True,
        began: float | None = None,
    ) -> None:
        began = time.monotonic() if began is None else began
        self._console = console
        self._activity = activity
        self._is_plain = is_shown and not console.is_terminal
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            _Seconds(began),
            console=console,
            transient=True,
            disable=not (is_shown and console.is_terminal),
        )
        self._results = Bars(
            TextColumn("  sensing"),
            BarColumn(),
            MofNCompleteColumn(),
            _Seconds(began),
            console=console,
            transient=True,
            disable=self._bars.disable,
        )
        self._words = activity.words
        self._since = time.monotonic()
        self._now = self._bars.add_task(_shown(self._words), total=None, since=self._since)
        self._looked = self._results.add_task("", total=0, since=self._since)
        self._lines = PlainLines(self._words, self._since, began=began)
        self._expected = self._done = 0
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
        now = time.monotonic()
        if phase_of(words) != phase_of(self._words):
            self._since = now
        self._words = words
        self._lines.heard(words, now)
        self._bars.update(self._now, description=_shown(words), since=self._since)

    def _write_lines(self) -> None:
        while not self._is_over.wait(_POLL_SECONDS):
            line = self._lines.due(time.monotonic())
            if line:
                self._console.print(_shown(line), soft_wrap=True)

    def on_plan(self, count: int) -> None:
        """Set the number of results to expect."""
        self._expected, self._done = count, 0
        self._results.reset(self._looked, total=count, since=self._since)
        if count > BAR_FROM:
            self._bars.stop()
            self._results.start()
        self._count()

    def on_result(self, result: ProbeResult) -> None:
        """Count a result."""
        self._done += 1
        self._results.advance(self._looked)
        self._count()
        if self._results.finished:
            self._results.stop()
            self._bars.start()

    def _count(self) -> None:
        """Show beside the phase how far it has come."""
        if self._expected > 1:
            self._hear(f"{phase_of(self._words)} ({self._done:,} of {self._expected:,})")


def phase_of(words: str) -> str:
    """Return the words of a phase without how far it has come."""
    return words.partition(" (")[0]


def _shown(words: str) -> str:
    return escaped(masked(words))[:100]

"""Shows on a terminal what is going on: the step at work, and a bar while many upstreams are read.

It writes nothing where nobody watches.
"""

import logging
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bars

from harness.secrets import masked
from harness.sense.types import Look
from harness.text import escaped

#: Fewer upstreams than this are read before a bar has been drawn.
BAR_FROM = 50


class Progress(logging.Handler):
    """A line that says what the harness is doing, for the length of a ``with`` block.

    Args:
        console: Where it is shown; nothing is unless it is a terminal.
        is_shown: False keeps quiet on a terminal, too.
    """

    def __init__(self, console: Console, *, is_shown: bool = True) -> None:
        super().__init__(level=logging.INFO)
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not (is_shown and console.is_terminal),
        )
        self._looks = Bars(
            TextColumn("  sensing"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=self._bars.disable,
        )
        self._now = self._bars.add_task("", total=None)
        self._looked = self._looks.add_task("", total=0)

    def __enter__(self) -> Self:
        """Begin to show."""
        logging.getLogger("harness").addHandler(self)
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        logging.getLogger("harness").removeHandler(self)
        self._looks.stop()
        self._bars.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Show what the log has just been told."""
        if record.levelno == logging.INFO:
            self._bars.update(self._now, description=escaped(masked(record.getMessage()))[:100])

    def on_plan(self, count: int) -> None:
        """Learn how many looks are to come."""
        self._looks.reset(self._looked, total=count)
        if count > BAR_FROM:
            self._bars.stop()
            self._looks.start()

    def on_look(self, look: Look) -> None:
        """Count a look."""
        self._looks.advance(self._looked)
        if self._looks.finished:
            self._looks.stop()
            self._bars.start()

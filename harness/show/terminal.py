"""The two streams of a person's terminal, and tables that keep their shape on it.

Colour only on a terminal and never against NO_COLOR; text from outside is never taken for markup
and cannot move the cursor.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.logs import escaped

#: A table that goes into a file or a pipe has no terminal to fit into.
_WIDTH_WITHOUT_TERMINAL = 200


def console_for(stream: TextIO) -> Console:
    """Return a console that writes to a stream."""
    is_terminal = stream.isatty()
    width = None if is_terminal or "COLUMNS" in os.environ else _WIDTH_WITHOUT_TERMINAL
    return Console(
        file=stream,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        # Piped, it is plain text, whatever FORCE_COLOR or a CI system would have.
        force_terminal=is_terminal,
    )


def answers() -> Console:
    """Return the console for what a command was asked."""
    return console_for(sys.stdout)


def remarks() -> Console:
    """Return the console for progress and errors."""
    return console_for(sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    title: str
    is_number: bool = False
    #: Gives up its place first when the terminal is narrow: cut, with an ellipsis.
    may_shrink: bool = False
    #: Goes on in further lines rather than being cut.
    may_wrap: bool = False


def line(*parts: str | tuple[str, str]) -> Text:
    """Return one line of text; a part may be ``(text, style)``."""
    text = Text(overflow="fold")
    for part in parts:
        said, style = part if isinstance(part, tuple) else (part, "")
        text.append(escaped(said), style=style)
    return text


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str | tuple[str, str]]],
    *,
    has_header: bool = True,
) -> Table:
    """Return aligned columns without borders, set in by two spaces."""
    grid = Table(
        box=None,
        show_header=has_header,
        header_style="dim",
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    grid.add_column("", width=0)
    for column in columns:
        grid.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            no_wrap=not column.may_wrap,
            overflow="fold" if column.may_wrap else "ellipsis",
            ratio=None,
            min_width=12 if column.may_shrink or column.may_wrap else None,
        )
    for row in rows:
        grid.add_row("", *(line(cell) for cell in row))
    return grid

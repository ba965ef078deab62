"""The two streams of a person's terminal, and tables that keep their shape on it.

Colour only on a terminal and never against NO_COLOR; text from outside is never taken for markup
and cannot move the cursor.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.common import as_called
from harness.platform.masking import masked
from harness.platform.text import escaped

#: A table that goes into a file or a pipe has no terminal to fit into.
_WIDTH_WITHOUT_TERMINAL = 200
#: No column is cut to less.
_NARROWEST = 12


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
    """Return the console for the result of a command."""
    return console_for(sys.stdout)


def remarks() -> Console:
    """Return the console for progress and errors."""
    return console_for(sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table; one that may neither shrink nor wrap always keeps its width."""

    title: str
    is_number: bool = False
    #: Is cut, with an ellipsis, when the terminal is narrow.
    may_shrink: bool = False
    #: Goes on in further lines when the terminal is narrow.
    may_wrap: bool = False
    #: Is cut at its start, as a path is known by its end.
    keeps_end: bool = False

    @property
    def is_elastic(self) -> bool:
        """True for a column that gets less room than it needs when the terminal is narrow."""
        return self.may_shrink or self.may_wrap or self.keeps_end


Cell = str | tuple[str, str]


def line(*parts: Cell) -> Text:
    """Return one line of text; a part may be ``(text, style)``."""
    text = Text()
    for part in parts:
        message, style = part if isinstance(part, tuple) else (part, "")
        text.append(escaped(masked(as_called(message))), style=style)
    return text


def print_sentence(console: Console, *parts: Cell) -> None:
    """Print prose: wrapped between words on a terminal, as one line elsewhere."""
    console.print(line(*parts), soft_wrap=not console.is_terminal)


def print_table(
    console: Console,
    columns: Sequence[Column],
    rows: Iterable[Sequence[Cell]],
    *,
    has_header: bool = True,
) -> None:
    """Print aligned columns without borders, set in by two spaces, within the console's width."""
    cells = [[line(cell) for cell in row] for row in rows]
    grid = Table(
        box=None, show_header=has_header, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0)
    )
    grid.add_column("", width=0)
    widths = _widths(columns, cells, console.width)
    for column, width in zip(columns, widths, strict=True):
        grid.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            no_wrap=not column.may_wrap,
            overflow="fold" if column.may_wrap else "ellipsis",
            width=width,
        )
    for row in cells:
        fitting = (
            _end_of(cell, width) if column.keeps_end else cell
            for cell, column, width in zip(row, columns, widths, strict=True)
        )
        grid.add_row("", *fitting)
    console.print(grid)


def _end_of(cell: Text, width: int) -> Text:
    """Cut a cell at its start, at the border of a part of a path where there is one."""
    if cell.cell_len <= width:
        return cell
    rest = cell[len(cell) - max(1, width - 1) :]
    border = rest.plain.find("/")
    # Less than half of the room is left empty for a clean border.
    if 0 < border <= len(rest) // 2:
        rest = rest[border:]
    return Text("…", style=cell.style).append_text(rest)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], available: int) -> list[int]:
    """Give every column what it needs; where that is too much, the elastic ones share the rest."""
    needed = [
        max([cell_len(column.title), *(row[place].cell_len for row in rows)])
        for place, column in enumerate(columns)
    ]
    left = available - 2 * (len(columns) + 1) - sum(needed)
    elastic = [place for place, each in enumerate(columns) if each.is_elastic]
    room = left + sum(needed[place] for place in elastic)
    # The narrowest first: what it does not need is the others'.
    for number, place in enumerate(sorted(elastic, key=lambda place: needed[place])):
        fair = max(_NARROWEST, room // (len(elastic) - number))
        needed[place] = min(needed[place], fair)
        room -= needed[place]
    return needed

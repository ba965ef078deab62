"""Reads and writes the small JSON files of the state directory.

A file that is missing, cut off or of another version counts as absent: what it holds can be
computed again. A reader to which that matters catches ``UNREADABLE`` and raises its own sentence.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from harness.platform.files import write_atomically

T = TypeVar("T")

#: What parsing JSON that others wrote raises, whatever it holds.
MALFORMED = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
UNREADABLE = (OSError, *MALFORMED)


def load(path: Path, parse: Callable[[Any], T]) -> T | None:
    """Return what ``parse`` makes of a file's content; nothing without a readable file."""
    try:
        return parse(json.loads(path.read_text()))
    except UNREADABLE:
        return None


def save(
    path: Path,
    content: object,
    *,
    default: Callable[[Any], object] | None = None,
    is_lasting: bool = False,
) -> None:
    """Write a file, complete or not at all.

    Args:
        path: The file; its folder is made.
        content: What it holds.
        default: Converts what JSON does not support.
        is_lasting: It must survive a power loss.

    Raises:
        StateError: It cannot be written.
    """
    write_atomically(path, json.dumps(content, default=default), is_lasting=is_lasting)

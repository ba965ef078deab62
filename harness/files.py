"""Writes the small files of the state folder: each whole or not at all, and told if it cannot be.

A full or read-only disk is one sentence with the way out, whichever file it is that meets it first.
"""

import os
from contextlib import suppress
from pathlib import Path

from harness.durable import write_durably
from harness.errors import StateError


def write_whole(path: Path, text: str, *, is_lasting: bool = False) -> None:
    """Write a file beside its place and rename it.

    Args:
        path: The file; its folder is made.
        text: What it shall hold.
        is_lasting: It must still be there, and whole, after the power fails.

    Raises:
        StateError: It cannot be written.
    """
    try:
        if is_lasting:
            write_durably(path, text)
        else:
            _replace(path, text)
    except OSError as error:
        raise unwritable(path, error) from error


def _replace(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        part.write_text(text)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it is there.

    Raises:
        OSError: It cannot be made.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def unwritable(path: Path, error: OSError) -> StateError:
    """Return the error for a file that cannot be written."""
    reason = (error.strerror or str(error)).lower()
    return StateError(f"{path} cannot be written ({reason}): make room or make it writable")

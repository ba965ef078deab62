"""Writes small files whole or not at all, and durably where a power loss must not lose them.

A name is an entry of its folder, so a durable write forces the folder to the disk, too. A full or
read-only disk is one sentence with the way out.
"""

import contextlib
import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from harness.errors import StateError


def write_atomically(path: Path, text: str, *, is_lasting: bool = False) -> None:
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
        part.write_text(text, encoding="utf-8")
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


class Disk(Protocol):
    """The calls to the operating system that matter here; the module ``os`` has them."""

    def mkdir(self, path: Path, mode: int, /) -> None:
        """Make a folder."""
        ...

    def open(self, path: Path, flags: int, mode: int = ..., /) -> int:
        """Open a file or a folder."""
        ...

    def write(self, descriptor: int, content: bytes, /) -> int:
        """Write as much as is taken, and return how much that was."""
        ...

    def fsync(self, descriptor: int, /) -> None:
        """Wait until the disk has it."""
        ...

    def close(self, descriptor: int, /) -> None:
        """Close what was opened."""
        ...

    def rename(self, source: Path, target: Path, /) -> None:
        """Rename a file, replacing any other."""
        ...


def write_durably(path: Path, text: str, *, disk: Disk = os) -> None:
    """Write a file, and its folder if need be, so that both outlive a power loss.

    Raises:
        OSError: It cannot be written. Nothing has the name, or the file that had it before; if the
            new file has it all the same, the error's message states that.
    """
    _make_folder(path.parent, disk)
    part = path.with_name(f".{path.name}.part")
    is_new = not os.path.lexists(path)
    try:
        _write(part, text.encode(), disk)
        disk.rename(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    try:
        force(path.parent, disk=disk)
    except OSError as error:
        if is_new:
            with contextlib.suppress(OSError):
                path.unlink()
        if not os.path.lexists(path):
            raise
        reason = error.strerror or str(error)
        words = f"{reason}; the new file is in place, but a power loss may undo it"
        raise OSError(error.errno or errno.EIO, words) from error


def force(path: Path, *, disk: Disk = os) -> None:
    """Force a file, or the names in a folder, to the disk.

    Raises:
        OSError: The disk does not take it.
    """
    descriptor = disk.open(path, os.O_RDONLY)
    try:
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)


def _make_folder(folder: Path, disk: Disk) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent, disk)
    # Another process may have made it meanwhile.
    with contextlib.suppress(FileExistsError):
        disk.mkdir(folder, 0o700)
    force(folder.parent, disk=disk)


def _write(path: Path, content: bytes, disk: Disk) -> None:
    descriptor = disk.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        while content:
            content = content[disk.write(descriptor, content) :]
        disk.fsync(descriptor)
    finally:
        disk.close(descriptor)

"""Writes a file that a power loss leaves whole: forced to the disk first, and only then named.

A name is an entry of its folder, so the folder is forced, too. Files that are only a shortcut to
what the ledgers say need none of this.
"""

import contextlib
import errno
import os
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """The calls to the operating system that matter here; the module ``os`` has them."""

    def mkdir(self, path: Path, mode: int, /) -> None:
        """Make a folder."""
        ...

    def open(self, path: Path, flags: int, mode: int = ..., /) -> int:
        """Open a file or a folder."""
        ...

    def write(self, descriptor: int, content: bytes, /) -> int:
        """Write as much as is taken, and tell how much that was."""
        ...

    def fsync(self, descriptor: int, /) -> None:
        """Wait until the disk has it."""
        ...

    def close(self, descriptor: int, /) -> None:
        """Close what was opened."""
        ...

    def rename(self, source: Path, target: Path, /) -> None:
        """Give a file another name, whoever had it before."""
        ...


def write_durably(path: Path, text: str, *, disk: Disk = os) -> None:
    """Write a file, and its folder if need be, so that both outlive a power loss.

    Raises:
        OSError: It cannot be written. Nothing has the name, or the file that had it before; if the
            new file has it all the same, the error's words are about that.
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

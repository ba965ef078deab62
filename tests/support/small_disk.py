"""Fills a small disk; the fixture ``small_disk`` mounts it."""

from pathlib import Path


def fill(disk: Path) -> Path:
    """Leave no room on a disk; return the file that takes it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            return filler
    raise AssertionError("the disk has no end")

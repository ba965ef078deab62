"""Reads the commits of a Delta table from its folder, without opening the table.

The log is a folder with one small file for each commit, numbered without a gap. An empty file is a
commit to every reader, one that changes nothing: a reader of the table cannot detect that rows
are missing.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from harness.platform.delta_log import actions_in, commit_name, version_of
from harness.platform.files import force


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One file of a table's log."""

    path: Path
    size: int
    modified_ns: int

    @property
    def version(self) -> int:
        """The number of the commit."""
        return _version_of(self.path.name)

    @property
    def fingerprint(self) -> str:
        """Name the commit: its version, size and time."""
        return f"{self.path.name}:{self.size}:{self.modified_ns}"


def log_of(table: Path) -> Path:
    """Return the folder of a table's log."""
    return table / "_delta_log"


def newest_commit(table: Path) -> Commit | None:
    """Return the newest commit; nothing when there is none, or no such table."""
    log = log_of(table)
    try:
        commits = (name for name in os.listdir(log) if version_of(name) is not None)
        name = max(commits, default=None)
        if name is None:
            return None
        found = (log / name).stat()
    except OSError:
        return None
    return Commit(path=log / name, size=found.st_size, modified_ns=found.st_mtime_ns)


def has_checkpoint(commit: Commit) -> bool:
    """Return whether readers need not read a commit, because a checkpoint contains it."""
    return any(commit.path.parent.glob(f"{commit.path.stem}.checkpoint*"))


def version_in(fingerprint: str) -> int:
    """Return the version that a fingerprint names.

    Raises:
        ValueError: It is no fingerprint of a table in a folder.
    """
    return _version_of(fingerprint.partition(":")[0])


def _version_of(name: str) -> int:
    version = version_of(name)
    if version is None:
        raise ValueError(f"'{name}' is not the name of a commit")
    return version


def commit_with(table: Path, mark: str, *, after: int) -> Path | None:
    """Return the commit that carries a mark; nothing when none after a version does."""
    version = after + 1
    while (path := log_of(table) / commit_name(version)).is_file():
        if mark in path.read_text(errors="replace"):
            return path
        version += 1
    return None


def parts_of(table: Path, commit: Path) -> list[Path]:
    """Return what has to reach the disk for a commit to last, in this order: its rows first."""
    rows = [table / unquote(path) for path in _added(commit)]
    # A partition's rows lie in a folder of their own, whose name is an entry of the one above.
    folders = dict.fromkeys(
        folder for row in rows for folder in row.parents if table in folder.parents
    )
    return [*rows, *folders, table, commit, commit.parent]


def force_table(table: Path, force: Callable[[Path], None] = force) -> None:
    """Force what stands for older files to the disk: the newest commit and the newest checkpoint.

    Raises:
        OSError: The disk does not take it.
    """
    newest = newest_commit(table)
    log = log_of(table)
    checkpoint = max(log.glob("*.checkpoint*.parquet"), default=None)
    parts = [] if newest is None else parts_of(table, newest.path)
    for part in (*parts, *([checkpoint, log] if checkpoint else [])):
        force(part)


def _added(commit: Path) -> Iterable[str]:
    added = (action.get("add") for action in actions_in(commit.read_bytes()))
    return (each["path"] for each in added if each)

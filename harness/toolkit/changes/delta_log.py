"""Reads the commits of a Delta table between two versions: which files came, went and are needed.

It reports what stands in the log and on the disk; how to read the rows is decided in ``delta.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from harness.errors import ProbeFailedError
from harness.platform import delta_log
from harness.platform.delta_log import FileAction, commit_path, parse_commit
from harness.platform.json_file import MALFORMED
from harness.platform.storage import Storage, normalized

#: A commit larger than this is not read.
_LIMIT_BYTES = 1024 * 1024 * 1024
#: Delta's spelling of bytes as text (ZeroMQ's Z85).
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_UUID_LENGTH = 20


class LogGoneError(ProbeFailedError):
    """Requested commits are not in the log any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A data file as a commit names it, with the deletion vector that it then had."""

    path: str
    partition: tuple[tuple[str, str | None], ...]
    changes_data: bool
    has_vector: bool
    #: The file that holds the vector; ``None``: there is none, or the log has it itself.
    vector_path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one version did."""

    version: int
    added: tuple[File, ...]
    removed: tuple[File, ...]
    #: Files of the change data feed.
    feed: tuple[str, ...]
    #: The schema, if the commit has metadata of the table.
    schema: str | None

    @property
    def changes_data(self) -> bool:
        """Return whether any row may have come, gone or changed."""
        return any(file.changes_data for file in (*self.added, *self.removed))

    @property
    def only_appends(self) -> bool:
        """Return whether no row went."""
        return not any(file.changes_data for file in self.removed)


def read_commits(storage: Storage, table: str, *, after: int, until: int) -> tuple[Commit, ...]:
    """Read all commits after a version, to the newest.

    Args:
        storage: Where the table is.
        table: Its folder.
        after: The version before the first one that is read.
        until: One that has to be there.

    Raises:
        LogGoneError: The log does not have them all.
        ProbeFailedError: A commit is corrupt, or too large.
    """
    commits = []
    version = after + 1
    while (commit := _read(storage, table, version)) is not None:
        commits.append(commit)
        version += 1
    if version <= until:
        raise LogGoneError(f"version {version} is not in its log any more")
    return tuple(commits)


def _read(storage: Storage, table: str, version: int) -> Commit | None:
    path = commit_path(table, version)
    found = storage.stat(path)
    if found is None:
        return None
    if found.length > _LIMIT_BYTES:
        raise ProbeFailedError(f"commit {version} of its log is too large")
    content = storage.read(path, limit=_LIMIT_BYTES)
    try:
        return _commit(table, parse_commit(version, found, content))
    except (*MALFORMED, ProbeFailedError) as error:
        raise ProbeFailedError(f"commit {version} of its log is corrupt") from error


def _commit(table: str, commit: delta_log.Commit) -> Commit:
    return Commit(
        version=commit.version,
        added=tuple(_file(table, file) for file in (*commit.adds, *commit.rearranged_adds)),
        removed=tuple(_file(table, file) for file in (*commit.removes, *commit.rearranged_removes)),
        feed=tuple(absolute(table, path) for path in commit.feed),
        schema=None if commit.metadata is None else str(commit.metadata["schemaString"]),
    )


def _file(table: str, file: FileAction) -> File:
    return File(
        path=absolute(table, file.path),
        partition=tuple((file.partition or {}).items()),
        changes_data=file.changes_data,
        has_vector=file.vector is not None,
        vector_path=None if file.vector is None else vector_path(table, file.vector),
    )


def absolute(table: str, path: str) -> str:
    """Return the whole path of a file that the log names."""
    return normalized(path) if path.startswith("/") or ":/" in path else f"{table}/{path}"


def vector_path(table: str, vector: Mapping[str, Any]) -> str | None:
    """Return the file that holds a deletion vector; ``None`` when the log itself does."""
    kind, where = vector["storageType"], str(vector["pathOrInlineDv"])
    if kind == "p":
        return normalized(where)
    if kind != "u":
        return None
    folder, code = where[:-_UUID_LENGTH], where[-_UUID_LENGTH:]
    name = f"deletion_vector_{UUID(bytes=_from_z85(code))}.bin"
    return f"{table}/{folder}/{name}" if folder else f"{table}/{name}"


def _from_z85(text: str) -> bytes:
    found = bytearray()
    for start in range(0, len(text), 5):
        number = 0
        for letter in text[start : start + 5]:
            number = number * 85 + _Z85.index(letter)
        found += number.to_bytes(4, "big")
    return bytes(found)


def has_new_schema(commits: Sequence[Commit]) -> bool:
    """Return whether two of the commits state different schemas."""
    return len({commit.schema for commit in commits if commit.schema is not None}) > 1


def gone_since(commits: Iterable[Commit]) -> tuple[File, ...]:
    """Return the files that the table had before the commits, and that one of them removed."""
    gone, came = list[File](), set[str]()
    for commit in commits:
        gone += [file for file in commit.removed if file.path not in came]
        came.update(file.path for file in commit.added)
    return tuple(gone)


def missing(storage: Storage, files: Iterable[File]) -> str | None:
    """Name a file that is not on the disk any more, as after VACUUM."""
    for file in files:
        for path in (file.path, file.vector_path):
            if path is not None and storage.stat(path) is None:
                return path.rpartition("/")[2]
    return None


def missing_of_feed(storage: Storage, commits: Iterable[Commit]) -> str | None:
    """Name a file from which the change data feed would be read, and which is not there."""
    for commit in commits:
        lost = (each for each in commit.feed if storage.stat(each) is None)
        name = next(lost, None)
        if name is None and not commit.feed:
            changed = (each for each in (*commit.added, *commit.removed) if each.changes_data)
            name = missing(storage, changed)
        if name is not None:
            return name.rpartition("/")[2]
    return None

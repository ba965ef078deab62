"""Names, lists and reads the commit files of a Delta log; it does not interpret them.

Every reader of a log is here: the sensors, the readers of changed rows, and the store for its
own tables.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from harness.errors import ProbeFailedError
from harness.platform.json_file import MALFORMED
from harness.platform.storage import FileStat, Listed, Storage

#: More than this of one commit is not read: what it did is then reported without its partitions.
COMMIT_LIMIT_BYTES = 64 * 1024 * 1024

_COMMIT_NAME = re.compile(r"^([0-9]{20})\.json$")
_CHECKPOINT_NAME = re.compile(
    r"^([0-9]{20})\.checkpoint\."
    r"(?:parquet|[0-9]{10}\.([0-9]{10})\.parquet|[0-9a-f-]{36}\.(?:json|parquet))$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """One ``add`` or ``remove``."""

    path: str
    #: ``None`` when the writer left them out.
    partition: Mapping[str, str | None] | None
    #: ``False`` where it only rearranges data.
    changes_data: bool = True
    #: Rows that its deletion vector hides; ``None`` when it has no vector.
    deleted_rows: int | None = None
    vector: Mapping[str, Any] | None = None
    stats: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit file."""

    version: int
    fingerprint: FileStat
    digest: str
    info: Mapping[str, Any]
    #: The file actions that change data, and below those that only rearrange it.
    adds: tuple[FileAction, ...]
    removes: tuple[FileAction, ...]
    rearranged_adds: tuple[FileAction, ...]
    rearranged_removes: tuple[FileAction, ...]
    #: Files of the change data feed.
    feed: tuple[str, ...]
    metadata: Mapping[str, Any] | None
    protocol: Mapping[str, Any] | None
    transaction: Mapping[str, Any] | None
    #: Too large to be read to its end.
    is_cut: bool

    @property
    def changes_data(self) -> bool:
        """Return whether any row may have come, gone or changed."""
        return self.is_cut or bool(self.adds) or bool(self.removes)

    @property
    def rearranges(self) -> bool:
        """Return whether it has an ``add`` or ``remove`` that only rearranges data."""
        return bool(self.rearranged_adds or self.rearranged_removes)

    @property
    def timestamp_ms(self) -> int:
        """Return the commit's own time, else the time of its file."""
        own = self.info.get("inCommitTimestamp")
        if isinstance(own, int) and abs(own) < 2**63:
            return int(own)
        return self.fingerprint.mtime_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFolder:
    """The commits and the newest checkpoint of ``_delta_log``; all other files are left out."""

    versions: tuple[int, ...]
    #: Names of the newest checkpoint's files, and its version; empty and -1 when there is none.
    checkpoint: int
    checkpoint_names: tuple[str, ...]

    @property
    def newest(self) -> int:
        """Return the newest version."""
        return self.versions[-1]


def commit_path(table: str, version: int) -> str:
    """Return the path of one commit file."""
    return f"{table}/_delta_log/{commit_name(version)}"


def commit_name(version: int) -> str:
    """Return the name of one commit file."""
    return f"{version:020d}.json"


def version_of(name: str) -> int | None:
    """Return the version that a file of the log commits; nothing when it is no commit."""
    found = _COMMIT_NAME.match(name)
    return int(found.group(1)) if found else None


def arrange(files: Iterable[Listed], *, reported: frozenset[int] = frozenset()) -> LogFolder:
    """Pick the commits and the newest checkpoint out of a listing.

    Args:
        files: What is in the folder.
        reported: Versions reported already; if one of them is there, the log is read as it was
            then, so that the same is reported again.
    """
    files = list(files)
    again = reported.intersection(version_of(file.name) for file in files)
    return _arranged(files, through=max(again, default=None))


def _arranged(files: Iterable[Listed], *, through: int | None) -> LogFolder:
    versions, checkpoints = [], dict[tuple[int, int], list[str]]()
    for file in files:
        if (commit := version_of(file.name)) is not None:
            versions.append(commit)
        elif checkpoint := _CHECKPOINT_NAME.match(file.name):
            version, parts = int(checkpoint.group(1)), int(checkpoint.group(2) or 1)
            checkpoints.setdefault((version, parts), []).append(file.name)
    if through is not None:
        versions = [version for version in versions if version <= through]
    # A checkpoint is of a commit that is there; one beyond the newest is left over from elsewhere.
    # One of several parts is none before the last part is written.
    whole = [
        (version, parts)
        for (version, parts), names in checkpoints.items()
        if version <= max(versions, default=-1) and len(names) >= parts
    ]
    newest = max(whole, default=(-1, 0))
    return LogFolder(
        versions=tuple(sorted(versions)),
        checkpoint=newest[0],
        checkpoint_names=tuple(sorted(checkpoints.get(newest, ()))),
    )


def read_commit(storage: Storage, table: str, version: int) -> Commit | None:
    """Read one commit; ``None`` when it does not exist.

    Raises:
        ProbeFailedError: The file is half-written or no commit.
    """
    path = commit_path(table, version)
    fingerprint = storage.stat(path)
    if fingerprint is None:
        return None
    try:
        content = storage.read(path, limit=COMMIT_LIMIT_BYTES)
    except FileNotFoundError:
        return None
    is_cut = fingerprint.length > COMMIT_LIMIT_BYTES
    if not is_cut and len(content) != fingerprint.length:
        raise ProbeFailedError(f"{path} is being written at this moment; the next probe reads it")
    return parse_commit(version, fingerprint, content, is_cut=is_cut)


def actions_in(content: bytes) -> Iterator[Mapping[str, Any]]:
    """Read the lines of a commit, or of a checkpoint in JSON.

    Raises:
        ValueError: A line is no JSON.
        TypeError: A line is no object.
        RecursionError: A line is nested too deeply.
    """
    return (_object(json.loads(line)) for line in content.splitlines() if line.strip())


def parse_commit(
    version: int, fingerprint: FileStat, content: bytes, *, is_cut: bool = False
) -> Commit:
    """Read the content of a commit file.

    Args:
        version: Its version.
        fingerprint: Its file.
        content: What was read of it.
        is_cut: That is not all, and may end within a line.

    Raises:
        ProbeFailedError: It is half-written or no commit.
    """
    actions = _Actions()
    try:
        for action in actions_in(content[: content.rfind(b"\n") + 1] if is_cut else content):
            actions.take(action)
    except MALFORMED as error:
        message = f"commit {version} of the Delta log is corrupt or half-written"
        raise ProbeFailedError(f"{message}; the next probe reads it again") from error
    if actions.count == 0:
        message = f"commit {version} of the Delta log is empty, so it is half-written"
        raise ProbeFailedError(f"{message}; the next probe reads it again")
    return Commit(
        version=version,
        fingerprint=fingerprint,
        digest=digest_of(content),
        info=actions.info,
        adds=tuple(file for file in actions.adds if file.changes_data),
        removes=tuple(file for file in actions.removes if file.changes_data),
        rearranged_adds=tuple(file for file in actions.adds if not file.changes_data),
        rearranged_removes=tuple(file for file in actions.removes if not file.changes_data),
        feed=tuple(actions.feed),
        metadata=actions.metadata,
        protocol=actions.protocol,
        transaction=actions.transaction,
        is_cut=is_cut,
    )


def digest_of(content: bytes) -> str:
    """Return what distinguishes one commit's text from another of the same size and time."""
    return sha256(content).hexdigest()[:16]


_SINGLE_ACTIONS = {
    "commitInfo": "info",
    "metaData": "metadata",
    "protocol": "protocol",
    "txn": "transaction",
}


class _Actions:
    """Collects the actions of one commit, line by line."""

    def __init__(self) -> None:
        self.count = 0
        self.info: Mapping[str, Any] = {}
        self.metadata: Mapping[str, Any] | None = None
        self.protocol: Mapping[str, Any] | None = None
        self.transaction: Mapping[str, Any] | None = None
        self.adds: list[FileAction] = []
        self.removes: list[FileAction] = []
        self.feed: list[str] = []

    def take(self, action: Mapping[str, Any]) -> None:
        self.count += 1
        for kind, body in action.items():
            if kind in _SINGLE_ACTIONS and body is not None:
                setattr(self, _SINGLE_ACTIONS[kind], _object(body))
            elif kind == "add" and body is not None:
                self.adds.append(_file(body))
            elif kind == "remove" and body is not None:
                self.removes.append(_file(body))
            elif kind == "cdc" and body is not None:
                self.feed.append(unquote(_text(body["path"])))


def _file(body: Mapping[str, Any]) -> FileAction:
    vector = body.get("deletionVector")
    return FileAction(
        path=unquote(_text(body["path"])),
        partition=_values(body.get("partitionValues")),
        changes_data=bool(body["dataChange"]),
        deleted_rows=int(vector["cardinality"]) if vector else None,
        vector=_object(vector) if vector else None,
        stats=None if body.get("stats") is None else _text(body["stats"]),
    )


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise TypeError("an action is not an object")
    return body


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is not text")
    return value


def _values(partition: Any) -> Mapping[str, str | None] | None:
    if partition is None:
        return None
    return {
        name: None if value is None else _text(value) for name, value in _object(partition).items()
    }


class IncompleteLogError(ProbeFailedError):
    """The table uses a feature under which only Spark can determine what its commits did."""


def list_log(storage: Storage, path: str, reported: frozenset[int] = frozenset()) -> LogFolder:
    """List the log folder of a table, as it was when one of these versions was reported.

    Raises:
        ProbeFailedError: There is no folder, or no Delta log with commits in it.
    """
    try:
        folder = arrange(storage.list_files(f"{path}/_delta_log"), reported=reported)
    except FileNotFoundError as error:
        if storage.stat(path) is None:
            raise ProbeFailedError(
                f"the folder {path} does not exist; create the table, or correct its path"
            ) from error
        raise ProbeFailedError(
            f"{path} is not a Delta table: it has no _delta_log folder"
        ) from error
    except NotADirectoryError as error:
        raise ProbeFailedError(
            f"{path} is not a Delta table: it has no _delta_log folder"
        ) from error
    if not folder.versions:
        if storage.stat(f"{path}/_delta_log/_staged_commits") is not None:
            raise IncompleteLogError("a catalog has its commits, not its log")
        raise ProbeFailedError(f"{path} is not a Delta table: its _delta_log folder has no commit")
    return folder

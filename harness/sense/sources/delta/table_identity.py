"""Reads from a table's log alone what the table is now."""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import ProbeFailedError
from harness.events.event import Operation
from harness.platform.delta_log import (
    Commit,
    IncompleteLogError,
    LogFolder,
    actions_in,
    read_commit,
)
from harness.platform.json_file import UNREADABLE
from harness.platform.storage import Storage
from harness.sense.sources.delta.classify import operation_of
from harness.sense.sources.delta.schema import Table, table_of, unreadable_features

#: Checkpoints hold one row per file; ones above this size are not read for their two first facts.
CHECKPOINT_LIMIT_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What a table is now."""

    table: Table
    newest: Commit
    #: Any commit ever changed data, as far as the log still shows.
    holds_data: bool
    #: The commits that were read to determine this, oldest first.
    commits: tuple[Commit, ...]

    @property
    def last_change(self) -> Commit:
        """The newest commit that changed data, as far as they were read; else the newest of all."""
        changes = (each for each in reversed(self.commits) if operation_of(each) is not None)
        return next(changes, self.newest)

    @property
    def is_complete_history(self) -> bool:
        """Return whether the commits are all that there ever were."""
        return self.commits[0].version == 0

    @property
    def only_appended(self) -> bool:
        """Return whether the whole history is known and holds nothing but appends."""
        return self.is_complete_history and all(
            operation_of(commit) in (None, Operation.APPEND) for commit in self.commits
        )


def current_of(storage: Storage, path: str, folder: LogFolder) -> Current:
    """Read back from the newest commit until the table's identity, schema and data are known.

    Raises:
        ProbeFailedError: A commit is corrupt, or the log is incomplete.
    """
    walk = _Walk()
    for commit in _backwards(storage, path, folder):
        walk.take(commit)
        if walk.is_done:
            break
    if not walk.is_done and folder.checkpoint >= 0:
        walk.take_checkpoint(_checkpoint(storage, path, folder))
    if walk.metadata is None or walk.protocol is None:
        raise ProbeFailedError(
            f"neither a commit nor a checkpoint in the log of {path} describes the table"
        )
    refuse_unreadable(walk.protocol)
    return Current(
        table=table_of(walk.metadata, walk.protocol),
        newest=walk.commits[0],
        holds_data=walk.holds_data,
        commits=tuple(reversed(walk.commits)),
    )


def refuse_unreadable(protocol: Mapping[str, Any]) -> None:
    """Raise when the table needs a reader with more features than this one."""
    features = unreadable_features(protocol)
    if features:
        raise IncompleteLogError(
            f"it uses {', '.join(features)}, which cannot be sensed from the log alone"
        )


def _backwards(storage: Storage, path: str, folder: LogFolder) -> Iterator[Commit]:
    expected = folder.newest
    for version in reversed(folder.versions):
        if version != expected or (version <= folder.checkpoint and version != folder.newest):
            return
        commit = read_commit(storage, path, version)
        if commit is None:
            raise ProbeFailedError(f"commit {version} of {path} went away during the probe")
        yield commit
        expected -= 1


class _Walk:
    def __init__(self) -> None:
        self.metadata: Mapping[str, Any] | None = None
        self.protocol: Mapping[str, Any] | None = None
        self.holds_data = False
        self.commits: list[Commit] = []

    @property
    def is_done(self) -> bool:
        return self.metadata is not None and self.protocol is not None and self.holds_data

    def take(self, commit: Commit) -> None:
        self.commits.append(commit)
        self.metadata = self.metadata or commit.metadata
        self.protocol = self.protocol or commit.protocol
        self.holds_data = self.holds_data or commit.changes_data or commit.rearranges

    def take_checkpoint(self, facts: "_Checkpoint") -> None:
        self.metadata = self.metadata or facts.metadata
        self.protocol = self.protocol or facts.protocol
        self.holds_data = self.holds_data or facts.has_files


@dataclass(slots=True)
class _Checkpoint:
    metadata: Mapping[str, Any] | None = None
    protocol: Mapping[str, Any] | None = None
    has_files: bool = False


def _checkpoint(storage: Storage, path: str, folder: LogFolder) -> _Checkpoint:
    facts = _Checkpoint()
    for name in folder.checkpoint_names:
        content = storage.read(f"{path}/_delta_log/{name}", limit=CHECKPOINT_LIMIT_BYTES)
        try:
            rows = actions_in(content) if name.endswith(".json") else _parquet_rows(content)
            for row in rows:
                facts.metadata = facts.metadata or _action(row, "metaData")
                facts.protocol = facts.protocol or _action(row, "protocol")
                facts.has_files = facts.has_files or _is_file(row)
        except (*UNREADABLE, NotImplementedError) as error:
            raise ProbeFailedError(f"the checkpoint {name} of {path} cannot be read") from error
        if facts.metadata and facts.protocol and facts.has_files:
            break
    return facts


def _action(row: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    body = row.get(kind)
    if body is not None and not isinstance(body, dict):
        raise TypeError(f"{kind} is not an object")
    return body


def _is_file(row: Mapping[str, Any]) -> bool:
    return any((row.get(kind) or {}).get("path") for kind in ("add", "remove", "sidecar"))


def _parquet_rows(content: bytes) -> Iterator[Mapping[str, Any]]:
    from pyarrow import parquet

    file = parquet.ParquetFile(io.BytesIO(content))
    present = set(file.schema_arrow.names)
    wanted = [name for name in ("metaData", "protocol") if name in present]
    paths = [f"{name}.path" for name in ("add", "remove", "sidecar") if name in present]
    for batch in file.iter_batches(columns=[*wanted, *paths]):
        for row in batch.to_pylist():
            if metadata := row.get("metaData"):
                metadata["configuration"] = dict(metadata.get("configuration") or ())
            yield row

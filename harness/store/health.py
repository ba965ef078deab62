"""Examines one Delta table on a disk: is its log without a gap, and is every file there and whole?

It only reads, beside any writer, and goes on where a reader of the table would stop.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from harness.platform.delta_log import actions_in, commit_name, version_of
from harness.platform.json_file import UNREADABLE
from harness.store.delta_commits import log_of

#: A file with fewer bytes is small: reading many of these takes longer than reading their rows.
SMALL_BYTES = 1_000_000

_HINT = "_last_checkpoint"
_MAGIC = b"PAR1"
_DIGITS = 20
_TIMES = 3
#: So many damaged files are named, one after the other; more of the same add nothing new.
_MOST_NAMED = 3

RESTORE = "restore the state directory from the backup"
_REMOVE_NEWEST = (
    f"{RESTORE}, or do without what this commit held: "
    "docs/how-to/troubleshoot.md, `A table is damaged`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One thing that is wrong with a table, and what to do about it."""

    what: str
    where: Path
    todo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """The findings about one table."""

    name: str
    damages: tuple[Damage, ...]
    #: The newest commit; nothing when there is none.
    version: int | None = None
    commits_since_checkpoint: int = 0
    files: int = 0
    small_files: int = 0
    size: int = 0


def examine_table(table: Path) -> TableHealth:
    """Examine one table; once more when it has changed meanwhile, so that no passing state counts.

    Raises:
        OSError: Its folder cannot be read.
    """
    for _ in range(_TIMES):
        health = _examine(table)
        if not health.damages or _Log(table).newest == health.version:
            break
    return health


def _examine(table: Path) -> TableHealth:
    log = _Log(table)
    damages = list(log.damages())
    files: list[tuple[str, int]] = []
    if not damages:
        try:
            files = _listed_files(table)
        except Exception as error:
            message = next(iter(str(error).strip().splitlines()), repr(error))[:200]
            damages = [Damage(what=f"cannot be opened: {message}", where=log.folder, todo=RESTORE)]
        damages += _damaged_files(table, files)
    return TableHealth(
        name=table.name,
        damages=tuple(damages),
        version=log.newest,
        commits_since_checkpoint=len(log.needed),
        files=len(files),
        small_files=sum(size < SMALL_BYTES for _, size in files),
        size=sum(size for _, size in files),
    )


class _Log:
    """The log of one table, by the names of its files."""

    def __init__(self, table: Path) -> None:
        self.folder = log_of(table)
        names = sorted(os.listdir(self.folder))
        self._commits = [each for each in map(version_of, names) if each is not None]
        self._checkpoints = {
            int(name[:_DIGITS]): self.folder / name
            for name in names
            if name[:_DIGITS].isdigit() and ".checkpoint." in name
        }
        self.newest = max([*self._commits, *self._checkpoints], default=None)
        checkpoint = max(self._checkpoints, default=-1)
        #: The commits that a reader goes through after the newest checkpoint.
        self.needed = [each for each in self._commits if each > checkpoint]

    def damages(self) -> Iterator[Damage]:
        """Find what keeps a reader from reading, or from noticing that rows are missing."""
        if self.newest is None:
            yield Damage(what="has no commit", where=self.folder, todo=RESTORE)
            return
        yield from self._gaps()
        yield from self._damaged_commits()
        yield from self._damaged_checkpoint()
        yield from self._wrong_hint()

    def _gaps(self) -> Iterator[Damage]:
        expected = max(self._checkpoints, default=-1) + 1
        for version in self.needed:
            if version != expected:
                missing = (
                    f"commit {expected}"
                    if version == expected + 1
                    else (f"commits {expected} to {version - 1}")
                )
                yield Damage(what=f"{missing} missing", where=self._commit(expected), todo=RESTORE)
            expected = version + 1

    def _damaged_commits(self) -> Iterator[Damage]:
        for version in self.needed:
            wrong = _wrong_with_commit(self._commit(version))
            if wrong:
                yield Damage(
                    what=f"commit {version} {wrong}",
                    where=self._commit(version),
                    todo=_REMOVE_NEWEST if version == self.newest else RESTORE,
                )

    def _damaged_checkpoint(self) -> Iterator[Damage]:
        newest = max(self._checkpoints, default=None)
        if newest is None or self._is_complete(newest):
            return
        older = max(
            (each for each in self._checkpoints if each < newest and self._is_complete(each)),
            default=-1,
        )
        before = [each for each in self._commits if older < each <= newest]
        yield Damage(
            what=f"the checkpoint at commit {newest} is damaged",
            where=self._checkpoints[newest],
            todo="remove this file, and _last_checkpoint beside it: the commits hold the same"
            if len(before) == newest - older
            else RESTORE,
        )

    def _wrong_hint(self) -> Iterator[Damage]:
        """The hint is a shortcut; a wrong one is worse than none."""
        hint = self.folder / _HINT
        try:
            named = int(json.loads(hint.read_text())["version"])
        except FileNotFoundError:
            return
        except UNREADABLE:
            named = -1
        if named not in self._checkpoints:
            yield Damage(
                what="names a checkpoint that is not there" if named >= 0 else "cannot be read",
                where=hint,
                todo="remove this file: the table is read without it",
            )

    def _is_complete(self, version: int) -> bool:
        path = self._checkpoints[version]
        return path.suffix != ".parquet" or _is_parquet(path)

    def _commit(self, version: int) -> Path:
        return self.folder / commit_name(version)


def _wrong_with_commit(commit: Path) -> str | None:
    try:
        content = commit.read_bytes()
    except OSError as error:
        return f"cannot be read ({(error.strerror or str(error)).lower()})"
    if not content:
        return "is empty"
    try:
        return None if list(actions_in(content)) else "is not a commit"
    except ValueError:
        return "is cut off, or no JSON"
    except (TypeError, RecursionError):
        return "is not a commit"


def _listed_files(table: Path) -> list[tuple[str, int]]:
    import pyarrow as pa
    from deltalake import DeltaTable

    listed = pa.table(DeltaTable(table).get_add_actions(flatten=True))
    paths, sizes = listed["path"].to_pylist(), listed["size_bytes"].to_pylist()
    return list(zip(paths, sizes, strict=True))


def _damaged_files(table: Path, files: Iterable[tuple[str, int]]) -> list[Damage]:
    damages = [
        Damage(what=wrong, where=table / unquote(path), todo=RESTORE)
        for path, size in files
        if (wrong := _wrong_with_file(table / unquote(path), size))
    ]
    more = len(damages) - _MOST_NAMED
    if more > 0:
        last = damages[_MOST_NAMED - 1]
        also = Damage(what=f"{last.what}, and {more} more files", where=last.where, todo=last.todo)
        return [*damages[: _MOST_NAMED - 1], also]
    return damages


def _wrong_with_file(path: Path, size: int) -> str | None:
    try:
        there = path.stat().st_size
    except OSError:
        return "a file with rows is missing"
    if there != size:
        return f"a file with rows has {there:,} bytes instead of {size:,}"
    return None if _is_parquet(path) else "a file with rows is damaged"


def _is_parquet(path: Path) -> bool:
    """Return whether a file begins and ends as one of its kind: what is cut off does not."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC)) == _MAGIC
            file.seek(-len(_MAGIC), os.SEEK_END)
            return begins and file.read() == _MAGIC
    except OSError:
        return False

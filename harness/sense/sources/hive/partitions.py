"""Distinguishes one state of a partition from another by the files in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from harness.platform.storage import Listed, Storages, is_data

IDENTITY_SIZE = 6
#: Of a partition without data.
EMPTY = bytes(IDENTITY_SIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One partition as it is now."""

    identity: bytes
    files: int = 0
    size: int = 0
    newest_ms: int | None = None


def states_of(
    storages: Storages, table: str, names: Iterable[str], elsewhere: Mapping[str, str]
) -> dict[str, State]:
    """Probe the folders of partitions.

    Args:
        storages: Where they are.
        table: The folder of the table.
        names: The names of the partitions; the empty one is the table itself.
        elsewhere: The folders of those that are not below the table.
    """
    states = {}
    for name in names:
        folder = elsewhere.get(name) or (f"{table}/{name}" if name else table)
        states[name] = _state_of(name, _files_of(storages, folder))
    return states


def _files_of(storages: Storages, folder: str) -> list[Listed]:
    try:
        files = storages.of(folder).list_files(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(file for file in files if file.length and is_data(file.name))


def _state_of(name: str, files: list[Listed]) -> State:
    if not files:
        return State(identity=EMPTY)
    text = "\n".join((name, *(f"{each.name} {each.length} {each.mtime_ns}" for each in files)))
    return State(
        # A name that is no UTF-8 comes from the file system with surrogates.
        identity=blake2b(text.encode(errors="surrogateescape"), digest_size=IDENTITY_SIZE).digest(),
        files=len(files),
        size=sum(each.length for each in files),
        newest_ms=max(each.mtime_ns for each in files) // 1_000_000,
    )

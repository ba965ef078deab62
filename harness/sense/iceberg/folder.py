"""Finds the newest metadata file of a table that no catalog keeps: its folder alone says it."""

import re
from collections.abc import Iterator

from harness.errors import LookFailedError
from harness.sense.iceberg.position import Pointer
from harness.sense.storage import Storage

_HINT = "version-hint.text"
_NAME = re.compile(r"v(\d+)\.(?:gz\.)?metadata\.json(?:\.gz)?")
#: How a file of one version may be called: plain, compressed, compressed by an old writer.
_ENDS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")


def newest_in(storage: Storage, table: str, known: Pointer | None) -> Pointer:
    """Return the newest metadata file of a table's folder.

    Args:
        storage: Where the folder is.
        table: The path of the folder.
        known: What the last look found; where it is still the newest, no folder is listed.

    Raises:
        LookFailedError: There is no such table.
    """
    folder = f"{table}/metadata"
    version = None if known is None else _version_of(folder, known.location)
    if known is not None and version is not None and _is_newest(storage, folder, known, version):
        return known
    found = _start(storage, folder)
    if found is None:
        raise LookFailedError(_why_not(storage, table, folder))
    version, pointer = found
    while (after := _at(storage, folder, version + 1)) is not None:
        version, pointer = version + 1, after
    return pointer


def _is_newest(storage: Storage, folder: str, known: Pointer, version: int) -> bool:
    return (
        storage.stat(known.location) == known.fingerprint
        and _at(storage, folder, version + 1) is None
    )


def _start(storage: Storage, folder: str) -> tuple[int, Pointer] | None:
    """Return some version to go on from: the one of the hint, else the largest there is."""
    hint = _hint(storage, folder)
    if hint is not None and (pointer := _at(storage, folder, hint)) is not None:
        return hint, pointer
    # A writer takes the hint away for the time of its commit.
    for version in sorted(_versions(storage, folder), reverse=True):
        if (pointer := _at(storage, folder, version)) is not None:
            return version, pointer
    return None


def _hint(storage: Storage, folder: str) -> int | None:
    try:
        return int(storage.read(f"{folder}/{_HINT}", limit=64))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _versions(storage: Storage, folder: str) -> Iterator[int]:
    for name in _names(storage, folder):
        if matched := _NAME.fullmatch(name):
            yield int(matched[1])


def _names(storage: Storage, folder: str) -> list[str]:
    try:
        return [file.name for file in storage.list_files(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _at(storage: Storage, folder: str, version: int) -> Pointer | None:
    for end in _ENDS:
        location = f"{folder}/v{version}{end}"
        fingerprint = storage.stat(location)
        if fingerprint is not None:
            return Pointer(location=location, fingerprint=fingerprint)
    return None


def _version_of(folder: str, location: str) -> int | None:
    parent, _, name = location.rpartition("/")
    matched = _NAME.fullmatch(name)
    return int(matched[1]) if matched is not None and parent == folder else None


def _why_not(storage: Storage, table: str, folder: str) -> str:
    if storage.stat(table) is None:
        return f"the folder {table} does not exist"
    if any(name.endswith(".metadata.json") for name in _names(storage, folder)):
        return (
            f"a catalog keeps the table in {table}, and only that knows its newest state; name it"
            " as catalog.schema.table"
        )
    return f"{table} is no Iceberg table: its metadata folder has no v1.metadata.json or later"

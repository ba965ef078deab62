"""Finds the files that a folder or a pattern means; it lists what is there, not what is new."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import NamedTuple
from urllib.parse import unquote

from harness.platform.storage import (
    IGNORED_STARTS,
    MARKER_END,
    Listed,
    Listing,
    Storage,
    is_data,
    normalized,
)

_WILDCARDS = re.compile(r"[*?\[]")
_ROOT = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?)?/?")
_PARTITION = re.compile(r"([^=]+)=(.*)", re.DOTALL)
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
#: Deeper than this there is only a link that leads back up.
_DEEPEST_PARTITION = 16

_MARKER = "_SUCCESS"


class Found(NamedTuple):
    """One file."""

    path: str
    length: int
    mtime_ns: int
    #: Column and value of each folder ``column=value`` above it; a null partition has no value.
    partition: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to probe: a folder that has to be there, and the patterns below it."""

    base: str
    parts: tuple[str, ...]

    @property
    def is_of_markers(self) -> bool:
        """Return whether the files meant are the ones that a writer leaves when it is done."""
        return bool(self.parts) and is_marker(self.parts[-1])


def place_of(sensor_id: str) -> Place:
    """Split an address at its first part with a wildcard, or before the name of a marker."""
    address = normalized(sensor_id)
    matched = _ROOT.match(address)
    root = matched.group() if matched else ""
    parts = [part for part in address[len(root) :].split("/") if part]
    first = next((i for i, part in enumerate(parts) if _WILDCARDS.search(part)), len(parts))
    if first == len(parts) and parts and is_marker(parts[-1]):
        first -= 1
    base = _joined(root, *parts[:first]) if first else root.rstrip("/") + "/"
    return Place(base=base, parts=tuple(parts[first:]))


def is_marker(name: str) -> bool:
    """Distinguish a marker, which a writer leaves when it is done, from data."""
    return name == _MARKER or name.endswith(MARKER_END)


def find(storage: Storage, place: Place) -> list[Found]:
    """Return the files that a place means.

    Of a folder these are its data files and those in its partition folders (``column=value``), as
    Spark reads it; other folders in it are passed over.

    Raises:
        FileNotFoundError: The base is not there.
    """
    if not place.parts:
        try:
            return _data_below(storage, place.base, storage.list_all(place.base))
        except NotADirectoryError:
            return _single(storage, place.base)
    return [
        found._replace(partition=_partition_of(found.path[len(place.base) :]))
        for found in _matching(storage, place)
    ]


def data_beside(storage: Storage, marker: str) -> list[Found]:
    """Return the data that a marker covers: ``x.csv`` of ``x.csv.done``, else its folder's."""
    folder = marker.rsplit("/", 1)[0]
    beside = _data_below(storage, folder, storage.list_all(folder))
    partner = marker.removesuffix(MARKER_END)
    return [found for found in beside if found.path == partner] or beside


def _single(storage: Storage, path: str) -> list[Found]:
    folder, name = path.rsplit("/", 1)
    files = storage.list_files(folder)
    return [_found(folder, file) for file in files if file.name == name]


def _matching(storage: Storage, place: Place) -> Iterator[Found]:
    folders = [(place.base, storage.list_all(place.base))]
    for part in place.parts[:-1]:
        matches = _matcher(part)
        names = [
            _joined(at, name) for at, there in folders for name in there.folders if matches(name)
        ]
        folders = list(_listed(storage, names))
    matches = _matcher(place.parts[-1])
    accepts = is_marker if place.is_of_markers else is_data
    for at, there in folders:
        for file in there.files:
            if matches(file.name) and accepts(file.name):
                yield _found(at, file)
        if not place.is_of_markers:
            names = [_joined(at, name) for name in there.folders if matches(name)]
            for folder, listing in _listed(storage, names):
                yield from _data_below(storage, folder, listing)


def _matcher(part: str) -> Callable[[str], bool]:
    pattern = re.compile(translate(part))
    if part.startswith(IGNORED_STARTS):
        return lambda name: pattern.match(name) is not None
    return lambda name: not name.startswith(IGNORED_STARTS) and pattern.match(name) is not None


def _listed(storage: Storage, folders: list[str]) -> Iterator[tuple[str, Listing]]:
    for folder in folders:
        try:
            yield folder, storage.list_all(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it was taken away between the listing above it and this one


def _data_below(storage: Storage, base: str, listing: Listing) -> list[Found]:
    found: list[Found] = []
    level = [(base, listing)]
    for _ in range(_DEEPEST_PARTITION):
        deeper: list[str] = []
        for folder, there in level:
            partition = _partition_of(folder[len(base) :])
            found += [_found(folder, file, partition) for file in there.files if is_data(file.name)]
            deeper += [_joined(folder, name) for name in there.folders if _is_partition(name)]
        level = list(_listed(storage, deeper))
    return found


def _is_partition(name: str) -> bool:
    return not name.startswith(IGNORED_STARTS) and _PARTITION.fullmatch(name) is not None


def _partition_of(below: str) -> tuple[tuple[str, str | None], ...]:
    values = []
    for name in below.split("/"):
        if matched := _PARTITION.fullmatch(name):
            column, value = unquote(matched[1]), unquote(matched[2])
            values.append((column, None if value == _NULL_PARTITION else value))
    return tuple(values)


def _found(folder: str, file: Listed, partition: tuple[tuple[str, str | None], ...] = ()) -> Found:
    return Found(_joined(folder, file.name), file.length, file.mtime_ns, partition)


def _joined(folder: str, *names: str) -> str:
    return "/".join((folder.rstrip("/"), *names))

"""Reads files and folders where they are: on this machine, or in an object store.

It offers only the few operations that sensing and the report need, and reports what is wrong as
Python's own ``FileNotFoundError``, ``PermissionError`` and ``OSError``, whatever is underneath.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote

from harness.errors import ProbeFailedError
from harness.platform.text import first_line

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")
_STATUS = re.compile(r"status code: (\d{3})")
_QUERY = re.compile(r"\?\S*")
#: A client without a key requests one from the machine or the cloud: what fails then is the login.
_LOGIN = re.compile(r"token request|/latest/(?:api/token|meta-data)|169\.254\.|AssumeRole", re.I)
#: For a key that has expired or does not exist, S3 reports that the request is bad.
_REFUSALS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
#: A workspace mounts what is there as files.
_DBFS = re.compile(r"^dbfs:/*", re.IGNORECASE)
#: A probe has a time limit of its own, and the next tick retries. The clouds' own addresses are
#: HTTPS; one without it is queried only where a variable of the environment names it.
_OPTIONS = {
    "client_options": {"connect_timeout": "10s", "timeout": "60s", "allow_http": True},
    "retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=60)},
}


class FileStat(NamedTuple):
    """What distinguishes one version of a file from another."""

    length: int
    mtime_ms: int


class Listed(NamedTuple):
    """One file of a folder; folders in it are left out."""

    name: str
    length: int
    mtime_ns: int


class Listing(NamedTuple):
    """What is in a folder, in no order."""

    files: list[Listed]
    #: Names of the folders in it.
    folders: list[str]


class Storage(Protocol):
    """The operations that sensing needs."""

    def stat(self, path: str) -> FileStat | None:
        """Return size and modified time, or ``None`` when nothing is there."""
        ...

    def read(self, path: str, *, limit: int) -> bytes:
        """Return at most the first ``limit`` bytes of a file."""
        ...

    def list_files(self, folder: str) -> list[Listed]:
        """Return the files of a folder, in no order.

        Raises:
            FileNotFoundError: There is no such folder.
            NotADirectoryError: It is a file.
        """
        ...

    def list_all(self, folder: str) -> Listing:
        """Return the files and the folders of a folder; it raises as ``list_files`` does."""
        ...


def reason_of(error: ProbeFailedError | OSError, *, missing: str | None = None) -> str:
    """Return why a probe failed, to go on from "cannot be sensed: ".

    Args:
        error: What was raised.
        missing: The reason to give when a file or folder is not there.
    """
    if isinstance(error, ProbeFailedError):
        return str(error)
    if missing is not None and isinstance(error, FileNotFoundError | NotADirectoryError):
        return missing
    if isinstance(error, PermissionError):
        return f"access to {error.filename or error} is denied"
    return f"its storage does not answer: {error.strerror or error}"


class LocalStorage:
    """This machine's own files."""

    def stat(self, path: str) -> FileStat | None:
        """Return size and modified time, or ``None`` when nothing is there."""
        try:
            found = os.stat(_mounted(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileStat(found.st_size, found.st_mtime_ns // 1_000_000)

    def read(self, path: str, *, limit: int) -> bytes:
        """Return at most the first ``limit`` bytes of a file."""
        with open(_mounted(path), "rb") as file:
            return file.read(limit)

    def list_files(self, folder: str) -> list[Listed]:
        """Return the files of a folder, in no order."""
        return self.list_all(folder).files

    def list_all(self, folder: str) -> Listing:
        """Return the files and the folders of a folder."""
        listing = Listing([], [])
        with os.scandir(_mounted(folder)) as entries:
            for entry in entries:
                try:
                    if entry.is_dir():
                        listing.folders.append(entry.name)
                        continue
                    found = entry.stat()
                except FileNotFoundError:
                    continue  # it was removed between the listing and its ``stat``
                listing.files.append(Listed(entry.name, found.st_size, found.st_mtime_ns))
        return listing


def _mounted(path: str) -> str:
    """Return where a workspace mounts a path of ``dbfs:``, and any other path as it is."""
    if (scheme := _DBFS.match(path)) is None:
        return path
    inner = path[scheme.end() :]
    return f"/{inner}" if inner.startswith("Volumes/") else f"/dbfs/{inner}"


class ObjectStorage:
    """The object stores of the clouds: ``s3://``, ``s3a://``, ``abfss://``, ``gs://`` and the like.

    Credentials are those that each cloud's own tools use: variables of the environment, the
    identity of the machine or of the workload.
    """

    def __init__(self) -> None:
        self._stores: dict[str, ObjectStore] = {}

    def stat(self, path: str) -> FileStat | None:
        """Return size and modified time, or ``None`` when nothing is there."""
        try:
            found = self._object(path)
            if found is not None:
                return FileStat(found["size"], int(found["last_modified"].timestamp() * 1000))
            self.list_all(path)
        except FileNotFoundError:
            return None
        # A folder is where something is below it; it has no time of its own.
        return FileStat(0, 0)

    def read(self, path: str, *, limit: int) -> bytes:
        """Return at most the first ``limit`` bytes of a file."""
        with self._store(path) as (store, key):
            # A range of an empty object is refused.
            size = store.head(key)["size"]
            return bytes(store.get_range(key, start=0, end=min(size, limit))) if size else b""

    def write(self, path: str, content: bytes, *, content_type: str) -> None:
        """Write an object, in place of what is there; it is there whole or not at all.

        Raises:
            OSError: It cannot be written.
        """
        with self._store(path) as (store, key):
            store.put(key, content, attributes={"Content-Type": content_type})

    def list_files(self, folder: str) -> list[Listed]:
        """Return the files of a folder, in no order."""
        return self.list_all(folder).files

    def list_all(self, folder: str) -> Listing:
        """Return the files and the folders of a folder."""
        with self._store(folder) as (store, key):
            found = store.list_with_delimiter(key or None)
        listing = Listing(
            [
                Listed(_name(each["path"]), each["size"], _nanoseconds(each["last_modified"]))
                for each in found["objects"]
            ],
            [_name(each) for each in found["common_prefixes"]],
        )
        if key and not listing.files and not listing.folders:
            if self._object(folder) is not None:
                raise NotADirectoryError(folder)
            raise FileNotFoundError(folder)
        return listing

    def _object(self, path: str) -> "ObjectMeta | None":
        try:
            with self._store(path) as (store, key):
                return store.head(key) if key else None
        except FileNotFoundError:
            return None

    @contextmanager
    def _store(self, path: str) -> "Iterator[tuple[ObjectStore, str]]":
        """Give the store of a path, and the key in it; its errors are those of local files."""
        from obstore import exceptions
        from obstore.store import from_url

        root, _, key = path.partition("://")
        place, _, key = key.partition("/")
        root = f"{root}://{place}"
        try:
            if root not in self._stores:
                if not _is_known(root):
                    raise ProbeFailedError(
                        f"{root} is not an object store; s3:, s3a:, abfss: and gs: can be read"
                    )
                self._stores[root] = from_url(root, **_OPTIONS)  # type: ignore[call-overload]
            yield self._stores[root], key.rstrip("/")
        except exceptions.BaseError as error:
            raise _as_of_files(error, path) from error


def _is_known(root: str) -> bool:
    from obstore import exceptions, parse_scheme

    try:
        parse_scheme(root)
    except exceptions.BaseError:
        return False
    return True


def _as_of_files(error: Exception, path: str) -> OSError:
    """Convert what an object store's client raises into what local files raise."""
    from obstore import exceptions

    # Of a list that is refused only the text has the status.
    status = _STATUS.search(str(error))
    code = int(status.group(1)) if status else 0
    if _LOGIN.search(first_line(error, "")):
        return PermissionError(errno.EACCES, "access is denied", path)
    if isinstance(error, exceptions.NotFoundError) or code == HTTPStatus.NOT_FOUND:
        return FileNotFoundError(path)
    refusals = exceptions.PermissionDeniedError, exceptions.UnauthenticatedError
    if isinstance(error, refusals) or code in _REFUSALS:
        return PermissionError(errno.EACCES, "access is denied", path)
    # The query of an address may be a signature.
    return OSError(_QUERY.sub("", first_line(error, repr(error))))


def _name(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000) * 1_000_000


class Storages:
    """Chooses the storage of a path: this machine's files, or the object store of its scheme."""

    def __init__(self, local: Storage | None = None, other: Storage | None = None) -> None:
        self._local = local or LocalStorage()
        self._other = other or ObjectStorage()

    def of(self, path: str) -> Storage:
        """Return the storage that a path belongs to."""
        return self._other if is_remote(path) and not _DBFS.match(path) else self._local


def is_remote(path: str) -> bool:
    """Return whether a path names a scheme other than ``file:``."""
    scheme = _SCHEME.match(path)
    return scheme is not None and scheme.group(1).lower() != "file"


def normalized(path: str) -> str:
    """Return a path as its storage needs it: local ones without scheme, none with a last slash."""
    scheme = _SCHEME.match(path)
    if scheme is not None and scheme.group(1).lower() == "file":
        path = "/" + unquote(path[len("file:") :]).lstrip("/")
    return path.rstrip("/") or "/"


MARKER_END = ".done"
IGNORED_STARTS = ("_", ".")
#: What writers and copying programs call a file that is not complete yet, or only accompanies one.
_IGNORED_ENDS = (
    ".tmp",
    ".temp",
    ".part",
    ".partial",
    ".filepart",
    ".crdownload",
    ".download",
    ".inprogress",
    ".incomplete",
    ".swp",
    "~",
    "._copying_",
    ".crc",
    MARKER_END,
)


def is_data(name: str) -> bool:
    """Distinguish data from a file that is being written, or that only accompanies another."""
    return not name.startswith(IGNORED_STARTS) and not name.lower().endswith(_IGNORED_ENDS)

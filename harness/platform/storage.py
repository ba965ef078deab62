"""Reads files and folders where they are: on this machine, or through Spark's Hadoop file systems.

It offers only the few operations that sensing needs and says what is wrong with Python's own
``FileNotFoundError``, ``PermissionError`` and ``OSError``, whatever is underneath.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote

from harness.errors import ProbeFailedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATUS = re.compile(
    r"\{path=(.*?); isDirectory=(true|false)"
    r"(?:; length=(\d+); replication=\d+; blocksize=\d+)?; modification_time=(\d+)",
    re.DOTALL,
)
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")


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
    """Raise why a probe failed, to go on from "cannot be sensed: ".

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
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileStat(found.st_size, found.st_mtime_ns // 1_000_000)

    def read(self, path: str, *, limit: int) -> bytes:
        """Return at most the first ``limit`` bytes of a file."""
        with open(path, "rb") as file:
            return file.read(limit)

    def list_files(self, folder: str) -> list[Listed]:
        """Return the files of a folder, in no order."""
        return self.list_all(folder).files

    def list_all(self, folder: str) -> Listing:
        """Return the files and the folders of a folder."""
        listing = Listing([], [])
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir():
                        listing.folders.append(entry.name)
                        continue
                    found = entry.stat()
                except FileNotFoundError:
                    continue  # it was taken away between the listing and the look at it
                listing.files.append(Listed(entry.name, found.st_size, found.st_mtime_ns))
        return listing


class HadoopStorage:
    """Every store that the Spark session can reach; the session starts at the first call."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session
        self._file_systems: dict[str, Any] = {}

    def stat(self, path: str) -> FileStat | None:
        """Return size and modified time, or ``None`` when nothing is there."""
        try:
            with _java_errors_as_python(path):
                found = self._file_system(path).getFileStatus(self._path(path))
                return FileStat(int(found.getLen()), int(found.getModificationTime()))
        except FileNotFoundError:
            return None

    def read(self, path: str, *, limit: int) -> bytes:
        """Return at most the first ``limit`` bytes of a file."""
        with _java_errors_as_python(path):
            stream = self._file_system(path).open(self._path(path))
            try:
                return bytes(stream.readNBytes(limit))
            finally:
                stream.close()

    def list_files(self, folder: str) -> list[Listed]:
        """Return the files of a folder, in no order."""
        return self.list_all(folder).files

    def list_all(self, folder: str) -> Listing:
        """Return the files and the folders of a folder."""
        with _java_errors_as_python(folder):
            file_system, path = self._file_system(folder), self._path(folder)
            if not file_system.getFileStatus(path).isDirectory():
                raise NotADirectoryError(folder)
            statuses = file_system.listStatus(path)
            # One call for all: asked one by one, 20,000 files would take seconds.
            text = str(self._jvm().scala.runtime.ScalaRunTime.stringOf(statuses))
            return _listing_from(text, len(statuses)) or _listing_of(statuses)

    def _jvm(self) -> Any:
        return self._session().sparkContext._jvm

    def _path(self, path: str) -> Any:
        return self._jvm().org.apache.hadoop.fs.Path(path)

    def _file_system(self, path: str) -> Any:
        root = "/".join(path.split("/", 3)[:3])
        if root not in self._file_systems:
            configuration = self._session()._jsparkSession.sessionState().newHadoopConf()
            self._file_systems[root] = self._path(path).getFileSystem(configuration)
        return self._file_systems[root]


def _listing_from(text: str, count: int) -> Listing | None:
    """Read what Hadoop's statuses say of themselves; ``None`` if that is not what we know."""
    found = _STATUS.findall(text)
    if len(found) != count:
        return None
    listing = Listing([], [])
    for path, is_folder, length, mtime_ms in found:
        name = path.rsplit("/", 1)[-1]
        if is_folder == "true":
            listing.folders.append(name)
        else:
            listing.files.append(Listed(name, int(length or 0), int(mtime_ms) * 1_000_000))
    return listing


def _listing_of(statuses: Any) -> Listing:
    listing = Listing([], [])
    for status in statuses:
        name = str(status.getPath().getName())
        if status.isDirectory():
            listing.folders.append(name)
        else:
            mtime_ns = int(status.getModificationTime()) * 1_000_000
            listing.files.append(Listed(name, int(status.getLen()), mtime_ns))
    return listing


@contextmanager
def _java_errors_as_python(path: str) -> Iterator[None]:
    """Convert the JVM's exceptions into the ones that local files raise."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        name = str(error.java_exception.getClass().getName())
        message = str(error.java_exception.getMessage()).splitlines()[0]
        # Hadoop says "not found" of a file that it may not open, too: the words distinguish them.
        if "Permission denied" in message or "Access" in name.rsplit(".", 1)[-1]:
            raise PermissionError(path) from error
        if name.endswith(("FileNotFoundException", "NoSuchFileException")):
            raise FileNotFoundError(path) from error
        raise OSError(message) from error


class Storages:
    """Chooses the storage of a path: this machine's files, or Hadoop for every other scheme."""

    def __init__(self, local: Storage, other: Storage) -> None:
        self._local = local
        self._other = other

    def of(self, path: str) -> Storage:
        """Return the storage that a path belongs to."""
        return self._other if is_remote(path) else self._local


def is_remote(path: str) -> bool:
    """Return whether a path names a scheme other than ``file:``."""
    scheme = _SCHEME.match(path)
    return scheme is not None and scheme.group(1).lower() != "file"


def normalized(path: str) -> str:
    """Return a path as its storage wants it: local ones without scheme, none with a last slash."""
    scheme = _SCHEME.match(path)
    if scheme is not None and scheme.group(1).lower() == "file":
        path = "/" + unquote(path[len("file:") :]).lstrip("/")
    return path.rstrip("/") or "/"


MARKER_END = ".done"
IGNORED_STARTS = ("_", ".")
#: What writers and copying programs call a file that is not whole yet, or only accompanies one.
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

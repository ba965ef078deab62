"""Extracts the files of a folder that bronze does not have, by the listing alone."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from harness.errors import ConfigurationError, ExtractError, ProbeFailedError
from harness.platform.storage import Storages, reason_of
from harness.sense.new_rows import literal, union
from harness.sense.sources.file.listing import Found, find, place_of
from harness.toolkit.extract.lookback import one_sentence
from harness.toolkit.extract.sources.base import Batch
from harness.toolkit.extract.target import Bronze
from harness.toolkit.extract.values import Value, as_text, moved

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FILE, MODIFIED = "_source_file", "_source_modified_at"
_COMPRESSED = re.compile(r"\.(?:gz|gzip|bz2|zst|zstd|snappy|lz4|deflate)$", re.IGNORECASE)
_FORMATS = {
    "csv": ("csv", {"header": "true"}),
    "tsv": ("csv", {"header": "true", "sep": "\t"}),
    "json": ("json", {}),
    "jsonl": ("json", {}),
    "ndjson": ("json", {}),
    "parquet": ("parquet", {}),
    "orc": ("orc", {}),
    "avro": ("avro", {}),
}
_NULL = "__HIVE_DEFAULT_PARTITION__"


def rows_of(
    session: "SparkSession",
    files: Sequence[Found],
    file_format: str | None,
    options: Mapping[str, str],
) -> "DataFrame":
    """Return the rows of files, with the columns of their partition folders as text."""
    groups: dict[str, list[Found]] = {}
    for file in files:
        groups.setdefault(file_format or _ending(file.path), []).append(file)
    parts = [_read(session, kind, group, options) for kind, group in groups.items()]
    return union(parts)


def known_files(bronze: Bronze) -> set[tuple[str, int]]:
    """Return the files that bronze has, each with its modified time in milliseconds.

    The partitions of the last days are read; where they have none, the whole table is.
    """
    with one_sentence(bronze.name):
        found = _files_in(bronze.recent())
        return found or _files_in(bronze.rows())


def _files_in(rows: "DataFrame") -> set[tuple[str, int]]:
    found = rows.where(f.col(MODIFIED).isNotNull())
    found = found.select(FILE, f.unix_millis(MODIFIED)).distinct()
    return {(str(path), int(modified)) for path, modified in found.collect()}


def _read(
    session: "SparkSession", kind: str, files: Sequence[Found], options: Mapping[str, str]
) -> "DataFrame":
    name, usual = _FORMATS.get(kind, (kind, {}))
    paths = [literal(each.path) for each in files]
    rows = session.read.format(name).options(**{**usual, **options}).load(paths)
    path = f.col("_metadata.file_path")
    columns = {column: _folder(path, column) for each in files for column, _ in each.partition}
    return rows.select(
        "*",
        *(value.alias(column) for column, value in columns.items()),
        f.regexp_replace(_decoded(path), "^file:/+", "/").alias(FILE),
        f.col("_metadata.file_modification_time").alias(MODIFIED),
    )


def _folder(path: "Column", column: str) -> "Column":
    pattern = f"/{re.escape(column)}=([^/]*)/"
    # Once for the address, and once for the name of the folder in it.
    value = _decoded(f.regexp_extract(_decoded(path), pattern, 1))
    # A file that is in no such folder has none.
    return f.when(~value.isin(_NULL, ""), value)


def _decoded(text: "Column") -> "Column":
    # A plus is a plus in the name of a file.
    return f.url_decode(f.replace(text, f.lit("+"), f.lit("%2B")))


def _ending(path: str) -> str:
    plain = _COMPRESSED.sub("", path.rsplit("/", 1)[-1])
    end = plain.rpartition(".")[2].lower()
    return end if end in _FORMATS else "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The data files of a folder, or those that match a pattern, each of its states once.

    A file that is rewritten is a new one.
    """

    path: str
    #: Spark's name of their format; without it, the end of a name decides.
    format: str | None = None
    #: Options of Spark's reader.
    options: Mapping[str, str] = field(default_factory=dict)
    #: The partition folder (``day`` of ``day=2026-03-01``) that grows; else the modified time.
    folder: str | None = None
    #: Files so much older than the newest one known are still new, if bronze has not got them.
    overlap: timedelta = timedelta(days=1)
    #: Files that were modified within so much time are left for the next extract.
    at_rest: timedelta = timedelta(0)
    #: At most so many files are read at once.
    most: int | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path

    def read(self, bronze: Bronze) -> Batch | None:
        """Return the rows of the files that bronze does not have.

        Raises:
            ConfigurationError: ``most`` is less than one, or there is no such partition folder.
            ExtractError: The folder cannot be listed, or a file cannot be read.
        """
        if self.most is not None and self.most < 1:
            raise ConfigurationError(
                f"{self.name}: most is {self.most}; allowed is an integer from 1"
            )
        listed = self._listed(bronze)
        since = self._since(bronze)
        known = known_files(bronze) if listed and bronze.is_there else set()
        fresh = [
            each for each in listed
            if (each.path, each.mtime_ns // 1_000_000) not in known and self._is_after(each, since)
        ]  # fmt: skip
        fresh.sort(key=lambda each: (self._order(each), each.path))
        return self._batch(bronze, fresh, as_text(since))

    def _batch(self, bronze: Bronze, fresh: Sequence[Found], since: str | None) -> Batch | None:
        step = self.most or max(len(fresh), 1)
        for start in range(0, len(fresh), step):
            files = fresh[start : start + step]
            frame = self._rows(bronze, files)
            with one_sentence(self.name):
                # Files without rows leave no trace in bronze, and must not stand in the way.
                if not frame.limit(1).count():
                    continue
            is_more = start + step < len(fresh)
            return Batch(
                frame=frame, since=since, until=str(self._order(files[-1])), is_more=is_more
            )
        return None

    def _rows(self, bronze: Bronze, files: Sequence[Found]) -> "DataFrame":
        with one_sentence(self.name):
            return rows_of(bronze.session, files, self.format, self.options)

    def _listed(self, bronze: Bronze) -> list[Found]:
        place = place_of(self.path)
        storage = Storages().of(place.base)
        try:
            found = find(storage, place)
        except (ProbeFailedError, OSError) as error:
            reason = reason_of(error, missing=f"the folder {place.base} does not exist; create it")
            raise ExtractError(f"{self.name} cannot be read: {reason}") from error
        latest = _milliseconds(bronze.now - self.at_rest)
        return [
            each for each in found
            if each.length and (not self.at_rest or each.mtime_ns // 1_000_000 <= latest)
        ]  # fmt: skip

    def _since(self, bronze: Bronze) -> Value | None:
        newest = bronze.newest(self.folder or MODIFIED)
        if newest is None or self.folder is not None:
            return newest
        return moved(newest, self.overlap, back=True)

    def _is_after(self, file: Found, since: Value | None) -> bool:
        order = self._order(file)
        if since is None:
            return True
        if isinstance(since, datetime):
            return isinstance(order, int) and order >= _milliseconds(since)
        return str(order) >= str(since)

    def _order(self, file: Found) -> int | str:
        if self.folder is None:
            return file.mtime_ns // 1_000_000
        values = {name.lower(): value for name, value in file.partition}
        value = values.get(self.folder.lower())
        if value is None:
            raise ConfigurationError(
                f"{self.name}: {file.path} is in no folder {self.folder}=...; name another one, or"
                " follow the files by their modified time"
            )
        return value


def _milliseconds(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)

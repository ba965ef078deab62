"""Reads the rows of files through Spark, each with the file that it came from."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from harness.extract.bronze import Bronze
from harness.extract.look_back import one_sentence
from harness.sense.file.places import Found
from harness.sense.rows import literal, union

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

    The partitions of the last days tell; where they have none, the whole table does.
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

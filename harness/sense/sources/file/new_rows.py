"""Reads the rows of new files through Spark, each in the format given by the end of its name."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.sense.new_rows import literal, union
from harness.sense.preprocess.run import Rows
from harness.sense.sources.file.listing import Found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMPRESSED = re.compile(r"\.(?:gz|gzip|bz2|zst|zstd|snappy|lz4|deflate)$", re.IGNORECASE)
#: How Spark reads a file, by the end of its name; all others are read as lines of text.
_FORMATS: dict[str, tuple[str, dict[str, str]]] = {
    "csv": ("csv", {"header": "true", "inferSchema": "true"}),
    "tsv": ("csv", {"header": "true", "inferSchema": "true", "sep": "\t"}),
    "json": ("json", {}),
    "jsonl": ("json", {}),
    "ndjson": ("json", {}),
    "parquet": ("parquet", {}),
    "orc": ("orc", {}),
}


def rows_of(files: Sequence[Found]) -> Rows:
    """Return what reads the rows of files, with the columns of their partition folders."""

    def read(session: "SparkSession") -> "DataFrame":
        groups: dict[tuple[str, str | None], list[str]] = {}
        for file in files:
            groups.setdefault((_kind(file.path), _partitioned_root(file)), []).append(file.path)
        return union([_read(session, *group, paths) for group, paths in groups.items()])

    return read


def _read(session: "SparkSession", kind: str, root: str | None, paths: list[str]) -> "DataFrame":
    name, options = _FORMATS.get(kind, ("text", {}))
    reader = session.read.format(name).options(**options)
    if root is not None:
        reader = reader.option("basePath", root)
    return reader.load([literal(path) for path in paths])


def _kind(path: str) -> str:
    plain = _COMPRESSED.sub("", path.rsplit("/", 1)[-1])
    end = plain.rpartition(".")[2].lower()
    return end if end in _FORMATS else "text"


def _partitioned_root(file: Found) -> str | None:
    """Return the folder under which a file's partition folders begin."""
    if not file.partition:
        return None
    parts = file.path.split("/")
    first = next(i for i, part in enumerate(parts) if "=" in part)
    return "/".join(parts[:first])

"""Reads the rows that new commits added, through Spark; started only when a rule requires rows."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.platform.sql_names import in_sql, is_path
from harness.sense.preprocess.run import Rows, SparkQuestions
from harness.sense.probe import NewFile, NewFiles, QueryBounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: Files of more partitions than this are read through the table's snapshot instead.
_PLAIN_PARTITIONS = 16
#: Of more versions than this not the new files are read that way, but the whole table is.
_SNAPSHOTS = 50


class SparkNewRows:
    """Runs its queries in Spark; safe to call from many threads at once."""

    def __init__(
        self, session: "Callable[[], SparkSession]", bounds: QueryBounds | None = None
    ) -> None:
        self._questions = SparkQuestions(session, bounds)

    def largest(self, files: NewFiles, column: str) -> str | None:
        """Return the largest value among the new rows, as text; the column as SQL names it."""
        return self._questions.largest(rows_of(files), column)

    def any_row(self, files: NewFiles, query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
        return self._questions.any_row(rows_of(files), query)


def rows_of(files: NewFiles) -> Rows:
    """Return what reads the rows of files, or of a whole table."""
    return lambda session: _Reader(session).rows(files)


class _Reader:
    def __init__(self, session: "SparkSession") -> None:
        self._session = session

    def rows(self, files: NewFiles) -> "DataFrame":
        if files.files is None:
            return self._at_version(files.table_path, files.version)
        if not files.files:
            return self._at_version(files.table_path, files.version).limit(0)
        groups = by_partition(files.files)
        if files.plain and len(groups) <= _PLAIN_PARTITIONS:
            schema = self._session.read.format("delta").load(files.table_path).schema
            return union(
                [plain(self._session, files.table_path, schema, group) for group in groups]
            )
        return self._from_snapshots(files.table_path, files.files)

    def _at_version(self, path: str, version: int) -> "DataFrame":
        if not is_path(path):
            # Sensed by its history, a table stays a name: its catalog may be the only way to it.
            return self._session.sql(f"select * from {in_sql(path)} version as of {int(version)}")
        reader = self._session.read.format("delta").option("versionAsOf", version)
        return reader.load(path)

    def _from_snapshots(self, table: str, files: Sequence[NewFile]) -> "DataFrame":
        """Read each commit's files as of that commit, so that Delta applies all of its log."""
        from pyspark.sql import functions as f

        by_version: dict[int, list[NewFile]] = {}
        for file in files:
            by_version.setdefault(file.version, []).append(file)
        if len(by_version) > _SNAPSHOTS:
            return self._at_version(table, max(by_version))
        return union(
            [
                self._at_version(table, version).where(
                    f.col("_metadata.file_path").isin(_addresses(table, group))
                )
                for version, group in by_version.items()
            ]
        )


def _addresses(table: str, files: Sequence[NewFile]) -> list[str]:
    """Spell the files' addresses as Spark does; a local one in both ways that are in use."""
    addresses = []
    for file in files:
        path = _absolute(table, file.path)
        scheme, mark, rest = path.rpartition("://")
        address = f"{scheme}{mark}{_ESCAPED.sub(lambda found: quote(found.group()), rest)}"
        addresses += [address] if mark else [f"file:{address}", f"file://{address}"]
    return addresses


def by_partition(files: Iterable[NewFile]) -> list[list[NewFile]]:
    """Put files of one partition together."""
    groups: dict[tuple[tuple[str, str | None], ...], list[NewFile]] = {}
    for file in files:
        groups.setdefault(file.partition, []).append(file)
    return list(groups.values())


def plain(
    session: "SparkSession", table: str, schema: "StructType", files: Sequence[NewFile]
) -> "DataFrame":
    """Read Parquet files of one partition as they are, even if a later commit removed them."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    partition = dict(files[0].partition)
    stored = StructType([field for field in schema if field.name not in partition])
    paths = [literal(_absolute(table, file.path)) for file in files]
    rows = session.read.schema(stored).parquet(*paths)
    columns = [
        f.lit(partition[field.name] or None).cast(field.dataType).alias(field.name)
        if field.name in partition
        else f.col(f"`{field.name}`")
        for field in schema
    ]
    return rows.select(*columns)


def union(parts: "Sequence[DataFrame]") -> "DataFrame":
    """Put rows together by the names of their columns; one that a part lacks is null there."""

    def join(left: "DataFrame", right: "DataFrame") -> "DataFrame":
        return left.unionByName(right, allowMissingColumns=True)

    return reduce(join, parts)


def _absolute(table: str, path: str) -> str:
    return path if path.startswith("/") or "://" in path else f"{table}/{path}"


def literal(path: str) -> str:
    """Escape what Spark would take for a pattern in a path that it is to read."""
    return _PATTERN.sub(r"\\\g<0>", path)


_PATTERN = re.compile(r"[\\{}\[\]*?]")
#: What Java escapes in the path of a URI.
_ESCAPED = re.compile(r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f]""")

"""Reads the rows that new commits added, through Spark; started only when a rule asks for rows."""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING, Any

from harness.errors import LookFailedError
from harness.names import in_sql
from harness.sense.delta.locate import is_path
from harness.sense.types import NewFile, NewFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: Files of more partitions than this are read through the table's snapshot instead.
_PLAIN_PARTITIONS = 16
_VIEW = "sensor_new_data"


class SparkNewRows:
    """Answers from Spark; safe to ask from many threads at once.

    Each thread has a Spark session of its own beside the given one: temporary views belong to a
    session, so ``sensor_new_data`` of one look is never that of another.
    """

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session
        self._own = threading.local()

    def largest(self, files: NewFiles, column: str) -> str | None:
        """Return the largest value among the new rows, as text; the column as SQL names it."""
        from pyspark.sql import functions as f

        with _one_sentence(f"the largest {column} cannot be read"):
            rows = self._rows(files).select(f.col(column).alias("value"))
            if dict(rows.dtypes)["value"] in {"double", "float"}:
                rows = rows.where(~f.isnan("value"))
            answer = rows.agg(f.max("value").cast("string").alias("largest")).collect()
        found: str | None = answer[0]["largest"]
        return found

    def any_row(self, files: NewFiles, query: str) -> bool:
        """Tell whether the query over ``sensor_new_data`` returns a row.

        The query stands as a subquery, where nothing but a query is admitted.
        """
        session = self._own_session()
        with _one_sentence("its preprocess_query fails"):
            self._rows(files).createOrReplaceTempView(_VIEW)
            try:
                wrapped = f"select 1 from (\n{query.strip().rstrip(';')}\n) limit 1"
                return len(session.sql(wrapped).collect()) > 0
            finally:
                session.catalog.dropTempView(_VIEW)

    def _own_session(self) -> "SparkSession":
        own: SparkSession | None = getattr(self._own, "session", None)
        if own is None or own.sparkContext._jsc is None:
            own = self._own.session = self._session().newSession()
        return own

    def _rows(self, files: NewFiles) -> "DataFrame":
        if files.files is None:
            return self._at_version(files.table_path, files.version)
        if not files.files:
            return self._at_version(files.table_path, files.version).limit(0)
        groups: dict[tuple[tuple[str, str | None], ...], list[NewFile]] = {}
        for file in files.files:
            groups.setdefault(file.partition, []).append(file)
        if files.plain and len(groups) <= _PLAIN_PARTITIONS:
            schema = self._own_session().read.format("delta").load(files.table_path).schema
            return _union([self._plain(files.table_path, schema, g) for g in groups.values()])
        return self._from_snapshots(files.table_path, files.files)

    def _at_version(self, path: str, version: int) -> "DataFrame":
        if not is_path(path):
            # Sensed by its history, a table stays a name: its catalog may be the only way to it.
            return self._own_session().sql(
                f"select * from {in_sql(path)} version as of {int(version)}"
            )
        reader = self._own_session().read.format("delta").option("versionAsOf", version)
        return reader.load(path)

    def _plain(self, table: str, schema: "StructType", files: Sequence[NewFile]) -> "DataFrame":
        """Read Parquet files of one partition as they are, even if a later commit removed them."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import StructType

        partition = dict(files[0].partition)
        stored = StructType([field for field in schema if field.name not in partition])
        paths = [_literal(_absolute(table, file.path)) for file in files]
        rows = self._own_session().read.schema(stored).parquet(*paths)
        columns = [
            f.lit(partition[field.name] or None).cast(field.dataType).alias(field.name)
            if field.name in partition
            else f.col(f"`{field.name}`")
            for field in schema
        ]
        return rows.select(*columns)

    def _from_snapshots(self, table: str, files: Sequence[NewFile]) -> "DataFrame":
        """Read each commit's files as of that commit, so that Delta applies all it knows."""
        from pyspark.sql import functions as f

        by_version: dict[int, list[NewFile]] = {}
        for file in files:
            by_version.setdefault(file.version, []).append(file)
        return _union(
            [
                self._at_version(table, version).where(
                    f.col("_metadata.file_path").isin(self._addresses(table, group))
                )
                for version, group in by_version.items()
            ]
        )

    def _addresses(self, table: str, files: Sequence[NewFile]) -> list[str]:
        """Spell the files' addresses as Spark does; a local one in both ways that are in use."""
        session: Any = self._own_session()
        configuration = session._jsparkSession.sessionState().newHadoopConf()
        addresses = []
        for file in files:
            path = session._jvm.org.apache.hadoop.fs.Path(_absolute(table, file.path))
            qualified = path.getFileSystem(configuration).makeQualified(path)
            address = str(qualified.toUri().toString())
            addresses.append(address)
            if address.startswith("file:///"):
                addresses.append("file:/" + address[len("file:///") :])
        return addresses


def _union(parts: "Sequence[DataFrame]") -> "DataFrame":
    def join(left: "DataFrame", right: "DataFrame") -> "DataFrame":
        return left.unionByName(right, allowMissingColumns=True)

    return reduce(join, parts)


def _absolute(table: str, path: str) -> str:
    return path if path.startswith("/") or "://" in path else f"{table}/{path}"


def _literal(path: str) -> str:
    """Escape what Spark would take for a pattern in a path that it is to read."""
    return _PATTERN.sub(r"\\\g<0>", path)


_PATTERN = re.compile(r"[\\{}\[\]*?]")


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        lines = str(error).strip().splitlines() or [repr(error)]
        raise LookFailedError(f"{what}: {lines[0].rstrip('.')}") from error

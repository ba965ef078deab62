"""Asks the session's metastore for a table and its partitions, without a Spark job."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import ProbeFailedError
from harness.platform.sql_names import parts_of
from harness.platform.storage import normalized
from harness.platform.text import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_CATALOG = "spark_catalog"
#: Formats that have a log of their own, and the source that reads it.
_BETTER_SOURCES = {"delta": "delta_table", "iceberg": "iceberg_table"}
_LOCATION = re.compile(r"\n\tLocation: (.*?)(?:\n|\)$|\)(?=, CatalogPartition\())")


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveTable:
    """What the metastore says of a table."""

    #: Milliseconds since the epoch; tells one life of a table from the next.
    created_ms: int
    location: str
    #: The columns that it is partitioned by.
    partition_columns: tuple[str, ...]
    #: Its data belongs to another user, who may put it elsewhere.
    is_external: bool


class HiveCatalog(Protocol):
    """Knows tables and partitions."""

    def table(self, name: str) -> HiveTable:
        """Return a table.

        Raises:
            ProbeFailedError: There is none, or it is of another kind.
        """
        ...

    def partitions(self, name: str) -> list[str]:
        """Return the names of its partitions, such as ``day=2025-04-23/region=eu``."""
        ...

    def elsewhere(self, name: str, table: HiveTable, names: Sequence[str]) -> dict[str, str]:
        """Return the folders of those of its partitions that are not where their names say."""
        ...


class SparkHiveCatalog:
    """Asks the Spark session's own catalog; the session starts at the first question."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def table(self, name: str) -> HiveTable:
        """Return a table."""
        schema, table = names_of(name)
        with _one_sentence(name):
            found = self._catalog().getTable(schema, table)
            kind = str(found.tableType().name())
            if kind == "VIEW":
                raise ProbeFailedError("it is a view, which has no files of its own")
            provider = str(found.provider().get()) if found.provider().isDefined() else "hive"
            if provider.lower() in _BETTER_SOURCES:
                better = _BETTER_SOURCES[provider.lower()]
                raise ProbeFailedError(f"it is a table of {provider}; sense it as {better}")
            columns = found.partitionColumnNames()
            return HiveTable(
                created_ms=int(found.createTime()),
                location=self._path(found.location()),
                partition_columns=tuple(str(columns.apply(i)) for i in range(columns.size())),
                is_external=kind == "EXTERNAL",
            )

    def partitions(self, name: str) -> list[str]:
        """Return the names of its partitions."""
        with _one_sentence(name):
            names = self._catalog().listPartitionNames(*names_of(name), self._none())
            # One call for all: asked one by one, 10,000 names would take seconds.
            text = str(names.mkString("\n"))
        return text.split("\n") if text else []

    def elsewhere(self, name: str, table: HiveTable, names: Sequence[str]) -> dict[str, str]:
        """Return the folders of those of its partitions that are not where their names say."""
        expected = {f"{table.location}/{each}" for each in names}
        with _one_sentence(name):
            found = self._catalog().listPartitions(*names_of(name), self._none())
            places = locations_in(str(found.mkString(", ")))
            if len(places) != found.size():
                places = [self._path(found.apply(i).location()) for i in range(found.size())]
            return {
                self._name(table, found.apply(index)): place
                for index, place in enumerate(places)
                if place not in expected
            }

    def _name(self, table: HiveTable, partition: Any) -> str:
        utils = self._jvm().org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
        spec = partition.spec()
        return "/".join(
            str(utils.getPartitionPathString(column, spec.apply(column)))
            for column in table.partition_columns
        )

    def _path(self, location: Any) -> str:
        # A Hadoop path does not escape what a URI does.
        return local_or_remote(str(self._jvm().org.apache.hadoop.fs.Path(location).toString()))

    def _none(self) -> Any:
        return self._jvm().scala.Option.apply(None)

    def _jvm(self) -> Any:
        return self._session().sparkContext._jvm

    def _catalog(self) -> Any:
        session: Any = self._session()
        return session._jsparkSession.sharedState().externalCatalog()


def names_of(name: str) -> tuple[str, str]:
    """Split ``schema.table`` of the session's catalog.

    Raises:
        ProbeFailedError: It is another name.
    """
    parts = parts_of(name)
    if len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG:
        parts = parts[1:]
    if len(parts) != 2:
        raise ProbeFailedError("it must be schema.table, a table of the session's metastore")
    # The metastore knows names in lower case only.
    return parts[0].lower(), parts[1].lower()


def locations_in(text: str) -> list[str]:
    """Read the folders out of what Spark's partitions say of themselves."""
    return [local_or_remote(each) for each in _LOCATION.findall(text)]


def local_or_remote(path: str) -> str:
    """Return a path as its storage wants it; a Hadoop path is not escaped, as a URI is."""
    return normalized(re.sub(r"^file:/+", "/", path))


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    from harness.platform.spark.errors import Py4JJavaError, PySparkException

    try:
        yield
    except PySparkException as error:
        if "NOT_FOUND" in (error.getCondition() or ""):
            raise ProbeFailedError(f"the metastore has no table {name}") from error
        raise ProbeFailedError(f"the metastore does not answer: {_reason(error)}") from error
    except Py4JJavaError as error:
        message = error.java_exception.toString()
        raise ProbeFailedError(f"the metastore does not answer: {_reason(message)}") from error


def _reason(message: object) -> str:
    return first_line(message, "it gives no reason").rstrip(".")

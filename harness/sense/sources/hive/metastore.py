"""Reads a table and its partitions from the session's metastore, without a Spark job."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from harness.errors import ProbeFailedError
from harness.platform.spark.session import message_of
from harness.platform.sql_names import METASTORES, parts_of, quoted, text_in_sql
from harness.sense.sources.hive.events import values_of
from harness.sense.table_locations import local_or_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_CATALOG = "spark_catalog"
#: Formats that have a log of their own, and the source that reads it.
_BETTER_SOURCES = {"delta": "delta_table", "iceberg": "iceberg_table"}
#: How Spark refuses to describe a table of these as JSON.
_HAS_OWN_LOG = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class HiveTable:
    """What the metastore records about a table."""

    #: Milliseconds since the epoch; distinguishes one generation of a table from the next.
    created_ms: int
    location: str
    #: The columns that it is partitioned by.
    partition_columns: tuple[str, ...]
    #: Its data belongs to another user, who may put it elsewhere.
    is_external: bool


class HiveCatalog(Protocol):
    """Finds tables and partitions."""

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
        """Return the folders of those of its partitions that are not where their names imply."""
        ...


class SparkHiveCatalog:
    """Queries the Spark session's own catalog; the session starts at the first query.

    Args:
        session: Gives the session.
        catalog: The catalog of names that have none, in a workspace.
    """

    def __init__(
        self, session: "Callable[[], SparkSession]", catalog: str = _SESSION_CATALOG
    ) -> None:
        self._session = session
        self._catalog = catalog

    def table(self, name: str) -> HiveTable:
        """Return a table."""
        found = self._described(name)
        kind = found["type"]
        if kind == "VIEW":
            raise ProbeFailedError("it is a view, which has no files of its own")
        provider = found.get("provider", "hive")
        if provider.lower() in _BETTER_SOURCES:
            better = _BETTER_SOURCES[provider.lower()]
            raise ProbeFailedError(f"it is a table of {provider}; sense it as {better}")
        created = datetime.fromisoformat(found["created_time"])
        return HiveTable(
            created_ms=round(created.timestamp() * 1000),
            location=local_or_remote(found["location"]),
            partition_columns=tuple(found.get("partition_columns", ())),
            is_external=kind == "EXTERNAL",
        )

    def partitions(self, name: str) -> list[str]:
        """Return the names of its partitions."""
        with _one_sentence(name):
            shown = self._session().sql(f"show partitions {self._in_sql(name)}").collect()
        return [row[0] for row in shown]

    def elsewhere(self, name: str, table: HiveTable, names: Sequence[str]) -> dict[str, str]:
        """Return the folders of those of its partitions that are not where their names imply."""
        session = self._session()
        with _one_sentence(name):
            # One statement for all: only a partition without files in its place is queried alone.
            session.catalog.refreshTable(self._in_sql(name))
            files = session.table(self._in_sql(name)).inputFiles()
        filled = {local_or_remote(unquote(file)).rpartition("/")[0] for file in files}
        expected = {each: f"{table.location}/{each}" for each in names}
        places = {
            each: local_or_remote(self._described(name, each)["location"])
            for each, place in expected.items()
            if place not in filled
        }
        return {each: place for each, place in places.items() if place != expected[each]}

    def _described(self, name: str, partition: str | None = None) -> dict[str, Any]:
        from harness.platform.spark.errors import PySparkException

        session, described = self._session(), f"describe table extended {self._in_sql(name)}"
        of = "" if partition is None else f" partition ({partition_in_sql(partition)})"
        with _one_sentence(name):
            try:
                answer = session.sql(f"{described}{of} as json").collect()
            except PySparkException as error:
                if error.getCondition() != _HAS_OWN_LOG:
                    raise
                rows = session.sql(described).collect()
                return {str(row["col_name"]).lower(): row["data_type"] for row in rows}
        found: dict[str, Any] = json.loads(answer[0][0])
        return found

    def _in_sql(self, name: str) -> str:
        return ".".join(map(quoted, (_SESSION_CATALOG, *names_of(name, self._catalog))))


def partition_in_sql(name: str) -> str:
    """Spell a partition for a statement about it."""
    columns = (unquote(each.partition("=")[0]) for each in name.split("/"))
    return ", ".join(
        f"{quoted(column)} = {'null' if value is None else text_in_sql(value)}"
        for column, value in zip(columns, values_of(name), strict=True)
    )


def names_of(name: str, catalog: str = _SESSION_CATALOG) -> tuple[str, str]:
    """Split ``schema.table`` of the session's own metastore.

    Args:
        name: What to split.
        catalog: The catalog of a name that has none.

    Raises:
        ProbeFailedError: It is another name.
    """
    parts = parts_of(name)
    if len(parts) == 3:
        catalog, parts = parts[0], parts[1:]
    if len(parts) != 2:
        raise ProbeFailedError("it must be schema.table, a table of the session's metastore")
    if catalog.lower() not in METASTORES:
        raise ProbeFailedError(
            f"it is a table of the catalog {catalog}, which lists no files; sense the folder of its"
            " files as file, or let its writer register a change"
        )
    # The metastore holds names in lower case only.
    return parts[0].lower(), parts[1].lower()


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    from harness.platform.spark.errors import SPARK_ERRORS

    try:
        yield
    except SPARK_ERRORS as error:
        condition = getattr(error, "getCondition", str)() or ""
        if "NOT_FOUND" in condition:
            raise ProbeFailedError(
                f"the table {name} does not exist in the metastore; create it, or correct its name"
            ) from error
        raise ProbeFailedError(f"the metastore does not answer: {message_of(error)}") from error

"""Finds where a table that is given by name keeps its files."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import LookFailedError
from harness.sense.storage import normalized

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableLocator(Protocol):
    """Knows the catalog."""

    def locate(self, name: str) -> str:
        """Return the path of a table.

        Raises:
            LookFailedError: The catalog has no such table, or cannot be asked.
        """
        ...


class SparkTableLocator:
    """Asks the Spark session's catalog; the session starts at the first question."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def locate(self, name: str) -> str:
        """Return the path of a table."""
        from pyspark.errors import PySparkException

        try:
            return self._location(name).rstrip("/")
        except PySparkException as error:
            condition = error.getCondition() or ""
            if "NOT_FOUND" in condition:
                raise LookFailedError(f"the catalog has no table {name}") from error
            first_line = str(error).strip().splitlines()[0]
            raise LookFailedError(f"the catalog cannot tell where it is: {first_line}") from error

    def _location(self, name: str) -> str:
        session = self._session()
        state: Any = session._jsparkSession.sessionState()
        parts = list(_strings(state.sqlParser().parseMultipartIdentifier(name)))
        if len(parts) == 3 and parts[0] == "spark_catalog":
            parts = parts[1:]
        if len(parts) < 3:
            # The session catalog answers without a job and without loading the table.
            identifier = state.sqlParser().parseTableIdentifier(
                ".".join(f"`{part.replace('`', '``')}`" for part in parts)
            )
            location = state.catalog().getTableMetadata(identifier).location()
            if location.getScheme() in (None, "file"):
                return str(location.getPath())
            # A Hadoop path does not escape what a URI does.
            jvm: Any = session.sparkContext._jvm
            return str(jvm.org.apache.hadoop.fs.Path(location).toString())
        quoted = ".".join(f"`{part.replace('`', '``')}`" for part in parts)
        return normalized(str(session.sql(f"describe detail {quoted}").collect()[0]["location"]))


def _strings(sequence: Any) -> list[str]:
    return [str(sequence.apply(index)) for index in range(sequence.size())]


def is_path(sensor_id: str) -> bool:
    """Tell a path from a table's name: it has a slash."""
    return "/" in sensor_id

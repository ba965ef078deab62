"""Finds where a table that is given by name keeps its files, and checks again from time to time."""

import logging
import re
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from harness.errors import ProbeFailedError
from harness.platform.sql_names import in_sql, parts_of, quoted, text_in_sql
from harness.platform.storage import normalized
from harness.sense.catalog_tables import NO_CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from harness.platform.spark.session import message_of

log = logging.getLogger(__name__)

#: A name is located again after so long: between the two, so that not all are at once.
_RETRY_SECONDS = (600, 900)
_SESSION_CATALOG = "spark_catalog"
_DETAILS = "# Detailed Table Information"
_LOCATION = "\nLocation: "
_FACT = re.compile(r"^(\w[\w ]*): (.*)$", re.MULTILINE)


class NoSuchTableError(ProbeFailedError):
    """The catalog has no Delta table of that name."""


class TableLocator(Protocol):
    """Locates tables in the catalog."""

    def locate(self, name: str) -> str:
        """Return the path of a table.

        Raises:
            NoSuchTableError: The catalog has no such table, or it is none of Delta.
            ProbeFailedError: The catalog cannot be queried.
        """
        ...

    def is_awake(self) -> bool:
        """Return whether it can be queried without starting anything."""
        ...


class Places:
    """Caches where the tables are, for the life of the process.

    A cursor has the path of its table, so that a probe need not query the catalog. A table that was
    dropped and created again elsewhere may leave its old folder behind, where nothing ever happens
    again; only the catalog shows that.
    """

    def __init__(self, locator: TableLocator) -> None:
        self._locator = locator
        self._lock = threading.Lock()
        self._asked: dict[str, datetime] = {}
        self._paths: dict[str, str] = {}

    def locate(self, name: str, at: datetime) -> str:
        """Read from the catalog where a table is.

        Raises:
            ProbeFailedError: There is no such Delta table, or the catalog cannot be queried.
        """
        path = self._locator.locate(name)
        with self._lock:
            self._asked[name], self._paths[name] = at, path
        return path

    def is_elsewhere(self, name: str, path: str, at: datetime) -> bool:
        """Return whether a table was located at another path; queries only when it is time.

        Raises:
            NoSuchTableError: The table was dropped, or another kind of table has its name.
        """
        with self._lock:
            requested = self._asked.setdefault(name, at)
        if at - requested >= _retry_after(name) and self._locator.is_awake():
            try:
                self.locate(name, at)
            except NoSuchTableError:
                raise
            except ProbeFailedError as error:
                # The catalog is away, and the table need not be: the next probe queries it again.
                log.warning("%s: %s", name, error)
        return self._paths.get(name, path) != path


def _retry_after(name: str) -> timedelta:
    least, most = _RETRY_SECONDS
    return timedelta(seconds=least + crc32(name.encode()) % (most - least))


class SparkTableLocator:
    """Queries the Spark session's catalog; the session starts at the first query."""

    def __init__(self, session: "Callable[[], SparkSession]") -> None:
        self._session = session

    def is_awake(self) -> bool:
        """Return whether there is a session already."""
        sql = sys.modules.get("pyspark.sql")
        if sql is None:
            return False
        from harness.platform.spark.errors import PySparkException

        try:
            return sql.SparkSession.active() is not None
        except PySparkException:
            return False

    def locate(self, name: str) -> str:
        """Return the path of a table."""
        from harness.platform.spark.errors import SPARK_ERRORS

        try:
            return self._location(name).rstrip("/")
        except SPARK_ERRORS as error:
            condition = getattr(error, "getCondition", str)() or ""
            if condition in NO_CATALOG:
                catalog = parts_of(name)[0]
                raise NoSuchTableError(
                    f"the catalog {catalog} does not exist in this Spark session; add it in"
                    " profiles.yml, or correct the table's name"
                ) from error
            if "NOT_FOUND" in condition:
                raise _no_table(name) from error
            raise ProbeFailedError(f"the catalog cannot locate it: {message_of(error)}") from error

    def _location(self, name: str) -> str:
        session, parts = self._session(), parts_of(name)
        if len(parts) == 3 and parts[0].lower() == _SESSION_CATALOG:
            parts = parts[1:]
        elif len(parts) > 2 or session.catalog.currentCatalog() != _SESSION_CATALOG:
            return described_location(session, name)
        # Answered without loading the table, and without a job.
        schema = f" in {quoted(parts[-2])}" if len(parts) > 1 else ""
        shown = session.sql(f"show table extended{schema} like {text_in_sql(parts[-1])}").collect()
        found = [
            str(row["information"])
            for row in shown
            if not row["isTemporary"] and row["tableName"] == parts[-1].lower()
        ]
        if not found:
            raise _no_table(name)
        if found[0].count(_LOCATION) != 1:
            # A comment may hold anything.
            return described_location(session, name)
        # What comes before the comment is the catalog's own.
        facts = dict(reversed(_FACT.findall(found[0])))
        refuse_other_kinds(name, facts.get("Type", ""), facts.get("Provider", ""))
        return local_or_remote(facts["Location"])


def _no_table(name: str) -> NoSuchTableError:
    return NoSuchTableError(f"the table {name} does not exist; create it, or correct its name")


def local_or_remote(path: str) -> str:
    """Return a path as its storage requires it; a Hadoop path is not escaped, as a URI is."""
    return normalized(re.sub(r"^file:/+", "/", path))


def described_location(session: "SparkSession", name: str) -> str:
    """Query any catalog for the path of a table, by SQL.

    Raises:
        ProbeFailedError: It is not a Delta table, or the catalog does not answer.
        PySparkException: The catalog has no such table, or cannot be queried.
    """
    rows = session.sql(f"describe table extended {in_sql(name)}").collect()
    names = [row["col_name"] for row in rows]
    details = rows[names.index(_DETAILS) :] if _DETAILS in names else []
    facts = {str(row["col_name"]).lower(): str(row["data_type"]) for row in details}
    refuse_other_kinds(name, facts.get("type", ""), facts.get("provider", ""))
    if "location" not in facts:
        raise ProbeFailedError(f"the catalog does not show where {name} is")
    return normalized(facts["location"])


def refuse_other_kinds(name: str, kind: str, provider: str) -> None:
    """Raise when what has the name is not a Delta table.

    Raises:
        NoSuchTableError: It is a view, or a table of another format.
    """
    if "VIEW" in kind.upper() and kind.upper() != "MATERIALIZED_VIEW":
        raise NoSuchTableError(f"{name} is a view, which has no log; name the tables that it reads")
    if provider.lower() != "delta":
        found = f"a table of {provider}" if provider else "a table of another system"
        raise NoSuchTableError(f"{name} is {found}, not of Delta")

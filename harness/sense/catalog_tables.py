"""Queries a catalog of the workspace for many tables at once: what they are, when they changed.

One statement covers all tables of a catalog. What it reports of a change is a hint and no proof:
documentation promises the time of a table's definition, and workspaces show that of its data, too.
It has to be proved before it is used.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.errors import ProbeFailedError
from harness.platform.sql.port import Sql, SqlError
from harness.platform.sql_names import parts_of, quoted, text_in_sql
from harness.store.rows import integer

#: Names in one statement.
_MOST_TABLES = 2000
#: What Spark reports when the first of three parts is unknown, here and in a workspace.
NO_CATALOG = frozenset(
    {"REQUIRES_SINGLE_PART_NAMESPACE", "CATALOG_NOT_FOUND", "NO_SUCH_CATALOG_EXCEPTION"}
)
#: There is no information schema, as in ``hive_metastore``, or this identity may not read it.
_NOT_SHOWN = ("NOT_FOUND", "NO_SUCH", "PERMISSION", "PRIVILEGE", "FORBIDDEN")
#: Sources of other formats than Delta.
_BY_OTHER_SOURCES = {"ICEBERG": "iceberg_table"} | dict.fromkeys(
    ("AVRO", "CSV", "JSON", "ORC", "PARQUET", "TEXT", "HIVE"), "hive_table"
)


@dataclass(frozen=True, slots=True)
class CatalogName:
    """A table of a catalog; a catalog keeps names in lower case."""

    catalog: str
    schema: str
    table: str

    def __str__(self) -> str:
        """Return the name as SQL takes it."""
        return ".".join(map(quoted, (self.catalog, self.schema, self.table)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """What a catalog reports of one table."""

    #: ``MANAGED``, ``EXTERNAL``, ``VIEW`` and so on.
    kind: str
    #: ``DELTA``, ``ICEBERG`` and so on; empty when the catalog does not report it.
    format: str
    #: When it was altered, in milliseconds of the catalog's own clock.
    altered_ms: int
    #: When the catalog was queried, by the same clock.
    asked_ms: int


class CatalogTables(Protocol):
    """Describes the tables of catalogs."""

    def described(
        self, catalog: str, names: Collection[CatalogName]
    ) -> Mapping[CatalogName, CatalogTable]:
        """Return what the catalog shows of these tables; those that it does not show are missing.

        Raises:
            ProbeFailedError: There is no such catalog, or it does not answer.
        """
        ...


def name_in(catalog: str, sensor_id: str) -> CatalogName:
    """Return the full name of a table.

    Args:
        catalog: The catalog of names that have none.
        sensor_id: ``schema.table`` or ``catalog.schema.table``.

    Raises:
        ProbeFailedError: It is another name.
    """
    parts = tuple(part.lower() for part in parts_of(sensor_id))
    if len(parts) == 2:
        return CatalogName(catalog.lower(), *parts)
    if len(parts) == 3:
        return CatalogName(*parts)
    raise ProbeFailedError(
        "in a workspace its name has two or three parts, schema.table or catalog.schema.table"
    )


class SqlCatalogTables:
    """Queries ``information_schema.tables`` of a catalog.

    Args:
        sql: Runs the statements.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def described(
        self, catalog: str, names: Collection[CatalogName]
    ) -> Mapping[CatalogName, CatalogTable]:
        """Return what the catalog shows of these tables, by one statement for some thousands."""
        listed, found = sorted(names, key=str), dict[CatalogName, CatalogTable]()
        for at in range(0, len(listed), _MOST_TABLES):
            found.update(self._described(catalog, listed[at : at + _MOST_TABLES]))
        return {name: table for name, table in found.items() if name in set(listed)}

    def _described(
        self, catalog: str, names: Collection[CatalogName]
    ) -> dict[CatalogName, CatalogTable]:
        try:
            rows = self._sql.run(statement(catalog, names))
        except SqlError as error:
            condition = error.condition or ""
            if condition in NO_CATALOG:
                raise ProbeFailedError(
                    f"the catalog {catalog} does not exist in the workspace; correct sensor_id"
                ) from error
            if any(each in condition for each in _NOT_SHOWN):
                return {}
            raise ProbeFailedError(f"the catalog {catalog} does not answer: {error}") from error
        return {
            CatalogName(catalog, str(row["table_schema"]), str(row["table_name"])): CatalogTable(
                kind=str(row["table_type"] or "").upper(),
                format=str(row["data_source_format"] or "").upper(),
                altered_ms=integer(row["altered_ms"] or 0),
                asked_ms=integer(row["asked_ms"]),
            )
            for row in rows
        }


def statement(catalog: str, names: Collection[CatalogName]) -> str:
    """Return the statement; it may also find tables of the same names in the other schemas."""
    schemas = ", ".join(text_in_sql(each) for each in sorted({name.schema for name in names}))
    tables = ", ".join(text_in_sql(each) for each in sorted({name.table for name in names}))
    return (
        "select table_schema, table_name, table_type, data_source_format,"
        " unix_millis(last_altered) as altered_ms, unix_millis(current_timestamp()) as asked_ms"
        f" from {quoted(catalog)}.information_schema.tables"
        f" where table_schema in ({schemas}) and table_name in ({tables})"
    )


def refuse_as_delta(table: CatalogTable) -> None:
    """Raise when a table has no Delta log.

    Raises:
        ProbeFailedError: It is a view, or a table of another format.
    """
    if "VIEW" in table.kind and table.kind != "MATERIALIZED_VIEW":
        raise ProbeFailedError("it is a view, which has no log; name the tables that it reads")
    if table.format in _BY_OTHER_SOURCES:
        better = _BY_OTHER_SOURCES[table.format]
        raise ProbeFailedError(f"it is a table of {table.format.lower()}; sense it as {better}")
    if table.kind == "FOREIGN" and not table.format.startswith("DELTA"):
        raise ProbeFailedError(
            f"it is a foreign table of {table.format.lower() or 'another system'}, which has no"
            " log; sense it in its own system as jdbc"
        )

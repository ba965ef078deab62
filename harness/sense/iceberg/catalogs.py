"""Finds a table by its name: a folder below a warehouse, or a row of a database."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.errors import LookFailedError
from harness.names import parts_of
from harness.sense.delta.locate import is_path
from harness.sense.jdbc.queries import Kind, Queries, Query, Value
from harness.sense.storage import normalized
from harness.settings_connections import IcebergCatalog

#: Tables in one statement.
_MOST_TABLES = 100


@dataclass(frozen=True, slots=True)
class TableName:
    """A table in a catalog."""

    catalog: str
    #: With a dot between its levels.
    namespace: str
    name: str


class Catalogs:
    """The catalogs of ``heartbeat.yml``.

    Args:
        catalogs: By the names that ``heartbeat.yml`` gives them.
        queries: Asks those that are databases.
    """

    def __init__(self, catalogs: Mapping[str, IcebergCatalog], queries: Queries) -> None:
        self._catalogs = catalogs
        self._queries = queries

    def database_of(self, sensor_id: str) -> str | None:
        """Return the name of the catalog if it is a database, where all tables are asked for."""
        if is_path(sensor_id):
            return None
        name = parts_of(sensor_id)[0] if sensor_id else ""
        catalog = self._catalogs.get(name)
        return name if catalog is not None and catalog.url is not None else None

    def folder_of(self, sensor_id: str) -> str:
        """Return the folder of a table that is named by its path, or is in a warehouse.

        Raises:
            LookFailedError: No such catalog is known.
        """
        if is_path(sensor_id):
            return normalized(sensor_id)
        table = table_from(sensor_id)
        catalog = self._catalogs.get(table.catalog)
        if catalog is None or catalog.warehouse is None:
            known = ", ".join(sorted(self._catalogs)) or "none"
            raise LookFailedError(
                f"heartbeat.yml has no {table.catalog} under connections.iceberg, only {known}"
            )
        levels = table.namespace.replace(".", "/")
        return f"{normalized(catalog.warehouse)}/{levels}/{table.name}"

    def locations(self, catalog: str, sensor_ids: Iterable[str]) -> dict[str, str]:
        """Return where the metadata of each table is; one that the database lacks is left out.

        Raises:
            LookFailedError: The database cannot be asked.
        """
        tables = {each: table_from(each) for each in sensor_ids if _is_table(each)}
        found = self._rows(self._catalogs[catalog], catalog, list(tables.values()))
        return {
            sensor_id: found[table.namespace, table.name]
            for sensor_id, table in tables.items()
            if (table.namespace, table.name) in found
        }

    def _rows(
        self, catalog: IcebergCatalog, name: str, tables: Sequence[TableName]
    ) -> dict[tuple[str, str], str]:
        found = {}
        for at in range(0, len(tables), _MOST_TABLES):
            query = _query(catalog.catalog_name or name, tables[at : at + _MOST_TABLES])
            answer = self._queries.ask(catalog.database(), query, within=catalog.timeout_seconds)
            for namespace, table, location in answer.rows:
                if location is not None:
                    found[str(namespace), str(table)] = location
        return found


def table_from(sensor_id: str) -> TableName:
    """Read ``catalog.schema.table``; the schema may have several levels.

    Raises:
        LookFailedError: It is another name.
    """
    parts = parts_of(sensor_id)
    if len(parts) < 3:
        raise LookFailedError("it must be catalog.schema.table, an absolute path, or a URI")
    return TableName(parts[0], ".".join(parts[1:-1]), parts[-1])


def _is_table(sensor_id: str) -> bool:
    return len(parts_of(sensor_id)) >= 3


def _query(catalog: str, tables: Sequence[TableName]) -> Query:
    each = "(table_namespace = ? and table_name = ?)"
    texts = [catalog, *(text for table in tables for text in (table.namespace, table.name))]
    return Query(
        text=(
            "select table_namespace, table_name, metadata_location from iceberg_tables"
            f" where catalog_name = ? and ({' or '.join([each] * len(tables))})"
        ),
        parameters=tuple(Value(kind=Kind.TEXT, text=text) for text in texts),
    )

"""Finds the newest metadata file of a table: by a catalog database, or by its folder alone."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.config.connections import IcebergCatalog
from harness.errors import ProbeFailedError
from harness.platform.sql_names import is_path, parts_of
from harness.platform.storage import Storage, normalized
from harness.sense.catalog_tables import name_in
from harness.sense.database_queries import Kind, Queries, Query, Value
from harness.sense.sources.iceberg.cursor import Pointer
from harness.sense.sources.iceberg.workspace import LoadedTable, WorkspaceTables

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
        queries: Reads those that are databases.
        workspace: Loads the tables of a workspace's own catalogs, where there is one.
    """

    def __init__(
        self,
        catalogs: Mapping[str, IcebergCatalog],
        queries: Queries,
        workspace: WorkspaceTables | None = None,
    ) -> None:
        self._catalogs = catalogs
        self._queries = queries
        self._workspace = workspace

    def is_of_workspace(self, sensor_id: str) -> bool:
        """Return whether a table is one of the workspace's own catalogs, by all that is known."""
        if self._workspace is None or is_path(sensor_id):
            return False
        return not any(part in self._catalogs for part in parts_of(sensor_id)[:1])

    def load(self, sensor_id: str) -> LoadedTable:
        """Return the present state of a table of the workspace's own catalogs.

        Raises:
            ProbeFailedError: There is no such table, or the workspace does not show it.
        """
        if self._workspace is None:
            raise ProbeFailedError("it is not a table of a workspace")
        return self._workspace.load(name_in(self._workspace.catalog, sensor_id))

    def database_of(self, sensor_id: str) -> str | None:
        """Return the name of the catalog if it is a database, which is queried for all tables."""
        if is_path(sensor_id):
            return None
        name = parts_of(sensor_id)[0] if sensor_id else ""
        catalog = self._catalogs.get(name)
        return name if catalog is not None and catalog.url is not None else None

    def folder_of(self, sensor_id: str) -> str:
        """Return the folder of a table that is named by its path, or is in a warehouse.

        Raises:
            ProbeFailedError: No such catalog is known.
        """
        if is_path(sensor_id):
            return normalized(sensor_id)
        table = table_from(sensor_id)
        catalog = self._catalogs.get(table.catalog)
        if catalog is None or catalog.warehouse is None:
            known = ", ".join(sorted(self._catalogs)) or "none"
            raise ProbeFailedError(
                f"heartbeat.yml has no {table.catalog} under connections.iceberg, only {known}"
            )
        levels = table.namespace.replace(".", "/")
        return f"{normalized(catalog.warehouse)}/{levels}/{table.name}"

    def locations(self, catalog: str, sensor_ids: Iterable[str]) -> dict[str, str]:
        """Return where the metadata of each table is; one that the database lacks is left out.

        Raises:
            ProbeFailedError: The database cannot be queried.
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
        ProbeFailedError: It is another name.
    """
    parts = parts_of(sensor_id)
    if len(parts) < 3:
        raise ProbeFailedError("it must be catalog.schema.table, an absolute path, or a URI")
    return TableName(parts[0], ".".join(parts[1:-1]), parts[-1])


def _is_table(sensor_id: str) -> bool:
    return len(parts_of(sensor_id)) >= 3


def _query(catalog: str, tables: Sequence[TableName]) -> Query:
    pieces: list[str | Value] = [
        "select table_namespace, table_name, metadata_location from iceberg_tables"
        " where catalog_name = ",
        _text(catalog),
    ]
    for number, table in enumerate(tables):
        before = " or (table_namespace = " if number else " and ((table_namespace = "
        pieces += [before, _text(table.namespace), " and table_name = ", _text(table.name), ")"]
    return Query((*pieces, ")"))


def _text(text: str) -> Value:
    return Value(kind=Kind.TEXT, text=text)


_HINT = "version-hint.text"
_NAME = re.compile(r"v(\d+)\.(?:gz\.)?metadata\.json(?:\.gz)?")
#: How a file of one version may be called: plain, compressed, compressed by an old writer.
_ENDS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")


def newest_in(storage: Storage, table: str, known: Pointer | None) -> Pointer:
    """Return the newest metadata file of a table's folder.

    Args:
        storage: Where the folder is.
        table: The path of the folder.
        known: What the last probe found; where it is still the newest, no folder is listed.

    Raises:
        ProbeFailedError: There is no such table.
    """
    folder = f"{table}/metadata"
    version = None if known is None else _version_of(folder, known.location)
    if known is not None and version is not None and _is_newest(storage, folder, known, version):
        return known
    found = _start(storage, folder)
    if found is None:
        raise ProbeFailedError(_why_not(storage, table, folder))
    version, pointer = found
    while (after := _at(storage, folder, version + 1)) is not None:
        version, pointer = version + 1, after
    return pointer


def _is_newest(storage: Storage, folder: str, known: Pointer, version: int) -> bool:
    return (
        storage.stat(known.location) == known.fingerprint
        and _at(storage, folder, version + 1) is None
    )


def _start(storage: Storage, folder: str) -> tuple[int, Pointer] | None:
    """Return some version to go on from: the one of the hint, else the largest there is."""
    hint = _hint(storage, folder)
    if hint is not None and (pointer := _at(storage, folder, hint)) is not None:
        return hint, pointer
    # A writer takes the hint away for the time of its commit.
    for version in sorted(_versions(storage, folder), reverse=True):
        if (pointer := _at(storage, folder, version)) is not None:
            return version, pointer
    return None


def _hint(storage: Storage, folder: str) -> int | None:
    try:
        return int(storage.read(f"{folder}/{_HINT}", limit=64))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _versions(storage: Storage, folder: str) -> Iterator[int]:
    for name in _names(storage, folder):
        if matched := _NAME.fullmatch(name):
            yield int(matched[1])


def _names(storage: Storage, folder: str) -> list[str]:
    try:
        return [file.name for file in storage.list_files(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _at(storage: Storage, folder: str, version: int) -> Pointer | None:
    for end in _ENDS:
        location = f"{folder}/v{version}{end}"
        fingerprint = storage.stat(location)
        if fingerprint is not None:
            return Pointer(location=location, fingerprint=fingerprint)
    return None


def _version_of(folder: str, location: str) -> int | None:
    parent, _, name = location.rpartition("/")
    matched = _NAME.fullmatch(name)
    return int(matched[1]) if matched is not None and parent == folder else None


def _why_not(storage: Storage, table: str, folder: str) -> str:
    if storage.stat(table) is None:
        return f"the folder {table} does not exist; create the table, or correct its path"
    if any(name.endswith(".metadata.json") for name in _names(storage, folder)):
        return (
            f"a catalog keeps the table in {table}, and only that has its newest state; name it"
            " as catalog.schema.table"
        )
    return f"{table} is not an Iceberg table: its metadata folder has no v1.metadata.json or later"

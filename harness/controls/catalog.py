"""Checks the tables that rows name in a workspace's catalogs, before a probe of them fails."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from harness.config.sources import Source
from harness.controls.findings import Code, Finding, finding, shown
from harness.controls.parse import ControlRow
from harness.errors import ProbeFailedError
from harness.platform.sql_names import is_path
from harness.sense.catalog_tables import CatalogName, CatalogTables, name_in, refuse_as_delta

_BY_NAME = frozenset({Source.DELTA_TABLE.value, Source.LMU_DELTA_TABLE.value})


def check_tables(
    rows: Sequence[ControlRow], tables: CatalogTables, catalog: str
) -> Iterator[Finding]:
    """Return what the catalogs report against rows, by one statement for each catalog.

    Args:
        rows: The rows of the controls.
        tables: Queries a catalog.
        catalog: The catalog of names that have none.
    """
    named: defaultdict[str, dict[ControlRow, CatalogName]] = defaultdict(dict)
    for row in rows:
        if row.source in _BY_NAME and row.sensor_id and not is_path(row.sensor_id):
            try:
                name = name_in(catalog, row.sensor_id)
            except ProbeFailedError as error:
                yield _refused(row, str(error))
            else:
                named[name.catalog][row] = name
    for each, names in named.items():
        yield from _of_catalog(each, names, tables)


def _of_catalog(
    catalog: str, names: Mapping[ControlRow, CatalogName], tables: CatalogTables
) -> Iterator[Finding]:
    try:
        found = tables.described(catalog, set(names.values()))
    except ProbeFailedError as error:
        yield _refused(next(iter(names)), str(error))
        return
    for row, name in names.items():
        table = found.get(name)
        if table is None:
            # A catalog without an information schema shows none.
            if found:
                yield _refused(row, f"the catalog {catalog} does not show it to this login")
            continue
        try:
            refuse_as_delta(table)
        except ProbeFailedError as error:
            yield _refused(row, str(error))


def _refused(row: ControlRow, reason: str) -> Finding:
    message = f"{shown(row.sensor_id)} cannot be sensed as {row.source}: {reason}."
    return finding(Code.TABLE_OF_CATALOG, row.line, "sensor_id", message)

"""The tables of `information_schema` that are read here, made from Spark's catalog as temporary views.

Only those of the schemas and tables that a statement names, if it names any: the catalog of the tests has others.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tests.support.local_rows import frame_of_rows
from tests.support.services.warehouse.dialect import INFORMATION, OWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

Rows = Iterator[tuple[object, ...]]

_TABLES = (
    "table_catalog string, table_schema string, table_name string, table_type string, table_owner string, "
    "comment string, data_source_format string, created timestamp, last_altered timestamp"
)
_COLUMNS = (
    "table_catalog string, table_schema string, table_name string, column_name string, ordinal_position int, "
    "is_nullable string, full_data_type string, comment string"
)
#: What no statement of these tests ever makes.
_EMPTY: Mapping[str, str] = {
    "column_masks": "table_catalog string, table_schema string, table_name string, column_name string, "
    "mask_name string, using_columns string",
    "column_tags": "catalog_name string, schema_name string, table_name string, column_name string, tag_name string, "
    "tag_value string",
    "key_column_usage": "constraint_catalog string, constraint_schema string, constraint_name string, "
    "table_catalog string, table_schema string, table_name string, column_name string, ordinal_position int",
    "referential_constraints": "constraint_catalog string, constraint_schema string, constraint_name string, "
    "unique_constraint_catalog string, unique_constraint_schema string, unique_constraint_name string",
    "row_filters": "table_catalog string, table_schema string, table_name string, filter_name string, "
    "target_columns string",
    "table_constraints": "table_catalog string, table_schema string, table_name string, constraint_name string, "
    "constraint_type string",
    "table_tags": "catalog_name string, schema_name string, table_name string, tag_name string, tag_value string",
}
_SCHEMA_NAMED = re.compile(r"table_schema\s*(?:=|in)\s*\(?\s*((?:'[^']*'\s*,?\s*)+)", re.IGNORECASE)
_TABLE_NAMED = re.compile(r"table_name\s*=\s*'([^']*)'", re.IGNORECASE)


def provide(spark: "SparkSession", catalog: str, tables: frozenset[str], statement: str) -> None:
    """Make the views that a statement reads."""
    for table in tables:
        if table in _EMPTY:
            frame = frame_of_rows(spark, [], _EMPTY[table])
        else:
            columns, rows = _FILLED[table]
            frame = frame_of_rows(spark, rows(spark, catalog, statement), columns)
        frame.createOrReplaceTempView(INFORMATION + table)


def as_json(schema: "StructType") -> str:
    """Return what `describe ... as json` reports of columns."""
    columns = [
        {
            "name": field.name,
            "type": _type_as_json(field.dataType.jsonValue()),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
        }
        for field in schema.fields
    ]
    return json.dumps({"columns": columns})


def _type_as_json(kind: Any) -> Mapping[str, object]:
    if isinstance(kind, str):
        if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
            return {"name": "decimal", "precision": int(found[1]), "scale": int(found[2])}
        return {
            "name": {
                "integer": "int",
                "long": "bigint",
                "short": "smallint",
                "byte": "tinyint",
            }.get(kind, kind)
        }
    match kind["type"]:
        case "array":
            return {"name": "array", "element_type": _type_as_json(kind["elementType"])}
        case "map":
            key, value = _type_as_json(kind["keyType"]), _type_as_json(kind["valueType"])
            return {"name": "map", "key_type": key, "value_type": value}
        case _:
            fields = [
                {"name": each["name"], "type": _type_as_json(each["type"])}
                for each in kind["fields"]
            ]
            return {"name": "struct", "fields": fields}


def _schemas(spark: "SparkSession", statement: str) -> Iterator[str]:
    named = {
        name.lower()
        for listed in _SCHEMA_NAMED.findall(statement)
        for name in re.findall(r"'([^']*)'", listed)
    }
    for row in spark.sql(f"show schemas in {OWN}").collect():
        if not named or row[0].lower() in named:
            yield row[0]


def _facts(
    spark: "SparkSession", schema: str, statement: str
) -> Iterator[tuple[str, dict[str, str]]]:
    # Analysing every view of a schema takes minutes.
    named = "|".join(sorted({*_TABLE_NAMED.findall(statement)})) or "*"
    listed = spark.sql(f"show table extended in {OWN}.`{schema}` like '{named}'").collect()
    for row in listed:
        if row.isTemporary:
            continue
        lines = row.information.splitlines()
        yield row.tableName, dict(line.split(": ", 1) for line in lines if ": " in line)


def _tables(spark: "SparkSession", catalog: str, statement: str) -> Rows:
    for schema in _schemas(spark, statement):
        for name, facts in _facts(spark, schema, statement):
            form = facts.get("Provider", "").upper() or None
            location = facts.get("Location", "")
            yield (
                *(catalog.lower(), schema, name, facts["Type"], "owner"),
                *(facts.get("Comment"), form, *_times(location)),
            )


def _times(location: str) -> tuple[datetime | None, datetime | None]:
    """Return when the first and the newest commit of a Delta table came."""
    log = Path(unquote(urlsplit(location).path)) / "_delta_log"
    times = sorted(each.stat().st_mtime for each in log.glob("*.json")) if location else []
    if not times:
        return None, None
    return datetime.fromtimestamp(times[0], UTC), datetime.fromtimestamp(times[-1], UTC)


def _columns(spark: "SparkSession", catalog: str, statement: str) -> Rows:
    for schema in _schemas(spark, statement):
        for name, _ in _facts(spark, schema, statement):
            fields = spark.table(f"{OWN}.`{schema}`.`{name}`").schema.fields
            for place, field in enumerate(fields):
                yield (
                    *(catalog.lower(), schema, name, field.name, place),
                    "YES" if field.nullable else "NO",
                    field.dataType.simpleString(),
                    field.metadata.get("comment"),
                )


def _views(spark: "SparkSession", catalog: str, statement: str) -> Rows:
    for schema in _schemas(spark, statement):
        for name, facts in _facts(spark, schema, statement):
            if facts["Type"] == "VIEW":
                text = spark.sql(f"show create table {OWN}.`{schema}`.`{name}`").head()[0]  # type: ignore[index]
                body = re.split(r"\bAS\b", text, maxsplit=1, flags=re.IGNORECASE)[-1].strip()
                yield catalog.lower(), schema, name, body


def _schemata(spark: "SparkSession", catalog: str, statement: str) -> Rows:
    for schema in _schemas(spark, statement):
        yield catalog.lower(), schema, "owner"


_FILLED: Mapping[str, tuple[str, "Callable[[SparkSession, str, str], Rows]"]] = {
    "tables": (_TABLES, _tables),
    "columns": (_COLUMNS, _columns),
    "views": (
        "table_catalog string, table_schema string, table_name string, view_definition string",
        _views,
    ),
    "schemata": ("catalog_name string, schema_name string, schema_owner string", _schemata),
}

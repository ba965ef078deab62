"""Reads the names of tables and columns, and spells them for SQL so that nothing leads out of them.

The one place that defines what names a column: a check of the controls and a probe use the same.
"""

import logging
import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

#: Between backticks a backtick is written twice.
_QUOTED = r"`(?:[^`]|``)+`"
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_COLUMN = re.compile(rf"(?:[^\W\d]\w*|{_QUOTED})(?:\.(?:[^\W\d]\w*|{_QUOTED}))*")
_TABLE = re.compile(rf"(?:\w+|{_QUOTED})(?:\.(?:\w+|{_QUOTED})){{0,2}}")
#: Spark takes these without backticks.
_BARE_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def parts_of(name: str) -> tuple[str, ...]:
    """Split a name at its dots; one between backticks belongs to its part."""
    return tuple(quoted.replace("``", "`") or bare for quoted, bare in _PART.findall(name))


def in_sql(name: str) -> str:
    """Return a name with each of its parts in backticks, out of which no character leads."""
    return ".".join(map(quoted, parts_of(name)))


def quoted(part: str) -> str:
    """Return one part of a name in backticks, out of which no character leads."""
    return f"`{part.replace('`', '``')}`"


def is_column(name: str) -> bool:
    """Return whether text names one column, or a field of one: ``a``, ``a.b``, ``a.`b c` ``."""
    return _COLUMN.fullmatch(name) is not None


def is_table(name: str) -> bool:
    """Return whether text names one table: ``orders``, ``sales.orders``, ``lake.`a b`.orders``."""
    return _TABLE.fullmatch(name) is not None


def column_in_sql(name: str) -> str:
    """Return a column's name as SQL takes it: as it is where that works, else in backticks."""
    return name if _BARE_COLUMN.fullmatch(name) else in_sql(name)


def text_in_sql(text: str) -> str:
    """Return text as a SQL string literal, out of which no character leads."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def literal(value: object) -> str:
    """Return a value as SQL has it, with its type.

    Args:
        value: Text, a truth value, an integer, an aware instant, or nothing.
    """
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            return f"cast({value} as bigint)"
        case datetime():
            return f"cast({text_in_sql(value.isoformat())} as timestamp)"
        case str():
            return text_in_sql(str(value))
        case _:
            raise TypeError(f"{type(value).__name__} has no spelling in SQL here")


@dataclass(frozen=True, slots=True)
class SchemaName:
    """The schema of the tables, and in a workspace its catalog: the one place that quotes them.

    Attributes:
        name: The schema, without its catalog.
        catalog: The catalog; nothing: the session's own.
    """

    name: str
    catalog: str | None = None

    def __str__(self) -> str:
        """Return the text for people, without backticks."""
        return f"{self.catalog}.{self.name}" if self.catalog else self.name

    @property
    def in_sql(self) -> str:
        """The schema for a statement."""
        return ".".join(quoted(part) for part in (self.catalog, self.name) if part)

    def table(self, name: str) -> str:
        """Return a table of the schema for a statement."""
        return f"{self.in_sql}.{quoted(str(name))}"


def schema_name(text: str) -> SchemaName:
    """Read a schema's name from text such as ``prod-eu.heartbeat``, or with backticks."""
    *catalog, name = parts_of(text)
    return SchemaName(name=name, catalog=".".join(catalog) or None)


#: What leads to the files of a table, spelled as a table name.
_FORMAT_BEFORE_PATH = re.compile(r"^(?:delta|parquet|iceberg)\.(?=`?[/\w]*[/:])", re.IGNORECASE)
_OWN_CATALOG = "spark_catalog"
#: What the metastore of a session is called, there and in a workspace.
METASTORES = (_OWN_CATALOG, "hive_metastore")


@lru_cache(maxsize=10_000)
def table_key(name: str) -> str:
    """Return what two spellings of one table have in common.

    A catalog does not distinguish ``Sales.Orders`` from ``sales.orders``, and its own name may be
    left out; a path is taken to the letter.
    """
    name = _FORMAT_BEFORE_PATH.sub("", name.strip())
    if "/" in name:
        path = name.replace("`", "")
        path = re.sub(r"^file:(?://)?(?=/)", "", path, flags=re.IGNORECASE)
        return path.rstrip("/") or "/"
    parts = [part.lower() for part in parts_of(name)]
    if len(parts) > 2 and parts[0] == _OWN_CATALOG:
        parts = parts[1:]
    # A dot inside backticks is no border between two names.
    return ".".join(quoted(part) if "." in part or "`" in part else part for part in parts)


log = logging.getLogger(__name__)


def is_path(sensor_id: str) -> bool:
    """Distinguish a path from a table's name: it has a slash."""
    return "/" in sensor_id

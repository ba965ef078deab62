"""What a ``sensor_id`` and an ``upstream_key`` have to look like, source by source."""

import re
from collections.abc import Callable, Mapping

from harness.config.identifiers import relation_from, topic_name_from
from harness.controls.findings import Code, shown
from harness.platform.sql_names import is_column

#: What is wrong with a cell: the code, and the sentence.
Problem = tuple[Code, str]

_PART = r"(?:[^\s.`/\\\"',;()]+|`[^`]+`)"
_ONE_PART = re.compile(r"[\w-]+|`[^`]+`")
_TABLE_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{1,2}}")
_ICEBERG_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{2,}}")
_HIVE_NAME = re.compile(rf"(?:(?:spark_catalog|hive_metastore)\.)?{_PART}\.{_PART}", re.IGNORECASE)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*[^/\s].*", re.DOTALL)
_HAS_WILDCARD = re.compile(r"[*?\[]")
#: A path may have a colon in it, so that only a space behind one ends the table's name.
_SENSOR_OF_TABLE = re.compile(r"(?P<spaced>.+?)\s*:\s+\S.*|(?P<name>[^\s:/]+):\S.*")
_FOLDER_PART = re.compile(r"[^\"<>|*?:\\]+")

#: Sources that are queried by the value of a column, so that a row without one cannot work.
NEED_UPSTREAM_KEY = frozenset({"jdbc"})

#: Sources without rows and columns, so that neither a query nor a key means anything.
HAVE_NO_ROWS = frozenset({"trigger_file"})


def sensor_id_problem(source: str, sensor_id: str) -> str | None:
    """Return the sentence that states what is wrong with the id, if it has the wrong shape."""
    problem_of = _PROBLEMS.get(source)
    return problem_of(sensor_id) if problem_of else None


def upstream_key_problem(key: str) -> str | None:
    """Return the sentence that states what is wrong with the key, if it names no column."""
    if is_column(key):
        return None
    return (
        f"{shown(key)} is not a column name; letters, digits and _ are allowed, a dot between a"
        " structure and its field, and anything else between backticks."
    )


def uses_upstream_key(query: str) -> bool:
    """Return whether the query has a placeholder that only an ``upstream_key`` can fill."""
    return re.search(r"\?upstream_(key|value)\b", query) is not None


def is_without_schema(sensor_id: str) -> bool:
    """Return whether a Delta table is named by one part, so that the default schema counts."""
    return _ONE_PART.fullmatch(sensor_id) is not None


def _delta_problem(sensor_id: str) -> str | None:
    if _TABLE_NAME.fullmatch(sensor_id) or _URI.fullmatch(sensor_id):
        return None
    if sensor_id.startswith("/") and sensor_id.strip("/"):
        return None
    return (
        f"{shown(sensor_id)} is not the name of a Delta table; write schema.table,"
        " catalog.schema.table, an absolute path, or a URI."
    )


def _iceberg_problem(sensor_id: str) -> str | None:
    if _ICEBERG_NAME.fullmatch(sensor_id) or _URI.fullmatch(sensor_id):
        return None
    if sensor_id.startswith("/") and sensor_id.strip("/"):
        return None
    return (
        f"{shown(sensor_id)} is not the name of an Iceberg table; allowed are"
        " catalog.schema.table, the catalog as heartbeat.yml names it, an absolute path, or a URI."
    )


def _hive_problem(sensor_id: str) -> str | None:
    if _HIVE_NAME.fullmatch(sensor_id):
        return None
    return (
        f"{shown(sensor_id)} is not the name of a table of the metastore; allowed are schema.table"
        " and hive_metastore.schema.table; a table of another catalog is sensed as delta_table or"
        " iceberg_table, or the folder of its files as file."
    )


def _file_problem(sensor_id: str) -> str | None:
    if "{" in sensor_id or "**" in sensor_id:
        return (
            f"{shown(sensor_id)} has {{ }} or **, which no pattern of files may have; allowed are"
            " *, ? and [ ], and another row for another folder."
        )
    root = _URI.fullmatch(sensor_id) or (sensor_id.startswith("/") and sensor_id.strip("/"))
    if root and not _HAS_WILDCARD.search(sensor_id.split("/")[2 if "://" in sensor_id else 0]):
        return None
    return (
        f"{shown(sensor_id)} does not name a folder or files; allowed are an absolute path or a"
        " URI, with *, ? and [ ] in the names of folders and files."
    )


def _upstream_sensor_problem(sensor_id: str) -> str | None:
    match = _SENSOR_OF_TABLE.fullmatch(sensor_id)
    if match is not None and _delta_problem(match["spaced"] or match["name"]) is None:
        return None
    return (
        f"{shown(sensor_id)} does not name a sensor of a table; allowed is a sensors table, a"
        " colon, a space, and a sensor id or an asset in it, such as sales.sensors:"
        " sales_orders_111."
    )


def _topic_problem(sensor_id: str) -> str | None:
    if topic_name_from(sensor_id) is not None:
        return None
    return (
        f"{shown(sensor_id)} does not name a Kafka topic; allowed is product: topic, such as"
        " my_product: my.topic, with letters, digits, dots, _ and - in the topic."
    )


def _relation_problem(sensor_id: str) -> str | None:
    if relation_from(sensor_id) is not None:
        return None
    return (
        f"{shown(sensor_id)} names nothing in a database; allowed are connection: schema.table and"
        " connection: (select ...), the connection as heartbeat.yml names it."
    )


def _chain_problem(sensor_id: str) -> str | None:
    if re.fullmatch(r"[^\s,;'\"]+", sensor_id):
        return None
    return (
        f"{shown(sensor_id)} is not the id of a process chain; allowed is one id without spaces,"
        " such as SAP_CHAIN_ID_SAP_TABLE."
    )


def _folder_problem(sensor_id: str) -> str | None:
    parts = sensor_id.rstrip("/").split("/")
    if ".." in parts:
        return (
            f"{shown(sensor_id)} leaves the trigger file root with ..; name a folder under"
            " trigger_files.root."
        )
    if all(part != "." and _FOLDER_PART.fullmatch(part) for part in parts):
        return None
    return (
        f"{shown(sensor_id)} does not name a folder under trigger_files.root; allowed is a"
        " relative name such as my_trigger or sales/my_trigger."
    )


_PROBLEMS: Mapping[str, Callable[[str], str | None]] = {
    "delta_table": _delta_problem,
    "lmu_delta_table": _delta_problem,
    "kafka": _topic_problem,
    "jdbc": _relation_problem,
    "sap_bw": _chain_problem,
    "sap_b4": _chain_problem,
    "trigger_file": _folder_problem,
    "file": _file_problem,
    "delta_upstream_sensor": _upstream_sensor_problem,
    "iceberg_table": _iceberg_problem,
    "hive_table": _hive_problem,
}

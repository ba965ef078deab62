"""What a ``sensor_id`` and an ``upstream_key`` have to look like, source by source."""

import re

from harness.controls.findings import Code, shown
from harness.names import is_column
from harness.relations import relation_from

#: What is wrong with a cell: the code, and the sentence.
Problem = tuple[Code, str]

_PART = r"(?:[^\s.`/\\\"',;()]+|`[^`]+`)"
_TABLE_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{1,2}}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*[^/\s].*", re.DOTALL)
_FOLDER_PART = re.compile(r"[^\"<>|*?:\\]+")

#: Sources that are asked by the value of a column, so that a row without one cannot work.
NEED_UPSTREAM_KEY = frozenset({"jdbc"})

#: Sources without rows and columns, so that neither a query nor a key means anything.
HAVE_NO_ROWS = frozenset({"trigger_file"})

#: Sources of the documents that this version may lack.
DOCUMENTED_SOURCES = (
    "delta_table",
    "lmu_delta_table",
    "delta_upstream_sensor",
    "kafka",
    "sap_bw",
    "sap_b4",
    "jdbc",
    "trigger_file",
    "file",
    "iceberg_table",
    "hive_table",
)


def sensor_id_problem(source: str, sensor_id: str) -> str | None:
    """Return the sentence that says what is wrong with the id, if it has the wrong shape."""
    if source in {"delta_table", "lmu_delta_table"}:
        return _delta_problem(sensor_id)
    if source == "jdbc":
        return _relation_problem(sensor_id)
    if source in {"sap_bw", "sap_b4"}:
        return _chain_problem(sensor_id)
    if source == "trigger_file":
        return _folder_problem(sensor_id)
    return None


def upstream_key_problem(key: str) -> str | None:
    """Return the sentence that says what is wrong with the key, if it names no column."""
    if is_column(key):
        return None
    return (
        f"{shown(key)} is no column name; letters, digits and _ are allowed, a dot between a"
        " structure and its field, and anything else between backticks."
    )


def uses_upstream_key(query: str) -> bool:
    """Tell whether the query has a placeholder that only an ``upstream_key`` can fill."""
    return re.search(r"\?upstream_(key|value)\b", query) is not None


def _delta_problem(sensor_id: str) -> str | None:
    if _TABLE_NAME.fullmatch(sensor_id) or _URI.fullmatch(sensor_id):
        return None
    if sensor_id.startswith("/") and sensor_id.strip("/"):
        return None
    return (
        f"{shown(sensor_id)} names no Delta table; allowed are schema.table, catalog.schema.table,"
        " an absolute path, or a URI."
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
        f"{shown(sensor_id)} is no id of a process chain; allowed is one id without spaces, such as"
        " SAP_CHAIN_ID_SAP_TABLE."
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
        f"{shown(sensor_id)} names no folder under trigger_files.root; allowed is a relative"
        " name such as my_trigger or sales/my_trigger."
    )

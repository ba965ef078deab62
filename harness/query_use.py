"""Says what a preprocess query may read and call; it neither reads its text nor runs it.

The one place that says so: a check of the controls judges by it what the text names, and a look
judges what Spark has understood of it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from harness.names import parts_of
from harness.text import escaped

#: The name under which a query finds the rows that are new.
NEW_DATA = "sensor_new_data"
#: Where the configuration allows more.
SETTING = "sensing.queries_may_read of heartbeat.yml"

#: The parts of a name, in lower case.
Name = tuple[str, ...]

#: Functions that make rows of their arguments alone.
ROW_MAKERS = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "range",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    }
)
#: Functions that run code, read files, secrets or tables, or speak to other systems. Most are of
#: Databricks alone; a function of a catalog is refused whatever its name.
_REACH_OUT = frozenset(
    {
        "cloud_files",
        "event_log",
        "from_avro",
        "from_protobuf",
        "http_request",
        "identifier",
        "java_method",
        "list_secrets",
        "reflect",
        "remote_query",
        "schema_of_avro",
        "secret",
        "table_changes",
        "to_avro",
        "to_protobuf",
        "try_reflect",
        "try_secret",
        "vector_search",
    }
)
_REACH_OUT_STARTS = ("ai_", "read_")
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one query names, apart from its own CTEs and columns."""

    relations: frozenset[Name] = frozenset()
    #: Functions that stand where a table may.
    row_makers: frozenset[Name] = frozenset()
    functions: frozenset[Name] = frozenset()
    #: What else reaches out of a query, in words.
    others: frozenset[str] = frozenset()


def name_of(parts: Iterable[object]) -> Name:
    """Return the parts of a name as names are compared: whatever their case."""
    return tuple(str(part).lower() for part in parts)


def unread(use: Use, may_read: Collection[str]) -> list[str]:
    """Say, one phrase each, what the query reads and may not.

    Args:
        use: What the query names.
        may_read: Tables and views that the configuration allows.
    """
    allowed = {(NEW_DATA,), *(name_of(parts_of(name)) for name in may_read)}
    tables = [
        f"reads {_shown(name)}; allowed are {NEW_DATA} and the tables that {SETTING} names"
        for name in sorted(use.relations - allowed)
    ]
    makers = {name for name in use.row_makers if name[-1] not in ROW_MAKERS or len(name) > 1}
    return tables + [
        f"reads rows of the function {_shown(name)}; allowed there are"
        f" {', '.join(sorted(ROW_MAKERS))}"
        for name in sorted(makers)
    ]


def uncalled(use: Use) -> list[str]:
    """Say, one phrase each, what the query calls and may not."""
    phrases = sorted(use.others)
    for name in sorted(use.functions):
        if len(name) > 1:
            phrases.append(f"calls {_shown(name)}; only functions without a schema are allowed")
        elif name[0] in _REACH_OUT or name[0].startswith(_REACH_OUT_STARTS):
            phrases.append(f"calls {_shown(name)}, which reaches out of the query; do without it")
    return phrases


def _shown(name: Name) -> str:
    text = ".".join(name)
    cut = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return f"'{escaped(cut)}'"

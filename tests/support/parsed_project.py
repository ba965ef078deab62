"""Starts the state directories of tests, each with its own schema, with what `make setup` parsed.

dbt accepts what was parsed for the same connection alone, which the schema is a part of.
"""

import pprint
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgpack

from harness.platform.dbt import PARSED

#: The one of the profile, for which the set-up parses.
_SCHEMA = "heartbeat"


def give_parsed(home: Path, schema: str) -> None:
    """Write for a state directory what dbt keeps of a parsed project, as if parsed for this schema.

    Where the set-up has left nothing that dbt would accept, dbt parses the project.
    """
    parsed = _parsed()
    connection = parsed.get("state_check", {}).get("profile_hash", {})
    if connection.get("checksum") != _checksum(_SCHEMA):
        return
    nodes = [*parsed["nodes"].values(), *parsed["unit_tests"].values()]
    for node in nodes:
        node["schema"] = node["schema"].replace(_SCHEMA, schema, 1)
        if node.get("relation_name"):
            node["relation_name"] = node["relation_name"].replace(_SCHEMA, schema, 1)
    connection["checksum"] = _checksum(schema)
    (home / "target").mkdir(parents=True, exist_ok=True)
    (home / "target" / PARSED.name).write_bytes(msgpack.packb(parsed))


def _parsed() -> dict[str, Any]:
    content = _content()
    return msgpack.unpackb(content) if content else {}


@cache
def _content() -> bytes:
    prepared = Path(sys.prefix) / PARSED
    return prepared.read_bytes() if prepared.is_file() else b""


def _checksum(schema: str) -> str:
    """Return what dbt compares of a connection to the local target."""
    connection = {"host": "local", "port": 443, "cluster": None, "endpoint": None}
    connection |= {"schema": schema, "organization": "0"}
    return sha256(pprint.pformat(sorted(connection.items())).encode()).hexdigest()

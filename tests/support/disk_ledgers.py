"""The ledgers as empty Delta tables on a disk, with the columns of their contracts, without a JVM."""

import re
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from ruamel.yaml import YAML

from harness.store.local import LocalStore
from harness.store.rows import Ledger

_RECORD = Path(__file__).resolve().parents[2] / "models" / "record"
_PLAIN = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_WORD = re.compile(r"[\w]+|[<>,:]")


def create_ledgers(warehouse: Path, *, checkpoint_every: int = 100) -> LocalStore:
    """Create every ledger, and return the store that has them."""
    for ledger in Ledger:
        contract = YAML(typ="safe").load((_RECORD / f"{ledger}.yml").read_text())
        columns = contract["models"][0]["columns"]
        schema = pa.schema([(each["name"], _type_of(each["data_type"])) for each in columns])
        DeltaTable.create(
            warehouse / "heartbeat.db" / ledger,
            schema,
            configuration={"delta.checkpointInterval": str(checkpoint_every)},
        )
    return LocalStore(warehouse, "heartbeat")


def _type_of(text: str) -> pa.DataType:
    found, rest = _next_type(_WORD.findall(text))
    assert not rest, f"{text} goes on with {rest}"
    return found


def _next_type(words: list[str]) -> tuple[pa.DataType, list[str]]:
    name, *rest = words
    if name in _PLAIN:
        return _PLAIN[name], rest
    if name == "array":
        element, rest = _next_type(rest[1:])
        return pa.list_(element), rest[1:]
    if name == "map":
        key, rest = _next_type(rest[1:])
        value, rest = _next_type(rest[1:])
        return pa.map_(key, value), rest[1:]
    assert name == "struct", name
    fields: list[tuple[str, pa.DataType]] = []
    while rest[0] != ">":
        column, _, *rest = rest[1:]
        kind, rest = _next_type(rest)
        fields.append((column, kind))
    return pa.struct(fields), rest[1:]

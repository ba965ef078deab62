"""Reads a table's schema from its log: partition columns, physical names, types, features."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from harness.errors import ProbeFailedError
from harness.platform.json_file import MALFORMED

#: Reader features under which a commit's file actions are still complete. Others go to Spark.
READABLE_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    }
)
#: Of these, the ones under which a data file is an ordinary Parquet file of the table's schema.
_PLAIN_FEATURES = frozenset(
    {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
)

_NO_PROTOCOL = "its log does not describe a table: protocol is corrupt"
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_NUMBER = re.compile(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its name, its name in data files and log, and its type's name."""

    name: str
    physical: str
    type: str

    def json_value(self, text: str | None) -> str:
        """Return a partition value of the log as JSON text: numbers as numbers, null as null."""
        if text is None or text == "":
            return "null"
        is_number = self.type in _INTEGERS or self.type.startswith(("decimal", "float", "double"))
        if is_number and _NUMBER.match(text):
            # JSON allows no leading zeros.
            return str(int(text)) if self.type in _INTEGERS else text
        if self.type == "boolean" and text.lower() in {"true", "false"}:
            return text.lower()
        return json.dumps(text, ensure_ascii=False)

    @property
    def has_exact_statistics(self) -> bool:
        """Return whether a file's largest value in the log is the value itself.

        Strings may be cut, timestamps are cut to milliseconds, and decimals and floats may have
        been rounded by the writer.
        """
        return self.type in _INTEGERS or self.type == "date"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What the last ``metaData`` and ``protocol`` actions of a table describe."""

    table_id: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...]
    #: Data files are ordinary Parquet files of the table's schema, deletion vectors apart.
    is_plain: bool
    #: Changes with the schema.
    schema_digest: str

    def column(self, name: str) -> Column | None:
        """Find a column as Spark does: whatever its case."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        return None


def table_of(metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> Table:
    """Read a table's description from the two actions.

    Raises:
        ProbeFailedError: They describe no table.
    """
    try:
        return _table_of(metadata, protocol)
    except MALFORMED as error:
        raise ProbeFailedError("its log does not describe a table: metaData is corrupt") from error


def _table_of(metadata: Mapping[str, Any], protocol: Mapping[str, Any]) -> Table:
    schema = str(metadata.get("schemaString") or '{"fields": []}')
    columns = tuple(_column(field) for field in json.loads(schema)["fields"])
    by_name = {column.name: column for column in columns}
    mapping = (metadata.get("configuration") or {}).get("delta.columnMapping.mode", "none")
    names = tuple(str(name) for name in metadata.get("partitionColumns") or ())
    return Table(
        table_id=str(metadata["id"]),
        columns=columns,
        partition_columns=tuple(by_name[name] for name in names if name in by_name),
        is_plain=mapping == "none" and has_plain_features(protocol),
        schema_digest=sha256(f"{schema}{names}".encode()).hexdigest()[:8],
    )


def has_plain_features(protocol: Mapping[str, Any]) -> bool:
    """Return whether the protocol leaves data files ordinary Parquet files."""
    return _reader_features(protocol) <= _PLAIN_FEATURES


def unreadable_features(protocol: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the reader features that make the bare log incomplete; empty when it is complete.

    Raises:
        ProbeFailedError: It is no protocol.
    """
    features = set(_reader_features(protocol)) - READABLE_FEATURES
    version = protocol.get("minReaderVersion") or 1
    if not isinstance(version, int):
        raise ProbeFailedError(_NO_PROTOCOL)
    if version > 3:
        features.add(f"reader version {version}")
    return tuple(sorted(features))


def _reader_features(protocol: Mapping[str, Any]) -> frozenset[str]:
    named = protocol.get("readerFeatures") or []
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise ProbeFailedError(_NO_PROTOCOL)
    return frozenset(named)


def _column(field: Mapping[str, Any]) -> Column:
    kind = field["type"]
    physical = (field.get("metadata") or {}).get("delta.columnMapping.physicalName")
    return Column(
        name=str(field["name"]),
        physical=str(physical or field["name"]),
        type=kind if isinstance(kind, str) else str(kind.get("type", "struct")),
    )

"""Iceberg tables without Spark: metadata files as a writer leaves them, of any history."""

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

#: Of a level whose values are text, as Iceberg describes it to Avro.
TEXT = ["null", "string"]
ADDED, EXISTING, DELETED = 1, 0, 2


def avro_file(schema: Any, records: Sequence[Mapping[str, Any]], codec: str = "deflate") -> bytes:
    """Write an Avro container file of one block."""
    block = b"".join(encoded(schema, record) for record in records)
    if codec == "deflate":
        deflater = zlib.compressobj(wbits=-15)
        block = deflater.compress(block) + deflater.flush()
    elif codec == "zstandard":
        import pyarrow as pa

        block = pa.compress(block, codec="zstd", asbytes=True)
    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    meta = encoded({"type": "map", "values": "bytes"}, header)
    sync = bytes(range(16))
    return b"Obj\x01" + meta + sync + varint(len(records)) + varint(len(block)) + block + sync


def varint(number: int) -> bytes:
    """Write a long."""
    number = (number << 1) ^ (number >> 63)
    content = bytearray()
    while number > 0x7F:
        content.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*content, number])


def encoded(schema: Any, value: Any) -> bytes:
    """Write a value; of a union the first branch that is not null."""
    if isinstance(schema, list):
        branch = next(at for at, each in enumerate(schema) if (each == "null") == (value is None))
        return varint(branch) + encoded(schema[branch], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        return b"".join(encoded(each["type"], value[each["name"]]) for each in schema["fields"])
    if kind in ("map", "array"):
        pairs = value.items() if kind == "map" else [(None, each) for each in value]
        of = schema["values"] if kind == "map" else schema["items"]
        items = b"".join(
            (b"" if key is None else encoded("string", key)) + encoded(of, each)
            for key, each in pairs
        )
        return (varint(len(value)) + items if value else b"") + varint(0)
    return _ENCODERS[kind](value)


def _counted(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return varint(len(content)) + content


_ENCODERS: Mapping[str, Callable[[Any], bytes]] = {
    "null": lambda value: b"",
    "boolean": lambda value: bytes([value]),
    "int": varint,
    "long": varint,
    "float": lambda value: struct.pack("<f", value),
    "double": lambda value: struct.pack("<d", value),
    "string": _counted,
    "bytes": _counted,
    "fixed": bytes,
}


def record_of(name: str, **fields: Any) -> dict[str, Any]:
    """Describe a record to Avro."""
    described = [{"name": key, "type": kind} for key, kind in fields.items()]
    return {"type": "record", "name": name, "fields": described}


MANIFEST_LIST = record_of(
    "manifest_file",
    manifest_path="string",
    manifest_length="long",
    partition_spec_id="int",
    content="int",
    added_snapshot_id=["null", "long"],
    added_files_count="int",
    deleted_files_count="int",
    partitions=["null", {"type": "array", "items": record_of("r508", contains_null="boolean")}],
)


def manifest_schema(levels: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the entries of a manifest; one level's name and type for each level."""
    counts = {"type": "map", "values": "long"}
    data_file = record_of(
        "r2",
        content="int",
        file_path="string",
        partition=record_of("r102", **levels),
        record_count="long",
        value_counts=["null", counts],
    )
    return record_of(
        "manifest_entry", status="int", snapshot_id=["null", "long"], data_file=data_file
    )


def entry(status: int, snapshot_id: int | None, **partition: Any) -> dict[str, Any]:
    """Return an entry of a manifest."""
    data_file = {
        "content": 0,
        "file_path": "data/a.parquet",
        "partition": partition,
        "record_count": 3,
        "value_counts": {"1": 3, "2": 3},
    }
    return {"status": status, "snapshot_id": snapshot_id, "data_file": data_file}


class IcebergFolder:
    """A table in a folder of its own, as a catalog of type hadoop keeps it."""

    def __init__(self, path: Path, *, version: int = 2) -> None:
        self.path = path
        self.format = version
        self.version = 0
        self.end = ".metadata.json"
        self.next_id = 100
        #: Type of each level's values, and its transform; without any, the table has no partitions.
        self.levels: dict[str, tuple[Any, str]] = {}
        self.codec = "deflate"
        self.begin()

    def begin(self) -> "IcebergFolder":
        """Begin a generation of the table."""
        self.uuid = str(uuid4())
        self.head: int | None = None
        self.sequence = 0
        self.snapshots: dict[int, dict[str, Any]] = {}
        return self

    def append(self, **more: Any) -> int:
        return self.commit("append", {"added-data-files": "1", "added-records": "2"}, **more)

    def touch(self, *entries: Mapping[str, Any], operation: str = "append") -> int:
        """Add a snapshot with a manifest of these entries; one without a snapshot is its own."""
        snapshot_id = (
            self.append()
            if operation == "append"
            else self.commit(operation, {"deleted-data-files": "1"})
        )
        schema = manifest_schema({name: kind for name, (kind, _) in self.levels.items()})
        manifest = self.path / "metadata" / f"m{snapshot_id}.avro"
        manifest.write_bytes(avro_file(schema, entries, self.codec))
        self.list_manifests(snapshot_id, self.listed(snapshot_id, manifest))
        return snapshot_id

    def listed(self, snapshot_id: int | None, manifest: Path, **more: Any) -> dict[str, Any]:
        """Return the entry of a manifest in a list."""
        return {
            "manifest_path": f"file:{manifest}",
            "manifest_length": 1,
            "partition_spec_id": 0,
            "content": 0,
            "added_snapshot_id": snapshot_id,
            "added_files_count": 1,
            "deleted_files_count": 0,
            "partitions": [{"contains_null": False}],
            **more,
        }

    def list_manifests(self, snapshot_id: int, *listed: Mapping[str, Any]) -> None:
        """Write the list of a snapshot's manifests, and the metadata that names it."""
        path = self.path / "metadata" / f"snap-{snapshot_id}.avro"
        path.write_bytes(avro_file(MANIFEST_LIST, listed, self.codec))
        self.snapshots[snapshot_id]["manifest-list"] = str(path)
        self.write()

    def commit(
        self,
        operation: str | None,
        counts: dict[str, str],
        *,
        parent: int | None = -1,
        is_current: bool = True,
        schema_id: int = 0,
    ) -> int:
        """Add a snapshot; on ``main`` unless stated otherwise."""
        self.next_id += 1
        self.sequence += 1
        # The longs that Iceberg draws do not fit into a double.
        snapshot_id = 3_000_000_000_000_000_000 + self.next_id
        parent = self.head if parent == -1 else parent
        summary = {"operation": operation} if operation else {}
        self.snapshots[snapshot_id] = {
            "snapshot-id": snapshot_id,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            **({"sequence-number": self.sequence} if self.format > 1 else {}),
            "timestamp-ms": 1_745_000_000_000 + self.next_id,
            "summary": {**summary, "changed-partition-count": "0", **counts},
            "schema-id": schema_id,
        }
        if is_current:
            self.head = snapshot_id
        self.write()
        return snapshot_id

    def turn_to(self, head: int | None) -> None:
        """Let ``main`` name another snapshot."""
        self.head = head
        self.write()

    def expire(self, *snapshot_ids: int) -> None:
        for each in snapshot_ids:
            del self.snapshots[each]
        self.write()

    @property
    def newest(self) -> Path:
        return self.path / "metadata" / f"v{self.version}{self.end}"

    def write(self) -> None:
        """Write the next metadata file, and the hint after it."""
        self.version += 1
        self.write_file()
        self.hint(self.version)

    def write_file(self) -> None:
        self.newest.parent.mkdir(parents=True, exist_ok=True)
        text = self.text().encode()
        self.newest.write_bytes(gzip.compress(text) if "gz" in self.end else text)

    def text(self) -> str:
        return json.dumps(
            {
                "format-version": self.format,
                "table-uuid": self.uuid,
                "current-snapshot-id": -1 if self.head is None else self.head,
                "snapshots": list(self.snapshots.values()),
                "partition-specs": [
                    {
                        "spec-id": 0,
                        "fields": [
                            {"name": name, "transform": transform, "source-id": 1, "field-id": 1000}
                            for name, (_, transform) in self.levels.items()
                        ],
                    }
                ],
            }
        )

    def hint(self, version: int) -> None:
        (self.path / "metadata" / "version-hint.text").write_text(str(version))

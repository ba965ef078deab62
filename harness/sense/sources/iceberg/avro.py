"""Reads records of Avro object container files, within bounds: Iceberg's manifests are such files.

Only what is requested is kept, and nothing is trusted: sizes, counts and depths are checked before
anything is read or allocated for them. Whatever the bytes are, the result is records or an
``AvroError``.
"""

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_SCHEMA_LIMIT_BYTES = 4 * 1024 * 1024
_DEPTH_LIMIT = 24
#: A named type counts as often as it is used.
_TYPES_LIMIT = 10_000
_VARINT_LIMIT = 10
_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)


class AvroError(ValueError):
    """The bytes are no such file, or are half-written, or require more than is allowed."""


class BudgetError(AvroError):
    """What is requested is more than one probe reads."""


@dataclass(slots=True, kw_only=True)
class Budget:
    """How much may still be read; every file of one probe takes from it."""

    #: Uncompressed, and of the files themselves.
    content_bytes: int
    #: Values, those that are skipped included.
    values: int

    def take_bytes(self, count: int) -> None:
        """Count bytes.

        Raises:
            BudgetError: There are no more.
        """
        self.content_bytes -= count
        if self.content_bytes < 0:
            raise BudgetError("too many bytes")

    def take_values(self, count: int) -> None:
        """Count values.

        Raises:
            BudgetError: There are no more.
        """
        self.values -= count
        if self.values < 0:
            raise BudgetError("too many values")


#: What to keep of a record, by name: a part of an inner record, or ``None`` for all of a value.
Wanted = Mapping[str, "Wanted | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A file's schema, and its records one by one."""

    schema: Any
    records: Iterator[Mapping[str, Any]]


def read_container(content: bytes, wanted: Wanted, budget: Budget) -> Container:
    """Read a container file.

    Args:
        content: The whole file.
        wanted: What to keep of each record; a field that the schema lacks is left out.
        budget: Is taken from.

    Raises:
        AvroError: At once or while records are read: it is no such file, or too large.
    """
    budget.take_bytes(len(content))
    cursor = _Cursor(content, budget)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise AvroError("no Avro file")
    header = dict[str, bytes]()
    for _ in _items(cursor):
        key = _string(cursor)
        header[key] = _bytes(cursor)
    sync = cursor.take(_SYNC_SIZE)
    schema = _schema_of(header.get("avro.schema", b""))
    codec = header.get("avro.codec", b"null").decode("latin-1")
    decode = _Compiler().record(schema, wanted)
    return Container(schema=schema, records=_records(cursor, sync, codec, decode))


def _schema_of(text: bytes) -> Any:
    if len(text) > _SCHEMA_LIMIT_BYTES:
        raise BudgetError("its schema is too large")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AvroError("its schema is not JSON") from error


def _records(
    cursor: "_Cursor", sync: bytes, codec: str, decode: "_Decode"
) -> Iterator[Mapping[str, Any]]:
    while not cursor.is_at_end:
        count, size = _long(cursor), _long(cursor)
        if count < 0:
            raise AvroError("a block with a negative number of records")
        block = _Cursor(_decompressed(cursor.take(size), codec, cursor.budget), cursor.budget)
        if cursor.take(_SYNC_SIZE) != sync:
            raise AvroError("a block does not end where it should")
        for _ in range(count):
            yield decode(block)
        if not block.is_at_end:
            raise AvroError("a block is longer than its records")


def _decompressed(block: bytes, codec: str, budget: Budget) -> bytes:
    if codec == "null":
        return block
    limit = budget.content_bytes
    try:
        content = _CODECS[codec](block, limit + 1)
    except KeyError:
        raise AvroError("it is compressed in a way that is not known") from None
    except (OSError, ValueError, NotImplementedError, zlib.error) as error:
        raise AvroError("a block cannot be decompressed") from error
    budget.take_bytes(len(content))
    return content


def _deflated(block: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj(-15)
    content = inflater.decompress(block, limit)
    if not inflater.eof and len(content) < limit:
        raise ValueError("half a block")
    return content


def _zstandard(block: bytes, limit: int) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(io.BytesIO(block), "zstd") as stream:
        return bytes(stream.read(limit))


_CODECS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "deflate": _deflated,
    "zstandard": _zstandard,
}


@dataclass(slots=True)
class _Cursor:
    data: bytes
    budget: Budget
    at: int = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.data)

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise AvroError("it ends too early")
        consumed = self.data[self.at : end]
        self.at = end
        return consumed

    def skip(self, count: int) -> None:
        if count < 0 or self.at + count > len(self.data):
            raise AvroError("it ends too early")
        self.at += count


_Decode = Callable[[_Cursor], Any]


def _long(cursor: _Cursor) -> int:
    data, at, value, shift = cursor.data, cursor.at, 0, 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift >= 7 * _VARINT_LIMIT:
                raise AvroError("a number is too long")
    except IndexError:
        raise AvroError("it ends too early") from None
    cursor.at = at
    number = (value >> 1) ^ -(value & 1)
    if not _SMALLEST <= number <= _LARGEST:
        raise AvroError("a number is too large")
    return number


def _bytes(cursor: _Cursor) -> bytes:
    return cursor.take(_long(cursor))


def _string(cursor: _Cursor) -> str:
    try:
        return _bytes(cursor).decode()
    except UnicodeDecodeError as error:
        raise AvroError("a text is not UTF-8") from error


def _boolean(cursor: _Cursor) -> bool:
    return cursor.take(1) != b"\0"


def _float(cursor: _Cursor) -> float:
    return float(struct.unpack("<f", cursor.take(4))[0])


def _double(cursor: _Cursor) -> float:
    return float(struct.unpack("<d", cursor.take(8))[0])


def _items(cursor: _Cursor) -> Iterator[None]:
    """Stop before each item of an array or a map."""
    while count := _long(cursor):
        if count < 0:
            count = -count
            _long(cursor)  # the block's size
        cursor.budget.take_values(count)
        for _ in range(count):
            yield


_PRIMITIVES: Mapping[str, _Decode] = {
    "null": lambda cursor: None,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}
_SKIPS: Mapping[str, _Decode] = {
    **_PRIMITIVES,
    "boolean": lambda cursor: cursor.skip(1),
    "float": lambda cursor: cursor.skip(4),
    "double": lambda cursor: cursor.skip(8),
    "bytes": lambda cursor: cursor.skip(_long(cursor)),
    "string": lambda cursor: cursor.skip(_long(cursor)),
}


@dataclass(slots=True)
class _Compiler:
    """Makes of a schema what reads its values; a type that holds itself is refused."""

    #: The definitions of named types seen so far.
    named: dict[str, Any] = field(default_factory=dict)
    depth: int = 0
    types: int = 0

    def record(self, schema: Any, wanted: Wanted) -> _Decode:
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise AvroError("its schema is not a record")
        return self.reader(schema, wanted, is_kept=True)

    def reader(self, schema: Any, wanted: Wanted | None, *, is_kept: bool) -> _Decode:
        self.depth, self.types = self.depth + 1, self.types + 1
        if self.depth > _DEPTH_LIMIT or self.types > _TYPES_LIMIT:
            raise AvroError("its schema is too deep or too large")
        made = self._reader(schema, wanted, is_kept=is_kept)
        self.depth -= 1
        return made

    def _reader(self, schema: Any, wanted: Wanted | None, *, is_kept: bool) -> _Decode:
        if isinstance(schema, list):
            return self._union(schema, wanted, is_kept=is_kept)
        kind = schema.get("type") if isinstance(schema, dict) else schema
        if not isinstance(kind, str):
            return self.reader(kind, wanted, is_kept=is_kept)
        if kind in _PRIMITIVES:
            return (_PRIMITIVES if is_kept else _SKIPS)[kind]
        if not isinstance(schema, dict):
            return self.reader(self._definition(kind), wanted, is_kept=is_kept)
        if isinstance(schema.get("name"), str):
            self.named[schema["name"]] = schema
        return self._complex(kind, schema, wanted, is_kept=is_kept)

    def _definition(self, name: str) -> Any:
        if name not in self.named:
            raise AvroError("its schema has a type that is not known")
        return self.named[name]

    def _complex(
        self, kind: str, schema: Mapping[str, Any], wanted: Wanted | None, *, is_kept: bool
    ) -> _Decode:
        match kind:
            case "record":
                return self._record(schema, wanted, is_kept=is_kept)
            case "array":
                return _array(self.reader(schema.get("items"), None, is_kept=is_kept), is_kept)
            case "map":
                return _map(self.reader(schema.get("values"), None, is_kept=is_kept), is_kept)
            case "fixed":
                size = schema.get("size")
                if not isinstance(size, int) or size < 0:
                    raise AvroError("its schema has a type without a size")
                return lambda cursor: cursor.take(size)
            case "enum":
                return _long
        raise AvroError("its schema has a type that is not known")

    def _union(self, branches: list[Any], wanted: Wanted | None, *, is_kept: bool) -> _Decode:
        readers = [self.reader(each, wanted, is_kept=is_kept) for each in branches]

        def read(cursor: _Cursor) -> Any:
            branch = _long(cursor)
            if not 0 <= branch < len(readers):
                raise AvroError("a value has no type")
            return readers[branch](cursor)

        return read

    def _record(
        self, schema: Mapping[str, Any], wanted: Wanted | None, *, is_kept: bool
    ) -> _Decode:
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise AvroError("its schema has a record without fields")
        plan: list[tuple[str | None, _Decode]] = []
        for each in fields:
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise AvroError("its schema has a field without a name")
            name = each["name"]
            keeps = is_kept and (wanted is None or name in wanted)
            inner = wanted.get(name) if wanted is not None else None
            reader = self.reader(each.get("type"), inner, is_kept=keeps)
            plan.append((name if keeps else None, reader))

        def read(cursor: _Cursor) -> dict[str, Any]:
            cursor.budget.take_values(1 + len(plan))
            record = {}
            for name, decode in plan:
                value = decode(cursor)
                if name is not None:
                    record[name] = value
            return record

        return read


def _array(item: _Decode, is_kept: bool) -> _Decode:
    def read(cursor: _Cursor) -> list[Any] | None:
        values = [item(cursor) for _ in _items(cursor)]
        return values if is_kept else None

    return read


def _map(value: _Decode, is_kept: bool) -> _Decode:
    key = _PRIMITIVES["string"] if is_kept else _SKIPS["string"]

    def read(cursor: _Cursor) -> dict[str, Any] | None:
        values = {key(cursor): value(cursor) for _ in _items(cursor)}
        return values if is_kept else None

    return read

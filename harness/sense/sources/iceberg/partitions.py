"""Names the partitions that snapshots touched, by their own manifests.

A snapshot's summary names them only if the table's writers were set up for it. Only manifests that
the snapshot itself added are read, and of a probe no more than the limits below. Where partitions
cannot be named, the event records this; it is never left out.
"""

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from harness.events.event import ChangeEvent
from harness.events.partition import Partitions, partition_fields
from harness.platform.storage import Storages, normalized
from harness.sense.sources.iceberg.avro import (
    AvroError,
    Budget,
    BudgetError,
    Container,
    read_container,
)
from harness.sense.sources.iceberg.metadata import PartitionField, Snapshot
from harness.sense.sources.iceberg.snapshots import Finding

#: Of one probe: manifest lists and manifests, their bytes, and the values in them.
FILES_PER_PROBE = 1_000
BYTES_PER_PROBE = 128 * 1024 * 1024
VALUES_PER_PROBE = 5_000_000
#: A partition value whose JSON is longer than this is not named.
VALUE_LIMIT = 1_000

#: The tag that shows why partitions are not named.
NOT_NAMED = "partitions_not_named"

_IN_LIST = {
    "manifest_path": None,
    "partition_spec_id": None,
    "added_snapshot_id": None,
    "added_files_count": None,
    "deleted_files_count": None,
    # As the first writers called them.
    "added_data_files_count": None,
    "deleted_data_files_count": None,
}
_IN_MANIFEST = {"status": None, "snapshot_id": None, "data_file": {"partition": None}}
_ADDED_OR_DELETED = (1, 2)
_VOID = "void"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE = "+00:00"


def with_partitions(
    found: Finding, specs: Mapping[int, Sequence[PartitionField]], storages: Storages
) -> tuple[ChangeEvent, ...]:
    """Return the events of a probe, each with the partitions that its snapshot touched.

    Args:
        found: What the probe found.
        specs: How the table is or was partitioned.
        storages: Read the manifests.

    Raises:
        OSError: A storage does not answer; the next probe finds the same snapshots again.
    """
    if not any(specs.values()):
        return found.events
    own = {str(snapshot.id): snapshot for snapshot in found.reported}
    manifests = _Manifests(storages, specs)
    return tuple(
        _named(event, own[event.snapshot_id], manifests) if event.snapshot_id in own else event
        for event in found.events
    )


def _named(event: ChangeEvent, snapshot: Snapshot, manifests: "_Manifests") -> ChangeEvent:
    try:
        touched = manifests.touched_by(snapshot)
    except BudgetError:
        return _unnamed(event, "a sweep reads no more manifests than it has read")
    except AvroError as error:
        return _unnamed(event, f"a manifest cannot be read: {error}")
    except FileNotFoundError:
        return _unnamed(event, "a manifest is not there")
    except PermissionError:
        return _unnamed(event, "access to a manifest is denied")
    partition, tags = partition_fields(touched)
    return replace(event, partition=partition, tags={**event.tags, **tags})


def _unnamed(event: ChangeEvent, why: str) -> ChangeEvent:
    _, tags = partition_fields(Partitions(are_all=False))
    return replace(event, tags={**event.tags, **tags, NOT_NAMED: why})


@dataclass(slots=True)
class _Manifests:
    """The manifests of one table, as far as one probe reads them."""

    storages: Storages
    specs: Mapping[int, Sequence[PartitionField]]
    files: int = field(default_factory=lambda: FILES_PER_PROBE)
    budget: Budget = field(
        default_factory=lambda: Budget(content_bytes=BYTES_PER_PROBE, values=VALUES_PER_PROBE)
    )

    def touched_by(self, snapshot: Snapshot) -> Partitions:
        seen: set[tuple[str, ...] | None] = set()
        for path, spec_id in self._of(snapshot):
            manifest = self._read(path, _IN_MANIFEST)
            seen |= set(_partitions_in(manifest, self._spec(spec_id, manifest), snapshot.id))
        named = frozenset(each for each in seen if each)
        # Files without a partition, beside others: the table was partitioned meanwhile.
        return Partitions(values=named, are_all=None not in seen and (not named or () not in seen))

    def _of(self, snapshot: Snapshot) -> Iterator[tuple[str, int | None]]:
        """Return the manifests that a snapshot added, and how each is partitioned."""
        if snapshot.manifest_list is None:
            yield from ((path, None) for path in snapshot.manifests)
            return
        for record in self._read(snapshot.manifest_list, _IN_LIST).records:
            if record.get("added_snapshot_id") in (None, snapshot.id) and _has_changes(record):
                path, spec_id = record.get("manifest_path"), record.get("partition_spec_id")
                if not isinstance(path, str) or not isinstance(spec_id, int | None):
                    raise AvroError("it names no manifest")
                yield path, spec_id

    def _read(self, path: str, wanted: Mapping[str, Any]) -> Container:
        self.files -= 1
        if self.files < 0:
            raise BudgetError("too many files")
        path = normalized(path)
        try:
            content = self.storages.of(path).read(path, limit=self.budget.content_bytes + 1)
        except ValueError as error:
            raise AvroError("its path is not one that a storage can open") from error
        return read_container(content, wanted, self.budget)

    def _spec(self, spec_id: int | None, manifest: Container) -> Sequence[PartitionField]:
        if spec_id is None:
            # Old lists do not record it.
            return next(iter(self.specs.values()))
        if spec_id not in self.specs:
            raise AvroError("it is partitioned in a way that the table does not list")
        return self.specs[spec_id]


def _has_changes(record: Mapping[str, Any]) -> bool:
    added = record.get("added_files_count", record.get("added_data_files_count"))
    deleted = record.get("deleted_files_count", record.get("deleted_data_files_count"))
    return (added, deleted) != (0, 0)


def _partitions_in(
    manifest: Container, spec: Sequence[PartitionField], snapshot_id: int
) -> Iterator[tuple[str, ...] | None]:
    """Return each partition with a file that the snapshot added or deleted; ``None``: too long."""
    levels = _levels(manifest.schema, spec)
    texts = dict[tuple[object, ...], tuple[str, ...] | None]()
    for entry in manifest.records:
        if entry.get("status") not in _ADDED_OR_DELETED:
            continue
        # A new entry inherits the snapshot of its manifest.
        if entry.get("snapshot_id") not in (None, snapshot_id):
            continue
        partition = _record(_record(entry.get("data_file")).get("partition"))
        values = tuple(partition.get(level.name) for level in levels)
        if not _is_plain(values):
            raise AvroError("a partition value has parts")
        if values not in texts:
            texts[values] = _short(tuple(map(_text_of, levels, values)))
            yield texts[values]


def _record(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise AvroError("an entry without a partition")
    return value


def _is_plain(values: Sequence[object]) -> bool:
    return not any(isinstance(value, dict | list) for value in values)


def _short(texts: tuple[str, ...]) -> tuple[str, ...] | None:
    return None if any(len(text) > VALUE_LIMIT for text in texts) else texts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    #: In a manifest's records, where odd characters of the field's own name are replaced.
    name: str
    transform: str
    #: As Avro describes it.
    kind: str
    logical: str
    scale: int
    has_zone: bool


def _levels(schema: Any, spec: Sequence[PartitionField]) -> list[_Level]:
    """Return the levels of a manifest's partitions; a field that was dropped is none of them."""
    fields = _field_type(_field_type(schema, "data_file"), "partition").get("fields") or ()
    if len(fields) != len(spec):
        raise AvroError("its partitioning differs from the table's")
    return [
        _level(each, part.transform)
        for each, part in zip(fields, spec, strict=True)
        if part.transform != _VOID
    ]


def _field_type(record: Any, name: str) -> Mapping[str, Any]:
    for each in record["fields"]:
        if each.get("name") == name and isinstance(each.get("type"), dict):
            found: Mapping[str, Any] = each["type"]
            if found.get("type") == "record":
                return found
    raise AvroError(f"it has no {name}")


def _level(described: Mapping[str, Any], transform: str) -> _Level:
    kind = described.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    of = kind if isinstance(kind, dict) else {"type": kind}
    scale = of.get("scale")
    return _Level(
        name=str(described["name"]),
        transform=transform,
        kind=str(of.get("type")),
        logical=str(of.get("logicalType") or ""),
        scale=scale if isinstance(scale, int) and 0 <= scale <= 38 else 0,
        has_zone=of.get("adjust-to-utc") is True,
    )


def _text_of(level: _Level, value: Any) -> str:
    """Return a value as JSON: as Iceberg itself calls the partition, numbers as numbers."""
    if value is None:
        return "null"
    text_of = _TRANSFORMS.get(level.transform) or _LOGICAL.get(level.logical) or _plain
    try:
        text = text_of(level, value)
    except (ValueError, OverflowError, TypeError):
        # An instant past the year 9999, or another type than the transform makes.
        text = _plain(level, value)
    return text


def _plain(level: _Level, value: Any) -> str:
    if isinstance(value, bytes):
        value = base64.b64encode(value).decode()
    elif isinstance(value, float) and not math.isfinite(value):
        value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return json.dumps(value, ensure_ascii=False)


def _year(level: _Level, value: int) -> str:
    return json.dumps(f"{1970 + value:04d}")


def _month(level: _Level, value: int) -> str:
    years, month = divmod(value, 12)
    return json.dumps(f"{1970 + years:04d}-{month + 1:02d}")


def _day(level: _Level, value: int) -> str:
    return json.dumps((date(1970, 1, 1) + timedelta(days=value)).isoformat())


def _hour(level: _Level, value: int) -> str:
    return json.dumps((_EPOCH + timedelta(hours=value)).strftime("%Y-%m-%d-%H"))


def _time(level: _Level, value: int) -> str:
    return json.dumps(_at(value).time().isoformat())


def _micros(level: _Level, value: int) -> str:
    return json.dumps(_at(value).isoformat().removesuffix(_ZONE) + _zone(level))


def _nanos(level: _Level, value: int) -> str:
    seconds, nanos = divmod(value, 1_000_000_000)
    at = (_EPOCH + timedelta(seconds=seconds)).isoformat()
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return json.dumps(at.removesuffix(_ZONE) + fraction + _zone(level))


def _zone(level: _Level) -> str:
    return _ZONE if level.has_zone else ""


def _at(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _decimal(level: _Level, value: bytes) -> str:
    number = int.from_bytes(value, "big", signed=True)
    digits = f"{abs(number):0{level.scale + 1}d}"
    whole = digits[: len(digits) - level.scale]
    fraction = f".{digits[len(digits) - level.scale :]}" if level.scale else ""
    return f"{'-' if number < 0 else ''}{whole}{fraction}"


def _uuid(level: _Level, value: bytes) -> str:
    return json.dumps(str(UUID(bytes=value)))


_TRANSFORMS: Mapping[str, Callable[[_Level, Any], str]] = {
    "year": _year,
    "month": _month,
    "day": _day,
    "hour": _hour,
}
_LOGICAL: Mapping[str, Callable[[_Level, Any], str]] = {
    "date": _day,
    "time-micros": _time,
    "timestamp-micros": _micros,
    "timestamp-nanos": _nanos,
    "decimal": _decimal,
    "uuid": _uuid,
}

"""One data-change event as Python code has it: nine fields and an id, from JSON and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from hashlib import sha256
from typing import Any, cast

from harness.store.rows import Row, Tick, integer, text_or_none, whole_or_none


class Operation(StrEnum):
    """What a data-change event did to the data."""

    APPEND = "APPEND"
    DELETE = "DELETE"
    #: No assumption: it may append, delete, or both.
    UPDATE = "UPDATE"


class TableFormat(StrEnum):
    """How to read a data-change event's ``snapshot_id``."""

    DELTA = "DELTA"
    ICEBERG = "ICEBERG"
    #: A hash of the files of a partition.
    HIVE = "HIVE"
    KAFKA = "KAFKA"
    FILE = "FILE"
    SENSOR = "SENSOR"
    #: The largest value of the key, with ``+n`` for rows that came late.
    JDBC = "JDBC"
    #: The log id of a run of a process chain.
    SAP = "SAP"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """A change of one table, as a producer or a probe reports it and as a job gets it."""

    #: When the event was recorded, in milliseconds since the epoch; ``None`` before it is.
    event_ts: int | None = None
    table: str
    #: One JSON value per level, as text: ``('"2026-03-01"', "7")``; ``None``: none, or several.
    partition: tuple[str, ...] | None = None
    snapshot_id: str | None = None
    #: Milliseconds since the epoch.
    snapshot_ts: int | None = None
    prev_snapshot_id: str | None = None
    table_format: TableFormat
    #: Of an UPDATE nothing is assumed: it may append, delete, or both.
    operation_type: Operation = Operation.UPDATE
    tags: Mapping[str, str] = field(default_factory=dict)
    #: Names the change; ``None``: the one who records it gives it a name.
    event_id: str | None = None
    #: Distinguishes one generation of an upstream from the next (a table dropped and created
    #: again); only a probe states it, for the id of the event, and the ledger does not keep it.
    lineage: str | None = None

    def id_at(self, upstream_id: str) -> str:
        """Return the deterministic id: the same change recorded twice is one event."""
        text = "\x1f".join((upstream_id, self.lineage or "", self.snapshot_id or ""))
        return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]

    def recorded(
        self, tick: Tick, *, upstream_id: str, event_id: str, change_id: str
    ) -> "EventRow":
        """Return the row that records the event."""
        return EventRow(
            **self._fields(),
            tick_number=tick.number,
            event_ts=int(tick.at.timestamp() * 1000),
            event_id=event_id,
            upstream_id=upstream_id,
            change_id=change_id,
        )

    def _fields(self) -> dict[str, Any]:
        """Return the fields that recording does not set."""
        names = {each.name for each in fields(ChangeEvent)} - {"event_ts", "event_id", "lineage"}
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> "ChangeEvent":
        """Read an event from JSON, or from a row of a table.

        Other fields than those of an event are left out.

        Raises:
            KeyError: There is no table, format or operation.
            ValueError: A format, an operation or a number is none.
        """
        partition = content.get("partition")
        tags = cast(Mapping[str, object], content.get("tags") or {})
        return cls(
            event_ts=whole_or_none(content.get("event_ts")),
            table=str(content["table"]),
            partition=None if partition is None else tuple(map(str, _list(partition))),
            snapshot_id=text_or_none(content.get("snapshot_id")),
            snapshot_ts=whole_or_none(content.get("snapshot_ts")),
            prev_snapshot_id=text_or_none(content.get("prev_snapshot_id")),
            table_format=TableFormat(str(content["table_format"]).upper()),
            operation_type=Operation(str(content["operation_type"]).upper()),
            tags={str(key): str(value) for key, value in tags.items()},
            event_id=text_or_none(content.get("event_id")),
        )

    def to_json(self) -> dict[str, object]:
        """Return the event in types of JSON, in the order in which a job gets the fields."""
        return {
            "event_id": self.event_id,
            "event_ts": self.event_ts,
            "table": self.table,
            "partition": None if self.partition is None else list(self.partition),
            "snapshot_id": self.snapshot_id,
            "snapshot_ts": self.snapshot_ts,
            "prev_snapshot_id": self.prev_snapshot_id,
            "table_format": self.table_format.value,
            "operation_type": self.operation_type.value,
            "tags": dict(self.tags),
        }


# A type of its own, since every row of the ledger has its tick, its upstream and its change, and
# code that compares rows need not check whether they are there.
@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow(ChangeEvent):
    """An event in the ledger, and where it came from."""

    tick_number: int
    event_ts: int
    event_id: str
    upstream_id: str
    #: Names the change itself, whatever its origin.
    change_id: str

    @classmethod
    def from_row(cls, row: Row) -> "EventRow":
        """Read a row of the ledger; an older one has no change that it is part of."""
        event_id = str(row["event_id"])
        return cls(
            **ChangeEvent.from_json(row)._fields(),
            tick_number=integer(row["tick_number"]),
            event_ts=integer(row["event_ts"]),
            event_id=event_id,
            upstream_id=str(row["upstream_id"]),
            change_id=text_or_none(row.get("change_id")) or event_id,
        )


def _list(value: object) -> Sequence[object]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"a partition is a list with a JSON value per level, not {value!r}")
    return value

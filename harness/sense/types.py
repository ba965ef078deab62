"""What a look at an upstream takes and gives: ``Upstream`` in, ``Look`` out, ``Probe`` between.

A probe never writes anything and never reads our clock as a position: it compares what the source
says now with the position that the same probe returned last time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Protocol


class Source(StrEnum):
    """The values of ``sensor_source`` that this version can sense."""

    DELTA_TABLE = "delta_table"
    LMU_DELTA_TABLE = "lmu_delta_table"
    KAFKA = "kafka"
    JDBC = "jdbc"
    SAP_BW = "sap_bw"
    SAP_B4 = "sap_b4"
    TRIGGER_FILE = "trigger_file"
    FILE = "file"
    DELTA_UPSTREAM_SENSOR = "delta_upstream_sensor"
    ICEBERG_TABLE = "iceberg_table"
    HIVE_TABLE = "hive_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBounds:
    """What holds for every query over new rows."""

    #: Tables that a preprocess query may read besides the new rows.
    may_read: frozenset[str] = frozenset()
    #: A query that takes longer is cancelled: no look waits for it any more.
    seconds: float = 3600


class FirstSight(StrEnum):
    """What the first look at an upstream that already holds data means."""

    #: It is an event: its consumers want a first run.
    EVENT = "event"
    #: It is only the position from which on news count.
    BASELINE = "baseline"


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
class Upstream:
    """One distinct thing to look at: source, id, read type, upstream key, preprocess query."""

    upstream_id: str
    source: str
    sensor_id: str
    read_type: str
    upstream_key: str | None = None
    preprocess_query: str | None = None
    on_first_sight: FirstSight = FirstSight.EVENT
    #: JSON text that the same probe returned at the last look that moved; ``None`` at first sight.
    position: str | None = None
    #: The largest value of ``upstream_key`` seen so far, as text; ``None`` when there is no key.
    upstream_value: str | None = None
    #: Snapshots of events that a killed tick recorded without recording the position after them.
    told_snapshots: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataChange:
    """One data-change event as the source tells it, before it is recorded."""

    table: str
    #: One JSON value per partition level when exactly one partition changed; else ``None``.
    partition: tuple[str, ...] | None = None
    snapshot_id: str | None
    #: Milliseconds since the epoch.
    snapshot_ts: int | None
    prev_snapshot_id: str | None
    table_format: TableFormat
    operation: Operation
    tags: Mapping[str, str] = field(default_factory=dict)
    #: Tells one life of the upstream from the next (a table dropped and created again).
    lineage: str

    def event_id(self, upstream_id: str) -> str:
        """Return the deterministic id: the same change recorded twice is one event."""
        text = "\x1f".join((upstream_id, self.lineage, self.snapshot_id or ""))
        return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at one upstream found; ``failure`` set means that it could not look."""

    upstream_id: str
    #: Where the next look starts. Equal to the upstream's own position when nothing moved.
    position: str | None = None
    events: tuple[DataChange, ...] = ()
    upstream_value: str | None = None
    #: Something between the last position and this one can no longer be known; says what, in words.
    gap: str | None = None
    #: One sentence: why the look failed. Position and events are then meaningless.
    failure: str | None = None


class Probe(Protocol):
    """Looks at the upstreams of one source. One file with one class, one line in the registry."""

    def group_of(self, upstream: Upstream) -> str:
        """Name what is looked at together (a cluster, a database); the id itself when alone."""
        ...

    def look(self, group: Sequence[Upstream], *, at: datetime) -> list[Look]:
        """Return one look per upstream of one group; a failure is a look, too.

        An error that is raised counts as the failure of every upstream of the group.
        """
        ...


class NewRows(Protocol):
    """Asks questions of the rows that one look found, where the log alone cannot answer.

    The only part of sensing that may run Spark jobs; it is started when a ``preprocess_query`` or
    an ``upstream_key`` needs it and never otherwise.
    """

    def largest(self, files: "NewFiles", column: str) -> str | None:
        """Return the largest value among the new rows, as text; the column as SQL names it."""
        ...

    def any_row(self, files: "NewFiles", query: str) -> bool:
        """Tell whether the query over ``sensor_new_data`` returns a row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """One data file that a commit added."""

    #: Relative or absolute, as the log has it (URL-decoded).
    path: str
    #: The version that added it.
    version: int
    #: Partition column (the log's name for it) and value as the log writes it.
    partition: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFiles:
    """The data files that new commits of a Delta table added, and how to read them right."""

    #: Its name where it is sensed by its history, not by its log.
    table_path: str
    #: The newest version looked at.
    version: int
    #: ``None`` stands for the whole table at that version.
    files: tuple[NewFile, ...] | None
    #: False when deletion vectors or column mapping make a plain Parquet read wrong.
    plain: bool

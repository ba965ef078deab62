"""What a probe takes and returns: ``Upstream`` in, ``ProbeResult`` out, ``Probe`` between.

A probe never writes anything and never uses our clock as a cursor: it compares what the source
reports now with the cursor that the same probe returned last time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from harness.events.event import ChangeEvent
from harness.store.work_lists import Upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBounds:
    """What holds for every query over new rows."""

    #: Tables that a preprocess query may read besides the new rows.
    may_read: frozenset[str] = frozenset()
    #: A query that takes longer is cancelled: no probe waits for it any more.
    seconds: float = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What one probe of one upstream found; ``failure`` set means that the probe failed."""

    upstream_id: str
    #: Where the next probe starts. Equal to the upstream's own cursor when nothing moved.
    position: str | None = None
    events: tuple[ChangeEvent, ...] = ()
    upstream_value: str | None = None
    #: Something between the last cursor and this one can no longer be known; states what, in words.
    gap: str | None = None
    #: One sentence: why the probe failed. Cursor and events are then meaningless.
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """An upstream of a group that has to be probed further, alone and in parallel with others."""

    upstream_id: str
    #: Makes the result; it has the time limit of a probe for itself.
    probe: Callable[[], ProbeResult]


class Probe(Protocol):
    """Probes the upstreams of one source. One file with one class, one line in the registry."""

    def group_of(self, upstream: Upstream) -> str:
        """Name what is probed together (a cluster, a database); the id itself when alone."""
        ...

    def probe(
        self, group: Sequence[Upstream], *, at: datetime
    ) -> "Sequence[ProbeResult | Continued]":
        """Return one probe per upstream of one group; a failure is a result, too.

        An error that is raised counts as the failure of every upstream of the group. Only of
        several upstreams may some be continued; one alone is probed to its end.
        """
        ...


class NewRows(Protocol):
    """Queries the rows that one probe found, where the log alone is not sufficient.

    The only part of sensing that may run Spark jobs; it is started when a ``preprocess_query`` or
    an ``upstream_key`` needs it and never otherwise.
    """

    def largest(self, files: "NewFiles", column: str) -> str | None:
        """Return the largest value among the new rows, as text; the column as SQL names it."""
        ...

    def any_row(self, files: "NewFiles", query: str) -> bool:
        """Return whether the query over ``sensor_new_data`` returns a row."""
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
    #: The newest version probed.
    version: int
    #: ``None`` stands for the whole table at that version.
    files: tuple[NewFile, ...] | None
    #: False when deletion vectors or column mapping make a plain Parquet read wrong.
    plain: bool


def failed(upstream: Upstream, reason: str) -> ProbeResult:
    """Return a result that failed, in one sentence."""
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        failure=f"{upstream.source} {upstream.sensor_id} cannot be sensed: {reason}.",
    )

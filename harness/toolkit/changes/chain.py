"""Orders the events of one table; determines from where to where they lead, and whether unbroken.

It reads events, not tables: what is missing between two events may have changed nothing, which
only the table's own log shows. It never treats a list with a change missing as complete. The
rules are those of a dbt model, in macros/events/chain.sql.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent, TableFormat
from harness.toolkit.changes.macros import macros

_READABLE = (TableFormat.DELTA, TableFormat.HIVE, TableFormat.ICEBERG)


class Fault(StrEnum):
    """Why the rows between the two ends cannot be taken change by change."""

    #: A change between two events is no event of the list.
    GAP = "gap"
    #: Two events follow the same snapshot, or one follows two.
    FORK = "fork"
    #: All rows were rewritten, or snapshots were taken back.
    REWRITE = "rewrite"
    SCHEMA = "schema"
    #: No snapshot comes before the first event.
    FIRST_SIGHT = "first_sight"
    #: The table is another one than at the first event.
    RECREATED = "recreated"
    #: The events do not state what they follow.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The events of one table in their order, and the range that they describe."""

    table_format: TableFormat
    #: Oldest first, each once.
    events: tuple[ChangeEvent, ...]
    #: The snapshot before the first change; ``None``: all rows of the table count as new.
    since: str | None = None
    #: The snapshot after the last change; ``None``: the table as it is now.
    until: str | None = None
    #: The partitions that changed, one JSON value per level; ``None``: only snapshots show them.
    partitions: tuple[tuple[str, ...], ...] | None = None
    fault: Fault | None = None
    #: The fault in words, to go on from "because ".
    why: str | None = None
    #: What the events themselves are marked with, in words; it holds even if a gap is none.
    marked: str | None = None

    @property
    def table_ids(self) -> frozenset[str]:
        """Return the ids of the tables that the events were of: one for each table generation."""
        return frozenset(
            event.tags["table_id"] for event in self.events if "table_id" in event.tags
        )

    @property
    def is_complete(self) -> bool:
        """Return whether each change between the two ends is an event of the list."""
        return self.fault is None


def chain_of(events: Iterable[ChangeEvent]) -> Chain:
    """Chain the events of one table; the order in which they come, and repetitions, do not matter.

    Raises:
        ConfigurationError: There is no event, or they are of a format without readable rows.
    """
    events = tuple(events)
    if not events:
        raise ConfigurationError(
            "there are no events, so there is no range of changes to read; pass those of a run"
        )
    newest = max(events, key=lambda event: (event.event_ts or 0, event.snapshot_ts or 0))
    if newest.table_format not in _READABLE:
        raise ConfigurationError(
            f"the rows that changed in {newest.table} cannot be read: its events are of"
            f" {newest.table_format}, and rows are read of {', '.join(_READABLE)}"
        )
    listed = [event.to_json() for event in events]
    found = macros().call._event_chain(listed, newest.table_format.value)
    partitions = found["partitions"]
    return Chain(
        table_format=newest.table_format,
        events=tuple(map(ChangeEvent.from_json, found["events"])),
        since=found["since"],
        until=found["until"],
        partitions=None if partitions is None else tuple(map(tuple, partitions)),
        fault=None if found["fault"] is None else Fault(found["fault"]),
        why=found["why"],
        marked=None if found["marked"] is None else found["marked"]["why"],
    )

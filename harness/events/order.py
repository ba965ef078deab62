"""Puts data-change events in the order in which they happened. It reads and decides nothing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from harness.store.rows import integer

Row = Mapping[str, object]
Each = TypeVar("Each", bound=Row)

#: The snapshot ids of these have no information about the order, though they may look like numbers.
_NAMES_ONLY = frozenset({"ICEBERG", "HIVE"})


def in_order(rows: Iterable[Each], reported_at: Callable[[Row], tuple[int, ...]]) -> list[Each]:
    """Return the rows of events in the order of their reports, and within a report by snapshot.

    A snapshot that is a version is ordered by its number. One that is only a name comes after the
    one that it follows, whatever the clocks of their writers showed, else by its time.

    Args:
        rows: With the fields of an event.
        reported_at: When a row was reported.
    """
    found: list[Each] = []
    by_time = sorted(rows, key=lambda row: (reported_at(row), _place(row)))
    for _, reported in groupby(by_time, key=reported_at):
        found += _followers_last(list(reported))
    return found


def _place(row: Row) -> tuple[int, int, str, str]:
    snapshot = str(row["snapshot_id"] or "")
    is_number = snapshot.isdecimal() and row["table_format"] not in _NAMES_ONLY
    number = int(snapshot) if is_number else 0
    return number, integer(row["snapshot_ts"] or 0), snapshot, str(row["event_id"] or "")


def _followers_last(rows: Sequence[Each]) -> list[Each]:
    """Move each row behind the one whose snapshot it follows; without such rows nothing moves."""
    leaders = {_named(row, "snapshot_id"): row for row in rows}
    ordered: dict[int, Each] = {}
    for row in rows:
        chain: dict[int, Each] = {}
        each: Each | None = row
        # Snapshots in a circle cannot be, and must not hang us if some are registered.
        while each is not None and id(each) not in ordered and id(each) not in chain:
            chain[id(each)] = each
            is_name = each["table_format"] in _NAMES_ONLY and each["prev_snapshot_id"] is not None
            each = leaders.get(_named(each, "prev_snapshot_id")) if is_name else None
        ordered.update(reversed(chain.items()))
    return list(ordered.values())


def _named(row: Row, field: str) -> tuple[object, object]:
    return row["table"], row[field]

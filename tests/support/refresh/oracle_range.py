"""TIMESTAMP and SEQUENCE in plain Python: the batch received last owns every instant of its range.

A range is what a batch was seen to hold, from its least to its greatest instant, both included. The
line is cut at all ends of ranges; of each piece, a point or a gap, the owner is looked up.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.support.refresh.batches import Batch


class NullInstants(StrEnum):
    """What becomes of a row without an instant."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRow:
    """One row at an instant: a timestamp or a number of a sequence."""

    at: int | None
    values: tuple[str | int | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeHubRow:
    """One row of the hub, and the batch that it came with."""

    at: int
    values: tuple[str | int | None, ...]
    s_input_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A part of the line that one batch owns."""

    input_id: int
    low: int
    high: int
    is_low_in: bool = True
    is_high_in: bool = True

    def __str__(self) -> str:
        opening, closing = "[" if self.is_low_in else "(", "]" if self.is_high_in else ")"
        return f"b{self.input_id}{opening}{self.low},{self.high}{closing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeState:
    """Everything after the last batch.

    Attributes:
        hub: The rows, by instant, then as received.
        effective_ranges: Who owns what, along the line; an owner need not have rows there.
        effective_counts: How many rows of each batch are in the hub.
        rejected_counts: How many rows of each batch have no instant.
    """

    hub: tuple[RangeHubRow, ...]
    effective_ranges: tuple[Interval, ...]
    effective_counts: Mapping[int, int]
    rejected_counts: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What makes a batch too suspicious to be let in; None sets no limit."""

    max_range: int | None = None
    max_rewind: int | None = None


def fold_range(
    batches: Sequence[Batch[RangeRow]], nulls: NullInstants = NullInstants.FAIL
) -> RangeState:
    """Apply batches in the order of receipt."""
    if nulls is NullInstants.FAIL and any(row.at is None for each in batches for row in each.rows):
        raise ValueError("A row has no instant.")
    ranges = observed_ranges(batches)
    hub = [
        RangeHubRow(at=row.at, values=row.values, s_input_id=batch.input_id)
        for batch in batches
        for row in batch.rows
        if row.at is not None and owner(ranges, row.at, row.at) == batch.input_id
    ]
    counts = Counter(row.s_input_id for row in hub)
    return RangeState(
        hub=tuple(sorted(hub, key=lambda row: row.at)),
        effective_ranges=tuple(_effective(ranges)),
        effective_counts={each.input_id: counts[each.input_id] for each in batches},
        rejected_counts={
            each.input_id: sum(row.at is None for row in each.rows) for each in batches
        },
    )


def observed_ranges(batches: Iterable[Batch[RangeRow]]) -> list[Interval]:
    """Return the closed range of each batch in the order of receipt; without rows there is none."""
    ranges = []
    for batch in batches:
        instants = [row.at for row in batch.rows if row.at is not None]
        if instants:
            ranges.append(Interval(input_id=batch.input_id, low=min(instants), high=max(instants)))
    return ranges


def touches(earlier: Batch[RangeRow], later: Batch[RangeRow]) -> bool:
    """Return whether the ranges of two batches overlap; a batch without a range may overlap any."""
    ranges = observed_ranges([earlier, later])
    return len(ranges) < 2 or (ranges[0].low <= ranges[1].high and ranges[1].low <= ranges[0].high)


def owner(ranges: Sequence[Interval], low: int, high: int) -> int | None:
    """Return the batch received last whose range holds all from low to high."""
    covering = [each.input_id for each in ranges if each.low <= low and high <= each.high]
    return covering[-1] if covering else None


def whole_numbers(intervals: Iterable[Interval]) -> list[Interval]:
    """Write intervals of a sequence with both ends included; what holds no number falls away."""
    closed = (
        Interval(
            input_id=each.input_id,
            low=each.low + (not each.is_low_in),
            high=each.high - (not each.is_high_in),
        )
        for each in intervals
    )
    return [each for each in closed if each.low <= each.high]


def is_refused(batches: Sequence[Batch[RangeRow]], batch: Batch[RangeRow], limits: Limits) -> bool:
    """Return whether a batch spans too much, or ends too far before the end of the hub."""
    arriving = observed_ranges([batch])
    if not arriving:
        return False
    is_wide = limits.max_range is not None and arriving[0].high - arriving[0].low > limits.max_range
    held = [row.at for row in fold_range(batches, NullInstants.QUARANTINE).hub]
    rewind = max(held) - arriving[0].high if held else 0
    return is_wide or (limits.max_rewind is not None and rewind > limits.max_rewind)


def _effective(ranges: Sequence[Interval]) -> list[Interval]:
    owned: list[Interval] = []
    for piece in _pieces(ranges):
        last = owned[-1] if owned else None
        # Pieces follow each other without a hole between them, unless nobody owns one.
        if last is not None and last.input_id == piece.input_id and _meet(last, piece):
            owned[-1] = Interval(
                input_id=last.input_id,
                low=last.low,
                high=piece.high,
                is_low_in=last.is_low_in,
                is_high_in=piece.is_high_in,
            )
        else:
            owned.append(piece)
    return owned


def _pieces(ranges: Sequence[Interval]) -> list[Interval]:
    ends = sorted({end for each in ranges for end in (each.low, each.high)})
    cuts = [*((end, end) for end in ends), *itertools.pairwise(ends)]
    pieces = []
    for low, high in sorted(cuts):
        found = owner(ranges, low, high)
        if found is not None:
            is_point = low == high
            pieces.append(
                Interval(
                    input_id=found, low=low, high=high, is_low_in=is_point, is_high_in=is_point
                )
            )
    return pieces


def _meet(left: Interval, right: Interval) -> bool:
    return left.high == right.low and left.is_high_in != right.is_low_in

"""FULL, NONE and CUSTOM in plain Python: strategies of batches and conditions, without keys."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tests.support.refresh.batches import Batch

Row = TypeVar("Row", bound=Hashable)

#: A condition as SQL answers it: None is unknown.
Truth = bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRow(Generic[Row]):
    """One row of a hub, and the batch that it came with."""

    row: Row
    s_input_id: int


Hub = tuple[HeldRow[Row], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FullState(Generic[Row]):
    """Everything after the last FULL batch.

    Attributes:
        hub: The rows of the current batch.
        partitions: The rows of every batch kept; one without rows that was skipped is not.
        late: The batches that were extracted before what the hub held when they came.
        effective_counts: How many rows of each batch are in the hub.
    """

    hub: Hub[Row]
    partitions: Mapping[int, tuple[Row, ...]]
    late: frozenset[int]
    effective_counts: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomRule(Generic[Row]):
    """The two expressions of a CUSTOM model.

    Attributes:
        delete_condition: Evaluated for each row of the hub and each row of the batch.
        append_filter: Evaluated for each row of the batch.
    """

    delete_condition: Callable[[Row, Row], Truth]
    append_filter: Callable[[Row], Truth] = lambda _: True


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomMetrics:
    """What one CUSTOM batch did."""

    records: int
    deleted: int
    appended: int
    filtered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomState(Generic[Row]):
    """Everything after the last CUSTOM batch."""

    hub: Hub[Row]
    metrics: Mapping[int, CustomMetrics]


def fold_full(
    batches: Sequence[Batch[Row]], *, allow_empty: bool = False, by_extraction: bool = False
) -> FullState[Row]:
    """Let each batch replace the one before, if it was not extracted before it."""
    current: Batch[Row] | None = None
    kept: dict[int, tuple[Row, ...]] = {}
    late = set()
    for batch in batches:
        if not batch.rows and not allow_empty:
            continue
        kept[batch.input_id] = batch.rows
        if by_extraction and current is not None and _extracted(batch) < _extracted(current):
            late.add(batch.input_id)
        else:
            current = batch
    hub = append_step((), current) if current else ()
    return FullState(
        hub=hub,
        partitions=kept,
        late=frozenset(late),
        effective_counts=effective_counts(hub, batches),
    )


def full_difference(
    before: Sequence[Row], after: Sequence[Row], key_of: Callable[[Row], Hashable]
) -> Mapping[str, int]:
    """Count the keys that are new, changed, unchanged and gone between two FULL batches."""
    old, new = _by_key(before, key_of), _by_key(after, key_of)
    both = old.keys() & new.keys()
    changed = sum(old[key] != new[key] for key in both)
    return {
        "N": len(new.keys() - old.keys()),
        "C": changed,
        "U": len(both) - changed,
        "D": len(old.keys() - new.keys()),
    }


def fold_none(batches: Sequence[Batch[Row]]) -> Hub[Row]:
    """Append each batch; one that comes again under its own number replaces itself."""
    hub: Hub[Row] = ()
    for batch in batches:
        others = tuple(held for held in hub if held.s_input_id != batch.input_id)
        hub = append_step(others, batch)
    return hub


def fold_custom(batches: Sequence[Batch[Row]], rule: CustomRule[Row]) -> CustomState[Row]:
    """Let each batch delete what its rows match, then add those of its rows that pass."""
    hub: Hub[Row] = ()
    metrics = {}
    for batch in batches:
        left = delete_step(hub, batch, rule)
        after = append_step(left, batch, rule.append_filter)
        appended = len(after) - len(left)
        metrics[batch.input_id] = CustomMetrics(
            records=len(batch.rows),
            deleted=len(hub) - len(left),
            appended=appended,
            filtered=len(batch.rows) - appended,
        )
        hub = after
    return CustomState(hub=hub, metrics=metrics)


def delete_step(hub: Hub[Row], batch: Batch[Row], rule: CustomRule[Row]) -> Hub[Row]:
    """Return what is left: no row that some row of the batch matches, nor any of its own."""
    return tuple(
        held
        for held in hub
        if held.s_input_id != batch.input_id
        and not any(rule.delete_condition(held.row, row) is True for row in batch.rows)
    )


def append_step(
    hub: Hub[Row], batch: Batch[Row], passes: Callable[[Row], Truth] = lambda _: True
) -> Hub[Row]:
    """Return a hub with the rows of a batch that pass."""
    rows = (row for row in batch.rows if passes(row) is True)
    return (*hub, *(HeldRow(row=row, s_input_id=batch.input_id) for row in rows))


def effective_counts(hub: Hub[Row], batches: Sequence[Batch[Row]]) -> Mapping[int, int]:
    """Count the rows of each batch that are in a hub."""
    counts = Counter(held.s_input_id for held in hub)
    return {batch.input_id: counts[batch.input_id] for batch in batches}


def _extracted(batch: Batch[Row]) -> int:
    if batch.extracted_at is None:
        raise ValueError(f"Batch {batch.input_id} does not say when it was extracted.")
    return batch.extracted_at


def _by_key(rows: Sequence[Row], key_of: Callable[[Row], Hashable]) -> dict[Hashable, Counter[Row]]:
    found: dict[Hashable, Counter[Row]] = {}
    for row in rows:
        found.setdefault(key_of(row), Counter())[row] += 1
    return found

"""Batches as every strategy receives them, and which of them a ledger lets through."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

Row = TypeVar("Row", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch(Generic[Row]):
    """Rows that were received together.

    Attributes:
        input_id: The place of the batch in the order of receipt.
        rows: Its rows; their order distinguishes only those that are equal.
        received_at: When it was received, on the scale of the rows' own timestamps.
        extracted_at: When a FULL batch was taken from its source.
        is_complete: Whether a key that is not in it is thereby deleted (KEY).
    """

    input_id: int
    rows: tuple[Row, ...]
    received_at: int | None = None
    extracted_at: int | None = None
    is_complete: bool = False


class Receipt(StrEnum):
    """How a ledger classifies a batch before any strategy receives it."""

    ACCEPTED = "ACCEPTED"
    SKIPPED_DUPLICATE = "SKIPPED_DUPLICATE"
    SKIPPED_EMPTY = "SKIPPED_EMPTY"


#: Whether a batch may have changed what an earlier one has in the hub.
Touches = Callable[[Batch[Row], Batch[Row]], bool]


def receipts(
    batches: Iterable[Batch[Row]],
    touches: Touches[Row] = lambda _earlier, _later: True,
    *,
    is_appended: bool = False,
) -> list[Receipt]:
    """Return for each batch if it is let through: not if it is empty or an equal one still holds.

    Args:
        batches: All batches, in the order of receipt.
        touches: Whether a later batch may have changed what an earlier one has in the hub.
        is_appended: A batch that equals another one is new data (NONE).
    """
    accepted: list[Batch[Row]] = []
    output: list[Receipt] = []
    for batch in batches:
        if not batch.rows:
            output.append(Receipt.SKIPPED_EMPTY)
        elif not is_appended and _still_holds(batch, accepted, touches):
            output.append(Receipt.SKIPPED_DUPLICATE)
        else:
            accepted.append(batch)
            output.append(Receipt.ACCEPTED)
    return output


def accepted(
    batches: Sequence[Batch[Row]],
    touches: Touches[Row] = lambda _earlier, _later: True,
    *,
    is_appended: bool = False,
) -> list[Batch[Row]]:
    """Return the batches that are let through."""
    output = receipts(batches, touches, is_appended=is_appended)
    return [batch for batch, receipt in zip(batches, output, strict=True) if receipt == "ACCEPTED"]


def without(batches: Iterable[Batch[Row]], *input_ids: int) -> list[Batch[Row]]:
    """Unload batches: what is left keeps its numbers, and is applied as if they had never come."""
    return [batch for batch in batches if batch.input_id not in input_ids]


def _still_holds(batch: Batch[Row], accepted: Sequence[Batch[Row]], touches: Touches[Row]) -> bool:
    return any(
        Counter(earlier.rows) == Counter(batch.rows)
        and not any(touches(earlier, later) for later in accepted[place + 1 :])
        for place, earlier in enumerate(accepted)
    )

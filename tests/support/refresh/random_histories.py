"""Random pasts in which everything that is hard happens often: few keys, few instants, many ties.

Whatever is drawn comes from the ``random.Random`` that is passed in: one with a seed makes the same
past again, and the one of Hypothesis (``st.randoms``) lets it shrink what it finds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from tests.support.refresh.batches import Batch
from tests.support.refresh.key_types import KeyRow, Value, Values
from tests.support.refresh.oracle_range import RangeRow

_Rows = TypeVar("_Rows")

#: NULL beside the same text in the other column: a hash that skips NULL cannot distinguish them.
#: There are few, so that rows often repeat what their key has already.
_VALUES: tuple[Values, ...] = ((None, "a"), ("a", None), (None, None), ("b", "a"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large a past is, and what happens in it; the chances are those of a row or of a batch."""

    keys: int = 3
    instants: int = 5
    rows: int = 4
    null_key: float = 0.04
    null_instant: float = 0.04
    delete: float = 0.2
    empty: float = 0.1
    redelivered: float = 0.15
    complete: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatKeyRow:
    """One row of a KEY batch as a row of one table for all batches."""

    s_input_id: int
    row_num: int
    history: Value
    key: Value
    first_value: Value
    second_value: Value
    at: int | None
    is_delete: bool


def key_histories(
    random: Random, histories: int, batches: int, shape: Shape | None = None
) -> list[Batch[KeyRow]]:
    """Lay histories side by side: each batch has the rows that every history has in it.

    The number of its history is the first part of every key, so that no two have a key in common:
    what one fold makes of all of them is what it makes of each. Only a complete batch sees more than
    one history, since it is empty only if every history is.

    Args:
        random: Where every choice is drawn from.
        histories: How many, numbered from 0.
        batches: How many batches there are, numbered from 1.
        shape: What the histories are like.
    """
    shape = shape or Shape()
    each = [_key_history(random, number, batches, shape) for number in range(histories)]
    return [
        Batch(
            input_id=input_id,
            rows=tuple(row for history in each for row in history[input_id - 1]),
            received_at=input_id,
            is_complete=random.random() < shape.complete,
        )
        for input_id in range(1, batches + 1)
    ]


def of_history(batches: Iterable[Batch[KeyRow]], number: int) -> list[Batch[KeyRow]]:
    """Return the batches with the rows of one history only."""
    return [
        Batch(
            input_id=batch.input_id,
            rows=tuple(row for row in batch.rows if row.key[0] == number),
            received_at=batch.received_at,
            is_complete=batch.is_complete,
        )
        for batch in batches
    ]


def flat_key_rows(batches: Iterable[Batch[KeyRow]]) -> Iterator[FlatKeyRow]:
    """Write the batches of ``key_histories`` as rows; the number of a row is its place in its batch."""
    for batch in batches:
        for row_num, row in enumerate(batch.rows, start=1):
            history, key = row.key
            first, second = row.values or (None, None)
            yield FlatKeyRow(
                s_input_id=batch.input_id,
                row_num=row_num,
                history=history,
                key=key,
                first_value=first,
                second_value=second,
                at=row.at,
                is_delete=row.is_delete,
            )


def range_history(
    random: Random, batches: int, shape: Shape | None = None
) -> list[Batch[RangeRow]]:
    """Return one history of ranges; several cannot share a table, since a range spans all of it."""
    shape = shape or Shape(instants=8)
    rows: list[tuple[RangeRow, ...]] = []
    for _ in range(batches):
        rows.append(_again(random, rows, shape) or _range_rows(random, shape))
    return [Batch(input_id=place, rows=each) for place, each in enumerate(rows, start=1)]


def _key_history(
    random: Random, number: int, batches: int, shape: Shape
) -> list[tuple[KeyRow, ...]]:
    past: list[tuple[KeyRow, ...]] = []
    for _ in range(batches):
        past.append(_again(random, past, shape) or _key_rows(random, number, shape))
    return past


def _again(random: Random, past: Sequence[_Rows], shape: Shape) -> _Rows | None:
    return random.choice(past) if past and random.random() < shape.redelivered else None


def _key_rows(random: Random, number: int, shape: Shape) -> tuple[KeyRow, ...]:
    if random.random() < shape.empty:
        return ()
    return tuple(_key_row(random, number, shape) for _ in range(random.randint(1, shape.rows)))


def _key_row(random: Random, number: int, shape: Shape) -> KeyRow:
    is_delete = random.random() < shape.delete
    key: Values = (number, _or_null(random, random.randint(1, shape.keys), shape.null_key))
    return KeyRow(
        key=key,
        values=() if is_delete else random.choice(_VALUES),
        at=_or_null(random, random.randint(1, shape.instants), shape.null_instant),
        is_delete=is_delete,
    )


def _range_rows(random: Random, shape: Shape) -> tuple[RangeRow, ...]:
    if random.random() < shape.empty:
        return ()
    return tuple(
        RangeRow(
            at=_or_null(random, random.randint(1, shape.instants), shape.null_instant),
            values=random.choice(_VALUES),
        )
        for _ in range(random.randint(1, shape.rows))
    )


def _or_null(random: Random, value: int, chance: float) -> int | None:
    return None if random.random() < chance else value

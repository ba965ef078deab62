"""The KEY strategy in plain Python: one row after another, each compared with what its key has.

There are no tables, hashes or windows here, so that the fold can be read against the rules. Ledgers,
crashes and schemas are no part of it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from tests.support.refresh.batches import Batch
from tests.support.refresh.key_types import (
    Code,
    Deletes,
    Filed,
    HubRow,
    KeyOptions,
    KeyRow,
    KeyState,
    LateArriving,
    NullKeys,
    UnchangedNewer,
    Value,
    Values,
    Version,
)


def fold_key(batches: Sequence[Batch[KeyRow]], options: KeyOptions) -> KeyState:
    """Apply batches in the order of receipt."""
    known: dict[Values, HubRow] = {}
    archive: list[Filed] = []
    for batch in batches:
        archive += _received(batch, known, options)
        archive += _absent(batch, known, options)
    live = [row for row in known.values() if not row.s_deleted_flag]
    owners = Counter(row.s_input_id for row in live)
    return KeyState(
        hub=tuple(live),
        tombstones=tuple(row for row in known.values() if row.s_deleted_flag),
        history=tuple(_history(archive, options)),
        archive=tuple(archive),
        codes={batch.input_id: _codes(batch.input_id, archive) for batch in batches},
        effective_counts={batch.input_id: owners[batch.input_id] for batch in batches},
    )


def is_rejected(row: KeyRow, options: KeyOptions) -> bool:
    """Return whether a row cannot be placed: by its key, or in time.

    Raises:
        ValueError: The options require a failure instead.
    """
    has_null_key = None in row.key and options.null_keys is not NullKeys.MATCH
    is_bad = has_null_key or (options.has_date_column and row.at is None)
    if is_bad and options.null_keys is NullKeys.FAIL:
        raise ValueError(f"NULL in the key or the date of {row}.")
    return is_bad


def classify(held: HubRow | None, row: KeyRow, options: KeyOptions) -> Code:
    """Return the code of a row for its key, which may be unknown, live or deleted."""
    if held is None:
        return Code.UNCHANGED if row.is_delete else Code.NEW
    if _is_unchanged(held, row):
        is_newer = row.instant > held.s_update_timestamp
        # Every receipt is newer than the one before it: that implies nothing about the row.
        return Code.SEEN_NEWER if is_newer and options.has_date_column else Code.UNCHANGED
    if row.instant < held.s_update_timestamp:
        return Code.OLD
    if row.is_delete:
        return Code.DELETED
    return Code.NEW if held.s_deleted_flag else Code.CHANGED


def in_order(*values: Value) -> tuple[tuple[bool, Value], ...]:
    """Return values so that rows compare by them as in SQL: by the first that differs, None being the least."""
    return tuple((value is not None, 0 if value is None else value) for value in values)


def _is_unchanged(held: HubRow, row: KeyRow) -> bool:
    if held.s_deleted_flag or row.is_delete:
        return held.s_deleted_flag and row.is_delete
    return held.values == row.values


def _received(
    batch: Batch[KeyRow], known: dict[Values, HubRow], options: KeyOptions
) -> list[Filed]:
    rows = _dated(batch, options)
    winners: dict[Values, tuple[object, ...]] = {}
    for row_num, row in rows:
        if not is_rejected(row, options):
            values = in_order(*row.values, batch.rows[row_num - 1].at)
            place = (row.instant, row.is_delete, values, row_num)
            winners[row.key] = max(place, winners.get(row.key, place))
    filed = []
    for row_num, row in rows:
        if is_rejected(row, options):
            code = Code.REJECTED
        elif winners[row.key][-1] != row_num:
            code = Code.DISCARDED
        else:
            code = _meet(known, row, batch.input_id, options)
        filed.append(Filed(input_id=batch.input_id, row_num=row_num, row=row, code=code))
    return filed


def _dated(batch: Batch[KeyRow], options: KeyOptions) -> list[tuple[int, KeyRow]]:
    rows = list(enumerate(batch.rows, start=1))
    if options.has_date_column:
        return rows
    return [(row_num, replace(row, at=_receipt(batch))) for row_num, row in rows]


def _receipt(batch: Batch[KeyRow]) -> int:
    if batch.received_at is None:
        raise ValueError(f"Batch {batch.input_id} has no time of receipt.")
    return batch.received_at


def _absent(batch: Batch[KeyRow], known: dict[Values, HubRow], options: KeyOptions) -> list[Filed]:
    # An empty batch is taken for an accident, never for a source without rows.
    if not batch.is_complete or not batch.rows:
        return []
    # A row that was rejected for its date still shows that its key is there.
    present = {row.key for row in batch.rows}
    gone = [key for key, held in known.items() if not held.s_deleted_flag and key not in present]
    filed = []
    for key in gone:
        row = KeyRow(key=key, at=_receipt(batch), is_delete=True)
        code = _meet(known, row, batch.input_id, options)
        filed.append(Filed(input_id=batch.input_id, row_num=None, row=row, code=code))
    return filed


def _meet(known: dict[Values, HubRow], row: KeyRow, input_id: int, options: KeyOptions) -> Code:
    held = known.get(row.key)
    code = classify(held, row, options)
    if held is None or code in (Code.NEW, Code.CHANGED, Code.DELETED):
        known[row.key] = HubRow(
            key=row.key,
            values=_kept_values(held, options) if row.is_delete else row.values,
            s_update_timestamp=row.instant,
            s_input_id=input_id,
            s_seen_input_id=input_id,
            s_record_status_code=code,
            s_deleted_flag=row.is_delete,
        )
    elif code is Code.SEEN_NEWER and options.unchanged_newer is UnchangedNewer.TOUCH:
        known[row.key] = replace(
            held,
            s_update_timestamp=row.instant,
            s_seen_input_id=input_id,
            s_record_status_code=code,
        )
    return code


def _kept_values(held: HubRow | None, options: KeyOptions) -> Values | None:
    return held.values if held is not None and options.deletes is Deletes.SOFT else None


def _codes(input_id: int, archive: Iterable[Filed]) -> tuple[Code, ...]:
    mine = (filed for filed in archive if filed.input_id == input_id)
    return tuple(filed.code for filed in mine if filed.row_num is not None)


def _history(archive: Iterable[Filed], options: KeyOptions) -> list[Version]:
    met: dict[Values, list[Filed]] = {}
    for filed in archive:
        if filed.code not in (Code.DISCARDED, Code.REJECTED):
            met.setdefault(filed.row.key, []).append(filed)
    return [version for each in met.values() for version in _versions(_openings(each, options))]


def _openings(met: Sequence[Filed], options: KeyOptions) -> list[Filed]:
    """Return the rows of one key that each open a version."""
    is_late = any(filed.code is Code.OLD for filed in met)
    if is_late and options.late_arriving is LateArriving.HISTORY:
        by_time = sorted(met, key=lambda filed: (filed.row.instant, filed.input_id))
        changes = (row for before, row in pairwise(by_time) if _said(before) != _said(row))
        return [by_time[0], *changes]
    applied = (Code.NEW, Code.CHANGED, Code.DELETED)
    # The first row of a key opens its history even as U: then it is a delete of a key never seen.
    return [filed for place, filed in enumerate(met) if place == 0 or filed.code in applied]


def _said(filed: Filed) -> Values | None:
    return None if filed.row.is_delete else filed.row.values


def _versions(openings: Sequence[Filed]) -> list[Version]:
    ends = [*(filed.row.instant for filed in openings[1:]), None]
    return [
        Version(
            key=filed.row.key,
            values=_said(filed),
            s_effective_from=filed.row.instant,
            s_effective_to=end,
            s_deleted_flag=filed.row.is_delete,
            s_input_id=filed.input_id,
        )
        for filed, end in zip(openings, ends, strict=True)
    ]

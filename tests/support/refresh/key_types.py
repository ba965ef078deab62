"""Inputs and results of the KEY strategy: options, rows, codes, hub, history, archive."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Value = str | int | None
Values = tuple[Value, ...]


class Code(StrEnum):
    """What became of a row."""

    NEW = "N"
    CHANGED = "C"
    UNCHANGED = "U"
    SEEN_NEWER = "S"
    OLD = "O"
    DELETED = "D"
    DISCARDED = "X"
    REJECTED = "R"


class UnchangedNewer(StrEnum):
    """Whether a newer row with the same values moves the timestamp of its key."""

    TOUCH = "touch"
    SKIP = "skip"


class NullKeys(StrEnum):
    """What NULL in a key means."""

    FAIL = "fail"
    QUARANTINE = "quarantine"
    MATCH = "match"


class LateArriving(StrEnum):
    """Whether rows that came too late for the hub get their place in the history."""

    IGNORE = "ignore"
    HISTORY = "history"


class Deletes(StrEnum):
    """Whether a tombstone keeps the values that its key had last."""

    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One row of a batch; the values of a delete mean nothing."""

    key: Values
    values: Values = ()
    at: int | None = None
    is_delete: bool = False

    @property
    def instant(self) -> int:
        """The timestamp of a row that was not rejected."""
        if self.at is None:
            raise ValueError(f"The row of key {self.key} has no timestamp.")
        return self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOptions:
    """How a model's keys are refreshed."""

    has_date_column: bool = True
    unchanged_newer: UnchangedNewer = UnchangedNewer.TOUCH
    null_keys: NullKeys = NullKeys.FAIL
    late_arriving: LateArriving = LateArriving.IGNORE
    deletes: Deletes = Deletes.SOFT

    def __post_init__(self) -> None:
        is_parity = self.unchanged_newer is UnchangedNewer.SKIP
        # The hub would hold a row that the rebuilt history has closed: the two exclude each other.
        if is_parity and self.late_arriving is LateArriving.HISTORY:
            raise ValueError("late_arriving: history needs unchanged_newer: touch.")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRow:
    """What is known of a key now, and what its last row that counted was; with the flag it is a tombstone."""

    key: Values
    values: Values | None
    s_update_timestamp: int
    s_input_id: int
    s_seen_input_id: int
    s_record_status_code: Code
    s_deleted_flag: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The state of a key in [from, to); an open version has no end, a deleted one no values."""

    key: Values
    values: Values | None
    s_effective_from: int
    s_effective_to: int | None
    s_deleted_flag: bool
    s_input_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """One row in the archive; the absence of a key from a complete batch has no row number."""

    input_id: int
    row_num: int | None
    row: KeyRow
    code: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """Everything after the last batch.

    Attributes:
        hub: The live rows, in the order of their keys' first appearance.
        tombstones: The deleted keys.
        history: The versions of each key, in the order of time.
        archive: Every row received, and every absence that met a live key, with its code.
        codes: The codes of each batch, row by row; absences are not among them.
        effective_counts: How many live rows have the values of each batch.
    """

    hub: tuple[HubRow, ...]
    tombstones: tuple[HubRow, ...]
    history: tuple[Version, ...]
    archive: tuple[Filed, ...]
    codes: Mapping[int, tuple[Code, ...]]
    effective_counts: Mapping[int, int]

"""Names in what an extract may differ from bronze, and what becomes of it."""

from dataclasses import dataclass
from enum import StrEnum


class ChangeKind(StrEnum):
    """In what an extract differs from bronze."""

    NEW_COLUMN = "new_column"
    MISSING_COLUMN = "missing_column"
    #: A field of a struct, also within arrays and maps, is new.
    NEW_FIELD = "new_field"
    #: Each value of before has its like in the type of now.
    WIDENED_TYPE = "widened_type"
    CHANGED_TYPE = "changed_type"
    CASE = "case"
    ORDER = "order"


class OnChange(StrEnum):
    """What becomes of an extract that differs from bronze."""

    FOLLOW = "follow"
    #: Nothing is appended, and nothing about the table is changed.
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRules:
    """What becomes of each kind of difference."""

    new_column: OnChange = OnChange.FOLLOW
    missing_column: OnChange = OnChange.FOLLOW
    new_field: OnChange = OnChange.FOLLOW
    widened_type: OnChange = OnChange.FOLLOW
    changed_type: OnChange = OnChange.FOLLOW
    case: OnChange = OnChange.FOLLOW
    order: OnChange = OnChange.FOLLOW

    def stops(self, kind: ChangeKind) -> bool:
        """Tell whether a difference of this kind stops the extract."""
        return OnChange(getattr(self, kind.value)) is OnChange.STOP


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """One difference, and what was done about it."""

    kind: ChangeKind
    #: The column as bronze names it, or the way to a field: ``lines.element.price``.
    column: str
    #: The type, name or order in bronze; ``None``: it was not there.
    was: str | None
    #: The type, name or order in the extract; ``None``: it is not there.
    now: str | None
    done: str

    @property
    def sentence(self) -> str:
        """The change, for a person."""
        there = f"was {self.was}" if self.was is not None else "was not there"
        here = f"is {self.now}" if self.now is not None else "is missing"
        return f"{self.column} {there} and {here}: {self.done}"

    @property
    def difference(self) -> str:
        """The change, without what was done about it."""
        return self.sentence.rpartition(": ")[0]

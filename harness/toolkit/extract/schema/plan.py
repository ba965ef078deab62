"""Compares the columns of an extract with those of bronze, and plans the changes that fit them.

It works on types only, on no table and no row; ``apply`` carries the plan out.
"""

from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql import types as t

from harness.errors import ExtractError
from harness.toolkit.extract.schema.types import (
    Alteration,
    Merged,
    altered,
    is_void,
    merge,
    without_void,
)


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
        """Return whether a difference of this kind stops the extract."""
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


#: What is added to the name of a column, for the text of values that its type does not take.
TEXT_SUFFIX = "_text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """One column to write: where it comes from, and as what."""

    name: str
    data_type: t.DataType
    #: The column of the extract; ``None`` fills with NULL.
    source: str | None = None
    source_type: t.DataType | None = None
    #: Only values are taken that read the same afterwards, and NULL for the others.
    only_same: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How an extract becomes rows of bronze."""

    columns: tuple[Filled, ...]
    alterations: tuple[Alteration, ...] = ()
    changes: tuple[SchemaChange, ...] = ()

    def check(self, rules: SchemaRules, table: str) -> None:
        """Stop where the rules require it.

        Raises:
            ExtractError: They do; it names every difference that stops.
        """
        stopping = [change for change in self.changes if rules.stops(change.kind)]
        if stopping:
            message = "; ".join(change.difference for change in stopping)
            kinds = ", ".join(sorted({change.kind.value for change in stopping}))
            raise ExtractError(
                f"{table} was not appended to, since its schema rules stop at {kinds}: {message}"
            )


def plan_for(there: t.StructType, here: t.StructType, *, can_alter_types: bool) -> Plan:
    """Return how rows of an extract fit into a table.

    Args:
        there: The columns of bronze, without that of its partitions.
        here: The columns of the extract.
        can_alter_types: Whether the table's format widens types and takes new fields of structs.

    Raises:
        ExtractError: Two columns of the extract differ in case only, or a column is in the way.
    """
    return _Planning(there, here, can_alter_types).plan()


class _Planning:
    def __init__(self, there: t.StructType, here: t.StructType, can_alter_types: bool) -> None:
        self._there, self._can_alter = there, can_alter_types
        self._here = {each.name.lower(): each for each in here if not is_void(each.dataType)}
        self._names = {each.name.lower() for each in there}
        check_names(here)
        self._columns: list[Filled] = []
        self._alterations: list[Alteration] = []
        self._changes: list[SchemaChange] = []

    def plan(self) -> Plan:
        texts: list[t.StructField] = []
        for known in self._there:
            found = self._here.get(known.name.lower())
            if found is not None:
                self._pair(known, found, texts)
            else:
                self._missing(known)
        for key, found in self._here.items():
            if key not in self._names:
                self._new(found)
        for each in texts:
            self._text(each)
        self._order()
        return Plan(
            columns=tuple(self._columns),
            alterations=tuple(self._alterations),
            changes=tuple(self._changes),
        )

    def _missing(self, known: t.StructField) -> None:
        self._columns.append(Filled(name=known.name, data_type=known.dataType))
        base = known.name.lower().removesuffix(TEXT_SUFFIX)
        # A column of text that stands beside another is ours.
        if base == known.name.lower() or base not in self._names:
            was = known.dataType.simpleString()
            self._add(ChangeKind.MISSING_COLUMN, known.name, (was, None), "filled with NULL")

    def _new(self, found: t.StructField) -> None:
        kind = without_void(found.dataType)
        self._columns.append(
            Filled(name=found.name, data_type=kind, source=found.name, source_type=found.dataType)
        )
        self._alterations.append(Alteration(path=(found.name,), data_type=kind, is_new=True))
        self._add(ChangeKind.NEW_COLUMN, found.name, (None, kind.simpleString()), "added")

    def _pair(self, known: t.StructField, found: t.StructField, texts: list[t.StructField]) -> None:
        if known.name != found.name:
            names = (known.name, found.name)
            self._add(ChangeKind.CASE, known.name, names, "kept as bronze spells it")
        merged = Merged()
        merge((known.name,), known.dataType, found.dataType, merged)
        for path, kind in merged.missing:
            was = kind.simpleString()
            self._add(ChangeKind.MISSING_COLUMN, path, (was, None), "filled with NULL")
        alters = bool(merged.additions or merged.widenings)
        if merged.is_conflict or (alters and not self._can_alter):
            texts.append(t.StructField(known.name, found.dataType))
            only_same = merged.is_conflict or bool(merged.widenings)
            self._fill(known.name, known.dataType, found, only_same)
            return
        self._alter(merged)
        self._fill(known.name, altered(known.dataType, (known.name,), merged), found, False)

    def _fill(
        self, name: str, data_type: t.DataType, found: t.StructField, only_same: bool
    ) -> None:
        self._columns.append(
            Filled(
                name=name,
                data_type=data_type,
                source=found.name,
                source_type=found.dataType,
                only_same=only_same,
            )
        )

    def _alter(self, merged: Merged) -> None:
        for each in merged.additions:
            now = each.data_type.simpleString()
            self._add(ChangeKind.NEW_FIELD, ".".join(each.path), (None, now), "added")
        for each, narrow in zip(merged.widenings, merged.narrow, strict=True):
            types = (narrow.simpleString(), each.data_type.simpleString())
            self._add(ChangeKind.WIDENED_TYPE, ".".join(each.path), types, "widened")
        self._alterations += [*merged.additions, *merged.widenings]

    def _text(self, changed: t.StructField) -> None:
        """Keep the values of a column whose type does not fit as text, beside it."""
        name = changed.name + TEXT_SUFFIX
        if name.lower() in self._here:
            raise ExtractError(
                f"{changed.name} has another type than in bronze, and the extract has a column"
                f" {name} of its own, where its text would be kept; rename that in the source"
            )
        known = {each.name.lower(): each for each in self._there}
        there = known.get(name.lower())
        if there is not None and not isinstance(there.dataType, t.StringType):
            raise ExtractError(
                f"{changed.name} has another type than in bronze, and {there.name}, where its text"
                f" would be kept, is {there.dataType.simpleString()}; rename that column"
            )
        if there is None:
            path = (name,)
            self._alterations.append(Alteration(path=path, data_type=t.StringType(), is_new=True))
        else:
            self._columns = [each for each in self._columns if each.name != there.name]
            name = there.name
        source = self._here[changed.name.lower()]
        self._columns.append(
            Filled(name=name, data_type=t.StringType(), source=source.name,
                   source_type=source.dataType)
        )  # fmt: skip
        was = known[changed.name.lower()].dataType.simpleString()
        types = (was, changed.dataType.simpleString())
        self._add(ChangeKind.CHANGED_TYPE, changed.name, types, f"kept as text in {name}")

    def _order(self) -> None:
        there = [each.name.lower() for each in self._there if each.name.lower() in self._here]
        here = [key for key in self._here if key in self._names]
        if there != here:
            orders = (", ".join(there), ", ".join(here))
            self._add(ChangeKind.ORDER, "all columns", orders, "kept in the order of bronze")

    def _add(
        self, kind: ChangeKind, column: str, types: tuple[str | None, str | None], done: str
    ) -> None:
        was, now = types
        self._changes.append(SchemaChange(kind=kind, column=column, was=was, now=now, done=done))


def check_names(schema: t.StructType) -> None:
    """Refuse two columns that no table could distinguish.

    Raises:
        ExtractError: There are such.
    """
    seen: dict[str, str] = {}
    for name in schema.fieldNames():
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise ExtractError(
                f"the extract has the columns {other} and {name}, which no table distinguishes;"
                " rename one in the source"
            )

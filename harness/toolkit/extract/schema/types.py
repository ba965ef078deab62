"""Merges two column types, down to the fields of structs, and lists the changes it takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import types as t

#: The property that lets a table have them, and what a table that is there already needs first.
ODD_NAMES = ("delta.columnMapping.mode", "name")
ODD_NAMES_FEATURE = ("delta.feature.columnMapping", "supported")

_ODD = frozenset(" ,;{}()\n\t=")


def is_odd(name: str) -> bool:
    """Return whether a name has a character that a file of Parquet would not bear."""
    return not _ODD.isdisjoint(name)


def has_odd_names(data_type: t.DataType) -> bool:
    """Return whether a struct anywhere in a type has a field with such a name."""
    match data_type:
        case t.StructType():
            return any(is_odd(each.name) or has_odd_names(each.dataType) for each in data_type)
        case t.ArrayType():
            return has_odd_names(data_type.elementType)
        case t.MapType():
            return has_odd_names(data_type.keyType) or has_odd_names(data_type.valueType)
        case _:
            return False


_WHOLE: tuple[type[t.DataType], ...] = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
#: The most digits that an integer of a type has.
_DIGITS: dict[type[t.DataType], int] = {
    t.ByteType: 3,
    t.ShortType: 5,
    t.IntegerType: 10,
    t.LongType: 19,
}


def widens(narrow: t.DataType, wide: t.DataType) -> bool:
    """Return whether Delta widens a column in place from one type to another.

    As the macro ``_refresh_widens`` has it: each value keeps its text.
    """
    match narrow, wide:
        case t.DecimalType(), t.DecimalType():
            whole = wide.precision - wide.scale >= narrow.precision - narrow.scale
            is_other = (wide.precision, wide.scale) != (narrow.precision, narrow.scale)
            return whole and wide.scale >= narrow.scale and is_other
        case (t.FloatType(), t.DoubleType()) | (t.DateType(), t.TimestampNTZType()):
            return True
        case _:
            if type(narrow) in _WHOLE and type(wide) in _WHOLE:
                return _WHOLE.index(type(narrow)) < _WHOLE.index(type(wide))
            return False


def fits(value: t.DataType, column: t.DataType) -> bool:
    """Return whether each value of a type can be kept, without loss, in a column of another."""
    if isinstance(column, t.StringType):
        return True
    if isinstance(column, t.DecimalType) and type(value) in _WHOLE:
        return column.precision - column.scale >= _DIGITS[type(value)]
    return widens(value, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """A column or a field that bronze gets, or a type that it widens."""

    path: tuple[str, ...]
    data_type: t.DataType
    is_new: bool


@dataclass(slots=True)
class Merged:
    """What two types need to become one."""

    additions: list[Alteration] = field(default_factory=list)
    widenings: list[Alteration] = field(default_factory=list)
    #: The types of before, by the place in ``widenings``.
    narrow: list[t.DataType] = field(default_factory=list)
    missing: list[tuple[str, t.DataType]] = field(default_factory=list)
    is_conflict: bool = False


def without_void(data_type: t.DataType) -> t.DataType:
    """Return a type that a table can have: what has never had a value becomes text."""
    match data_type:
        case t.NullType():
            return t.StringType()
        case t.StructType():
            fields = [t.StructField(each.name, without_void(each.dataType)) for each in data_type]
            return t.StructType(fields)
        case t.ArrayType():
            return t.ArrayType(without_void(data_type.elementType))
        case t.MapType():
            return t.MapType(data_type.keyType, without_void(data_type.valueType))
        case _:
            return data_type


def merge(path: tuple[str, ...], there: t.DataType, here: t.DataType, merged: Merged) -> None:
    """Record what becomes of a type of bronze because of one of an extract."""
    if is_void(here) or there.simpleString() == here.simpleString():
        return
    for step, one, other in _inside(there, here):
        merge((*path, *step), one, other, merged)
    match there, here:
        case t.StructType(), t.StructType():
            _merge_fields(path, there, here, merged)
        case t.ArrayType(), t.ArrayType():
            pass
        case t.MapType(), t.MapType():
            if there.keyType.simpleString() != here.keyType.simpleString():
                merged.is_conflict = True
        case _:
            _merge_values(path, there, here, merged)


def _merge_values(
    path: tuple[str, ...], there: t.DataType, here: t.DataType, merged: Merged
) -> None:
    if fits(here, there):
        return
    if widens(there, here):
        merged.widenings.append(Alteration(path=path, data_type=here, is_new=False))
        merged.narrow.append(there)
    else:
        merged.is_conflict = True


def _merge_fields(
    path: tuple[str, ...], there: t.StructType, here: t.StructType, merged: Merged
) -> None:
    known = {each.name.lower() for each in there}
    found = {each.name.lower() for each in here}
    for each in here:
        if each.name.lower() not in known and not is_void(each.dataType):
            kind = without_void(each.dataType)
            merged.additions.append(
                Alteration(path=(*path, each.name), data_type=kind, is_new=True)
            )
    for each in there:
        if each.name.lower() not in found:
            merged.missing.append((".".join((*path, each.name)), each.dataType))


def _inside(
    there: t.DataType, here: t.DataType
) -> Iterator[tuple[Sequence[str], t.DataType, t.DataType]]:
    match there, here:
        case t.StructType(), t.StructType():
            found = {each.name.lower(): each.dataType for each in here}
            for each in there:
                if each.name.lower() in found:
                    yield (each.name,), each.dataType, found[each.name.lower()]
        case t.ArrayType(), t.ArrayType():
            yield ("element",), there.elementType, here.elementType
        case t.MapType(), t.MapType():
            yield ("value",), there.valueType, here.valueType


def altered(data_type: t.DataType, path: tuple[str, ...], merged: Merged) -> t.DataType:
    """Return a type with its new fields and its widened parts."""
    for each in merged.widenings:
        if each.path == path:
            return each.data_type
    match data_type:
        case t.StructType():
            fields = [
                t.StructField(each.name, altered(each.dataType, (*path, each.name), merged))
                for each in data_type
            ]
            fields += [
                t.StructField(each.path[-1], each.data_type)
                for each in merged.additions
                if each.path[:-1] == path
            ]
            return t.StructType(fields)
        case t.ArrayType():
            return t.ArrayType(altered(data_type.elementType, (*path, "element"), merged))
        case t.MapType():
            value = altered(data_type.valueType, (*path, "value"), merged)
            return t.MapType(data_type.keyType, value)
        case _:
            return data_type


def is_void(data_type: t.DataType) -> bool:
    """Report the type of what has never had a value."""
    return isinstance(data_type, t.NullType)

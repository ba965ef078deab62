"""Knows the names of columns that a Delta table takes only with column mapping."""

from pyspark.sql import types as t

#: The property that lets a table have them, and what a table that is there already needs first.
ODD_NAMES = ("delta.columnMapping.mode", "name")
ODD_NAMES_FEATURE = ("delta.feature.columnMapping", "supported")

_ODD = frozenset(" ,;{}()\n\t=")


def is_odd(name: str) -> bool:
    """Tell whether a name has a character that a file of Parquet would not bear."""
    return not _ODD.isdisjoint(name)


def has_odd_names(data_type: t.DataType) -> bool:
    """Tell whether a struct anywhere in a type has a field with such a name."""
    match data_type:
        case t.StructType():
            return any(is_odd(each.name) or has_odd_names(each.dataType) for each in data_type)
        case t.ArrayType():
            return has_odd_names(data_type.elementType)
        case t.MapType():
            return has_odd_names(data_type.keyType) or has_odd_names(data_type.valueType)
        case _:
            return False

"""Knows which types hold all values of another one."""

from pyspark.sql import types as t

_WHOLE: tuple[type[t.DataType], ...] = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
#: The most digits that a whole number of a type has.
_DIGITS: dict[type[t.DataType], int] = {
    t.ByteType: 3,
    t.ShortType: 5,
    t.IntegerType: 10,
    t.LongType: 19,
}


def widens(narrow: t.DataType, wide: t.DataType) -> bool:
    """Tell whether Delta widens a column in place from one type to another.

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
    """Tell whether each value of a type can be kept in a column of another, and be told from it."""
    if isinstance(column, t.StringType):
        return True
    if isinstance(column, t.DecimalType) and type(value) in _WHOLE:
        return column.precision - column.scale >= _DIGITS[type(value)]
    return widens(value, column)

"""Makes the columns of an extract those of bronze, without losing what does not fit."""

from typing import TYPE_CHECKING

from pyspark.sql import types as t

from harness.extract.schema import Filled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NO_TIME = "timestamp_ntz'1970-01-01 00:00:00'"


def fitted(frame: "DataFrame", columns: tuple[Filled, ...]) -> "DataFrame":
    """Return an extract with the columns of a plan."""
    return frame.select(*(_filled(each).alias(each.name) for each in columns))


def _filled(column: Filled) -> "Column":
    from pyspark.sql import functions as f

    if column.source is None or column.source_type is None:
        return f.lit(None).cast(column.data_type)
    value = f.col(quoted(column.source))
    if not column.only_same:
        return fit(value, column.source_type, column.data_type)
    if not _may_be_tried(column.source_type, column.data_type):
        return f.lit(None).cast(column.data_type)
    tried = value.try_cast(column.data_type)
    is_same = as_text(tried, column.data_type) == as_text(value, column.source_type)
    return f.when(is_same, tried)


def fit(value: "Column", here: t.DataType, there: t.DataType) -> "Column":
    """Return a value in a type that holds it; a field that is not there is NULL."""
    from pyspark.sql import functions as f

    if here.simpleString() == there.simpleString():
        return value
    match here, there:
        case _, t.StringType():
            return as_text(value, here)
        case t.StructType(), t.StructType():
            found = {each.name.lower(): each for each in here}
            fields = [
                fit(value.getField(found[each.name.lower()].name),
                    found[each.name.lower()].dataType, each.dataType)
                if each.name.lower() in found
                else f.lit(None).cast(each.dataType)
                for each in there
            ]  # fmt: skip
            named = [one.alias(each.name) for one, each in zip(fields, there.fields, strict=True)]
            return f.when(value.isNotNull(), f.struct(*named))
        case t.ArrayType(), t.ArrayType():
            return f.transform(value, lambda each: fit(each, here.elementType, there.elementType))
        case t.MapType(), t.MapType():
            return f.transform_values(
                value, lambda _, each: fit(each, here.valueType, there.valueType)
            )
        case _:
            return value.cast(there)


def as_text(value: "Column", data_type: t.DataType) -> "Column":
    """Return a value as text that says all of it, whatever the session's time zone."""
    from pyspark.sql import functions as f

    match data_type:
        case t.TimestampType():
            micros = f.timestamp_add("MICROSECOND", f.unix_micros(value), f.expr(_NO_TIME))
            return f.concat(micros.cast("string"), f.lit("Z"))
        case t.BinaryType():
            return f.base64(value)
        case t.StructType() | t.ArrayType() | t.MapType() | t.VariantType():
            return f.to_json(value, {"timeZone": "UTC", "ignoreNullFields": "false"})
        case _:
            return value.cast("string")


def quoted(name: str) -> str:
    """Return one part of a name in backticks, out of which no character leads."""
    return f"`{name.replace('`', '``')}`"


def sql_type(data_type: t.DataType) -> str:
    """Return a type as SQL takes it, with the names of fields in backticks."""
    match data_type:
        case t.StructType():
            fields = (f"{quoted(each.name)}: {sql_type(each.dataType)}" for each in data_type)
            return f"struct<{', '.join(fields)}>"
        case t.ArrayType():
            return f"array<{sql_type(data_type.elementType)}>"
        case t.MapType():
            return f"map<{sql_type(data_type.keyType)}, {sql_type(data_type.valueType)}>"
        case _:
            return data_type.simpleString()


def _may_be_tried(here: t.DataType, there: t.DataType) -> bool:
    """Tell whether Spark has a cast between two types that cannot be seen to lose something."""
    simple = t.NumericType | t.StringType | t.DateType | t.BooleanType
    if isinstance(here, t.StringType):
        return isinstance(there, simple | t.TimestampNTZType)
    return isinstance(here, t.NumericType) and isinstance(there, t.NumericType)

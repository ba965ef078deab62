"""Describes how databases and their Python drivers differ: names, types, time limits, texts."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from harness.sense.database_queries import Case, Column, Dialect, Kind

if TYPE_CHECKING:
    import sqlalchemy

#: Names of types as drivers have them, for those that have names.
_KINDS = {
    Kind.NUMBER: "int2 int4 int8 numeric oid bool DB_TYPE_NUMBER DB_TYPE_BINARY_INTEGER",
    Kind.FLOAT: "float4 float8 money DB_TYPE_BINARY_DOUBLE DB_TYPE_BINARY_FLOAT",
    Kind.TIME: "timestamp DB_TYPE_DATE DB_TYPE_TIMESTAMP",
    Kind.ZONED: "timestamptz DB_TYPE_TIMESTAMP_TZ DB_TYPE_TIMESTAMP_LTZ",
    Kind.DATE: "date",
    Kind.TEXT: "text varchar bpchar name DB_TYPE_VARCHAR DB_TYPE_CHAR DB_TYPE_NVARCHAR"
    " DB_TYPE_NCHAR",
}
_KIND_OF_NAME = {name: kind for kind, names in _KINDS.items() for name in names.split()}
#: The groups of types that every driver has by PEP 249.
_KIND_OF_GROUP = {"NUMBER": Kind.NUMBER, "DATETIME": Kind.TIME, "STRING": Kind.TEXT}

#: What a driver calls its limits for a login, for an answer, and their unit.
_LIMITS: Mapping[str, tuple[str, str, int]] = {
    "psycopg": ("connect_timeout", "", 1),
    "pymysql": ("connect_timeout", "read_timeout write_timeout", 1),
    "oracledb": ("tcp_connect_timeout", "", 1),
    "hdbcli": ("connectTimeout", "communicationTimeout", 1000),
    "pymssql": ("login_timeout", "timeout", 1),
    "pysqlite": ("", "timeout", 1),
}
#: Statements after a login. Where there are none, a user with SELECT alone cannot write.
SESSION = {
    "postgresql": ("set session characteristics as transaction read only",),
    "mysql": ("set session transaction read only",),
    "mariadb": ("set session transaction read only",),
    "sqlite": ("pragma query_only = on",),
}
#: The statement by which a database gives others up after so many seconds.
TIME_LIMIT = {
    "postgresql": "set statement_timeout = '{} s'",
    "mysql": "set max_execution_time = {}000",
    "mariadb": "set max_statement_time = {}",
}
#: Error codes of statements that were cancelled for their time or for a lock that others hold.
_TOO_SLOW = frozenset({"57014", "55P03", 3024, 1969, 1205, 1222, 613, 131, "DPY-4024", "ORA-00054"})


def dialect_of(known: "sqlalchemy.Dialect") -> Dialect:
    """Return how statements are written for one of SQLAlchemy's dialects."""
    from sqlalchemy import extract, literal_column

    preparer: Any = known.identifier_preparer
    case = Case.AS_WRITTEN
    if known.requires_name_normalize:
        case = Case.UPPER
    elif known.name == "postgresql":
        case = Case.LOWER
    # Oracle has no seconds in a DATE, which all the same is a time stamp there.
    place = "cast({0} as timestamp)" if known.name == "oracle" else "{0}"
    parts = {
        name: str(extract(name, literal_column(place)).compile(dialect=known))
        for name in ("second", "minute", "day")
    }
    quotes = preparer.initial_quote + preparer.final_quote
    return Dialect(quotes=quotes, bare_names=case, parts=parts)


def limits_of(driver: str, login: float, answer: float) -> dict[str, int]:
    """Return the arguments of a login that limit it and what follows, for drivers known here."""
    of_login, of_answer, unit = _LIMITS.get(driver, ("", "", 1))
    return {
        **dict.fromkeys(of_login.split(), max(1, int(login)) * unit),
        # The database gives a statement up before the driver gives up the database.
        **dict.fromkeys(of_answer.split(), (int(answer) + 1) * unit),
    }


def is_too_slow(error: BaseException | None) -> bool:
    """Return whether a driver's error shows that a statement took too long."""
    first = error.args[0] if error is not None and error.args else None
    codes = {getattr(error, "sqlstate", None), first, getattr(first, "full_code", None)}
    return not _TOO_SLOW.isdisjoint(code for code in codes if isinstance(code, str | int))


def columns_of(
    driver: Any, connection: Any, about: Sequence[Any], rows: Sequence[Sequence[object]]
) -> tuple[Column, ...]:
    """Return the columns of an answer.

    Args:
        driver: The driver's module.
        connection: The driver's connection.
        about: The cursor's description.
        rows: What was read, which shows the type where the driver has no word for it.
    """
    columns = []
    for place, (name, code, *_) in enumerate(about):
        type_name = _type_name(connection, code)
        kind = _KIND_OF_NAME.get(type_name, Kind.OTHER)
        if not type_name:
            value = next((row[place] for row in rows if row[place] is not None), None)
            type_name = "" if value is None else type(value).__name__
            kind = _kind_of_group(driver, code) if value is None else _kind_of_value(value)
        columns.append(Column(kind=kind, type_name=type_name, name=str(name)))
    return tuple(columns)


def _type_name(connection: Any, code: Any) -> str:
    """Return the name of a type, where the driver has one."""
    if hasattr(connection, "adapters"):
        found = connection.adapters.types.get(code)
        # An array is found by the type of its elements.
        return "other" if found is None or found.oid != code else str(found.name)
    return str(getattr(code, "name", ""))


def _kind_of_value(value: object) -> Kind:
    match value:
        case int() | Decimal():
            return Kind.NUMBER
        case float():
            return Kind.FLOAT
        case datetime():
            return Kind.TIME if value.tzinfo is None else Kind.ZONED
        case date():
            return Kind.DATE
        case str():
            return Kind.TEXT
        case _:
            return Kind.OTHER


def _kind_of_group(driver: Any, code: Any) -> Kind:
    for name, kind in _KIND_OF_GROUP.items():
        if code is not None and getattr(driver, name, None) == code:
            return kind
    return Kind.TEXT


def text_of(value: object) -> str | None:
    """Write a value as a database does: digits in full, a time stamp with a space in it."""
    match value:
        case None | str():
            return value
        case Decimal():
            return format(value, "f")
        case datetime():
            text, dot, rest = value.isoformat(sep=" ").partition(".")
            return text if not dot else f"{text}.{rest[:6].rstrip('0')}{rest[6:]}"
        case bytes() | memoryview():
            return bytes(value).hex()
        case _:
            return str(value)


def all_as_text(connection: Any) -> None:
    """Let psycopg return values as the server writes them: Python has no ``infinity``."""
    from psycopg.types.string import TextLoader

    for known in connection.adapters.types:
        for oid in (known.oid, known.array_oid):
            connection.adapters.register_loader(oid, TextLoader)

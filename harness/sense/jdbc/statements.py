"""Runs one query on a ``java.sql.Connection`` and reads all its rows as text."""

import contextlib
from typing import Any

from harness.sense.jdbc.dialects import kind_of
from harness.sense.jdbc.queries import Answer, Column, Kind, Query, Value


def run(spark: Any, connection: Any, query: Query, within: float) -> Answer:
    """Run a query in a transaction of its own."""
    from py4j.protocol import Py4JError

    try:
        statement = connection.prepareStatement(query.text)
        try:
            with contextlib.suppress(Py4JError):
                # Not every driver has it; whoever asked stops waiting all the same.
                statement.setQueryTimeout(max(1, int(within)))
            for index, value in enumerate(query.parameters, start=1):
                _bind(spark._jvm, statement, index, value)
            return _read(statement.executeQuery())
        finally:
            with contextlib.suppress(Py4JError):
                statement.close()
    finally:
        # Nothing is locked, and no snapshot is kept, between two looks.
        with contextlib.suppress(Py4JError):
            connection.rollback()


def _bind(jvm: Any, statement: Any, index: int, value: Value) -> None:
    from py4j.protocol import Py4JError

    match value.kind:
        case Kind.NUMBER | Kind.FLOAT:
            statement.setBigDecimal(index, jvm.java.math.BigDecimal(value.text))
        case Kind.TIME:
            try:
                local = jvm.java.time.LocalDateTime.parse(value.text.replace(" ", "T"))
                statement.setObject(index, local)
            except Py4JError:
                # Older drivers: right but for the hour that a change to summer time leaves out.
                statement.setTimestamp(index, jvm.java.sql.Timestamp.valueOf(value.text))
        case Kind.ZONED:
            instant = jvm.java.time.OffsetDateTime.parse(value.text.replace(" ", "T") + "Z")
            statement.setObject(index, instant)
        case Kind.DATE:
            statement.setDate(index, jvm.java.sql.Date.valueOf(value.text))
        case Kind.TEXT | Kind.OTHER:
            statement.setString(index, value.text)


def _read(rows: Any) -> Answer:
    about = rows.getMetaData()
    places = range(1, int(about.getColumnCount()) + 1)
    columns = []
    for place in places:
        type_name = str(about.getColumnTypeName(place))
        columns.append(
            Column(kind=kind_of(int(about.getColumnType(place)), type_name), type_name=type_name)
        )
    found = []
    while rows.next():
        found.append(tuple(rows.getString(place) for place in places))
    return Answer(columns=tuple(columns), rows=found)

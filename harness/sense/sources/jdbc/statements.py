"""Runs queries on a ``java.sql.Connection`` and reads all their rows as text.

Each call of the JVM takes some 0.1 ms, so what is done for each value is done there: the log of a
system with a thousand process chains has many thousand values.
"""

import contextlib
import logging
from functools import cached_property
from typing import Any

from harness.sense.database_queries import Answer, Column, Kind, Query, Value
from harness.sense.sources.jdbc.dialects import kind_of

log = logging.getLogger(__name__)

Rows = list[tuple[str | None, ...]]

#: Java that writes each value after its length, and a dash for none.
_READ_ALL = """
    StringBuilder told = new StringBuilder();
    while (rows.next()) {
        for (int place = 1; place <= width; place++) {
            String value = rows.getString(place);
            if (value == null) {
                told.append("-;");
            } else {
                told.append(value.codePointCount(0, value.length())).append(';').append(value);
            }
        }
    }
    return told.toString();
"""


class Statements:
    """Knows how to run queries. It is made outside of any time limit: that may take a second.

    Args:
        spark: The session whose JVM it is.
    """

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._jvm = spark._jvm
        self._reader = self._compiled()

    def run(self, connection: Any, query: Query, within: float) -> Answer:
        """Run a query in a transaction of its own."""
        from py4j.protocol import Py4JError

        try:
            statement = connection.prepareStatement(query.text)
            try:
                with contextlib.suppress(Py4JError):
                    # Not every driver has it; the caller stops waiting all the same.
                    statement.setQueryTimeout(max(1, int(within)))
                for index, value in enumerate(query.parameters, start=1):
                    self._bind(statement, index, value)
                return self._read(statement.executeQuery())
            finally:
                with contextlib.suppress(Py4JError):
                    statement.close()
        finally:
            # Nothing is locked, and no snapshot is kept, between two probes.
            with contextlib.suppress(Py4JError):
                connection.rollback()

    def _bind(self, statement: Any, index: int, value: Value) -> None:
        from py4j.protocol import Py4JError

        match value.kind:
            case Kind.NUMBER | Kind.FLOAT:
                statement.setBigDecimal(index, self._jvm.java.math.BigDecimal(value.text))
            case Kind.TIME:
                text = value.text.replace(" ", "T")
                try:
                    statement.setObject(index, self._local_time.parse(text))
                except Py4JError:
                    # Older drivers: right but for the hour that a change to summer time leaves out.
                    statement.setTimestamp(index, self._jvm.java.sql.Timestamp.valueOf(value.text))
            case Kind.ZONED:
                text = value.text.replace(" ", "T") + "Z"
                statement.setObject(index, self._instant.parse(text))
            case Kind.DATE:
                statement.setDate(index, self._jvm.java.sql.Date.valueOf(value.text))
            case Kind.TEXT | Kind.OTHER:
                statement.setString(index, value.text)

    @cached_property
    def _local_time(self) -> Any:
        # To find a class takes longer than to call it.
        return self._jvm.java.time.LocalDateTime

    @cached_property
    def _instant(self) -> Any:
        return self._jvm.java.time.OffsetDateTime

    def _read(self, rows: Any) -> Answer:
        about = rows.getMetaData()
        columns = []
        for place in range(1, int(about.getColumnCount()) + 1):
            type_name = str(about.getColumnTypeName(place))
            kind = kind_of(int(about.getColumnType(place)), type_name)
            columns.append(Column(kind=kind, type_name=type_name))
        width = len(columns)
        found = _one_by_one(rows, width) if self._reader is None else self._at_once(rows, width)
        return Answer(columns=tuple(columns), rows=found)

    def _at_once(self, rows: Any, width: int) -> Rows:
        arguments = self._array(self._jvm.java.lang.Object, rows, width)
        return rows_in(str(self._reader.evaluate(arguments)), width)

    def _compiled(self) -> Any:
        """Janino, the compiler that Spark has for its own queries, or nothing where it is not."""
        from py4j.protocol import Py4JError

        lang = self._jvm.java.lang
        try:
            reader = self._jvm.org.codehaus.janino.ScriptEvaluator()
            types = (lang.Class.forName("java.sql.ResultSet"), lang.Integer.TYPE)
            reader.setReturnType(lang.Class.forName("java.lang.String"))
            reader.setParameters(
                self._array(lang.String, "rows", "width"), self._array(lang.Class, *types)
            )
            thrown = lang.Class.forName("java.lang.Exception")
            reader.setThrownExceptions(self._array(lang.Class, thrown))
            reader.cook(_READ_ALL)
        except (Py4JError, TypeError) as error:
            log.info("answers are read value by value: %s", type(error).__name__)
            return None
        return reader

    def _array(self, kind: Any, *values: object) -> Any:
        array = self.spark.sparkContext._gateway.new_array(kind, len(values))
        for place, value in enumerate(values):
            array[place] = value
        return array


def rows_in(reported: str, width: int) -> Rows:
    """Take apart what the JVM has returned: each value after its length."""
    values: list[str | None] = []
    at = 0
    while at < len(reported):
        end = reported.index(";", at)
        length = reported[at:end]
        at = end + 1
        if length == "-":
            values.append(None)
        else:
            values.append(reported[at : at + int(length)])
            at += int(length)
    return list(zip(*[iter(values)] * width, strict=True))


def _one_by_one(rows: Any, width: int) -> Rows:
    found = []
    while rows.next():
        found.append(tuple(rows.getString(place) for place in range(1, width + 1)))
    return found

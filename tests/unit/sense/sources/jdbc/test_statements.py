"""How the rows of an answer are read, also where the JVM has no compiler."""

import pytest
from py4j.protocol import Py4JError

from harness.sense.database_queries import Query
from harness.sense.sources.jdbc.statements import Statements, rows_in

ROWS = [("1", "a"), ("2", None)]
VARCHAR = 12


class Missing:
    """What the gateway gives for a class that is not there: a package, which cannot be called."""

    def __getattr__(self, name: str) -> "Missing":
        return self

    def __call__(self, *arguments: object) -> object:
        raise TypeError("'JavaPackage' object is not callable")


class Changed(Missing):
    """A class that has no such constructor any more."""

    def __call__(self, *arguments: object) -> object:
        raise Py4JError("Constructor ScriptEvaluator([]) does not exist")


class Spark:
    def __init__(self, jvm: Missing) -> None:
        self._jvm = jvm


class Database:
    """A connection, its one statement and the answer, in one."""

    def __init__(self) -> None:
        self._at = -1

    def prepareStatement(self, text: str) -> "Database":
        return self

    def setQueryTimeout(self, seconds: int) -> None:
        pass

    def executeQuery(self) -> "Database":
        return self

    def getMetaData(self) -> "Database":
        return self

    def getColumnCount(self) -> int:
        return 2

    def getColumnTypeName(self, place: int) -> str:
        return "varchar"

    def getColumnType(self, place: int) -> int:
        return VARCHAR

    def next(self) -> bool:
        self._at += 1
        return self._at < len(ROWS)

    def getString(self, place: int) -> str | None:
        return ROWS[self._at][place - 1]

    def close(self) -> None:
        pass

    def rollback(self) -> None:
        pass


@pytest.mark.parametrize("jvm", [Missing(), Changed()], ids=["no class", "another class"])
def test_rows_are_read_one_by_one_where_nothing_reads_them_at_once(jvm: Missing) -> None:
    answer = Statements(Spark(jvm)).run(Database(), Query(text="select"), 1)
    assert answer.rows == ROWS


def test_values_are_told_apart_whatever_is_in_them() -> None:
    assert rows_in("3;a;b-;0;2;-;", 2) == [("a;b", None), ("", "-;")]


def test_no_rows_are_none() -> None:
    assert rows_in("", 2) == []

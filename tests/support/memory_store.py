"""A store in memory: for unit tests of the steps, and for the simulation of whole ticks."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import cast

from harness.errors import StateError
from harness.store.rows import FencingToken, Ledger, LedgerRow

Row = Mapping[str, object]

_OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": lambda value, text: str(text).lower() in str(value).lower(),
    "in": lambda value, values: value in values,  # type: ignore[operator]
}


class MemoryStore:
    """Keeps every row that was appended, in order, and the number of commits.

    Args:
        tables: The tables that are there; every ledger when not given.
    """

    def __init__(self, tables: Sequence[str] = tuple(Ledger)) -> None:
        self.rows: dict[str, list[LedgerRow]] = {}
        self.commits: list[str] = []
        self._plain: dict[str, list[dict[str, object]]] = {str(table): [] for table in tables}
        self._versions: dict[str, int] = dict.fromkeys(self._plain, 0)
        self._stamps: dict[tuple[str, str], int] = {}

    def append(
        self, ledger: Ledger, rows: Sequence[LedgerRow], stamp: FencingToken | None = None
    ) -> None:
        if not rows or not self._takes(ledger, stamp):
            return
        if ledger not in self._plain:
            raise StateError(f"The ledger {ledger} cannot be written: it is not there")
        self.commits.append(ledger)
        self.rows.setdefault(ledger, []).extend(rows)
        self._plain[ledger] += [cast(dict[str, object], _plain(row)) for row in rows]
        self._versions[ledger] += 1

    def fence(self, stamp: FencingToken) -> None:
        for ledger in self._plain:
            if self._takes(ledger, stamp):
                self._versions[ledger] += 1

    def _takes(self, ledger: str, stamp: FencingToken | None) -> bool:
        if stamp is None:
            return True
        key = ledger, stamp.application
        if stamp.version <= self._stamps.get(key, 0):
            return False
        self._stamps[key] = stamp.version
        return True

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Put other rows in the place of all rows of a table that is no ledger."""
        self._plain[table] = [dict(row) for row in rows]
        self._versions[table] = self._versions.get(table, 0) + 1

    def read(
        self,
        table: str,
        *,
        where: Sequence[tuple[str, str, object]] = (),
        columns: Sequence[str] = (),
    ) -> list[dict[str, object]]:
        rows = self._plain.get(table, [])
        for column, name, value in where:
            rows = [row for row in rows if _holds(row[column], name, value)]
        return [{name: row[name] for name in columns} if columns else row.copy() for row in rows]

    def exists(self, table: str) -> bool:
        return table in self._plain

    def fingerprint(self, table: str) -> str | None:
        return str(self._versions[table]) if table in self._plain else None

    def fingerprints(self, tables: Sequence[str]) -> dict[str, str | None]:
        return {table: self.fingerprint(table) for table in tables}


def _holds(value: object, name: str, other: object) -> bool:
    """As in SQL, a condition on nothing does not hold."""
    return value is not None and _OPERATORS[name](value, other)


def _plain(value: object) -> object:
    """As a table gives it back: rows and structures as dictionaries, tuples as lists."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if names := _names_of(type(value)):
        return {name: _plain(getattr(value, name)) for name in names}
    return value


@cache
def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()

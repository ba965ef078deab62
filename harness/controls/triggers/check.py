"""Checks the triggers as a whole, before they are loaded: every error at once, by its line."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.controls.findings import shown
from harness.controls.triggers.cells import problems_of
from harness.controls.triggers.parse import (
    COLUMNS,
    PARTITION,
    TriggerRow,
    TriggersFile,
)
from harness.controls.triggers.partitions import levels_of
from harness.platform.sql_names import table_key

#: What the rows of one trigger may differ in.
_OF_TABLE = frozenset({"table", "partition", "tags"})
#: Compared whatever their case, and with what an empty cell stands for.
_DEFAULTS: Mapping[str, str] = {
    "trigger_type": "",
    "frequency_unit": "",
    "missed_slots": "LATEST",
    "dependency_flag": "TRUE",
    "trigger_state": "UNPAUSED",
}

#: Line, column, sentence.
Problem = tuple[int, str, str]


def trigger_problems(file: TriggersFile, names: Mapping[int, str]) -> list[tuple[int, str]]:
    """Return line and sentence of everything that is wrong, in the order of the lines."""
    problems: list[Problem] = [(line, "", message) for line, message in file.problems]
    for row in file.rows:
        problems += [(row.line, column, message) for column, message in problems_of(row)]
    for check in (_disagreements, _repetitions, _level_counts):
        problems += check(file.rows)
    problems += _other_names(file.rows, names)
    order = {"": -1} | {column: place for place, column in enumerate(COLUMNS)}
    problems.sort(key=lambda each: (each[0], order[each[1]]))
    return [(line, f"{_at(column)}{message}") for line, column, message in problems]


def _at(column: str) -> str:
    return f"{column}: " if column else ""


def _meaning(row: TriggerRow, column: str) -> str:
    cell = str(getattr(row, column))
    return (cell or _DEFAULTS[column]).upper() if column in _DEFAULTS else cell


def _disagreements(rows: Sequence[TriggerRow]) -> Iterator[Problem]:
    first: dict[str, TriggerRow] = {}
    for row in rows:
        begun = first.setdefault(row.trigger_id, row)
        for column in COLUMNS:
            if column in _OF_TABLE or _meaning(row, column) == _meaning(begun, column):
                continue
            message = (
                f"{shown(getattr(row, column))} here and {shown(getattr(begun, column))} on line"
                f" {begun.line}; the rows of one trigger may differ in table, partition and tags"
            )
            yield row.line, column, message


def _repetitions(rows: Sequence[TriggerRow]) -> Iterator[Problem]:
    def key(row: TriggerRow) -> tuple[object, ...]:
        tags = frozenset(tag.strip() for tag in row.tags.split(";"))
        return row.trigger_id, table_key(row.table), levels_of(row.partition), tags

    for row, earlier in _repeated(rows, key):
        message = f"it repeats line {earlier.line}; a table, a partition and tags once is allowed"
        yield row.line, "", message


def _level_counts(rows: Sequence[TriggerRow]) -> Iterator[Problem]:
    with_levels = [row for row in rows if row.kind == PARTITION and row.partition]
    for row, earlier in _repeated(with_levels, lambda row: table_key(row.table)):
        here, there = len(levels_of(row.partition)), len(levels_of(earlier.partition))
        if here != there:
            message = (
                f"{shown(row.table)} has {_levels(here)} here and {there} on line {earlier.line};"
                " a partition has a value for each level of its table"
            )
            yield row.line, "partition", message


def _levels(number: int) -> str:
    return "1 level" if number == 1 else f"{number} levels"


def _other_names(rows: Sequence[TriggerRow], names: Mapping[int, str]) -> Iterator[Problem]:
    first: dict[str, TriggerRow] = {}
    for row in rows:
        if not row.job_id.isdecimal() or not row.job_name:
            continue
        known = names.get(int(row.job_id))
        earlier = first.setdefault(row.job_id, row)
        if known and known != row.job_name:
            where = f"{shown(known)} in the controls"
        elif earlier.job_name != row.job_name and earlier.trigger_id != row.trigger_id:
            where = f"{shown(earlier.job_name)} on line {earlier.line}"
        else:
            continue
        message = f"job {row.job_id} is {shown(row.job_name)} here and {where}; give it one name"
        yield row.line, "job_name", message


def _repeated(
    rows: Sequence[TriggerRow], key: Callable[[TriggerRow], object]
) -> Iterator[tuple[TriggerRow, TriggerRow]]:
    """Return each row whose key an earlier one has, with the first of them."""
    first: dict[object, TriggerRow] = {}
    for row in rows:
        begun = first.setdefault(key(row), row)
        if begun is not row:
            yield row, begun

"""Checks each row of the triggers on its own: every invalid cell is one message."""

import re
from collections.abc import Iterator
from datetime import datetime

from harness.controls.cells import DEPENDENCY_FLAGS, JOB_STATES, LARGEST_BIGINT
from harness.controls.findings import did_you_mean, listed, shown
from harness.controls.triggers.parse import PARTITION, SNAPSHOT, TriggerRow
from harness.controls.triggers.partitions import (
    UNITS,
    partition_problems,
    tags_problem,
    unit_problem,
    zone_problem,
)

MISSED_SLOTS = ("ALL", "LATEST", "NONE")
_LONGEST_FREQUENCY = 100_000

_ID = re.compile(r"[A-Za-z0-9_.-]+")
_WHOLE = re.compile(r"[0-9]{1,19}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?")
_SPAN = re.compile(r"([1-9]\d{0,5})\s+([A-Za-z]+)")


def problems_of(row: TriggerRow) -> Iterator[tuple[str, str]]:
    """Return the column and the sentence of everything that is wrong with a row."""
    for column in (name for name, cell in row.cells.items() if not cell.isprintable()):
        cell = shown(row.cells[column])
        yield column, f"{cell} has a character that cannot be seen; allowed are visible ones"
    for column, problem in (
        ("trigger_id", _id_problem(row.trigger_id)),
        ("trigger_type", _word_problem(row.trigger_type, (PARTITION, SNAPSHOT))),
        ("job_id", _job_id_problem(row.job_id)),
        ("job_name", None if row.job_name else "it is empty; name the job as people know it"),
        ("table", None if row.table else "it is empty; name the table as its events have it"),
        ("tags", tags_problem(row.tags) if row.tags else None),
        ("start_timestamp", _start_problem(row.start_timestamp)),
        ("frequency", _frequency_problem(row.frequency)),
        ("frequency_unit", _unit_problem(row.frequency_unit)),
        ("time_zone", zone_problem(row.time_zone) if row.time_zone else None),
        ("expires_after", _expiry_problem(row)),
        ("missed_slots", _word_problem(row.missed_slots or "LATEST", MISSED_SLOTS)),
        ("dependency_flag", _word_problem(row.dependency_flag or "TRUE", DEPENDENCY_FLAGS)),
        ("trigger_state", _word_problem(row.trigger_state or "UNPAUSED", JOB_STATES)),
        *(("partition", each) for each in _partition_problems(row)),
    ):
        if problem:
            yield column, problem


def _id_problem(trigger_id: str) -> str | None:
    if _ID.fullmatch(trigger_id):
        return None
    return f"{shown(trigger_id)} is not an id; allowed are letters, digits, _, . and -"


def _word_problem(word: str, allowed: tuple[str, ...]) -> str | None:
    if word.upper() in allowed:
        return None
    return f"{shown(word)} is not allowed; allowed are {listed(allowed)}" + (
        did_you_mean(word, allowed)
    )


def _job_id_problem(job_id: str) -> str | None:
    if _WHOLE.fullmatch(job_id) and 1 <= int(job_id) <= LARGEST_BIGINT:
        return None
    return f"{shown(job_id)} is not a job id; allowed is an integer from 1 to {LARGEST_BIGINT}"


def _start_problem(start: str) -> str | None:
    try:
        if _INSTANT.fullmatch(start) and datetime.fromisoformat(start.replace(" ", "T", 1)):
            return None
    except ValueError:
        pass
    return (
        f"{shown(start)} is not an instant; allowed are 2026-03-01, 2026-03-01T06:00 (in the time"
        " zone of the trigger), 2026-03-01T06:00:00Z and 2026-03-01T06:00:00+01:00"
    )


def _frequency_problem(frequency: str) -> str | None:
    if _WHOLE.fullmatch(frequency) and 1 <= int(frequency) <= _LONGEST_FREQUENCY:
        return None
    return (
        f"{shown(frequency)} is not a frequency; allowed is an integer from 1 to"
        f" {_LONGEST_FREQUENCY}"
    )


def _unit_problem(unit: str) -> str | None:
    return unit_problem(unit, may_be_one=False)


def _expiry_problem(row: TriggerRow) -> str | None:
    if not row.expires_after:
        return None
    if row.kind == SNAPSHOT:
        return "a SNAPSHOT trigger waits for nothing, so nothing expires; leave the cell empty"
    match = _SPAN.fullmatch(row.expires_after)
    if match and not unit_problem(match[2], may_be_one=True):
        return None
    return (
        f"{shown(row.expires_after)} is not a length of time; allowed is an integer and a unit,"
        f" such as 6 hours, with {listed(UNITS)}, or an empty cell: never"
    )


def _partition_problems(row: TriggerRow) -> Iterator[str]:
    if row.kind == SNAPSHOT and row.partition:
        yield "a SNAPSHOT trigger takes changes of any partition; leave the cell empty"
    elif row.kind == PARTITION and not row.partition:
        yield (
            "it is empty; a PARTITION trigger needs the value of each level, with ; between, such"
            " as EU;{yyyy-MM-dd}"
        )
    elif row.kind == PARTITION:
        yield from partition_problems(row.partition)

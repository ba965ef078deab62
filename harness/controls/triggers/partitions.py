"""Checks the form of a trigger's partition and tags; their meaning is defined in SQL."""

import re
from collections.abc import Iterator

from harness.controls.findings import did_you_mean, listed, shown
from harness.controls.triggers.time_zones import ZONES
from harness.events.partition import PartitionError, parts_of

#: What an offset, a frequency and an expiry are counted in.
UNITS = ("minutes", "hours", "days", "weeks", "months")

#: The letters of a pattern that stand for a part of an instant, and how often each may be repeated.
LETTERS = {"y": 4, "M": 4, "d": 2, "D": 3, "H": 2, "m": 2, "s": 2}
_FUNCTION = re.compile(
    r"\{\s*(?:(?P<offset>\S+)\s+(?P<unit>[A-Za-z]+)\s+)?"
    r"(?P<pattern>'[^']*'|[^\s']+?)(?:\s+(?P<zone>[^\s']+))?\s*\}"
)
_OFFSET = re.compile(r"[+-]?\d{1,6}")
_RUN_OF_LETTERS = re.compile(r"([A-Za-z])\1*")
#: Stands for itself, as everything does that is no letter and not reserved.
_LITERAL_LETTER = "T"
_RESERVED = "[]{}#"
_EXAMPLES = "{yyyy-MM-dd} and {-1 hour 'yyyy-MM-dd HH' America/Los_Angeles}"


def levels_of(partition: str) -> tuple[str, ...]:
    """Return the levels of a partition as plain text, in the table's order.

    What cannot be read as levels is one level.
    """
    try:
        return parts_of(partition)
    except PartitionError:
        return (partition,)


def partition_problems(partition: str) -> Iterator[str]:
    """Return what is wrong with a partition, level by level."""
    try:
        levels = parts_of(partition)
    except PartitionError as error:
        yield str(error)
        return
    for number, level in enumerate(levels, 1):
        problem = _level_problem(level)
        if problem:
            yield f"level {number} of {len(levels)}: {problem}" if len(levels) > 1 else problem


def tags_problem(tags: str) -> str | None:
    """Return what is wrong with the tags, if anything is."""
    keys = []
    for tag in tags.split(";"):
        key, _, value = (part.strip() for part in tag.partition("="))
        if not key or not value:
            return f"{shown(tag)} is not a tag; allowed is key=value, more of them with ; between"
        keys.append(key)
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    return f"the tag {shown(repeated)} stands there twice; once is allowed" if repeated else None


def unit_problem(unit: str, *, may_be_one: bool) -> str | None:
    """Return what is wrong with a unit of time; ``hour`` where one of it may be meant."""
    allowed = UNITS + tuple(each.removesuffix("s") for each in UNITS if may_be_one)
    if unit.lower() in allowed:
        return None
    return f"{shown(unit)} is not a unit; allowed are {listed(UNITS)}{did_you_mean(unit, UNITS)}"


def zone_problem(zone: str) -> str | None:
    """Return what is wrong with the name of a time zone."""
    if zone in ZONES:
        return None
    hint = did_you_mean(zone, ZONES)
    return f"{shown(zone)} is not a time zone; allowed are names such as Europe/Berlin or UTC{hint}"


def _level_problem(level: str) -> str | None:
    if "{" not in level and "}" not in level:
        return None
    match = _FUNCTION.fullmatch(level)
    if match is None:
        return (
            f"{shown(level)} is neither a value nor a function of the slot; functions are"
            f" {_EXAMPLES}, with a pattern that has spaces in it between quotes"
        )
    offset, unit, pattern, zone = match.group("offset", "unit", "pattern", "zone")
    if unit is not None:
        problem = _offset_problem(offset, unit)
        if problem:
            return problem
    problem = _pattern_problem(pattern.strip("'"))
    return problem or (zone_problem(zone) if zone else None)


def _offset_problem(offset: str, unit: str) -> str | None:
    if not _OFFSET.fullmatch(offset):
        return f"{shown(offset)} is not an offset; allowed is an integer such as -1 before {unit}"
    return unit_problem(unit, may_be_one=True)


def _pattern_problem(pattern: str) -> str | None:
    runs = [found.group() for found in _RUN_OF_LETTERS.finditer(pattern)]
    runs = [run for run in runs if run[0] != _LITERAL_LETTER]
    reserved = next((each for each in pattern if each in _RESERVED), None)
    if reserved is not None:
        return f"{shown(reserved)} in the pattern {shown(pattern)} is not allowed; remove it"
    if not runs:
        return (
            f"the pattern {shown(pattern)} never changes; it needs a letter of the date or the"
            f" time ({listed([*LETTERS], 'and')}), or write it without braces"
        )
    wrong = next((run for run in runs if len(run) > LETTERS.get(run[0], 0)), None)
    if wrong is None:
        return None
    allowed = [f"{letter} (up to {most})" for letter, most in LETTERS.items()]
    return f"{shown(wrong)} in the pattern {shown(pattern)}: allowed are {listed(allowed, 'and')}"

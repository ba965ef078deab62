"""What a check finds: how bad it is, what it is about, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    #: Ticks go on; it needs attention.
    ATTENTION = "attention"
    #: A tick cannot work, or something that is promised does not hold.
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One sentence about one part of the installation."""

    level: Level
    #: What was examined, such as ``inbox`` or the name of a table.
    about: str
    what: str
    #: The file, folder, key or address; empty where there is none.
    where: str = ""
    #: What to do, in one sentence; empty when there is nothing to do.
    todo: str = ""


def ok(about: str, what: str, *, where: object = "") -> Finding:
    """Return a finding about something that is as it should be."""
    return Finding(level=Level.OK, about=about, what=what, where=str(where))


def attention(about: str, what: str, *, todo: str, where: object = "") -> Finding:
    """Return a finding that needs attention."""
    return Finding(level=Level.ATTENTION, about=about, what=what, where=str(where), todo=todo)


def broken(about: str, what: str, *, todo: str, where: object = "") -> Finding:
    """Return a finding about something that is broken."""
    return Finding(level=Level.BROKEN, about=about, what=what, where=str(where), todo=todo)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level of all."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.OK)

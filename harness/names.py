"""Spells the names of tables and columns for SQL: in backticks, whatever characters they hold."""

import re

_PART = re.compile(r"`([^`]+)`|([^.`]+)")


def parts_of(name: str) -> tuple[str, ...]:
    """Split a name at its dots; one between backticks belongs to its part."""
    return tuple(quoted or bare for quoted, bare in _PART.findall(name))


def in_sql(name: str) -> str:
    """Return a name with each of its parts in backticks, out of which no character leads."""
    return ".".join(f"`{part}`" for part in parts_of(name))

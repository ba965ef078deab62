"""Converts pydantic's errors into messages with file, line, key and the allowed values."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from harness.config.observing import DatasetFormat
from harness.config.reference import names_at, type_at
from harness.config.sources import Source
from harness.config.yaml import Document
from harness.errors import ConfigurationError

_BOUNDS = frozenset(
    {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number"}
)


_EXAMPLES = {
    "bootstrap_servers": "broker.example.com:9092",
    "url": "jdbc:postgresql://db.example.com:5432/shop",
    "log_table": "RSPCLOGCHAIN",
    "start": "'22:00'",
    "end": "'06:00'",
}


class SettingsError(ConfigurationError):
    """The configuration has problems; one line each, all of them at once."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def problems_of(
    error: ValidationError, document: Document, prefix: tuple[str, ...] = ()
) -> list[str]:
    """Return one sentence per thing that is wrong, in the order of the lines.

    Args:
        error: What pydantic found.
        document: The file, for the lines.
        prefix: Where the file's mapping belongs when it is only a part of the configuration.
    """
    found: dict[tuple[str, ...], tuple[int, str]] = {}
    for details in error.errors(include_url=False, include_input=False):
        path, line = document.find(details["loc"])
        if details["type"] == "missing":
            path = (*path, str(details["loc"][-1]))
        # A union reports once per branch; the first is enough.
        found.setdefault(path, (line, _sentence(details, (*prefix, *path))))
    return [
        f"{document.name}:{line}: {_name(path)}{sentence}"
        for path, (line, sentence) in sorted(found.items(), key=lambda each: each[1][0])
        # Left out where its parent failed in another branch of the union, and so is reported.
        if not any(path[:length] in found for length in range(1, len(path)))
    ]


def _name(path: Sequence[str]) -> str:
    return f"{'.'.join(path)}: " if path else ""


def _sentence(details: ErrorDetails, path: tuple[str, ...]) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if details["loc"][-1:] == ("[key]",):
        return _wrong_key(path)
    if kind == "value_error":
        return f"{context.get('error', details['msg'])}."
    return f"{_fault(kind)}; {_hint(path, kind)}."


def _fault(kind: str) -> str:
    if kind == "missing":
        return "the key is missing"
    if kind in _BOUNDS:
        return "the number is out of bounds"
    if kind in {"string_too_short", "too_short"}:
        return "the value is empty"
    if kind in {"enum", "literal_error"}:
        return "the value is not allowed"
    return "the value has the wrong form"


def _wrong_key(path: tuple[str, ...]) -> str:
    if path[:3] == ("jobs", "local", "commands"):
        return "this is not a job id; allowed is an integer from 1 to 9223372036854775807."
    if path[:2] == ("sensing", "limits"):
        return f"unknown sensor_source; allowed are {', '.join(Source)}."
    if path[:2] == ("lineage", "datasets"):
        return f"unknown table_format; allowed are {', '.join(get_args(DatasetFormat))}."
    return "the name is empty; give it one."


def _hint(path: tuple[str, ...], kind: str) -> str:
    name = next((part for part in reversed(path) if part in _EXAMPLES), None)
    if name and kind == "string_pattern_mismatch":
        return f"allowed is something like {_EXAMPLES[name]}"
    return f"allowed: {type_at(path)}"


def _unknown_key(path: tuple[str, ...]) -> str:
    allowed = names_at(path[:-1])
    close = get_close_matches(path[-1].lower(), allowed, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else f"allowed are {', '.join(allowed)}."
    return f"unknown key; {hint}"

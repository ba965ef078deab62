"""Makes text from outside fit for a terminal, a line of a log, JSON, and a table."""

import json
import re
from collections.abc import Callable

#: Controls, line and paragraph separators, marks that turn the direction of text or are
#: invisible, and lone surrogates.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def escaped(text: str) -> str:
    """Make text fit for one line: what cannot be seen, or moves a cursor, becomes its escape."""
    return _UNPRINTABLE.sub(_as_escape, text)


def json_text(content: object) -> str:
    """Return one line of JSON that means the same and is safe for any terminal."""
    return _UNPRINTABLE.sub(_in_json, json.dumps(content, ensure_ascii=False))


def storable(text: str) -> str:
    """Make text fit for a table: half a character, which has no UTF-8, becomes its escape."""
    return _HALF_CHARACTER.sub(_as_escape, text)


def first_line(text: object, otherwise: str) -> str:
    """Return the first line of a message; another text when it has none."""
    return next(iter(str(text).strip().splitlines()), otherwise)


def _as_escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")


def _in_json(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]


def mapped(value: object, change: Callable[[str], str]) -> object:
    """Return a value of dictionaries and lists with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {mapped(key, change): mapped(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(each, change) for each in value)
    return value

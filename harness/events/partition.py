"""The values of a partition: one JSON value per level, each always written the same way.

A partition that a person writes, in a cell or on a command line, is a JSON list (``["EU", 7]``) or
its levels with ``;`` between, each plain or a JSON string (``EU;7``, ``"a;b";7``).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

#: More partitions than this of one snapshot are not all named.
PARTITIONS_LIMIT = 1000

Levels = tuple[str, ...]

_STRING = json.JSONDecoder()
_ALLOWED = 'allowed are a JSON list such as ["EU", 7], or the levels with ; between, such as EU;7'


class PartitionError(ValueError):
    """What a person wrote cannot be meant as a partition."""


@lru_cache(maxsize=10_000)
def level(text: str) -> str:
    """Return the value of a level as it is compared.

    Raises:
        ValueError: It is not a JSON value.
    """
    return _as_text(_value(text))


def levels_from(text: str) -> Levels:
    """Return the levels of a partition that a person wrote, as an event has them.

    Raises:
        PartitionError: It cannot be read as one.
    """
    text = text.strip()
    if text.startswith("["):
        return tuple(map(_scalar, _listed(text)))
    return tuple(level_from(part) for part in _split(text))


def levels_given(values: Sequence[str]) -> Levels:
    """Return the levels that the options of a command line name: one each, or all of them in one.

    Raises:
        PartitionError: They cannot be read as a partition.
    """
    if len(values) == 1:
        return levels_from(values[0])
    return tuple(map(level_from, values))


def level_from(text: str) -> str:
    """Return one level that a person wrote: a JSON value as it is compared, or plain text.

    Raises:
        PartitionError: It is empty, or begins as a JSON string and is none.
    """
    text = text.strip()
    if not text:
        raise PartitionError('a level is empty; write "" for a value without characters')
    try:
        value = _value(text)
    except ValueError:
        if text.startswith('"'):
            raise PartitionError(f"{text} begins with a quote and is not a JSON string") from None
        return _as_text(text)
    found = _as_text(value)
    # A number in another spelling than the one that is compared, such as 1e3, is taken as text.
    is_value = _is_scalar(value) and (isinstance(value, str) or found == text)
    return found if is_value else _as_text(text)


def parts_of(text: str) -> tuple[str, ...]:
    """Return the levels of a partition that a person wrote as the plain text that is compared.

    Raises:
        PartitionError: It cannot be read as one.
    """
    text = text.strip()
    if text.startswith("["):
        return tuple(plain_text(_scalar(each)) for each in _listed(text))
    return tuple(plain_text(level_from(part)) if part[:1] == '"' else part for part in _split(text))


def plain_text(level: str) -> str:
    """Return a level's value without what JSON puts around text: ``"5"`` and ``5`` are alike."""
    if level.startswith('"'):
        try:
            return str(json.loads(level))
        except ValueError:
            return level
    return level


def levels_in(tag: str | None) -> frozenset[Levels]:
    """Return the partitions that the tag ``partitions`` lists; none when it lists none."""
    if not tag:
        return frozenset()
    try:
        rows = _value(tag)
        if not isinstance(rows, list):
            return frozenset()
        return frozenset(
            tuple(map(_as_text, row)) if isinstance(row, list) else (_as_text(row),) for row in rows
        )
    except ValueError:
        return frozenset()


def as_tags(partitions: Iterable[Levels], *, are_all: bool) -> dict[str, str]:
    """Return the tags that list partitions."""
    values = sorted(partitions)
    rows = ",".join(f"[{','.join(each)}]" for each in values[:PARTITIONS_LIMIT])
    tags = {"partitions": f"[{rows}]"} if values else {}
    if not are_all or len(values) > PARTITIONS_LIMIT:
        tags["partitions_truncated"] = "true"
    return tags


def _value(text: str) -> object:
    # A decimal keeps its digits: 1.10 is another partition value than 1.1.
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _as_text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list):
        return f"[{','.join(map(_as_text, value))}]"
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}:{_as_text(value[key])}" for key in value)
        return f"{{{','.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False)


def _listed(text: str) -> list[object]:
    try:
        values = _value(text)
    except ValueError:
        values = None
    if not isinstance(values, list) or not values:
        raise PartitionError(f"{text} is not a JSON list with a value for each level; {_ALLOWED}")
    wrong = next((each for each in values if not _is_scalar(each)), None)
    if wrong is not None:
        raise PartitionError(f"{_as_text(wrong)} in {text} is not a value of a level; {_ALLOWED}")
    return values


def _scalar(value: object) -> str:
    """Return a value of a list; text that is a JSON string is what an event's own field has."""
    if isinstance(value, str) and value.startswith('"'):
        return _as_text(plain_text(value))
    return _as_text(value)


def _split(text: str) -> list[str]:
    """Split at each ``;`` that stands in no JSON string."""
    parts: list[str] = []
    rest = text
    while True:
        rest = rest.lstrip()
        end = _end_of_string(rest) if rest.startswith('"') else rest.find(";")
        part = rest if end < 0 else rest[:end]
        parts.append(part.strip())
        if not parts[-1]:
            raise PartitionError(f"level {len(parts)} is empty; {_ALLOWED}")
        if end < 0 or end == len(rest):
            return parts
        rest = rest[end + 1 :]


def _end_of_string(text: str) -> int:
    """Return where the ``;`` after a JSON string stands, or the end."""
    try:
        _, end = _STRING.raw_decode(text)
    except ValueError:
        raise PartitionError(f"{text} begins with a quote and is not a JSON string") from None
    after = text[end:].lstrip()
    if after and not after.startswith(";"):
        raise PartitionError(f"{text} goes on after its closing quote; {_ALLOWED}")
    return len(text) - len(after)


def _is_scalar(value: object) -> bool:
    return not isinstance(value, list | dict)


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not a JSON value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """The partitions that something touched; none of a table without partitions."""

    #: One JSON value per level.
    values: frozenset[tuple[str, ...]] = frozenset()
    #: False when there may be others.
    are_all: bool = True


def partition_fields(partitions: Partitions) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """Return the one partition that was touched, or the tags that describe several."""
    if len(partitions.values) == 1 and partitions.are_all:
        return next(iter(partitions.values)), {}
    return None, as_tags(partitions.values, are_all=partitions.are_all)

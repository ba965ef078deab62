"""The values of a partition: one JSON value per level, each always written the same way."""

import json
from collections.abc import Iterable
from decimal import Decimal

#: More partitions than this of one snapshot are not all named.
PARTITIONS_LIMIT = 1000

Levels = tuple[str, ...]


def level(text: str) -> str:
    """Return the value of a level as it is compared.

    Raises:
        ValueError: It is no JSON value.
    """
    return _as_text(_value(text))


def levels_in(tag: str | None) -> frozenset[Levels]:
    """Return the partitions that the tag ``partitions`` lists; none when it lists none."""
    try:
        rows = _value(tag or "[]")
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


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no JSON value")

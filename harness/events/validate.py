"""Checks the events that a producer registers: one sentence per error."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.events.partition import level
from harness.platform.sql_names import table_key
from harness.platform.text import escaped

#: The fields of an event that a producer may give.
FIELDS = (
    "table",
    "partition",
    "snapshot_id",
    "snapshot_ts",
    "prev_snapshot_id",
    "table_format",
    "operation_type",
    "tags",
    "event_id",
)
_LONGEST_NAME = 1_000
_LONGEST_ID = 255
_LONGEST_LEVEL = 4_000
_LONGEST_TAG = 65_536
_MOST_LEVELS = 50
_MOST_TAGS = 100
#: Less is a number of seconds: as milliseconds it would lie in 1973 or before.
_EARLIEST_MS = 100_000_000_000
#: A producer's clock may be ahead of ours, and stand in another zone unintentionally.
_AHEAD = timedelta(days=1)


class _Wrong(Exception):
    """Determines what is wrong with one field."""


class Unreadable(str):
    """Stands for an event that cannot be read, and shows why."""

    __slots__ = ()


@dataclass(slots=True, kw_only=True)
class Checked:
    """What was good of a batch, and a sentence for everything that was not."""

    events: list[ChangeEvent] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def check(
    batch: Iterable[tuple[str, object]],
    *,
    at: datetime,
    known_levels: Mapping[str, int | None] | None = None,
) -> Checked:
    """Convert what producers register into events.

    Args:
        batch: Where each event stands, in words, and what stands there.
        at: The present instant.
        known_levels: The known number of partition levels of each table, by its key.
    """
    checked = Checked()
    latest_ms = int((at + _AHEAD).timestamp() * 1000)
    levels = _LevelsOfTables(known_levels or {})
    for place, content in batch:
        problems: list[str] = []
        event = _event(content, latest_ms, problems)
        if event is not None:
            problems += levels.problems_of(event, place)
        if event is not None and not problems:
            checked.events.append(event)
        checked.problems += [f"{place}: {problem}" for problem in problems]
    return checked


def _event(content: object, latest_ms: int, problems: list[str]) -> ChangeEvent | None:
    if isinstance(content, Unreadable):
        problems.append(content)
        return None
    if not isinstance(content, Mapping):
        problems.append("an event is a JSON object with the fields " + ", ".join(FIELDS))
        return None
    fields = {str(key): value for key, value in content.items() if value is not None}
    values: dict[str, object] = {}
    for name, value in fields.items():
        try:
            values[name] = _READERS[name](value)
        except KeyError:
            problems.append(_unknown(name))
        except _Wrong as wrong:
            problems.append(f"{name} {wrong}")
    problems += _missing(fields)
    if not problems:
        problems += _contradictions(values, latest_ms)
    return None if problems else ChangeEvent(**values)  # type: ignore[arg-type]


def _unknown(name: str) -> str:
    if name == "event_ts":
        return "event_ts is the instant at which the event is registered: leave it out"
    close = get_close_matches(name, FIELDS, n=1)
    hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(FIELDS)}"
    return f"unknown field '{_shown(name)}'{hint}"


def _missing(fields: Mapping[str, object]) -> list[str]:
    missing = []
    if "table" not in fields:
        missing.append("table is missing: an event is about one table")
    if "table_format" not in fields:
        formats = ", ".join(TableFormat)
        why = (
            "snapshot_id cannot be read without it"
            if "snapshot_id" in fields
            else "an event has one"
        )
        missing.append(f"table_format is missing: {why}; it is one of {formats}")
    if "prev_snapshot_id" in fields and "snapshot_id" not in fields:
        missing.append("prev_snapshot_id has no snapshot_id that it precedes: give both or none")
    return missing


def _contradictions(values: Mapping[str, object], latest_ms: int) -> list[str]:
    found = []
    snapshot_ts = values.get("snapshot_ts")
    if isinstance(snapshot_ts, int) and snapshot_ts > latest_ms:
        found.append(
            f"snapshot_ts {snapshot_ts} lies in the future: it is in milliseconds since 1970, UTC"
        )
    before = values.get("prev_snapshot_id")
    if before is not None and before == values["snapshot_id"]:
        found.append(f"snapshot_id and prev_snapshot_id are both '{before}': one follows the other")
    return found


def _text(value: object, longest: int, *, is_tag: bool = False) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"is {_kind(value)}, and has to be text")
    if len(value) > longest:
        raise _Wrong(f"has {len(value):,} characters; {longest:,} are allowed")
    plain = value.replace("\n", "").replace("\t", "") if is_tag else value
    # Most text is plain, and this check runs for every field of a large batch.
    if not (plain.isascii() and plain.isprintable()) and escaped(plain) != plain:
        raise _Wrong(f"'{_shown(value)}' has characters that cannot be seen: leave them out")
    return value


def _table(value: object) -> str:
    text = _text(value, _LONGEST_NAME).strip()
    if not table_key(text):
        raise _Wrong("is empty: an event is about one table")
    return text


def _id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        raise _Wrong(f"is {value!r}, a number with lost digits: write it as text")
    text = _text(value, _LONGEST_ID).strip()
    if not text:
        raise _Wrong("is empty: leave it out where there is none")
    return text


def _instant(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong(f"is {_kind(value)}, and has to be milliseconds since 1970 as an integer")
    if value < 0:
        raise _Wrong(f"{value} is negative: it is in milliseconds since 1970, UTC")
    if value < _EARLIEST_MS:
        raise _Wrong(f"{value} is in seconds: it has to be in milliseconds, {value}000")
    return value


def _format(value: object) -> TableFormat:
    try:
        return TableFormat(_text(value, _LONGEST_ID).strip().upper())
    except ValueError:
        raise _Wrong(f"'{_shown(value)}' is not one of {', '.join(TableFormat)}") from None


def _operation(value: object) -> Operation:
    try:
        return Operation(_text(value, _LONGEST_ID).strip().upper())
    except ValueError:
        raise _Wrong(f"'{_shown(value)}' is not one of {', '.join(Operation)}") from None


def _partition(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _Wrong(f"is {_kind(value)}, and has to be a list with one JSON value per level")
    if not value:
        raise _Wrong("is an empty list: leave it out for a table without partitions")
    if len(value) > _MOST_LEVELS:
        raise _Wrong(f"has {len(value)} levels; {_MOST_LEVELS} are allowed")
    return tuple(_level(each, number) for number, each in enumerate(value, start=1))


def _level(value: object, number: int) -> str:
    try:
        return level(_text(value, _LONGEST_LEVEL))
    except _Wrong as wrong:
        raise _Wrong(f"level {number} {wrong}") from None
    except ValueError:
        proposal = escaped(json.dumps(value, ensure_ascii=False))[:_LONGEST_ID]
        raise _Wrong(
            f"level {number} '{_shown(value)}' is not a JSON value: text has quotes, as in"
            f" {proposal}"
        ) from None


def _tags(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _Wrong(f"is {_kind(value)}, and has to be an object of text by text")
    if len(value) > _MOST_TAGS:
        raise _Wrong(f"has {len(value)} tags; {_MOST_TAGS} are allowed")
    return {_tag_name(name): _tag(name, fields) for name, fields in value.items()}


def _tag_name(name: object) -> str:
    try:
        text = _text(name, _LONGEST_ID)
    except _Wrong as wrong:
        raise _Wrong(f"has a name that {wrong}") from None
    if not text.strip():
        raise _Wrong("has a tag without a name")
    return text


def _tag(name: object, value: object) -> str:
    try:
        return _text(value, _LONGEST_TAG, is_tag=True)
    except _Wrong as wrong:
        raise _Wrong(f"{_shown(name)} {wrong}") from None


_READERS = {
    "table": _table,
    "partition": _partition,
    "snapshot_id": _id,
    "snapshot_ts": _instant,
    "prev_snapshot_id": _id,
    "table_format": _format,
    "operation_type": _operation,
    "tags": _tags,
    "event_id": _id,
}


def _kind(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {value}"[:_LONGEST_ID]
    if isinstance(value, str):
        return f"the text '{_shown(value)}'"
    return "an object" if isinstance(value, Mapping) else "a list"


def _shown(value: object) -> str:
    text = str(value)
    return escaped(text if len(text) <= 60 else text[:60] + "…")


class _LevelsOfTables:
    """Holds how many levels the partitions of each table have, from what is known and the batch."""

    def __init__(self, known: Mapping[str, int | None]) -> None:
        self._known = known
        self._in_batch: dict[str, tuple[int, str]] = {}

    def problems_of(self, event: ChangeEvent, place: str) -> list[str]:
        if event.partition is None:
            return []
        key, count = table_key(event.table), len(event.partition)
        known = self._known.get(key)
        if known is not None and known != count:
            return [
                f"partition has {_levels(count)}, but {_shown(event.table)} has {_levels(known)}; "
                "if its partitioning has changed, pass --repartitioned"
            ]
        first, where = self._in_batch.setdefault(key, (count, place))
        if first != count:
            return [f"partition has {_levels(count)}, but {_levels(first)} at {where}"]
        return []


def _levels(count: int) -> str:
    return f"{count} level" + "s" * (count != 1)

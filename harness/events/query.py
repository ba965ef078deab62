"""Asks for data-change events: what may be asked, and which event answers it.

The macro ``data_change_events_between`` says the same in SQL; a table of cases is run against both.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent, Operation
from harness.events.partition import levels_in, plain_text
from harness.platform.sql_names import table_key

#: The tag of an event that has changed several partitions: a JSON list of them.
PARTITIONS = "partitions"

#: What may be given as an instant: aware, ISO 8601 (UTC where no zone is stated), or milliseconds.
Instant = datetime | str | int
#: The last millisecond of the year 9999.
_LAST_INSTANT = 253_402_300_799_999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Eight digits are a day, as ISO 8601 has it.
_MILLISECONDS = re.compile(r"(?!\d{8}$)[+-]?\d+", re.ASCII)


class By(StrEnum):
    """Whose time a range is in."""

    #: ``event_ts``: when the event was registered.
    REGISTRATION = "registration"
    #: ``snapshot_ts``: when the change was made.
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which events are wanted; what is ``None`` or empty asks for nothing."""

    table: str | None = None
    #: One value per level, as plain text.
    partition: tuple[str, ...] | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    operation: Operation | None = None
    #: Milliseconds since the epoch: from the first, up to and without the second.
    start: int | None = None
    end: int | None = None
    by: By = By.REGISTRATION

    def is_met_by(self, event: ChangeEvent) -> bool:
        """Return whether an event is one of those that are wanted."""
        return (
            (self.table is None or table_key(event.table) == table_key(self.table))
            and (self.operation is None or event.operation_type is self.operation)
            and self.tags.items() <= event.tags.items()
            and (self.partition is None or self.partition in partitions_of(event))
            and self._is_in_range(event)
        )

    def _is_in_range(self, event: ChangeEvent) -> bool:
        if self.start is None and self.end is None:
            return True
        at = event.event_ts if self.by is By.REGISTRATION else event.snapshot_ts
        if at is None:
            return False
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


def partitions_of(event: ChangeEvent) -> frozenset[tuple[str, ...]]:
    """Return the partitions that an event names, each level as plain text.

    Of a list that was cut off only those are known that are still in it.
    """
    one = None if event.partition is None else frozenset({event.partition})
    named = one or levels_in(event.tags.get(PARTITIONS))
    return frozenset(tuple(map(plain_text, levels)) for levels in named)


def question_about(
    *,
    table: str | None = None,
    partition: Sequence[object] | None = None,
    tags: Mapping[str, str] | None = None,
    operation: str | None = None,
) -> Question:
    """Return what is asked of an event, whenever it was.

    Raises:
        ConfigurationError: Something is wrong with it.
    """
    if table is not None and not table_key(table):
        raise ConfigurationError("The table has no name; leave it out for every table")
    return Question(
        table=table,
        partition=None if partition is None else _partition(partition),
        tags=_tags(tags or {}),
        operation=None if operation is None else _operation(operation),
    )


def instant_ms(value: Instant, name: str) -> int:
    """Return an instant in milliseconds since the epoch, rounded up where it lies between two.

    So the first event that counts is the first one at or after the instant.

    Args:
        value: Aware, ISO 8601 text (UTC where it names no zone), or milliseconds.
        name: What the instant is called, for a person.

    Raises:
        ConfigurationError: It is no instant.
    """
    try:
        at = _milliseconds(value)
    except (ValueError, OverflowError) as error:
        raise _no_instant(value, name) from error
    if abs(at) > _LAST_INSTANT:
        raise _no_instant(value, name)
    return at


def by_of(text: str) -> By:
    """Return whose time is meant.

    Raises:
        ConfigurationError: There is no such time.
    """
    try:
        return By(text.strip().lower())
    except ValueError as error:
        raise ConfigurationError(
            f"Events cannot be selected by '{text}'; allowed are {' and '.join(By)}"
        ) from error


def check_range(start: int | None, end: int | None) -> None:
    """Check that a range does not end before it begins.

    Raises:
        ConfigurationError: It does.
    """
    if start is not None and end is not None and start > end:
        raise ConfigurationError(
            f"The range begins at {_iso(start)}, after its end at {_iso(end)}; swap the two"
        )


def _milliseconds(value: Instant) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _MILLISECONDS.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, str):
        at = datetime.fromisoformat(value.strip())
        return _since_epoch(at if at.tzinfo else at.replace(tzinfo=UTC))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return _since_epoch(value)
    raise ValueError("no instant")


def _since_epoch(at: datetime) -> int:
    return -((_EPOCH - at) // timedelta(milliseconds=1))


def _no_instant(value: object, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name} '{value}' is no instant; write for example 2026-03-01T08:00Z (UTC where no zone "
        "is named), or milliseconds since the epoch"
    )


def _iso(at: int) -> str:
    reported = (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")
    return reported.replace("+00:00", "Z").replace(".000", "")


def _partition(values: object) -> tuple[str, ...]:
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, Sequence) or not values:
        raise ConfigurationError(
            f"The partition {values!r} is no list with one value per level, such as ['2026-03-01']"
        )
    return tuple(plain_text(each) if isinstance(each, str) else _as_text(each) for each in values)


def _as_text(value: object) -> str:
    """Return a value as JSON has it, and what JSON does not know as it reads."""
    if value is None or isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _tags(tags: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in tags.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ConfigurationError(
                f"The tag {key!r} with the value {value!r} is no text; write both as text"
            )
    return dict(tags)


def _operation(text: str) -> Operation:
    try:
        return Operation(text.strip().upper())
    except ValueError as error:
        listed = ", ".join(Operation)
        raise ConfigurationError(f"There is no operation '{text}'; allowed are {listed}") from error

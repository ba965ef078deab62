"""Finds data-change events in the ledger; on the local target without a JVM.

Rows of one change, whatever its origin, are one event: the newest of them, as in the public view
``data_change_events``. The macro ``data_change_events_between`` checks its arguments with the same
code and selects the events in SQL; a table of cases is run against both.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypedDict, Unpack

from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent
from harness.events.order import Row, in_order
from harness.events.partition import levels_in, plain_text
from harness.platform.sql_names import parts_of, table_key
from harness.store.rows import Ledger, Store, integer
from harness.toolkit.changes.macros import macros

#: The tag of an event that has changed several partitions: a JSON list of them.
PARTITIONS = "partitions"
#: What a trigger has released are copies of events that the ledger has already.
COPIES = "trigger:"

#: What may be given as an instant: aware, ISO 8601 (UTC where no zone is stated), or milliseconds.
Instant = datetime | str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which events are wanted, checked; what is ``None`` or empty restricts nothing."""

    table: str | None
    #: One value per level, as plain text.
    partition: Sequence[str] | None
    tags: Mapping[str, str]
    operation: str | None
    #: Milliseconds since the epoch: from the first, up to and without the second.
    start: int | None
    end: int | None
    #: Whose time the range is in.
    column: str
    #: Two origins of one snapshot may differ by so much in when it was made.
    leeway: int

    def is_met_by(self, event: ChangeEvent) -> bool:
        """Return whether an event is one of those that are wanted."""
        at = event.event_ts if self.column == "event_ts" else event.snapshot_ts
        return (
            (self.table is None or table_key(event.table) == table_key(self.table))
            and self.operation in (None, event.operation_type)
            and self.tags.items() <= event.tags.items()
            and (self.partition is None or tuple(self.partition) in partitions_of(event))
            and (self.start is None or (at is not None and self.start <= at))
            and (self.end is None or (at is not None and at < self.end))
        )


def partitions_of(event: ChangeEvent) -> frozenset[tuple[str, ...]]:
    """Return the partitions that an event names, each level as plain text.

    Of a list that was cut off only those are known that are still in it.
    """
    one = None if event.partition is None else frozenset({event.partition})
    named = one or levels_in(event.tags.get(PARTITIONS))
    return frozenset(tuple(map(plain_text, levels)) for levels in named)


class Wanted(TypedDict, total=False):
    """What is required of an event; what is left out, or ``None``, may be anything."""

    #: One value per level, as text or as what reads the same: ``["2026-03-01", 7]``.
    partition: Sequence[object] | None
    #: All of them have to be there.
    tags: Mapping[str, str] | None
    #: APPEND, DELETE or UPDATE.
    operation: str | None
    #: From this instant on: aware, ISO 8601 (UTC where no zone is named), or milliseconds.
    start: Instant | None
    #: Up to this instant, and without it.
    end: Instant | None
    #: Whose time the range is in: ``registration`` or ``snapshot``.
    by: str | None
    #: The state directory, if it is not HEARTBEAT_HOME; of the local target only.
    home: str | os.PathLike[str] | None


def events(table: str | None = None, **wanted: Unpack[Wanted]) -> list[ChangeEvent]:
    """Return data-change events, oldest registration first.

    Args:
        table: Its name, however it is spelled; ``None``: every table.
        **wanted: ``partition``, ``tags``, ``operation``, ``start``, ``end`` (half-open), ``by``
            (``registration`` or ``snapshot``: whose time the range is in) and ``home``.

    Raises:
        ConfigurationError: Something is wrong with an argument.
        StateError: The tables cannot be read.
    """
    from harness.config.load import HOME_VARIABLE, load_settings
    from harness.config.project import project_folder
    from harness.context import Context
    from harness.tick.install import require_state

    question = question_of(table, wanted)
    home = wanted.get("home")
    own = {} if home is None else {HOME_VARIABLE: str(Path(home).absolute())}
    environment = {**os.environ, **own}
    settings = load_settings(project_folder(environment), environment)
    with closing(Context(settings, environment)) as context:
        require_state(context)
        return find(context.store, question)


def question_of(table: str | None, wanted: Wanted) -> Question:
    """Return the arguments as a question, checked.

    Raises:
        ConfigurationError: Something is wrong with them.
    """
    unknown = sorted(wanted.keys() - Wanted.__optional_keys__)
    if unknown:
        allowed = ", ".join(sorted(Wanted.__optional_keys__))
        raise ConfigurationError(
            f"Events cannot be selected by '{unknown[0]}='; allowed beside the table are {allowed}"
        )
    try:
        return Question(**macros().call._event_question({**wanted, "table": table}))
    except (ValueError, OverflowError) as error:
        # Such as a day that its month does not have.
        ends = {"The start": wanted.get("start"), "The end": wanted.get("end")}
        given = [f"{name} '{value}'" for name, value in ends.items() if value is not None]
        raise ConfigurationError(f"{' or '.join(given)} is not an instant: {error}") from error


def find(store: Store, question: Question) -> list[ChangeEvent]:
    """Return the events that match a question, oldest registration first.

    Raises:
        StateError: The ledger cannot be read.
    """
    newest: dict[tuple[object, ...], Row] = {}
    for row in store.read(Ledger.EVENTS, where=_within(question)):
        if str(row["upstream_id"]).startswith(COPIES):
            continue
        key = row["event_ts"], row["table"], _change_of(row)
        if key not in newest or _is_newer(row, newest[key]):
            newest[key] = row
    events = map(_event, in_order(newest.values(), reported_at=_registration))
    return [event for event in events if question.is_met_by(event)]


def _within(question: Question) -> list[tuple[str, str, object]]:
    """Return conditions that every row of an event meets, by which most rows are never read."""
    column, leeway = question.column, question.leeway
    conditions = [
        (column, ">=", None if question.start is None else question.start - leeway),
        (column, "<", None if question.end is None else question.end + leeway),
        ("table", "contains", question.table and _own_name(question.table)),
    ]
    return [condition for condition in conditions if condition[2] is not None]


def _own_name(table: str) -> str | None:
    """Return what every spelling of a table's name contains."""
    key = table_key(table)
    name = key if "/" in key else parts_of(key)[-1]
    # What is more than letters may have a capital of its own in one place and none in another.
    return name if name.isascii() and "`" not in name else None


def _change_of(row: Row) -> object:
    """Name the change of a row; older rows have no such name."""
    return row.get("change_id") or row["event_id"]


def _is_newer(row: Row, other: Row) -> bool:
    age, other_age = _age(row), _age(other)
    return age > other_age or (age == other_age and str(row["event_id"]) < str(other["event_id"]))


def _age(row: Row) -> tuple[int, int]:
    tags = row["tags"]
    return integer(row["tick_number"]), len(tags) if isinstance(tags, Mapping) else 0


def _event(row: Row) -> ChangeEvent:
    return ChangeEvent.from_json({**row, "event_id": _change_of(row)})


def _registration(row: Row) -> tuple[int, ...]:
    return integer(row["event_ts"] or 0), integer(row["tick_number"])

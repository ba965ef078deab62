"""Registers data-change events: checks them and leaves them in the inbox for the next tick.

It needs no Spark and no lock, and a tick may go on meanwhile.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config.load import DEFAULT_HOME, HOME_VARIABLE, LOCAL_TARGET, target_of
from harness.config.project import project_folder
from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent
from harness.events.validate import check
from harness.platform.clock import Clock, RealClock
from harness.platform.sql_names import table_key

if TYPE_CHECKING:
    from harness.store.inbox import Inbox

#: More events have to be registered in several goes.
MOST_EVENTS = 100_000
_MOST_REPORTED = 20

Event = ChangeEvent | Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where events are left, and what is known of tables there.

    Args:
        home: The state directory.
        environment: The variables of the process.
    """

    home: Path
    environment: Mapping[str, str]
    clock: Clock

    @contextmanager
    def inbox(self) -> "Iterator[Inbox]":
        """Give the folder on the local target, the table in a workspace."""
        from harness.context import inbox_of_workspace
        from harness.store.inbox import FolderInbox

        if target_of(self.environment) == LOCAL_TARGET:
            yield FolderInbox(self.home / "inbox")
            return
        with inbox_of_workspace(self.environment, self.clock) as inbox:
            yield inbox


def state_directory(home: str | Path | None = None) -> Path:
    """Return the state directory that is meant; without a name it is the one of the commands."""
    if home is not None:
        return Path(home).absolute()
    named = Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
    return named if named.is_absolute() else project_folder(os.environ) / named


def register(
    events: Event | Iterable[Event],
    *,
    home: str | Path | None = None,
    repartitioned: bool = False,
) -> int:
    """Register that tables have changed; the next tick ingests it.

    Args:
        events: One event or many, each a ``ChangeEvent`` or a dictionary of its fields.
        home: The state directory; else HEARTBEAT_HOME shows where it is.
        repartitioned: The partitions of a table may have another number of levels than before.

    Returns:
        How many events were registered.

    Raises:
        ConfigurationError: Something is wrong with an event; nothing was registered.
        StateError: The state directory cannot be written.
    """
    reported = [events] if isinstance(events, ChangeEvent | Mapping) else events
    batch = (
        (f"event {number}", event.to_json() if isinstance(event, ChangeEvent) else event)
        for number, event in enumerate(reported, start=1)
    )
    place = Place(home=state_directory(home), environment=os.environ, clock=RealClock())
    return register_batch(batch, place, repartitioned=repartitioned)


def register_batch(
    batch: Iterable[tuple[str, object]], place: Place, *, repartitioned: bool = False
) -> int:
    """Register events, each of which stands somewhere, or none of them.

    Raises:
        ConfigurationError: Something is wrong with an event.
        StateError: The state directory cannot be written, or what is known of a table not be read.
    """
    from harness.record.batch_inbox import send_batch

    at = place.clock.now()
    contents = list(_not_too_many(batch))
    levels = {} if repartitioned else _known_levels(contents, place)
    checked = check(contents, at=at, known_levels=levels)
    if checked.problems:
        raise ConfigurationError(_listed(checked.problems))
    if checked.events:
        with place.inbox() as inbox:
            send_batch(inbox, checked.events, at=at)
    return len(checked.events)


def _not_too_many(batch: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    for number, each in enumerate(batch):
        if number == MOST_EVENTS:
            raise ConfigurationError(
                f"{each[0]}: there are more than {MOST_EVENTS:,} events, so none is registered: "
                "register them in several goes"
            )
        yield each


def _listed(problems: list[str]) -> str:
    if len(problems) == 1:
        return f"{problems[0]}; nothing is registered"
    lines = [f"{len(problems)} errors, so nothing is registered:", *problems[:_MOST_REPORTED]]
    if len(problems) > _MOST_REPORTED:
        lines.append(f"and {len(problems) - _MOST_REPORTED} more")
    return "\n".join(lines)


def _known_levels(contents: Iterable[tuple[str, object]], place: Place) -> Mapping[str, int | None]:
    """Read how many partition levels the tables have; in a workspace only a tick reads that."""
    tables = {
        table_key(content["table"])
        for _, content in contents
        if isinstance(content, Mapping)
        and content.get("partition")
        and isinstance(content.get("table"), str)
    }
    if not tables or target_of(place.environment) != LOCAL_TARGET:
        return {}
    from harness.record.registrations import known_tables
    from harness.store.local import LocalStore
    from harness.store.queries import folded_through, last_decision

    schema = place.environment.get("HEARTBEAT_SCHEMA", "heartbeat")
    store = LocalStore(place.home / "warehouse", schema)
    compacted = folded_through(store, last_decision(place.home / "status.json"))
    return known_tables(store, compacted)

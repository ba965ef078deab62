"""Decides whether event triggers need evaluation in this tick."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness.controls.triggers.parse import EVENT_TRIGGERS, read_triggers
from harness.events.event import EventRow
from harness.platform.sql_names import table_key
from harness.record.probes import Recorded
from harness.record.registrations import Registered
from harness.store.rows import ProbeRow, Run, Tick
from harness.store.trigger_queries import has_ready_slot
from harness.store.work_lists import StateView


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the steps of a tick have recorded before it decides."""

    #: Steps of runs, however they were started.
    steps: tuple[Run, ...] = ()
    #: From producers.
    registered: Registered = field(default_factory=Registered)
    #: From probes.
    recorded: Recorded = field(default_factory=Recorded)
    #: From triggers; ``None`` when they were not evaluated.
    released: Recorded | None = None

    @property
    def events(self) -> tuple[EventRow, ...]:
        """The data-change events of producers and probes."""
        return (*self.registered.events, *self.recorded.events)

    @property
    def probes(self) -> tuple[ProbeRow, ...]:
        """The new state of the upstreams that were probed, and of the triggers."""
        return (*self.recorded.probes, *(self.released.probes if self.released else ()))

    @property
    def has_moved(self) -> bool:
        """True when probes, producers or triggers have left a row, with or without an event."""
        return bool(self.registered.probes or self.probes or self.released)


class TriggerTables:
    """Caches the tables that the triggers name, until the controls change.

    Args:
        project: The folder with ``dbt_project.yml``.
        accepted: Has the seeds that are in force, if any were accepted.
    """

    def __init__(self, project: Path, accepted: Path | None = None) -> None:
        self._project = project
        self._accepted = accepted
        self._checksum: str | None = None
        self._keys: frozenset[str] = frozenset()

    def named(self, checksum: str | None) -> frozenset[str]:
        """Return the key of each table, whatever its spelling.

        Args:
            checksum: Of the controls and the seeds beside them.

        Raises:
            ControlsError: The file with the triggers cannot be read.
        """
        if checksum is None or checksum != self._checksum:
            accepted = self._accepted
            is_kept = accepted is not None and (accepted / EVENT_TRIGGERS).is_file()
            rows = read_triggers(accepted if accepted and is_kept else self._project).rows
            self._keys = frozenset(table_key(row.table) for row in rows)
            self._checksum = checksum
        return self._keys


def triggers_are_due(
    state: StateView, tick: Tick, findings: Findings, tables: TriggerTables
) -> bool:
    """Return whether evaluating the triggers may bring anything that the last time did not.

    That is so when a table of theirs has new events, when a slot or an expiry has come, and when a
    run that consumed what a trigger released has taken a step while a later slot of the trigger
    has all it needs.
    """
    if not state.triggers:
        return False
    due_at = state.triggers_due_at
    if due_at is not None and tick.at >= due_at:
        return True
    taken = {consumed.upstream_id for row in findings.steps for consumed in row.consumed}
    if taken and any(
        each.upstream_id in taken and has_ready_slot(each.position) for each in state.triggers
    ):
        return True
    return _has_events(tick, findings, lambda: tables.named(state.controls_checksum))


def _has_events(tick: Tick, findings: Findings, tables: Callable[[], frozenset[str]]) -> bool:
    """Return whether events of tables that triggers name came, or were left by a killed tick."""
    events = findings.events
    probes = (*findings.registered.probes, *findings.recorded.probes)
    with_events = {row.upstream_id for row in probes if row.latest_event_tick == tick.number}
    if with_events - {event.upstream_id for event in events}:
        return True
    return bool(events) and not tables().isdisjoint(table_key(event.table) for event in events)

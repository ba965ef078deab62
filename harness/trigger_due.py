"""Tells whether asking the triggers may bring anything new; most ticks need not ask them."""

from collections.abc import Callable
from pathlib import Path

from harness.controls.triggers import EVENT_TRIGGERS, read_triggers
from harness.names import table_key
from harness.state import TickState
from harness.tick_report import TickReport


class TriggerTables:
    """Knows the tables that the triggers name, until the controls change.

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


def triggers_are_due(state: TickState, report: TickReport, tables: TriggerTables) -> bool:
    """Tell whether asking the triggers may bring anything that the last answer did not have.

    That is so when a table of theirs has new events, when a run has taken a step that was handed
    what a trigger released, and when a slot or an expiry has come.
    """
    if not state.triggers:
        return False
    due_at = state.triggers_due_at
    if due_at is not None and report.tick.at >= due_at:
        return True
    own = {each.upstream_id for each in state.triggers}
    steps = (*report.own_steps, *(report.settled.rows if report.settled else ()))
    if any(taken.upstream_id in own for row in steps for taken in row.consumed):
        return True
    return _has_events(report, lambda: tables.named(state.controls_checksum))


def _has_events(report: TickReport, tables: Callable[[], frozenset[str]]) -> bool:
    """Tell whether events of tables that triggers name came, or were left by a killed tick."""
    recorded = report.recorded.events if report.recorded else ()
    events = (*report.registered.events, *recorded)
    probes = (*report.registered.probes, *(report.recorded.probes if report.recorded else ()))
    with_news = {row.upstream_id for row in probes if row.latest_event_tick == report.tick.number}
    if with_news - {event.upstream_id for event in events}:
        return True
    return bool(events) and not tables().isdisjoint(table_key(event.table) for event in events)

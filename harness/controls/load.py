"""Feeds the controls CSV into its seed and into the ledger of controls, when it has changed.

The file is checked before anything moves. What differs from the recorded rows is found by the
model ``queue_control_changes``.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

from harness.controls.check import REMOVED_ROWS_ALLOWED, Configured, check
from harness.controls.findings import Code, Finding, Severity, has_errors, render_findings
from harness.controls.optional_seeds import SeedProblem, examine_seeds
from harness.controls.parse import ControlsFile, parse_controls, read_controls
from harness.controls.triggers.parse import TriggersFile, read_triggers
from harness.controls.triggers.parse import job_names as names_in_triggers
from harness.errors import ControlsError
from harness.store.rows import ControlChangeRow, Ledger, Store, Tick, integer

log = logging.getLogger(__name__)

CONTROLS = Path("seeds") / "heartbeat_controls.csv"


class Rows(Protocol):
    """Reads a model's rows; implemented over the Spark session."""

    def __call__(self, relation: str) -> list[dict[str, object]]:
        """Return every row of a relation of the heartbeat schema."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedControls:
    """The CSV as it is now, with its findings."""

    controls: ControlsFile
    triggers: TriggersFile
    findings: tuple[Finding, ...]
    #: What is wrong with the seeds beside it.
    seed_problems: tuple[SeedProblem, ...] = ()

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that do not stop."""
        return tuple(each for each in self.findings if each.severity is Severity.WARNING)


def check_controls(
    project: Path,
    store: Store | None,
    *,
    allow_mass_removal: bool = False,
    may_read: Collection[str] = (),
    configured: Configured | None = None,
) -> CheckedControls:
    """Read the controls CSV and find everything that is wrong with it.

    Args:
        project: The folder with ``dbt_project.yml``.
        store: Has the rows that there were; without it the file is checked alone.
        allow_mass_removal: Many rows may be gone.
        may_read: Tables that a preprocess query may read besides the new rows.
        configured: What heartbeat.yml has; without it nothing is reported as missing there.

    Raises:
        ControlsError: The file cannot be read, or a seed beside it is wrong.
    """
    checked = examine_controls(
        project,
        store,
        allow_mass_removal=allow_mass_removal,
        may_read=may_read,
        configured=configured,
    )
    if checked.seed_problems:
        problems = map(str, checked.seed_problems)
        raise ControlsError("\n".join(["A seed has errors, so nothing moved:", *problems]))
    return checked


def examine_controls(
    project: Path,
    store: Store | None,
    *,
    allow_mass_removal: bool = False,
    may_read: Collection[str] = (),
    configured: Configured | None = None,
) -> CheckedControls:
    """Find everything that is wrong with the controls CSV and the seeds beside it.

    The arguments are those of ``check_controls``.

    Raises:
        ControlsError: The controls CSV cannot be read.
    """
    controls = parse_controls(_bytes(project), project / CONTROLS)
    triggers, problems = examine_seeds(project, job_names(controls))
    findings = check(
        controls,
        previous_keys=(_rows_to_keep(store, controls.keys) if store else None) or None,
        removal_is_meant=allow_mass_removal,
        may_read=may_read,
        configured=configured,
    )
    if triggers.rows:
        findings = [each for each in findings if each.code is not Code.NO_ROWS]
    return CheckedControls(
        controls=controls,
        triggers=triggers,
        findings=tuple(findings),
        seed_problems=tuple(problems),
    )


def stop_on_errors(checked: CheckedControls) -> None:
    """Raise when a finding stops, naming every finding.

    Raises:
        ControlsError: There is an error among the findings.
    """
    if has_errors(checked.findings):
        lines = render_findings(checked.findings, str(CONTROLS), colour=False)
        raise ControlsError("\n".join(["The controls CSV has errors, so nothing moved:", *lines]))


def _rows_to_keep(store: Store, kept: Collection[str]) -> frozenset[str]:
    """Return the ids of the rows in force whose removal has to be meant.

    A row that has never had an event is none of them: examples and first attempts are replaced
    without confirmation.
    """
    recorded = newest_controls(store)
    if len(recorded.keys() - kept) < REMOVED_ROWS_ALLOWED:
        return frozenset(recorded)
    columns = ["upstream_id", "latest_event_tick"]
    active = {
        str(row["upstream_id"])
        for table in ("upstream_state", Ledger.PROBES)
        for row in store.read(table, columns=columns)
        if row["latest_event_tick"] is not None
    }
    return frozenset(key for key, row in recorded.items() if str(row["upstream_id"]) in active)


def newest_controls(store: Store) -> dict[str, Mapping[str, object]]:
    """Return the control rows, by id, as the ledger last recorded them; none that was removed."""
    newest: dict[str, tuple[tuple[int, str], Mapping[str, object]]] = {}
    for row in store.read(Ledger.CONTROLS):
        key, place = str(row["control_id"]), (integer(row["tick_number"]), str(row["change"]))
        if key not in newest or newest[key][0] <= place:
            newest[key] = place, row
    return {key: row for key, (_, row) in newest.items() if row["change"] != "removed"}


def record_changes(rows: Rows, store: Store, tick: Tick) -> list[ControlChangeRow]:
    """Append what differs between the seed and the recorded controls, and return it."""
    names = {field.name for field in fields(ControlChangeRow)}
    changes = [
        _change_row({key: value for key, value in row.items() if key in names}, tick)
        for row in rows("queue_control_changes")
    ]
    store.append(Ledger.CONTROLS, changes)
    if changes:
        log.info("controls: %s rows changed", len(changes))
    return changes


def _change_row(row: Mapping[str, object], tick: Tick) -> ControlChangeRow:
    values = {**row, "tick_number": tick.number, "recorded_at": tick.at}
    return ControlChangeRow(**values)  # type: ignore[arg-type]


def job_names(controls: ControlsFile) -> Mapping[int, str]:
    """Return the jobs that the controls name."""
    return {row.job_id: row.trigger_job_name for row in controls.rows if row.job_id is not None}


def every_job_name(project: Path) -> dict[int, str]:
    """Return the jobs of the controls and of the triggers, as the files have them now.

    Raises:
        ControlsError: A file cannot be read.
    """
    in_controls = job_names(read_controls(project / CONTROLS))
    return names_in_triggers(read_triggers(project).rows) | dict(in_controls)


def _bytes(project: Path) -> bytes:
    path = project / CONTROLS
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ControlsError(
            f"{CONTROLS} cannot be read ({reason}): create it, or make it readable"
        ) from error

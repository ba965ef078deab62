"""Shows what a check of the controls CSV has found."""

import os

from rich.console import Console
from rich.text import Text

from harness.controls.findings import Severity, render_findings
from harness.controls.triggers import EVENT_TRIGGERS
from harness.feed import CONTROLS, CheckedControls
from harness.show.words import count


def show_findings(console: Console, checked: CheckedControls) -> None:
    """Print every finding, then one line that sums them up."""
    colour = console.is_terminal and "NO_COLOR" not in os.environ
    for each in render_findings(checked.findings, CONTROLS.name, colour=colour):
        console.print(Text.from_ansi(each), soft_wrap=True)
    console.print(summary(checked), soft_wrap=True)


def summary(checked: CheckedControls) -> str:
    """Say in one line what the file holds and how much is wrong with it."""
    rows = checked.controls.rows
    jobs = {row.job_id for row in rows if row.job_id is not None}
    triggers = len({row.trigger_id for row in checked.triggers.rows})
    errors = sum(each.severity is Severity.ERROR for each in checked.findings)
    warnings = len(checked.findings) - errors
    found = ", ".join(
        ([count(errors, "error")] if errors else [])
        + ([count(warnings, "warning")] if warnings else [])
    )
    held = f"{CONTROLS}: {count(len(rows), 'row')}, {count(len(jobs), 'job')}"
    if triggers:
        held += f"; {EVENT_TRIGGERS}: {count(triggers, 'trigger')}"
    return f"{held}: {found}" if found else f"{held}: nothing is wrong"

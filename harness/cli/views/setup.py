"""Shows what ``init``, ``validate`` and ``maintain`` did."""

from typing import TYPE_CHECKING

from rich.console import Console

from harness.cli.views.terminal import Column, line, print_table
from harness.platform.format import count

if TYPE_CHECKING:
    from harness.context import Context
    from harness.controls.load import CheckedControls
import os

from rich.text import Text

from harness.controls.findings import Severity, render_findings
from harness.controls.load import CONTROLS, CheckedControls
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.tick.housekeeping import Kept


def overview_as_json(context: "Context", checked: "CheckedControls") -> dict[str, object]:
    """Return what there is, for scripts."""
    rows = checked.controls.rows
    return {
        "home": str(context.home.folder),
        "config": str(context.settings.file),
        "schema": context.schema,
        "rows": len(rows),
        "jobs": len({row.job_id for row in rows}),
        "upstreams": _upstreams(checked),
        "triggers": _triggers(checked),
        "warnings": [each.message for each in checked.warnings],
    }


def show_overview(console: Console, context: "Context", checked: "CheckedControls") -> None:
    """Print what there is in a few aligned lines."""
    rows = checked.controls.rows
    paused = sum(row.job_state.upper() == "PAUSED" for row in rows)
    jobs = len({row.job_id for row in rows})
    controls = ", ".join(
        [
            count(len(rows), "row"),
            count(jobs, "job"),
            count(_upstreams(checked), "upstream"),
            *([count(_triggers(checked), "trigger")] if _triggers(checked) else []),
            *([f"{count(paused, 'row')} PAUSED"] if paused else []),
        ]
    )
    reported = [
        ("state", f"{context.home.folder}, schema {context.schema}"),
        ("controls", controls),
        ("jobs", f"the {context.settings.jobs.target.value} Jobs API"),
        *(("warning", each.message) for each in checked.warnings),
        *([("next", "python -m harness tick")] if rows or checked.triggers.rows else []),
    ]
    console.print(line(("ready", "bold green")))
    columns = (Column(title=""), Column(title="", may_wrap=True))
    print_table(
        console, columns, [((name, "dim"), message) for name, message in reported], has_header=False
    )


def _triggers(checked: "CheckedControls") -> int:
    return len({row.trigger_id for row in checked.triggers.rows})


def _upstreams(checked: "CheckedControls") -> int:
    return len(
        {
            (
                row.source,
                row.sensor_id,
                row.sensor_read_type,
                row.upstream_key,
                row.preprocess_query,
            )
            for row in checked.controls.rows
        }
    )


def show_findings(console: Console, checked: CheckedControls) -> None:
    """Print every finding, then one line that sums them up."""
    colour = console.is_terminal and "NO_COLOR" not in os.environ
    for each in render_findings(checked.findings, str(CONTROLS), colour=colour):
        console.print(Text.from_ansi(each), soft_wrap=True)
    console.print(summary(checked), soft_wrap=True)


def summary(checked: CheckedControls) -> str:
    """Report in one line what the file holds and how much is wrong with it."""
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


def maintenance_as_json(kept: Kept) -> dict[str, object]:
    """Return what was done as one object for scripts."""
    return {
        "tables": [
            {
                "table": each.name,
                "files_before": each.files_before,
                "files_after": each.files_after,
                "removed": each.removed,
                "failure": each.failure,
            }
            for each in kept.tables
        ],
        "folded": kept.has_compacted,
        "removed_files": kept.removed_files,
    }


def show_maintenance(console: Console, kept: Kept) -> None:
    """Print the number of files of each table, before and after."""
    columns = (
        Column(title="table"),
        Column(title="files", is_number=True),
        Column(title="now", is_number=True),
        Column(title="removed", is_number=True),
        Column(title="", may_wrap=True),
    )
    rows = [
        (
            each.name,
            f"{each.files_before:,}",
            f"{each.files_after:,}",
            f"{each.removed:,}" if each.removed else "-",
            (each.failure or "", "red"),
        )
        for each in kept.tables
    ]
    before = sum(each.files_before for each in kept.tables)
    after = sum(each.files_after for each in kept.tables)
    message = f"{count(len(rows), 'table')}: {count(after, 'file')} instead of {before:,}"
    console.print(line((message, "bold")))
    print_table(console, columns, rows)
    if kept.has_compacted:
        console.print(line("the ledgers are compacted into the state tables"))
    if kept.removed_files:
        console.print(line(f"{count(kept.removed_files, 'old file')} of runs removed"))

"""Shows what an import has written, and what it has not carried over."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from harness.cli.views.terminal import Column, line, print_table
from harness.controls.migration.plan import Plan
from harness.platform.format import count


def plan_as_json(result: Plan, files: Sequence[Path]) -> dict[str, object]:
    """Return what was written and what was not, for scripts."""
    return {
        "files": [str(each) for each in files],
        "rows": len(result.rows),
        "imported_sensors": len(result.sensors),
        "remarks": [
            {
                "place": each.place,
                "reason": each.reason,
                "remedy": each.remedy,
                "is_left_out": each.is_left_out,
            }
            for each in result.remarks
        ],
    }


def show_plan(console: Console, result: Plan, files: Sequence[Path]) -> None:
    """Print it: the remarks first, since the last lines are what a person sees."""
    if result.remarks:
        console.print(line(("not carried over as it was", "bold")))
        columns = (
            Column(title="where", may_wrap=True),
            Column(title="what", may_wrap=True),
            Column(title="what to do", may_wrap=True),
        )
        rows = [(each.place, each.reason, each.remedy) for each in result.remarks]
        print_table(console, columns, rows)
        console.print()
    if not files:
        console.print(line(("nothing to import", "bold yellow"), ("  no file was written", "")))
        return
    left_out = sum(each.is_left_out for each in result.remarks)
    jobs = count(len({row[6] for row in result.rows}), "job")
    words = f"{count(len(result.rows), 'row')} of {jobs}"
    if left_out:
        words += f", {left_out} left out"
    console.print(line(("imported", "bold green"), (f"  {words}", "")))
    for each in files:
        console.print(line((f"  {each}", "dim")))
    console.print(line(("next: ", "bold"), ("python -m harness validate, then init and tick", "")))

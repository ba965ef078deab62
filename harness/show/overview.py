"""Shows what `init` has made ready."""

from typing import TYPE_CHECKING

from rich.console import Console

from harness.show.terminal import Column, line, print_table
from harness.show.words import count

if TYPE_CHECKING:
    from harness.context import Context
    from harness.feed import CheckedControls


def as_json(context: "Context", checked: "CheckedControls") -> dict[str, object]:
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


def show(console: Console, context: "Context", checked: "CheckedControls") -> None:
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
    told = [
        ("state", f"{context.home.folder}, schema {context.schema}"),
        ("controls", controls),
        ("jobs", f"the {context.settings.jobs.target.value} Jobs API"),
        *(("warning", each.message) for each in checked.warnings),
        ("next", "python -m harness tick"),
    ]
    console.print(line(("ready", "bold green")))
    columns = (Column(title=""), Column(title="", may_wrap=True))
    print_table(console, columns, [((name, "dim"), said) for name, said in told], has_header=False)


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

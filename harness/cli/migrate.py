"""Takes over what started jobs before: ``import``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import AS_JSON, print_json, reading
from harness.errors import ConfigurationError

if TYPE_CHECKING:
    from harness.context import Context
    from harness.controls.migration.plan import Plan

SOURCE = typer.Argument(
    metavar="TABLE", help="A control table: a CSV export, the path of a Delta table, or its name."
)
TRIGGERS = typer.Option(
    "--triggers", help="Read the table-update and file-arrival triggers of the workspace's jobs."
)
UNPAUSED = typer.Option(
    "--unpaused", help="With --triggers: write UNPAUSED for triggers that are paused by now."
)
FORCE = typer.Option("--force", help="Overwrite seeds that have rows.")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(name="import")(import_)


def import_(
    source: Annotated[str | None, SOURCE] = None,
    *,
    triggers: Annotated[bool, TRIGGERS] = False,
    unpaused: Annotated[bool, UNPAUSED] = False,
    force: Annotated[bool, FORCE] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Write the controls CSV from what started jobs before.

    That is a control table of the original sensor, or the triggers of the workspace's jobs. What is
    not carried over is listed, with what to do. seeds/imported_sensors.csv keeps how far
    each job had come: nothing that was processed starts a job again, and what waits starts it once.

    Examples:
        python -m harness import export/heartbeat_sensor_control_table.csv

        python -m harness import my_product.heartbeat_sensor_control_table

        python -m harness import --triggers --unpaused --force
    """
    from harness.cli.views.migrate import plan_as_json, show_plan
    from harness.cli.views.terminal import answers
    from harness.controls.migration.plan import write

    if (source is None) is not triggers:
        raise ConfigurationError("Name a control table, or --triggers: one of the two is read")
    with reading() as context:
        may_read = context.settings.sensing.queries_may_read
        if source is None:
            result = _of_triggers(context, may_read, is_unpaused=unpaused)
        else:
            result = _of_table(context, source, may_read)
        files = write(context.settings.project, result, force=force)
    if as_json:
        print_json(plan_as_json(result, files))
    else:
        show_plan(answers(), result, files)


def _of_triggers(context: "Context", may_read: Sequence[str], *, is_unpaused: bool) -> "Plan":
    from dataclasses import replace

    from harness.controls.migration.job_triggers import triggers_of
    from harness.controls.migration.plan import plan

    found = triggers_of(context.jobs, is_unpaused=is_unpaused)
    result = plan(found.candidates, may_read=may_read)
    return replace(result, remarks=(*found.remarks, *result.remarks))


def _of_table(context: "Context", source: str, may_read: Sequence[str]) -> "Plan":
    from dataclasses import replace

    from harness.config.sources import FirstSight
    from harness.controls.migration.original import candidates_of, records_of_csv, records_of_table
    from harness.controls.migration.plan import plan
    from harness.controls.migration.table import rows_of_table

    def discards_existing(sensor_source: str, sensor_id: str) -> bool:
        sight = context.settings.sensing.first_sight_of(sensor_source, sensor_id)
        return sight is FirstSight.BASELINE

    if Path(source).is_file():
        records = records_of_csv(Path(source))
    else:
        records = records_of_table(rows_of_table(source, lambda: context.sql), source)
    candidates, remarks = candidates_of(records, discards_existing=discards_existing)
    is_blind = any(each.is_left_out for each in remarks)
    result = plan(candidates, may_read=may_read, is_blind=is_blind)
    return replace(result, remarks=(*remarks, *result.remarks))

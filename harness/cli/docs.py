"""Writes the documentation of the decision as one page: ``docs``."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import print_line, reading
from harness.errors import StateError

if TYPE_CHECKING:
    from harness.context import Context

OUTPUT = typer.Option(
    "--output", metavar="FILE", help="Where the page goes; target/heartbeat.html if left out."
)
WITHOUT_TYPES = typer.Option(
    "--without-types", help="Read no table: quicker, works before `init`, and shows no types."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(docs)


def docs(
    output: Annotated[Path | None, OUTPUT] = None,
    without_types: Annotated[bool, WITHOUT_TYPES] = False,
) -> None:
    """Write dbt's documentation as one HTML page.

    It has the models, their columns and lineage, and the jobs of the CSV, and needs no server. It
    reads the tables, so `init` has to have built them; nothing is started.

    Examples:
        python -m harness docs

        python -m harness docs --without-types --output heartbeat.html
    """
    from harness.cli.views.progress import Progress
    from harness.cli.views.terminal import remarks

    with reading() as context:
        place = (output or context.settings.project / "target" / "heartbeat.html").absolute()
        with Progress(remarks(), context.stop.activity):
            page = _documented(context, with_types=not without_types)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, place)
        except OSError as error:
            raise StateError(
                f"{place} cannot be written ({error.strerror or error}): name another --output"
            ) from error
    print_line(place.as_uri())


def _documented(context: "Context", *, with_types: bool) -> Path:
    from harness.config.model import JobsTarget
    from harness.config.project import dbt_project_of
    from harness.controls.load import CONTROLS
    from harness.controls.parse import read_controls
    from harness.inspect.exposures import exposures, link_project
    from harness.platform.format import count

    project, folder = context.settings.project, context.home.folder / "docs"
    rows = read_controls(project / CONTROLS).rows
    is_local = context.settings.jobs.target is JobsTarget.LOCAL
    host = None if is_local else context.environment.get("DATABRICKS_HOST")
    jobs = count(len({row.job_id for row in rows}), "job")
    context.stop.activity.begin(f"documenting the models and {jobs}")
    copied = folder / "project"
    link_project(dbt_project_of(project), project, copied, exposures(rows, host))
    return context.dbt_of_docs(copied, folder).document(with_types=with_types)

"""Sets a state directory up, and checks the configuration: ``init`` and ``validate``."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import AS_JSON, BEGAN, leave, print_json, reading, writing
from harness.errors import ExitCode

if TYPE_CHECKING:
    from harness.context import Context
    from harness.controls.load import CheckedControls

REBUILD = typer.Option("--rebuild", help="Build every table and view again.")
YES = typer.Option("--yes", help="Accept the removal of many control rows.")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(init)
    app.command()(validate)


def init(
    yes: Annotated[bool, YES] = False,
    rebuild: Annotated[bool, REBUILD] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Build every table and load the controls CSV.

    Safe to repeat: ledgers keep their rows, and nothing is started. What is built and loaded
    already stays as it is.

    Examples:
        python -m harness init

        python -m harness init --rebuild

        HEARTBEAT_HOME=/data/heartbeat python -m harness init
    """
    from harness.cli.views import setup
    from harness.cli.views.progress import Progress
    from harness.cli.views.terminal import answers, remarks

    with writing("init") as context:
        with Progress(remarks(), context.stop.activity, is_shown=not as_json, began=BEGAN):
            checked = _initialise(context, allow_mass_removal=yes, rebuild=rebuild)
        if as_json:
            print_json(setup.overview_as_json(context, checked))
        else:
            setup.show_overview(answers(), context, checked)


def _initialise(
    context: "Context", *, allow_mass_removal: bool, rebuild: bool
) -> "CheckedControls":
    from harness.controls.load import check_controls, record_changes, stop_on_errors
    from harness.sense.backoff import end_back_off
    from harness.store.public_tables import PUBLIC_TABLES
    from harness.store.rows import Tick
    from harness.tick.checkpoint import newest_tick_number
    from harness.tick.install import Installation, desk_of, published_of

    checked = check_controls(
        context.settings.project,
        context.store,
        allow_mass_removal=allow_mass_removal,
        may_read=context.settings.sensing.queries_may_read,
    )
    stop_on_errors(checked)
    now = context.clock.now()
    installation = Installation(context)
    installation.check()
    # Each is reported; the tables show the controls again below.
    published_of(context).edits(now)
    is_news = installation.ensure(now, allow_mass_removal=allow_mass_removal, rebuild=rebuild)
    if not is_news:
        installation.link()
        desk_of(context).accept(now, allow_mass_removal=allow_mass_removal)
        is_news = installation.load_seeds(now)
    if is_news:
        # Recorded here, an intended removal needs no second confirmation in the next tick.
        tick = Tick(number=newest_tick_number(context) + 1, at=now)
        record_changes(context.rows, context.store, tick)
        context.show(PUBLIC_TABLES)
    # After init every upstream is probed at once, to show whether all of them can be read.
    end_back_off(context.home.back_off)
    return checked


def validate(
    yes: Annotated[bool, YES] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Check heartbeat.yml and the controls CSV.

    Everything that is wrong is reported at once. Nothing is written. Errors end with code 2;
    warnings do not.

    Examples:
        python -m harness validate

        python -m harness validate --json | jq '.findings[].message'
    """
    from harness.cli.views.setup import show_findings
    from harness.cli.views.terminal import answers
    from harness.controls.catalog import check_tables
    from harness.controls.findings import findings_as_json, has_errors
    from harness.controls.load import check_controls
    from harness.sense.catalog_tables import SqlCatalogTables

    with reading() as context:
        checked = check_controls(
            context.settings.project,
            context.store,
            allow_mass_removal=yes,
            may_read=context.settings.sensing.queries_may_read,
            configured=context.settings,
        )
        if context.settings.catalog is not None:
            rows, tables = checked.controls.rows, SqlCatalogTables(context.sql)
            more = check_tables(rows, tables, context.settings.catalog)
            checked = replace(checked, findings=(*checked.findings, *more))
    is_wrong = has_errors(checked.findings)
    if as_json:
        print_json({"ok": not is_wrong, "findings": findings_as_json(checked.findings)})
    else:
        show_findings(answers(), checked)
    leave(ExitCode.USAGE if is_wrong else ExitCode.DONE)

"""Looks after the batches of tables that are materialized as refresh, in any dbt project."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.commands.surroundings import AS_JSON, print_json, reading, say, writing
from harness.errors import ConfigurationError


class Operation(StrEnum):
    """What can be done with the batches of a model; dbt has an operation of that name for each."""

    STATUS = "status"
    UNLOAD = "unload"
    RELOAD = "reload"
    RESET = "reset"
    RECOVER = "recover"


#: The operations that want to be told which batches.
_OF_BATCHES = frozenset({Operation.UNLOAD, Operation.RELOAD})


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(refresh)


def refresh(
    operation: Annotated[Operation, typer.Argument(help="What to do.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model, by its name.")],
    *,
    batch: Annotated[
        list[int] | None,
        typer.Option("--batch", help="A batch to unload or reload, by its number."),
    ] = None,
    without: Annotated[
        list[int] | None, typer.Option("--without", help="A batch that a reset is to leave out.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", help="The folder of the dbt project; this one if not given."),
    ] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Show, take out or take anew the batches of a table that is materialized as refresh.

    Examples:
        python -m harness refresh status customers --project shop

        python -m harness refresh unload customers --batch 7 --dry-run

        python -m harness refresh reset customers --without 7
    """
    arguments = _arguments(operation, model, batch or [], without or [], is_dry=dry_run)
    if project is not None and not (project / "dbt_project.yml").is_file():
        raise ConfigurationError(f"--project {project}: there is no dbt_project.yml in this folder")
    name = f"heartbeat.refresh_{operation}"
    if project is None:
        with writing("refresh") as context:
            said = context.dbt.operate(name, arguments)
    else:
        # Its tables are none of ours: there is no lock to take.
        with reading() as context:
            said = context.dbt_of(project.resolve()).operate(name, arguments)
    if as_json:
        print_json({"operation": str(operation), "model": model, "said": said})
        return
    for line in said:
        say(line)


def _arguments(
    operation: Operation, model: str, batches: list[int], without: list[int], *, is_dry: bool
) -> dict[str, object]:
    """Return the arguments of dbt's operation.

    Raises:
        ConfigurationError: An option is missing, or has no meaning here.
    """
    arguments: dict[str, object] = {"model": model}
    if batches and operation not in _OF_BATCHES:
        raise ConfigurationError(f"--batch means nothing to {operation}; unload and reload have it")
    if operation in _OF_BATCHES and not batches:
        raise ConfigurationError(f"{operation} needs --batch, once for each batch")
    if without and operation is not Operation.RESET:
        raise ConfigurationError(f"--without means nothing to {operation}; reset has it")
    if is_dry and operation is Operation.STATUS:
        raise ConfigurationError("--dry-run means nothing to status, which changes nothing")
    if batches:
        arguments["input_ids"] = batches
    if without:
        arguments["without"] = without
    if is_dry:
        arguments["dry_run"] = True
    return arguments

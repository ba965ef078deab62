"""Manages the batches of refresh models, in any dbt project."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common import AS_JSON, print_json, print_line, reading, writing
from harness.errors import ConfigurationError


class Operation(StrEnum):
    """What can be done with the batches of a model; dbt has an operation of that name for each."""

    STATUS = "status"
    UNLOAD = "unload"
    RELOAD = "reload"
    RESET = "reset"
    RECOVER = "recover"
    VACUUM = "vacuum"


@dataclass(frozen=True, slots=True)
class _Option:
    """An option that only some operations have, by the name of its argument in dbt."""

    flag: str
    operations: frozenset[Operation]
    is_needed: bool = True
    how: str = ""


_OPTIONS: Mapping[str, _Option] = {
    "input_ids": _Option(
        "--batch",
        frozenset({Operation.UNLOAD, Operation.RELOAD}),
        how=", once for each batch",
    ),
    "without": _Option("--without", frozenset({Operation.RESET}), is_needed=False),
    "keep_days": _Option("--keep-days", frozenset({Operation.VACUUM}), how=", a number of days"),
}


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
    keep_days: Annotated[
        int | None,
        typer.Option("--keep-days", min=0, help="How long a vacuum leaves batches in the archive."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be done.")
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", help="The folder of the dbt project; this one if not given."),
    ] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Show, unload, reload or reset batches of a refresh model.

    Examples:
        python -m harness refresh status customers --project shop

        python -m harness refresh unload customers --batch 7 --dry-run

        python -m harness refresh reset customers --without 7

        python -m harness refresh vacuum customers --keep-days 400
    """
    given = {"input_ids": batch, "without": without, "keep_days": keep_days}
    arguments = _arguments(operation, model, given, is_dry=dry_run)
    if project is not None and not (project / "dbt_project.yml").is_file():
        raise ConfigurationError(f"--project {project}: there is no dbt_project.yml in this folder")
    name = f"heartbeat.refresh_{operation}"
    if project is None:
        with writing("refresh") as context:
            message = context.dbt.operate(name, arguments)
    else:
        # Its tables are none of ours: there is no lock to take.
        with reading() as context:
            message = context.dbt_of(project.resolve()).operate(name, arguments)
    if as_json:
        print_json({"operation": str(operation), "model": model, "said": message})
        return
    for line in message:
        print_line(line)


def _arguments(
    operation: Operation, model: str, given: Mapping[str, object], *, is_dry: bool
) -> dict[str, object]:
    """Return the arguments of dbt's operation.

    Raises:
        ConfigurationError: An option is missing, or has no meaning here.
    """
    arguments: dict[str, object] = {"model": model}
    for name, value in given.items():
        option = _OPTIONS[name]
        # No batch at all is an empty list, and no day at all is a number of days.
        is_given = value is not None and value != []
        if is_given and operation not in option.operations:
            those = " and ".join(sorted(option.operations))
            raise ConfigurationError(
                f"{option.flag} means nothing to {operation}, but to {those}: leave it out"
            )
        if not is_given and option.is_needed and operation in option.operations:
            raise ConfigurationError(
                f"{operation} needs {option.flag}{option.how}: add it to the command"
            )
        if is_given:
            arguments[name] = value
    if is_dry and operation is Operation.STATUS:
        raise ConfigurationError(
            "--dry-run means nothing to status, which changes nothing: leave it out"
        )
    if is_dry:
        arguments["dry_run"] = True
    return arguments

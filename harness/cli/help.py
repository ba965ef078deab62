"""Arranges the help: commands in groups by use, options with plain words for types.

The order of the groups, and of the commands in each, is the order on the screen.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import typer

from harness.cli.common import as_called

#: What a command is for, and the commands in the order in which a person meets them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Everyday": (
        "new",
        "import",
        "init",
        "validate",
        "tick",
        "run",
        "status",
        "explain",
        "jobs",
        "upstreams",
        "runs",
        "logs",
        "events",
        "report",
    ),
    "When something broke": ("doctor", "retry", "release", "try-again", "complete"),
    "For jobs": ("sense", "processed", "emit", "refresh"),
    "Keep": ("maintain", "alarms", "engine", "jobs-api", "setup"),
    "Learn": ("demo", "docs"),
}
_PLACES = {name: place for place, name in enumerate(sum(GROUPS.values(), ()))}


def group_commands(app: typer.Typer) -> None:
    """Put every registered command into its group, and the groups in their order."""
    groups = {name: title for title, names in GROUPS.items() for name in names}
    for each in app.registered_commands:
        each.rich_help_panel = groups.get(_name(each))
    app.registered_commands.sort(key=lambda each: _PLACES.get(_name(each), len(_PLACES)))


def _name(command: "typer.models.CommandInfo") -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))


def command_line(app: typer.Typer) -> "typer.core.TyperGroup":
    """Return the command line of these commands, with its help in the form that people read."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    top = typer.Context(group, **group.context_settings)
    for command in (group, *group.commands.values()):
        command.help = as_called(_reflowed(command.help or ""))
        of_help = command.get_help_option(typer.Context(command, parent=top))
        for parameter in (*command.params, of_help):
            _shorten_type(parameter)
    return group


def _shorten_type(parameter: object) -> None:
    """Show a word for the value, not its type in Python; a flag has no value.

    What typer does not look up any more has no effect: the help is then as typer has it.
    """
    match parameter:
        case typer.core.TyperArgument():
            is_choice = parameter.type_descriptor.is_choice
            word = parameter.display_type(typer.Context(typer.core.TyperCommand(None)))
            vars(parameter)["display_type_rich"] = lambda ctx: word.strip("<>") * is_choice
        case typer.core.TyperOption():
            if parameter.metavar is None:
                parameter.metavar = "" if parameter.is_flag else _word(parameter)
            vars(parameter)["_get_number_range_help_str"] = lambda: None
        case _:
            pass


def _word(option: typer.core.TyperOption) -> str:
    annotation = option.type_descriptor.annotation
    kinds = {int: "NUMBER", float: "NUMBER", Path: "PATH"}
    element = get_args(annotation)[0] if get_args(annotation) else annotation
    return kinds.get(element, "TEXT")


def _reflowed(text: str) -> str:
    """Let the screen break the lines of each paragraph, and list the examples line by line.

    They are not indented: typer would take the indentation from some of them.
    """
    prose, heading, examples = text.partition("Examples:\n")
    paragraphs = [" ".join(each.split()) for each in prose.strip().split("\n\n")]
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    return "\n\n".join([*paragraphs, *(["\n".join([heading.strip(), *lines])] if lines else ())])

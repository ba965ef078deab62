"""Tries the channels of the alarms."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import AS_JSON, leave, print_json, print_line, reading
from harness.errors import ConfigurationError, ExitCode

if TYPE_CHECKING:
    from harness.observe.notify import Trial


class Operation(StrEnum):
    """What can be done with alarms."""

    TEST = "test"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(alarms)


def alarms(
    operation: Annotated[Operation, typer.Argument(help="What to do.")],
    channel: Annotated[
        list[str] | None,
        typer.Option("--channel", metavar="NAME", help="Only this channel; repeatable."),
    ] = None,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Send a test message to the channels of `alarms.channels`.

    Ends with 1 when a channel did not accept it. Quiet hours do not count.

    Examples:
        python -m harness alarms test

        python -m harness alarms test --channel on-call --json
    """
    from harness.config.workspace_secrets import secrets_for
    from harness.observe.notify import try_channels
    from harness.observe.watch import installation_name

    match operation:
        case Operation.TEST:
            with reading(may_quarantine=True) as context:
                settings = context.settings.alarms
                wanted = channel or list(settings.channels)
                _require_known(wanted, list(settings.channels))
                secrets = secrets_for(context.settings, context.environment)
                trials = try_channels(settings, installation_name(context), secrets, wanted)
    _show(trials, is_json=as_json)
    is_good = all(each.reason is None for each in trials)
    leave(ExitCode.DONE if is_good else ExitCode.FAILED)


def _require_known(wanted: list[str], known: list[str]) -> None:
    if not known:
        raise ConfigurationError(
            "heartbeat.yml has no channel: write alarms.channels.NAME.url, a reference to the"
            " channel's address"
        )
    for name in wanted:
        if name not in known:
            raise ConfigurationError(
                f"There is no channel '{name}'; heartbeat.yml has {', '.join(known)}"
            )


def _show(trials: "list[Trial]", *, is_json: bool) -> None:
    if is_json:
        content = [{"channel": each.channel, "reason": each.reason} for each in trials]
        print_json({"ok": all(each.reason is None for each in trials), "channels": content})
        return
    for each in trials:
        words = "the message was sent" if each.reason is None else f"not sent: {each.reason}"
        print_line(f"channel {each.channel}: {words}", err=each.reason is not None)

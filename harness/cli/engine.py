"""Shows, stops and restarts the engine: the Spark that commands of a state directory share."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    leave,
    print_json,
    print_line,
    reading,
    real_clock,
)
from harness.errors import ConfigurationError, ExitCode, LockedError, StateError

if TYPE_CHECKING:
    from harness.context import Context
    from harness.platform.spark.engine import EngineRecord


class Operation(StrEnum):
    """What can be done with an engine."""

    STATUS = "status"
    STOP = "stop"
    RESTART = "restart"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(engine)


def engine(
    operation: Annotated[Operation, typer.Argument(help="What to do.")],
    force: Annotated[
        bool, typer.Option("--force", help="Stop it even while another process uses it.")
    ] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Show, stop or restart the Spark that commands share.

    `status` ends with 4 when no engine runs, and with 1 when the engine does not answer. `stop` and
    `restart` end with 3 while another process uses the engine, unless --force is given. `restart`
    starts an engine where none runs, too.

    Examples:
        python -m harness engine status

        python -m harness engine stop

        python -m harness engine restart --force
    """
    if force and operation is Operation.STATUS:
        raise ConfigurationError(
            "--force means nothing to status, which changes nothing: leave it out"
        )
    with reading(may_quarantine=True) as context:
        match operation:
            case Operation.STATUS:
                _show(context, is_json=as_json)
            case Operation.STOP:
                _report_stopped(_stop(context.home.folder, is_forced=force), is_json=as_json)
            case Operation.RESTART:
                _restart(context, is_forced=force)
                _show(context, is_json=as_json)


def _show(context: "Context", *, is_json: bool) -> None:
    from harness.cli.views import engine as shown
    from harness.cli.views.terminal import answers
    from harness.inspect.engine import Condition, read_engine

    keys = context.settings.engine
    state = read_engine(context.home.folder, context.settings)
    if is_json:
        print_json(shown.as_json(state, keys))
    else:
        shown.show(answers(), state, keys, context.clock.now())
    match state.condition:
        case Condition.RUNNING:
            leave(ExitCode.DONE)
        case Condition.FROZEN:
            leave(ExitCode.FAILED)
        case Condition.ENDED | Condition.NONE:
            leave(ExitCode.NOTHING_NEW)


def _stop(home: Path, *, is_forced: bool) -> "EngineRecord | None":
    """End the engine and return what was recorded of it, or nothing if none was running.

    Raises:
        LockedError: Another process uses it.
        StateError: It does not end.
    """
    from harness.platform.spark.engine import end, engine_folder

    folder = engine_folder(home)
    if not folder.path.is_dir():
        return None
    with folder.starting():
        record = folder.record()
        if record is not None and record.is_alive and folder.has_users and not is_forced:
            raise LockedError(
                f"Another process uses the engine (pid {record.server}): wait for it, or end the"
                " engine all the same with --force"
            )
        was_there = end(folder, real_clock())
    if record is None or not was_there:
        return None
    if record.is_alive:
        raise StateError(
            f"The engine does not end: end the processes {record.owner} and {record.server} as the"
            " user who has started them"
        )
    return record


def _report_stopped(stopped: "EngineRecord | None", *, is_json: bool) -> None:
    if is_json:
        owner, server = (stopped.owner, stopped.server) if stopped else (None, None)
        print_json({"stopped": stopped is not None, "owner": owner, "server": server})
    elif stopped is None:
        print_line("no engine was running")
    else:
        print_line(f"the engine has stopped (server pid {stopped.server}, owner {stopped.owner})")


def _restart(context: "Context", *, is_forced: bool) -> None:
    from harness.config.load import LOCAL_TARGET
    from harness.config.model import EngineMode
    from harness.platform.spark.engine import REMOTE

    keys = context.settings.engine
    if context.target != LOCAL_TARGET:
        raise ConfigurationError(f"HEARTBEAT_TARGET is {context.target}: only local has an engine")
    if context.environment.get(REMOTE):
        raise ConfigurationError(
            f"{REMOTE} is set, so that commands use that server and start no engine: unset it"
        )
    if keys.mode is EngineMode.INLINE:
        raise ConfigurationError(
            f"{context.settings.file.name}: engine.mode is inline, so that an engine ends with its "
            "command and none can be left running: set it to shared"
        )
    _stop(context.home.folder, is_forced=is_forced)
    try:
        # A session shows that the engine can be used, beyond that it runs.
        _ = context.session
    finally:
        context.close()

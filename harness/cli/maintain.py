"""Commands for maintenance: ``maintain``, ``jobs-api`` and the ``demo``."""

import importlib
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    BEGAN,
    interruptible,
    leave,
    print_json,
    print_line,
    set_up_log,
    settings_of_project,
    stoppable,
    writing,
)
from harness.errors import ConfigurationError, ExitCode

_NOT_RUNNING = "no local Jobs API is running; a tick starts it when it needs it"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(maintain)
    app.command(name="jobs-api")(jobs_api)
    app.command()(demo)


def maintain(as_json: Annotated[bool, AS_JSON] = False) -> None:
    """Compact the tables, and remove files that are not read.

    `run` compacts automatically; with ticks from a scheduler, run this once a day.

    Examples:
        python -m harness maintain
    """
    from harness.cli.views import setup
    from harness.cli.views.progress import Progress
    from harness.cli.views.terminal import answers, remarks
    from harness.tick.housekeeping import maintain as keep

    with writing("maintain") as context:
        with Progress(remarks(), context.stop.activity, is_shown=not as_json, began=BEGAN):
            kept = keep(context)
        if as_json:
            print_json(setup.maintenance_as_json(kept))
        else:
            setup.show_maintenance(answers(), kept)
    leave(ExitCode.FAILED if kept.failures else ExitCode.DONE)


def jobs_api(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = 0,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Serve in this terminal until Ctrl-C.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop it, and the runs that go on.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Print where it listens.")] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Serve, stop or find the local Jobs API.

    A tick starts it when it is needed.

    Examples:
        python -m harness jobs-api

        python -m harness jobs-api --foreground --port 8123

        python -m harness jobs-api --stop
    """
    if stop and status:
        raise ConfigurationError("--stop and --status cannot be combined: give one of them")
    with interruptible("stopped"):
        settings = settings_of_project()
        if stop:
            _stop_jobs_api(settings.home, is_json=as_json)
        elif status:
            _find_jobs_api(settings.home, is_json=as_json)
        elif foreground or port:
            set_up_log(settings, is_writer=False)
            _serve_jobs_api(settings.home, port)
        else:
            _start_jobs_api(settings.home, settings.jobs.local.idle_minutes, is_json=as_json)


def demo(
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENTS]", help="Passed on to the demo.")
    ] = None,
) -> None:
    """Run a small real pipeline over the New York flights data.

    It has a folder of its own.

    Examples:
        python -m harness demo
    """
    try:
        module = importlib.import_module("examples.flights.demo")
    except ModuleNotFoundError as error:
        if error.name not in {"examples", "examples.flights", "examples.flights.demo"}:
            raise
        raise ConfigurationError(
            "The demo is not part of this installation: run `make demo` in a checkout"
        ) from error
    with stoppable() as stop:
        code = ExitCode(int(module.run_demo(arguments or [], stop=stop) or 0))
    leave(code)


def _stop_jobs_api(home: Path, *, is_json: bool) -> None:
    from harness.platform.jobs_emulator.background import stop_running

    was_there = stop_running(home)
    if is_json:
        print_json({"stopped": was_there})
    else:
        message = "the local Jobs API has stopped" if was_there else "no local Jobs API was running"
        print_line(message)


def _find_jobs_api(home: Path, *, is_json: bool) -> None:
    from harness.platform.jobs_emulator.background import is_answering
    from harness.platform.jobs_emulator.service import endpoint_of

    endpoint = endpoint_of(home)
    is_there = endpoint is not None and is_answering(endpoint)
    host = endpoint.host if endpoint is not None and is_there else None
    if is_json:
        print_json({"running": is_there, "host": host})
    else:
        print_line(f"the local Jobs API listens at {host}" if host else _NOT_RUNNING)


def _start_jobs_api(home: Path, idle_minutes: float, *, is_json: bool) -> None:
    from harness.platform.jobs_emulator.background import ensure_running

    host = ensure_running(home, idle_minutes=idle_minutes).host
    if is_json:
        print_json({"running": True, "host": host})
    else:
        print_line(f"the local Jobs API listens at {host}; jobs-api --stop ends it")


def _serve_jobs_api(home: Path, port: int) -> None:
    from harness.platform.jobs_emulator.service import ServiceSettings, serve

    print_line("serving until Ctrl-C", err=True)
    serve(ServiceSettings(home=home, port=port, idle_minutes=None))

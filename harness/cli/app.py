"""The command line: one function per subcommand, over the same functions that tests call."""

import contextlib
import logging
import os
import sys
import traceback
from typing import Annotated, Any

import typer

from harness import __version__
from harness.cli import (
    alarms,
    consume,
    docs,
    engine,
    events,
    init,
    inspect,
    listings,
    maintain,
    migrate,
    operate,
    project,
    refresh,
    report,
    tick,
)
from harness.cli.common import MODULE, SCRIPT, WATCHED_EVERY, as_called
from harness.cli.help import command_line, group_commands
from harness.errors import ExitCode, HeartbeatError, exit_code_of
from harness.platform.text import first_line

DEBUG = "HEARTBEAT_DEBUG"

app = typer.Typer(
    name=MODULE,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"{SCRIPT} {__version__}")
        raise typer.Exit


def _instead_of(variable: str, description: str) -> Any:
    """Return an option that stands for an environment variable, which serverless compute lacks."""
    name = "--" + variable.removeprefix("HEARTBEAT_").lower()
    return typer.Option(name, metavar="TEXT", help=f"{description} ({variable}).")


@app.callback()
def options(  # noqa: PLR0913 (each is an option)
    *,
    project_: Annotated[
        str | None, _instead_of("HEARTBEAT_PROJECT", "The folder with heartbeat.yml and seeds/")
    ] = None,
    config: Annotated[
        str | None, _instead_of("HEARTBEAT_CONFIG", "The configuration, if not heartbeat.yml")
    ] = None,
    target: Annotated[
        str | None, _instead_of("HEARTBEAT_TARGET", "Where it runs: local or databricks")
    ] = None,
    catalog: Annotated[
        str | None, _instead_of("HEARTBEAT_CATALOG", "The catalog of the tables in a workspace")
    ] = None,
    schema: Annotated[str | None, _instead_of("HEARTBEAT_SCHEMA", "Their schema")] = None,
    warehouse: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Path or id of the SQL warehouse of a workspace (DATABRICKS_HTTP_PATH).",
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG, help="Show the stack trace of an error.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Is there new data, and which jobs may run because of it?

    Exit codes: 0 done, 1 something failed and is recorded, 2 usage or configuration, 3 another
    process holds the lock, 4 there is nothing (`sense`, `events`, `logs`, `engine status`).
    """
    given = {
        "HEARTBEAT_PROJECT": project_,
        "HEARTBEAT_CONFIG": config,
        "HEARTBEAT_TARGET": target,
        "HEARTBEAT_CATALOG": catalog,
        "HEARTBEAT_SCHEMA": schema,
        "DATABRICKS_HTTP_PATH": warehouse,
        DEBUG: "1" if debug else None,
    }
    # dbt's profile reads them, too.
    os.environ.update({name: value for name, value in given.items() if value})


_MODULES = (
    project,
    migrate,
    init,
    tick,
    inspect,
    listings,
    alarms,
    report,
    docs,
    operate,
    consume,
    events,
    refresh,
    engine,
    maintain,
)
for module in _MODULES:
    module.register(app)
group_commands(app)


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    try:
        command_line(app)(_with_options_first(arguments), prog_name=as_called(MODULE))
    except SystemExit as stop:
        return _code_of(stop)
    except HeartbeatError as error:
        return _exit_with(str(error), error, exit_code_of(error))
    except BrokenPipeError:
        return _without_reader()
    except Exception as error:
        # For the file only: the console gets the sentence below.
        logging.getLogger(__name__).info("unexpected error", exc_info=error)
        kind = type(error).__name__
        reason = first_line(error, "no message")
        message = f"Unexpected error ({kind}: {reason}); --debug shows the stack trace"
        return _exit_with(message, error, ExitCode.FAILED)
    return int(ExitCode.DONE)


def _with_options_first(arguments: list[str]) -> list[str]:
    """Let ``--debug`` stand after the subcommand, too, and ``--watch`` without its value."""
    rest = [each for each in arguments if each != "--debug"]
    for place, each in enumerate(rest):
        has_value = place + 1 < len(rest) and not rest[place + 1].startswith("-")
        if each == "--watch" and not has_value:
            rest[place] = f"--watch={WATCHED_EVERY}"
    return ["--debug", *rest] if "--debug" in arguments else rest


def _code_of(stop: SystemExit) -> int:
    with contextlib.suppress(ValueError, TypeError):
        return int(stop.code or 0)
    return int(ExitCode.FAILED)


def _exit_with(sentence: str, error: BaseException, code: ExitCode) -> int:
    from harness.platform.masking import masked
    from harness.platform.text import escaped

    if os.environ.get(DEBUG):
        trace = masked("".join(traceback.format_exception(error)))
        typer.echo("\n".join(map(escaped, trace.split("\n"))), err=True)
    lines = [escaped(line) for line in masked(as_called(sentence)).splitlines()]
    mark = typer.style("error:", fg="red", bold=True) if _has_colour() else "error:"
    typer.echo("\n".join([f"{mark} {lines[0] if lines else ''}", *lines[1:]]), err=True)
    return int(code)


def _has_colour() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ


def _without_reader() -> int:
    """The reader closed the pipe, as ``| head`` does; exit quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(ExitCode.DONE)

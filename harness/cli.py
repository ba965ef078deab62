"""The command line: one function per subcommand, over the same functions that tests call."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from harness.errors import ExitCode, HeartbeatError

app = typer.Typer(
    name="harness",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Is there new data, and which jobs may run because of it?",
)

PROJECT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Run the command line and return the exit code."""
    try:
        app(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    except HeartbeatError as error:
        typer.echo(str(error), err=True)
        return int(error.exit_code)
    return int(ExitCode.DONE)


@app.command()
def tick(
    source: Annotated[list[str] | None, typer.Option()] = None,
    job: Annotated[list[int] | None, typer.Option()] = None,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Do one tick."""
    from harness.context import Context
    from harness.settings import load_settings
    from harness.tick import Engine, TickOptions

    context = Context(load_settings(PROJECT, os.environ), os.environ)
    try:
        report = Engine(context).tick(
            TickOptions(
                sources=frozenset(source or ()), jobs=frozenset(job or ()), allow_mass_removal=yes
            )
        )
    finally:
        context.close()
    r = report
    typer.echo(
        json.dumps(
            {
                "tick": r.tick.id,
                "sensed": r.sensed,
                "events": r.event_count,
                "started": [x.job_id for x in r.started],
                "settled": [
                    (x.job_id, x.run_status) for x in (r.settled.rows if r.settled else ())
                ],
                "seconds": r.seconds,
                "skipped": r.skipped,
            }
        )
    )


@app.command()
def init() -> None:
    """Init."""

"""Provides what every command needs: settings, log, lock and exit codes.

Nothing heavy is imported before a command needs it.
"""

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.errors import ConfigurationError, ExitCode, HeartbeatError
from harness.platform.clock import Clock, RealClock
from harness.platform.stopping import INTERRUPTED, Stop

if TYPE_CHECKING:
    from harness.config.load import Settings
    from harness.context import Context

log = logging.getLogger(__name__)

#: When the process began, as far as can be measured, for the time that a command took.
BEGAN = time.monotonic()

#: The program that the package installs, and the module, as which every text of the code has it.
SCRIPT, MODULE = "heartbeat", "python -m harness"
#: The format of the log, before that of heartbeat.yml.
LOG_FORMAT = "HEARTBEAT_LOG_FORMAT"


def job_names(incomplete: str) -> list[str]:
    """Return the jobs whose names or ids begin so, for the completion of a shell."""
    from harness.config.project import project_folder
    from harness.controls.load import every_job_name

    # A shell has no place for an error.
    with suppress(HeartbeatError):
        names = every_job_name(project_folder(os.environ))
        known = [name or str(job_id) for job_id, name in names.items()]
        if incomplete.isdigit():
            known += map(str, names)
        return sorted(each for each in set(known) if each.startswith(incomplete))
    return []


#: The job that a command is about.
JOB = typer.Argument(metavar="JOB", help="Id or name of the job.", autocompletion=job_names)
#: How often `status --watch` reads without a value.
WATCHED_EVERY = "2s"
AS_JSON = typer.Option("--json", help="Print one JSON object, for scripts.")


def settings_of_project(*, may_quarantine: bool = False) -> "Settings":
    """Read ``heartbeat.yml``.

    Args:
        may_quarantine: Leave wrong connections out instead of stopping.

    Raises:
        ConfigurationError: It has problems; all of them are named.
    """
    from harness.config.load import load_settings
    from harness.config.project import project_folder
    from harness.platform.masking import mask_environment

    mask_environment(os.environ)
    return load_settings(project_folder(os.environ), os.environ, may_quarantine=may_quarantine)


#: Commands that go on without a connection that is wrong; the others stop.
_GO_ON = frozenset({"tick", "run"})


@contextmanager
def reading(*, may_quarantine: bool = False) -> Iterator["Context"]:
    """Give a command that only reads what it needs; it acquires no lock and starts no JVM."""
    from harness.context import Context

    with interruptible("stopped"):
        context = Context(settings_of_project(may_quarantine=may_quarantine), os.environ)
        with closing(context):
            yield context


@contextmanager
def writing(command: str) -> Iterator["Context"]:
    """Give a command that writes what it needs, while it alone holds what it writes to.

    Raises:
        LockedError: Another harness process holds the lock.
        StateError: The state directory cannot be written.
    """
    from harness.context import Context
    from harness.tick.single_writer import admitted

    with stoppable() as stop:
        settings = settings_of_project(may_quarantine=command in _GO_ON)
        context = Context(settings, os.environ)
        context.stop = stop
        with admitted(context, command), cancelled_on(stop, context):
            set_up_log(settings, is_writer=True)
            _warn_of_network_drive(settings.home)
            yield context


@contextmanager
def cancelled_on(stop: Stop, context: "Context") -> Iterator[None]:
    """Cancel what the context runs when a signal comes; not what releases the lease."""
    stop.cancel = context.cancel
    try:
        yield
    finally:
        stop.cancel = lambda: None


def _warn_of_network_drive(home: Path) -> None:
    from harness.platform.mounts import network_warning

    message = network_warning(home)
    if message:
        log.warning("%s", message)


def set_up_log(settings: "Settings", *, is_writer: bool) -> None:
    """Send log records to the rotating file of the state directory.

    Raises:
        ConfigurationError: HEARTBEAT_LOG_FORMAT is no format.
        StateError: The file cannot be opened.
    """
    from harness.config.model import LogFormat
    from harness.platform.logs import Rotation, set_up_logging

    logs = settings.logs
    wanted = os.environ.get(LOG_FORMAT, "").strip().lower() or logs.format.value
    if wanted not in set(LogFormat):
        allowed = " and ".join(LogFormat)
        raise ConfigurationError(f"{LOG_FORMAT} is '{wanted}'; allowed are {allowed}")
    set_up_logging(
        settings.home,
        is_writer=is_writer,
        is_json=wanted == LogFormat.JSON,
        rotation=Rotation(max_bytes=logs.max_megabytes * 1_000_000, keep=logs.keep),
    )


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Handle Ctrl-C and SIGTERM, and end with the code that a shell expects.

    What failed because it was cancelled is not reported as an error.
    """
    stop = Stop()
    try:
        with stop:
            yield stop
    except BaseException as error:
        if not stop.is_wanted:
            raise
        log.info("stopped while %s", stop.activity.words, exc_info=error)
    if stop.is_wanted:
        typer.echo("stopped; nothing is lost, the next tick continues from here", err=True)
        raise typer.Exit(INTERRUPTED)


@contextmanager
def interruptible(message: str) -> Iterator[None]:
    """Report Ctrl-C in one sentence and the exit code that a shell expects."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(message, err=True)
        raise typer.Exit(INTERRUPTED) from None


def real_clock() -> Clock:
    """Return the machine's clock."""
    return RealClock()


def print_line(sentence: str, *, err: bool = False) -> None:
    """Print one line of text, some of which may come from outside."""
    from harness.platform.masking import masked
    from harness.platform.text import escaped

    typer.echo(escaped(masked(as_called(sentence))), err=err)


def print_json(content: object) -> None:
    """Print one JSON document to the standard output."""
    from harness.platform.masking import masked
    from harness.platform.text import json_text, mapped

    typer.echo(json_text(mapped(content, masked)))


def job_named(wanted: str, names: Mapping[int, str]) -> int:
    """Return the job that an id or a name means.

    Raises:
        ConfigurationError: No job, or more than one, is meant.
    """
    if wanted.strip().isdigit() and int(wanted) in names:
        return int(wanted)
    meant = [job_id for job_id, name in names.items() if name.lower() == wanted.strip().lower()]
    if len(meant) == 1:
        return meant[0]
    if meant:
        listed = ", ".join(map(str, sorted(meant)))
        raise ConfigurationError(f"Jobs {listed} have the name '{wanted}': name one by its id")
    raise ConfigurationError(f"There is no job '{wanted}'; {_close(wanted, names)}")


def _close(wanted: str, names: Mapping[int, str]) -> str:
    from difflib import get_close_matches

    known = {name.lower(): f"{name} ({job_id})" for job_id, name in names.items()}
    known |= {str(job_id): f"{name} ({job_id})" for job_id, name in names.items()}
    close = dict.fromkeys(
        known[each] for each in get_close_matches(wanted.strip().lower(), known, n=5, cutoff=0.5)
    )
    if close:
        return f"did you mean {' or '.join(list(close)[:3])}?"
    if names:
        return "`python -m harness jobs` lists every job"
    return "none is recorded yet: add a row for it to seeds/heartbeat_controls.csv, and run a tick"


def length_of_time(text: str, option: str) -> timedelta:
    """Read the value of an option; a number alone has seconds.

    Raises:
        ConfigurationError: It cannot be read as a length of time.
    """
    from harness.platform.format import duration

    try:
        return duration(f"{text}s" if text.strip().replace(".", "", 1).isdigit() else text)
    except ValueError as error:
        message = f"{option} {error}; write for example 500ms, 30s, 5m or 1h"
        raise ConfigurationError(message) from error


def as_called(sentence: str) -> str:
    """Return a text for people, with the program in its commands as they have called it."""
    if MODULE not in sentence or Path(sys.argv[0]).stem != SCRIPT:
        return sentence
    return sentence.replace(MODULE, SCRIPT)


def leave(code: ExitCode) -> None:
    """End the command with an exit code."""
    if code is not ExitCode.DONE:
        raise typer.Exit(int(code))

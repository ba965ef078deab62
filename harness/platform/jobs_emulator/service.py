"""Serves the local Jobs API as a process of its own, until it is stopped or idle."""

import itertools
import logging
import signal
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from harness.errors import JobsApiError, LockedError
from harness.platform.jobs_emulator.folder import ApiFolder, api_folder
from harness.platform.jobs_emulator.server import Endpoint, LocalJobsServer, ServerSettings

logger = logging.getLogger(__name__)

DEFAULT_IDLE_MINUTES = 10.0
_SECONDS_BETWEEN_CHECKS = 1.0
_CHECKS_BETWEEN_CLEANINGS = 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How the process serves."""

    #: The state directory; jobs and runs are kept in ``jobs-api`` inside it.
    home: Path
    port: int = 0
    token: str | None = field(default=None, repr=False)
    #: After how many idle minutes without a running job it ends; never when not given.
    idle_minutes: float | None = DEFAULT_IDLE_MINUTES
    #: How long to wait for a server of this folder that is just ending.
    patience_seconds: float = 0.0


def serve(settings: ServiceSettings) -> None:
    """Serve until a signal, a stop request or idleness ends it.

    Raises:
        LockedError: Another server serves this state directory.
        JobsApiError: The port is taken, or the folder cannot be written.
    """
    folder = api_folder(settings.home)
    with folder.lock("serve", wait=False, patience=settings.patience_seconds) as is_ours:
        if not is_ours:
            raise LockedError(
                f"Another local Jobs API serves {folder.path} already: use it, or end it with"
                " `python -m harness jobs-api --stop`"
            )
        server = _server(folder, settings)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: server.stopped.set())
        with server:
            folder.write_endpoint(server.endpoint)
            logger.info("the local Jobs API listens at %s", server.endpoint.host)
            try:
                _wait(server, folder, settings)
            finally:
                folder.forget_endpoint()


def endpoint_of(home: Path) -> Endpoint | None:
    """Return where the server of a state directory recorded that it listens."""
    return api_folder(home).read_endpoint()


def _server(folder: ApiFolder, settings: ServiceSettings) -> LocalJobsServer:
    wanted = ServerSettings(
        folder=folder.path,
        port=settings.port,
        token=settings.token,
    )
    try:
        return LocalJobsServer(wanted)
    except (OSError, sqlite3.Error) as error:
        where = f"port {settings.port} or folder {folder.path}"
        raise JobsApiError(f"The local Jobs API does not start at {where}: {error}") from error


def _wait(server: LocalJobsServer, folder: ApiFolder, settings: ServiceSettings) -> None:
    results = Idleness(settings.idle_minutes)
    for number in itertools.count():
        if number % _CHECKS_BETWEEN_CLEANINGS == 0:
            server.engine.forget_old_runs()
        if _pause(server.stopped):
            return
        if not results.is_idle(server.served, has_runs=server.engine.active_runs() > 0):
            continue
        # A process that starts servers holds this lock during its health check: do not end then.
        with folder.lock("start", wait=False) as may_end:
            if may_end and not results.is_idle(server.served, has_runs=False, check=False):
                continue
            if may_end:
                folder.forget_endpoint()
                return


def _pause(stopped: Event) -> bool:
    return stopped.wait(_SECONDS_BETWEEN_CHECKS)


class Idleness:
    """Counts the checks in a row at which nothing had happened.

    Args:
        minutes: After how many minutes it is idleness; never when not given.
    """

    def __init__(self, minutes: float | None) -> None:
        self._checks_allowed = None if minutes is None else minutes * 60 / _SECONDS_BETWEEN_CHECKS
        self._results = 0
        self._served = 0

    def is_idle(self, served: int, *, has_runs: bool, check: bool = True) -> bool:
        """Return whether nothing has happened for long enough.

        Args:
            served: How many requests were served so far.
            has_runs: Whether a run goes on.
            check: Whether this counts as one more check.
        """
        if has_runs or served != self._served:
            self._results = 0
            self._served = served
        elif check:
            self._results += 1
        return self._checks_allowed is not None and self._results >= self._checks_allowed

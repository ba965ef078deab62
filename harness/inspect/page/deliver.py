"""Writes the report where readers find it: to a file, a volume or a bucket, or to a browser."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HeartbeatError, StateError
from harness.inspect.page.document import document_of
from harness.inspect.page.read import read_recorded
from harness.platform.files import write_atomically
from harness.platform.jobs_emulator.http import LOOPBACK, Call, Handler, LoopbackServer, Reply
from harness.platform.storage import ObjectStorage, is_remote, normalized
from harness.platform.text import first_line
from harness.store.rows import Ledger
from harness.tick.install import require_state

if TYPE_CHECKING:
    from harness.context import Context

log = logging.getLogger(__name__)

HTML = "text/html; charset=utf-8"
#: An idle installation writes its report so often, that its readers see that ticks go on.
IDLE = timedelta(minutes=5)
#: A large report is written less often: writing takes at most one part of the time in so many.
_SHARE_OF_TIME = 10

#: What changes while something happens.
_CHANGING = (Ledger.TICKS, Ledger.CONTROLS, Ledger.PROBES, Ledger.RUNS, Ledger.DECISIONS)


def page_of(context: "Context", *, days: float | None = None) -> str:
    """Return the report as it stands now.

    Args:
        context: The services.
        days: How many days of history it has; those of the configuration when not given.

    Raises:
        StateError: There is nothing to read, or a table cannot be read.
    """
    require_state(context)
    wanted = context.settings.report.days if days is None else days
    return document_of(read_recorded(context, days=wanted))


def write_page(page: str, path: str, *, project: Path) -> str:
    """Write the report, in place of the one before, and return where it is.

    Args:
        page: The file.
        path: A file, relative to the project, or an object of a bucket.
        project: The folder with ``heartbeat.yml``.

    Raises:
        StateError: It cannot be written.
    """
    if not is_remote(path):
        place = (project / Path(normalized(path)).expanduser()).resolve()
        if place.is_dir():
            raise StateError(f"{place} is a folder: name the file in it that the report is to be")
        write_atomically(place, page)
        return str(place)
    try:
        ObjectStorage().write(path, page.encode(), content_type=HTML)
    except (HeartbeatError, OSError) as error:
        reason = getattr(error, "strerror", None) or first_line(error, repr(error))
        raise StateError(
            f"The report cannot be written to {path}: {reason}; set report.path to a file, or to an"
            " object of a bucket that this machine may write"
        ) from error
    return path


class Keeper:
    """Keeps the page current that the configuration names; one that cannot be written is logged.

    Args:
        context: The services.
    """

    def __init__(self, context: "Context") -> None:
        self._context = context
        self._settings = context.settings.report
        self._written_at: datetime | None = None
        self._took = timedelta(0)
        self._written: Sequence[str | None] = ()
        self._logged = ""

    def keep(self) -> None:
        """Write the page if it is configured, and due: after a change, or when it gets old."""
        if self._settings.path is None:
            return
        try:
            self._write_if_due(self._settings.path)
        except Exception as error:
            # What was cancelled fails, too.
            self._context.stop.check()
            self._log_once(error)

    def _write_if_due(self, path: str) -> None:
        now = self._context.clock.now()
        since = None if self._written_at is None else now - self._written_at
        pause = max(timedelta(seconds=self._settings.every_seconds), _SHARE_OF_TIME * self._took)
        if since is not None and since < pause:
            return
        found = [*self._context.store.fingerprints(_CHANGING).values()]
        if since is not None and since < IDLE and found == self._written:
            return
        # Also after a failure: the next try is as far away.
        self._written_at, self._written = now, found
        self._context.stop.activity.begin("writing the report")
        write_page(page_of(self._context), path, project=self._context.settings.project)
        self._took, self._logged = self._context.clock.now() - now, ""

    def _log_once(self, error: Exception) -> None:
        reason = str(error) if isinstance(error, HeartbeatError) else repr(error)
        if reason != self._logged:
            log.warning("the report is not written, and tried again later: %s", reason)
            self._logged = reason


class _Pages:
    """Answers a browser with the report as it stands."""

    def __init__(self, context: "Context", days: float | None) -> None:
        self._context = context
        self._days = days

    def answer(self, call: Call) -> Reply:
        """Return the page, made for this request."""
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if call.method != "GET" or call.path != "/":
            return Reply(
                status=404, body=b"there is only /\n", headers=headers, content_type="text/plain"
            )
        try:
            page = page_of(self._context, days=self._days)
        except HeartbeatError as error:
            body = f"{error}\n".encode()
            return Reply(status=503, body=body, headers=headers, content_type="text/plain")
        return Reply(status=200, body=page.encode(), headers=headers, content_type=HTML)


class _OfThisMachine(Handler):
    """Serves only requests that name this machine: a web page may resolve its own name to it."""

    def serve(self) -> None:
        """Serve one request."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in (LOOPBACK, "localhost"):
            refusal = Reply(status=403, body=b"forbidden\n", headers={}, content_type="text/plain")
            return self.send(refusal)
        return super().serve()


def server_of(context: "Context", *, port: int, days: float | None) -> LoopbackServer:
    """Return a server of the report that only this machine reaches.

    Raises:
        StateError: The port is taken.
    """
    try:
        return LoopbackServer(_Pages(context, days), port, _OfThisMachine)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StateError(
            f"Port {port} cannot be used ({reason}): name another with --port"
        ) from error

"""Puts the local Jobs API together and serves it, inside this process or as a whole process."""

import json
import logging
import secrets
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from harness.platform.clock import Clock, RealClock
from harness.platform.jobs_emulator.admin import PREFIX, Control
from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.api.routes import Routes
from harness.platform.jobs_emulator.http import LOOPBACK, Call, Handler, LoopbackServer, Reply
from harness.platform.jobs_emulator.runs.database import Store
from harness.platform.jobs_emulator.runs.engine import Engine
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.runs.launcher import CommandLauncher
from harness.platform.jobs_emulator.runs.registry import Assumptions, Effects, Registry

logger = logging.getLogger(__name__)

#: Requested before a client has a token.
_METADATA = "/.well-known/databricks-config"
_STATE_FILE = "state.sqlite"
#: Has the output of each run.
RUN_LOGS = "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a Jobs API listens, and the token that it admits."""

    host: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a local Jobs API is set up."""

    #: Where jobs and runs outlive the server; nothing does when not given.
    folder: Path | None = None
    port: int = 0
    #: The token that is admitted; a random one when not given.
    token: str | None = field(default=None, repr=False)
    assumptions: Assumptions = field(default_factory=Assumptions)


class LocalJobsServer:
    """A local Jobs API that serves from a thread of this process while its context is open.

    Args:
        settings: How it is set up.
        clock: Drives the queue and times.
        effects: Receives every effect.
    """

    #: What serves one client, keeps the jobs and decides on the runs.
    handler = Handler
    registry_type = Registry
    engine_type = Engine

    def __init__(
        self,
        settings: ServerSettings | None = None,
        *,
        clock: Clock | None = None,
        effects: Effects | None = None,
    ) -> None:
        self.settings = settings or ServerSettings()
        self.stopped = threading.Event()
        self._borrowed = (
            None if self.settings.folder else Path(tempfile.mkdtemp(prefix="jobs-api-"))
        )
        folder = self.settings.folder or self._borrowed or Path()
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(None if self._borrowed else folder / _STATE_FILE)
        self._token = self.settings.token or secrets.token_urlsafe(24)
        self._workspace_id = store.fact("workspace_id", str(9 * 10**17 + secrets.randbelow(10**16)))
        self.registry = self.registry_type(
            store, clock or RealClock(), effects, self.settings.assumptions
        )
        self.engine = self.engine_type(self.registry, CommandLauncher(folder / RUN_LOGS))
        self._control = Control(self.registry, self.engine, self.stopped.set)
        self._http = LoopbackServer(self, self.settings.port, self.handler)
        self._routes = Routes(self.registry, self.engine, self.endpoint.host)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name="jobs-api", daemon=True
        )
        #: Counts the requests of clients, so that idleness can be determined.
        self.served = 0

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return Endpoint(host=f"http://{LOOPBACK}:{self._http.server_port}", token=self._token)

    def put_job(self, job: JobDefinition) -> None:
        """Register a job under its id, or replace it."""
        self.registry.put_job(job.job_id, job.as_settings())

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """Stop serving, end every process and leave nothing behind but the folder."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.engine.close()
        if self._borrowed is not None:
            shutil.rmtree(self._borrowed, ignore_errors=True)

    def __enter__(self) -> "LocalJobsServer":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # What the socket calls

    def answer(self, call: Call) -> Reply:
        """Answer a request."""
        self.served += 1
        try:
            if not self.is_open(call.path) and not self.admits(call.token or ""):
                raise ApiError(401, "UNAUTHENTICATED", "Credential was not sent or is not valid.")
            return _reply(200, self.dispatch(call))
        except ApiError as error:
            content = {"error_code": error.error_code, "message": error.message}
            return _reply(error.status, content, error.headers)
        except Exception:
            logger.exception("%s %s failed", call.method, call.path)
            content = {"error_code": "INTERNAL_ERROR", "message": "The local Jobs API has a fault."}
            return _reply(500, content)

    def is_open(self, path: str) -> bool:
        """Return whether a path is requested before a client has a token."""
        return path == _METADATA

    def admits(self, token: str) -> bool:
        """Return whether a token is admitted."""
        return secrets.compare_digest(token.encode(), self._token.encode())

    def dispatch(self, call: Call) -> Mapping[str, object]:
        """Route a request, and return its answer.

        Raises:
            ApiError: It is refused.
        """
        if call.path == _METADATA:
            host = self.endpoint.host
            return {"oidc_endpoint": f"{host}/oidc", "workspace_id": self._workspace_id}
        if call.path.startswith(PREFIX):
            return self._control.answer(call.method, call.path, fields_of(call))
        return self._routes.answer(call.method, call.path, fields_of(call))


def fields_of(call: Call) -> Mapping[str, object]:
    """Return the fields of a request.

    Raises:
        ApiError: Its body is not a JSON object.
    """
    if call.method == "GET" or not call.body:
        return call.query
    try:
        body = json.loads(call.body)
    except ValueError as error:
        raise ApiError(400, "MALFORMED_REQUEST", "Invalid JSON given in the body.") from error
    if not isinstance(body, dict):
        raise ApiError(400, "MALFORMED_REQUEST", "The body must be a JSON object.")
    return body


def _reply(
    status: int, answer: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> Reply:
    return Reply(status=status, body=json.dumps(answer).encode(), headers=headers or {})

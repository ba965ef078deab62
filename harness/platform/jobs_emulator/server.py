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
from harness.platform.jobs_emulator.admin import (
    PREFIX,
    Control,
    LoggedRequest,
    MovableClock,
    RequestLog,
    World,
)
from harness.platform.jobs_emulator.api.requests import optional_number
from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.api.routes import Routes
from harness.platform.jobs_emulator.faults import Fault, Faults, When
from harness.platform.jobs_emulator.history import History
from harness.platform.jobs_emulator.http import LOOPBACK, Call, LoopbackServer, Reply
from harness.platform.jobs_emulator.oauth import SERVER_PATH, TOKEN_PATH, Logins
from harness.platform.jobs_emulator.runs.database import Store
from harness.platform.jobs_emulator.runs.engine import Engine
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.runs.launcher import CommandLauncher
from harness.platform.jobs_emulator.runs.registry import Assumptions, Registry

logger = logging.getLogger(__name__)

_METADATA = "/.well-known/databricks-config"
#: What is asked before a client has a token.
_OPEN = frozenset({_METADATA, SERVER_PATH, TOKEN_PATH})
_STATE_FILE = "state.sqlite"
_HISTORY_FILE = "history.jsonl"
_REQUESTS_FILE = "requests.jsonl"
_LOGS = "runs"


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
    #: The token that may do everything; a random one when not given.
    token: str | None = field(default=None, repr=False)
    #: Tokens that may touch some jobs only.
    narrow_tokens: Mapping[str, frozenset[int]] = field(default_factory=dict, repr=False)
    #: The secrets of clients that log in by OAuth, and for how long.
    clients: Mapping[str, str] = field(default_factory=dict, repr=False)
    login_seconds: float = 3600.0
    #: Whether faults, the clock and runs may be set from outside.
    for_tests: bool = False
    assumptions: Assumptions = field(default_factory=Assumptions)


class LocalJobsServer:
    """A local Jobs API that serves from a thread of this process while its context is open.

    Args:
        settings: How it is set up.
        clock: Drives run scripts, the queue and times.
    """

    def __init__(
        self, settings: ServerSettings | None = None, *, clock: Clock | None = None
    ) -> None:
        self.settings = settings or ServerSettings()
        self.clock = MovableClock(clock or RealClock())
        self.faults = Faults()
        self.stopped = threading.Event()
        self._borrowed = (
            None if self.settings.folder else Path(tempfile.mkdtemp(prefix="jobs-api-"))
        )
        folder = self.settings.folder or self._borrowed or Path()
        folder.mkdir(parents=True, exist_ok=True)
        is_lasting = self.settings.folder is not None
        store = Store(folder / _STATE_FILE if is_lasting else None)
        keeps_requests = is_lasting and self.settings.for_tests
        self.requests = RequestLog(folder / _REQUESTS_FILE if keeps_requests else None)
        history = History(folder / _HISTORY_FILE if is_lasting else None)
        self._token = self.settings.token or secrets.token_urlsafe(24)
        self._workspace_id = store.fact("workspace_id", str(9 * 10**17 + secrets.randbelow(10**16)))
        self.registry = Registry(store, self.clock, history, self.settings.assumptions)
        self.engine = Engine(self.registry, CommandLauncher(folder / _LOGS))
        self._logins = Logins(self.settings.clients, self.clock, self.settings.login_seconds)
        self._control = Control(self._world(), for_tests=self.settings.for_tests)
        self._http = LoopbackServer(self, self.settings.port)
        self._routes = Routes(self.registry, self.engine, self.endpoint.host)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name="jobs-api", daemon=True
        )
        #: Counts the requests of clients, so that idleness can be told.
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
        self._http.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.engine.close()
        self.requests.close()
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

    # What the socket asks

    def fault_for(self, call: Call) -> Fault | None:
        """Return what is to go wrong with a request, if anything."""
        if call.path.startswith(PREFIX):
            return None
        fault = self.faults.take(f"{call.method} {call.path}")
        if fault is not None and fault.when is When.BEFORE:
            self._log(call, _fields_or_nothing(call), 0, fault)
        return fault

    def answer(self, call: Call, fault: Fault | None) -> Reply:
        """Do what a request asks for."""
        self.served += 1
        fields: Mapping[str, object] = {}
        try:
            self._authenticate(call)
            fields = {} if call.path == TOKEN_PATH else _fields(call)
            reply = _reply(200, self._dispatch(call, fields))
        except ApiError as error:
            told = {"error_code": error.error_code, "message": error.message}
            reply = _reply(error.status, told, error.headers)
        except Exception:
            logger.exception("%s %s failed", call.method, call.path)
            told = {"error_code": "INTERNAL_ERROR", "message": "The local Jobs API has a fault."}
            reply = _reply(500, told)
        self._log(call, fields, reply.status, fault)
        return reply

    def _dispatch(self, call: Call, fields: Mapping[str, object]) -> Mapping[str, object]:
        if call.path == _METADATA:
            host = self.endpoint.host
            return {"oidc_endpoint": f"{host}/oidc", "workspace_id": self._workspace_id}
        if call.path == SERVER_PATH:
            return self._logins.server(self.endpoint.host)
        if call.path == TOKEN_PATH:
            return self._logins.token(call.body, call.basic)
        if call.path.startswith(PREFIX):
            return self._control.answer(call.method, call.path, fields)
        allowed = self.settings.narrow_tokens.get(call.token or "")
        job_id = optional_number(fields, "job_id")
        if allowed is not None and job_id is not None and job_id not in allowed:
            message = f"User does not have permission to access job {job_id}."
            raise ApiError(403, "PERMISSION_DENIED", message)
        return self._routes.answer(call.method, call.path, fields)

    def _authenticate(self, call: Call) -> None:
        if call.path in _OPEN:
            return
        admitted = [self._token, *self.settings.narrow_tokens]
        sent = (call.token or "").encode()
        is_known = any(secrets.compare_digest(sent, token.encode()) for token in admitted)
        if not is_known and not self._logins.admits(call.token or ""):
            raise ApiError(401, "UNAUTHENTICATED", "Credential was not sent or is not valid.")

    def _log(
        self, call: Call, fields: Mapping[str, object], status: int, fault: Fault | None
    ) -> None:
        if call.path.startswith(PREFIX) or not self.settings.for_tests:
            return
        self.requests.add(
            LoggedRequest(
                at_ms=self.registry.now_ms(),
                method=call.method,
                path=call.path,
                fields=fields,
                status=status,
                fault=fault.kind if fault else None,
            )
        )

    def _world(self) -> World:
        return World(
            registry=self.registry,
            engine=self.engine,
            faults=self.faults,
            clock=self.clock,
            requests=self.requests,
            stop=self.stopped.set,
        )


def _fields(call: Call) -> Mapping[str, object]:
    if call.method == "GET" or not call.body:
        return call.query
    try:
        body = json.loads(call.body)
    except ValueError as error:
        raise ApiError(400, "MALFORMED_REQUEST", "Invalid JSON given in the body.") from error
    if not isinstance(body, dict):
        raise ApiError(400, "MALFORMED_REQUEST", "The body must be a JSON object.")
    return body


def _fields_or_nothing(call: Call) -> Mapping[str, object]:
    try:
        return _fields(call)
    except ApiError:
        return {}


def _reply(
    status: int, answer: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> Reply:
    return Reply(status=status, body=json.dumps(answer).encode(), headers=headers or {})

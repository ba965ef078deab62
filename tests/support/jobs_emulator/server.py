"""The local Jobs API, and beside it what only tests do with it."""

import base64
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from harness.platform.clock import Clock, RealClock
from harness.platform.jobs_emulator.admin import PREFIX
from harness.platform.jobs_emulator.api.requests import optional_number
from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.http import Call
from harness.platform.jobs_emulator.server import LocalJobsServer, ServerSettings, fields_of
from tests.support.jobs_emulator.control import LoggedRequest, MovableClock, RequestLog
from tests.support.jobs_emulator.faults import Fault, Faults
from tests.support.jobs_emulator.history import History
from tests.support.jobs_emulator.http import FaultyHandler
from tests.support.jobs_emulator.logins import SERVER_PATH, TOKEN_PATH, Logins
from tests.support.jobs_emulator.scripts import ScriptedEngine, ScriptedRegistry

SECRETS_PATH = "/api/2.0/secrets/get"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledSettings(ServerSettings):
    """How a Jobs API for tests is set up."""

    #: Tokens that may touch some jobs only.
    narrow_tokens: Mapping[str, frozenset[int]] = field(default_factory=dict, repr=False)
    #: The secrets of clients that log in by OAuth, and for how long.
    clients: Mapping[str, str] = field(default_factory=dict, repr=False)
    login_seconds: float = 3600.0
    #: Secrets by scope and key, and the clients that may read each scope.
    secrets: Mapping[tuple[str, str], bytes] = field(default_factory=dict, repr=False)
    readers: Mapping[str, frozenset[str]] = field(default_factory=dict)


class ControlledServer(LocalJobsServer):
    """A local Jobs API whose requests can go wrong, and which records them and every effect.

    Args:
        settings: How it is set up.
        clock: Drives run scripts, the queue and times.
    """

    handler = FaultyHandler
    registry_type = ScriptedRegistry
    engine_type = ScriptedEngine
    engine: ScriptedEngine

    def __init__(
        self, settings: ControlledSettings | None = None, *, clock: Clock | None = None
    ) -> None:
        wanted = settings or ControlledSettings()
        self.clock = MovableClock(clock or RealClock())
        self.faults = Faults()
        self.closing = threading.Event()
        self._narrow_tokens = wanted.narrow_tokens
        self._secrets, self._readers = wanted.secrets, wanted.readers
        self.logins = Logins(wanted.clients, self.clock, wanted.login_seconds)
        folder = wanted.folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.requests = RequestLog(folder / "requests.jsonl" if folder else None)
        history = History(folder / "history.jsonl" if folder else None)
        super().__init__(wanted, clock=self.clock, effects=history)

    def close(self) -> None:
        """Stop serving, and let nothing hang."""
        self.closing.set()
        super().close()
        self.requests.close()

    def fault_for(self, call: Call) -> Fault | None:
        """Return what is to go wrong with a request, if anything."""
        if call.path.startswith(PREFIX):
            return None
        return self.faults.take(f"{call.method} {call.path}")

    def note(self, call: Call, status: int, fault: Fault | None) -> None:
        """Log a request and how it was answered; with 0 if it was not."""
        if call.path.startswith(PREFIX):
            return
        try:
            fields = fields_of(call)
        except ApiError:
            fields = {}
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

    def is_open(self, path: str) -> bool:
        """Return whether a path is served to a client without a token."""
        return super().is_open(path) or path in (SERVER_PATH, TOKEN_PATH)

    def admits(self, token: str) -> bool:
        """Return whether a token is admitted."""
        return super().admits(token) or token in self._narrow_tokens or self.logins.admits(token)

    def dispatch(self, call: Call) -> Mapping[str, object]:
        """Route a request, and serve it."""
        if call.path == SERVER_PATH:
            return self.logins.server(self.endpoint.host)
        if call.path == TOKEN_PATH:
            return self.logins.token(call.body, call.basic)
        if call.path == SECRETS_PATH:
            return self._secret(call)
        if call.path == f"{PREFIX}requests":
            return {"requests": [asdict(request) for request in self.requests.all()]}
        allowed = self._narrow_tokens.get(call.token or "")
        job_id = optional_number(fields_of(call), "job_id") if allowed is not None else None
        if allowed is not None and job_id is not None and job_id not in allowed:
            message = f"User does not have permission to access job {job_id}."
            raise ApiError(403, "PERMISSION_DENIED", message)
        return super().dispatch(call)

    def _secret(self, call: Call) -> Mapping[str, object]:
        scope, key = (str(call.query.get(name, "")) for name in ("scope", "key"))
        client = self.logins.owner(call.token or "")
        if client not in self._readers.get(scope, frozenset()):
            message = f"User {client} does not have READ permission on scope {scope}."
            raise ApiError(403, "PERMISSION_DENIED", message)
        value = self._secrets.get((scope, key))
        if value is None:
            message = f"Secret does not exist with scope: {scope} and key: {key}"
            raise ApiError(404, "RESOURCE_DOES_NOT_EXIST", message)
        return {"key": key, "value": base64.b64encode(value).decode()}

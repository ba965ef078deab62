"""Finds, starts, uses and ends the engine of a state directory: a local Spark Connect server.

The folder ``engine`` of the state directory has what every process needs to find it, readable for
its owner alone: ``engine.json`` with the port and the token, two locks and the server's log. One
process holds ``start.lock`` while it starts or ends an engine; each process that uses it holds
``users.lock`` together with the others, so that the engine detects when it is idle.

The engine is never needed: one that is dead, frozen, of another version or of other settings is
replaced by the next process that needs Spark.
"""

import atexit
import contextlib
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from harness.errors import LockedError, StateError
from harness.platform.clock import Clock, RealClock
from harness.platform.files import make_private, unwritable
from harness.platform.json_file import load
from harness.platform.logs import silence_pyspark_queries
from harness.platform.process_tree import is_alive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

#: The variables by which PySpark finds a server.
REMOTE = "SPARK_REMOTE"
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
#: PySpark sets it once a session of a server has been made.
_MODE = "SPARK_CONNECT_MODE_ENABLED"
_ROOT = Path(__file__).resolve().parents[3]

#: A server that does not answer for so long is frozen, and not just busy.
SECONDS_TO_ANSWER = 30.0
_SECONDS_PER_QUESTION = 10.0
#: What another process does with an engine of other settings may take a moment to end.
_PATIENCE_SECONDS = 30.0
_SECONDS_TO_END = 10.0
_SECONDS_TO_LEAVE = 5.0
#: A server whose port another one has taken is started again.
_ATTEMPTS = 3
_SECONDS_BETWEEN_CHECKS = 0.1
#: Delta's own reader plans a Spark query of its own for each table of a query, to list its files;
#: Delta Kernel replays the log where it stands. It cannot write, and keeps the files that it has
#: found for as long as a plan is kept.
THROUGH_KERNEL = {"spark.databricks.delta.v2.enableMode": "STRICT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRecord:
    """How to reach an engine, as ``engine.json`` has it."""

    #: The process that owns the server, its birth by ``process_tree.born``, and the server.
    owner: int
    owner_born: str | None
    server: int
    server_born: str | None
    port: int
    token: str
    #: A checksum of the settings and versions that it was started with.
    settings: str
    started_at: str

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "EngineRecord":
        """Read a record; foreign text raises one of ``json_file.MALFORMED``."""
        return cls(
            owner=_process(content["owner"]),
            owner_born=content["owner_born"] and str(content["owner_born"]),
            server=_process(content["server"]),
            server_born=content["server_born"] and str(content["server_born"]),
            port=int(content["port"]),
            token=str(content["token"]),
            settings=str(content["settings"]),
            started_at=str(content["started_at"]),
        )

    @property
    def is_alive(self) -> bool:
        """Whether both processes go on; a frozen one does, too."""
        return is_alive(self.owner, self.owner_born) and is_alive(self.server, self.server_born)

    @property
    def address(self) -> str:
        """The address for Spark's clients; they send a token without TLS to `localhost` alone."""
        return f"sc://localhost:{self.port}"


def _process(number: Any) -> int:
    """Read the number of a process that may be killed."""
    if int(number) <= 1:
        raise ValueError(f"{number} is not an engine")
    return int(number)


@dataclass(frozen=True, slots=True)
class EngineFolder:
    """The folder ``engine`` of a state directory."""

    path: Path

    @property
    def record_file(self) -> Path:
        """Where the engine records how to reach it."""
        return self.path / "engine.json"

    @property
    def log_file(self) -> Path:
        """What the server prints."""
        return self.path / "server.log"

    def record(self) -> EngineRecord | None:
        """Return what is recorded, if it can be read."""
        return load(self.record_file, EngineRecord.of)

    def write(self, record: EngineRecord) -> None:
        """Record how to reach the engine, in one step, for the eyes of the owner alone."""
        draft = self.path / "engine.draft"
        try:
            with private_file(draft) as file:
                json.dump(asdict(record), file)
            draft.replace(self.record_file)
        finally:
            draft.unlink(missing_ok=True)

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Be the only process that starts or ends an engine here.

        Raises:
            StateError: The folder cannot be written.
        """
        try:
            make_private(self.path)
            lock = (self.path / "start.lock").open("w")
        except OSError as error:
            raise unwritable(self.path, error) from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def users_lock(self, *, create: bool = True) -> IO[str]:
        """Open the file that users lock together, and an ending engine for itself."""
        return (self.path / "users.lock").open("a" if create else "r+")

    @property
    def has_users(self) -> bool:
        """Whether a process uses the engine now."""
        try:
            with self.users_lock() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False


def engine_folder(home: Path) -> EngineFolder:
    """Return the folder of the engine of a state directory."""
    return EngineFolder(home.absolute() / "engine")


def private_file(path: Path) -> IO[str]:
    """Open a file for writing that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The engine that a process requires."""

    #: The folder in which the server runs.
    project: Path
    #: Spark's settings; an engine with others is replaced.
    settings: Mapping[str, str]
    #: Those to start one with, where they differ from these in speed alone.
    to_start: Mapping[str, str] | None = None
    #: How long an unused engine stays; ``None`` ends it with the process that has started it.
    idle_seconds: float | None
    #: For how long the server may be silent before it counts as frozen.
    silent_seconds: float = 60.0

    @property
    def checksum(self) -> str:
        """What distinguishes an engine of these settings and of these versions."""
        import pyspark

        import harness

        versions = {"heartbeat": harness.__version__, "spark": pyspark.__version__}
        text = json.dumps({**self.settings, **versions}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


class LocalEngine:
    """The engine of one state directory, as one process uses it.

    Args:
        home: The state directory.
        wanted: Its settings.
        before_start: Called before an engine is started, once none is there.
        clock: Waits.
    """

    def __init__(
        self,
        home: Path,
        wanted: Wanted,
        *,
        before_start: Callable[[], object] = lambda: None,
        clock: Clock | None = None,
    ) -> None:
        self._folder = engine_folder(home)
        self._wanted = wanted
        self._before_start = before_start
        self._clock = clock or RealClock()
        self._users: IO[str] | None = None
        self._session: SparkSession | None = None
        #: Keeps an engine that ends with this process.
        self._lifeline: IO[str] | None = None

    def session(self) -> "SparkSession":
        """Return a session of the engine; start an engine if there is none that can be used.

        dbt, whose adapter requests the session of the process from PySpark, gets the same one.

        Raises:
            StateError: The engine does not start.
            LockedError: Another process uses an engine that has other settings.
        """
        self.leave()
        try:
            with self._folder.starting():
                self._end_unfit()
                self._join()
                record = self._usable()
        except BaseException:
            # It is no user of what another user may start.
            self.leave()
            raise
        self._session = _session_by(_channel_of(record))
        # dbt's adapter requests a session by the profile's settings, and gets this one. The address
        # has no token, so the processes that this one starts do not get the token.
        os.environ[REMOTE] = record.address
        return self._session

    def leave(self) -> None:
        """Stop using the engine; it ends when it has been idle for long enough."""
        session, self._session = self._session, None
        if session is not None:
            forget_session(session)
            for name in (REMOTE, _MODE):
                os.environ.pop(name, None)
        for held in (self._users, self._lifeline):
            if held is not None:
                held.close()
        self._users = self._lifeline = None

    def _usable(self) -> EngineRecord:
        known = self._folder.record()
        if known is not None and _answers_in_time(known, self._clock):
            return known
        for _ in range(_ATTEMPTS):
            end(self._folder, self._clock)
            self._before_start()
            record = self._start()
            # Else another server may have got its port, and have greeted in its place.
            if _answers_in_time(record, self._clock):
                return record
        raise StateError(
            f"Spark does not start: it does not answer; {self._folder.log_file} may show why"
        )

    def _end_unfit(self) -> None:
        """End an engine of other settings, once no process uses it."""
        record = self._folder.record()
        if record is None or not record.is_alive or record.settings == self._wanted.checksum:
            return
        until = self._clock.now().timestamp() + _PATIENCE_SECONDS
        while self._folder.has_users:
            if self._clock.now().timestamp() >= until:
                raise LockedError(
                    "Another process uses an engine of other settings or of another version"
                    f" (pid {record.owner}): wait for it, or end it with"
                    " `python -m harness engine stop`"
                )
            self._clock.sleep(_SECONDS_BETWEEN_CHECKS)
        end(self._folder, self._clock)

    def _join(self) -> None:
        """Register as a user of the engine; one that is about to end does so first."""
        try:
            lock = self._folder.users_lock()
        except OSError as error:
            raise unwritable(self._folder.path, error) from error
        until = self._clock.now().timestamp() + _PATIENCE_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.now().timestamp() >= until:
                    # Its owner is frozen just as it ends.
                    end(self._folder, self._clock)
                self._clock.sleep(_SECONDS_BETWEEN_CHECKS)
            else:
                self._users = lock
                return

    def _start(self) -> EngineRecord:
        search = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
        environment = {**without_engine(os.environ), "PYTHONPATH": search}
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.platform.spark.engine_process", str(self._folder.path)],
            env=environment,
            cwd=self._wanted.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        request = {
            "settings": dict(self._wanted.to_start or self._wanted.settings),
            "checksum": self._wanted.checksum,
            "idle_seconds": self._wanted.idle_seconds,
            "silent_seconds": self._wanted.silent_seconds,
        }
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=process.stdin, flush=True)
        if self._wanted.idle_seconds is None:
            self._lifeline = process.stdin
        else:
            process.stdin.close()
        # It comes once the engine answers, or has failed.
        with process.stdout:
            problem = process.stdout.readline().strip()
        record = self._folder.record()
        if problem or record is None:
            process.wait()
            reason = problem or _last_words(self._folder)
            raise StateError(
                f"Spark does not start: {reason}; {self._folder.log_file} may have more"
            )
        return record


def _last_words(folder: EngineFolder) -> str:
    return f"its engine ended without a message; {folder.log_file} may show why"


def end(folder: EngineFolder, clock: Clock | None = None) -> bool:
    """End the engine of a state directory, and return whether there was one.

    To be called while ``starting`` is held.
    """
    record, waiting = folder.record(), clock or RealClock()
    folder.record_file.unlink(missing_ok=True)
    if record is None:
        return False
    was_there = record.is_alive
    both = ((record.owner, record.owner_born), (record.server, record.server_born))
    # A record may be damaged.
    processes = [each for each in both if each[0] != os.getpid()]
    for number in (signal.SIGTERM, signal.SIGKILL):
        # The owner ends the server; one that is frozen reacts to the last signal alone.
        for pid, birth in processes if number is signal.SIGKILL else processes[:1]:
            if is_alive(pid, birth):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        until = waiting.now().timestamp() + _SECONDS_TO_END
        while any(is_alive(*each) for each in processes):
            if waiting.now().timestamp() >= until:
                break
            waiting.sleep(_SECONDS_BETWEEN_CHECKS)
        else:
            break
    return was_there


def _answers_in_time(record: EngineRecord, clock: Clock) -> bool:
    """Return whether an engine can be used; one that is busy gets time to answer."""
    until = clock.now().timestamp() + SECONDS_TO_ANSWER
    while record.is_alive:
        refusal = refusal_of(record)
        if refusal is None:
            return True
        if not refusal or clock.now().timestamp() >= until:
            return False
        clock.sleep(_SECONDS_BETWEEN_CHECKS)
    return False


def refusal_of(record: EngineRecord) -> str | None:
    """Send an engine a request that costs it nothing.

    Returns:
        Nothing when it answers, an empty text when it does not admit the token, else the reason.
    """
    import grpc
    from pyspark.sql.connect.proto import ReleaseSessionRequest, UserContext
    from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

    request = ReleaseSessionRequest(
        session_id=str(uuid.uuid4()), user_context=UserContext(user_id="heartbeat")
    )
    with _channel_of(record).toChannel() as channel:
        try:
            ask = SparkConnectServiceStub(channel).ReleaseSession  # type: ignore[no-untyped-call]
            ask(request, timeout=_SECONDS_PER_QUESTION)
        except grpc.RpcError as error:
            code = error.code()
            return "" if code is grpc.StatusCode.UNAUTHENTICATED else code.name
    return None


def _channel_of(record: EngineRecord) -> "DefaultChannelBuilder":
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Loopback(DefaultChannelBuilder):
        """Reaches the one address on which the server listens.

        `localhost` may be another one, ::1, on which anybody may listen, and would get the token.
        """

        @property
        def endpoint(self) -> str:
            return f"127.0.0.1:{record.port}"

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # A proxy of the environment must not carry this machine's own loopback traffic.
    options = [("grpc.enable_http_proxy", 0)]
    return Loopback(f"{record.address}/;token={record.token}", channelOptions=options)


def _session_by(channel: "DefaultChannelBuilder") -> "SparkSession":
    import warnings

    from pyspark.sql.connect.session import SparkSession as RemoteSession

    import harness.platform.spark.errors  # noqa: F401 (before the rest of PySpark)

    session = RemoteSession.builder.channelBuilder(channel).create()
    _give_up_soon(session)
    silence_pyspark_queries()
    os.environ[_MODE] = "1"
    # dbt's adapter offers the server's own settings to the session again, with each statement.
    warnings.filterwarnings("ignore", message="Failed to set spark")
    return cast("SparkSession", session)


def session_beside(session: "SparkSession", settings: Mapping[str, str]) -> "SparkSession":
    """Return a session at the same engine, with settings of its own and the same tables.

    Args:
        session: The session of the process, which dbt uses and configures freely.
        settings: What the new one has beside the settings of the engine.
    """
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    beside: Any
    if isinstance(session, RemoteSession):
        # Not by the builder, which would make it the session of the process, and dbt's.
        beside = RemoteSession(connection=session.client._builder)
        _give_up_soon(beside)
    else:
        from harness.platform.spark.classic_jvm import new_session

        beside = new_session(session)
    for key, value in settings.items():
        beside.conf.set(key, value)
    return cast("SparkSession", beside)


def _give_up_soon(session: Any) -> None:
    """Retry a few times: a server that has gone does not come back, and PySpark tries for long."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=4)])
    # When the process ends, PySpark has the server forget models, of which there are none here.
    atexit.unregister(session.client._cleanup_ml_cache)


def forget_session(session: "SparkSession") -> None:
    """End a session, even of a server that is frozen or has gone, and let PySpark make another."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    remote: Any = session
    with contextlib.suppress(Exception):
        _release(remote.client)
    with contextlib.suppress(Exception):
        # What waits for an answer fails now, and closing would wait for it.
        remote.client._channel.close()
        remote.release_session_on_close = False
        remote.stop()
    # PySpark closes it once more when Python deletes it, which may happen in one of the threads
    # that closing waits for.
    remote.client.close = lambda: None
    known: object = RemoteSession._default_session
    with RemoteSession._lock:
        if known is session:
            RemoteSession._default_session = None
        if getattr(RemoteSession._active_session, "session", None) is session:
            RemoteSession._active_session.session = None


def _release(client: Any) -> None:
    """Let the server forget a session; PySpark would wait for a frozen one without an end."""
    from pyspark.sql.connect.proto import ReleaseSessionRequest, UserContext

    request = ReleaseSessionRequest(
        session_id=client._session_id, user_context=UserContext(user_id=client._user_id or "")
    )
    ask = client._stub.ReleaseSession
    ask(request, metadata=client._builder.metadata(), timeout=_SECONDS_TO_LEAVE)


def without_engine(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a process that has a Spark of its own."""
    return {key: value for key, value in environment.items() if key not in {REMOTE, TOKEN, _MODE}}


class GivenServer:
    """A Spark Connect server of this machine that an operator runs.

    Args:
        address: Where it is, as SPARK_REMOTE names it; PySpark finds the token by itself.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._session: SparkSession | None = None

    def session(self) -> "SparkSession":
        """Return a session of the server; dbt gets the same one."""
        from pyspark.sql.connect.client import DefaultChannelBuilder

        self.leave()
        self._session = _session_by(DefaultChannelBuilder(self._address))
        return self._session

    def leave(self) -> None:
        """Stop using the server."""
        session, self._session = self._session, None
        if session is not None:
            forget_session(session)

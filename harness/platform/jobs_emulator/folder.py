"""The folder of a local Jobs API that is a process of its own: its lock, and where it listens."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.errors import JobsApiError
from harness.platform.clock import RealClock
from harness.platform.jobs_emulator.server import RUN_LOGS, Endpoint
from harness.platform.json_file import load

_NAME = "jobs-api"
#: Two files of this size at most, and what one server adds.
LARGEST_LOG = 16 * 2**20
_SECONDS_BETWEEN_TRIES = 0.05


def set_aside(path: Path, largest: int = LARGEST_LOG) -> None:
    """Rename a file that is larger, to the same name with ``.1``; the one before is replaced."""
    if path.is_file() and path.stat().st_size > largest:
        path.replace(path.with_name(f"{path.name}.1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFolder:
    """The folder ``jobs-api`` in a state directory."""

    path: Path

    @property
    def endpoint_file(self) -> Path:
        """Where the server shows how to reach it; for its owner's eyes only."""
        return self.path / "endpoint.json"

    @property
    def log_file(self) -> Path:
        """The log file of a server in the background."""
        return self.path / "server.log"

    def read_endpoint(self) -> Endpoint | None:
        """Return where the server listens, if that is recorded."""
        return load(
            self.endpoint_file,
            lambda content: Endpoint(host=str(content["host"]), token=str(content["token"])),
        )

    def write_endpoint(self, endpoint: Endpoint) -> None:
        """Record where the server listens, in one step, readable for the owner only."""
        content = {"host": endpoint.host, "token": endpoint.token, "pid": os.getpid()}
        draft = self.path / f"endpoint.{os.getpid()}.draft"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file)
        draft.replace(self.endpoint_file)

    def forget_endpoint(self) -> None:
        """Remove the record of where the server listens."""
        self.endpoint_file.unlink(missing_ok=True)

    @contextmanager
    def lock(self, name: str, *, wait: bool, patience: float = 0.0) -> Iterator[bool]:
        """Hold a lock that ends with its process; yield whether it was got.

        Args:
            name: Which lock: ``start`` while a server is started, ``serve`` while one serves.
            wait: Whether to wait for another holder, however long it takes.
            patience: For how many seconds to wait otherwise.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / f"{name}.lock").open("w") as file:
            if wait:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield True
            else:
                yield _locks_within(file.fileno(), patience)


def _locks_within(descriptor: int, seconds: float) -> bool:
    clock = RealClock()
    for _ in range(int(seconds / _SECONDS_BETWEEN_TRIES) + 1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            clock.sleep(min(seconds, _SECONDS_BETWEEN_TRIES))
    return False


def run_log(home: Path, run_id: int) -> Path:
    """Return the file with the output of a run, whether or not it is there."""
    return home / _NAME / RUN_LOGS / f"{run_id}.log"


def api_folder(home: Path) -> ApiFolder:
    """Return the folder of the local Jobs API in a state directory, and make it.

    Raises:
        JobsApiError: It cannot be made.
    """
    folder = ApiFolder(path=home.resolve() / _NAME)
    try:
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        message = f"The local Jobs API has no folder at {folder.path}: {error.strerror}"
        raise JobsApiError(message) from error
    return folder

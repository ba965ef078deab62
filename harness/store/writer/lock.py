"""Admits one harness process at a time to a state directory, by a lock of the operating system.

The lock is ``flock`` on ``<home>/lock``: the kernel lets go of it when its holder ends, however it
ends, so a file that a dead process left behind blocks no process. Its text is for people. It
holds between processes of one machine; on a network drive it is as good as that drive's ``flock``,
so a state directory belongs on a local disk. A holder whose file was deleted or replaced
excludes no other process: it stops at its next check.
"""

import errno
import fcntl
import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from harness.errors import LockedError, StateError
from harness.platform.clock import Clock, RealClock
from harness.platform.files import make_private

#: How ``flock`` fails when another process holds the lock.
_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)
#: So often a file that vanishes between opening and locking is opened again.
_ATTEMPTS = 10
#: Its time of modification is when the last tick began that came to its end.
LAST_TICK = "last_tick"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds the lock, as it stands in the file.

    Attributes:
        pid: The process.
        command: The subcommand it runs, such as ``tick``.
        since: When it took the lock, UTC, ISO 8601.
        host: The machine.
    """

    pid: int
    command: str
    since: str
    host: str

    def described(self, now: datetime) -> str:
        """Report who it is, with the day only when it is not today."""
        started = datetime.fromisoformat(self.since).astimezone(UTC)
        form = "%H:%M:%SZ" if started.date() == now.date() else "%Y-%m-%d %H:%M:%SZ"
        where = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"pid {self.pid}{where}, `{self.command}`, since {started.strftime(form)}"


def note_tick(home: Path, at: datetime) -> None:
    """Leave a sign in a state directory that a tick that began then came to its end."""
    with suppress(OSError):
        file = home / LAST_TICK
        file.touch()
        os.utime(file, (at.timestamp(), at.timestamp()))


class WriterLock(Protocol):
    """Admits one writer at a time, for one ``with`` block: the lock here, the lease of a workspace.

    A step that writes or starts something makes sure first that it is still the one.
    """

    def __enter__(self) -> Self:
        """Take it without waiting.

        Raises:
            LockedError: Another process has it.
            StateError: It cannot be acquired.
        """
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release it."""
        ...

    def check(self) -> None:
        """Make sure that there is time for one more write or call, querying only when it is due.

        Raises:
            LockedError: Another process has it now.
        """
        ...

    def confirm(self) -> None:
        """Make sure, by a query, that no other process has it.

        Raises:
            LockedError: Another process has it now.
        """
        ...

    def note_tick(self, at: datetime) -> None:
        """Leave a sign that a tick that began then came to its end, even one that found nothing."""
        ...


class ProcessLock:
    """Holds the state directory for one ``with`` block.

    The child processes that the holder starts do not inherit the lock: a job that outlives its
    tick never blocks the next one.
    """

    def __init__(self, home: Path, *, command: str, clock: Clock | None = None) -> None:
        self._home = home
        self._path = home / "lock"
        self._command = command
        self._clock = clock or RealClock()
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take the lock without waiting.

        Raises:
            LockedError: Another process holds it.
            StateError: The state directory cannot be written.
        """
        for _ in range(_ATTEMPTS):
            descriptor = self._open()
            try:
                self._acquire(descriptor)
                if self._is_the_file(descriptor):
                    self._descriptor = descriptor
                    return self
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
        raise LockedError(self._lost())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            # Closing alone is not enough: a child that is just being started may still have a copy.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def check(self) -> None:
        """Make sure that the locked file still has its name: any other one admits another process.

        The kernel takes the lock from no living process, not even a frozen one.

        Raises:
            LockedError: The file was deleted or replaced.
        """
        if self._descriptor is not None and not self._is_the_file(self._descriptor):
            raise LockedError(self._lost())

    def confirm(self) -> None:
        """Make sure of the same; a ``stat`` costs no more than checking whether it is due."""
        self.check()

    def note_tick(self, at: datetime) -> None:
        """Leave a sign that a tick that began then came to its end, even one that found nothing."""
        note_tick(self._home, at)

    def _open(self) -> int:
        try:
            make_private(self._home)
            return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unusable(self._home, error) from error

    def _is_the_file(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(self._home, error) from error

    def _lost(self) -> str:
        return (
            f"The lock file {self._path} was deleted or replaced while this process held it, so "
            "another harness process may be at work: this one stops and starts nothing more; the "
            "next tick continues from what is recorded. Leave the file `lock` where it is"
        )

    def _acquire(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                raise LockedError(self._refusal(descriptor)) from error
            raise _unusable(self._home, error) from error
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(asdict(self._myself())).encode(), 0)
        except OSError as error:
            raise _unusable(self._home, error) from error

    def _myself(self) -> Holder:
        return Holder(
            pid=os.getpid(),
            command=self._command,
            since=self._clock.now().isoformat(timespec="seconds"),
            host=socket.gethostname(),
        )

    def _refusal(self, descriptor: int) -> str:
        holder = _read_holder(descriptor)
        who = f": {holder.described(self._clock.now())}" if holder else ""
        return f"Another harness process holds {self._path}{who}; wait for it, or stop it"


def _read_holder(descriptor: int) -> Holder | None:
    """Read who holds the lock; nothing while the holder has not written it yet."""
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
        datetime.fromisoformat(content["since"])
        return Holder(**content)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _unusable(home: Path, error: OSError) -> StateError:
    reason = (error.strerror or str(error)).lower()
    return StateError(
        f"The state directory {home} cannot be used ({reason}): "
        "make room or make it writable, or set HEARTBEAT_HOME to another folder"
    )

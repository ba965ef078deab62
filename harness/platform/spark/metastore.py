"""Determines which process has the embedded metastore open, without a JVM.

Derby admits one process to a database. The files that record it, ``db.lck`` and ``dbex.lck``, stay
behind when a process dies, without effect: what counts is the lock that the operating system
has on the second one, and that ends with its process.
"""

import fcntl
import os
import struct
import sys
from pathlib import Path

from harness.errors import LockedError
from harness.platform.clock import Clock
from harness.platform.process_tree import is_own
from harness.platform.spark.engine import engine_folder

#: A killed tick leaves a JVM behind that needs a moment to detect it.
PATIENCE_SECONDS = 30.0
_SECONDS_BETWEEN_CHECKS = 0.25

#: The kernel's ``struct flock``: type, whence, start, length, process.
_FLOCK = "hhqqi"


def require_free(metastore: Path, clock: Clock) -> None:
    """Wait until no other process has the metastore open, for a while.

    Raises:
        LockedError: One has it open still.
    """
    until = clock.now().timestamp() + PATIENCE_SECONDS
    while (pid := other_holder(metastore)) is not None:
        if clock.now().timestamp() >= until:
            raise LockedError(_refusal(metastore, pid))
        clock.sleep(_SECONDS_BETWEEN_CHECKS)


def other_holder(metastore: Path) -> int | None:
    """Return the process that has the metastore open, 0 when it cannot be named.

    Nothing is returned when it is free, and when it is this process's own JVM.
    """
    pid = _locking(metastore / "dbex.lck")
    return None if pid is None or is_own(pid) else pid


def _locking(file: Path) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        with file.open("rb") as opened:
            requested = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            answer = struct.unpack(_FLOCK, fcntl.fcntl(opened, fcntl.F_GETLK, requested))
    except OSError:
        return None
    return None if answer[0] == fcntl.F_UNLCK else max(0, answer[4])


def is_engine(metastore: Path, pid: int) -> bool:
    """Return whether a process is the engine of the metastore's state directory."""
    record = engine_folder(metastore.parent).record()
    return record is not None and record.server == pid and record.is_alive


def _refusal(metastore: Path, pid: int) -> str:
    named = f" (pid {pid})" if pid else ""
    if is_engine(metastore, pid):
        return (
            f"The engine of this state directory{named} has the metastore {metastore} open: end it "
            "with `python -m harness engine stop`, and tick again"
        )
    return (
        f"Another process has the metastore {metastore} open{named}: "
        "end it, or wait for it, and tick again"
    )

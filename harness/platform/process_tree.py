"""Distinguishes processes by more than their numbers, which the system gives out again."""

import os
from contextlib import suppress
from pathlib import Path


def born(pid: int) -> str | None:
    """Return what distinguishes a process from a later one of its number, or ``None``."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in parentheses may hold spaces; the start time is the 20th field after it.
    return f"{boot}:{stat.rpartition(')')[2].split()[19]}"


def is_alive(pid: int, birth: str | None) -> bool:
    """Return whether a process goes on.

    Args:
        pid: Its number.
        birth: What ``born`` has returned for it; without that its number alone counts.
    """
    if pid <= 0:
        # The system takes such a number for a group, or for every process.
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return (birth is None or born(pid) == birth) and not _is_zombie(pid)


def resident_bytes(pid: int) -> int | None:
    """Return how much memory a process has in use, or ``None`` where that cannot be read."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None


def is_own(pid: int) -> bool:
    """Return whether a process is this one or was started by it, directly or not."""
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = _parent_of(pid)
    return False


def _parent_of(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        # The name in brackets may hold anything; what follows it are numbers.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _is_zombie(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False

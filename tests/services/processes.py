"""What the system says of a process."""

from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Tell whether a process stands still because of a signal."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"

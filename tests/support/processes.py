"""Waits for what other processes do."""

from pathlib import Path

from harness.platform.clock import RealClock


def ends(pid: int) -> bool:
    """Return whether a process is gone, now or as soon as the kernel has dealt with its signal."""
    clock = RealClock()
    for _ in range(1_000):
        try:
            if "(zombie)" in Path(f"/proc/{pid}/status").read_text():
                return True
        except FileNotFoundError:
            return True
        clock.sleep(0.01)
    return False


def wait_for_text(file: Path) -> str:
    """Return what a file has, once it has something."""
    clock = RealClock()
    for _ in range(3_000):
        if file.exists() and file.read_text().strip():
            return file.read_text().strip()
        clock.sleep(0.01)
    raise AssertionError(f"nothing came in {file}")

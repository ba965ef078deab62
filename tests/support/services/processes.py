"""Processes of the command line: their state in the system, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.store.queries import holder_of

_LONGEST_END = 300


def stopped_by_ctrl_c(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    home: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Press Ctrl-C, for the whole process group as a terminal does, once a command is at work.

    With a state directory that is when it holds its lock, before any work; else when it prints.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        first = ""
        if home is None:
            first = process.stderr.readline()
        while home is not None and process.poll() is None and not _holds(home, process.pid):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=_LONGEST_END)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, first + errors)


def _holds(home: Path, pid: int) -> bool:
    holder = holder_of(home)
    return holder is not None and holder.pid == pid


def is_stopped(pid: int) -> bool:
    """Return whether a process stands still because of a signal."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"

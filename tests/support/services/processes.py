"""Processes of the command line: what the system says of them, and Ctrl-C."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_LONGEST_END = 300


def stopped_by_ctrl_c(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Press Ctrl-C, for the whole process group as a terminal does, once a command says a word."""
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
        first = process.stderr.readline()
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=_LONGEST_END)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, out, first + errors)


def is_stopped(pid: int) -> bool:
    """Tell whether a process stands still because of a signal."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"

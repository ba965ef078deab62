"""Runs one delivery to another system in a process of its own, with a time limit that holds.

A library that waits for a server cannot be interrupted from outside, and a thread that hangs
cannot be ended; a process can be killed. The secrets of a delivery reach it through a pipe.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.platform.masking import masked
from harness.platform.text import escaped, first_line

#: What has the package ``harness``.
_PROJECT = Path(__file__).resolve().parents[2]
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a delivery ended."""

    #: How many items have arrived, from the first one on.
    delivered: int
    #: Why not all have; nothing when all have.
    reason: str | None = None


class Delivery(Protocol):
    """A delivery that was begun."""

    def wait(self, seconds: float) -> None:
        """Wait until it is over, for so long at most."""
        ...

    @property
    def result(self) -> Result | None:
        """How it ended; nothing while it goes on."""
        ...


#: Begins a delivery: what it is to send, and its time limit in seconds.
Begin = Callable[[Mapping[str, object], float], Delivery]


class ProcessDelivery:
    """One process that delivers, and is killed at its time limit.

    Args:
        module: The module that the process runs; it reads the request and prints a result.
        request: What it is to deliver, as JSON.
        seconds: Its time limit.
    """

    def __init__(self, module: str, request: Mapping[str, object], seconds: float) -> None:
        self._module, self._seconds = module, seconds
        self._request = json.dumps(request).encode()
        self._result: Result | None = None
        self._thread = threading.Thread(target=self._run, name="delivery", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until it is over, for so long at most."""
        self._thread.join(seconds)

    @property
    def result(self) -> Result | None:
        """How it ended; nothing while it goes on."""
        return self._result

    def _run(self) -> None:
        try:
            self._result = self._delivered()
        except Exception as error:
            self._result = _failed(f"it cannot be started ({first_line(error, repr(error))})")

    def _delivered(self) -> Result:
        search = os.pathsep.join(filter(None, [str(_PROJECT), os.environ.get("PYTHONPATH")]))
        with subprocess.Popen(
            [sys.executable, "-m", self._module],
            env={**os.environ, "PYTHONPATH": search},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the tick; what is under way may end.
            start_new_session=True,
        ) as process:
            try:
                answer, problem = process.communicate(self._request, timeout=self._seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                with suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=1)
                return _failed(f"no answer within {self._seconds:g} s")
        return _result_in(answer, problem)


def _result_in(answer: bytes, problem: bytes) -> Result:
    try:
        content = json.loads(answer)
        reason = content["reason"]
        return Result(
            delivered=int(content["delivered"]), reason=None if reason is None else _fit(reason)
        )
    except (ValueError, TypeError, KeyError):
        lines = problem.decode(errors="replace").strip().splitlines()
        return _failed(lines[-1] if lines else "its process ended without an answer")


def _failed(reason: str) -> Result:
    return Result(delivered=0, reason=_fit(reason))


def _fit(reason: object) -> str:
    return escaped(masked(str(reason)))[:_LONGEST_REASON]

"""Finds where a scripted run stands after some time; the script says which state lasts how long."""

from collections.abc import Mapping

from harness.platform.jobs_emulator.runs.database import RunRow
from harness.platform.jobs_emulator.runs.job_settings import Step, steps_of
from harness.platform.jobs_emulator.runs.states import Phase


def place_in(run: RunRow, now_ms: int) -> tuple[Phase, int]:
    """Return the state of a scripted run, and since when it is in it."""
    since_ms = run.began_ms if run.began_ms is not None else run.created_ms
    steps = steps_of(run.script)
    for step in steps:
        until_ms = since_ms + int(step.seconds * 1000)
        if _stays(step, steps) or now_ms < until_ms:
            return step.phase, since_ms
        since_ms = until_ms
    return run.phase, since_ms


def ending_script(seconds: float) -> tuple[Mapping[str, object], ...]:
    """Return what a scripted run walks through after it was cancelled."""
    return ({"phase": "TERMINATING", "seconds": seconds}, {"phase": "CANCELED"})


def _stays(step: Step, steps: tuple[Step, ...]) -> bool:
    """The last state stays, and so does the first one that ends the run."""
    return step is steps[-1] or step.phase.is_over

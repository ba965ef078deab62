"""Converts a run into a process, and the end of the process into the run's last state."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from harness.platform.jobs_emulator.runs import states
from harness.platform.jobs_emulator.runs.database import RunRow
from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
from harness.platform.jobs_emulator.runs.processes import (
    Ended,
    Ending,
    Observer,
    Processes,
    Task,
    signal_group,
    tail,
)
from harness.platform.jobs_emulator.runs.states import Phase
from harness.platform.process_tree import born

#: What the API returns of a run's output at most.
_LARGEST_OUTPUT = 5 * 1024 * 1024

Began = Callable[[int, int, str | None], None]
EndedIn = Callable[[int, Phase], None]


class Launcher(Protocol):
    """Runs the commands of local runs."""

    def listen(self, began: Began, ended: EndedIn) -> None:
        """Set the callbacks for the begin of a process and the end of a run."""
        ...

    def launch(self, run: RunRow, job: JobDefinition) -> None:
        """Start the job's command for a run, and return at once."""
        ...

    def stop(self, run_id: int) -> None:
        """Signal the process of a run to end, and return at once."""
        ...

    def end_leftover(self, run: RunRow) -> None:
        """End the process that an earlier instance of this API left behind."""
        ...

    def output(self, run_id: int) -> str:
        """Return the end of what a run wrote."""
        ...

    def forget(self, run_id: int) -> None:
        """Remove what a run wrote."""
        ...

    def close(self) -> None:
        """End every process and wait for it."""
        ...


class CommandLauncher:
    """Runs commands on this machine.

    Args:
        logs: The folder that gets one file of output per run.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._processes = Processes()
        self._observer: Observer | None = None

    def listen(self, began: Began, ended: EndedIn) -> None:
        """Set the callbacks for the begin of a process and the end of a run."""
        self._observer = Observer(
            began=lambda run_id, pid: began(run_id, pid, born(pid)),
            ended=lambda run_id, end: ended(run_id, phase_after(end)),
        )

    def launch(self, run: RunRow, job: JobDefinition) -> None:
        """Start the job's command for a run, and return at once."""
        if job.command is None or self._observer is None:
            return
        task = Task(
            run_id=run.run_id,
            command=job.command,
            env={**job.env, **environment_of(run)},
            log=self._log(run.run_id),
            cwd=job.cwd,
            timeout_seconds=job.timeout_seconds,
        )
        self._processes.launch(task, self._observer)

    def stop(self, run_id: int) -> None:
        """Signal the process of a run to end, and return at once."""
        self._processes.stop(run_id)

    def end_leftover(self, run: RunRow) -> None:
        """End the process that an earlier instance of this API left behind."""
        if run.pid is not None and run.born is not None and born(run.pid) == run.born:
            signal_group(run.pid, signal.SIGKILL)

    def output(self, run_id: int) -> str:
        """Return the end of what a run wrote."""
        return tail(self._log(run_id), _LARGEST_OUTPUT)

    def forget(self, run_id: int) -> None:
        """Remove what a run wrote."""
        self._log(run_id).unlink(missing_ok=True)

    def close(self) -> None:
        """End every process and wait for it."""
        self._processes.close()

    def _log(self, run_id: int) -> Path:
        return self._logs / f"{run_id}.log"


def environment_of(run: RunRow) -> dict[str, str]:
    """Return the variables that pass a run to its command."""
    return {
        "HEARTBEAT_JOB_ID": str(run.job_id),
        "HEARTBEAT_RUN_ID": str(run.run_id),
        "HEARTBEAT_INTENT_ID": run.parameters.get("heartbeat_intent_id", ""),
        "HEARTBEAT_EVENTS": run.parameters.get("heartbeat_events", "[]"),
        "HEARTBEAT_PARAMETERS": json.dumps(dict(run.parameters)),
    }


def phase_after(end: Ended) -> Phase:
    """Report in which state the end of its process leaves a run."""
    match end.ending:
        case Ending.TIMED_OUT:
            return states.TIMED_OUT.with_message("The run took longer than its timeout.")
        case Ending.STOPPED:
            return states.CANCELED
        case Ending.NOT_STARTED:
            return states.FAILED.with_message(end.message)
        case Ending.EXITED if end.exit_code == 0:
            return states.SUCCEEDED
        case Ending.EXITED:
            return states.FAILED.with_message(
                end.message or f"The command ended with {end.exit_code}."
            )

"""Runs that walk through a script of states, each for some time, instead of running a command."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from harness.platform.jobs_emulator.api.responses import invalid
from harness.platform.jobs_emulator.runs.database import RunRow
from harness.platform.jobs_emulator.runs.engine import Engine
from harness.platform.jobs_emulator.runs.job_settings import LOCAL, JobDefinition
from harness.platform.jobs_emulator.runs.launcher import Launcher
from harness.platform.jobs_emulator.runs.registry import Registry
from harness.platform.jobs_emulator.runs.states import (
    BLOCKED,
    BROKEN,
    CANCELED,
    FAILED,
    PARTLY_SUCCEEDED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    TERMINATING,
    TIMED_OUT,
    WAITING_FOR_RETRY,
    Phase,
)

#: Each a name or the words of a state, and for how long it lasts.
Script = Sequence[Mapping[str, object]]

#: What a script may call a state.
PHASE_BY_NAME: Mapping[str, Phase] = {
    "PENDING": PENDING,
    "BLOCKED": BLOCKED,
    "RUNNING": RUNNING,
    "WAITING_FOR_RETRY": WAITING_FOR_RETRY,
    "TERMINATING": TERMINATING,
    "SUCCESS": SUCCEEDED,
    "SUCCESS_WITH_FAILURES": PARTLY_SUCCEEDED,
    "FAILED": FAILED,
    "INTERNAL_ERROR": BROKEN,
    "TIMEDOUT": TIMED_OUT,
    "CANCELED": CANCELED,
    "SKIPPED": SKIPPED,
}

_FIELDS = ("life_cycle_state", "state", "result_state", "code", "type", "queue_code", "message")


def phase_from(words: Mapping[str, object]) -> Phase:
    """Build a state from a name, or from raw words that need not exist anywhere.

    Args:
        words: ``{"phase": "FAILED", "message": ...}``, or any of the fields of ``Phase``.

    Raises:
        ValueError: The name is unknown, or a field is no text.
    """
    name = words.get("phase")
    if name is not None and name not in PHASE_BY_NAME:
        raise ValueError(f"phase {name!r} is none of {', '.join(PHASE_BY_NAME)}")
    base = PHASE_BY_NAME[str(name)] if name is not None else Phase()
    fields = {key: words[key] for key in _FIELDS if key in words}
    wrong = [key for key, value in fields.items() if not isinstance(value, str | None)]
    if wrong:
        raise ValueError(f"{wrong[0]} must be a text or null")
    return Phase(**{**asdict(base), **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One state of a scripted run, and for how long it lasts."""

    phase: Phase
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedJob(JobDefinition):
    """A job whose runs walk through a script."""

    script: Script = ()

    def as_settings(self) -> dict[str, object]:
        """Return the settings under which the API keeps this job."""
        settings = JobDefinition.as_settings(self)
        local = settings[LOCAL]
        assert isinstance(local, dict)
        return {**settings, LOCAL: {**local, "script": [dict(step) for step in self.script]}}


def steps_in(settings: Mapping[str, object]) -> tuple[Step, ...]:
    """Return the states that the runs of a job walk through; none when it has no script.

    Raises:
        ValueError: The script is none, or a step is no state.
    """
    local = settings.get(LOCAL)
    script = local.get("script") if isinstance(local, dict) else None
    if script is not None and not isinstance(script, list | tuple):
        raise ValueError(
            "script must be a list of steps such as {'phase': 'RUNNING', 'seconds': 5}"
        )
    return tuple(_step(step) for step in script or ())


def _step(step: object) -> Step:
    if not isinstance(step, dict):
        raise ValueError(
            "script must be a list of steps such as {'phase': 'RUNNING', 'seconds': 5}"
        )
    return Step(phase=phase_from(step), seconds=float(step.get("seconds") or 0))


class ScriptedRegistry(Registry):
    """Takes jobs with scripts, too."""

    def put_job(self, job_id: int, settings: Mapping[str, object]) -> None:
        """Register a job under a given id, or replace its settings."""
        try:
            steps_in(settings)
        except ValueError as error:
            raise invalid(f"Job {job_id}: {error}.") from error
        super().put_job(job_id, settings)


class ScriptedEngine(Engine):
    """Plays the scripts, and lets a test set a run's state; scripts that have begun are in memory.

    Args:
        registry: The jobs, and all else that the workspace keeps.
        launcher: Runs the commands.
        cancel_seconds: How long a scripted run takes to end after it was cancelled.
    """

    def __init__(
        self, registry: Registry, launcher: Launcher, *, cancel_seconds: float = 0.0
    ) -> None:
        self._scripts: dict[int, tuple[Step, ...]] = {}
        self._cancel_seconds = cancel_seconds
        super().__init__(registry, launcher)

    def put_phase(self, run_id: int, words: Mapping[str, object]) -> None:
        """Set a run's state by hand, to any words at all."""
        with self._lock:
            run = self.run(run_id)
            try:
                phase = phase_from(words)
            except ValueError as error:
                raise invalid(str(error)) from error
            self._scripts[run_id] = ()
            if phase.is_over:
                self._finish(run, phase)
            else:
                self._store.save_run(replace(run, phase=phase, ended_ms=None))

    def cancel(self, run_id: int) -> None:
        """Request the end of a run; a scripted one takes its time."""
        with self._lock:
            run = self.run(run_id)
            is_going_on = not (run.phase.is_over or run.phase.waits)
            if not self._scripts.get(run_id) or not is_going_on or run.phase == TERMINATING:
                super().cancel(run_id)
                return
            now_ms = self._registry.now_ms()
            self._effects.add(now_ms, "cancel_asked", run_id=run_id, job_id=run.job_id)
            self._scripts[run_id] = (
                Step(phase=TERMINATING, seconds=self._cancel_seconds),
                Step(phase=CANCELED),
            )
            self._store.save_run(replace(run, phase=TERMINATING, began_ms=now_ms))

    def advance(self) -> None:
        """Bring scripted runs and the queue to the present instant."""
        with self._lock:
            for run in self._store.runs_going_on():
                self._follow_script(run)
            super().advance()

    def _begin(self, run: RunRow, job: JobDefinition) -> None:
        steps = steps_in(self._registry.job(run.job_id).settings)
        self._scripts[run.run_id] = steps
        if not steps:
            super()._begin(run, job)
            return
        run = replace(run, phase=PENDING, began_ms=self._registry.now_ms())
        self._store.save_run(run)
        self._follow_script(run)

    def _follow_script(self, run: RunRow) -> None:
        steps = self._scripts.get(run.run_id)
        if not steps or run.began_ms is None:
            return
        phase, since_ms = _place_in(steps, run.began_ms, self._registry.now_ms())
        if phase.is_over:
            self._finish(run, phase, at_ms=since_ms)
        elif phase != run.phase:
            self._store.save_run(replace(run, phase=phase))

    def _has_process(self, run: RunRow) -> bool:
        return super()._has_process(run) and not self._scripts.get(run.run_id)


def _place_in(steps: tuple[Step, ...], since_ms: int, now_ms: int) -> tuple[Phase, int]:
    """Return the state of a scripted run, and since when it is in it."""
    for step in steps[:-1]:
        until_ms = since_ms + int(step.seconds * 1000)
        # The first state that ends the run stays, and so does the last one.
        if step.phase.is_over or now_ms < until_ms:
            return step.phase, since_ms
        since_ms = until_ms
    return steps[-1].phase, since_ms

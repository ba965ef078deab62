"""What a local job is, and how it is read from the settings that a client sends."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Where the settings of a job hold what only the local API uses.
LOCAL = "heartbeat"

#: What may start a job besides a request. A job has one of them at most.
_STARTERS = ("trigger", "schedule", "continuous")
_PAUSE_STATUSES = ("PAUSED", "UNPAUSED")
_CONDITIONS = ("ANY_UPDATED", "ALL_UPDATED")
#: The kinds of a trigger, and the setting that each has to have.
_TRIGGER_KINDS = {
    "table_update": "table_names",
    "file_arrival": "url",
    "periodic": "interval",
    "model": "condition",
}
_SHORTEST_WAIT_SECONDS = 60
_WAITS = ("min_time_between_triggers_seconds", "wait_after_last_change_seconds")

#: What a job with a local command reads of its run; it accepts any other parameter, too.
READ_BY_COMMANDS = ("heartbeat_events", "heartbeat_intent_id", "heartbeat_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefinition:
    """One job: a command to run, or at once a success."""

    job_id: int
    name: str
    #: A list is a program with its arguments; a text is for the shell.
    command: tuple[str, ...] | str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    max_concurrent_runs: int = 1
    queue_enabled: bool = True
    #: The job parameters that it declares, and no other ones are accepted; any when not given.
    parameters: tuple[str, ...] | None = None

    def as_settings(self) -> dict[str, object]:
        """Return the settings under which the API keeps this job."""
        local = {
            "command": list(self.command) if isinstance(self.command, tuple) else self.command,
            "cwd": self.cwd,
            "env": dict(self.env),
            "timeout_seconds": self.timeout_seconds,
        }
        declared = {} if self.parameters is None else {"parameters": _listed(self.parameters)}
        return {
            **declared,
            "name": self.name,
            "max_concurrent_runs": self.max_concurrent_runs,
            "queue": {"enabled": self.queue_enabled},
            "timeout_seconds": int(self.timeout_seconds or 0),
            "format": "MULTI_TASK",
            LOCAL: {key: value for key, value in local.items() if value},
        }


def job_from(job_id: int, settings: Mapping[str, object]) -> JobDefinition:
    """Read a job from its settings.

    Raises:
        ValueError: A setting has the wrong type.
    """
    _check_trigger(settings)
    local = _mapping(settings.get(LOCAL), LOCAL)
    env = _mapping(local.get("env"), "env")
    command = _command(local.get("command"))
    return JobDefinition(
        job_id=job_id,
        name=_text(settings.get("name"), "name") or "Untitled",
        command=command if command is not None else _python_task(settings.get("tasks")),
        cwd=_text(local.get("cwd"), "cwd"),
        env={key: str(value) for key, value in env.items()},
        timeout_seconds=_seconds(local.get("timeout_seconds") or settings.get("timeout_seconds")),
        max_concurrent_runs=_concurrency(settings.get("max_concurrent_runs")),
        queue_enabled=_mapping(settings.get("queue"), "queue").get("enabled") is True,
        parameters=_parameters(settings),
    )


def shown_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a job with the parameters that it declares.

    A job with a local command accepts any parameter, unless it declares some itself. A trigger
    that is not paused is shown as such.
    """
    declared: dict[str, object] = (
        {} if _parameters(settings) is not None else {"parameters": _listed(READ_BY_COMMANDS)}
    )
    if trigger := _mapping(settings.get("trigger"), "trigger"):
        declared["trigger"] = {"pause_status": "UNPAUSED", **trigger}
    return {**settings, **declared}


def _check_trigger(settings: Mapping[str, object]) -> None:
    """Refuse a trigger as a workspace would. Nothing is started by it here.

    Raises:
        ValueError: It is none that a workspace keeps.
    """
    trigger = _mapping(settings.get("trigger"), "trigger")
    if not trigger:
        return
    if len(starters := [name for name in _STARTERS if settings.get(name)]) > 1:
        raise ValueError(f"only one of {', '.join(starters)} may be set")
    if trigger.get("pause_status", "UNPAUSED") not in _PAUSE_STATUSES:
        raise ValueError(f"trigger.pause_status must be {' or '.join(_PAUSE_STATUSES)}")
    kinds = [kind for kind in _TRIGGER_KINDS if trigger.get(kind)]
    if len(kinds) != 1:
        raise ValueError(f"trigger must have exactly one of {', '.join(_TRIGGER_KINDS)}")
    _check_kind(kinds[0], _mapping(trigger[kinds[0]], kinds[0]))


def _check_kind(kind: str, keys: Mapping[str, object]) -> None:
    if not keys.get(_TRIGGER_KINDS[kind]):
        raise ValueError(f"trigger.{kind}.{_TRIGGER_KINDS[kind]} is missing")
    if kind == "table_update" and not isinstance(keys["table_names"], list):
        raise ValueError("trigger.table_update.table_names must be a list")
    if kind == "table_update" and keys.get("condition", _CONDITIONS[0]) not in _CONDITIONS:
        raise ValueError(f"trigger.table_update.condition must be {' or '.join(_CONDITIONS)}")
    for name in _WAITS:
        seconds = keys.get(name)
        if seconds and not (isinstance(seconds, int) and seconds >= _SHORTEST_WAIT_SECONDS):
            raise ValueError(f"trigger.{kind}.{name} must be {_SHORTEST_WAIT_SECONDS} or more")


def _listed(names: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"name": name, "default": ""} for name in names]


def _parameters(settings: Mapping[str, object]) -> tuple[str, ...] | None:
    """Return the names of the parameters that a job accepts; nothing when it takes any."""
    listed = settings.get("parameters")
    if listed is None:
        return None if LOCAL in settings else ()
    if not isinstance(listed, list) or not all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in listed
    ):
        raise ValueError("parameters must be a list of objects with name and default")
    return tuple(each["name"] for each in listed)


def _command(value: object) -> tuple[str, ...] | str | None:
    if not value:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ValueError("command must be a text or a list of texts")


def _python_task(tasks: object) -> tuple[str, ...] | None:
    """A single ``spark_python_task`` of a local file runs with this Python."""
    if not isinstance(tasks, list) or len(tasks) != 1 or not isinstance(tasks[0], dict):
        return None
    task = tasks[0].get("spark_python_task")
    if not isinstance(task, dict) or not isinstance(task.get("python_file"), str):
        return None
    arguments = task.get("parameters") or []
    return (sys.executable, task["python_file"], *(str(argument) for argument in arguments))


def _mapping(value: object, name: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    return value


def _text(value: object, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} must be a text")
    return value


def _seconds(value: object) -> float | None:
    if value is None or value == 0:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError("seconds must be a number that is not negative")
    return float(value)


def _concurrency(value: object) -> int:
    if value is None:
        return 1
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1000:
        raise ValueError("max_concurrent_runs must be a number from 0 to 1000")
    return value

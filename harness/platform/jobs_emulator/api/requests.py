"""Reads and checks what a client sends; what is wrong is worded as Databricks words it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness.platform.jobs_emulator.api.responses import invalid

LONGEST_TOKEN = 64
LARGEST_PARAMETERS = 10_000
_LEGACY = (
    "notebook_params",
    "python_params",
    "jar_params",
    "spark_submit_params",
    "python_named_params",
    "sql_params",
    "dbt_commands",
)
_ASCII_ONLY = ("python_params", "spark_submit_params")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNow:
    """A checked request to start a run."""

    job_id: int
    token: str | None
    parameters: Mapping[str, str]
    queue_enabled: bool | None
    #: The same for two requests exactly when they request the same run.
    digest: str


def run_now_from(body: Mapping[str, object]) -> RunNow:
    """Check a run-now request.

    Raises:
        ApiError: Something in it is missing, wrong or too large.
    """
    legacy = {key: body[key] for key in _LEGACY if body.get(key)}
    if legacy and body.get("job_parameters"):
        raise invalid(f"job_parameters cannot be combined with {', '.join(legacy)}.")
    for key, value in legacy.items():
        _check_size(key, value)
        if key in _ASCII_ONLY and not json.dumps(value, ensure_ascii=False).isascii():
            raise invalid(f"{key} must contain only ASCII characters.")
    parameters = _parameters(body.get("job_parameters"))
    return RunNow(
        job_id=integer_field(body, "job_id"),
        token=_token(body.get("idempotency_token")),
        parameters=parameters,
        queue_enabled=_queue(body.get("queue")),
        digest=json.dumps([parameters, legacy], sort_keys=True),
    )


def integer_field(source: Mapping[str, object], name: str) -> int:
    """Read an id that must be there.

    Raises:
        ApiError: It is missing, or no integer.
    """
    found = optional_number(source, name)
    if found is None:
        raise invalid(f"Missing required field: {name}")
    return found


def optional_number(source: Mapping[str, object], name: str) -> int | None:
    """Read an integer that may be left out.

    Raises:
        ApiError: It is there, but no integer.
    """
    value = source.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit():
        return int(value)
    raise invalid(f"Could not parse request object: {name} must be an int64, not {value!r:.60}")


def flag(source: Mapping[str, object], name: str) -> bool:
    """Read a flag that is off when left out; in a query string it is a text."""
    return source.get(name) in (True, "true", "True")


def _token(value: object) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > LONGEST_TOKEN:
        raise invalid(f"idempotency_token must have at most {LONGEST_TOKEN} characters.")
    return value


def _parameters(value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise invalid("job_parameters must be a map of strings.")
    _check_size("job_parameters", value)
    return value


def _check_size(name: str, value: object) -> None:
    size = len(json.dumps(value, ensure_ascii=False).encode())
    if size > LARGEST_PARAMETERS:
        raise invalid(f"{name} has {size} bytes, the limit is {LARGEST_PARAMETERS} bytes.")


def _queue(value: object) -> bool | None:
    if not isinstance(value, dict) or "enabled" not in value:
        return None
    return value["enabled"] is True

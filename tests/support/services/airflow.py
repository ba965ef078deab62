"""What the provider's operators and sensors use of Airflow's SDK, where no Airflow is installed.

`make airflow` tests them with a real Airflow. Here a task runs outside of a DAG and waits for nothing.
"""

import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROVIDER = Path(__file__).resolve().parents[3] / "airflow_provider"


class AirflowError(Exception):
    """A task failed, or would be deferred."""


class Connection:
    """A connection of the environment, as `AIRFLOW_CONN_...` has it."""

    def __init__(self, conn_id: str) -> None:
        self.conn_id = conn_id
        self.extra_dejson = json.loads(os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"])["extra"]


class BaseHook:
    """Finds connections."""

    @staticmethod
    def get_connection(conn_id: str) -> Connection:
        return Connection(conn_id)


class BaseOperator:
    """A task."""

    def __init__(self, *, task_id: str, poke_interval: float = 0.0) -> None:
        self.task_id, self.poke_interval, self.timeout = task_id, poke_interval, 0.0
        self.log = logging.getLogger(task_id)

    def defer(self, **_: object) -> None:
        raise AirflowError(f"{self.task_id} would wait in the triggerer")


class _Trigger:
    """Nothing is waited for."""


def provider(patch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Return the operator and the sensor of the provider, for the time of one test."""
    given: dict[str, dict[str, object]] = {
        "airflow": {},
        "airflow.sdk": {
            "BaseHook": BaseHook,
            "BaseOperator": BaseOperator,
            "BaseSensorOperator": BaseOperator,
            "Connection": Connection,
            "Context": dict,
        },
        "airflow.sdk.exceptions": {
            "AirflowException": AirflowError,
            "AirflowFailException": AirflowError,
        },
        "airflow.triggers": {},
        "airflow.triggers.base": {"BaseTrigger": _Trigger, "TriggerEvent": _Trigger},
    }
    for name, contents in given.items():
        module = ModuleType(name)
        vars(module).update(contents)
        patch.setitem(sys.modules, name, module)
    patch.syspath_prepend(PROVIDER)
    return (
        import_module("heartbeat_airflow.operators").DataChangeEventOperator,
        import_module("heartbeat_airflow.sensors").HeartbeatJobSensor,
    )

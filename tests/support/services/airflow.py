"""What the provider uses of Airflow's SDK, where no Airflow is installed.

`make airflow` tests it with a real Airflow. Here a task runs outside of a DAG and waits for nothing, and triggers run
without a triggerer.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
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

    @classmethod
    async def aget_connection(cls, conn_id: str) -> Connection:
        return cls.get_connection(conn_id)


class BaseOperator:
    """A task."""

    def __init__(self, *, task_id: str, poke_interval: float = 0.0) -> None:
        self.task_id, self.poke_interval, self.timeout = task_id, poke_interval, 0.0
        self.log = logging.getLogger(task_id)

    def defer(self, **_: object) -> None:
        raise AirflowError(f"{self.task_id} would wait in the triggerer")


class _Base:
    """A class of Airflow of which nothing is used."""


@dataclass
class TriggerEvent:
    """What a trigger fires with."""

    payload: Mapping[str, object]


class AssetState:
    """The state of an asset, in memory."""

    def __init__(self, name: str) -> None:
        self._kept: dict[str, object] = {}

    async def aget(self, key: str) -> object:
        return self._kept.get(key)

    async def aset(self, key: str, value: object) -> None:
        self._kept[key] = value


@dataclass(frozen=True)
class Provider:
    """What the provider offers."""

    operator: Any
    sensor: Any
    tick_trigger: Any
    job_trigger: Any
    event_trigger: Any


def provider(patch: pytest.MonkeyPatch) -> Provider:
    """Return the classes of the provider, for the time of one test."""
    given: dict[str, dict[str, object]] = {
        "airflow": {},
        "airflow.sdk": {
            "Asset": _Base,
            "AssetWatcher": _Base,
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
        "airflow.sdk.execution_time": {},
        "airflow.sdk.execution_time.context": {"AssetStateStoreAccessor": AssetState},
        "airflow.triggers": {},
        "airflow.triggers.base": {
            "BaseEventTrigger": _Base,
            "BaseTrigger": _Base,
            "TriggerEvent": TriggerEvent,
        },
        "airflow.triggers.shared_stream": {"AdvanceItem": _Base, "SharedStreamProducer": _Base},
    }
    for name, contents in given.items():
        module = ModuleType(name)
        vars(module).update(contents)
        patch.setitem(sys.modules, name, module)
    patch.syspath_prepend(PROVIDER)
    return Provider(
        operator=import_module("heartbeat_airflow.operators").DataChangeEventOperator,
        sensor=import_module("heartbeat_airflow.sensors").HeartbeatJobSensor,
        tick_trigger=import_module("heartbeat_airflow.triggers").TickTrigger,
        job_trigger=import_module("heartbeat_airflow.triggers").JobTrigger,
        event_trigger=import_module("heartbeat_airflow.assets").DataChangeEventTrigger,
    )

"""Reads whether the engine of a state directory can be used, without Spark and without a lock."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.config.load import Settings
from harness.context import wanted_engine
from harness.errors import ConfigurationError
from harness.platform.process_tree import resident_bytes
from harness.platform.spark.engine import EngineRecord, engine_folder
from harness.platform.spark.engine_process import greets

#: A server greets at once, however much it works.
SECONDS_TO_GREET = 5.0


class Condition(StrEnum):
    """What can be determined about an engine from outside."""

    RUNNING = "running"
    #: Its processes go on, and it does not greet.
    FROZEN = "frozen"
    #: It has died; its record is left.
    ENDED = "ended"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """The engine of a state directory, as it is now."""

    condition: Condition
    record: EngineRecord | None = None
    #: Whether a process uses it.
    is_used: bool = False
    #: What its server has in memory, where that can be read.
    memory: int | None = None
    #: Whether a command would request these settings and this version; ``None`` if unknown.
    is_wanted: bool | None = None


def read_engine(home: Path, settings: Settings | None) -> EngineState:
    """Read the state of an engine.

    Args:
        home: The state directory.
        settings: The configuration that a command would have, if it can be read.
    """
    folder = engine_folder(home)
    record = folder.record()
    if record is None:
        return EngineState(condition=Condition.NONE)
    if not record.is_alive:
        return EngineState(condition=Condition.ENDED, record=record)
    has_greeted = greets(record.port, within=SECONDS_TO_GREET)
    return EngineState(
        condition=Condition.RUNNING if has_greeted else Condition.FROZEN,
        record=record,
        is_used=folder.has_users,
        memory=resident_bytes(record.server),
        is_wanted=_is_wanted(record, settings),
    )


def _is_wanted(record: EngineRecord, settings: Settings | None) -> bool | None:
    if settings is None:
        return None
    try:
        return record.settings == wanted_engine(settings).checksum
    except ConfigurationError:
        return None

"""Shows the state of the engine; its token is never shown."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Console

from harness.cli.views.terminal import Cell, Column, print_sentence, print_table
from harness.config.model import EngineKeys
from harness.inspect.engine import SECONDS_TO_GREET, Condition, EngineState
from harness.platform.format import age, instant, size
from harness.platform.spark.engine import EngineRecord

_TITLES = {
    Condition.RUNNING: ("the engine runs", "bold green"),
    Condition.FROZEN: (f"the engine does not answer within {SECONDS_TO_GREET:g} s", "bold red"),
    Condition.ENDED: ("no engine runs; the last one died and left its record", "bold"),
    Condition.NONE: ("no engine runs", "bold"),
}
_SETTINGS = {
    True: "those of a command that starts now",
    False: "others, or of another version: the next command that needs Spark replaces it",
    None: "cannot be compared: profiles.yml cannot be read",
}


def as_json(state: EngineState, keys: EngineKeys) -> dict[str, object]:
    """Return the state as one object for scripts."""
    record = state.record
    return {
        "state": state.condition.value,
        "owner": record and record.owner,
        "server": record and record.server,
        "port": record and record.port,
        "started_at": record and record.started_at,
        "in_use": state.is_used,
        "memory_bytes": state.memory,
        "settings_match": state.is_wanted,
        "mode": keys.mode.value,
        "idle_minutes": keys.idle_minutes,
    }


def show(console: Console, state: EngineState, keys: EngineKeys, now: datetime) -> None:
    """Print one line with the state, and what is known in a few aligned lines."""
    print_sentence(console, _TITLES[state.condition])
    facts = [
        *(_facts(state, state.record, now) if state.record else ()),
        ("configured", f"engine.mode: {keys.mode}, engine.idle_minutes: {keys.idle_minutes:g}"),
    ]
    columns = (Column(title=""), Column(title="", may_wrap=True))
    rows: list[list[Cell]] = [[(name, "dim"), text] for name, text in facts]
    print_table(console, columns, rows, has_header=False)


def _facts(state: EngineState, record: EngineRecord, now: datetime) -> Iterator[tuple[str, str]]:
    started = datetime.fromisoformat(record.started_at)
    yield "server", f"pid {record.server}, port {record.port} of localhost"
    yield "owner", f"pid {record.owner}"
    yield "started", f"{instant(started, now)}, {age(started, now)} ago"
    if state.condition is Condition.ENDED:
        return
    yield "in use", "by a process" if state.is_used else "by no process"
    yield "memory", "unknown" if state.memory is None else size(state.memory)
    yield "settings", _SETTINGS[state.is_wanted]

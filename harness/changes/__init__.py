"""Data-change events for Python: what producers register, what a job is handed, what changed."""

from harness.changes.answer import Changed
from harness.changes.asking import events
from harness.changes.event import ChangeEvent
from harness.changes.handed import read
from harness.changes.registering import register
from harness.changes.rows import changed_rows, stop_when_nothing
from harness.sense.types import Operation, TableFormat

__all__ = [
    "ChangeEvent",
    "Changed",
    "Operation",
    "TableFormat",
    "changed_rows",
    "events",
    "read",
    "register",
    "stop_when_nothing",
]

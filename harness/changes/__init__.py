"""Data-change events for Python: what producers register, and what a job is handed."""

from harness.changes.asking import events
from harness.changes.event import ChangeEvent
from harness.changes.handed import read
from harness.changes.registering import register
from harness.sense.types import Operation, TableFormat

__all__ = ["ChangeEvent", "Operation", "TableFormat", "events", "read", "register"]

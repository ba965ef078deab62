"""Data-change events for Python: what producers register, and what a job is handed."""

from harness.changes.event import ChangeEvent
from harness.changes.registering import register
from harness.sense.types import Operation, TableFormat

__all__ = ["ChangeEvent", "Operation", "TableFormat", "register"]

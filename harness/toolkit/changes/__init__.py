"""Data-change events for Python: register them, read those of a run, get the rows that changed.

In: events, or a table and a range. Out: inbox messages, events, data frames of changed rows.
Imports ``events``, ``store``, ``record`` and the readers of ``sense``; no other step of a tick.
"""

from harness.events.event import ChangeEvent, Operation, TableFormat
from harness.toolkit.changes.answer import Changed
from harness.toolkit.changes.registration import register
from harness.toolkit.changes.rows import changed_rows, stop_when_nothing
from harness.toolkit.changes.run_payload import read
from harness.toolkit.changes.search import events

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

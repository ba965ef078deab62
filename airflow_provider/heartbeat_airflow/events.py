"""Passes lists of data-change events from task to task, as XComs and as one argument of a command.

Needs nothing but the standard library, so that a Spark job may import it, too.
"""

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Protocol

#: One data-change event: its `event_id` and its nine fields.
Event = Mapping[str, object]

#: Linux lets one argument of a command have 128 KiB, with the zero at its end.
MOST_BYTES = 131_071
#: What an argument of that size may decompress to; a list of real events is far smaller.
_MOST_JSON_BYTES = 64 * 1024 * 1024


class _ClusterNames(type):
    def __getattr__(cls, name: str) -> str:
        if not name.isupper():
            raise AttributeError(name)
        return f"heartbeat_{name.lower()}"


class DataChangeEvent(metaclass=_ClusterNames):
    """Names clusters: `DataChangeEvent.CLUSTER1` is the connection `heartbeat_cluster1`.

    The connection is not read: a DAG file may not request one while it is parsed, so a missing one
    is detected when a task runs.
    """


class TaskInstance(Protocol):
    """The requests to Airflow's task instance."""

    def xcom_pull(self, task_ids: str) -> object:
        """Return what a task has pushed."""
        ...


def events_exist(task_id: str, *, ti: TaskInstance) -> bool:
    """Return whether a task has pushed any event; for a ShortCircuitOperator.

    Args:
        task_id: The task with a DataChangeEventOperator.
        ti: Given by Airflow.
    """
    return bool(ti.xcom_pull(task_ids=task_id))


def encode_events(events: Sequence[Event] | None, most_bytes: int = MOST_BYTES) -> str:
    """Return events as one word that every shell and every command line leaves as it is.

    It is the JSON list, compressed and in the URL-safe alphabet of base64.

    Args:
        events: What a DataChangeEventOperator has pushed.
        most_bytes: How long the word may be.

    Raises:
        ValueError: Nothing was pushed, or the word would be too long.
    """
    if events is None:
        raise ValueError(
            "There are no events to encode: name the task of the DataChangeEventOperator in "
            "xcom_pull(task_ids=...), and let this task run after it"
        )
    text = json.dumps(list(events), separators=(",", ":"), allow_nan=False)
    word = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    if len(word) > most_bytes:
        raise ValueError(
            f"{len(events)} events take {len(word)} bytes, and one argument of a command may have "
            f"{most_bytes}: let the interval be shorter, or give the job the table and the "
            "interval, and let it ask with harness.toolkit.changes.events(...)"
        )
    return word


def decode_events(word: str) -> list[dict[str, object]]:
    """Return the events that `encode_events` has made a word of.

    Raises:
        ValueError: The word is not one of those, or was cut.
    """
    try:
        unfolding = zlib.decompressobj()
        packed = base64.b64decode(word.encode("ascii"), altchars=b"-_", validate=True)
        text = unfolding.decompress(packed, _MOST_JSON_BYTES)
        events = json.loads(text) if unfolding.eof else None
    except (binascii.Error, zlib.error, ValueError):
        events = None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise ValueError(
            f"This is not a list of encoded events, or only a part of one: '{word[:40]}'; give the "
            "argument what encode_events(...) returned, as it is"
        )
    return events


def distinct(events: Sequence[Event]) -> list[Event]:
    """Return each event once, where it came first, and as it came last: its tags may have grown."""
    return list({str(event["event_id"]): event for event in events}.values())

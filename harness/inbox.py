"""The inbox: files that other processes drop, without a JVM and while a tick runs.

A message is written whole, forced to the disk, and only then given its name; the tick that folds
it in removes it after what it says is in a ledger. Folding one in twice is folding it in once.
"""

import contextlib
import json
import logging
import os
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from harness.durable import Disk, write_durably
from harness.errors import StateError
from harness.files import unwritable
from harness.tables import Consumed

log = logging.getLogger(__name__)


class MessageKind(StrEnum):
    """What somebody wants the next tick to know."""

    #: A job's last task says that its run succeeded.
    COMPLETE = "complete"
    #: An operator wants a failed job's events to be run again.
    RETRY = "retry"
    #: An operator gives a failed job's events up.
    RELEASE = "release"
    #: A job on its own schedule was handed events of one upstream.
    ACQUIRED = "acquired"
    #: A job on its own schedule has processed what it was handed.
    PROCESSED = "processed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One file of the inbox."""

    kind: MessageKind
    job_id: int
    run_id: int | None = None
    intent_id: str | None = None
    #: The attempt that an operator means; with none, whichever is held.
    attempt: int | None = None
    sent_at: datetime
    #: Who asks for it, and why.
    sent_by: str | None = None
    reason: str | None = None
    #: The job's name; known to whoever has read the controls.
    job_name: str | None = None
    #: What a job on its own schedule was handed, or has processed.
    taken: Consumed | None = None
    #: The file it was read from; ``None`` before it is sent.
    path: Path | None = None


def send(inbox: Path, message: Message, *, disk: Disk = os) -> Path:
    """Put a message into the inbox: write, force to disk, rename.

    Raises:
        StateError: The folder cannot be written.
    """
    content = asdict(message)
    content["sent_at"] = message.sent_at.isoformat()
    del content["path"]
    path = inbox / f"{message.sent_at:%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}.json"
    try:
        write_durably(path, json.dumps(content), disk=disk)
    except OSError as error:
        reason = error.strerror or error
        raise StateError(f"The message cannot be left in {inbox}: {reason}") from error
    return path


def receive(inbox: Path) -> list[Message]:
    """Read every message, oldest first; what cannot be read is set aside and logged.

    Raises:
        StateError: The folder cannot be written.
    """
    if not inbox.is_dir():
        return []
    messages = []
    for path in sorted(inbox.glob("*.json")):
        try:
            messages.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            _set_aside(path)
            log.warning("inbox: %s cannot be read (%s) and is set aside", path.name, error)
    return messages


def peek(inbox: Path) -> list[Message]:
    """Read every message, oldest first, beside a tick that may take them out meanwhile."""
    messages = []
    for path in sorted(inbox.glob("*.json")):
        # What cannot be read is left for the tick to set aside; what is gone is in a ledger.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            messages.append(_read(path))
    return messages


def remove(message: Message) -> None:
    """Take a message out of the inbox, once a ledger has what it says.

    Raises:
        StateError: The folder cannot be written; the next tick takes it in again, and once.
    """
    if message.path:
        try:
            message.path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(message.path.parent, error) from error


def _set_aside(path: Path) -> None:
    try:
        path.rename(path.with_suffix(".unreadable"))
    except OSError as error:
        raise unwritable(path.parent, error) from error


def _read(path: Path) -> Message:
    content = json.loads(path.read_text())
    kind = MessageKind(content["kind"])
    taken = content.get("taken")
    return Message(
        kind=kind,
        job_id=int(content["job_id"]),
        run_id=_number(content.get("run_id")),
        intent_id=content.get("intent_id"),
        attempt=_number(content.get("attempt")),
        sent_at=datetime.fromisoformat(content["sent_at"]),
        sent_by=content.get("sent_by"),
        reason=content.get("reason"),
        job_name=content.get("job_name"),
        taken=Consumed(**taken) if taken else None,
        path=path,
    )


def _number(value: str | int | None) -> int | None:
    return None if value is None else int(value)

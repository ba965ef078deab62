"""The inbox: what other processes leave for the next tick, without a JVM and while one runs.

On the local target it is a folder of files, in a workspace a table. A file is written completely,
forced to the disk, and only then given its name; the tick that applies it removes it after its
content is in a ledger. Applying one twice has no further effect.
"""

import contextlib
import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from harness.errors import ConfigurationError, StateError
from harness.platform.files import Disk, unwritable, write_durably
from harness.store.quarantine import Quarantine, read_regular
from harness.store.rows import Consumed, Run, RunStatus

#: One tick reads no more messages, and no more bytes of them; the next one reads the rest.
MESSAGES_PER_TICK = 10_000
BYTES_PER_TICK = 64 * 2**20
_LARGEST_FILE = 2**20
_LARGEST_ID = 2**63 - 1
_LONGEST_TEXT = 4_000
#: It has the cells of a control row in it.
_LONGEST_UPSTREAM = 300_000
#: A clock may be wrong, but no instant outside of these is a message's.
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)
#: Controls but tab and line ends, and lone surrogates, which have no UTF-8.
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_DIGITS = re.compile("[0-9]{1,19}")


class MessageKind(StrEnum):
    """The kinds of messages to the next tick."""

    #: A job's last task reports that its run succeeded.
    COMPLETE = "complete"
    #: An operator wants a failed job's events to be run again.
    RETRY = "retry"
    #: An operator discards a failed job's events.
    RELEASE = "release"
    #: Events of one upstream were passed to a pull consumer.
    ACQUIRED = "acquired"
    #: A pull consumer has processed what was passed to it.
    PROCESSED = "processed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One file of the inbox."""

    kind: MessageKind
    job_id: int
    run_id: int | None = None
    intent_id: str | None = None
    #: The attempt that is meant; the command line always names it where it has one.
    attempt: int | None = None
    #: The status of that attempt as its sender read it.
    seen_status: RunStatus | None = None
    sent_at: datetime
    #: Who requested it, and why.
    sent_by: str | None = None
    reason: str | None = None
    #: The job's name, where its sender has read the controls.
    job_name: str | None = None
    #: What was passed to a pull consumer, or what it has processed.
    taken: Consumed | None = None
    #: The file it was read from; ``None`` before it is sent.
    path: Path | None = None


class Inbox(Protocol):
    """Where messages wait: a folder of the local target, or a table of a workspace."""

    def send(self, message: Message) -> str:
        """Leave a message for the next tick, and return its name.

        Raises:
            ConfigurationError: No tick could read it, such as a run id that no run can have.
            StateError: The inbox cannot be written.
        """
        ...

    def send_events(self, lines: str, *, at: datetime) -> str:
        """Leave data-change events for the next tick, and return their name.

        Args:
            lines: One JSON object on each line.
            at: The instant.

        Raises:
            StateError: The inbox cannot be written.
        """
        ...

    def peek(self) -> list[Message]:
        """Read every message, oldest first, beside a tick that may take them out meanwhile.

        Raises:
            StateError: The inbox cannot be read.
        """
        ...

    def create(self) -> None:
        """Make it, unless it is there.

        Raises:
            StateError: It cannot be made.
        """
        ...

    def collect(self) -> None:
        """Bring what waits into the folder from which a tick reads.

        Raises:
            StateError: The inbox cannot be read, or the folder not be written.
        """
        ...

    def has_news(self) -> bool:
        """Return whether something was left since the last ``collect``, if checking is free."""
        ...

    def settle(self) -> None:
        """Remove permanently what has left the folder, because a ledger has its content.

        Raises:
            StateError: The inbox cannot be written; the next tick ingests it again, and once.
        """
        ...


class FolderInbox:
    """The inbox of the local target.

    Args:
        folder: The folder, from which a tick reads directly.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: What lay there when a tick began to read; it may stay, as what no tick can apply.
        self._collected: frozenset[str] = frozenset()

    def send(self, message: Message) -> str:
        """Put a message into the folder: write, force to disk, rename."""
        return send(self.folder, message).name

    def send_events(self, lines: str, *, at: datetime) -> str:
        """Put events into the folder as one file: write, force to disk, rename."""
        name = name_of_events(at, uuid.uuid4().hex[:8])
        try:
            write_durably(self.folder / name, lines)
        except OSError as error:
            reason = error.strerror or error
            raise StateError(
                f"The events cannot be left in {self.folder} ({reason}):"
                " make room or make it writable"
            ) from error
        return name

    def peek(self) -> list[Message]:
        """Read every message, oldest first."""
        return peek(self.folder)

    def create(self) -> None:
        """Do nothing: leaving a file makes the folder."""

    def collect(self) -> None:
        """Note what is there; the files are where a tick reads them."""
        self._collected = self._listed()

    def has_news(self) -> bool:
        """Return whether the folder has a file that was not there at the last ``collect``."""
        return not self._listed() <= self._collected

    def _listed(self) -> frozenset[str]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return frozenset()
        return frozenset(name for name in names if name.endswith((".json", ".jsonl")))

    def settle(self) -> None:
        """Do nothing: a file that is removed is gone."""


def naming_attempt(message: Message, seen: Run) -> Message:
    """Return the message as one about this attempt alone, so that it counts once."""
    return replace(
        message, intent_id=seen.intent_id, attempt=seen.attempt, seen_status=seen.run_status
    )


def name_of_events(at: datetime | None, unique: str) -> str:
    """Return the name of a file with data-change events; without an instant it is the oldest."""
    return f"registered-{_stamp(at)}-{unique}.jsonl"


def name_of_message(at: datetime | None, unique: str) -> str:
    """Return the name of a message's file; without an instant it is the oldest."""
    return f"{_stamp(at)}-{unique}.json"


def _stamp(at: datetime | None) -> str:
    return "0" if at is None else f"{at:%Y%m%dT%H%M%S%f}"


class NoMessageError(ValueError):
    """What a file holds is no message; the text is one sentence."""


def send(inbox: Path, message: Message, *, disk: Disk = os) -> Path:
    """Put a message into the inbox: write, force to disk, rename.

    Raises:
        ConfigurationError: No tick could read it, such as a run id that no run can have.
        StateError: The folder cannot be written.
    """
    path = inbox / name_of_message(message.sent_at, uuid.uuid4().hex[:8])
    _write(path, message, disk)
    return path


def bind(message: Message, seen: Run) -> Message:
    """Let a message that names no attempt be about this one permanently, in its file, too.

    Raises:
        StateError: The folder cannot be written.
    """
    named = naming_attempt(message, seen)
    if message.path:
        _write(message.path, named)
    return named


def checked_json(message: Message) -> dict[str, object]:
    """Return a message as its file has it.

    Raises:
        ConfigurationError: No tick could read it, such as a run id that no run can have.
    """
    content = asdict(message)
    content["sent_at"] = message.sent_at.isoformat()
    del content["path"]
    try:
        parse_message(json.dumps(content).encode())
    except NoMessageError as error:
        raise ConfigurationError(
            f"This message cannot be left: {error}; correct its arguments"
        ) from error
    return content


def _write(path: Path, message: Message, disk: Disk = os) -> None:
    text = json.dumps(checked_json(message))
    try:
        write_durably(path, text, disk=disk)
    except OSError as error:
        reason = error.strerror or error
        raise StateError(
            f"The message cannot be left in {path.parent} ({reason}): make room or make it writable"
        ) from error


def receive(inbox: Path, quarantine: Quarantine | None = None) -> list[Message]:
    """Read the messages of one tick, oldest first; never fails on what is in the folder.

    Args:
        inbox: The folder; one that is not there is empty.
        quarantine: Takes what cannot be read; without one it is left where it is.
    """
    messages: list[Message] = []
    left = BYTES_PER_TICK
    for path in _files(inbox, quarantine):
        if len(messages) >= MESSAGES_PER_TICK or left < 0:
            break
        try:
            content = read_regular(path, _LARGEST_FILE)
            left -= len(content)
            messages.append(replace(parse_message(content), path=path))
        except FileNotFoundError:
            # A tick has taken it out meanwhile: it is in a ledger.
            continue
        except (OSError, ValueError) as error:
            if quarantine is not None:
                quarantine.put(path, str(error))
    return messages


def peek(inbox: Path) -> list[Message]:
    """Read every message, oldest first, beside a tick that may take them out meanwhile."""
    messages = []
    for path in _files(inbox, None):
        # What cannot be read is left for the tick to set aside; what is gone is in a ledger.
        with contextlib.suppress(OSError, ValueError):
            messages.append(replace(parse_message(read_regular(path, _LARGEST_FILE)), path=path))
    return messages


def remove(message: Message) -> None:
    """Remove a message from the inbox, once a ledger has its content.

    Raises:
        StateError: The folder cannot be written; the next tick ingests it again, and once.
    """
    if message.path:
        try:
            message.path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(message.path.parent, error) from error


def _files(inbox: Path, quarantine: Quarantine | None) -> list[Path]:
    try:
        names = os.listdir(inbox)
    except FileNotFoundError:
        return []
    except OSError as error:
        if quarantine is not None:
            quarantine.note(inbox, f"the folder cannot be listed: {error.strerror or error}")
        return []
    return [inbox / name for name in sorted(names) if name.endswith(".json")]


def parse_message(content: bytes) -> Message:
    """Read the bytes of one message; fields that are not known are ignored.

    Raises:
        NoMessageError: It is not a JSON object, or a field is missing, mistyped or out of range.
    """
    said = _Fields(object_in(content))
    return Message(
        kind=_kind(said.text("kind", is_needed=True)),
        job_id=_needed("job_id", said.number("job_id")),
        run_id=said.number("run_id"),
        intent_id=said.text("intent_id"),
        attempt=said.number("attempt"),
        seen_status=_status(said.text("seen_status")),
        sent_at=_instant(said.text("sent_at", is_needed=True)),
        sent_by=said.text("sent_by"),
        reason=said.text("reason"),
        job_name=said.text("job_name"),
        taken=_consumed(said.get("taken")),
    )


def object_in(content: bytes) -> Mapping[str, object]:
    """Read the one JSON object that a message is.

    Raises:
        NoMessageError: It is something else, or a key stands in it twice.
    """
    try:
        said = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_once_each,
            parse_constant=_no_number,
        )
    except UnicodeDecodeError:
        raise NoMessageError("it is not UTF-8 text") from None
    except RecursionError:
        raise NoMessageError("it is nested too deeply") from None
    except NoMessageError:
        raise
    except ValueError as error:
        raise NoMessageError(f"it is not JSON ({error})") from None
    if not isinstance(said, dict):
        raise NoMessageError("a message is a JSON object")
    return said


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise NoMessageError("a key stands in it twice")
    return content


def _no_number(text: str) -> object:
    raise NoMessageError(f"{text} is not a JSON number")


class _Fields:
    """Reads typed fields of one object."""

    def __init__(self, content: Mapping[str, object]) -> None:
        self._said = content

    def get(self, name: str) -> object:
        return self._said.get(name)

    def text(
        self, name: str, *, is_needed: bool = False, longest: int = _LONGEST_TEXT
    ) -> str | None:
        value = self._said.get(name)
        if value is None and not is_needed:
            return None
        if not isinstance(value, str):
            raise NoMessageError(f"{name} has to be text")
        if len(value) > longest:
            raise NoMessageError(f"{name} has {len(value):,} characters; {longest:,} are allowed")
        if _NOT_TEXT.search(value):
            raise NoMessageError(f"{name} has a character in it that is not text")
        return value

    def number(self, name: str, *, least: int = 1) -> int | None:
        value = self._said.get(name)
        if value is None:
            return None
        # Ids are text where a script has written them.
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise NoMessageError(f"{name} has to be an integer")
        if not least <= value <= _LARGEST_ID:
            raise NoMessageError(f"{name} has to be {least} to {_LARGEST_ID}")
        return value


def _needed(name: str, value: int | None) -> int:
    if value is None:
        raise NoMessageError(f"{name} is missing")
    return value


def _kind(text: str | None) -> MessageKind:
    try:
        return MessageKind(text or "")
    except ValueError:
        raise NoMessageError(f"kind is not one of {', '.join(MessageKind)}") from None


def _status(text: str | None) -> RunStatus | None:
    try:
        return None if text is None else RunStatus(text)
    except ValueError:
        raise NoMessageError(f"seen_status is not one of {', '.join(RunStatus)}") from None


def _instant(text: str | None) -> datetime:
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        raise NoMessageError("sent_at is not an ISO 8601 instant") from None
    if at.tzinfo is None:
        raise NoMessageError("sent_at has no time zone")
    if not _EARLIEST <= at < _LATEST:
        raise NoMessageError(f"sent_at lies outside of {_EARLIEST:%Y} to {_LATEST:%Y}")
    return at.astimezone(UTC)


def _consumed(value: object) -> Consumed | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise NoMessageError("taken has to be an object")
    content = _Fields(value)
    upstream_id = content.text("upstream_id", is_needed=True, longest=_LONGEST_UPSTREAM)
    return Consumed(
        upstream_id=upstream_id or "",
        from_tick=_needed("from_tick", content.number("from_tick", least=-1)),
        through_tick=_needed("through_tick", content.number("through_tick", least=-1)),
    )

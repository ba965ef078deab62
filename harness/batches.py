"""Batches of registered events in the inbox: files of JSON lines, and folders that Spark writes.

A file is written whole, forced to the disk, and only then given its name. A folder counts once the
file is in it that its writer leaves last. Both are removed after a ledger has what they say.
"""

import json
import logging
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.changes.checking import Unreadable, check
from harness.changes.event import ChangeEvent
from harness.durable import write_durably
from harness.errors import StateError
from harness.files import unwritable

log = logging.getLogger(__name__)

#: The files of one tick have no more events than this together, unless the first one alone has.
EVENTS_PER_TICK = 200_000
_FILES = "registered-*.jsonl"
_FOLDERS = "registered-*"
#: What a writer of a folder leaves last.
_COMPLETE = "_SUCCESS"
_UNREADABLE = ".unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one producer has registered at once."""

    path: Path
    #: Not later than the instant at which a tick can have taken it in.
    sent_at: datetime
    events: tuple[ChangeEvent, ...]


def send_batch(inbox: Path, events: Iterable[ChangeEvent], *, at: datetime) -> Path:
    """Leave events in the inbox as one file.

    Raises:
        StateError: The folder cannot be written.
    """
    path = inbox / f"registered-{at:%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}.jsonl"
    lines = (json.dumps(_told(event)) for event in events)
    try:
        write_durably(path, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        reason = error.strerror or error
        raise StateError(f"The events cannot be left in {inbox}: {reason}") from error
    return path


def _told(event: ChangeEvent) -> dict[str, object]:
    return {name: value for name, value in event.to_json().items() if value not in (None, {})}


def waiting(inbox: Path) -> list[Path]:
    """Return the batches that the next tick takes in, oldest first."""
    folders = [path for path in inbox.glob(_FOLDERS) if (path / _COMPLETE).exists()]
    folders = [path for path in folders if path.suffix != _UNREADABLE]
    return sorted([*inbox.glob(_FILES), *folders], key=lambda path: (_sent_at(path), path.name))


def receive_batches(inbox: Path, *, at: datetime) -> list[Batch]:
    """Read what waits, as much as one tick takes; what cannot be read is set aside and logged.

    Raises:
        StateError: The folder cannot be written.
    """
    batches: list[Batch] = []
    for path in waiting(inbox):
        batch = _batch(path, at)
        if batch is None:
            continue
        if batches and sum(len(each.events) for each in (*batches, batch)) > EVENTS_PER_TICK:
            break
        batches.append(batch)
    return batches


def remove_batches(batches: Sequence[Batch]) -> None:
    """Take batches out of the inbox, once a ledger has what they say.

    Raises:
        StateError: The folder cannot be written; the next tick takes them in again, and once.
    """
    for batch in batches:
        try:
            if batch.path.is_dir():
                _remove_folder(batch.path)
            else:
                batch.path.unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(batch.path.parent, error) from error


def _remove_folder(folder: Path) -> None:
    # What is half removed is no batch any more.
    (folder / _COMPLETE).unlink(missing_ok=True)
    shutil.rmtree(folder)


def _batch(path: Path, at: datetime) -> Batch | None:
    try:
        sent_at = _sent_at(path)
        lines = list(_lines(path))
        checked = check(lines, at=max(at, sent_at))
        reason = "; ".join(checked.problems[:3])
    except (OSError, ValueError) as error:
        reason = str(error)
    else:
        if not reason:
            # Taken in twice, an event that nobody has named has to have the same name.
            places = (place for place, _ in lines)
            return Batch(
                path=path,
                sent_at=min(at, sent_at),
                events=tuple(map(_named, checked.events, places)),
            )
    _set_aside(path)
    log.warning("inbox: %s cannot be read (%s) and is set aside", path.name, reason)
    return None


def _named(event: ChangeEvent, place: str) -> ChangeEvent:
    return event if event.event_id or event.snapshot_id else replace(event, event_id=place)


def _lines(path: Path) -> Iterator[tuple[str, object]]:
    for file in _files(path):
        name = str(file.relative_to(path.parent))
        yield from lines_of(file.read_bytes(), name)


def lines_of(content: bytes, name: str) -> Iterator[tuple[str, object]]:
    """Read JSON lines, each with its place; of a line that is none there is why."""
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            yield f"{name}:{number}", _read(line)


def _read(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Unreadable("this is no text in UTF-8")
    except ValueError as error:
        return Unreadable(f"this is no JSON object on a line of its own ({error})")
    except RecursionError:
        return Unreadable("this is nested too deeply")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    # Spark's own marks begin with a dot or an underscore.
    files = [each for each in sorted(path.iterdir()) if each.name[0] not in "._"]
    other = next((each for each in files if each.suffix != ".json"), None)
    if other is not None:
        raise ValueError(f"{path.name}/{other.name} is no file of JSON lines")
    return files


def _sent_at(path: Path) -> datetime:
    file = path / _COMPLETE if path.is_dir() else path
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _set_aside(path: Path) -> None:
    try:
        path.rename(path.with_name(path.name + _UNREADABLE))
    except OSError as error:
        raise unwritable(path.parent, error) from error

"""Batches of registered events in the inbox: files of JSON lines, and folders that Spark writes.

A file is written whole, forced to the disk, and only then given its name. A folder counts once the
file is in it that its writer leaves last. Both are removed after a ledger has their content.
"""

import contextlib
import json
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.events.event import ChangeEvent
from harness.events.validate import Unreadable, check
from harness.platform.files import unwritable
from harness.platform.text import escaped
from harness.store.inbox import Inbox
from harness.store.quarantine import Quarantine, UnreadableFileError, read_regular

#: The files of one tick have no more events than this together, unless the first one alone has.
EVENTS_PER_TICK = 200_000
#: A batch is read whole, so that it has to fit into memory.
LARGEST_BATCH = 256 * 2**20
MOST_FILES = 10_000
LONGEST_LINE = 16 * 2**20
_NAMES = "registered-*"
_FILE = ".jsonl"
#: What a writer of a folder leaves last.
_COMPLETE = "_SUCCESS"
#: How earlier versions set a batch aside.
_UNREADABLE = ".unreadable"
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one producer has registered at once."""

    path: Path
    #: Not later than the instant at which a tick can have ingested it.
    sent_at: datetime
    events: tuple[ChangeEvent, ...]


def send_batch(inbox: Inbox, events: Iterable[ChangeEvent], *, at: datetime) -> str:
    """Leave events in the inbox as one batch, and return its name.

    Raises:
        StateError: The inbox cannot be written.
    """
    lines = (json.dumps(_as_json(event)) for event in events)
    return inbox.send_events("".join(f"{line}\n" for line in lines), at=at)


def _as_json(event: ChangeEvent) -> dict[str, object]:
    return {name: value for name, value in event.to_json().items() if value not in (None, {})}


def waiting(inbox: Path) -> list[tuple[datetime, Path]]:
    """Return the batches that the next tick ingests, oldest first, and since when each waits."""
    found = []
    for path in inbox.glob(_NAMES):
        if path.suffix == _UNREADABLE:
            continue
        # A folder is not complete yet, or what it was is in a ledger meanwhile.
        with contextlib.suppress(OSError):
            is_folder = _is_folder(path)
            if path.suffix == _FILE or is_folder or path.is_symlink():
                found.append((_sent_at(path / _COMPLETE if is_folder else path), path))
    return sorted(found)


def unfinished(inbox: Path) -> list[Path]:
    """Return the folders that their writers have not completed, or that were half removed."""
    folders = []
    for path in sorted(inbox.glob(_NAMES)):
        with contextlib.suppress(OSError):
            if _is_folder(path) and path.suffix != _UNREADABLE and not (path / _COMPLETE).exists():
                folders.append(path)
    return folders


def receive_batches(
    inbox: Path, *, at: datetime, quarantine: Quarantine | None = None
) -> list[Batch]:
    """Read what waits, as much as one tick ingests; never fails on what is in the folder.

    A batch is ingested whole or not: one bad line quarantines it, with the line in the reason.

    Args:
        inbox: The folder.
        at: The tick's instant.
        quarantine: Takes what cannot be read.
    """
    quarantine = quarantine or Quarantine(inbox, at)
    batches: list[Batch] = []
    for sent_at, path in waiting(inbox):
        batch = _batch(path, sent_at, at, quarantine)
        if batch is None:
            continue
        if batches and sum(len(each.events) for each in (*batches, batch)) > EVENTS_PER_TICK:
            break
        batches.append(batch)
    return batches


def remove_batches(batches: Sequence[Batch]) -> None:
    """Remove batches from the inbox, once a ledger has their content.

    Raises:
        StateError: The folder cannot be written; the next tick ingests them again, and once.
    """
    for batch in batches:
        try:
            if _is_folder(batch.path):
                _remove_folder(batch.path)
            else:
                batch.path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise unwritable(batch.path.parent, error) from error


def _remove_folder(folder: Path) -> None:
    # What is half removed is no batch any more.
    (folder / _COMPLETE).unlink(missing_ok=True)
    shutil.rmtree(folder)


def _batch(path: Path, sent_at: datetime, at: datetime, quarantine: Quarantine) -> Batch | None:
    try:
        lines = list(_lines(path))
        checked = check(lines, at=max(at, sent_at))
        reason = "; ".join(checked.problems[:3])
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error)
    else:
        if not reason:
            # Ingested twice, an event without an id has to get the same one.
            places = (place for place, _ in lines)
            return Batch(
                path=path,
                sent_at=min(at, sent_at),
                events=tuple(map(_named, checked.events, places)),
            )
    quarantine.put(path, reason)
    return None


def _named(event: ChangeEvent, place: str) -> ChangeEvent:
    return event if event.event_id or event.snapshot_id else replace(event, event_id=place)


def _lines(path: Path) -> Iterator[tuple[str, object]]:
    left = LARGEST_BATCH
    for file in _files(path):
        content = read_regular(file, left)
        left -= len(content)
        # The place of an event may become its name, which a ledger accepts only as text.
        yield from lines_of(content, escaped(str(file.relative_to(path.parent))))


def lines_of(content: bytes, name: str) -> Iterator[tuple[str, object]]:
    """Read JSON lines, each with its place; of a line that is none there is why."""
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            yield f"{name}:{number}", _read(line)


def _read(line: bytes) -> object:
    try:
        if len(line) > LONGEST_LINE:
            return Unreadable(f"has {len(line):,} bytes; {LONGEST_LINE:,} are allowed")
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Unreadable("this is not UTF-8 text")
    except ValueError as error:
        return Unreadable(f"this is not a JSON object on a line of its own ({error})")
    except RecursionError:
        return Unreadable("this is nested too deeply")


def _files(path: Path) -> list[Path]:
    if not _is_folder(path):
        return [path]
    read_regular(path / _COMPLETE, LARGEST_BATCH)
    # Spark's own marks begin with a dot or an underscore.
    files = [each for each in sorted(path.iterdir()) if each.name[0] not in "._"]
    other = next((each for each in files if each.suffix != ".json"), None)
    if other is not None:
        raise UnreadableFileError(f"{path.name}/{other.name} is not a file of JSON lines")
    if len(files) > MOST_FILES:
        raise UnreadableFileError(f"it has {len(files):,} files; {MOST_FILES:,} are allowed")
    return files


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _sent_at(path: Path) -> datetime:
    seconds = path.lstat().st_mtime
    # A file may have any time; what an event gets is one that a ledger accepts.
    return datetime.fromtimestamp(min(max(seconds, _EARLIEST), _LATEST), UTC)

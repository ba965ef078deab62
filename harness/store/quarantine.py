"""Sets aside what is in the inbox and cannot be read: each item with its reason beside it.

Setting aside never stops a tick: what cannot be moved stays where it is and is reported again by
each tick. A link, a FIFO or a folder is moved as it is; nothing of it is opened.
"""

import json
import logging
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.platform.files import write_durably
from harness.platform.json_file import UNREADABLE
from harness.platform.text import escaped

log = logging.getLogger(__name__)

#: The folder of the inbox that has what was set aside.
FOLDER = "quarantine"
#: More items, or older ones, are removed, the oldest first.
MOST_ITEMS = 1_000
KEPT_FOR = timedelta(days=90)
_REASON = ".reason"
#: As much of a reason as is kept, and of a name as a file name can bear beside its prefix.
_LONGEST_REASON = 1_000
_LONGEST_NAME = 120
_ODD = re.compile(r"[^A-Za-z0-9._-]")


class UnreadableFileError(ValueError):
    """A file is of a kind, or of a size, that is never read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """One item that was set aside, or that should have been and cannot be moved."""

    #: Its name in the inbox, fit for a terminal.
    name: str
    since: datetime
    reason: str
    #: Where it is now.
    path: Path


class Quarantine:
    """Takes the unreadable items of one inbox during one tick.

    Args:
        inbox: The folder that they are in.
        at: The tick's instant.
    """

    def __init__(self, inbox: Path, at: datetime) -> None:
        self._folder = inbox / FOLDER
        self._at = at
        #: What this tick has met.
        self.items: list[Quarantined] = []

    def put(self, path: Path, reason: str) -> None:
        """Move an item out of the inbox and write its reason beside it; never raises."""
        message = escaped(reason)[:_LONGEST_REASON]
        place = self._folder / _unique(path.name, self._at)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.rename(place)
        except FileNotFoundError:
            # Its sender has taken it away meanwhile.
            return
        except OSError as error:
            place = path
            message = f"{message}; it cannot be set aside ({error.strerror or error}) and stays"
        item = self.note(path, message, place)
        if place != path:
            _write_reason(item)

    def note(self, path: Path, reason: str, place: Path | None = None) -> Quarantined:
        """Report an item that stays where it is, or that has been moved to another place."""
        item = Quarantined(
            name=escaped(path.name), since=self._at, reason=reason, path=place or path
        )
        self.items.append(item)
        log.warning("inbox: %s cannot be read (%s) and is set aside", item.name, reason)
        return item

    def tidy(self) -> None:
        """Remove the oldest items beyond what is kept; never raises."""
        newest_first = quarantined(self._folder.parent)[::-1]
        for number, item in enumerate(newest_first):
            if number >= MOST_ITEMS or self._at - item.since > KEPT_FOR:
                _remove(item.path)


def quarantined(inbox: Path) -> list[Quarantined]:
    """Return what was set aside in an inbox, oldest first; never raises."""
    folder = inbox / FOLDER
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [_item(folder / name) for name in names if not name.endswith(_REASON)]


def quarantined_settings(file: Path, sentences: Iterable[str]) -> list[Quarantined]:
    """Return what is left out of a configuration file, since it was saved; never raises."""
    since = _changed_at(file)
    return [
        Quarantined(name=file.name, since=since, reason=escaped(each), path=file)
        for each in sentences
    ]


def read_regular(path: Path, most_bytes: int) -> bytes:
    """Read a regular file of a bounded size; a link, a FIFO or a device is not opened.

    Raises:
        OSError: It cannot be read.
        UnreadableFileError: It is no regular file, or larger than allowed.
    """
    _require_regular(path.lstat())
    # Meanwhile it may have become a link or a FIFO: neither is followed nor waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _require_regular(found)
        # It may grow while it is read.
        content = b"" if found.st_size > most_bytes else file.read(most_bytes + 1)
    if found.st_size > most_bytes or len(content) > most_bytes:
        size = max(found.st_size, len(content))
        raise UnreadableFileError(f"it has {size:,} bytes; {most_bytes:,} are allowed")
    return content


def _require_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableFileError(f"it is {_kind(found.st_mode)}, not a regular file")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def _unique(name: str, at: datetime) -> str:
    return f"{at:%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}-{_ODD.sub('_', name)[-_LONGEST_NAME:]}"


def _write_reason(item: Quarantined) -> None:
    content = {"name": item.name, "since": item.since.isoformat(), "reason": item.reason}
    try:
        write_durably(item.path.with_name(item.path.name + _REASON), json.dumps(content))
    except OSError as error:
        log.warning("inbox: the reason of %s cannot be written: %s", item.name, error)


def _item(path: Path) -> Quarantined:
    try:
        content = json.loads(read_regular(path.with_name(path.name + _REASON), 100_000))
        return Quarantined(
            name=escaped(str(content["name"])),
            since=datetime.fromisoformat(content["since"]).astimezone(UTC),
            reason=escaped(str(content["reason"])),
            path=path,
        )
    except UNREADABLE:
        # The process died between moving it and writing why.
        reason = "its reason was not recorded"
        return Quarantined(
            name=escaped(path.name), since=_changed_at(path), reason=reason, path=path
        )


def _changed_at(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.lstat().st_ctime, UTC)
    except (OSError, ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)


def _remove(path: Path) -> None:
    try:
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
        path.with_name(path.name + _REASON).unlink(missing_ok=True)
    except OSError as error:
        log.warning("inbox: %s cannot be removed: %s", path, error)

"""What is left on a disk when the power goes in the middle of leaving a message."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.platform.files import write_durably
from harness.store.inbox import Message, MessageKind, receive, send

MESSAGE = Message(kind=MessageKind.RETRY, job_id=7, sent_at=datetime(2026, 3, 1, 8, tzinfo=UTC))
#: Shorter than a message, so that each takes several calls.
_LONGEST_WRITE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One call that the disk has taken."""

    call: str
    path: Path
    content: bytes = b""
    target: Path | None = None


class WatchedDisk:
    """Executes each call, in pieces, and records it; full after so many calls."""

    def __init__(self, calls_before_full: int | None = None) -> None:
        self.done: list[Done] = []
        self._left = calls_before_full
        self._paths: dict[int, Path] = {}

    def mkdir(self, path: Path, mode: int, /) -> None:
        self._note(Done(call="mkdir", path=path))
        os.mkdir(path, mode)

    def open(self, path: Path, flags: int, mode: int = 0o777, /) -> int:
        descriptor = os.open(path, flags, mode)
        self._paths[descriptor] = path
        if flags & os.O_CREAT:
            self._note(Done(call="create", path=path))
        return descriptor

    def write(self, descriptor: int, content: bytes, /) -> int:
        written = content[:_LONGEST_WRITE]
        self._note(Done(call="write", path=self._paths[descriptor], content=written))
        return os.write(descriptor, written)

    def fsync(self, descriptor: int, /) -> None:
        self._note(Done(call="fsync", path=self._paths[descriptor]))

    def close(self, descriptor: int, /) -> None:
        os.close(descriptor)

    def rename(self, source: Path, target: Path, /) -> None:
        self._note(Done(call="rename", path=source, target=target))
        os.rename(source, target)

    def _note(self, done: Done) -> None:
        if self._left is not None and len(self.done) >= self._left:
            raise OSError(28, "No space left on device")
        self.done.append(done)


def after_power_loss(done: Sequence[Done]) -> Iterator[Mapping[Path, bytes]]:
    """Return the messages of every state that the disk may be in: what was not forced is there or not."""
    free = [number for number in range(len(done)) if not _is_forced(done, number)]
    for lost in itertools.chain.from_iterable(
        itertools.combinations(free, count) for count in range(len(free) + 1)
    ):
        yield _replayed([each for n, each in enumerate(done) if n not in lost])


def _is_forced(done: Sequence[Done], number: int) -> bool:
    """A content is forced through its file, an entry through its folder."""
    each = done[number]
    if each.call == "fsync":
        return True
    path = each.path if each.call == "write" else each.path.parent
    return any(later.call == "fsync" and later.path == path for later in done[number + 1 :])


def _replayed(done: Sequence[Done]) -> Mapping[Path, bytes]:
    contents: dict[Path, bytes] = {}
    folders: set[Path] = {each.path.parent for each in done if each.call == "mkdir"}
    names: dict[Path, Path] = {}
    for each in done:
        match each.call:
            case "mkdir":
                folders.add(each.path)
            case "create":
                names[each.path] = each.path
            case "write":
                contents[each.path] = contents.get(each.path, b"") + each.content
            case "rename" if each.target is not None:
                names[each.target] = each.path
    there = {name: contents.get(source, b"") for name, source in names.items()}
    return {
        name: there[name] for name in there if name.parent in folders and name.suffix == ".json"
    }


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


def test_a_message_is_written_and_forced_before_it_has_its_name_and_the_name_is_forced_last(
    tmp_path: Path, disk: WatchedDisk
) -> None:
    path = send(tmp_path / "inbox", MESSAGE, disk=disk)

    reported = [(each.call, each.path.name) for each in disk.done]
    part, whole = f".{path.name}.part", path.name
    writes = reported.count(("write", part))
    assert writes > 1
    assert reported == [
        ("mkdir", "inbox"),
        ("fsync", tmp_path.name),
        ("create", part),
        *[("write", part)] * writes,
        ("fsync", part),
        ("rename", part),
        ("fsync", "inbox"),
    ]
    assert disk.done[-2].target == path.with_name(whole)


def test_a_power_loss_at_any_moment_leaves_no_half_of_a_message(
    tmp_path: Path, disk: WatchedDisk
) -> None:
    whole = send(tmp_path / "inbox", MESSAGE, disk=disk).read_bytes()

    for count in range(len(disk.done) + 1):
        for found in after_power_loss(disk.done[:count]):
            assert set(found.values()) <= {whole}


def test_a_message_that_was_left_outlives_a_power_loss(tmp_path: Path, disk: WatchedDisk) -> None:
    path = send(tmp_path / "inbox", MESSAGE, disk=disk)

    assert [*after_power_loss(disk.done)] == [{path: path.read_bytes()}]


def test_on_a_disk_that_fills_up_a_message_is_left_whole_or_not_at_all(tmp_path: Path) -> None:
    for count in range(1, 6):
        disk = WatchedDisk(calls_before_full=count)
        with pytest.raises(StateError, match="No space left"):
            send(tmp_path / str(count) / "inbox", MESSAGE, disk=disk)
        assert [*(tmp_path / str(count)).rglob("*.*")] == []


class FolderNotForced(WatchedDisk):
    """Forces files, and no folder that a file has been renamed in."""

    def fsync(self, descriptor: int, /) -> None:
        if any(each.call == "rename" for each in self.done):
            raise OSError(5, "Input/output error")
        super().fsync(descriptor)


def test_a_message_whose_name_cannot_be_forced_is_not_left(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be left"):
        send(tmp_path, MESSAGE, disk=FolderNotForced())
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_was_replaced_though_its_name_cannot_be_forced_is_reported_as_in_place(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="in place, but a power loss may undo it"):
        write_durably(path, "new", disk=FolderNotForced())
    assert path.read_text() == "new"


def test_a_message_that_is_still_being_written_is_no_message(tmp_path: Path) -> None:
    path = send(tmp_path, MESSAGE)
    path.rename(tmp_path / f".{path.name}.part")

    assert receive(tmp_path) == []
    assert len([*tmp_path.iterdir()]) == 1

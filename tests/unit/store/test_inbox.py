"""What other processes send to the next tick."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.record.batch_inbox import receive_batches, remove_batches, send_batch, unfinished
from harness.store.inbox import (
    FolderInbox,
    Message,
    MessageKind,
    parse_message,
    peek,
    receive,
    send,
)
from harness.store.quarantine import FOLDER, Quarantine, quarantined

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WHOLE_TABLE = '{"kind": "retry", "job_id": 7, "sent_at": "2026-03-01T08:00:00+00:00"}'


def test_a_message_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(WHOLE_TABLE)

    [message] = receive(tmp_path)

    assert (message.kind, message.job_id) == (MessageKind.RETRY, 7)
    assert message.sent_at == datetime(2026, 3, 1, 8, tzinfo=UTC)


def test_a_message_arrives_as_it_was_sent(tmp_path: Path) -> None:
    sent = Message(
        kind=MessageKind.RELEASE,
        job_id=2**53 + 1,
        intent_id="intent",
        attempt=2,
        sent_at=datetime(2026, 3, 1, 8, tzinfo=UTC),
        sent_by="ada",
        reason='loaded by hand: "all" of it\n',
    )
    path = send(tmp_path, sent)
    assert receive(tmp_path) == [replace(sent, path=path)]


def test_what_came_after_a_tick_began_to_read_is_new(tmp_path: Path) -> None:
    inbox = FolderInbox(tmp_path / "inbox")
    assert not inbox.has_news()
    sent = Message(kind=MessageKind.RETRY, job_id=7, sent_at=NOON)
    # What no tick can read stays, and counts as new once.
    first = inbox.folder / inbox.send(sent)
    (inbox.folder / "notes.txt").write_text("not ours")
    assert inbox.has_news()
    inbox.collect()
    assert not inbox.has_news()
    inbox.send_events("{}", at=NOON)
    assert inbox.has_news()
    inbox.collect()
    first.unlink()
    assert not inbox.has_news()


#: What nobody sends, and somebody may leave there all the same.
POISON = {
    "empty": b"",
    "a list": b"[]",
    "text": b'"retry"',
    "a number": b"7",
    "null": b"null",
    "no fields": b"{}",
    "half": WHOLE_TABLE[:-1].encode(),
    "its end": WHOLE_TABLE[1:].encode(),
    "another kind": WHOLE_TABLE.replace("retry", "stop").encode(),
    "a kind of another type": WHOLE_TABLE.replace('"retry"', "[]").encode(),
    "a word as id": WHOLE_TABLE.replace("7", '"seven"').encode(),
    "an infinite id": WHOLE_TABLE.replace("7", "Infinity").encode(),
    "no number as id": WHOLE_TABLE.replace("7", "NaN").encode(),
    "a boolean as id": WHOLE_TABLE.replace("7", "true").encode(),
    "a fraction as id": WHOLE_TABLE.replace("7", "7.5").encode(),
    "zero as id": WHOLE_TABLE.replace("7", "0").encode(),
    "an id past BIGINT": WHOLE_TABLE.replace("7", str(2**63)).encode(),
    "an id of thousands of digits": WHOLE_TABLE.replace("7", "7" * 5000).encode(),
    "a key twice": WHOLE_TABLE.replace("{", '{"job_id": 8, ').encode(),
    "nested deeply": b"[" * 200_000,
    "nested deeply in a field": WHOLE_TABLE.replace("{", '{"more": ' + "[" * 100_000, 1).encode(),
    "no UTF-8": b"\xff\xfe" + WHOLE_TABLE.encode(),
    "zeros": b"\0" * 100,
    "an instant without a zone": WHOLE_TABLE.replace("+00:00", "").encode(),
    "an instant of another age": WHOLE_TABLE.replace("2026", "0001").encode(),
    "no instant": WHOLE_TABLE.replace("2026-03", "soon").encode(),
    "a run past BIGINT": WHOLE_TABLE.replace("{", f'{{"run_id": {10**30}, ').encode(),
    "a negative attempt": WHOLE_TABLE.replace("{", '{"attempt": -1, ').encode(),
    "a reason that is no text": WHOLE_TABLE.replace("{", '{"reason": 5, ').encode(),
    "a reason with half a character": WHOLE_TABLE.replace("{", '{"reason": "\\ud800", ').encode(),
    "a reason with a NUL": WHOLE_TABLE.replace("{", '{"reason": "\\u0000", ').encode(),
    "a reason without an end": WHOLE_TABLE.replace(
        "{", '{"reason": "%s", ' % ("x" * 5000)
    ).encode(),
    "taken that is no object": WHOLE_TABLE.replace("{", '{"taken": 7, ').encode(),
    "taken without its fields": WHOLE_TABLE.replace("{", '{"taken": {}, ').encode(),
    "taken of another type": WHOLE_TABLE.replace(
        "{",
        '{"taken": {"upstream_id": "a", "from_tick": "x", "through_tick": 1}, ',
        1,
    ).encode(),
    "larger than any message": WHOLE_TABLE.encode() + b" " * 2**20,
}


@pytest.mark.parametrize("content", POISON.values(), ids=POISON)
def test_what_is_no_message_is_quarantined_with_its_reason_and_stops_no_other(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1.json").write_bytes(content)
    (tmp_path / "2.json").write_text(WHOLE_TABLE)

    assert [each.job_id for each in peek(tmp_path)] == [7]
    quarantine = Quarantine(tmp_path, NOON)
    assert [each.job_id for each in receive(tmp_path, quarantine)] == [7]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.json", FOLDER]
    [item] = quarantined(tmp_path)
    assert [item] == quarantine.items
    assert (item.name, item.since) == ("1.json", NOON)
    assert len(item.reason) > 10
    assert item.path.read_bytes() == content
    assert "1.json cannot be read" in caplog.text


def _link(path: Path) -> None:
    outside = path.with_name("outside")
    outside.write_text(WHOLE_TABLE)
    path.symlink_to(outside)


def _full_folder(path: Path) -> None:
    path.mkdir()
    (path / "more").write_text(WHOLE_TABLE)


#: What is never opened, though it has the name of a message.
ODD: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a link to nothing": lambda path: path.symlink_to("/nowhere"),
    "a link to a device without an end": lambda path: path.symlink_to("/dev/zero"),
    "a FIFO": os.mkfifo,
    "a folder": _full_folder,
}


@pytest.mark.parametrize(
    ("make", "name"),
    [
        pytest.param(make, name, id=f"{what} {name}")
        for what, make in ODD.items()
        for name in ("1.json", "registered-1.jsonl")
        # A folder with the name of a batch is one that is not complete yet.
        if make is not _full_folder or name == "1.json"
    ],
)
def test_what_is_no_regular_file_is_quarantined_unopened(
    make: Callable[[Path], object], name: str, tmp_path: Path
) -> None:
    make(tmp_path / name)

    quarantine = Quarantine(tmp_path, NOON)
    assert receive(tmp_path, quarantine) == []
    assert receive_batches(tmp_path, at=NOON, quarantine=quarantine) == []
    assert [item.name for item in quarantine.items] == [name]
    assert not os.path.lexists(tmp_path / name)


def test_a_second_item_of_the_same_name_is_quarantined_beside_the_first(tmp_path: Path) -> None:
    for _ in range(3):
        _full_folder(tmp_path / "1.json")
        receive(tmp_path, Quarantine(tmp_path, NOON))
    assert [item.name for item in quarantined(tmp_path)] == ["1.json"] * 3


def test_what_cannot_be_moved_stays_and_is_reported_and_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    (tmp_path / "1.json").write_text("")
    (tmp_path / "2.json").write_text(WHOLE_TABLE)

    for _ in range(2):
        quarantine = Quarantine(tmp_path, NOON)
        assert len(receive(tmp_path, quarantine)) == 1
        assert [item.path for item in quarantine.items] == [tmp_path / "1.json"]


def test_old_quarantined_items_and_too_many_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.store.quarantine.MOST_ITEMS", 2)
    for days, make in [(0, _link), (100, os.mkfifo), (101, _full_folder), (102, os.mkfifo)]:
        make(tmp_path / f"{days}.json")
        quarantine = Quarantine(tmp_path, NOON + timedelta(days=days))
        receive(tmp_path, quarantine)
    quarantine.tidy()
    assert [item.name for item in quarantined(tmp_path)] == ["101.json", "102.json"]
    assert len([*(tmp_path / FOLDER).iterdir()]) == 4


def test_a_tick_reads_a_bounded_number_of_messages_and_the_next_one_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.store.inbox.MESSAGES_PER_TICK", 2)
    for number in range(3):
        (tmp_path / f"{number}.json").write_text(WHOLE_TABLE)
    assert len(receive(tmp_path)) == 2
    assert len(peek(tmp_path)) == 3


@pytest.mark.parametrize("changed", [{"run_id": 10**30}, {"run_id": 0}, {"reason": "x" * 5000}])
def test_a_message_that_no_tick_could_read_is_not_left(
    changed: dict[str, object], tmp_path: Path
) -> None:
    message = replace(parse_message(WHOLE_TABLE.encode()), **changed)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=next(iter(changed))):
        send(tmp_path, message)
    assert [*tmp_path.iterdir()] == []


def _line(**more: object) -> str:
    return json.dumps({"table": "a.b", "table_format": "ICEBERG", **more}) + "\n"


def _batch(folder: Path, name: str = "part-0.json") -> Path:
    folder.mkdir()
    (folder / name).write_text(_line())
    (folder / "_SUCCESS").touch()
    return folder


def test_a_link_to_the_folder_of_a_batch_is_quarantined_and_nothing_outside_is_removed(
    tmp_path: Path,
) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    outside = _batch(tmp_path / "outside")
    (inbox / "registered-1").symlink_to(outside)

    assert receive_batches(inbox, at=NOON) == []
    assert [item.name for item in quarantined(inbox)] == ["registered-1"]
    assert sorted(path.name for path in outside.iterdir()) == ["_SUCCESS", "part-0.json"]


@pytest.mark.parametrize("name", ["part-0.json", "_SUCCESS"])
def test_a_batch_with_a_link_in_it_is_quarantined(name: str, tmp_path: Path) -> None:
    folder = _batch(tmp_path / "registered-1")
    (folder / name).rename(tmp_path / "outside")
    (folder / name).symlink_to(tmp_path / "outside")
    assert receive_batches(tmp_path, at=NOON) == []
    assert ["link" in item.reason for item in quarantined(tmp_path)] == [True]


@pytest.mark.parametrize(
    ("bound", "reason"),
    [("LARGEST_BATCH", "bytes"), ("LONGEST_LINE", "bytes"), ("MOST_FILES", "files")],
)
def test_a_batch_beyond_a_bound_is_quarantined(
    bound: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"harness.record.batch_inbox.{bound}", 0)
    _batch(tmp_path / "registered-1")
    assert receive_batches(tmp_path, at=NOON) == []
    assert [reason in item.reason for item in quarantined(tmp_path)] == [True]


def test_a_batch_of_an_odd_name_and_an_odd_time_gives_events_that_a_ledger_takes(
    tmp_path: Path,
) -> None:
    path = tmp_path / os.fsdecode(b"registered-\xff.jsonl")
    path.write_text(_line())
    os.utime(path, (2**40, 2**40))
    [batch] = receive_batches(tmp_path, at=NOON)
    assert batch.sent_at == NOON
    assert (batch.events[0].event_id or "").encode()


def test_a_batch_that_is_half_removed_is_known_as_unfinished(tmp_path: Path) -> None:
    folder = _batch(tmp_path / "registered-1")
    (folder / "_SUCCESS").unlink()
    assert receive_batches(tmp_path, at=NOON) == []
    assert unfinished(tmp_path) == [folder]


def test_a_batch_that_is_gone_already_is_removed_without_an_error(tmp_path: Path) -> None:
    (tmp_path / send_batch(FolderInbox(tmp_path), [], at=NOON)).unlink()
    _batch(tmp_path / "registered-1")
    batches = receive_batches(tmp_path, at=NOON)
    remove_batches(batches)
    remove_batches(batches)
    assert [*tmp_path.iterdir()] == []


def test_an_inbox_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert receive(tmp_path / "inbox") == []

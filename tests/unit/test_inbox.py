"""What other processes tell the next tick."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.inbox import Message, MessageKind, peek, receive, send

WHOLE = '{"kind": "retry", "job_id": 7, "sent_at": "2026-03-01T08:00:00+00:00"}'


def test_a_message_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(WHOLE)

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


@pytest.mark.parametrize(
    "content",
    ["", "[]", '"retry"', "7", "null", "{}", WHOLE[:-1], WHOLE.replace("7", '"seven"'), WHOLE[1:]],
)
def test_what_is_no_message_is_set_aside_and_told_and_stops_no_other(
    content: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1.json").write_text(content)
    (tmp_path / "2.json").write_text(WHOLE)

    assert [each.job_id for each in peek(tmp_path)] == [7]
    assert [each.job_id for each in receive(tmp_path)] == [7]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.unreadable", "2.json"]
    assert "1.json cannot be read" in caplog.text


def test_an_inbox_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert receive(tmp_path / "inbox") == []

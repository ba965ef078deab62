"""Alarms over the real library to real servers: mail, webhooks, and what goes wrong on the way."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.config.observing import AlarmRule, Alarms
from harness.config.secrets import EnvironmentSecrets
from harness.inspect.alarms import Alarm
from harness.observe.delivery import ProcessDelivery, Result
from harness.observe.notify import BY_PROCESS, Notifier, load_journal, try_channels
from harness.platform import masking
from tests.support.mail_and_web import MailServer, Web, free_port, mail_server, web_server

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HELD = Alarm(
    rule=AlarmRule.JOB_HELD,
    subject="1",
    what="job täglich <!channel> & <b>: failed",
    since=NOON,
    why="exit code 1",
)


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


@pytest.fixture
def web() -> Iterator[Web]:
    with web_server() as server:
        yield server


@pytest.fixture(autouse=True)
def own_masker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_MASKER", masking.Masker())


Send = Callable[..., Result]


@pytest.fixture
def send(tmp_path: Path) -> Send:
    def send_one(url: str, seconds: float = 30) -> Result:
        settings = Alarms.model_validate(
            {"channels": {"team": {"url": "env:TEAM"}}, "timeout_seconds": seconds}
        )
        secrets = EnvironmentSecrets({"TEAM": url})
        notifier = Notifier(settings, "shop", tmp_path / "alarms.json", secrets)
        notifier.send(NOON, [HELD])
        notifier.wait(seconds + 5)
        notifier.collect(NOON)
        reported = load_journal(tmp_path / "alarms.json").channels["team"]
        return Result(delivered=len(reported.alarms), reason=reported.reason)

    return send_one


def test_an_alarm_arrives_as_a_mail(mail: MailServer, send: Send) -> None:
    assert send(mail.url) == Result(delivered=1)
    [received] = mail.mails.received
    assert received["subject"] == "Heartbeat shop: 1 problem"
    assert received["to"] == "team@example.com"
    plain = received.get_body(("plain",))
    text = plain.get_content() if plain else ""
    assert "- job täglich <!channel> & <b>: failed: exit code 1" in text


def test_a_mail_is_plain_text_so_that_nothing_in_it_is_markup(mail: MailServer, send: Send) -> None:
    send(mail.url)
    parts = [each.get_content_type() for each in mail.mails.received[0].walk()]
    assert [each for each in parts if not each.startswith("multipart/")] == ["text/plain"]


def test_an_alarm_arrives_at_a_webhook(web: Web, send: Send) -> None:
    assert send(web.url()) == Result(delivered=1)
    [post] = web.posts
    assert (post["title"], post["type"]) == ("Heartbeat shop: 1 problem", "failure")
    assert str(post["message"]).startswith("Problems:")
    assert "exit code 1" in str(post["message"])


def test_a_server_that_refuses_a_mail_is_a_failure_with_a_reason(
    mail: MailServer, send: Send
) -> None:
    mail.mails.answer = "550 no such user"
    result = send(mail.url)
    assert (result.delivered, mail.mails.received) == (0, [])
    assert result.reason


def test_a_webhook_that_answers_with_an_error_is_a_failure_with_its_code(
    web: Web, send: Send
) -> None:
    web.status = 500
    result = send(web.url())
    assert result.delivered == 0 and "500" in str(result.reason)


def test_a_server_that_is_not_there_is_a_failure(send: Send) -> None:
    assert send(f"json://127.0.0.1:{free_port()}/").reason


def test_an_address_that_is_not_supported_is_a_failure(send: Send) -> None:
    assert send("carrier-pigeon://roof").reason == "its address is not a URL that Apprise supports"


def test_no_reason_and_no_process_list_has_the_address(web: Web, send: Send) -> None:
    web.status = 403
    token = "T0kenT0kenT0ken"
    reason = send(web.url(path=f"services/{token}?x=hunter2HUNTER"))
    assert reason.reason
    assert token not in reason.reason and "hunter2HUNTER" not in reason.reason


def test_a_server_that_hangs_is_left_alone_at_the_time_limit(web: Web) -> None:
    web.may_answer.clear()
    # The library's own limit is longer.
    request = {"url": f"{web.url()}?rto=60", "title": "t", "body": "b", "type": "info"}
    began = time.monotonic()
    delivery = BY_PROCESS(request, 2.0)
    delivery.wait(30)
    assert delivery.result == Result(delivered=0, reason="no answer within 2 s")
    assert time.monotonic() - began < 20
    assert web.posts == []


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("harness.no_such_module", "No module named"),
        ("harness", "ended without an answer"),
    ],
)
def test_a_process_that_breaks_down_is_a_failure(module: str, reason: str) -> None:
    delivery = ProcessDelivery(module, {}, 30)
    delivery.wait(30)
    assert delivery.result is not None and delivery.result.delivered == 0
    assert delivery.result.reason


def test_a_test_message_goes_to_every_channel_and_names_those_that_fail(
    mail: MailServer, web: Web
) -> None:
    addresses: Mapping[str, str] = {"MAIL": mail.url, "WEB": web.url()}
    urls = {"mail": "env:MAIL", "web": "env:WEB", "lost": "env:HEARTBEAT_MISSING"}
    channels = {name: {"url": url} for name, url in urls.items()}
    settings = Alarms.model_validate({"channels": channels})
    trials = try_channels(settings, "shop", EnvironmentSecrets(addresses), list(channels))
    assert {each.channel: each.reason for each in trials} == {
        "lost": "env:HEARTBEAT_MISSING is not set; set it where Heartbeat runs",
        "mail": None,
        "web": None,
    }
    assert web.posts[0]["title"] == "Heartbeat shop: test"
    assert mail.mails.received[0]["subject"] == "Heartbeat shop: test"
    assert "HEARTBEAT_MISSING" not in os.environ

"""What each channel is sent and when: once when it begins, once when it is over, never in quiet."""

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.config.observing import AlarmRule, Alarms
from harness.config.secrets import EnvironmentSecrets
from harness.errors import StateError
from harness.inspect.alarms import Alarm
from harness.observe.delivery import Result
from harness.observe.notify import Notifier, load_journal, message_of
from harness.observe.send_message import send
from harness.store.state_dir import SHARED_FILES, StateDir

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ADDRESSES = {"TEAM": "json://127.0.0.1/team", "CALL": "json://127.0.0.1/call"}


def alarm(
    subject: str = "1", rule: AlarmRule = AlarmRule.JOB_HELD, since: datetime = NOON
) -> Alarm:
    return Alarm(rule=rule, subject=subject, what=f"job {subject}: failed", since=since, why="boom")


@dataclass
class FakeDelivery:
    """A delivery that ends when the test sets its result."""

    result: Result | None = None

    def wait(self, seconds: float) -> None: ...


@dataclass
class Post:
    """Takes messages, and answers each at once unless it hangs."""

    reason: str | None = None
    hangs: bool = False
    sent: list[Mapping[str, object]] = field(default_factory=list)
    under_way: list[FakeDelivery] = field(default_factory=list)

    def begin(self, request: Mapping[str, object], seconds: float) -> FakeDelivery:
        self.sent.append(request)
        ended = Result(delivered=0 if self.reason else 1, reason=self.reason)
        delivery = FakeDelivery(None if self.hangs else ended)
        self.under_way.append(delivery)
        return delivery

    def titles(self) -> list[str]:
        return [str(each["title"]).partition(": ")[2] for each in self.sent]


class World:
    """Ticks of processes of their own, over one state directory."""

    def __init__(self, folder: Path, settings: Mapping[str, object] | None = None) -> None:
        self.path = folder / "alarms.json"
        self.settings = Alarms.model_validate(
            settings or {"channels": {"team": {"url": "env:TEAM"}}}
        )
        self.addresses = dict(ADDRESSES)
        self.post = Post()
        self.now = NOON

    def notifier(self) -> Notifier:
        secrets = EnvironmentSecrets(self.addresses)
        return Notifier(self.settings, "shop", self.path, secrets, self.post.begin)

    def tick(
        self, *current: Alarm, minutes: float = 1, notifier: Notifier | None = None
    ) -> Sequence[str]:
        """Let time pass, and let a tick find these alarms; return the titles of its messages."""
        self.now += timedelta(minutes=minutes)
        before, ticking = len(self.post.sent), notifier or self.notifier()
        ticking.send(self.now, current)
        ticking.collect(self.now)
        return self.post.titles()[before:]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_problem_is_sent_once_when_it_begins_and_once_when_it_is_over(world: World) -> None:
    ticks = [(alarm(),), (alarm(),), (), ()]
    assert [world.tick(*each) for each in ticks] == [["1 problem"], [], ["1 over"], []]


def test_everything_of_one_tick_is_one_message(world: World) -> None:
    world.tick(alarm("1"), alarm("2"))
    assert world.tick(alarm("2"), alarm("3"), alarm("4")) == ["2 problems, 1 over"]
    body = str(world.post.sent[-1]["body"]).splitlines()
    assert body == [
        "Problems:",
        "- job 3: failed (2m): boom",
        "- job 4: failed (2m): boom",
        "Over:",
        "- job 1: failed: over after 2m",
        "Still open: 1",
    ]


def test_a_message_has_the_type_that_its_channel_shows(world: World) -> None:
    world.tick(alarm("1"), alarm("2"))
    world.tick(alarm("1"))
    world.tick()
    assert [each["type"] for each in world.post.sent] == ["failure", "warning", "success"]


def test_a_great_failure_is_still_one_message_that_can_be_read() -> None:
    message = message_of("shop", [], [alarm(str(number)) for number in range(1000)], NOON)
    assert message.title == "Heartbeat shop: 1,000 problems"
    assert message.body.splitlines()[-1] == "- and 970 more"


def test_each_channel_gets_its_own_rules(tmp_path: Path) -> None:
    channels = {
        "team": {"url": "env:TEAM"},
        "call": {"url": "env:CALL", "rules": [AlarmRule.TICK_FAILING]},
    }
    world = World(tmp_path, {"channels": channels})
    world.tick(alarm(), alarm("2", AlarmRule.TICK_FAILING))
    titles = {str(each["url"])[-4:]: str(each["title"]) for each in world.post.sent}
    assert titles == {"team": "Heartbeat shop: 2 problems", "call": "Heartbeat shop: 1 problem"}


@pytest.fixture
def night(tmp_path: Path) -> World:
    quiet = {"start": "12:01", "end": "12:10"}
    return World(tmp_path, {"channels": {"team": {"url": "env:TEAM"}}, "quiet_hours": [quiet]})


def test_what_begins_in_quiet_hours_is_sent_after_them_if_it_still_holds(night: World) -> None:
    assert [night.tick(alarm(), minutes=each) for each in (1, 8, 1)] == [[], [], ["1 problem"]]


def test_what_begins_and_ends_in_quiet_hours_is_never_sent(night: World) -> None:
    assert [night.tick(alarm()), night.tick(), night.tick(minutes=30)] == [[], [], []]


def test_that_a_problem_is_over_waits_for_the_end_of_quiet_hours_too(night: World) -> None:
    night.now -= timedelta(minutes=1)
    assert night.tick(alarm(), minutes=0.5) == ["1 problem"]
    assert [night.tick(minutes=2), night.tick(minutes=30)] == [[], ["1 over"]]


def test_a_message_that_fails_is_sent_by_a_later_tick_and_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.post.reason = "connection refused"
    with caplog.at_level(logging.WARNING):
        assert [world.tick(alarm()) for _ in range(3)] == [["1 problem"]] * 3
    assert [each.message for each in caplog.records] == [
        "alarms: the message to channel team was not sent (connection refused); the next ticks try"
        " again"
    ]
    world.post.reason = None
    assert [world.tick(alarm()), world.tick(alarm())] == [["1 problem"], []]


def test_a_channel_that_is_down_is_not_tried_by_each_tick_of_a_resident_process(
    world: World,
) -> None:
    world.post.reason, resident = "connection refused", world.notifier()
    tries = [world.tick(alarm(), minutes=1 / 60, notifier=resident) for _ in range(60)]
    assert sum(map(len, tries)) == 2


def test_a_failing_channel_keeps_no_other_from_its_messages(tmp_path: Path) -> None:
    channels = {"lost": {"url": "env:MISSING"}, "team": {"url": "env:TEAM"}}
    world = World(tmp_path, {"channels": channels})
    assert world.tick(alarm()) == ["1 problem"]
    journal = load_journal(world.path)
    assert journal.channels["team"].alarms == (alarm(),)
    assert [(each.what, each.why) for each in journal.undelivered()] == [
        ("channel lost cannot be reached", "env:MISSING is not set; set it where Heartbeat runs")
    ]


def test_a_channel_whose_lost_message_is_over_fails_no_more(world: World) -> None:
    world.post.reason = "connection refused"
    world.tick(alarm())
    world.tick()
    assert load_journal(world.path).undelivered() == []


def test_a_hanging_channel_is_begun_once_and_a_tick_goes_on_without_it(world: World) -> None:
    world.post.hangs, resident = True, world.notifier()
    assert world.tick(alarm(), notifier=resident) == ["1 problem"]
    assert world.tick(alarm(), notifier=resident) == []
    world.post.under_way[0].result = Result(delivered=1)
    assert world.tick(alarm(), notifier=resident) == []
    assert load_journal(world.path).channels["team"].alarms == (alarm(),)


def test_a_process_that_dies_before_it_records_repeats_the_message_and_loses_none(
    world: World,
) -> None:
    world.post.hangs = True
    assert world.tick(alarm()) == ["1 problem"]
    # The process is gone; the next one has no record of whether the message has arrived.
    world.post.hangs = False
    assert world.tick(alarm()) == ["1 problem"]
    assert world.tick(alarm()) == []


def test_what_changes_while_a_message_is_under_way_is_sent_by_the_next(world: World) -> None:
    world.post.hangs, resident = True, world.notifier()
    world.tick(alarm("1"), notifier=resident)
    world.post.hangs = False
    world.tick(alarm("1"), alarm("2"), notifier=resident)
    world.post.under_way[0].result = Result(delivered=1)
    assert world.tick(alarm("1"), alarm("2"), notifier=resident) == ["1 problem"]
    assert "job 2" in str(world.post.sent[-1]["body"])


def test_a_tick_that_fails_changes_nothing_about_the_other_alarms(world: World) -> None:
    world.tick(alarm())
    notifier, failing = world.notifier(), alarm("", AlarmRule.TICK_FAILING)
    notifier.record(lambda journal: type(journal)(channels=journal.channels, failing_tick=failing))
    notifier.send(world.now)
    notifier.collect(world.now)
    assert world.post.titles()[-1] == "1 problem"
    assert world.tick(alarm()) == ["1 over"]


def test_a_channel_that_is_configured_no_more_is_forgotten(world: World) -> None:
    world.tick(alarm())
    world.settings = Alarms.model_validate({"channels": {"call": {"url": "env:CALL"}}})
    assert world.tick(alarm()) == ["1 problem"]
    assert set(load_journal(world.path).channels) == {"call"}


def test_a_broken_file_means_that_nothing_was_sent(world: World) -> None:
    world.tick(alarm())
    for text in ("", "{}", '{"version": 1, "channels": {"team": {"alarms": [{}]}}}'):
        world.path.write_text(text)
        assert world.tick(alarm()) == ["1 problem"]


def test_what_cannot_be_recorded_was_sent_all_the_same(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.path = tmp_path / "file" / "alarms.json"
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError):
        world.tick(alarm())
    assert len(world.post.sent) == 1


def test_what_was_sent_is_kept_where_a_workspace_keeps_its_state() -> None:
    home = StateDir(folder=Path("home"))
    assert {home.alarms.name, home.arrivals.name} <= SHARED_FILES


def test_without_the_library_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    request = {"url": "json://x/", "title": "t", "body": "b", "type": "info"}
    reason = send(request)
    assert reason == "the package apprise is missing; pip install 'heartbeat[alarms]'"

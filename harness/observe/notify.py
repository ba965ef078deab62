"""Sends alarms: one message when problems begin, one when they are over, grouped for each channel.

What a channel was sent is kept in a file. Each tick compares what holds now with it, and sends the
difference; the file changes only after the channel has accepted the message. A process that dies in
between sends the message again: a repeated message is possible, a lost one is not. For the same
reason a failed message is sent by a later tick, and what begins and ends in quiet hours is never
sent.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from harness.config.observing import AlarmRule, Alarms, Channel
from harness.config.secrets import SecretResolver
from harness.errors import ConfigurationError
from harness.inspect.alarms import Alarm
from harness.observe.delivery import Begin, Delivery, ProcessDelivery
from harness.platform.clock import instant_from
from harness.platform.format import age, count
from harness.platform.json_file import load, save
from harness.platform.masking import mask_address, masked
from harness.platform.text import escaped

log = logging.getLogger(__name__)

VERSION = 1
#: A message has so many lines of each kind; a channel has limits of its own.
_MOST_LINES = 30
_MOST_JOBS = 20
#: A resident process ticks each second, and a channel that is down is not tried as often.
_BETWEEN_TRIES = timedelta(seconds=30)

#: Sends one message in a process of its own.
BY_PROCESS: Begin = partial(ProcessDelivery, "harness.observe.send_message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What one channel was sent, and since when it fails."""

    alarms: tuple[Alarm, ...] = ()
    failing_since: datetime | None = None
    reason: str | None = None
    tried_at: datetime | None = None

    def was_tried_just_before(self, now: datetime) -> bool:
        """Return whether a message has just failed; a clock that went back changes nothing."""
        return self.tried_at is not None and timedelta(0) <= now - self.tried_at < _BETWEEN_TRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What every channel was sent, and what a tick has left for the next one."""

    channels: Mapping[str, Reported] = field(default_factory=dict)
    #: The last tick failed.
    failing_tick: Alarm | None = None
    #: What `doctor` found about the tables, and when they were examined.
    tables: tuple[Alarm, ...] = ()
    tables_at: datetime | None = None

    @property
    def recorded(self) -> tuple[Alarm, ...]:
        """The alarms of no ledger: of the last tick and of the tables."""
        return (*([self.failing_tick] if self.failing_tick else []), *self.tables)

    def undelivered(self) -> list[Alarm]:
        """Return an alarm for each channel that fails, for those who can still be reached."""
        return [
            Alarm(
                rule=AlarmRule.UNDELIVERED,
                subject=name,
                what=f"channel {name} cannot be reached",
                since=reported.failing_since,
                why=reported.reason or "",
            )
            for name, reported in self.channels.items()
            if reported.failing_since is not None
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One notification: what began, and what is over."""

    title: str
    body: str
    #: As Apprise calls it.
    type: str


class Notifier:
    """Compares, sends and records; most of the time there is nothing to send.

    Args:
        settings: The configuration.
        name: What the installation is called.
        path: The file with what was sent.
        secrets: Fetches the addresses of the channels.
        begin: Begins to send a message.
    """

    def __init__(
        self,
        settings: Alarms,
        name: str,
        path: Path,
        secrets: SecretResolver,
        begin: Begin = BY_PROCESS,
    ) -> None:
        self._settings, self._name, self._path = settings, name, path
        self._secrets, self._begin = secrets, begin
        self.journal = load_journal(path)
        self._under_way: dict[str, tuple[Delivery, tuple[Alarm, ...]]] = {}

    def record(self, change: Callable[[Journal], Journal]) -> None:
        """Change the journal, and write it where it differs.

        Raises:
            StateError: The file cannot be written.
        """
        before, self.journal = self.journal, change(self.journal)
        if self.journal != before:
            save_journal(self._path, self.journal)

    def send(self, now: datetime, current: Sequence[Alarm] | None = None) -> None:
        """Begin to send to each channel what it was not sent yet; nothing in quiet hours.

        Args:
            now: The tick's instant.
            current: Every alarm that holds; without them, only whether the tick fails may be new.

        Raises:
            StateError: The file cannot be written.
        """
        self.collect(now)
        if self._settings.is_quiet(now):
            return
        for name, channel in self._settings.channels.items():
            reported = self.journal.channels.get(name, Reported())
            if name in self._under_way:
                continue
            wanted = self._wanted(channel, reported, current)
            if {each.key for each in wanted} == {each.key for each in reported.alarms}:
                # What could not be sent is over.
                self._note(name, Reported(alarms=reported.alarms))
            elif not reported.was_tried_just_before(now):
                self._start(name, channel, reported, wanted, now)

    def wait(self, seconds: float) -> None:
        """Wait until nothing is under way, for so long at most: messages are sent side by side."""
        end = time.monotonic() + seconds
        for delivery, _ in self._under_way.values():
            delivery.wait(max(0.0, end - time.monotonic()))

    def collect(self, now: datetime) -> None:
        """Record how the messages ended that are under way no more.

        Raises:
            StateError: The file cannot be written.
        """
        for name, (delivery, wanted) in list(self._under_way.items()):
            if (result := delivery.result) is None:
                continue
            del self._under_way[name]
            if result.reason is not None:
                self._failed(name, result.reason, now)
                continue
            failing_since = self.journal.channels.get(name, Reported()).failing_since
            if failing_since is not None:
                words = "alarms: channel %s accepts messages again, after %s"
                log.warning(words, name, age(failing_since, now))
            self._note(name, Reported(alarms=wanted))

    def _wanted(
        self, channel: Channel, reported: Reported, current: Sequence[Alarm] | None
    ) -> tuple[Alarm, ...]:
        if current is None:
            others = (each for each in reported.alarms if each.rule is not AlarmRule.TICK_FAILING)
            current = [*others, *([self.journal.failing_tick] if self.journal.failing_tick else [])]
        return tuple(each for each in current if channel.reports(each.rule))

    def _start(
        self,
        name: str,
        channel: Channel,
        reported: Reported,
        wanted: tuple[Alarm, ...],
        now: datetime,
    ) -> None:
        message = message_of(self._name, reported.alarms, wanted, now)
        try:
            seconds = self._settings.timeout_seconds
            delivery = _begun(channel, message, self._secrets, self._begin, seconds)
        except ConfigurationError as error:
            self._failed(name, str(error).rstrip("."), now)
            return
        log.info("alarms: %s, to channel %s", message.title, name)
        self._under_way[name] = (delivery, wanted)

    def _failed(self, name: str, reason: str, now: datetime) -> None:
        reported = self.journal.channels.get(name, Reported())
        if reported.failing_since is None:
            log.warning(
                "alarms: the message to channel %s was not sent (%s); the next ticks try again",
                name,
                reason,
            )
        since = reported.failing_since or now
        self._note(name, replace(reported, failing_since=since, reason=reason, tried_at=now))

    def _note(self, name: str, reported: Reported) -> None:
        """Record what a channel was sent; a channel that is configured no more is forgotten."""
        configured = self._settings.channels
        kept = {key: each for key, each in self.journal.channels.items() if key in configured}
        self.record(lambda journal: replace(journal, channels={**kept, name: reported}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a test message to one channel ended."""

    channel: str
    #: Why it was not sent; nothing when it was.
    reason: str | None


def try_channels(
    settings: Alarms,
    name: str,
    secrets: SecretResolver,
    channels: Iterable[str],
    begin: Begin = BY_PROCESS,
) -> list[Trial]:
    """Send a test message to channels, side by side, and return how it ended.

    Args:
        settings: The configuration.
        name: What the installation is called.
        secrets: Fetches the addresses.
        channels: The names of the channels.
        begin: Begins to send a message.
    """
    message = Message(
        title=f"Heartbeat {name}: test",
        body="This is a test message. Alarms of this installation arrive here.",
        type="info",
    )
    seconds = settings.timeout_seconds
    deliveries: dict[str, Delivery] = {}
    reasons: dict[str, str | None] = {}
    for channel in channels:
        try:
            deliveries[channel] = _begun(
                settings.channels[channel], message, secrets, begin, seconds
            )
        except ConfigurationError as error:
            reasons[channel] = str(error).rstrip(".")
    for channel, delivery in deliveries.items():
        delivery.wait(seconds + 2)
        result = delivery.result
        reasons[channel] = result.reason if result else f"no answer within {seconds:g} s"
    return [Trial(channel=channel, reason=reason) for channel, reason in reasons.items()]


def _begun(
    channel: Channel, message: Message, secrets: SecretResolver, begin: Begin, seconds: float
) -> Delivery:
    """Begin to send a message.

    Raises:
        ConfigurationError: The channel's address cannot be fetched.
    """
    url = channel.url.resolve(secrets).get_secret_value()
    mask_address(url)
    request = {"url": url, "title": message.title, "body": message.body, "type": message.type}
    return begin(request, seconds)


def message_of(
    name: str, before: Iterable[Alarm], now_hold: Iterable[Alarm], now: datetime
) -> Message:
    """Return one message with all that has changed.

    Args:
        name: What the installation is called.
        before: What the channel was sent already.
        now_hold: What holds now.
        now: The present instant.
    """
    known = {each.key: each for each in before}
    held = {each.key: each for each in now_hold}
    began = [each for key, each in held.items() if key not in known]
    over = [each for key, each in known.items() if key not in held]
    news = [count(len(began), "problem")] * bool(began) + [f"{len(over)} over"] * bool(over)
    parts = [
        *_section("Problems:", [each.sentence(now) for each in began]),
        *_section("Over:", [_over(each, now) for each in over]),
        *([f"Still open: {len(held) - len(began)}"] if len(held) > len(began) else []),
    ]
    title = f"Heartbeat {name}: {', '.join(news)}"
    kind = "failure" if began else ("warning" if held else "success")
    return Message(title=escaped(masked(title)), body="\n".join(parts), type=kind)


def _section(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"- and {len(lines) - _MOST_LINES:,} more"] * (len(lines) > _MOST_LINES)
    return [title, *(f"- {line}" for line in lines[:_MOST_LINES]), *more]


def _over(alarm: Alarm, now: datetime) -> str:
    return escaped(masked(f"{alarm.what}: over after {age(alarm.since, now)}"))


def load_journal(path: Path) -> Journal:
    """Read the file; an empty journal when it is missing or broken."""
    return load(path, _journal_in) or Journal()


def save_journal(path: Path, journal: Journal) -> None:
    """Write the file, whole or not at all; it outlives a power loss.

    Raises:
        StateError: It cannot be written.
    """
    content = {
        "version": VERSION,
        "channels": {
            name: _reported_as_json(reported) for name, reported in journal.channels.items()
        },
        "failing_tick": journal.failing_tick and journal.failing_tick.to_json(),
        "tables": [each.to_json() for each in journal.tables],
        "tables_at": journal.tables_at,
    }
    save(path, content, default=datetime.isoformat, is_lasting=True)


def _reported_as_json(reported: Reported) -> dict[str, object]:
    return {
        # No message names more of the jobs that wait.
        "alarms": [
            replace(each, blocks=each.blocks[:_MOST_JOBS]).to_json() for each in reported.alarms
        ],
        "failing_since": reported.failing_since,
        "reason": reported.reason,
        "tried_at": reported.tried_at,
    }


def _journal_in(content: Any) -> Journal | None:
    if content["version"] != VERSION:
        return None
    failing = content["failing_tick"]
    return Journal(
        channels={
            str(name): _reported_from(reported) for name, reported in content["channels"].items()
        },
        failing_tick=Alarm.from_json(failing) if failing else None,
        tables=tuple(map(Alarm.from_json, content["tables"])),
        tables_at=instant_from(content["tables_at"]),
    )


def _reported_from(content: Any) -> Reported:
    return Reported(
        alarms=tuple(map(Alarm.from_json, content["alarms"])),
        failing_since=instant_from(content["failing_since"]),
        reason=content["reason"],
        tried_at=instant_from(content["tried_at"]),
    )

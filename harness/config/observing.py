"""The keys of ``heartbeat.yml`` for those who watch: alarms, lineage and metrics."""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from harness.config.connections import zone
from harness.config.secrets import SecretReference
from harness.config.section import Section, Text, key_name
from harness.config.sources import Source
from harness.platform.format import duration

_CLOCK = r"^(([01]\d|2[0-3]):[0-5]\d|24:00)$"


class AlarmRule(StrEnum):
    """What is reported when it begins to hold, and again when it is over."""

    JOB_HELD = "job_held"
    RUN_LOST = "run_lost"
    RUN_LONG = "run_long"
    UPSTREAM_UNREADABLE = "upstream_unreadable"
    UPSTREAM_OVERDUE = "upstream_overdue"
    QUARANTINED = "quarantined"
    TICK_FAILING = "tick_failing"
    LEDGER_GROWS = "ledger_grows"
    #: Only a probe can notice these two: no tick sends them.
    NO_TICK = "no_tick"
    UNDELIVERED = "undelivered"


#: What no tick can send: there is none, or what it sends does not arrive.
ONLY_PROBED = frozenset({AlarmRule.NO_TICK, AlarmRule.UNDELIVERED})


class Weekday(StrEnum):
    """A day of the week."""

    MONDAY = "mon"
    TUESDAY = "tue"
    WEDNESDAY = "wed"
    THURSDAY = "thu"
    FRIDAY = "fri"
    SATURDAY = "sat"
    SUNDAY = "sun"


def _length(text: str) -> str:
    try:
        duration(text)
    except ValueError as error:
        raise ValueError(f"{error}; allowed is for example 30m, 1h or 1d") from error
    return text


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


ClockTime = Annotated[str, StringConstraints(pattern=_CLOCK)]
SourceName = Annotated[Source, BeforeValidator(_lower)]
TimeZone = Annotated[Text, AfterValidator(zone)]


class QuietHours(Section):
    """A part of the day in which nothing is sent."""

    start: ClockTime = Field(description="First minute, as HH:MM in quotes.")
    end: ClockTime = Field(description="Minute after the last one; it may be on the next day.")
    days: tuple[Weekday, ...] = Field(
        default=(), description="Days on which it begins; every day when left out."
    )
    time_zone: TimeZone = Field(default="UTC", description="Time zone of start and end.")

    @model_validator(mode="after")
    def _is_no_whole_day(self) -> Self:
        if self.start == self.end:
            raise ValueError("start and end are the same; write 00:00 and 24:00 for a whole day")
        return self

    def contain(self, at: datetime) -> bool:
        """Return whether an instant lies in these hours."""
        local = at.astimezone(ZoneInfo(self.time_zone))
        clock, today = local.strftime("%H:%M"), local.weekday()
        if self.start < self.end:
            return self.start <= clock < self.end and self._begins_on(today)
        since_today = clock >= self.start and self._begins_on(today)
        return since_today or (clock < self.end and self._begins_on((today - 1) % 7))

    def _begins_on(self, weekday: int) -> bool:
        return not self.days or list(Weekday)[weekday] in self.days


class Channel(Section):
    """Where messages are sent."""

    url: SecretReference = Field(
        description="Reference to the channel's address, a URL of the library Apprise."
    )
    rules: tuple[AlarmRule, ...] = Field(
        default=(), description="Rules that it reports; all of them when left out."
    )

    @model_validator(mode="after")
    def _rules_can_be_sent(self) -> Self:
        for rule in self.rules:
            if rule in ONLY_PROBED:
                raise ValueError(f"no tick can send {rule}; `status --check` reports it")
        return self

    def reports(self, rule: AlarmRule) -> bool:
        """Return whether an alarm of this rule is sent here."""
        return rule not in ONLY_PROBED and (not self.rules or rule in self.rules)


class ExpectedUpstream(Section):
    """An upstream from which new data is expected in time."""

    sensor_source: SourceName = Field(description="Source, as in the controls CSV.")
    sensor_id: Text = Field(description="Id, as in the controls CSV.")
    every: Annotated[Text, AfterValidator(_length)] = Field(
        description="Without an event for longer, the upstream is overdue: 30m, 1h, 1d."
    )

    @property
    def interval(self) -> timedelta:
        """The longest time between two events that is all right."""
        return duration(self.every)


class Alarms(Section):
    """When people are informed, and how."""

    name: Text | None = Field(
        default=None, description="Name of the installation; the project's folder when left out."
    )
    channels: Annotated[dict[Text, Channel], key_name("channel")] = Field(
        default_factory=dict, description="Where messages are sent, by a name of your own."
    )
    quiet_hours: tuple[QuietHours, ...] = Field(
        default=(), description="When nothing is sent; what still holds is sent afterwards."
    )
    timeout_seconds: float = Field(
        default=20, gt=0, le=300, description="Time limit of one message to one channel."
    )
    no_tick_minutes: float = Field(
        default=15, gt=0, le=43_200, description="Minutes without a tick that are a problem."
    )
    unreadable_minutes: float = Field(
        default=10, ge=0, le=43_200, description="Minutes after which a failing upstream is one."
    )
    upstreams: tuple[ExpectedUpstream, ...] = Field(
        default=(), description="Upstreams from which new data is expected in time."
    )
    overdue_factor: float = Field(
        default=3,
        ge=0,
        le=1000,
        description="Other upstreams are overdue after so many times their usual gap; 0: never.",
    )

    @property
    def is_on(self) -> bool:
        """True when ticks have something to watch."""
        return bool(self.channels or self.upstreams)

    def is_quiet(self, at: datetime) -> bool:
        """Return whether nothing is sent at an instant."""
        return any(each.contain(at) for each in self.quiet_hours)


def _http(url: str) -> str:
    if not re.match(r"https?://[^/@\s]+", url) or "@" in url or "?" in url:
        raise ValueError(
            "allowed is the address of a server, such as https://lineage.example.com; a key is"
            " given as api_key, env:NAME or secret:scope/key"
        )
    return url


#: The table formats of data-change events.
DatasetFormat = Literal["delta", "iceberg", "hive", "kafka", "file", "sensor", "jdbc", "sap"]


class Lineage(Section):
    """Where OpenLineage events about runs are sent."""

    url: Annotated[Text, AfterValidator(_http)] | None = Field(
        default=None, description="Server that gets each event by HTTP."
    )
    endpoint: Text = Field(default="api/v1/lineage", description="Path on that server.")
    api_key: SecretReference | None = Field(default=None, description="Key of that server.")
    file: Text | None = Field(
        default=None, description="File that gets each event as a line of JSON."
    )
    namespace: Text = Field(
        default="heartbeat", description="Namespace of the jobs, and of datasets without another."
    )
    datasets: Annotated[dict[DatasetFormat, Text], key_name("table_format")] = Field(
        default_factory=dict,
        description="Namespaces of datasets by table format, as other producers have them.",
    )
    timeout_seconds: float = Field(
        default=30, gt=0, le=300, description="Time limit of one delivery."
    )

    @property
    def is_on(self) -> bool:
        """True when events are sent anywhere."""
        return self.url is not None or self.file is not None


class Metrics(Section):
    """What Prometheus scrapes."""

    textfile: Text | None = Field(
        default=None,
        description="File for the textfile collector of the node exporter; it ends with `.prom`.",
    )
    port: int | None = Field(
        default=None, ge=1, le=65_535, description="Port of the endpoint of `run`."
    )
    address: Text = Field(
        default="127.0.0.1", description="Address of the endpoint; by default this machine only."
    )
    upstreams: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="Most upstreams with a series of their own; all others share one.",
    )

    @property
    def is_on(self) -> bool:
        """True when anything is published."""
        return self.textfile is not None or self.port is not None

"""The configuration of those who watch: its bounds, its sentences, and its quiet hours."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.config.errors import SettingsError
from harness.config.load import Settings, load_settings
from harness.config.observing import AlarmRule, QuietHours, Weekday

Problems = Callable[[str], tuple[str, ...]]
Load = Callable[[str], Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def load_text(text: str) -> Settings:
        (tmp_path / "heartbeat.yml").write_text(text, encoding="utf-8")
        return load_settings(tmp_path, {})

    return load_text


@pytest.fixture
def problems(load: Load) -> Problems:
    def problems_in(text: str) -> tuple[str, ...]:
        with pytest.raises(SettingsError) as caught:
            load(text)
        return caught.value.problems

    return problems_in


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_without_a_channel_or_an_expectation_nothing_is_watched(load: Load) -> None:
    assert not load("").alarms.is_on
    assert load("alarms: {channels: {team: {url: 'env:TEAM'}}}").alarms.is_on
    expected = "{sensor_source: delta_table, sensor_id: a.b, every: 1h}"
    assert load(f"alarms: {{upstreams: [{expected}]}}").alarms.is_on


def test_a_literal_address_is_refused_with_its_line_and_never_repeated(problems: Problems) -> None:
    [problem] = problems("alarms:\n  channels:\n    team:\n      url: slack://T1/B2/hush-hush\n")
    assert problem.startswith("heartbeat.yml:4: alarms.channels.team.url: ")
    assert "a secret must not stand in the file" in problem
    assert "hush" not in problem


def test_a_rule_that_does_not_exist_names_those_that_do(problems: Problems) -> None:
    [problem] = problems("alarms: {channels: {team: {url: 'env:TEAM', rules: [job_hold]}}}")
    assert "job_held" in problem and "upstream_overdue" in problem


@pytest.mark.parametrize("rule", ["no_tick", "undelivered"])
def test_what_no_tick_can_send_is_refused_as_a_rule_of_a_channel(
    rule: str, problems: Problems
) -> None:
    [problem] = problems(f"alarms: {{channels: {{team: {{url: 'env:TEAM', rules: [{rule}]}}}}}}")
    assert "status --check" in problem


def test_a_channel_without_rules_reports_all_that_a_tick_can_send(load: Load) -> None:
    team = load("alarms: {channels: {team: {url: 'env:TEAM'}}}").alarms.channels["team"]
    unsent = [rule for rule in AlarmRule if not team.reports(rule)]
    assert unsent == [AlarmRule.NO_TICK, AlarmRule.UNDELIVERED]


@pytest.mark.parametrize("every", ["often", "0s", "-1h"])
def test_an_interval_is_a_length_of_time(every: str, problems: Problems) -> None:
    entry = f"{{sensor_source: file, sensor_id: x, every: '{every}'}}"
    [problem] = problems(f"alarms:\n  upstreams:\n    - {entry}\n")
    assert problem.startswith("heartbeat.yml:3: ")
    assert "30m, 1h or 1d" in problem


@pytest.mark.parametrize("hours", ["{start: '25:00', end: '06:00'}", "{start: 10pm, end: '06:00'}"])
def test_a_time_of_day_has_hours_and_minutes(hours: str, problems: Problems) -> None:
    [problem] = problems(f"alarms: {{quiet_hours: [{hours}]}}")
    assert "'22:00'" in problem


def test_quiet_hours_that_end_when_they_begin_are_refused(problems: Problems) -> None:
    [problem] = problems("alarms: {quiet_hours: [{start: '06:00', end: '06:00'}]}")
    assert "00:00 and 24:00" in problem


def test_quiet_hours_are_read_without_quotes_too(load: Load) -> None:
    [hours] = load("alarms: {quiet_hours: [{start: 22:00, end: 06:00}]}").alarms.quiet_hours
    assert (hours.start, hours.end) == ("22:00", "06:00")


@pytest.mark.parametrize(
    ("instant", "is_quiet"),
    [
        ("2026-03-02T21:59", False),
        ("2026-03-02T22:00", True),
        ("2026-03-03T05:59", True),
        ("2026-03-03T06:00", False),
    ],
)
def test_quiet_hours_over_midnight_begin_and_end_at_their_minute(
    instant: str, is_quiet: bool
) -> None:
    assert QuietHours(start="22:00", end="06:00").contain(at(instant)) is is_quiet


def test_a_night_belongs_to_the_day_on_which_it_begins() -> None:
    friday = QuietHours(start="22:00", end="06:00", days=(Weekday.FRIDAY,))
    quiet = [
        friday.contain(at(text))
        for text in ("2026-03-06T05:00", "2026-03-06T23:00", "2026-03-07T05:00", "2026-03-07T23:00")
    ]
    assert quiet == [False, True, True, False]


def test_quiet_hours_follow_the_clocks_of_their_time_zone() -> None:
    berlin = QuietHours(start="08:00", end="09:00", time_zone="Europe/Berlin")
    assert berlin.contain(at("2026-01-05T07:30"))
    assert not berlin.contain(at("2026-07-06T07:30"))
    assert berlin.contain(at("2026-07-06T06:30"))


def test_a_whole_day_is_quiet() -> None:
    sunday = QuietHours(start="00:00", end="24:00", days=(Weekday.SUNDAY,))
    quiet = [sunday.contain(at(f"2026-03-0{day}T23:59")) for day in (7, 8, 9)]
    assert quiet == [False, True, False]


@pytest.mark.parametrize(
    "url",
    ["https://key:hush@example.com", "https://example.com/?key=hush", "example.com", "ftp://x"],
)
def test_a_lineage_server_is_an_address_without_a_secret(url: str, problems: Problems) -> None:
    [problem] = problems(f"lineage:\n  url: {url}\n")
    assert problem.startswith("heartbeat.yml:2: lineage.url: allowed is the address of a server")
    assert "hush" not in problem


def test_a_namespace_of_no_table_format_is_refused(problems: Problems) -> None:
    [problem] = problems("lineage: {datasets: {parquet: x}}")
    assert "lineage.datasets.parquet: unknown table_format; allowed are delta," in problem


def test_metrics_are_for_this_machine_only_unless_configured_otherwise(load: Load) -> None:
    metrics = load("metrics: {port: 9464}").metrics
    assert (metrics.is_on, metrics.address) == (True, "127.0.0.1")
    assert not load("").metrics.is_on

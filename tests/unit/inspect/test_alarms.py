"""Which problems are alarms, what identifies each, and the line for a monitoring system."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from harness.config.observing import AlarmRule, Alarms
from harness.inspect.alarms import (
    Alarm,
    Seen,
    alarm_of_ticks,
    alarms_of,
    alarms_of_tables,
    check_as_json,
    check_line,
    place_of,
)
from harness.inspect.attention import reason_beside
from harness.inspect.doctor.findings import attention, broken, ok
from harness.inspect.rhythm import Rhythm
from harness.inspect.status import Status
from harness.platform import masking
from harness.sense.backoff import Failing
from harness.store.quarantine import Quarantined
from harness.store.rows import Blocker, RunStatus
from harness.store.trigger_queries import FailingTrigger
from tests.support.ledgers import CUSTOMERS, ORDERS, TEN, minutes
from tests.unit.inspect.test_status import NOTHING_NEW, NOW, a_run, status_of

DEFAULT = Alarms()


def found(status: Status, settings: Alarms = DEFAULT, seen: Seen | None = None) -> list[Alarm]:
    return alarms_of(status, settings, seen or Seen())


def rules(alarms: list[Alarm]) -> list[AlarmRule]:
    return [each.rule for each in alarms]


def sensed(status: Status, state: str = "UNPAUSED") -> Status:
    row = {"sensor_source": "Delta_Table ", "sensor_id": "sales.orders", "job_state": state}
    return replace(status, control=[{**each, **row} for each in status.control])


def failing(minutes_ago: float, upstream_id: str = ORDERS, reason: str = "it is down.") -> Failing:
    since = NOW - timedelta(minutes=minutes_ago)
    return Failing(
        upstream_id=upstream_id, reason=reason, failed_looks=3, since=since, failed_at=since
    )


def expected(every: str) -> Alarms:
    entry = {"sensor_source": "delta_table", "sensor_id": "sales.orders", "every": every}
    return Alarms.model_validate_json(json.dumps({"upstreams": [entry]}))


def test_where_nothing_is_wrong_there_is_no_alarm() -> None:
    assert found(status_of(3, [a_run(1, RunStatus.STARTED, run_id=7, started_at=NOW)])) == []


@pytest.mark.parametrize(
    ("status", "rule"),
    [
        (RunStatus.FAILED, AlarmRule.JOB_HELD),
        (RunStatus.REFUSED, AlarmRule.JOB_HELD),
        (RunStatus.LOST, AlarmRule.RUN_LOST),
        (RunStatus.PARKED, AlarmRule.RUN_LOST),
        (RunStatus.INTENDED, AlarmRule.RUN_LOST),
    ],
)
def test_a_run_that_needs_a_person_is_an_alarm_of_its_rule(
    status: RunStatus, rule: AlarmRule
) -> None:
    [alarm] = found(status_of(3, [a_run(1, status, message="exit code 1")]))
    assert (alarm.rule, alarm.subject, alarm.why) == (rule, "1", "exit code 1")
    assert alarm.what.startswith("job job_1: ")


def test_a_run_that_goes_on_for_too_long_is_an_alarm() -> None:
    began = NOW - timedelta(hours=7)
    [alarm] = found(status_of(1, [a_run(0, RunStatus.STARTED, run_id=7, started_at=began)]))
    assert (alarm.rule, alarm.since) == (AlarmRule.RUN_LONG, began)


def test_a_failed_run_that_starts_again_automatically_is_no_alarm() -> None:
    run = a_run(1, RunStatus.FAILED, message="exit code 1")
    retry = Blocker(
        blocker="backing_off",
        reason="it failed",
        waits_for="2026-03-01T20:00:00Z",
        since=run.recorded_at,
    )
    assert found(status_of(3, [run], job_1=retry)) == []


def test_an_upstream_that_fails_for_a_while_is_an_alarm_that_names_the_jobs_it_blocks() -> None:
    status = replace(status_of(2), failing=[failing(10)])
    [alarm] = found(status)
    assert (alarm.rule, alarm.subject) == (AlarmRule.UPSTREAM_UNREADABLE, ORDERS)
    assert alarm.blocks == ("job_0", "job_1")
    assert alarm.sentence(NOW) == (
        "upstream sales.orders cannot be read (10m): it is down; waiting: job_0, job_1"
    )


def test_an_upstream_that_has_only_just_failed_is_no_alarm() -> None:
    assert found(replace(status_of(2), failing=[failing(9)])) == []


def test_a_job_waits_for_the_upstream_of_exactly_this_name() -> None:
    other = replace(NOTHING_NEW, waits_for="a new data-change event of sales.orders_archive")
    [alarm] = found(replace(status_of(2, job_0=other), failing=[failing(10)]))
    assert alarm.blocks == ("job_1",)


def test_another_reason_for_the_same_failure_is_the_same_alarm() -> None:
    [one] = found(replace(status_of(1), failing=[failing(20, reason="refused on port 5432")]))
    [two] = found(replace(status_of(1), failing=[failing(20, reason="refused on port 5433")]))
    assert one.key == two.key and one.why != two.why


def test_a_trigger_that_cannot_be_evaluated_is_an_alarm() -> None:
    trigger = FailingTrigger(trigger_id="daily", reason="no such column", since=minutes(1))
    [alarm] = found(replace(status_of(1), failing_triggers=[trigger]))
    assert (alarm.subject, alarm.why) == ("trigger:daily", "no such column")


def test_what_is_quarantined_is_an_alarm() -> None:
    item = Quarantined(name="a.json", since=TEN, reason="no JSON", path=Path("/x/a.json"))
    [alarm] = found(replace(status_of(1), quarantined=[item]))
    assert (alarm.rule, alarm.why) == (AlarmRule.QUARANTINED, "no JSON")


def test_an_upstream_is_overdue_once_its_expected_interval_has_passed() -> None:
    seen = Seen(rhythms={ORDERS: Rhythm(last=NOW - timedelta(hours=2))})
    status = sensed(status_of(1))
    assert found(status, expected("2h"), seen) == []
    [alarm] = found(status, expected("119m"), seen)
    assert alarm.sentence(NOW) == (
        "upstream sales.orders has had no event (2h): one is expected every 1h 59m; waiting: job_0"
    )


def test_of_several_upstreams_of_one_id_the_newest_event_counts() -> None:
    rhythms = {
        ORDERS: Rhythm(last=NOW - timedelta(hours=9)),
        "delta_table:sales.orders:ffffffff": Rhythm(last=NOW),
    }
    assert found(sensed(status_of(1)), expected("1h"), Seen(rhythms=rhythms)) == []


def test_an_upstream_is_overdue_far_beyond_its_own_usual_gap() -> None:
    rhythm = Rhythm(last=NOW - timedelta(hours=4), gaps=(3600,) * 10)
    seen = Seen(rhythms={ORDERS: rhythm, CUSTOMERS: rhythm})
    [alarm] = found(sensed(status_of(1)), DEFAULT, seen)
    assert (alarm.subject, alarm.why) == (ORDERS, "the usual gap is 1h")


def test_an_expected_interval_counts_instead_of_the_usual_gap() -> None:
    rhythm = Rhythm(last=NOW - timedelta(hours=4), gaps=(3600,) * 10)
    assert found(sensed(status_of(1)), expected("1d"), Seen(rhythms={ORDERS: rhythm})) == []


def test_an_upstream_that_is_paused_is_never_overdue() -> None:
    rhythm = Rhythm(last=NOW - timedelta(hours=4), gaps=(3600,) * 10)
    status = sensed(status_of(1), "PAUSED")
    assert found(status, expected("1h"), Seen(rhythms={ORDERS: rhythm})) == []


def test_no_tick_for_long_is_an_alarm_of_a_probe() -> None:
    status = replace(status_of(1), last_tick_at=NOW - timedelta(minutes=15))
    assert alarm_of_ticks(status, DEFAULT) is None
    late = replace(status, last_tick_at=NOW - timedelta(minutes=16))
    alarm = alarm_of_ticks(late, DEFAULT)
    assert alarm and alarm.rule is AlarmRule.NO_TICK
    assert alarm_of_ticks(replace(status, last_tick_at=None), DEFAULT) is not None


def test_what_doctor_finds_about_tables_is_an_alarm_for_each_table() -> None:
    findings = [
        ok("tables", "can be read"),
        attention("small files", "slow ticks down", todo="run maintain"),
        broken("ledger_runs", "is gone", todo="restore it"),
    ]
    alarms = alarms_of_tables(findings, NOW)
    assert [each.key for each in alarms] == ["ledger_grows:small files", "ledger_grows:ledger_runs"]
    assert alarms[0].sentence(NOW) == "small files: slow ticks down; run maintain"


def test_the_line_for_a_monitoring_system_is_one_line_and_names_the_worst_first() -> None:
    assert check_line(status_of(3), []) == "HEARTBEAT OK - 3 jobs, last tick 1m ago"
    status = replace(status_of(3, [a_run(1, RunStatus.FAILED, message="a\nb")]), failing=[])
    line = check_line(status, found(status))
    assert line == "HEARTBEAT CRITICAL - 1 alarm: job job_1: failed (10m): a"


def test_the_line_for_a_monitoring_system_stays_short_in_a_great_failure() -> None:
    status = status_of(100, [a_run(number, RunStatus.FAILED) for number in range(100)])
    line = check_line(status, found(status))
    assert line.endswith("; and 95 more") and line.count("\n") == 0 and len(line) < 500


def test_a_monitoring_system_can_read_json() -> None:
    status = status_of(3, [a_run(1, RunStatus.FAILED)])
    answer = json.loads(json.dumps(check_as_json(status, found(status))))
    assert (answer["ok"], answer["alarms"][0]["rule"]) == (False, "job_held")
    assert Alarm.from_json(answer["alarms"][0]) == found(status)[0]


def test_text_from_outside_cannot_begin_a_line_and_gives_no_secret_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(masking, "_MASKER", masking.Masker())
    masking.mask("hunter2-hunter2")
    alarm = Alarm(
        rule=AlarmRule.JOB_HELD,
        subject="1",
        what="job a\nb\x1b[2J",
        since=NOW,
        why="hunter2-hunter2",
    )
    assert alarm.sentence(NOW) == r"job a\nb\x1b[2J: ***"


def test_the_place_of_an_upstream_has_its_colons() -> None:
    assert place_of("kafka:shop: Orders:ab5c14a4") == ("kafka", "shop: orders")


def test_a_reason_beside_a_name_does_not_repeat_it() -> None:
    files = "The files /in/a cannot be sensed: the folder does not exist."
    assert reason_beside("/in/a", files) == "the folder does not exist."
    table = "The Delta table a.b cannot be sensed: it is gone."
    assert reason_beside("a.b", table) == "it is gone."

"""What a tick tells: one line when it found nothing, tables when it did, JSON for scripts."""

import json
from dataclasses import replace
from io import StringIO

from harness.publish import Publication
from harness.record import Recorded
from harness.sense.types import Look
from harness.settle import Settled
from harness.show.terminal import console_for
from harness.show.tick import as_json, failed, has_news, headline
from harness.show.tick_page import show
from harness.tables import Blocker, RunRow, RunStatus, Tick
from harness.tick import TickReport
from tests.unit.show.ledgers import JOB, ORDERS, TEN, decision, event, minutes, run

WAITING = Blocker(
    blocker="waiting_for_required_event",
    reason="its hard dependency sales.x has nothing new since its last event was taken",
    waits_for="x",
    since=minutes(-90),
)
RUNNING = replace(WAITING, blocker="run_in_progress", reason="its run 70 goes on")


def idle() -> TickReport:
    return TickReport(tick=Tick(number=7, at=TEN), sensed=14, seconds={"sense": 0.2})


def started(status: RunStatus, **changed: object) -> RunRow:
    return run(7, 2, TEN, status, **changed)


def busy(*rows: RunRow) -> TickReport:
    report = idle()
    report.recorded = Recorded(events=(event(7, TEN, ORDERS, "41"),), probes=(), changed={})
    report.started = rows
    return report


def with_settled(*rows: RunRow, **unanswered: str) -> TickReport:
    report = idle()
    told = {int(name.removeprefix("job_")): reason for name, reason in unanswered.items()}
    report.settled = Settled(rows=rows, unanswered=told)
    return report


def printed(report: TickReport) -> str:
    stream = StringIO()
    show(console_for(stream), report)
    return stream.getvalue()


def test_a_tick_that_found_nothing_is_one_line() -> None:
    assert printed(idle()).splitlines() == [headline(idle())]
    assert "looked at 14 upstreams, nothing new" in headline(idle())


def test_a_found_change_is_told_with_its_rows() -> None:
    assert "sales.orders       1  1,204     -  APPEND" in printed(busy())


def test_a_started_job_is_told_with_its_run() -> None:
    row = started(RunStatus.STARTED, run_id=2**60)
    assert str(2**60) in printed(busy(row))
    assert not failed(busy(row))


def test_a_refused_start_is_a_failure_and_says_why() -> None:
    report = busy(started(RunStatus.REFUSED, message="no such job"))
    assert failed(report)
    assert "refused: no such job" in printed(report)


def test_a_start_that_is_refused_when_it_is_sent_again_is_a_failure() -> None:
    report = with_settled(started(RunStatus.REFUSED, reported_by="answer", message="no such job"))
    assert failed(report)


def test_a_start_that_an_earlier_tick_intended_counts_as_fired_not_as_settled() -> None:
    row = started(RunStatus.STARTED, reported_by="answer", run_id=70)
    content = as_json(with_settled(row), 0)
    assert content["settled"] == 0
    assert content["fired"][0]["run_id"] == "70"  # type: ignore[index]


def test_a_job_that_failed_is_no_failure_of_the_tick() -> None:
    row = started(RunStatus.FAILED, reported_by="poll", run_id=70, message="boom")
    report = with_settled(replace(row, started_at=TEN, ended_at=minutes(2)))
    assert not failed(report)
    assert "boom" in printed(report)
    assert as_json(report, 0)["settled"] == 1


def test_a_run_that_could_not_be_asked_about_is_a_failure() -> None:
    report = with_settled(job_5="the Jobs API does not answer")
    assert failed(report)
    assert "the Jobs API does not answer" in printed(report)


def test_a_look_that_failed_is_a_failure_and_news() -> None:
    report = idle()
    report.looks = (Look(upstream_id=ORDERS, failure="no such folder"),)
    assert failed(report)
    assert has_news(report)
    assert as_json(report, 0)["failures"] == [
        {"sensor_id": "sales.orders", "reason": "no such folder"}
    ]


def test_a_trouble_is_news_once_and_again_when_it_changes() -> None:
    report = idle()
    report.looks = (Look(upstream_id=ORDERS, failure="no such folder"),)
    assert not has_news(report, frozenset({"no such folder"}))
    assert has_news(report, frozenset({"a corrupt commit"}))
    assert has_news(idle(), frozenset({"no such folder"}))


def with_waiting(*blockers: Blocker) -> TickReport:
    report = busy()
    row = replace(decision(7, TEN), blockers=blockers)
    report.publication = Publication(
        blockers={JOB: blockers}, job_names={JOB: "daily"}, changed=(row,), has_folded=False
    )
    return report


def test_a_waiting_job_says_why_and_for_how_long() -> None:
    assert "daily  1h 30m  its hard dependency sales.x has nothing new" in printed(
        with_waiting(WAITING)
    )


def test_more_dependencies_are_counted() -> None:
    assert "was taken (and 1 more)" in printed(with_waiting(WAITING, WAITING))


def test_a_job_that_runs_does_not_wait() -> None:
    assert "waiting" not in printed(with_waiting(RUNNING, WAITING))


def test_json_has_the_promised_keys() -> None:
    content = json.loads(json.dumps(as_json(busy(started(RunStatus.STARTED, run_id=70)), 3)))
    assert {
        "tick_id",
        "tick_at",
        "sensed",
        "events",
        "failed_looks",
        "fired",
        "settled",
        "skipped",
        "seconds",
        "waiting",
    } <= set(content)
    assert content["tick_at"] == "2026-03-01T10:00:00Z"
    assert content["fired"][0]["job"] == str(JOB)
    assert content["waiting"] == 3

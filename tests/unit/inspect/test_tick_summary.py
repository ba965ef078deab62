"""What a tick prints: one line when it found nothing, tables when it did, JSON for scripts."""

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.views.terminal import console_for
from harness.cli.views.tick import show
from harness.decide.trigger_due import Findings
from harness.inspect.tick_summary import as_json, headline, is_noteworthy, problems
from harness.publish.publish import Publication
from harness.record.probes import Recorded
from harness.sense.probe import ProbeResult
from harness.sense.schedule import Deferred, Sweep
from harness.settle.settle import Settled
from harness.store.quarantine import Quarantined
from harness.store.rows import Blocker, Run, RunStatus, Tick
from harness.store.work_lists import Upstream
from harness.tick.report import Settlement, TickReport
from tests.support.ledgers import JOB, ORDERS, TEN, decision, event, minutes, run

WAITING = Blocker(
    blocker="waiting_for_required_event",
    reason="its hard dependency sales.x has nothing new since its last event was consumed",
    waits_for="x",
    since=minutes(-90),
)
RUNNING = replace(WAITING, blocker="run_in_progress", reason="its run 70 goes on")


def idle(**values: object) -> TickReport:
    results = tuple(
        ProbeResult(upstream_id=f"upstream {number}", position=None) for number in range(14)
    )
    report = TickReport(
        tick=Tick(number=7, at=TEN), sensed=Sweep(results=results), wall_seconds=0.2
    )
    return replace(report, **values)  # type: ignore[arg-type]


def started(status: RunStatus, **changed: object) -> Run:
    return run(7, 2, TEN, status, **changed)


def busy(*rows: Run) -> TickReport:
    recorded = Recorded(events=(event(7, TEN, ORDERS, "41"),))
    return idle(findings=Findings(recorded=recorded), started=rows)


def with_settled(*rows: Run, **unanswered: str) -> TickReport:
    reported = {int(name.removeprefix("job_")): reason for name, reason in unanswered.items()}
    return idle(settlement=Settlement(settled=Settled(rows=rows, unanswered=reported)))


def printed(report: TickReport, *, is_brief: bool = False) -> str:
    stream = StringIO()
    show(console_for(stream), report, is_brief=is_brief)
    return stream.getvalue()


def test_what_a_job_on_its_own_schedule_has_processed_has_ended() -> None:
    steps = (
        started(RunStatus.ACQUIRED, reported_by="job"),
        started(RunStatus.SUCCEEDED, reported_by="job"),
    )
    report = idle(settlement=Settlement(pull_steps=steps))
    assert "1 run ended" in headline(report)
    assert as_json(report, waiting=0)["settled"] == 1


def test_a_tick_that_found_nothing_is_one_line() -> None:
    assert printed(idle()).splitlines() == [headline(idle())]
    assert "probed 14 upstreams, nothing new" in headline(idle())


def test_a_found_change_is_shown_with_its_rows() -> None:
    assert "sales.orders       1  1,204     -  APPEND" in printed(busy())


FILTERED = ORDERS.replace("ab5c14a4", "00000000")
QUERY = "SELECT *\n  FROM sensor_new_data WHERE amount > 100"


def found_twice(**differing: str) -> TickReport:
    recorded = Recorded(events=(event(7, TEN, ORDERS, "41"), event(7, TEN, FILTERED, "41")))
    plain = Upstream(
        upstream_id=ORDERS, source="delta_table", sensor_id="sales.orders", read_type="batch"
    )
    upstreams = (plain, replace(plain, upstream_id=FILTERED, **differing))  # type: ignore[arg-type]
    return idle(findings=Findings(recorded=recorded), sensed=Sweep(upstreams=upstreams))


def test_an_upstream_with_two_queries_is_distinguished_by_what_they_select() -> None:
    page = printed(found_twice(preprocess_query=QUERY))
    assert "  sales.orders, no query " in page
    assert "  sales.orders, WHERE amount > 100 " in page


def test_an_upstream_with_two_keys_is_distinguished_by_them() -> None:
    page = printed(found_twice(upstream_key="load_date"))
    assert "  sales.orders, no key " in page
    assert "  sales.orders, key load_date " in page


def test_upstreams_of_one_name_that_nothing_is_known_of_are_distinguished_by_their_ids() -> None:
    report = replace(found_twice(), sensed=Sweep())
    assert f"  {FILTERED} " in printed(report)


def test_what_distinguishes_two_queries_is_not_cut_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    page = printed(found_twice(preprocess_query=QUERY))
    assert "…" not in page


def test_a_run_that_is_given_back_for_a_retry_has_not_ended_now() -> None:
    row = started(RunStatus.RETRY_REQUESTED, reported_by="operator", run_id=70)
    page = printed(with_settled(row))
    assert "requeued for a retry 1" in page
    assert "1 run requeued" in page
    assert "ended" not in page
    assert "RETRY_REQUESTED" not in page


def test_a_run_that_is_requeued_is_noteworthy_and_settled_for_scripts() -> None:
    report = with_settled(started(RunStatus.RETRY_REQUESTED, reported_by="operator", run_id=70))
    assert is_noteworthy(report)
    assert as_json(report, 0)["settled"] == 1


def test_a_run_that_is_given_up_is_shown_with_its_reason_and_has_not_ended_now() -> None:
    output = "released by ada: loaded by hand; it was FAILED"
    report = with_settled(started(RunStatus.RELEASED, reported_by="operator", message=output))
    page = printed(report)
    assert "1 run released" in headline(report)
    assert output in page
    assert "ended" not in page
    assert is_noteworthy(report)
    assert as_json(report, 0)["settled"] == 1


@pytest.mark.parametrize(
    ("upstream_id", "failure", "said"),
    [
        (
            ORDERS,
            "The Delta table sales.orders cannot be sensed: the table sales.orders does not exist.",
            "the table does not exist.",
        ),
        (
            "delta_table:/lake/a:1",
            "The Delta table /lake/a cannot be sensed: the folder /lake/a does not exist.",
            "the folder does not exist.",
        ),
        (
            "delta_table:/lake/a:1",
            "The Delta table /lake/a cannot be sensed: /lake/a is not a Delta table: it is empty.",
            "it is not a Delta table: it is empty.",
        ),
        (
            "delta_table:/lake/a:1",
            "The Delta table /lake/a cannot be sensed: access to /lake/a/_delta_log is denied.",
            "access to /lake/a/_delta_log is denied.",
        ),
        (
            "file:/data/in:1",
            "The files /data/in cannot be sensed: the folder does not exist.",
            "the folder does not exist.",
        ),
        (
            "trigger_file:month_end:1",
            "The trigger folder month_end cannot be sensed: the folder does not exist under /in.",
            "the folder does not exist under /in.",
        ),
        (
            ORDERS,
            "delta_table sales.orders has not answered since 10:00.",
            "has not answered since 10:00.",
        ),
        (ORDERS, "no such folder", "no such folder"),
    ],
)
def test_why_an_upstream_cannot_be_read_does_not_repeat_its_name(
    upstream_id: str, failure: str, said: str
) -> None:
    result = ProbeResult(upstream_id=upstream_id, failure=failure)
    report = idle(sensed=Sweep(results=(result,)))
    assert printed(report).splitlines()[-1].split("  ")[-1].strip() == said


def on_a_terminal(report: TickReport, width: int = 80) -> list[str]:
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system="standard")
    show(console, report)
    return stream.getvalue().splitlines()


def plain(lines: list[str]) -> list[str]:
    return [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in lines]


def waiting_tick() -> TickReport:
    held = replace(
        WAITING,
        blocker="last_run_failed",
        reason="its last run 4040663933044149755 ended FAILED: " + "boom " * 40,
    )
    far = replace(WAITING, reason=f"its hard dependency {'/data/lake' * 9}/orders has nothing new")
    blockers = {1: (WAITING,), 2: (held,), 3: (far,)}
    names = {1: "b", 2: "stock-alert", 3: "a"}
    published = Publication(
        tick=idle().tick,
        changed=(),
        blockers=blockers,
        job_names=names,
        has_compacted=False,
        folded_through=1,
    )
    return idle(publication=published)


def test_a_held_job_has_its_own_section_in_red_with_the_command_that_helps() -> None:
    lines = on_a_terminal(waiting_tick())
    place = next(place for place, line in enumerate(lines) if "held 1" in line)
    assert lines[place].startswith("\x1b[1;31m")
    shown = plain(lines)
    assert shown[place + 2].startswith("  stock-alert")
    assert "  FAILED: boom boom" in shown[place + 2]
    assert shown[place + 3] == "  → remove the cause, then: python -m harness retry stock-alert"
    assert "waiting 2" in shown[place + 4]


def test_waiting_jobs_are_sorted_by_name_with_one_line_each_and_no_colour_of_alarm() -> None:
    lines = on_a_terminal(waiting_tick())
    place = next(place for place, line in enumerate(lines) if "waiting 2" in line)
    assert lines[place].startswith("\x1b[1mwaiting")
    shown = plain(lines)[place + 2 :]
    assert [line.split()[0] for line in shown] == ["a", "b"]
    assert "…/datalake/orders" in shown[0] or "…/lake/orders" in shown[0]


def test_in_brief_only_the_jobs_wait_whose_reasons_have_changed() -> None:
    report = waiting_tick()
    assert report.publication is not None
    changed = replace(decision(7, TEN), job_id=3)
    news = replace(report, publication=replace(report.publication, changed=(changed,)))
    shown = printed(news, is_brief=True).splitlines()
    assert [line.split()[0] for line in shown[-3:]] == ["job", "a", "1"]
    assert shown[-1] == "  1 job more as before"
    assert "as before" not in printed(news)


def test_a_headline_is_wrapped_between_words() -> None:
    report = replace(
        waiting_tick(),
        control_changes={"added": 5, "removed": 7},
        warnings=("one word after another " * 6,),
    )
    for width in (60, 80):
        shown = plain(on_a_terminal(report, width))
        assert max(map(len, shown)) <= width
        words = " ".join(" ".join(shown).split())
        assert "5 control rows added, 7 control rows removed" in words
        assert "one word after another one word" in words


def test_a_started_job_is_shown_with_its_run() -> None:
    row = started(RunStatus.STARTED, run_id=2**60)
    assert f"…{str(2**60)[-6:]}" in printed(busy(row))
    assert busy(row).is_clean


def test_a_refused_start_is_a_failure_and_states_why() -> None:
    report = busy(started(RunStatus.REFUSED, message="no such job"))
    assert not report.is_clean
    assert "refused: no such job" in printed(report)


def test_a_start_that_is_refused_when_it_is_sent_again_is_a_failure() -> None:
    report = with_settled(started(RunStatus.REFUSED, reported_by="answer", message="no such job"))
    assert not report.is_clean


def test_a_start_of_which_nothing_shows_whether_it_runs_is_a_failure_and_states_what_to_do() -> (
    None
):
    row = started(RunStatus.PARKED, reported_by="poll", message="no answer; `retry 5` starts it")
    report = with_settled(row)
    assert not report.is_clean
    assert "PARKED" in printed(report)
    assert "`retry 5` starts it" in printed(report)


def test_a_start_that_was_refused_when_sent_again_is_not_reported_to_be_sent_once_more() -> None:
    row = started(RunStatus.INTENDED, reported_by="answer", message="no such job")
    page = printed(with_settled(replace(row, termination_code="INVALID_PARAMETER_VALUE")))
    assert "refused when sent again" in page
    assert "sent again by the next tick" not in page


def test_a_start_that_an_earlier_tick_intended_counts_as_fired_not_as_settled() -> None:
    row = started(RunStatus.STARTED, reported_by="answer", run_id=70)
    content = as_json(with_settled(row), 0)
    assert content["settled"] == 0
    assert content["fired"][0]["run_id"] == "70"  # type: ignore[index]


def test_a_job_that_failed_is_no_failure_of_the_tick() -> None:
    row = started(RunStatus.FAILED, reported_by="poll", run_id=70, message="boom")
    report = with_settled(replace(row, started_at=TEN, ended_at=minutes(2)))
    assert report.is_clean
    assert "boom" in printed(report)
    assert as_json(report, 0)["settled"] == 1


def test_a_run_that_could_not_be_queried_is_a_failure() -> None:
    report = with_settled(job_5="the Jobs API does not answer")
    assert not report.is_clean
    assert "the Jobs API does not answer" in printed(report)


def test_a_probe_that_failed_is_a_failure_and_noteworthy() -> None:
    result = ProbeResult(upstream_id=ORDERS, failure="no such folder")
    report = idle(sensed=Sweep(results=(result,)))
    assert not report.is_clean
    assert is_noteworthy(report)
    assert as_json(report, 0)["failures"] == [
        {"sensor_id": "sales.orders", "reason": "no such folder"}
    ]


def test_a_trouble_is_noteworthy_once_and_again_when_it_changes() -> None:
    result = ProbeResult(upstream_id=ORDERS, failure="no such folder")
    report = idle(sensed=Sweep(results=(result,)))
    assert not is_noteworthy(report, frozenset({"no such folder"}))
    assert is_noteworthy(report, frozenset({"a corrupt commit"}))
    assert is_noteworthy(idle(), frozenset({"no such folder"}))


def with_waiting(*blockers: Blocker) -> TickReport:
    row = replace(decision(7, TEN), blockers=blockers)
    publication = Publication(
        tick=busy().tick,
        blockers={JOB: blockers},
        job_names={JOB: "daily"},
        changed=(row,),
        has_compacted=False,
        folded_through=-1,
    )
    return replace(busy(), publication=publication)


def test_a_waiting_job_states_why_and_for_how_long() -> None:
    assert "daily  1h 30m  its hard dependency sales.x has nothing new" in printed(
        with_waiting(WAITING)
    )


def test_why_a_job_waits_states_the_name_of_its_upstream_once() -> None:
    unreadable = replace(
        WAITING,
        reason="its hard dependency sales.x cannot be read:"
        " The Delta table sales.x cannot be sensed: the table sales.x does not exist.",
    )
    assert "its hard dependency sales.x cannot be read: the table does not exist." in printed(
        with_waiting(unreadable)
    )


def test_more_dependencies_are_counted() -> None:
    assert "was consumed (and 1 more)" in printed(with_waiting(WAITING, WAITING))


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


def deferred(*, is_failing: bool = True) -> TickReport:
    upstream_id = "kafka:shop: orders:ab5c14a4"
    later = minutes(4) if is_failing else None
    reason = "The Kafka topic shop: orders cannot be sensed: it is down."
    each = Deferred(
        upstream_id=upstream_id, reason=reason, next_probe_at=later, is_failing=is_failing
    )
    return idle(sensed=replace(idle().sensed, deferred=(each,)))


def test_what_is_put_off_is_counted_and_is_not_nothing_new() -> None:
    assert headline(deferred()).endswith("probed 14 upstreams, 1 deferred  (0.2s)")


def test_what_is_put_off_is_shown_with_its_next_try_and_its_reason() -> None:
    page = printed(deferred())
    assert "deferred 1" in page
    assert "shop: orders  10:04:00Z  it is down." in page


def test_what_others_hold_up_is_shown_for_the_next_tick() -> None:
    assert "next tick" in printed(deferred(is_failing=False))


def test_what_is_put_off_is_no_failure_for_scripts() -> None:
    reported = as_json(deferred(), 0)
    assert (reported["failed_looks"], reported["failures"], reported["put_off"]) == (0, [], 1)
    assert reported["put_off_looks"] == [
        {
            "sensor_id": "shop: orders",
            "reason": "The Kafka topic shop: orders cannot be sensed: it is down.",
            "next_look_at": "2026-03-01T10:04:00Z",
        }
    ]


def test_a_tick_that_puts_off_what_fails_is_not_clean() -> None:
    assert not deferred().is_clean


def test_a_failure_that_is_put_off_and_tried_again_is_reported_once() -> None:
    reason = deferred().sensed.deferred[0].reason
    result = ProbeResult(upstream_id="kafka:shop: orders:ab5c14a4", failure=reason)
    failed = idle(sensed=Sweep(results=(result,)))
    assert not is_noteworthy(deferred(), problems(failed))
    assert not is_noteworthy(failed, problems(deferred()))


def test_what_a_tick_could_not_read_is_shown_and_ends_it_with_one() -> None:
    item = Quarantined(name="1.json", since=TEN, reason="it is a link", path=Path("q"))
    report = idle(quarantined=(item,))
    assert not report.is_clean
    assert "1 quarantined" in headline(report)
    assert "it is a link" in printed(report)
    assert as_json(report, 0)["quarantined"] == [
        {"name": "1.json", "reason": "it is a link", "path": "q"}
    ]
    assert is_noteworthy(report)
    assert not is_noteworthy(report, problems(report))

"""What `status` shows: attention first, one screen for many jobs, and its JSON for scripts."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.views.status import Page
from harness.cli.views.terminal import console_for
from harness.controls.findings import WITHOUT_ROWS
from harness.inspect.status import Status, as_json, discarded_since
from harness.sense.backoff import Failing
from harness.settle.run_progress import NO_STATE, NOT_KNOWN
from harness.store.public_tables import CONTROL_TABLE
from harness.store.quarantine import Quarantined
from harness.store.queries import (
    JobReasons,
    LastDecision,
    LockHolder,
    holder_of,
    last_decision,
    last_tick_at,
    newest_runs,
    runs_now,
)
from harness.store.rows import Blocker, Ledger, Run, RunStatus
from harness.store.trigger_queries import FailingTrigger
from harness.store.writer.lock import ProcessLock, note_tick
from tests.support.ledgers import JOB, TEN, FakeStore, a_day, minutes, run

NOW = minutes(600)
NOTHING_NEW = Blocker(
    blocker="waiting_for_required_event",
    reason="its hard dependency sales.orders has nothing new since its last event was consumed",
    waits_for="a new data-change event of sales.orders",
    since=TEN,
)


def status_of(count: int, runs: Sequence[Run] = (), **blockers: Blocker) -> Status:
    """So many jobs, each waiting unless a reason is given for its name (``job_3``)."""
    control = [
        dict.fromkeys(CONTROL_TABLE.columns)
        | {"trigger_job_id": str(number), "trigger_job_name": f"job_{number}", "sensor_id": "x"}
        for number in range(count)
    ]
    jobs = tuple(
        JobReasons(
            job_id=number,
            job_name=f"job_{number}",
            blockers=(blockers.get(f"job_{number}", NOTHING_NEW),),
        )
        for number in range(count)
    )
    decision = LastDecision(tick_id="7-x", tick_number=7, tick_at=minutes(598), jobs=jobs)
    return Status(
        now=NOW,
        control=control,
        sensors=[],
        runs=list(runs),
        decision=decision,
        holder=None,
        last_tick_at=minutes(599),
    )


def a_run(job_id: int, status: RunStatus, **changed: object) -> Run:
    return run(1, 1, minutes(590), status, job_id=job_id, intent_id=str(job_id), **changed)


def page(status: Status, *, every_job: bool = False) -> list[str]:
    stream = StringIO()
    Page(console_for(stream), status, every_job=every_job).show()
    return stream.getvalue().splitlines()


def section(lines: Sequence[str], title: str) -> str:
    """The lines under a heading, up to the next one."""
    start = next(place for place, line in enumerate(lines) if line.startswith(title))
    rest = lines[start + 1 :]
    end = next((place for place, line in enumerate(rest) if line[:1].strip()), len(rest))
    return "\n".join(rest[:end])


def test_a_hundred_jobs_fit_a_screen() -> None:
    assert len(page(status_of(100))) <= 24


def test_every_job_is_shown_when_requested() -> None:
    assert sum("job_" in line for line in page(status_of(100), every_job=True)) == 100


def test_a_failed_job_is_shown_first_and_not_as_waiting() -> None:
    lines = page(status_of(3, [a_run(1, RunStatus.FAILED, message="boom")]))
    assert "boom" in section(lines, "held 1")
    assert "job_1" not in section(lines, "waiting 2")


def test_held_jobs_are_shown_with_the_commands_that_help() -> None:
    one = page(status_of(3, [a_run(1, RunStatus.FAILED, job_name="job 1")]))
    two = page(status_of(3, [a_run(1, RunStatus.FAILED), a_run(2, RunStatus.LOST)]))
    assert "remove the cause, then: python -m harness retry job_1" in section(one, "held 1")
    assert "remove the cause, then: python -m harness retry JOB" in section(two, "held 2")


def a_page_with_everything() -> Status:
    long = "/data/" + "lake/" * 30 + "sales/orders"
    runs = [
        a_run(1, RunStatus.FAILED, message=f"cannot read {long}: " + "boom " * 50),
        a_run(2, RunStatus.INTENDED, message="503 " * 60),
        a_run(3, RunStatus.STARTED, run_id=2**62, started_at=NOW),
    ]
    unread = f"its hard dependency {long} cannot be read: the folder {long} does not exist"
    status = status_of(9, runs, job_4=replace(NOTHING_NEW, reason=unread))
    item = Quarantined(name=f"{long}.json", since=TEN, reason="no JSON " * 30, path=Path("q"))
    trigger = FailingTrigger(trigger_id="daily", since=TEN, reason="it is no query " * 20)
    return replace(status, quarantined=[item], failing_triggers=[trigger])


@pytest.mark.parametrize("width", [80, 120])
def test_each_row_has_one_line_that_fits_the_terminal(width: int) -> None:
    stream = StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    Page(console, a_page_with_everything(), every_job=False).show()
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for title, rows in [("held 1", 2), ("needs attention 3", 3), ("running 1", 1), ("waiting", 4)]:
        assert len(section(lines, title).splitlines()) == rows + 1
    assert section(lines, "needs attention 3").count("/sales/orders") >= 1


def colours_of(status: Status) -> dict[str, str]:
    stream = StringIO()
    console = Console(file=stream, width=120, force_terminal=True, color_system="standard")
    Page(console, status, every_job=False).show()
    headings = re.findall(r"^\x1b\[(1[\d;]*)m([a-z ]+) \d", stream.getvalue(), re.MULTILINE)
    return {title: codes for codes, title in headings}


def test_red_is_for_what_is_held_yellow_for_attention_and_green_for_what_runs() -> None:
    colours = colours_of(a_page_with_everything())
    red, yellow, green, bold = "1;31", "1;33", "1;32", "1"
    assert colours == {
        "held": red,
        "needs attention": yellow,
        "running": green,
        "quarantined": red,
        "waiting": bold,
    }


def test_waiting_jobs_are_sorted_by_their_names() -> None:
    lines = section(page(status_of(12), every_job=True), "waiting 12").splitlines()
    names = [line.split()[0] for line in lines[1:]]
    assert names == sorted(names)


def test_a_start_without_an_answer_needs_attention() -> None:
    lines = page(status_of(3, [a_run(1, RunStatus.INTENDED, message="503")]))
    assert "503" in section(lines, "needs attention 1")


def test_what_a_job_was_handed_on_its_own_schedule_waits_for_no_answer() -> None:
    lines = page(status_of(3, [a_run(1, RunStatus.ACQUIRED, decided_at=NOW)]))
    assert "its own" in section(lines, "running 1")
    assert not any("no answer" in line for line in lines)


def test_a_run_that_goes_on_for_hours_needs_attention() -> None:
    long = a_run(1, RunStatus.STARTED, run_id=70, started_at=NOW - timedelta(hours=7))
    short = a_run(2, RunStatus.STARTED, run_id=71, started_at=NOW - timedelta(hours=1))
    lines = page(status_of(3, [long, short]))
    assert "run 70" in section(lines, "needs attention 1")
    assert "71" in section(lines, "running 1")


def test_a_run_that_has_succeeded_needs_nothing() -> None:
    lines = page(status_of(3, [a_run(1, RunStatus.SUCCEEDED, run_id=70, started_at=TEN)]))
    assert not any(line.startswith("needs attention") for line in lines)


def waiting_in_a_queue(minutes_ago: float) -> Run:
    return a_run(
        1,
        RunStatus.STARTED,
        run_id=70,
        started_at=NOW - timedelta(minutes=90),
        recorded_at=NOW - timedelta(minutes=minutes_ago),
        life_cycle_state="QUEUED",
        state="QUEUED",
        message="behind another run",
    )


def test_a_run_in_a_queue_is_shown_as_waiting_there() -> None:
    lines = page(status_of(3, [waiting_in_a_queue(20)]))
    assert "1 event, QUEUED for 20m" in section(lines, "running 1")
    assert not any(line.startswith("needs attention") for line in lines)


def test_a_run_that_stays_in_a_queue_needs_attention_with_the_deadline() -> None:
    output = section(page(status_of(3, [waiting_in_a_queue(61)])), "needs attention 1")
    for part in ("QUEUED", "1h 1m", "run 70 waits (behind another run)", "after 48 hours"):
        assert part in " ".join(output.split())


def test_a_run_in_words_that_are_unknown_needs_attention_with_the_words() -> None:
    words = {"life_cycle_state": "WARMING_UP", "state": "WARMING_UP", "message": "soon"}
    run_in_words = a_run(1, RunStatus.STARTED, run_id=70, started_at=NOW, **words)
    output = section(page(status_of(3, [run_in_words])), "needs attention 1")
    assert "(WARMING_UP): soon" in " ".join(output.split())


@pytest.mark.parametrize("message", [NOT_KNOWN, NO_STATE])
def test_a_run_of_which_the_api_reports_nothing_needs_attention(message: str) -> None:
    silent = a_run(1, RunStatus.STARTED, run_id=70, started_at=NOW, message=message)
    output = section(page(status_of(3, [silent])), "needs attention 1")
    assert f"run 70: {message}" in " ".join(output.split())


GIVEN_UP = "released by ada: loaded by hand; it was FAILED: boom"


def test_what_an_operator_gave_up_is_shown_with_who_and_why_and_needs_nothing() -> None:
    run_given_up = a_run(1, RunStatus.RELEASED, run_id=70, message=GIVEN_UP)
    lines = page(replace(status_of(3), discarded=[run_given_up]))
    assert GIVEN_UP in section(lines, "recently released 1")
    assert not any(line.startswith("needs attention") for line in lines)


def released(at_minute: int, **changed: object) -> FakeStore:
    """A job whose first run was given up; its last step is in the compacted state."""
    store = FakeStore()
    row = run(1, 3, minutes(at_minute), RunStatus.RELEASED, message=GIVEN_UP, **changed)
    store.append(Ledger.RUNS, [row])
    store.tables["run_state"] = store.read(Ledger.RUNS)
    return store


def test_a_run_that_was_given_up_is_remembered_for_some_days() -> None:
    store = released(10)
    (reported,) = discarded_since(store, TEN, folded_through=1)
    assert reported.message == GIVEN_UP
    assert discarded_since(store, minutes(11), folded_through=1) == []


def test_a_run_that_was_given_up_is_of_no_interest_once_the_job_has_run_since() -> None:
    store = released(10)
    newer = {"intent_id": "second", "decided_tick": 2, "decided_at": minutes(20)}
    store.append(Ledger.RUNS, [run(2, 1, minutes(20), RunStatus.STARTED, **newer)])
    assert discarded_since(store, TEN, folded_through=1) == []


def test_an_unreadable_upstream_is_shown_once_for_all_its_jobs() -> None:
    reason = "its hard dependency sales.x cannot be read: no such folder"
    broken = replace(NOTHING_NEW, reason=reason)
    lines = page(status_of(9, job_3=broken, job_5=broken, job_8=broken))
    assert "no such folder (blocks job_3 and 2 more)" in section(lines, "needs attention 1")
    assert any(line.startswith("waiting 6") for line in lines)


def failing(wait_seconds: float, reason: str = "no such folder") -> Failing:
    return Failing(
        upstream_id="file:sales.x:ab5c14a4",
        reason=reason,
        failed_looks=4,
        since=NOW - timedelta(hours=1),
        failed_at=NOW - timedelta(minutes=1),
        wait_seconds=wait_seconds,
    )


def unreadable() -> Status:
    reason = "its hard dependency sales.x cannot be read: no such folder"
    return status_of(9, job_3=replace(NOTHING_NEW, reason=reason))


def test_an_unreadable_upstream_is_shown_with_its_next_try() -> None:
    lines = page(replace(unreadable(), failing=[failing(240)]))
    assert "20:03:00Z  no such folder" in section(lines, "needs attention 1")


def test_an_unreadable_upstream_that_is_due_is_tried_by_the_next_tick() -> None:
    lines = page(replace(unreadable(), failing=[failing(20)]))
    assert "next tick  no such folder" in section(lines, "needs attention 1")


def test_an_unreadable_upstream_that_holds_no_job_up_is_shown_by_its_name() -> None:
    lines = page(replace(status_of(9), failing=[failing(240)]))
    assert "unreadable  sales.x " in section(lines, "needs attention 1")


def test_unreadable_upstreams_of_one_table_are_distinguished_by_their_queries() -> None:
    plain = replace(failing(240, "gone"), source="delta_table", read_type="batch")
    query = "select * from sensor_new_data where amount > 100"
    filtered = replace(
        plain, upstream_id="file:sales.x:0", reason="no column amount", preprocess_query=query
    )
    lines = page(replace(status_of(9), failing=[plain, filtered]))
    reported = section(lines, "needs attention 2")
    assert "sales.x, no query " in reported
    assert "sales.x, where amount > 100" in reported


def test_the_next_try_stays_when_the_reason_is_too_long_for_the_page() -> None:
    lines = page(replace(status_of(9), failing=[failing(240, "x" * 500)]))
    assert " 20:03:00Z " in section(lines, "needs attention 1")


def test_scripts_get_the_next_try_of_what_fails() -> None:
    reported = as_json(replace(status_of(1), failing=[failing(240)]))
    assert json.loads(json.dumps(reported))["failing"][0] == {
        "sensor_id": "sales.x",
        "upstream_id": "file:sales.x:ab5c14a4",
        "reason": "no such folder",
        "failing_since": "2026-03-01T19:00:00Z",
        "failed_looks": 4,
        "last_look_at": "2026-03-01T19:59:00Z",
        "next_look_at": "2026-03-01T20:03:00Z",
    }


@pytest.mark.parametrize(
    ("at", "told"), [(NOW - timedelta(minutes=1), "2026-03-01T19:59:00Z"), (None, None)]
)
def test_scripts_get_the_instant_through_which_all_is_reported(
    at: datetime | None, told: str | None
) -> None:
    assert as_json(replace(status_of(1), last_tick_at=at))["last_tick_at"] == told


def test_jobs_over_the_limit_of_starts_come_before_those_that_wait() -> None:
    ready = replace(NOTHING_NEW, blocker="over_start_limit", reason="one tick starts no more")
    waiting = section(page(status_of(100, job_77=ready)), "waiting 100")
    assert "job_77" in waiting.splitlines()[1]


def test_an_old_picture_states_that_it_is_old() -> None:
    lines = page(replace(status_of(3), last_tick_at=NOW - timedelta(hours=3)))
    assert "no tick for 3h: this is how things stood then" in lines


def test_the_process_that_is_at_work_is_shown() -> None:
    holder = LockHolder(pid=4242, command="run", since=NOW - timedelta(minutes=30))
    assert "`run` has been at work for 30m (pid 4242)" in page(replace(status_of(3), holder=holder))


def test_text_of_others_cannot_move_the_cursor() -> None:
    lines = page(status_of(3, [a_run(1, RunStatus.FAILED, message="\x1b[2Jboom [bold]x")]))
    assert "\\x1b[2Jboom [bold]x" in section(lines, "held 1")


def test_without_a_terminal_there_is_no_colour() -> None:
    assert not any("\x1b" in line for line in page(status_of(3, [a_run(1, RunStatus.FAILED)])))


def test_json_has_its_keys_with_ids_as_strings_and_instants_in_utc() -> None:
    first = status_of(1, [a_run(0, RunStatus.FAILED, run_id=JOB)])
    content = json.loads(json.dumps(as_json(first)))
    assert list(content) == [
        "control",
        "blockers",
        "runs",
        "sensors",
        "failing",
        "failing_triggers",
        "quarantined",
        "last_tick_at",
    ]
    assert list(content["control"][0]) == list(CONTROL_TABLE.columns)
    assert content["runs"][0]["run_id"] == str(JOB)
    assert content["blockers"][0]["job_id"] == "0"
    assert content["blockers"][0]["since"] == "2026-03-01T10:00:00Z"


def test_the_newest_step_of_a_run_counts_in_whatever_order_they_are_read() -> None:
    rows = a_day().read(Ledger.RUNS)
    statuses = [each.run_status for each in newest_runs(reversed(rows))]
    assert statuses == [RunStatus.SUCCEEDED, RunStatus.RETRY_REQUESTED, RunStatus.STARTED]


def test_the_ledgers_tail_overrules_the_folded_state() -> None:
    store = a_day()
    store.tables["run_state"] = [
        row
        for row in store.read(Ledger.RUNS)
        if row["tick_number"] == 3 and row["step_number"] == 2
    ]
    (second,) = [
        each
        for each in runs_now(store, folded_through=3)
        if (each.intent_id, each.attempt) == ("second", 1)
    ]
    assert second.run_status is RunStatus.RETRY_REQUESTED


def test_the_holder_of_the_lock_is_seen_only_while_it_holds_it(tmp_path: Path) -> None:
    with ProcessLock(tmp_path, command="tick"):
        holder = holder_of(tmp_path)
        assert holder is not None
        assert holder.command == "tick"
    assert holder_of(tmp_path) is None


def test_a_tick_that_found_nothing_leaves_a_sign(tmp_path: Path) -> None:
    assert last_tick_at(tmp_path, None) is None
    note_tick(tmp_path, NOW)
    assert last_tick_at(tmp_path, None) == NOW


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tick_id": "x"}'])
def test_a_broken_status_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "status.json").write_text(content)
    assert last_decision(tmp_path / "status.json") is None


def test_a_failed_job_that_starts_again_by_itself_shows_when_before_it_shows_how_it_failed() -> (
    None
):
    failed = a_run(1, RunStatus.FAILED, message="boom " * 100, attempt=2)
    waits_for = "2026-03-01T20:05:00Z and no other run of it, or `retry 1`"
    backs_off = replace(
        NOTHING_NEW, blocker="backing_off", waits_for=waits_for, since=failed.recorded_at
    )
    reported = section(page(status_of(3, [failed], job_1=backs_off)), "needs attention 1")
    assert "attempt 3 starts automatically from 2026-03-01T20:05:00Z on; boom" in " ".join(
        reported.split()
    )


def test_a_back_off_that_was_reported_for_an_earlier_attempt_is_not_shown_for_this_one() -> None:
    failed = a_run(1, RunStatus.FAILED, message="boom", attempt=2)
    earlier = failed.recorded_at - timedelta(minutes=30)
    backs_off = replace(NOTHING_NEW, blocker="backing_off", since=earlier)
    reported = section(page(status_of(3, [failed], job_1=backs_off)), "held 1")
    assert "automatically" not in reported


def test_what_is_quarantined_is_shown_with_its_reason_to_people_and_scripts() -> None:
    item = Quarantined(name="1.json", since=minutes(-60), reason="it is a link", path=Path("q"))
    status = replace(status_of(1, []), quarantined=[item])
    lines = page(status)
    assert "1.json" in section(lines, "quarantined 1")
    assert "it is a link" in section(lines, "quarantined 1")
    [shown] = as_json(status)["quarantined"]  # type: ignore[misc]
    assert (shown["name"], shown["reason"]) == ("1.json", "it is a link")


def test_without_a_job_the_page_states_what_to_do_first() -> None:
    assert " ".join(page(status_of(0))).startswith(f"0 jobs {WITHOUT_ROWS}")

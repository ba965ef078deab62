"""What `explain` answers, now and for any instant before."""

from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest

from harness.cli.views.explain import show
from harness.cli.views.terminal import console_for
from harness.inspect.explain import Answer, Verdict, answer_to, as_json
from harness.inspect.job_history import History, history_of
from harness.store.rows import Consumed, Ledger, RunStatus
from tests.support.ledgers import (
    CUSTOMERS,
    JOB,
    ORDERS,
    TEN,
    FakeStore,
    a_day,
    control,
    decision,
    event,
    minutes,
    probe,
    run,
)


def at(minute: int) -> History:
    return history_of(a_day(), JOB, at=minutes(minute), is_now=False)


def answer_at(minute: int) -> Answer:
    return answer_to(at(minute))


def printed(history: History) -> str:
    stream = StringIO()
    show(console_for(stream), history)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("minute", "verdict"),
    [
        (-1, Verdict.NOT_IN_CONTROLS),
        (0, Verdict.RUNNING),
        (9, Verdict.RUNNING),
        (10, Verdict.WAITING),
        (20, Verdict.RUNNING),
        (30, Verdict.HELD),
        (40, Verdict.STARTING),
        (50, Verdict.RUNNING),
        (60, Verdict.NOT_IN_CONTROLS),
    ],
)
def test_each_instant_of_a_day_has_its_own_verdict(minute: int, verdict: Verdict) -> None:
    assert answer_at(minute).verdict is verdict


def test_a_waiting_job_is_shown_in_the_words_of_the_decision() -> None:
    answer = answer_at(15)
    assert answer.sentence.startswith("its hard dependency sales.orders has nothing new")
    assert answer.next_steps == ("the cure of waiting_for_required_event",)


def test_a_held_job_is_shown_with_the_words_of_the_jobs_api_and_how_to_retry() -> None:
    answer = answer_at(35)
    assert answer.sentence == "its last run 71 ended FAILED: The command ended with 1."
    assert answer.since == minutes(29)
    assert any(each.endswith(f"python -m harness retry {JOB}") for each in answer.next_steps)
    assert any(f"python -m harness release {JOB}" in each for each in answer.next_steps)


def test_a_run_that_waits_in_a_queue_is_shown_with_its_words_and_its_reason() -> None:
    store = a_day()
    queued = {"run_id": 72, "state": "QUEUED", "message": "behind another run", "attempt": 2}
    queued |= {"intent_id": "second", "decided_tick": 5, "decided_at": minutes(40)}
    store.append(Ledger.RUNS, [run(6, 2, minutes(51), RunStatus.STARTED, **queued)])
    answer = answer_to(history_of(store, JOB, at=minutes(55), is_now=False))
    assert answer.verdict is Verdict.RUNNING
    assert answer.sentence.startswith("run 72 waits (QUEUED): behind another run; it received")


def test_events_that_were_given_up_are_taken_and_the_run_states_why() -> None:
    store = a_day()
    rows = store.tables[Ledger.RUNS]
    store.tables[Ledger.RUNS] = [row for row in rows if row["tick_number"] < 5]
    output = "released by ada: loaded by hand; it was FAILED: boom"
    discarded = {
        "intent_id": "second",
        "decided_tick": 3,
        "decided_at": minutes(20),
        "message": output,
    }
    consumed = (Consumed(upstream_id=ORDERS, from_tick=1, through_tick=3),)
    store.append(
        Ledger.RUNS, [run(5, 1, minutes(40), RunStatus.RELEASED, **discarded, consumed=consumed)]
    )
    history = history_of(store, JOB, at=minutes(45), is_now=False)
    (orders,) = [each for each in history.dependencies if each.upstream_id == ORDERS]
    assert not orders.has_news
    assert answer_to(history).verdict is not Verdict.HELD
    assert "released by an operator" in printed(history)
    assert output in " ".join(printed(history).split())


def test_a_start_without_an_answer_states_that_it_happens_once() -> None:
    assert "the same token again, so it starts once" in answer_at(45).next_steps[0]


def test_an_event_is_taken_by_the_run_that_was_handed_it() -> None:
    (orders,) = [each for each in at(15).dependencies if each.upstream_id == ORDERS]
    assert orders.consumed_by is not None
    assert orders.consumed_by.run_id == 70


def test_an_event_that_a_later_run_has_not_taken_is_new_data() -> None:
    store = a_day()
    store.append(Ledger.PROBES, [probe(4, minutes(25), ORDERS)])
    history = history_of(store, JOB, at=minutes(26), is_now=False)
    (orders,) = [each for each in history.dependencies if each.upstream_id == ORDERS]
    assert orders.has_news
    assert "then what has come since: sales.orders" in answer_to(history).next_steps


def test_events_given_back_by_a_retry_wait_until_the_next_attempt_takes_them() -> None:
    store = a_day()
    rows = store.tables[Ledger.RUNS]
    store.tables[Ledger.RUNS] = [row for row in rows if row["attempt"] == 1]
    history = history_of(store, JOB, at=minutes(45), is_now=False)
    (orders,) = [each for each in history.dependencies if each.upstream_id == ORDERS]
    assert orders.has_news


def test_the_next_attempt_takes_what_the_first_one_gave_back() -> None:
    (orders,) = [each for each in at(45).dependencies if each.upstream_id == ORDERS]
    assert orders.consumed_by is not None
    assert orders.consumed_by.attempt == 2


def test_hard_dependencies_come_first() -> None:
    assert [each.is_required for each in at(15).dependencies] == [True, False]


def test_an_upstream_that_was_never_probed_is_shown_as_such() -> None:
    assert "not probed yet" in printed(at(15))


def test_an_upstream_that_cannot_be_read_shows_since_when_and_why() -> None:
    store = a_day()
    broken = {"failing_since": minutes(12), "reason": "no such folder", "latest_event_tick": None}
    store.append(Ledger.PROBES, [probe(2, minutes(12), CUSTOMERS, **broken)])
    history = history_of(store, JOB, at=minutes(15), is_now=False)
    assert "cannot be read for 3m: no such folder" in printed(history)


def test_a_job_whose_rows_are_all_paused_is_paused() -> None:
    store = a_day()
    paused = {"change": "changed", "job_state": "PAUSED"}
    store.append(
        Ledger.CONTROLS,
        [
            control(3, minutes(12), "sales.orders", **paused),
            control(3, minutes(12), "sales.customers", **paused),
        ],
    )
    history = history_of(store, JOB, at=minutes(15), is_now=False)
    assert answer_to(history).verdict is Verdict.PAUSED


def test_a_job_over_the_limit_of_starts_is_ready() -> None:
    store = a_day()
    store.append(
        Ledger.DECISIONS,
        [decision(3, minutes(12), ("over_start_limit", "one tick starts no more"))],
    )
    history = history_of(store, JOB, at=minutes(15), is_now=False)
    assert answer_to(history).verdict is Verdict.READY


def test_rows_of_long_ago_are_found() -> None:
    history = history_of(a_day(), JOB, at=minutes(15) + timedelta(days=400), is_now=True)
    assert history.tick_number == 7
    assert history.last_run is not None
    assert history.last_run.run_id == 72


def test_now_includes_what_a_tick_recorded_whose_clock_is_ahead_of_the_readers() -> None:
    store, before_it = a_day(), minutes(15)
    assert history_of(store, JOB, at=before_it, is_now=False).tick_number == 2
    history = history_of(store, JOB, at=before_it, is_now=True)
    assert history.tick_number == 7
    assert history.last_run is not None
    assert history.last_run.run_id == 72


def test_a_job_on_its_own_schedule_waits_for_itself_however_long_it_has_its_events() -> None:
    store = a_day()
    store.tables[Ledger.RUNS] = []
    store.append(Ledger.RUNS, [run(2, 1, minutes(10), RunStatus.ACQUIRED, reported_by="job")])
    left_alone = ("on_own_schedule", "the job is a pull consumer: it fetches its events itself")
    store.append(Ledger.DECISIONS, [decision(3, minutes(11), left_alone)])
    history = history_of(store, JOB, at=minutes(15), is_now=False)
    assert answer_to(history).verdict is Verdict.WAITING
    assert answer_to(history).sentence.startswith("the job is a pull consumer")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (RunStatus.ACQUIRED, "passed to the job, not processed yet"),
        (RunStatus.SUCCEEDED, "consumed by a run of its own"),
        (RunStatus.INTENDED, "consumed by a start without an answer"),
    ],
)
def test_what_has_no_run_of_the_jobs_api_is_shown_with_what_holds_it(
    status: RunStatus, said: str
) -> None:
    store = a_day()
    store.tables[Ledger.RUNS] = []
    store.append(Ledger.RUNS, [run(2, 1, minutes(10), status)])
    assert said in printed(history_of(store, JOB, at=minutes(15), is_now=False))


def test_a_job_that_never_ran_is_shown_as_such() -> None:
    store = a_day()
    store.tables[Ledger.RUNS] = []
    assert "never started" in printed(history_of(store, JOB, at=minutes(15), is_now=False))


def test_the_printed_answer_begins_with_the_verdict() -> None:
    first = printed(at(30)).splitlines()[0]
    assert first.startswith(f"daily-revenue ({JOB}) was held for 1m: its last run 71 ended FAILED")


def test_a_sentence_of_the_jobs_api_is_not_ended_twice() -> None:
    assert printed(at(30)).splitlines()[0].endswith(" The command ended with 1.")


def test_an_event_is_shown_with_its_version_and_rows() -> None:
    assert "APPEND v40 1,204 rows" in printed(at(15))


def test_the_event_of_a_table_that_was_created_again_is_reported_as_such() -> None:
    store = a_day()
    newer = event(1, TEN + timedelta(seconds=1), ORDERS, "0")
    store.append(Ledger.EVENTS, [replace(newer, tags={"recreated": "true"})])
    assert "APPEND (re-created) v0" in printed(history_of(store, JOB, at=minutes(15), is_now=False))


def test_the_newest_of_several_events_of_one_tick_is_shown() -> None:
    store = a_day()
    store.append(Ledger.EVENTS, [event(1, TEN + timedelta(seconds=1), ORDERS, "43")])
    assert "v43" in printed(history_of(store, JOB, at=minutes(15), is_now=False))


def test_json_has_ids_as_strings_and_instants_in_utc() -> None:
    content = as_json(at(15))
    assert content["job_id"] == str(JOB)
    assert content["at"] == "2026-03-01T10:15:00Z"
    assert content["verdict"] == "waiting"
    assert content["runs"][0]["run_id"] == "70"  # type: ignore[index]


def a_failed_day(*blockers: tuple[str, str]) -> FakeStore:
    """A day whose retry fails at 10:55, after a further event has come."""
    store = a_day()
    again = {"intent_id": "second", "attempt": 2, "decided_tick": 5, "decided_at": minutes(40)}
    again |= {"run_id": 72, "started_at": minutes(50), "ended_at": minutes(54)}
    again |= {"consumed": (Consumed(upstream_id=ORDERS, from_tick=1, through_tick=6),)}
    store.append(Ledger.EVENTS, [event(6, minutes(50), ORDERS, "42")])
    failed = run(6, 9, minutes(55), RunStatus.FAILED, **again, message="boom")
    store.append(Ledger.RUNS, [replace(failed, event_ids=("e3", "e6"), event_count=2)])
    store.append(Ledger.DECISIONS, [decision(6, minutes(55), *blockers)])
    return store


BACKS_OFF = ("backing_off", "its last run 72 ended FAILED: boom; attempt 3 of 4 starts by itself")


def test_a_job_that_backs_off_shows_when_its_next_attempt_starts_and_what_else_helps() -> None:
    store = a_failed_day(BACKS_OFF)
    answer = answer_to(history_of(store, JOB, at=minutes(56), is_now=False))
    assert (answer.verdict, answer.sentence) == (Verdict.BACKING_OFF, BACKS_OFF[1])
    assert answer.since == minutes(54)
    assert "the next attempt, automatic: from the on" in answer.next_steps[0]
    assert [f"{each} {JOB}" in " ".join(answer.next_steps) for each in ("retry", "release")] == [
        True,
        True,
    ]


def test_a_back_off_that_was_decided_for_an_earlier_attempt_is_not_shown_for_this_one() -> None:
    store = a_day()
    store.append(Ledger.DECISIONS, [decision(4, minutes(34), BACKS_OFF)])
    assert answer_to(history_of(store, JOB, at=minutes(35), is_now=False)).verdict is Verdict.HELD


def test_a_back_off_that_is_over_and_not_decided_on_yet_is_no_reason_any_more() -> None:
    store = a_failed_day(BACKS_OFF)
    wanted = {"intent_id": "second", "attempt": 2, "decided_tick": 5, "decided_at": minutes(40)}
    store.append(Ledger.RUNS, [run(7, 1, minutes(58), RunStatus.RETRY_REQUESTED, **wanted)])
    answer = answer_to(history_of(store, JOB, at=minutes(59), is_now=False))
    assert answer.verdict is Verdict.READY


def test_a_recovery_run_separates_the_events_of_the_failed_run_from_those_that_came_since() -> None:
    history = history_of(a_failed_day(BACKS_OFF), JOB, at=minutes(56), is_now=False)
    assert as_json(history)["caught_up"] == {
        "run_id": "72",
        "attempt": 2,
        "failed_run_ids": ["71"],
        "first_event_at": "2026-03-01T10:20:00Z",
        "last_event_at": "2026-03-01T10:50:00Z",
        "event_ids_of_failed_runs": ["e3"],
        "event_ids_since": ["e6"],
        "tables": [
            {
                "table": "sales.orders",
                "events_of_failed_runs": 1,
                "events_since": 1,
                "first_event_at": "2026-03-01T10:20:00Z",
                "last_event_at": "2026-03-01T10:50:00Z",
            }
        ],
    }


def test_what_a_mending_run_caught_up_on_is_printed_with_its_tables() -> None:
    page = printed(history_of(a_failed_day(BACKS_OFF), JOB, at=minutes(56), is_now=False))
    assert "run 72 is attempt 2, and received 2 events in one list" in page
    assert "1 of the attempts before it, 1 that came since" in page
    (reported,) = [
        each for each in page.splitlines() if "10:20:00Z" in each and "10:50:00Z" in each
    ]
    assert reported.split() == ["sales.orders", "1", "1", "10:20:00Z", "10:50:00Z"]


def test_a_job_that_never_failed_has_caught_up_on_nothing() -> None:
    assert as_json(at(15))["caught_up"] is None
    assert "caught up" not in printed(at(15))


def test_a_job_that_waits_for_what_cannot_be_read_is_advised_to_make_it_readable() -> None:
    store = a_day()
    store.tables[Ledger.RUNS] = []
    reason = "The Delta table sales.orders cannot be sensed: the table sales.orders does not exist."
    broken = {"failing_since": minutes(12), "reason": reason, "latest_event_tick": None}
    store.append(Ledger.PROBES, [probe(2, minutes(12), ORDERS, **broken)])
    why = f"its hard dependency sales.orders cannot be read: {reason}"
    row = decision(3, minutes(12), ("waiting_for_required_event", why))
    [blocker] = row.blockers
    waits = replace(blocker, waits_for="a new data-change event of sales.orders")
    store.append(Ledger.DECISIONS, [replace(row, blockers=(waits,))])
    history = history_of(store, JOB, at=minutes(15), is_now=False)
    answer = answer_to(history)
    assert answer.sentence == (
        "its hard dependency sales.orders cannot be read: the table does not exist"
    )
    assert answer.next_steps == (
        "a change of sales.orders: make it readable, or correct its sensor_id in"
        " seeds/heartbeat_controls.csv; the next tick probes it again",
    )
    assert "cannot be read for 3m: the table does not exist" in printed(history)

"""What the report shows of rows: states, rhythms, what needs attention, and texts made harmless."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from harness.inspect.page.backlog import Backlog
from harness.inspect.page.content import Budget, Content, Texts, content_of, fair_share
from harness.inspect.page.models import Batch, Model, Source
from harness.inspect.page.read import Recorded, covered_since, first_tick_of, newest_of_attempts
from harness.platform.masking import mask
from harness.sense.backoff import Failing
from harness.store.queries import JobReasons
from harness.store.rows import Blocker, ProbeOutcome, Run, RunStatus
from tests.support.ledgers import JOB, ORDERS, TEN, control, decision, minutes, probe, run, tick
from tests.support.pages import recorded

NOTHING_NEW = Blocker(
    blocker="waiting_for_required_event",
    reason="its hard dependency sales.orders has nothing new since its last event was taken",
    waits_for="a new data-change event of sales.orders",
    since=TEN,
)


def shown(rows: Recorded, budget: Budget | None = None) -> Content:
    return content_of(rows, version="1", budget=budget or Budget())


def a_job(*blockers: Blocker, **more: Any) -> Recorded:
    """One job on one upstream."""
    jobs = (JobReasons(job_id=JOB, job_name="daily-revenue", blockers=blockers),)
    more.setdefault("controls", [asdict(control(1, TEN, "sales.orders"))])
    return recorded(jobs=jobs, **more)


def the_job(content: Content) -> dict[str, Any]:
    (job,) = content["jobs"]  # type: ignore[misc]
    return job  # type: ignore[no-any-return]


def the_upstream(content: Content) -> dict[str, Any]:
    (upstream,) = content["upstreams"]  # type: ignore[misc]
    return upstream  # type: ignore[no-any-return]


def text(content: Content, number: object) -> str:
    texts = content["texts"]
    assert isinstance(texts, list)
    assert isinstance(number, int)
    return str(texts[number])


def every(minutes_between: float, count: int, start: datetime = TEN) -> list[datetime]:
    return [start + timedelta(minutes=minutes_between * number) for number in range(count)]


def found(arrivals: Sequence[datetime]) -> list[dict[str, object]]:
    return [asdict(probe(number, at, ORDERS)) for number, at in enumerate(arrivals, start=1)]


def test_an_upstream_that_is_quiet_for_longer_than_its_rhythm_allows_is_late() -> None:
    content = shown(a_job(NOTHING_NEW, probes=found(every(5, 9))))
    upstream = the_upstream(content)
    assert upstream["state"] == "late"
    (trouble,) = content["attention"]  # type: ignore[misc]
    assert trouble["upstream"] == 0
    assert text(content, trouble["what"]) == "late"
    assert trouble["since"] == (40 + 30) * 60


def test_an_upstream_is_not_late_because_no_tick_probes_it() -> None:
    rows = a_job(NOTHING_NEW, probes=found(every(5, 9)), last_tick_at=minutes(65))
    assert the_upstream(shown(rows))["state"] == "ok"


def test_the_newest_event_may_lie_before_the_time_that_is_read() -> None:
    earlier = TEN - timedelta(days=3)
    upstream = the_upstream(shown(a_job(NOTHING_NEW, latest_event_at={ORDERS: earlier})))
    assert upstream["latest"] == -3 * 86_400
    assert upstream["state"] == "ok"


def test_an_upstream_without_any_event_has_no_data_yet() -> None:
    assert the_upstream(shown(a_job(NOTHING_NEW)))["state"] == "quiet"


def test_an_arrival_has_the_number_of_events_that_its_tick_found() -> None:
    rows = a_job(NOTHING_NEW, probes=found(every(10, 2)), found={(1, ORDERS): 4, (2, ORDERS): 1})
    upstream = the_upstream(shown(rows))
    assert upstream["arrivals"] == [0, 600]
    assert upstream["counts"] == [4, 1]


def test_a_probe_that_moved_silently_is_no_arrival() -> None:
    silent = asdict(probe(1, TEN, ORDERS, outcome=ProbeOutcome.MOVED))
    assert the_upstream(shown(a_job(NOTHING_NEW, probes=[silent])))["arrivals"] == []


def test_an_upstream_was_unreadable_until_a_probe_succeeded() -> None:
    failed = {"outcome": ProbeOutcome.FAILED, "failing_since": TEN, "reason": "no such table"}
    rows = [
        asdict(probe(1, TEN, ORDERS, **failed)),
        asdict(probe(2, minutes(10), ORDERS, **{**failed, "reason": "access is denied"})),
        asdict(probe(3, minutes(30), ORDERS, outcome=ProbeOutcome.RECOVERED)),
    ]
    content = shown(a_job(NOTHING_NEW, probes=rows))
    ((since, until, reason),) = the_upstream(content)["unreadable"]
    assert (since, until, text(content, reason)) == (0, 1800, "access is denied")


def test_an_upstream_that_cannot_be_read_needs_attention() -> None:
    failing = Failing(
        upstream_id=ORDERS, reason="access is denied", failed_looks=3, since=TEN, failed_at=TEN
    )
    content = shown(a_job(NOTHING_NEW, status={"failing": [failing]}))
    assert the_upstream(content)["state"] == "unreadable"
    (trouble,) = content["attention"]  # type: ignore[misc]
    assert (trouble["upstream"], trouble["bad"]) == (0, 1)
    assert text(content, trouble["why"]) == "access is denied"


def test_an_upstream_that_no_job_needs_any_more_is_reported_by_its_name() -> None:
    failing = Failing(
        upstream_id="file:old:1234", reason="gone", failed_looks=3, since=TEN, failed_at=TEN
    )
    content = shown(a_job(NOTHING_NEW, status={"failing": [failing]}))
    (trouble,) = content["attention"]  # type: ignore[misc]
    assert text(content, trouble["subject"]) == "old"


@pytest.mark.parametrize(
    ("status", "known", "state"),
    [
        (RunStatus.STARTED, {"run_id": 7}, "running"),
        (RunStatus.INTENDED, {}, "starting"),
        (RunStatus.FAILED, {"run_id": 7, "message": "boom"}, "held"),
        (RunStatus.SUCCEEDED, {"run_id": 7}, "waiting"),
    ],
)
def test_a_job_has_the_state_that_explain_has(
    status: RunStatus, known: dict[str, Any], state: str
) -> None:
    newest = run(1, 1, minutes(100), status, **known)
    assert the_job(shown(a_job(NOTHING_NEW, newest_runs=[newest])))["state"] == state


def test_a_job_whose_rows_are_all_paused_is_paused() -> None:
    paused = [asdict(control(1, TEN, "sales.orders", job_state="PAUSED"))]
    content = shown(a_job(NOTHING_NEW, controls=paused))
    assert the_job(content)["state"] == "paused"
    assert the_upstream(content)["state"] == "paused"


def test_a_job_without_any_reason_has_nothing_against_it() -> None:
    job = the_job(shown(a_job()))
    assert job["state"] == "ready"
    assert job["now"] == []


def test_a_held_job_needs_attention_first() -> None:
    held = run(1, 1, minutes(100), RunStatus.FAILED, run_id=7, message="boom")
    late = found(every(5, 9))
    content = shown(a_job(NOTHING_NEW, newest_runs=[held], probes=late))
    first, second = content["attention"]  # type: ignore[misc]
    assert (first["job"], text(content, first["why"])) == (0, "boom")
    assert second["upstream"] == 0


def test_each_past_decision_has_its_reasons() -> None:
    rows = [decision(2, minutes(10), ("nothing_new", "nothing new")), decision(3, minutes(20))]
    content = shown(a_job(NOTHING_NEW, decisions=[asdict(each) for each in rows]))
    first, second = the_job(content)["decisions"]
    assert first[0] == 600
    assert [text(content, each) for each in first[1][:2]] == ["nothing_new", "nothing new"]
    assert second == [1200]


def a_run(**changed: Any) -> dict[str, object]:
    return asdict(run(1, 1, minutes(5), RunStatus.SUCCEEDED, **changed))


def test_the_address_of_a_run_is_kept_with_a_mark_for_its_id() -> None:
    page = "https://workspace/#job/5/run/871"
    content = shown(a_job(runs=[a_run(run_id=871, run_page_url=page)]))
    ((*_, address, _),) = the_job(content)["runs"]
    assert text(content, address) == "https://workspace/#job/5/run/{run}"


@pytest.mark.parametrize("url", ["javascript:alert(1)", " https://x", "data:text/html,x", None])
def test_only_a_page_of_the_web_is_an_address(url: str | None) -> None:
    content = shown(a_job(runs=[a_run(run_id=871, run_page_url=url)]))
    ((*_, address, _),) = the_job(content)["runs"]
    assert text(content, address) == ""


def test_ids_stay_text() -> None:
    content = shown(a_job(runs=[a_run(run_id=2**53 + 7)]))
    assert the_job(content)["id"] == str(JOB)
    assert the_job(content)["runs"][0][4] == str(2**53 + 7)


def test_a_run_names_the_upstreams_whose_events_it_consumed() -> None:
    rows = a_job(runs=[a_run()], consumed={"first": [ORDERS, "file:old:1234"]})
    assert the_job(shown(rows))["runs"][0][-1] == [0]


def test_a_secret_is_in_no_text() -> None:
    mask("s3cr3t-of-the-erp")
    failed = run(1, 1, minutes(5), RunStatus.FAILED, message="login s3cr3t-of-the-erp refused")
    content = shown(a_job(NOTHING_NEW, newest_runs=[failed], runs=[asdict(failed)]))
    assert "s3cr3t-of-the-erp" not in str(content)
    assert "login *** refused" in str(content)


def test_a_secret_at_the_place_where_a_long_text_is_cut_is_hidden() -> None:
    mask("s3cr3t-of-the-erp")
    texts = Texts()
    texts("x" * 1490 + "s3cr3t-of-the-erp" + "y" * 100)
    assert "s3cr3t" not in texts.shown[0]
    assert len(texts.shown[0]) == 1500


@pytest.mark.parametrize("sign", ["\u202e", "\u2028", "\x1b", "\x00", "\u200b", "\ud800"])
def test_what_cannot_be_seen_or_turns_text_around_becomes_visible(sign: str) -> None:
    texts = Texts()
    texts(f"a{sign}b")
    assert sign not in texts.shown[0]
    assert texts.shown[0].startswith("a\\")


def test_a_text_is_listed_once() -> None:
    texts = Texts()
    assert [texts("a"), texts("b"), texts("a"), texts(None), texts("")] == [0, 1, 0, 2, 2]


@pytest.mark.parametrize(
    ("counts", "budget", "share"),
    [([1, 2, 3], 100, 3), ([1, 1, 100], 12, 10), ([50, 50], 20, 10), ([5] * 10, 3, 1), ([], 5, 1)],
)
def test_what_few_rows_leave_is_shared_by_the_others(
    counts: list[int], budget: int, share: int
) -> None:
    assert fair_share(counts, budget) == share


def test_the_newest_rows_of_a_job_are_kept() -> None:
    rows = [asdict(decision(number, minutes(number))) for number in range(1, 30)]
    job = the_job(shown(a_job(decisions=rows), Budget(decisions=10)))
    assert [at for at, *_ in job["decisions"]] == [60 * number for number in range(20, 30)]


def test_fewer_days_are_read_where_the_ticks_recorded_too_much() -> None:
    ticks = [asdict(tick(number, minutes(number))) for number in range(1, 11)]
    assert covered_since(ticks, TEN, most=4) == minutes(6)
    assert covered_since(ticks, TEN, most=10) == TEN


def test_a_young_installation_has_no_empty_days_before_its_first_tick() -> None:
    ticks = [asdict(tick(number, minutes(number))) for number in range(1, 4)]
    assert covered_since(ticks, TEN - timedelta(days=7)) == TEN
    assert covered_since(ticks[1:], TEN - timedelta(days=7)) == TEN - timedelta(days=7)


def test_a_reason_does_not_repeat_what_distinguishes_two_upstreams_of_one_name() -> None:
    other = "delta_table:sales.orders:77aa"
    rows = [
        asdict(control(1, TEN, "sales.orders")),
        asdict(control(1, TEN, "sales.orders", upstream_id=other, upstream_key="day")),
    ]
    reason = "The Delta table sales.orders cannot be sensed: the table sales.orders does not exist"
    failing = Failing(upstream_id=other, reason=reason, failed_looks=1, since=TEN, failed_at=TEN)
    content = shown(a_job(NOTHING_NEW, controls=rows, status={"failing": [failing]}))
    (trouble,) = content["attention"]  # type: ignore[misc]
    assert text(content, trouble["why"]) == "the table does not exist"


def test_events_are_listed_from_the_tick_on_that_makes_them_enough() -> None:
    ticks = [asdict(tick(number, minutes(number))) for number in range(3, 9)]
    assert first_tick_of(ticks, 2) == 7
    assert first_tick_of(ticks, 200) == 3
    assert first_tick_of([]) == 0


def test_an_attempt_is_shown_as_its_newest_row_left_it() -> None:
    started = run(1, 2, TEN, RunStatus.STARTED)
    ended = run(3, 1, minutes(2), RunStatus.SUCCEEDED, decided_at=TEN)
    again = run(4, 1, minutes(9), RunStatus.STARTED, attempt=2)
    rows: list[dict[str, object]] = [asdict(each) for each in (ended, again, started)]
    assert [Run.from_row(row) for row in newest_of_attempts(rows)] == [ended, again]


def test_a_self_healing_model_is_behind_where_its_source_has_newer_data() -> None:
    sources = [
        Source(name=name, partition_count=3, taken_at=minutes(number))
        for name, number in [("main.sales.orders", -5), ("sales.orders", 5), ("orders", -5)]
    ]
    rows = a_job(models=[Model(name="sales.daily", sources=sources)])
    content = shown(replace(rows, latest_event_at={ORDERS: TEN}))
    (model,) = content["models"]  # type: ignore[misc]
    assert text(content, model["name"]) == "sales.daily"
    newer = [each[3:5] for each in model["sources"]]
    assert newer == [[round((TEN - rows.since).total_seconds()), True], [None, True], [None, False]]


def test_what_waits_for_a_self_healing_model_is_counted_where_it_is_known() -> None:
    known = Source(
        name="a.b",
        partition_count=1,
        taken_at=TEN,
        backlog=Backlog(count=3, oldest="2026-03-01"),
    )
    sources = [known, replace(known, backlog=None)]
    content = shown(a_job(models=[Model(name="sales.daily", sources=sources)]))
    (model,) = content["models"]  # type: ignore[misc]
    (count, oldest), unknown = (each[5] for each in model["sources"])
    assert (count, text(content, oldest), unknown) == (3, "2026-03-01", None)


def test_a_message_of_a_batch_is_hidden_where_it_has_a_secret() -> None:
    mask("hunter2-hunter2")
    batch = Batch(
        number=7, state="FAILED", received_at=TEN, recorded_at=TEN, row_count=None,
        message="login with hunter2-hunter2 failed",
    )  # fmt: skip
    content = shown(a_job(models=[Model(name="sales.orders", batches=[batch])]))
    (model,) = content["models"]  # type: ignore[misc]
    number, state, *_, message = model["batches"][0]
    assert (number, text(content, state)) == (7, "FAILED")
    assert "hunter2" not in text(content, message)

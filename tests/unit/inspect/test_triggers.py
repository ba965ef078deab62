"""What people read about triggers: in a tick, in `explain` and in `status`."""

import json
from dataclasses import replace
from io import StringIO

from harness.cli.views.explain import show as show_explanation
from harness.cli.views.status import Page as StatusPage
from harness.cli.views.terminal import console_for
from harness.cli.views.tick import show
from harness.decide.trigger_due import Findings
from harness.events.event import EventRow
from harness.inspect.attention import jobs_of
from harness.inspect.explain import Verdict, answer_to, as_json
from harness.inspect.job_history import History, history_of
from harness.inspect.status import Status
from harness.inspect.status import as_json as status_as_json
from harness.inspect.tick_summary import as_json as tick_as_json
from harness.inspect.tick_summary import headline, is_noteworthy, problems
from harness.record.probes import Recorded
from harness.sense.probe import ProbeResult
from harness.sense.schedule import Sweep
from harness.store.queries import JobReasons, LastDecision
from harness.store.rows import Blocker, Consumed, Ledger, ProbeOutcome, RunStatus, Tick
from harness.store.trigger_queries import FailingTrigger
from harness.tick.report import TickReport
from tests.support.ledgers import JOB, ORDERS, TEN, FakeStore, decision, event, minutes, probe, run
from tests.support.watched import NEVER_SEEN

DAILY = "trigger:daily"
WAITS = '{"waiting":["2026-03-01T09:00:00Z"],"missing":[["partition 2026-02-28 of sales.orders"]]}'


def released(slot: str, event_id: str) -> EventRow:
    tags = {"trigger_id": "daily", "trigger_slot": slot}
    return replace(event(7, TEN, DAILY, "41"), event_id=event_id, tags=tags)


def asked(*events: EventRow, **values: object) -> TickReport:
    """A tick that found nothing, and evaluated the triggers."""
    released = Recorded(events=events, probes=(probe(7, TEN, DAILY, **values),))
    return TickReport(
        tick=Tick(number=7, at=TEN),
        sensed=Sweep(results=(ProbeResult(upstream_id=ORDERS, position=None),)),
        findings=Findings(released=released),
        wall_seconds=0.2,
    )


def printed(report: TickReport) -> str:
    stream = StringIO()
    show(console_for(stream), report)
    return " ".join(stream.getvalue().split())


def test_a_tick_reports_which_slots_it_released_and_how_many_events() -> None:
    slot = "2026-03-01T09:00:00Z"
    report = asked(released(slot, "a"), released(slot, "b"))
    assert is_noteworthy(report)
    assert "probed 1 upstream, 1 trigger evaluated" in headline(report)
    assert f"daily {slot} 2" in printed(report)
    assert tick_as_json(report, 0)["released"] == [
        {"trigger_id": "daily", "slots": [slot], "events": 2, "reason": None}
    ]


def test_a_tick_reports_why_a_slot_is_gone() -> None:
    report = asked(outcome=ProbeOutcome.GAP, reason="the slot of 09:00 expired")
    assert "daily - 0 the slot of 09:00 expired" in printed(report)


def test_a_trigger_that_moved_in_silence_is_not_reported() -> None:
    report = asked(outcome=ProbeOutcome.MOVED)
    assert not is_noteworthy(report)
    assert printed(report).endswith("probed 1 upstream, nothing new (0.2s)")


def job_of_a_trigger(**values: object) -> FakeStore:
    store = FakeStore()
    row: dict[str, object] = {
        "trigger_id": "daily",
        "job_id": str(JOB),
        "job_name": "daily-revenue",
        "dependency_flag": "",
        "trigger_state": "",
    }
    store.tables["event_triggers"] = [row, {**row, "trigger_id": "other", "job_id": "3"}]
    store.append(Ledger.DECISIONS, [decision(1, TEN, ("waiting_for_required_event", "it waits"))])
    waiting = probe(1, TEN, DAILY, position=WAITS, latest_event_tick=None, latest_event_at=None)
    store.append(Ledger.PROBES, [replace(waiting, **values)])  # type: ignore[arg-type]
    return store


def explained(store: FakeStore) -> tuple[History, str]:
    history = history_of(store, JOB, at=minutes(10), is_now=True)
    stream = StringIO()
    show_explanation(console_for(stream), history)
    return history, " ".join(stream.getvalue().split())


def test_a_job_that_only_a_trigger_starts_is_explained_by_its_trigger() -> None:
    history, page = explained(job_of_a_trigger())
    assert answer_to(history).verdict is Verdict.WAITING
    assert "hard daily" in page
    assert "slot 2026-03-01T09:00:00Z waits for partition 2026-02-28 of sales.orders" in page
    (dependency,) = json.loads(json.dumps(as_json(history)))["dependencies"]
    assert (dependency["sensor_source"], dependency["sensor_id"]) == ("event_trigger", "daily")
    assert dependency["waiting"] == [
        {"slot": "2026-03-01T09:00:00Z", "missing": ["partition 2026-02-28 of sales.orders"]}
    ]


def test_what_a_trigger_released_is_shown_with_the_run_that_took_it() -> None:
    store = job_of_a_trigger(latest_event_tick=1, latest_event_at=TEN, position="{}")
    store.append(Ledger.EVENTS, [replace(event(1, TEN, DAILY, "41"), table="sales.orders")])
    assert "new: not consumed yet" in explained(store)[1]
    consumed = (Consumed(upstream_id=DAILY, from_tick=-1, through_tick=1),)
    store.append(Ledger.RUNS, [run(2, 1, TEN, RunStatus.STARTED, consumed=consumed, run_id=70)])
    assert "consumed by run 70" in explained(store)[1]


def test_a_job_that_only_a_trigger_starts_is_a_job_of_the_status() -> None:
    reasons = JobReasons(job_id=JOB, job_name="daily-revenue", blockers=())
    reported = LastDecision(tick_id="1-x", tick_number=1, tick_at=TEN, jobs=(reasons,))
    status = Status(
        now=minutes(10),
        control=(),
        sensors=(),
        runs=(),
        decision=reported,
        holder=None,
        last_tick_at=None,
    )
    assert [(job.job_id, job.name) for job in jobs_of(status)] == [(JOB, "daily-revenue")]


def test_a_trigger_that_cannot_be_evaluated_needs_attention_once() -> None:
    reason = "unknown time zone Mars/Base"
    waits = f"its hard dependency daily cannot be read: {reason}"
    blocker = Blocker(
        blocker="waiting_for_required_event", reason=waits, waits_for="its next slot", since=TEN
    )
    reasons = JobReasons(job_id=JOB, job_name="daily-revenue", blockers=(blocker,))
    reported = LastDecision(tick_id="1-x", tick_number=1, tick_at=TEN, jobs=(reasons,))
    failing = [
        FailingTrigger(trigger_id="daily", since=TEN, reason=reason),
        FailingTrigger(
            trigger_id="soft", since=TEN, reason="its start_timestamp is not an instant"
        ),
    ]
    status = Status(
        now=minutes(10),
        control=(),
        sensors=(),
        runs=(),
        decision=reported,
        holder=None,
        last_tick_at=None,
        failing_triggers=failing,
    )
    stream = StringIO()
    StatusPage(console_for(stream), status, every_job=False).show()
    page = " ".join(stream.getvalue().split())
    assert page.count(reason) == 1
    assert "unreadable trigger soft 10m - its start_timestamp is not an instant" in page
    shown = status_as_json(status)["failing_triggers"]
    assert [each["trigger_id"] for each in shown] == ["daily", "soft"]  # type: ignore[attr-defined]


def test_a_tick_names_the_triggers_that_cannot_be_evaluated_and_why() -> None:
    failing = replace(NEVER_SEEN, sensor_id="daily", failing_since=TEN, reason="no such zone")
    report = TickReport(tick=Tick(number=7, at=TEN), seconds={}, failing_triggers=(failing,))
    assert not report.is_clean
    assert "1 trigger cannot be evaluated" in headline(report)
    assert "daily no such zone" in printed(report)
    # A process that stays reports it when it begins, and not again.
    assert is_noteworthy(report) and not is_noteworthy(report, problems(report))

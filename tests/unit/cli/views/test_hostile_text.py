"""Hostile text on every page: however it got into a table or answer, a terminal only shows it."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from harness.cli.views import explain, status, tick
from harness.cli.views.terminal import console_for
from harness.decide.trigger_due import Findings
from harness.inspect import tick_summary as shown
from harness.inspect.job_history import history_of
from harness.inspect.status import Status
from harness.platform.masking import mask
from harness.platform.text import escaped, json_text
from harness.record.probes import Recorded
from harness.sense.backoff import Failing
from harness.sense.probe import ProbeResult
from harness.sense.schedule import Deferred, Sweep
from harness.settle.settle import Settled
from harness.store.public_tables import CONTROL_TABLE
from harness.store.queries import JobReasons, LastDecision
from harness.store.rows import Blocker, Ledger, Run, RunStatus, Tick
from harness.tick.report import Settlement, TickReport
from tests.support.hostile import EVERYTHING
from tests.support.ledgers import JOB, TEN, FakeStore, control, decision, event, minutes, probe, run
from tests.support.ledgers import tick as tick_row

UPSTREAM = f"delta_table:{EVERYTHING}:ab5c14a4"
HELD = Blocker(blocker="last_run_failed", reason=EVERYTHING, waits_for=EVERYTHING, since=TEN)
FAILED_RUN = run(
    7,
    2,
    TEN,
    RunStatus.FAILED,
    job_name=EVERYTHING,
    message=EVERYTHING,
    termination_code=EVERYTHING,
)


def a_tick() -> TickReport:
    """A tick in which whatever may come from outside is hostile."""
    hostile = replace(event(7, TEN, UPSTREAM, EVERYTHING), tags={"path": EVERYTHING})
    deferred = Deferred(upstream_id=UPSTREAM, reason=EVERYTHING, next_probe_at=minutes(3))
    failed = ProbeResult(upstream_id=UPSTREAM, position=None, failure=EVERYTHING)
    settled = Settled(rows=(FAILED_RUN,), unanswered={JOB: EVERYTHING})
    return TickReport(
        tick=Tick(number=7, at=TEN),
        sensed=Sweep(results=(failed,), deferred=(deferred,)),
        findings=Findings(recorded=Recorded(events=(hostile,))),
        settlement=Settlement(settled=settled),
        started=(
            replace(FAILED_RUN, run_status=RunStatus.REFUSED),
            replace(FAILED_RUN, run_status=RunStatus.INTENDED, job_id=JOB + 1),
        ),
        warnings=(EVERYTHING,),
        seconds={"sense": 0.2},
    )


def a_status() -> Status:
    """A status in which whatever may come from outside is hostile."""
    row = dict.fromkeys(CONTROL_TABLE.columns) | {
        "trigger_job_id": str(JOB),
        "trigger_job_name": EVERYTHING,
        "sensor_id": EVERYTHING,
    }
    reasons = JobReasons(job_id=JOB, job_name=EVERYTHING, blockers=(HELD,))
    failing = Failing(
        upstream_id=UPSTREAM,
        reason=EVERYTHING,
        failed_looks=5,
        since=TEN,
        failed_at=TEN,
        wait_seconds=900,
    )
    store = FakeStore()
    store.append(Ledger.RUNS, [FAILED_RUN])
    return Status(
        now=minutes(60),
        control=[row],
        sensors=[],
        runs=[Run.from_row(each) for each in store.tables[Ledger.RUNS]],
        decision=LastDecision(tick_id="7-x", tick_number=7, tick_at=TEN, jobs=(reasons,)),
        holder=None,
        last_tick_at=TEN,
        failing=(failing,),
    )


def a_history() -> FakeStore:
    """Ledgers in which whatever may come from outside is hostile."""
    store = FakeStore()
    store.append(Ledger.TICKS, [tick_row(7, TEN)])
    hostile = {"upstream_id": UPSTREAM, "job_name": EVERYTHING, "asset_description": EVERYTHING}
    store.append(Ledger.CONTROLS, [control(1, TEN, EVERYTHING, **hostile)])
    store.append(Ledger.PROBES, [probe(7, TEN, UPSTREAM, reason=EVERYTHING, failing_since=TEN)])
    partition = (json.dumps(EVERYTHING),)
    store.append(Ledger.EVENTS, [replace(event(7, TEN, UPSTREAM, EVERYTHING), partition=partition)])
    store.append(Ledger.RUNS, [FAILED_RUN])
    waits = replace(decision(7, TEN, ("last_run_failed", EVERYTHING)), job_name=EVERYTHING)
    store.append(Ledger.DECISIONS, [waits])
    return store


def show_tick(console: Console) -> None:
    tick.show(console, a_tick())


def show_status(console: Console) -> None:
    status.Page(console, a_status(), every_job=True).show()


def show_explanation(console: Console) -> None:
    reported = history_of(a_history(), JOB, at=TEN + timedelta(minutes=1), is_now=True)
    explain.show(console, reported)


PAGES = [show_tick, show_status, show_explanation]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("stream", [StringIO, Terminal])
def test_no_page_lets_text_from_outside_through_to_the_terminal(
    page: Callable[[Console], None], stream: type[StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "400")
    output = stream()
    page(console_for(output))
    shown_text = output.getvalue()
    for style in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        shown_text = shown_text.replace(style, "")
    assert "drop table" in shown_text
    assert all(escaped(line) == line for line in shown_text.split("\n"))


@pytest.mark.parametrize("page", PAGES)
def test_no_page_repeats_a_secret(page: Callable[[Console], None]) -> None:
    mask("drop table heartbeat")
    output = StringIO()
    page(console_for(output))
    assert "drop table" not in output.getvalue()


def test_a_headline_and_its_json_can_be_printed() -> None:
    report = a_tick()
    assert escaped(shown.headline(report)) == shown.headline(report)
    output = json_text(shown.as_json(report, waiting=0))
    assert json.loads(output)["failures"][0]["reason"]
    assert escaped(output) == output

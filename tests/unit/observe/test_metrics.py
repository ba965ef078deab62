"""Metrics: what is counted, across processes, and how it reaches Prometheus."""

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from harness.decide.trigger_due import Findings
from harness.errors import ConfigurationError, DecideError
from harness.observe.metrics import MetricsOfTicks, lags_of
from harness.observe.totals import OTHERS, Histogram, Totals, load_totals, save_totals
from harness.record.probes import Recorded
from harness.settle.settle import Settled
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Tick
from harness.tick.report import Settlement, TickReport
from tests.support.ledgers import CUSTOMERS, ORDERS, FakeStore, event, minutes, run
from tests.support.mail_and_web import free_port
from tests.support.small_world import SmallContext, SmallWorld

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def started(tick: int = 3, *consumed: Consumed, **changed: object) -> Run:
    fields = {"run_id": 7, "started_at": minutes(10), "reported_by": "answer", **changed}
    taken = consumed or (Consumed(upstream_id=ORDERS, from_tick=1, through_tick=tick),)
    return run(tick, 1, minutes(10), RunStatus.STARTED, consumed=taken, **fields)


def report(number: int = 3, **changed: object) -> TickReport:
    return TickReport(tick=Tick(number=number, at=minutes(10)), **changed)  # type: ignore[arg-type]


def found(*events: object) -> Findings:
    return Findings(recorded=Recorded(events=tuple(events)))  # type: ignore[arg-type]


class World(SmallWorld):
    """An installation whose metrics are read back by Prometheus' own parser."""

    def __init__(self, project: Path, metrics: str = "{textfile: out/heartbeat.prom}") -> None:
        super().__init__(project)
        (project / "heartbeat.yml").write_text(f"metrics: {metrics}\n")

    def wired(self, *, is_resident: bool = False) -> SmallContext:
        context = self.context()
        context.is_resident = is_resident
        return context

    def scraped(self) -> dict[str, float]:
        return parsed((self.project / "out" / "heartbeat.prom").read_text())


def parsed(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(f"[{each}]" for each in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_tick_is_published_with_all_that_it_did(world: World) -> None:
    failed = run(3, 2, minutes(10), RunStatus.FAILED, job_id=2, intent_id="b")
    MetricsOfTicks(world.wired()).after(
        report(
            findings=found(event(3, minutes(9), ORDERS, "1"), event(3, minutes(8), ORDERS, "0")),
            started=(started(),),
            followed=(started(), failed),
            settlement=Settlement(settled=Settled(rows=(failed,))),
            seconds={"setup": 0.5, "decide": 0.2},
        )
    )
    published = world.scraped()
    expected = {
        "heartbeat_ticks_total": 1,
        "heartbeat_failed_ticks_total": 0,
        "heartbeat_events_total": 2,
        "heartbeat_starts_total": 1,
        "heartbeat_run_ends_total[FAILED]": 1,
        "heartbeat_decision_seconds_sum": 0.2,
        "heartbeat_decision_seconds_bucket[0.1]": 0,
        "heartbeat_decision_seconds_bucket[0.25]": 1,
        "heartbeat_decision_seconds_bucket[+Inf]": 1,
        "heartbeat_decision_seconds_count": 1,
        "heartbeat_tick_seconds_sum": 0.7,
        "heartbeat_commit_to_start_seconds_sum": 60,
        f"heartbeat_upstream_commit_to_start_seconds_sum[{ORDERS}]": 60,
        f"heartbeat_upstream_commit_to_start_seconds_count[{ORDERS}]": 1,
        "heartbeat_held_jobs": 1,
        "heartbeat_open_runs": 1,
        "heartbeat_failing_upstreams": 0,
        "heartbeat_last_tick_timestamp_seconds": minutes(10).timestamp(),
    }
    assert {name: published.get(name) for name in expected} == expected


def test_a_tick_that_decided_nothing_does_not_count_as_a_decision(world: World) -> None:
    MetricsOfTicks(world.wired()).after(report(seconds={"sense": 0.1}))
    assert world.scraped()["heartbeat_decision_seconds_count"] == 0


def test_counts_go_on_in_the_next_process(world: World) -> None:
    for _ in range(3):
        MetricsOfTicks(world.wired()).after(report(seconds={"decide": 0.2}))
    MetricsOfTicks(world.wired()).failed(DecideError("dbt did not succeed"))
    published = world.scraped()
    names = ("ticks_total", "failed_ticks_total", "decision_seconds_count")
    assert [published[f"heartbeat_{name}"] for name in names] == [3, 1, 3]


def test_a_failed_tick_leaves_out_what_it_does_not_establish(world: World) -> None:
    MetricsOfTicks(world.wired()).failed(DecideError("dbt did not succeed"))
    assert "heartbeat_held_jobs" not in world.scraped()


def test_the_text_file_is_complete_or_not_there(world: World) -> None:
    metrics = MetricsOfTicks(world.wired())
    metrics.after(report())
    folder = world.project / "out"
    assert [each.name for each in folder.iterdir()] == ["heartbeat.prom"]
    (folder / "heartbeat.prom").unlink()
    (folder / "heartbeat.prom").mkdir()
    with pytest.raises(OSError, match="irectory"):
        metrics.after(report())
    assert [each.name for each in folder.iterdir()] == ["heartbeat.prom"]


def test_run_serves_the_metrics_on_this_machine_until_it_ends(tmp_path: Path) -> None:
    port = free_port()
    world = World(tmp_path, f"{{port: {port}}}")
    metrics = MetricsOfTicks(world.wired(is_resident=True))
    address = f"http://127.0.0.1:{port}/metrics"
    metrics.after(report())
    metrics.after(report(4))
    with urllib.request.urlopen(address) as answer:
        assert parsed(answer.read().decode())["heartbeat_ticks_total"] == 2
    metrics.wait()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address)


def test_a_process_of_one_tick_serves_nothing(tmp_path: Path) -> None:
    port = free_port()
    MetricsOfTicks(World(tmp_path, f"{{port: {port}}}").wired()).after(report())
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[int]:
    port = free_port()
    metrics = MetricsOfTicks(
        World(_made(tmp_path / "first"), f"{{port: {port}}}").wired(is_resident=True)
    )
    metrics.after(report())
    yield port
    metrics.wait()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_a_port_that_is_taken_is_one_sentence_and_the_text_file_is_written(
    tmp_path: Path, taken: int
) -> None:
    world = World(_made(tmp_path / "second"), f"{{port: {taken}, textfile: out/heartbeat.prom}}")
    with pytest.raises(ConfigurationError, match=f"metrics.port: 127.0.0.1:{taken} cannot be"):
        MetricsOfTicks(world.wired(is_resident=True)).after(report())
    assert world.scraped()["heartbeat_ticks_total"] == 1


def test_the_lag_of_an_event_that_waited_is_read_from_the_ledger() -> None:
    store = FakeStore()
    early = [event(2, minutes(4), ORDERS, "1"), event(1, minutes(1), ORDERS, "0")]
    store.append(Ledger.EVENTS, [*early, event(2, minutes(9), CUSTOMERS, "x")])
    two = Consumed(upstream_id=ORDERS, from_tick=0, through_tick=2)
    three = Consumed(upstream_id=CUSTOMERS, from_tick=0, through_tick=3)
    now = report(
        started=(started(3, two, three),), findings=found(event(3, minutes(9), CUSTOMERS, "y"))
    )
    assert lags_of(now, store) == [(ORDERS, 360.0), (CUSTOMERS, 60.0)]


def test_a_start_without_a_run_and_an_event_without_a_commit_have_no_lag() -> None:
    nameless = replace(event(3, minutes(9), ORDERS, "1"), snapshot_ts=None)
    refused = replace(started(), run_id=None, run_status=RunStatus.REFUSED)
    known = event(3, minutes(9), ORDERS, "1")
    assert lags_of(report(started=(started(),), findings=found(nameless)), FakeStore()) == []
    assert lags_of(report(started=(refused,), findings=found(known)), FakeStore()) == []


def test_a_commit_ahead_of_our_clock_has_no_negative_lag() -> None:
    ahead = event(3, minutes(11), ORDERS, "1")
    assert lags_of(report(started=(started(),), findings=found(ahead)), FakeStore()) == [
        (ORDERS, 0.0)
    ]


def test_there_are_never_more_series_than_configured_and_none_changes_its_name() -> None:
    totals = Totals()
    for number in range(1000):
        totals = totals.with_lags([(f"u{number}", 1.0), ("u0", 1.0)], most=3)
    assert {name: each.count for name, each in totals.lags.items()} == {
        "u0": 1001,
        "u1": 1,
        "u2": 1,
        OTHERS: 997,
    }
    assert Totals().with_lags([("u", 1.0)], most=0).lags.keys() == {OTHERS}


@given(st.lists(st.floats(min_value=0, max_value=1e6)))
def test_a_histogram_counts_each_value_once(values: list[float]) -> None:
    histogram = Histogram.empty((1.0, 10.0))
    for each in values:
        histogram = histogram.after(each)
    expected = [sum(each <= bound for each in values) for bound in (1.0, 10.0, float("inf"))]
    assert histogram.cumulative == expected


def test_totals_outlive_the_process_and_a_broken_file_means_nothing_was_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "metrics.json"
    totals = Totals(ticks=3, ends={"FAILED": 1}).with_lags([("u", 2.5)], most=1)
    save_totals(path, totals)
    assert load_totals(path) == totals
    content = json.loads(path.read_text())
    content["lag"]["bounds"] = [1.0]
    for text in ("", "{}", json.dumps(content)):
        path.write_text(text)
        assert load_totals(path) == Totals()


def test_a_name_from_outside_stays_one_label(world: World) -> None:
    odd = 'delta_table:a"\n\ud800{x}:1'
    taken = Consumed(upstream_id=odd, from_tick=1, through_tick=3)
    at = replace(event(3, minutes(9), ORDERS, "1"), upstream_id=odd)
    MetricsOfTicks(world.wired()).after(report(started=(started(3, taken),), findings=found(at)))
    [name] = [
        each
        for each in world.scraped()
        if each.startswith("heartbeat_upstream_commit_to_start_seconds_sum")
    ]
    assert name.endswith(r'[delta_table:a"\n\ud800{x}:1]')


def test_the_last_tick_is_new_after_each_idle_tick(world: World) -> None:
    metrics = MetricsOfTicks(world.wired())
    for number in (3, 4):
        at = NOON + timedelta(minutes=number)
        metrics.after(TickReport(tick=Tick(number=3, at=at)))
        assert world.scraped()["heartbeat_last_tick_timestamp_seconds"] == at.timestamp()

"""When what keeps failing is probed again."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.sense.backoff import BackOff, end_back_off, load_back_off, save_back_off
from harness.sense.probe import ProbeResult
from harness.store.work_lists import Upstream
from tests.support.golden import AT

HOUR = 3600.0


def at(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def failed(reason: str = "it is down.", name: str = "orders") -> ProbeResult:
    return ProbeResult(upstream_id=name, failure=reason)


def looked_at(ticks: Iterable[float], most_seconds: float = HOUR) -> list[float]:
    """Return the seconds at which ticks probe something that always fails."""
    back_off, polled = BackOff(), []
    for seconds in ticks:
        if not back_off.deferred(["orders"], at(seconds)):
            polled.append(seconds)
            back_off = back_off.after([failed()], at(seconds), most_seconds)
    return polled


def after_failures(count: int, every: float = 30) -> BackOff:
    back_off = BackOff()
    for number in range(count):
        back_off = back_off.after([failed()], at(number * every), HOUR)
    return back_off


def test_what_fails_is_tried_again_by_the_next_two_ticks_and_then_after_doubling_waits() -> None:
    assert looked_at(range(0, 1000, 30)) == [0, 30, 60, 120, 240, 480, 960]


def test_the_waits_begin_with_the_interval_of_the_ticks_whatever_it_is() -> None:
    assert looked_at(range(0, 5000, 300)) == [0, 300, 600, 1200, 2400, 4800]


def test_no_wait_is_longer_than_the_configured_maximum() -> None:
    assert looked_at(range(0, 600, 30), most_seconds=120) == [0, 30, 60, 120, 240, 360, 480]


def test_a_maximum_of_nothing_probes_at_every_tick() -> None:
    assert looked_at(range(0, 300, 30), most_seconds=0) == list(range(0, 300, 30))


def test_a_tick_that_comes_a_little_early_probes_all_the_same() -> None:
    assert looked_at([0, 30, 60, 119, 239]) == [0, 30, 60, 119, 239]


def test_a_quick_tick_by_hand_does_not_make_the_waits_short_for_long() -> None:
    assert looked_at([0, 1, 2, 300, 600, 900]) == [0, 1, 2, 300, 900]


def test_a_success_forgets_every_failure_before_it() -> None:
    back_off = after_failures(5).after([ProbeResult(upstream_id="orders")], at(900), HOUR)
    assert back_off == BackOff()


def test_failures_count_from_the_start_after_a_success() -> None:
    back_off = after_failures(5).after([ProbeResult(upstream_id="orders")], at(900), HOUR)
    back_off = back_off.after([failed()], at(930), HOUR).after([failed()], at(960), HOUR)
    assert not back_off.deferred(["orders"], at(990))


def test_what_one_upstream_does_puts_off_no_other() -> None:
    assert not after_failures(5).deferred(["customers"], at(121))


def test_a_probe_that_was_put_off_changes_nothing() -> None:
    back_off = after_failures(5)
    assert back_off.after([], at(121), HOUR) == back_off


def test_a_clock_that_went_back_puts_nothing_off() -> None:
    assert not after_failures(5).deferred(["orders"], at(-10_000))


def test_the_next_probe_is_known_with_its_instant_and_the_newest_reason() -> None:
    back_off = after_failures(2).after([failed("it says no.")], at(60), HOUR)
    [failing] = back_off.deferred(["orders"], at(90)).values()
    assert (failing.next_probe(at(90)), failing.reason) == (at(120), "it says no.")


def test_what_the_next_tick_tries_again_has_no_instant_for_it() -> None:
    assert after_failures(2).failing["orders"].next_probe(at(31)) is None


def test_what_is_due_is_tried_by_the_next_tick_and_has_no_instant_for_it() -> None:
    failing = after_failures(5).failing["orders"]
    assert failing.next_probe(at(120 + 180)) is not None
    assert failing.next_probe(at(120 + 240)) is None


def test_a_clock_that_went_back_leaves_no_instant_in_a_far_future() -> None:
    assert after_failures(5).failing["orders"].next_probe(at(-10_000)) is None


def test_a_clock_that_leapt_ahead_and_went_back_does_not_make_the_waits_longer() -> None:
    back_off = BackOff()
    for seconds in (0, 30, 1e8, 60):
        back_off = back_off.after([failed()], at(seconds), HOUR)
    assert back_off.failing["orders"].wait_seconds <= HOUR


def test_what_is_tried_again_is_probed_by_the_next_three_ticks() -> None:
    back_off = after_failures(5).reset(["orders"])
    for number in range(3):
        assert not back_off.deferred(["orders"], at(121 + 30 * number))
        back_off = back_off.after([failed()], at(121 + 30 * number), HOUR)
    assert back_off.deferred(["orders"], at(211))


def test_what_is_tried_again_has_failed_since_the_same_instant() -> None:
    assert after_failures(5).reset(["orders"]).failing["orders"].since == AT


def test_what_is_not_meant_is_not_tried_again() -> None:
    assert after_failures(5).reset(["customers"]) == after_failures(5)


def test_the_first_failure_of_the_series_keeps_its_instant() -> None:
    assert after_failures(5).failing["orders"].since == AT


def test_what_is_saved_is_read_by_the_next_process(tmp_path: Path) -> None:
    save_back_off(tmp_path / "b.json", after_failures(5), "x")
    assert load_back_off(tmp_path / "b.json", "x") == after_failures(5)


def test_under_another_configuration_all_that_failed_with_the_old_one_is_due(
    tmp_path: Path,
) -> None:
    save_back_off(tmp_path / "b.json", after_failures(5), "x")
    assert load_back_off(tmp_path / "b.json", "y") == after_failures(5).reset(["orders"])


def test_what_distinguishes_upstreams_is_read_by_the_next_process(tmp_path: Path) -> None:
    upstream = Upstream(
        upstream_id="orders",
        source="jdbc",
        sensor_id="db: orders",
        read_type="batch",
        upstream_key="id",
        preprocess_query="select 1 from sensor_new_data",
    )
    back_off = after_failures(5).described([upstream])
    save_back_off(tmp_path / "b.json", back_off, "x")
    read = load_back_off(tmp_path / "b.json", "x").failing["orders"]
    assert (read.source, read.read_type, read.upstream_key, read.preprocess_query) == (
        "jdbc",
        "batch",
        "id",
        "select 1 from sensor_new_data",
    )


def test_an_entry_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    save_back_off(tmp_path / "b.json", after_failures(5), "x")
    content = json.loads((tmp_path / "b.json").read_text())
    added = ("source", "read_type", "upstream_key", "preprocess_query")
    content["failing"] = [
        {key: value for key, value in each.items() if key not in added}
        for each in content["failing"]
    ]
    (tmp_path / "b.json").write_text(json.dumps(content))
    assert load_back_off(tmp_path / "b.json", "x") == after_failures(5)


def test_no_file_is_kept_when_nothing_fails(tmp_path: Path) -> None:
    save_back_off(tmp_path / "b.json", after_failures(5), "x")
    save_back_off(tmp_path / "b.json", BackOff(), "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "nul", '"text"', "7", "\udcff", "[" * 100_000])
def test_a_broken_file_puts_nothing_off(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text, errors="surrogateescape")
    assert load_back_off(tmp_path / "b.json", "x") == BackOff()


@pytest.mark.parametrize(
    "wrong",
    [
        {"since": None},
        {"since": "yesterday"},
        {"failed_at": "2025-04-23T21:40:00"},
        {"wait_seconds": "long"},
        {"wait_seconds": -1},
        {"wait_seconds": 1e300},
        {"wait_seconds": float("nan")},
        {"wait_seconds": float("inf")},
        {"failed_looks": float("inf")},
    ],
    ids=str,
)
def test_a_file_with_a_value_that_no_process_wrote_puts_nothing_off(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    file = tmp_path / "b.json"
    save_back_off(file, after_failures(5), "x")
    content = json.loads(file.read_text())
    content["failing"][0] |= wrong
    file.write_text(json.dumps(content))
    assert load_back_off(file, "x") == BackOff()


def test_a_file_of_a_newer_version_puts_nothing_off(tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    save_back_off(file, after_failures(5), "x")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 2}))
    assert load_back_off(file, "x") == BackOff()


def test_a_person_can_end_every_wait_and_the_upstreams_that_waited_are_reported(
    tmp_path: Path,
) -> None:
    save_back_off(tmp_path / "b.json", after_failures(5), "x")
    assert list(end_back_off(tmp_path / "b.json").failing) == ["orders"]
    assert load_back_off(tmp_path / "b.json", "x") == BackOff()


def test_no_wait_is_left_to_end_where_nothing_fails(tmp_path: Path) -> None:
    assert end_back_off(tmp_path / "b.json") == BackOff()

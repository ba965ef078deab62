"""Listings at a terminal of 80 columns: one line per row, held jobs first, the end of paths."""

import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from harness.cli.views.events import show as show_events
from harness.cli.views.listings import listing_of_jobs, listing_of_runs, listing_of_upstreams
from harness.cli.views.terminal import Column, print_table
from harness.cli.views.words import short_paths
from harness.errors import ConfigurationError
from harness.events.event import ChangeEvent
from harness.inspect.listings import (
    JobState,
    job_as_json,
    list_jobs,
    list_runs,
    list_upstreams,
    run_named,
    upstream_as_json,
)
from harness.store.rows import Blocker, Ledger, ProbeOutcome, Run, RunStatus
from tests.support.ledgers import TEN, FakeStore, control, minutes, probe, run
from tests.unit.inspect.test_status import NOW, a_run, status_of

LONG = "/data/" + "lake/" * 30 + "sales/orders"


def terminal(*, width: int = 80, colour: bool = False) -> Console:
    return Console(
        file=StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )


def lines_of(console: Console) -> list[str]:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def blocker(name: str, reason: str) -> Blocker:
    return Blocker(blocker=name, reason=reason, waits_for="", since=TEN)


def jobs_listed(**blockers: Blocker) -> list[tuple[str, JobState]]:
    runs = [a_run(3, RunStatus.FAILED, message="boom"), a_run(2, RunStatus.STARTED, run_id=7)]
    return [(each.job.name, each.state) for each in list_jobs(status_of(5, runs, **blockers))]


def test_held_jobs_come_first_and_paused_ones_last() -> None:
    listed = jobs_listed(job_0=blocker("job_paused", "paused"))
    assert listed == [
        ("job_3", JobState.HELD),
        ("job_2", JobState.RUNNING),
        ("job_1", JobState.WAITING),
        ("job_4", JobState.WAITING),
        ("job_0", JobState.PAUSED),
    ]


def test_a_job_whose_upstream_cannot_be_read_needs_attention() -> None:
    reason = "its hard dependency x cannot be read: no such folder"
    listed = jobs_listed(job_4=blocker("waiting_for_required_event", reason))
    assert listed[1] == ("job_4", JobState.ATTENTION)


def test_a_held_job_is_red_and_has_one_line_however_long_its_reason_is() -> None:
    status = status_of(3, [a_run(1, RunStatus.FAILED, message=f"no file {LONG}\nand a trace" * 9)])
    console = terminal(colour=True)
    listing_of_jobs(list_jobs(status), NOW).show(console)
    lines = lines_of(console)
    assert len(lines) == 2 + 3
    assert "\x1b[1;31mheld" in lines[2]
    assert "…/sales/orders" in lines[2]


def test_scripts_get_the_state_of_a_job_and_its_last_run() -> None:
    held = list_jobs(status_of(2, [a_run(1, RunStatus.FAILED, message="boom", run_id=12)]))[0]
    content = job_as_json(held)
    assert (content["job_id"], content["state"], content["why"]) == ("1", "held", "boom")
    assert isinstance(content["last_run"], dict)
    assert content["last_run"]["run_id"] == "12"


def an_installation() -> FakeStore:
    store = FakeStore({"upstream_state": [], "event_triggers": []})
    store.append(
        Ledger.CONTROLS,
        [
            control(1, TEN, "sales.orders", asset_description="Orders of the shop"),
            control(1, TEN, LONG, asset_description="Orders, by path", job_id=2, control_id="a"),
            control(1, TEN, "sales.gone", control_id="gone"),
            control(2, minutes(1), "sales.gone", control_id="gone", change="removed"),
        ],
    )
    store.append(
        Ledger.PROBES,
        [
            probe(1, TEN, "delta_table:sales.orders:ab5c14a4", latest_event_at=TEN),
            probe(
                1,
                TEN,
                f"delta_table:{LONG}:ab5c14a4",
                outcome=ProbeOutcome.FAILED,
                failing_since=TEN,
                reason=f"The Delta table {LONG} cannot be sensed: there is no such folder",
            ),
        ],
    )
    return store


def test_what_cannot_be_read_comes_first_and_a_removed_row_is_no_upstream() -> None:
    listed = list_upstreams(an_installation(), folded_through=-1)
    assert [(each.sensor_id, each.state) for each in listed] == [
        (LONG, "unreadable"),
        ("sales.orders", "ok"),
    ]


def test_an_upstream_has_one_line_with_its_description_and_the_end_of_its_path() -> None:
    console = terminal()
    listing_of_upstreams(list_upstreams(an_installation(), folded_through=-1), NOW).show(console)
    lines = lines_of(console)
    assert len(lines) == 2 + 2
    assert "/sales/orders" in lines[2]
    assert "there is no such fold…" in lines[2]
    assert "Orders of the shop" in lines[3]


def test_scripts_get_whole_names_and_reasons() -> None:
    content = upstream_as_json(list_upstreams(an_installation(), folded_through=-1)[0])
    assert content["sensor_id"] == LONG
    assert content["descriptions"] == ["Orders, by path"]
    assert content["reason"] == f"The Delta table {LONG} cannot be sensed: there is no such folder"


def some_runs(count: int) -> list[Run]:
    return [
        run(
            number,
            1,
            minutes(number),
            RunStatus.SUCCEEDED,
            intent_id=str(number),
            run_id=1_234_567_890_000_000 + number,
            job_id=number % 2,
            job_name=f"job_{number % 2}",
            decided_tick=number,
        )
        for number in range(count)
    ]


def stored(runs: list[Run]) -> FakeStore:
    store = FakeStore({"run_state": []})
    store.append(Ledger.RUNS, runs)
    return store


def test_runs_are_listed_newest_first_and_no_more_than_requested() -> None:
    store = stored(some_runs(9))
    listed = list_runs(store, folded_through=-1, job_id=1, limit=3)
    assert [each.intent_id for each in listed] == ["7", "5", "3"]


def test_a_run_has_one_line_and_the_end_of_its_id() -> None:
    long = replace(some_runs(1)[0], message="x" * 300, started_at=TEN, ended_at=TEN + timedelta(1))
    console = terminal()
    listing_of_runs([long], NOW).show(console)
    assert len(lines_of(console)) == 3
    assert lines_of(console)[2].split()[0] == "…000000"


def test_a_run_that_goes_on_has_the_word_of_the_jobs_api() -> None:
    console = terminal()
    listing_of_runs([replace(some_runs(1)[0], run_status=RunStatus.STARTED)], NOW).show(console)
    assert "RUNNING" in lines_of(console)[2]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("1234567890000003", "3"), ("…000003", "3"), ("0003", "3"), ("job_1", "7"), ("JOB_0", "8")],
)
def test_a_run_is_named_by_its_id_the_end_of_it_or_its_job(wanted: str, found: str) -> None:
    newest_first = some_runs(9)[::-1]
    assert run_named(wanted, newest_first, ["job_0", "job_1"]).intent_id == found


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("3", "Runs 1234567890000013, 1234567890000003 end in '3': name one by its whole id"),
        ("idle", "idle has no run yet"),
        ("nothing", "There is no run 'nothing'; `python -m harness runs` lists them"),
    ],
)
def test_a_run_that_is_not_clear_is_refused_with_what_to_do(wanted: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        run_named(wanted, some_runs(14)[::-1], ["idle"])


def an_event(**changed: object) -> ChangeEvent:
    fields: dict[str, object] = {
        "event_ts": 1_772_359_200_000,
        "table": LONG,
        "partition": None,
        "snapshot_id": "12",
        "snapshot_ts": 1_772_359_200_000,
        "prev_snapshot_id": "11",
        "table_format": "DELTA",
        "operation_type": "UPDATE",
        "tags": {"table_id": "8adf2c7f-4ad3-4973", "writer_timestamp": "1795445475078"},
        **changed,
    }
    return ChangeEvent(**fields)  # type: ignore[arg-type]


def test_an_event_has_one_line_with_the_end_of_its_table_and_no_tags() -> None:
    console = terminal()
    show_events(console, [an_event()])
    lines = lines_of(console)
    assert len(lines) == 3
    assert "/sales/orders" in lines[1]
    assert "table_id" not in lines[1]


def test_tags_are_shown_when_requested() -> None:
    console = terminal(width=200)
    show_events(console, [an_event()], is_verbose=True)
    assert "table_id=8adf2c7f-4ad3-4973" in "".join(lines_of(console))


def test_a_table_that_was_created_again_is_reported_as_such() -> None:
    console = terminal()
    show_events(console, [an_event(tags={"recreated": "true"})])
    assert "UPDATE (re-created)" in lines_of(console)[1]


def test_events_that_are_left_out_are_counted() -> None:
    console = terminal()
    show_events(console, [an_event()], left_out=7)
    assert lines_of(console)[-1] == "1 event  and 7 earlier: --limit"


@pytest.mark.parametrize(
    ("width", "shown"), [(24, "…/lake/lake/sales/orders"), (16, "…/sales/orders")]
)
def test_a_column_that_keeps_its_end_begins_at_a_part_of_the_path(width: int, shown: str) -> None:
    console = terminal(width=width + 4)
    print_table(console, (Column(title="", keeps_end=True),), [(LONG,)], has_header=False)
    (line,) = lines_of(console)
    assert line.strip() == shown


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        (f"{LONG} has nothing new", "…/sales/orders has nothing new"),
        ("no s3://bucket/a/b/c: create it", "no …/b/c: create it"),
        ("sales.orders/returns, 3/4 of it", "sales.orders/returns, 3/4 of it"),
        ("/data/orders is there", "/data/orders is there"),
    ],
)
def test_a_sentence_has_the_end_of_each_long_path(sentence: str, short: str) -> None:
    assert short_paths(sentence) == short

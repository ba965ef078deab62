"""Housekeeping on real Delta ledgers on a disk, without a JVM."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.config.load import load_settings
from harness.context import Context
from harness.store.local import LocalStore
from harness.tick.checkpoint import load_state, save_state
from harness.tick.housekeeping import Housekeeper, compact_table, compact_when_due, remove_old_files
from harness.tick.state import TickState
from tests.support.fake_clock import FakeClock

PROJECT = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COMMITS = 300


def append(table: Path, commits: int, start: int = 0) -> None:
    configuration = {"delta.appendOnly": "true", "delta.checkpointInterval": "100"}
    place: Path | DeltaTable = table
    for number in range(start, start + commits):
        rows = pa.table({"tick_number": [number], "said": [f"tick {number}"]})
        write_deltalake(place, rows, mode="append", configuration=configuration)
        # Opened once: to open it for each commit reads the whole log each time.
        place = DeltaTable(table) if place is table else place


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("warehouse") / "heartbeat.db" / "ledger_ticks"
    append(table, COMMITS)
    return table


def numbers(table: Path) -> list[int]:
    store = LocalStore(table.parent.parent, "heartbeat")
    return sorted(int(str(row["tick_number"])) for row in store.read(table.name))


def test_three_hundred_commits_become_one_file_with_the_same_rows(ledger: Path) -> None:
    kept = compact_table(ledger, keep_hours=168)
    assert kept.failure is None
    assert (kept.files_before, kept.files_after) == (COMMITS, 1)
    assert numbers(ledger) == list(range(COMMITS))


def test_replaced_files_stay_for_those_who_still_read_them(ledger: Path) -> None:
    compact_table(ledger, keep_hours=168)
    assert len(list(ledger.glob("*.parquet"))) > COMMITS


def test_an_append_only_table_still_takes_rows_and_refuses_deletes_afterwards(
    tmp_path: Path,
) -> None:
    table = tmp_path / "heartbeat.db" / "ledger_ticks"
    append(table, 3)
    compact_table(table, keep_hours=168)
    append(table, 1, start=3)
    assert numbers(table) == [0, 1, 2, 3]
    with pytest.raises(Exception, match="append"):
        DeltaTable(table).delete()


def test_old_files_go_once_and_are_counted_once(tmp_path: Path) -> None:
    table = tmp_path / "heartbeat.db" / "ledger_ticks"
    append(table, 5)
    assert compact_table(table, keep_hours=0).removed == 5
    assert compact_table(table, keep_hours=0).removed == 0
    assert numbers(table) == [0, 1, 2, 3, 4]


def test_a_table_that_cannot_be_read_is_reported_and_nothing_is_raised(tmp_path: Path) -> None:
    table = tmp_path / "heartbeat.db" / "ledger_ticks"
    append(table, 2)
    (table / "_delta_log" / f"{1:020}.json").write_text("{broken")
    assert compact_table(table, keep_hours=168).failure


@dataclass
class Installed:
    context: Context
    table: Path


def install(folder: Path, compact_after: int) -> Installed:
    config = folder / "heartbeat.yml"
    config.write_text(f"maintenance: {{compact_after_commits: {compact_after}}}\n")
    environment = {"HEARTBEAT_HOME": str(folder / "home"), "HEARTBEAT_CONFIG": str(config)}
    context = Context(load_settings(PROJECT, environment), environment, FakeClock(NOON))
    return Installed(context, context.home.warehouse / "heartbeat.db" / "ledger_ticks")


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installed]:
    """A state directory with one ledger of thirty commits; its project compacts after twenty."""
    installed = install(tmp_path, compact_after=20)
    append(installed.table, 30)
    yield installed
    installed.context.close()


@pytest.fixture
def grown(tmp_path: Path) -> Iterator[Installed]:
    """A ledger with a file of some size before thirty small ones, to be compacted after hundred."""
    installed = install(tmp_path, compact_after=100)
    rows = pa.table({"tick_number": [0], "said": [os.urandom(1_000_000).hex()]})
    write_deltalake(installed.table, rows)
    append(installed.table, 30, start=1)
    yield installed
    installed.context.close()


def test_a_resident_process_compacts_when_enough_commits_have_come(installed: Installed) -> None:
    (kept,) = compact_when_due(installed.context)
    assert (kept.files_before, kept.files_after) == (30, 1)


def test_it_does_not_compact_again_before_as_many_have_come(installed: Installed) -> None:
    compact_when_due(installed.context)
    append(installed.table, 10, start=30)
    assert compact_when_due(installed.context) == ()
    append(installed.table, 10, start=40)
    assert [each.files_before for each in compact_when_due(installed.context)] == [21]


def test_the_newest_rows_of_a_ledger_are_put_together_more_often_than_all_of_its_files(
    grown: Installed,
) -> None:
    (kept,) = compact_when_due(grown.context)
    assert (kept.files_before, kept.files_after) == (31, 2)
    append(grown.table, 29, start=31)
    assert compact_when_due(grown.context) == ()
    append(grown.table, 1, start=60)
    (kept,) = compact_when_due(grown.context)
    assert (kept.files_before, kept.files_after) == (32, 2)
    # After so many commits all of them are.
    append(grown.table, 37, start=61)
    (kept,) = compact_when_due(grown.context)
    assert (kept.files_before, kept.files_after) == (39, 1)
    assert numbers(grown.table) == list(range(98))


def test_nothing_else_has_to_end_before_a_ledger_is_compacted(grown: Installed) -> None:
    def alone() -> None:
        raise AssertionError

    assert compact_when_due(grown.context, alone=alone)
    append(grown.table.parent / "sensors", 120)
    with pytest.raises(AssertionError):
        compact_when_due(grown.context, alone=alone)


def test_the_housekeeper_checks_only_now_and_then(installed: Installed) -> None:
    housekeeper = Housekeeper(installed.context)
    files = []
    for _ in range(10):
        housekeeper.between_ticks()
        files.append(len(DeltaTable(installed.table).file_uris()))
    assert files == [30] * 9 + [1]


def test_what_the_last_tick_left_still_counts_after_compacting(installed: Installed) -> None:
    context = installed.context
    save_state(context.home.state, a_state(), context.store)
    compact_when_due(context)
    state = load_state(context.home.state, context.store)
    assert state is not None
    assert state.tick_number == 7


def test_a_stale_state_stays_stale(installed: Installed) -> None:
    context = installed.context
    save_state(context.home.state, a_state(), context.store)
    append(installed.table, 1, start=30)
    compact_when_due(context)
    assert load_state(context.home.state, context.store) is None


def a_state() -> TickState:
    return TickState(
        tick_number=7,
        tick_at=NOON,
        folded_through=7,
        upstreams=(),
        runs=(),
        controls_checksum="c",
        ended_tick_number=7,
        must_decide=False,
    )


def test_old_files_of_runs_go_unless_a_run_may_still_read_them(tmp_path: Path) -> None:
    names = ["handed_over/old-1.json", "handed_over/used-1.json", "jobs-api/runs/7.log"]
    for name in [*names, "handed_over/new-1.json"]:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        age = timedelta(hours=1) if "new" in name else timedelta(days=8)
        os.utime(file, ((NOON - age).timestamp(),) * 2)
    assert remove_old_files(tmp_path, NOON, timedelta(days=7), frozenset({"used-1"})) == 2
    assert {path.name for path in tmp_path.rglob("*-1.json")} == {"used-1.json", "new-1.json"}

"""Ledgers with damage on a real disk: no job starts that is not recorded, and none starts twice."""

import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from harness.errors import ExitCode, StateError
from harness.events.event import EventRow, Operation, TableFormat
from harness.fire.intents import Start, fire
from harness.fire.submit import Firing, Steps
from harness.platform.databricks.rate_limit import TokenBucket
from harness.store.delta_commits import commit_with, force_table, newest_commit
from harness.store.integrity import lost_commits, require_intact
from harness.store.local import LocalStore
from harness.store.rows import Consumed, Ledger, Run, RunStatus, Tick
from harness.tick.checkpoint import save_state
from harness.tick.state import TickState
from tests.support.disk_ledgers import create_ledgers
from tests.support.fake_clock import FakeClock
from tests.support.fake_jobs import FakeJobs
from tests.support.ledgers import run

JOB = 2**53 + 1
AT = datetime(2026, 3, 1, 8, tzinfo=UTC)
#: A table of eight commits, from 0 to 7, has checkpoints at 2 and 5.
CHECKPOINT_EVERY = 3


@pytest.fixture(scope="module")
def seven_ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ledgers in which seven ticks have found an event each."""
    warehouse = tmp_path_factory.mktemp("warehouse")
    store = create_ledgers(warehouse, checkpoint_every=CHECKPOINT_EVERY)
    for number in range(1, 8):
        store.append(Ledger.EVENTS, [an_event(number)])
        store.append(Ledger.RUNS, [a_step(number)])
    return warehouse


@pytest.fixture
def store(seven_ticks: Path, tmp_path: Path) -> LocalStore:
    shutil.copytree(seven_ticks, tmp_path, dirs_exist_ok=True)
    return LocalStore(tmp_path, "heartbeat")


@pytest.fixture
def jobs() -> FakeJobs:
    jobs = FakeJobs(clock=FakeClock(AT))
    jobs.add_job(JOB)
    return jobs


def an_event(number: int) -> EventRow:
    return EventRow(
        tick_number=number,
        event_ts=1,
        event_id=f"event {number}",
        upstream_id="u",
        table="flights",
        partition=None,
        snapshot_id=str(number),
        snapshot_ts=None,
        prev_snapshot_id=None,
        table_format=TableFormat.DELTA,
        operation_type=Operation.APPEND,
        tags={},
        change_id=f"event {number}",
    )


def a_step(number: int) -> Run:
    return run(number, 1, AT, RunStatus.SUCCEEDED, job_id=7, intent_id=f"old {number}")


def start(store: LocalStore, jobs: FakeJobs, folder: Path) -> list[Run]:
    clock = FakeClock(AT)
    firing = Firing(
        api=jobs,
        origin="here",
        store=store,
        starts=TokenBucket(clock, per_second=100),
        questions=TokenBucket(clock, per_second=100),
        payloads=folder / "handed_over",
        schema="heartbeat",
        crash_point=lambda name: None,
    )
    due = Start(
        job_id=JOB,
        job_name="daily",
        intent_id="intent",
        attempt=1,
        consumed=(Consumed(upstream_id="u", from_tick=-1, through_tick=7),),
    )
    return fire([due], tick=Tick(number=8, at=AT), firing=firing, steps=Steps())


def commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def newest_rows(table: Path) -> Path:
    return max(table.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)


#: What makes a table unreadable, as a whole or in part.
DAMAGE: Mapping[str, Callable[[Path], object]] = {
    "the newest commit is cut off": lambda table: cut_off(commit(table, 7)),
    "a commit is gone": lambda table: commit(table, 6).unlink(),
    "the checkpoint is cut off": lambda table: cut_off(
        max((table / "_delta_log").glob("*.checkpoint.parquet"))
    ),
    "a file with rows is gone": lambda table: newest_rows(table).unlink(),
    "a file with rows is cut off": lambda table: cut_off(newest_rows(table)),
}
#: An append needs no old rows.
IN_THE_LOG = [name for name in DAMAGE if "rows" not in name]


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_job_starts_on_events_that_cannot_be_read(
    damage: str, store: LocalStore, jobs: FakeJobs, tmp_path: Path
) -> None:
    DAMAGE[damage](tmp_path / "heartbeat.db" / Ledger.EVENTS)

    with pytest.raises(
        StateError, match=r"ledger_data_change_events in .* doctor` shows which file"
    ):
        start(store, jobs, tmp_path)
    assert jobs.requests == []


@pytest.mark.parametrize("damage", IN_THE_LOG)
def test_no_job_starts_whose_intent_cannot_be_written(
    damage: str, store: LocalStore, jobs: FakeJobs, tmp_path: Path
) -> None:
    DAMAGE[damage](tmp_path / "heartbeat.db" / Ledger.RUNS)

    with pytest.raises(
        StateError, match=r"ledger_runs cannot be written: .* doctor` shows"
    ) as reported:
        start(store, jobs, tmp_path)
    assert jobs.requests == []
    assert reported.value.exit_code is ExitCode.FAILED
    assert len(str(reported.value).splitlines()) == 1


def test_a_commit_that_landed_counts_although_writing_it_is_reported_as_failed(
    store: LocalStore, jobs: FakeJobs, tmp_path: Path
) -> None:
    """What is written after every third commit, the hint at its checkpoint, cannot be written."""
    hint = tmp_path / "heartbeat.db" / Ledger.RUNS / "_delta_log" / "_last_checkpoint"
    hint.unlink()
    (hint / "in the way").mkdir(parents=True)

    [row] = start(store, jobs, tmp_path)

    steps = store.read(Ledger.RUNS, where=[("job_id", "=", JOB)])
    assert sorted(str(step["run_status"]) for step in steps) == ["INTENDED", "STARTED"]
    assert jobs.runs_of(JOB) == [row.run_id]


def test_a_commit_that_did_not_land_is_none(
    store: LocalStore, jobs: FakeJobs, tmp_path: Path
) -> None:
    table = tmp_path / "heartbeat.db" / Ledger.RUNS
    for version in range(8, 40):
        (commit(table, version) / "in the way").mkdir(parents=True)

    with pytest.raises(StateError, match="ledger_runs cannot be written"):
        start(store, jobs, tmp_path)
    assert jobs.requests == []


def test_a_commit_of_somebody_else_is_not_taken_for_ours(store: LocalStore, tmp_path: Path) -> None:
    table = tmp_path / "heartbeat.db" / Ledger.EVENTS
    marks = CommitProperties(custom_metadata={"heartbeat": "ours"})
    rows = DeltaTable(table).to_pyarrow_table().slice(0, 1)
    write_deltalake(table, rows, mode="append", commit_properties=marks)

    assert commit_with(table, "ours", after=4) == commit(table, 8)
    assert commit_with(table, "theirs", after=4) is None


def test_rows_reach_the_disk_before_the_commit_that_names_them_and_both_before_the_append_ends(
    tmp_path: Path,
) -> None:
    create_ledgers(tmp_path)
    forced: list[Path] = []
    store = LocalStore(tmp_path, "heartbeat", force=forced.append)

    store.append(Ledger.EVENTS, [an_event(1)])

    table = tmp_path / "heartbeat.db" / Ledger.EVENTS
    assert forced == [*table.glob("*.parquet"), table, commit(table, 1), table / "_delta_log"]


def test_what_stands_for_older_files_reaches_the_disk_before_these_go(
    store: LocalStore, tmp_path: Path
) -> None:
    table = tmp_path / "heartbeat.db" / Ledger.EVENTS
    forced: list[Path] = []

    force_table(table, forced.append)

    log = table / "_delta_log"
    assert forced[1:] == [table, commit(table, 7), log, max(log.glob("*.checkpoint.parquet")), log]
    assert forced[0] == newest_rows(table)


def test_the_folder_of_a_partition_reaches_the_disk_with_its_rows(tmp_path: Path) -> None:
    table = tmp_path / "table"
    write_deltalake(table, pa.table({"era": [0], "number": [1]}), partition_by=["era"])
    forced: list[Path] = []

    force_table(table, forced.append)

    folder = table / "era=0"
    assert forced == [*folder.iterdir(), folder, table, commit(table, 0), table / "_delta_log"]


def test_a_fingerprint_of_a_table_that_is_in_no_folder_reports_nothing_lost(tmp_path: Path) -> None:
    assert lost_commits(tmp_path / "nowhere", "12:2026-03-01") is None


def test_nothing_is_started_when_the_disk_does_not_keep_an_intent(
    store: LocalStore, jobs: FakeJobs, tmp_path: Path
) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "Input/output error", str(path))

    with pytest.raises(StateError, match="Input/output error"):
        start(LocalStore(tmp_path, "heartbeat", force=fail), jobs, tmp_path)
    assert jobs.requests == []


@pytest.fixture
def after_a_tick(store: LocalStore, tmp_path: Path) -> Path:
    """What the last tick left."""
    state = TickState(
        tick_number=5,
        tick_at=AT,
        folded_through=-1,
        upstreams=(),
        runs=(),
        controls_checksum="c",
        ended_tick_number=5,
        must_decide=False,
    )
    save_state(tmp_path / "state.json", state, store)
    return tmp_path / "state.json"


def test_tables_that_have_grown_since_the_last_tick_are_whole(
    store: LocalStore, after_a_tick: Path, tmp_path: Path
) -> None:
    store.append(Ledger.EVENTS, [an_event(8)])
    require_intact(tmp_path / "heartbeat.db", after_a_tick)


def test_an_empty_newest_commit_stops_because_no_reader_would_miss_its_rows(
    store: LocalStore, after_a_tick: Path, tmp_path: Path
) -> None:
    commit(tmp_path / "heartbeat.db" / Ledger.RUNS, 7).write_text("")

    assert len(store.read(Ledger.RUNS)) == 6
    with pytest.raises(StateError, match=r"newest commit of ledger_runs is empty .* doctor`"):
        require_intact(tmp_path / "heartbeat.db", after_a_tick)


def test_an_empty_commit_that_a_checkpoint_has_taken_in_loses_nothing(
    after_a_tick: Path, tmp_path: Path
) -> None:
    table = tmp_path / "heartbeat.db" / Ledger.RUNS
    DeltaTable(table).create_checkpoint()
    commit(table, 7).write_text("")

    require_intact(tmp_path / "heartbeat.db", after_a_tick)


def test_a_ledger_that_ends_before_the_last_tick_stops(after_a_tick: Path, tmp_path: Path) -> None:
    commit(tmp_path / "heartbeat.db" / Ledger.RUNS, 7).unlink()

    with pytest.raises(StateError, match=r"ledger_runs .* ends with commit 6, .* at commit 7, so"):
        require_intact(tmp_path / "heartbeat.db", after_a_tick)


def test_a_ledger_that_is_gone_stops(after_a_tick: Path, tmp_path: Path) -> None:
    table = tmp_path / "heartbeat.db" / Ledger.RUNS
    table.rename(tmp_path / "elsewhere")

    with pytest.raises(StateError, match=r"ledger_runs .* is gone"):
        require_intact(tmp_path / "heartbeat.db", after_a_tick)


def test_without_a_file_of_the_last_tick_a_shorter_ledger_is_not_noticed(
    after_a_tick: Path, tmp_path: Path
) -> None:
    after_a_tick.unlink()
    table = tmp_path / "heartbeat.db" / Ledger.RUNS
    found = newest_commit(table)
    assert found is not None
    found.path.unlink()

    require_intact(tmp_path / "heartbeat.db", after_a_tick)

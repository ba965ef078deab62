"""Damage to tables on a real disk: each kind is found, and the remedy that is reported fixes it."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.inspect.doctor.findings import Level
from harness.inspect.doctor.installation import Patient
from harness.inspect.doctor.tables import tables
from harness.store.health import examine_table
from harness.store.local import LocalStore
from harness.store.rows import Ledger
from harness.tick.checkpoint import save_state
from harness.tick.housekeeping import compact_table
from harness.tick.state import TickState
from tests.support.disk_ledgers import create_ledgers
from tests.support.ledgers import tick
from tests.support.patients import NOON, a_patient, levels, only, set_up

STATE = TickState(
    tick_number=7,
    tick_at=NOON,
    folded_through=-1,
    upstreams=(),
    runs=(),
    controls_checksum="c",
    ended_tick_number=7,
    must_decide=False,
)


@pytest.fixture(scope="module")
def seven_ticks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ledgers of seven ticks, that of ticks with checkpoints at the commits 2 and 5."""
    home = tmp_path_factory.mktemp("home")
    create_ledgers(home / "warehouse", checkpoint_every=3)
    store = LocalStore(home / "warehouse", "heartbeat", force=lambda path: None)
    for number in range(1, 8):
        store.append(Ledger.TICKS, [tick(number, NOON)])
    save_state(home / "state.json", STATE, store)
    set_up(home)
    return home


@pytest.fixture
def patient(seven_ticks: Path, tmp_path: Path) -> Patient:
    shutil.copytree(seven_ticks, tmp_path / "home")
    return a_patient(tmp_path / "home")


def table_of(patient: Patient) -> Path:
    return patient.tables / Ledger.TICKS


def log_file(patient: Patient, name: str) -> Path:
    return table_of(patient) / "_delta_log" / name


def commit(version: int) -> str:
    return f"{version:020}.json"


def checkpoint(version: int) -> str:
    return f"{version:020}.checkpoint.parquet"


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def rows_file(patient: Patient) -> Path:
    return min(table_of(patient).glob("*.parquet"))


def numbers(patient: Patient) -> list[int]:
    return sorted(int(str(row["tick_number"])) for row in patient.store.read(Ledger.TICKS))


def test_tables_that_can_be_read_are_counted_with_their_files(patient: Patient) -> None:
    [found] = tables(patient)
    assert found.level is Level.OK
    assert found.what.startswith("7 tables can be read: 7 files")


#: What was done to a table, what is reported of it, and the remedy.
DAMAGE: Mapping[str, tuple[Callable[[Patient], object], str, str]] = {
    "newest commit cut off": (
        lambda each: cut_off(log_file(each, commit(7))),
        "commit 7 is cut off, or no JSON",
        "or do without what this commit held",
    ),
    "newest commit empty": (
        lambda each: log_file(each, commit(7)).write_text(""),
        "commit 7 is empty",
        "or do without what this commit held",
    ),
    "newest commit of zeros": (
        lambda each: log_file(each, commit(7)).write_bytes(b"\0" * 300),
        "commit 7 is cut off, or no JSON",
        "or do without what this commit held",
    ),
    "older commit cut off": (
        lambda each: cut_off(log_file(each, commit(6))),
        "commit 6 is cut off, or no JSON",
        "restore the state directory from the backup",
    ),
    "commit gone": (
        lambda each: log_file(each, commit(6)).unlink(),
        "commit 6 missing",
        "restore the state directory from the backup",
    ),
    "file with rows gone": (
        lambda each: rows_file(each).unlink(),
        "a file with rows is missing",
        "restore the state directory from the backup",
    ),
    "file with rows cut off": (
        lambda each: cut_off(rows_file(each)),
        "a file with rows has",
        "restore the state directory from the backup",
    ),
    "file with rows of zeros": (
        lambda each: rows_file(each).write_bytes(b"\0" * rows_file(each).stat().st_size),
        "a file with rows is damaged",
        "restore the state directory from the backup",
    ),
    "whole log gone": (
        lambda each: [path.unlink() for path in log_file(each, "").iterdir()],
        "has no commit",
        "restore the state directory from the backup",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_table_is_broken_and_reported_with_its_file(
    damage: str, patient: Patient
) -> None:
    damaging, what, todo = DAMAGE[damage]
    damaging(patient)

    found = only(tables(patient), Level.BROKEN)

    assert found.about == Ledger.TICKS
    assert what in found.what
    assert todo in found.todo
    assert str(table_of(patient)) in found.where


#: Damage that can be undone by removing what is named.
CURABLE: Mapping[str, Callable[[Patient], object]] = {
    "a checkpoint that is cut off": lambda each: cut_off(log_file(each, checkpoint(5))),
    "a checkpoint that is empty": lambda each: log_file(each, checkpoint(5)).write_bytes(b""),
    "a hint that is cut off": lambda each: cut_off(log_file(each, "_last_checkpoint")),
    "a hint at a checkpoint that is gone": lambda each: log_file(each, checkpoint(5)).unlink(),
}


@pytest.mark.parametrize("damage", CURABLE)
def test_doing_what_is_stated_makes_the_table_whole_again(damage: str, patient: Patient) -> None:
    CURABLE[damage](patient)
    found = only(tables(patient), Level.BROKEN)
    assert found.todo.startswith("remove this file")

    Path(found.where).unlink()
    if "_last_checkpoint" in found.todo:
        log_file(patient, "_last_checkpoint").unlink()

    assert levels(tables(patient)) == [Level.OK]
    assert numbers(patient) == [1, 2, 3, 4, 5, 6, 7]


def test_a_damaged_checkpoint_is_not_to_be_removed_when_commits_before_it_are_gone(
    patient: Patient,
) -> None:
    cut_off(log_file(patient, checkpoint(5)))
    log_file(patient, commit(4)).unlink()

    found = only(tables(patient), Level.BROKEN)

    assert found.todo == "restore the state directory from the backup"


def test_commits_that_a_checkpoint_has_taken_in_may_be_gone(patient: Patient) -> None:
    for version in range(6):
        log_file(patient, commit(version)).unlink()
    log_file(patient, checkpoint(2)).unlink()

    assert levels(tables(patient)) == [Level.OK]
    assert numbers(patient) == [1, 2, 3, 4, 5, 6, 7]


def test_a_ledger_that_is_shorter_than_the_last_tick_left_it_is_broken(patient: Patient) -> None:
    log_file(patient, commit(7)).unlink()

    found = only(tables(patient), Level.BROKEN)

    assert found.what == "ends with commit 6, and the last tick left it at commit 7"
    assert "remove state.json" in found.todo


@pytest.mark.parametrize("has_state", [True, False])
def test_a_ledger_that_is_gone_is_broken(patient: Patient, has_state: bool) -> None:
    shutil.rmtree(table_of(patient))
    if not has_state:
        patient.home.state.unlink()

    assert only(tables(patient), Level.BROKEN).what.startswith("is gone")


def test_nothing_is_missing_before_anything_was_built(tmp_path: Path) -> None:
    assert list(tables(a_patient(tmp_path / "home"))) == []


def test_many_damaged_files_are_reported_in_three_entries(patient: Patient) -> None:
    for path in table_of(patient).glob("*.parquet"):
        path.unlink()

    damages = examine_table(table_of(patient)).damages

    assert [each.what for each in damages[:2]] == ["a file with rows is missing"] * 2
    assert damages[2].what == "a file with rows is missing, and 4 more files"
    assert len(damages) == 3


def test_a_table_whose_folder_cannot_be_listed_is_broken_and_stops_no_other(
    patient: Patient,
) -> None:
    log = log_file(patient, "")
    shutil.rmtree(log)
    log.write_text("no folder")

    found = only(tables(patient), Level.BROKEN)

    assert found.what == "cannot be read (not a directory)"


def test_small_files_are_worth_maintaining_until_they_are_compacted(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home", "maintenance: {compact_after_commits: 10}")
    create_ledgers(patient.home.warehouse)
    store = LocalStore(patient.home.warehouse, "heartbeat", force=lambda path: None)
    for number in range(19):
        store.append(Ledger.TICKS, [tick(number, NOON)])
    assert levels(tables(patient)) == [Level.OK]

    store.append(Ledger.TICKS, [tick(19, NOON)])
    found = only(tables(patient), Level.ATTENTION)
    assert "ledger_ticks (20 small files, 21 commits since its checkpoint)" in found.what
    assert "maintain" in found.todo

    compact_table(table_of(patient), keep_hours=168)
    assert levels(tables(patient)) == [Level.OK]

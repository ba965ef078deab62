"""The page that a night operator reads, the object that a script reads, and what neither changes."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.views.doctor import as_json, show
from harness.inspect.doctor.findings import Level, attention, broken, ok, worst
from harness.inspect.doctor.installation import Patient
from harness.inspect.doctor.run import examine
from harness.store.local import LocalStore
from harness.store.rows import Ledger
from harness.store.writer.lock import ProcessLock
from tests.support.disk_ledgers import create_ledgers
from tests.support.ledgers import tick
from tests.support.patients import NOON, a_patient, set_up

HOME = Path("/srv/heartbeat/.heartbeat")
LOG = HOME / "warehouse" / "heartbeat.db" / "ledger_runs" / "_delta_log"
FINDINGS = [
    ok("state directory", "can be written, on ext4", where=HOME),
    attention("clock", "is 5m behind", todo="set the machine's clock right"),
    broken(
        "ledger_data_change_events",
        "commit 7 is cut off, or no JSON",
        where=LOG / "00000000000000000007.json",
        todo="restore the state directory from the backup, or do without what this commit held",
    ),
    ok("inbox", "is empty", where=HOME / "inbox"),
]


def page(findings: list[object], width: int = 80) -> list[str]:
    stream = StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    show(console, findings, HOME)  # type: ignore[arg-type]
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_what_is_broken_stands_first_with_its_place_and_what_to_do() -> None:
    assert page(FINDINGS)[:7] == [
        "1 broken, 1 to look at, 2 ok",
        "broken 1",
        "  ledger_data_change_events  commit 7 is cut off, or no JSON",
        "                             warehouse/heartbeat.db/ledger_runs/_delta_log/000",
        "                             00000000000000007.json",
        "                             → restore the state directory from the backup, or",
        "                             do without what this commit held",
    ]


def test_what_is_fine_is_one_line_each_and_only_the_state_directory_shows_where() -> None:
    assert page(FINDINGS)[-4:] == [
        "ok 2",
        "  state directory  can be written, on ext4",
        "                   /srv/heartbeat/.heartbeat",
        "  inbox            is empty",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in page(FINDINGS, width))


def test_text_from_outside_cannot_move_the_cursor() -> None:
    output = page([broken("inbox", "1 message: \x1b[2J.json", todo="look\r\nat it")])
    assert "\x1b" not in "".join(output)
    assert any(r"\x1b[2J.json" in line for line in output)


def test_a_script_gets_the_level_the_counts_and_every_finding() -> None:
    reported = json.loads(json.dumps(as_json(FINDINGS)))
    assert {name: reported[name] for name in ("level", "broken", "attention", "ok")} == {
        "level": "broken",
        "broken": 1,
        "attention": 1,
        "ok": 2,
    }
    assert reported["findings"][0] == {
        "level": "broken",
        "about": "ledger_data_change_events",
        "what": "commit 7 is cut off, or no JSON",
        "where": str(LOG / "00000000000000000007.json"),
        "todo": "restore the state directory from the backup, or do without what this commit held",
    }
    assert reported["findings"][3]["todo"] is None


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A whole installation after one tick."""
    patient = a_patient(tmp_path / "home")
    store: LocalStore = create_ledgers(patient.home.warehouse)
    store.append(Ledger.TICKS, [tick(1, NOON)])
    set_up(patient.home.folder)
    return patient


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}


def test_a_whole_installation_has_nothing_broken_while_a_tick_runs(patient: Patient) -> None:
    with ProcessLock(patient.home.folder, command="tick"):
        findings = examine(patient)
    assert worst(findings) is not Level.BROKEN
    assert "`tick` is at work" in "".join(each.what for each in findings)


def test_examining_changes_nothing(patient: Patient) -> None:
    before = files(patient.home.folder)
    examine(patient)
    assert files(patient.home.folder) == before


def test_a_damaged_store_stops_no_check(patient: Patient) -> None:
    for log in patient.tables.glob("*/_delta_log"):
        (log / f"{0:020}.json").write_text("{")

    findings = examine(patient)

    reported = {each.about for each in findings if each.level is Level.BROKEN}
    assert {*Ledger} <= reported
    assert {"state directory", "inbox", "controls"} <= {
        each.about for each in findings if each.level is not Level.BROKEN
    }

"""``status --watch``: the screen as a function of the keys, and the real thing under a terminal."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from rich.text import Text

from harness.cli.views.watch import Key, Screen, Snapshot, keys_in
from harness.errors import ExitCode
from harness.inspect.listings import list_jobs, list_upstreams
from harness.store.public_tables import CONTROL_TABLE
from harness.store.rows import Ledger, RunStatus
from harness.store.trigger_queries import TRIGGERS
from tests.support.disk_ledgers import create_ledgers
from tests.support.ledgers import JOB, TEN, control, probe, run
from tests.support.terminals import Terminal
from tests.unit.cli.views.test_listings import an_event, an_installation
from tests.unit.inspect.test_status import a_run, status_of

ROOT = Path(__file__).parents[3]


def snapshot(jobs: int = 3) -> Snapshot:
    return Snapshot(
        status=status_of(jobs, [a_run(1, RunStatus.FAILED, message="boom")]),
        upstreams=list_upstreams(an_installation(), folded_through=-1),
        events=[an_event(table=f"sales.t{number}") for number in range(30)],
    )


def explained(job_id: int) -> Sequence[Text]:
    return [Text(f"why {job_id}"), *(Text(f"line {number}") for number in range(1, 40))]


def pressed(screen: Screen, keys: str) -> Screen:
    for key in keys_in(keys.encode()):
        screen = screen.press(key, explained)
    return screen


def shown(screen: Screen, width: int = 80, height: int = 24) -> list[str]:
    return [each.plain.rstrip() for each in screen.lines(width, height)]


def test_the_screen_has_jobs_upstreams_events_and_the_keys() -> None:
    lines = shown(Screen(snapshot=snapshot()))
    for start in ("3 jobs", "2 upstreams", "30 events"):
        assert any(line.startswith(start) for line in lines)
    assert lines[-1].endswith("q quit")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (80, 10), (40, 5), (200, 60)])
@pytest.mark.parametrize("jobs", [0, 3, 1000])
def test_the_screen_fits_a_terminal_of_any_size(size: tuple[int, int], jobs: int) -> None:
    lines = Screen(snapshot=snapshot(jobs)).lines(*size)
    assert len(lines) == size[1]
    if size[0] >= 80:
        assert max(line.cell_len for line in lines) <= size[0]


def selected(screen: Screen, height: int = 24) -> list[str]:
    lines = screen.lines(80, height)
    return [
        each.plain.split()[1] for each in lines if any(s.style == "reverse" for s in each.spans)
    ]


@pytest.mark.parametrize(
    ("keys", "job"),
    [
        ("", "job_1"),
        ("j", "job_0"),
        ("\x1b[B\x1b[B", "job_2"),
        ("\x1bOBjjjjk", "job_0"),
        ("k\x1b[A", "job_1"),
        ("jx", "job_0"),
    ],
)
def test_arrows_and_letters_select_a_job_and_stay_in_the_list(keys: str, job: str) -> None:
    assert selected(pressed(Screen(snapshot=snapshot()), keys)) == [job]


def test_the_selected_job_is_visible_however_many_there_are() -> None:
    screen = Screen(snapshot=snapshot(1000))
    for keys in ("j" * 500, "j" * 499, "k" * 300):
        screen = pressed(screen, keys)
        assert len(selected(screen)) == 1


def test_the_jobs_are_listed_once_for_each_snapshot_whatever_is_pressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lists = Mock(wraps=list_jobs)
    monkeypatch.setattr("harness.cli.views.watch.list_jobs", lists)
    pressed(Screen(snapshot=snapshot()), "jjk")
    assert lists.call_count == 1


def test_the_selection_stays_with_its_job_when_the_list_changes() -> None:
    screen = pressed(Screen(snapshot=snapshot()), "jj")
    held = replace(snapshot(), status=status_of(3, [a_run(2, RunStatus.FAILED)]))
    assert selected(screen.renewed(held, "")) == ["job_2"]


@pytest.mark.parametrize("key", ["e", "\r", "\n"])
def test_a_key_explains_the_selected_job_and_another_one_goes_back(key: str) -> None:
    screen = pressed(Screen(snapshot=snapshot()), f"j{key}")
    assert shown(screen)[1] == "why 0"
    assert shown(pressed(screen, "jj"))[1] == "line 2"
    assert shown(pressed(screen, "q"))[1].startswith("3 jobs")
    assert not pressed(screen, "q").is_over


def test_q_ends_it_and_nothing_can_be_explained_where_there_is_no_job() -> None:
    assert pressed(Screen(snapshot=snapshot()), "q").is_over
    empty = replace(snapshot(0), status=status_of(0))
    assert pressed(Screen(snapshot=empty), "jke").explanation is None


def test_a_sequence_that_means_nothing_here_is_one_key() -> None:
    assert keys_in(b"\x1b[1;5Cq\x1b") == [Key.OTHER, Key.QUIT, Key.OTHER]


def test_what_cannot_be_read_again_is_shown_beside_what_was_read() -> None:
    lines = shown(Screen(snapshot=snapshot()).renewed(None, "the table is gone"))
    assert lines[1] == "the table is gone"
    assert any(line.startswith("3 jobs") for line in lines)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with one held job, on the disk, that no Spark has made."""
    home = tmp_path_factory.mktemp("home")
    (home / "version.json").write_text(json.dumps({"state_version": 1, "models": "x"}))
    store = create_ledgers(home / "warehouse")
    store.append(Ledger.CONTROLS, [control(1, TEN, "sales.orders")])
    store.append(Ledger.PROBES, [probe(1, TEN, "delta_table:sales.orders:ab5c14a4")])
    failed = run(1, 1, TEN, RunStatus.FAILED, message="boom", run_id=12, ended_at=TEN)
    store.append(Ledger.RUNS, [failed])
    tables = home / "warehouse" / "heartbeat.db"
    row = dict.fromkeys(CONTROL_TABLE.columns, "x") | {
        "trigger_job_id": str(JOB),
        "trigger_job_name": "daily-revenue",
    }
    write_deltalake(tables / "heartbeat_control", pa.Table.from_pylist([row]))
    write_deltalake(tables / "sensors", pa.table({"sensor_id": ["x"]}))
    columns = ("trigger_id", "job_id", "job_name", "dependency_flag", "trigger_state")
    empty = pa.schema([(name, pa.string()) for name in columns])
    write_deltalake(tables / TRIGGERS, empty.empty_table())
    for table, ledger in (("run_state", Ledger.RUNS), ("upstream_state", Ledger.PROBES)):
        schema = pa.table(store._open(ledger).to_pyarrow_table()).schema
        write_deltalake(tables / table, schema.empty_table())
    return home


def environment(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEARTBEAT_")}
    return {**own, "HEARTBEAT_HOME": str(home)}


def watching(home: Path, **changed: str) -> Terminal:
    command = [sys.executable, "-m", "harness", "status", "--watch", "1"]
    return Terminal(command, folder=ROOT, environment={**environment(home), **changed})


def is_restored(terminal: Terminal) -> bool:
    """Whether the screen, the cursor and the modes are as before."""
    leaves, shows = terminal.raw.rfind("\x1b[?1049l"), terminal.raw.rfind("\x1b[?25h")
    is_left = leaves > terminal.raw.rfind("\x1b[?1049h") and shows > terminal.raw.rfind("\x1b[?25l")
    return is_left and terminal.modes == terminal.modes_before


def test_at_a_terminal_a_job_is_selected_explained_and_left_with_q(home: Path) -> None:
    with watching(home) as terminal:
        terminal.wait_for("q quit")
        assert "held" in terminal.text
        terminal.press("e")
        terminal.wait_for("daily-revenue (9007199254740993) is held")
        terminal.press("x")
        terminal.wait_for("1 upstream", after=len(terminal.text))
        terminal.press("q")
        assert terminal.wait_for_end() == ExitCode.DONE
        assert is_restored(terminal)
        assert "\x1b[1m\x1b[31m" in terminal.raw or "\x1b[1;31m" in terminal.raw


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(
    home: Path, number: signal.Signals
) -> None:
    with watching(home) as terminal:
        terminal.wait_for("q quit")
        assert terminal.modes != terminal.modes_before
        terminal.signal(number)
        assert terminal.wait_for_end() == 130, terminal.text
        assert is_restored(terminal)


#: What sends the signals, in place of a method of the program.
WHILE_THE_SCREEN_IS_TAKEN = """
from rich.console import Console
set_live = Console.set_live
def interrupted(console, live):
    os.kill(os.getpid(), signal.SIGINT)
    return set_live(console, live)
Console.set_live = interrupted
"""
TWICE_DURING_WHAT_HANGS = """
from harness.cli.watch import _Reading
def interrupted(reading):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(600)
_Reading.start = interrupted
"""


@pytest.mark.parametrize(
    "interrupted",
    [WHILE_THE_SCREEN_IS_TAKEN, TWICE_DURING_WHAT_HANGS],
    ids=["while the screen is taken", "twice during what hangs"],
)
def test_a_signal_is_taken_at_any_moment_and_a_second_one_at_once(
    home: Path, interrupted: str
) -> None:
    script = f"""
import os, runpy, signal, time
{interrupted}
runpy.run_module("harness", run_name="__main__")
"""
    command = [sys.executable, "-c", script, "status", "--watch", "1"]
    with Terminal(command, folder=ROOT, environment=environment(home)) as terminal:
        assert terminal.wait_for_end() == 130, terminal.text
        assert is_restored(terminal)


def test_no_colour_is_shown_where_it_is_switched_off(home: Path) -> None:
    with watching(home, NO_COLOR="1") as terminal:
        terminal.wait_for("q quit")
        terminal.press("q")
        terminal.wait_for_end()
        assert "31m" not in terminal.raw
        assert "held" in terminal.text


def test_without_a_terminal_plain_blocks_are_printed_until_it_is_stopped(home: Path) -> None:
    command = [sys.executable, "-m", "harness", "status", "--watch"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(home), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        blocks = 0
        for line in process.stdout:
            assert "\x1b" not in line
            blocks += line.startswith("1 job, 1 held")
            if blocks == 2:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_wrong_interval_is_refused_with_what_is_allowed(home: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "harness", "status", "--watch", "often"],
        cwd=ROOT,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == ExitCode.USAGE
    assert "--watch 'often' is not a length of time; write for example" in answer.stderr

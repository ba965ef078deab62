"""How the commands of local runs start and end; the processes are real and short."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.platform.jobs_emulator.runs import states
from harness.platform.jobs_emulator.runs.launcher import phase_after
from harness.platform.jobs_emulator.runs.processes import (
    Ended,
    Ending,
    Observer,
    Processes,
    Task,
    last_line,
)
from tests.support.processes import ends, wait_for_text


class Listener:
    """Records the begin and the end of one process."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.has_ended = threading.Event()
        self.pid = 0
        self.end = Ended(ending=Ending.NOT_STARTED)

    def began(self, run_id: int, pid: int) -> None:
        self.pid = pid
        self.has_begun.set()

    def ended(self, run_id: int, end: Ended) -> None:
        self.end = end
        self.has_ended.set()

    def observer(self) -> Observer:
        return Observer(began=self.began, ended=self.ended)


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.close()


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(run_id=1, command="true", env={}, log=tmp_path / "logs" / "1.log")


def run(processes: Processes, task: Task) -> Ended:
    listener = Listener()
    processes.launch(task, listener.observer())
    assert listener.has_ended.wait(30)
    return listener.end


def test_exit_0_is_a_success(processes: Processes, task: Task) -> None:
    assert phase_after(run(processes, task)) == states.SUCCEEDED


def test_another_exit_fails_with_the_last_line_that_was_written(
    processes: Processes, task: Task
) -> None:
    command = "echo first; echo 'no such table' >&2; echo; exit 3"
    end = run(processes, replace(task, command=command))
    assert phase_after(end) == states.FAILED.with_message("no such table")


def test_a_silent_failure_names_its_exit_code(processes: Processes, task: Task) -> None:
    end = run(processes, replace(task, command=(sys.executable, "-c", "raise SystemExit(7)")))
    assert phase_after(end) == states.FAILED.with_message("The command ended with 7.")


def test_a_program_that_is_not_there_fails_and_is_named(processes: Processes, task: Task) -> None:
    end = run(processes, replace(task, command=("/no/such/program",)))
    assert phase_after(end).result_state == "FAILED"
    assert "/no/such/program" in phase_after(end).message


def test_a_folder_that_is_not_there_fails_and_is_named(processes: Processes, task: Task) -> None:
    end = run(processes, replace(task, cwd="/no/such/folder"))
    assert "/no/such/folder" in phase_after(end).message


def test_a_command_that_takes_too_long_times_out(processes: Processes, task: Task) -> None:
    end = run(processes, replace(task, command="sleep 600", timeout_seconds=0.05))
    assert phase_after(end).result_state == "TIMEDOUT"


def test_a_command_sees_its_environment_and_folder(
    processes: Processes, task: Task, tmp_path: Path
) -> None:
    command = "echo $HEARTBEAT_INTENT_ID $PWD"
    settings = {"HEARTBEAT_INTENT_ID": "intent"}
    run(processes, replace(task, command=command, env=settings, cwd=str(tmp_path)))
    assert last_line(task.log) == f"intent {tmp_path}"


def test_a_stopped_command_is_cancelled(processes: Processes, task: Task) -> None:
    listener = Listener()
    processes.launch(replace(task, command="exec sleep 600"), listener.observer())
    assert listener.has_begun.wait(30)
    processes.stop(1)
    assert listener.has_ended.wait(30)
    assert phase_after(listener.end) == states.CANCELED


def test_what_a_command_started_ends_with_it(
    processes: Processes, task: Task, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    run(processes, replace(task, command=f"sleep 600 & echo $! > {note}"))
    assert ends(int(note.read_text()))


def test_closing_leaves_no_process_behind(task: Task, tmp_path: Path) -> None:
    processes, listener, note = Processes(), Listener(), tmp_path / "pid"
    processes.launch(
        replace(task, command=f"trap '' TERM; sleep 600 & echo $! > {note}; wait"),
        listener.observer(),
    )
    child = int(wait_for_text(note))
    processes.close()
    assert listener.has_ended.is_set()
    assert ends(child)

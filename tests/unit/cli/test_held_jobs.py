"""`retry` and `release` as a shell sees them, over Delta tables on the disk and without a JVM."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from harness.errors import ExitCode
from harness.inbox import MessageKind, receive
from harness.lock import ProcessLock
from harness.tables import Ledger, RunStatus
from tests.unit.cli.test_commands import call, is_one_sentence, set_up
from tests.unit.own_schedule.test_commands import write
from tests.unit.show.ledgers import JOB, TEN, control, run

_TEXTS = ("life_cycle_state", "result_state", "state", "termination_code", "message")
_INSTANT = pa.timestamp("us", tz="UTC")


def home_with(folder: Path, status: RunStatus | None) -> Path:
    """A state folder with one job whose last run came to this."""
    set_up(folder, version=1)
    shutil.rmtree(folder / "warehouse" / "heartbeat.db" / "heartbeat_control")
    job = {"trigger_job_id": str(JOB), "trigger_job_name": "daily-revenue"}
    write(folder, "heartbeat_control", job)
    write(folder, Ledger.CONTROLS, asdict(control(1, TEN, "sales.orders")))
    if status is not None:
        types = dict.fromkeys((*_TEXTS, "run_page_url"), pa.string())
        types |= {"run_id": pa.int64(), "started_at": _INSTANT, "ended_at": _INSTANT}
        row = run(1, 3, TEN, status, run_id=71, message="boom", attempt=2)
        write(folder, Ledger.RUNS, asdict(row), **types)
    return folder


@pytest.fixture
def held(tmp_path: Path) -> Path:
    return home_with(tmp_path, RunStatus.FAILED)


def test_release_names_the_attempt_who_asks_for_it_and_why(held: Path) -> None:
    with ProcessLock(held, command="run"):
        answer = call(
            held,
            *("release", "daily-revenue", "--reason", "loaded by hand"),
            environment={"LOGNAME": "ada"},
        )
    assert answer.returncode == ExitCode.DONE, answer.stderr
    assert answer.stdout == (
        f"daily-revenue ({JOB}) goes on with the next tick, without the 1 event of its last run\n"
    )
    (message,) = receive(held / "inbox")
    assert (message.kind, message.job_id) == (MessageKind.RELEASE, JOB)
    assert (message.intent_id, message.attempt) == ("first", 2)
    assert (message.sent_by, message.reason) == ("ada", "loaded by hand")


def test_scripts_are_told_what_is_given_up(held: Path) -> None:
    answer = call(held, "release", "daily-revenue", "--json")
    told = {"job": str(JOB), "job_name": "daily-revenue", "events": 1, "reason": None}
    assert json.loads(answer.stdout) == told


def test_retry_names_the_attempt_that_failed(held: Path) -> None:
    call(held, "retry", "daily-revenue")
    (message,) = receive(held / "inbox")
    assert message.kind is MessageKind.RETRY
    assert (message.intent_id, message.attempt) == ("first", 2)


@pytest.mark.parametrize(
    ("command", "status"),
    [("release", None), ("release", RunStatus.STARTED), ("retry", RunStatus.RELEASED)],
)
def test_a_job_that_is_not_held_is_left_alone_with_one_sentence_and_two(
    tmp_path: Path, command: str, status: RunStatus | None
) -> None:
    home = home_with(tmp_path, status)
    answer = call(home, command, "daily-revenue")
    assert answer.returncode == ExitCode.USAGE
    assert is_one_sentence(answer.stderr)
    assert f"nothing to {command}" in answer.stderr
    assert not (home / "inbox").exists()

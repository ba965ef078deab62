"""`retry`, `release` and `complete` as a shell sees them, over Delta tables on the disk and without a JVM."""

import json
import resource
import shutil
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from harness.errors import ExitCode
from harness.store.inbox import MessageKind, receive
from harness.store.rows import Ledger, RunStatus
from harness.store.writer.lock import ProcessLock
from tests.support.ledgers import JOB, TEN, control, run
from tests.unit.cli.test_commands import TELL_MODULES, call, is_one_sentence, set_up
from tests.unit.cli.test_consume import write

_TEXTS = ("life_cycle_state", "result_state", "state", "termination_code", "message")
_INSTANT = pa.timestamp("us", tz="UTC")


def home_with(folder: Path, status: RunStatus | None) -> Path:
    """A state directory with one job whose last run has this status."""
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


def test_release_names_the_attempt_who_requests_it_and_why(held: Path) -> None:
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


def test_scripts_receive_what_is_given_up(held: Path) -> None:
    answer = call(held, "release", "daily-revenue", "--json")
    reported = {"job": str(JOB), "job_name": "daily-revenue", "events": 1, "reason": None}
    assert json.loads(answer.stdout) == reported


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


def test_complete_names_the_attempt_that_it_saw_and_what_became_of_it(held: Path) -> None:
    with ProcessLock(held, command="tick"):
        answer = call(held, "complete", "--job", str(JOB))
    assert (answer.returncode, answer.stderr) == (ExitCode.DONE, "")
    assert "the next tick lets the job go" in answer.stdout
    (message,) = receive(held / "inbox")
    assert (message.kind, message.job_id) == (MessageKind.COMPLETE, JOB)
    named = (message.intent_id, message.attempt, message.seen_status)
    assert named == ("first", 2, RunStatus.FAILED)


def test_complete_takes_its_ids_from_the_environment_of_a_job(tmp_path: Path) -> None:
    home = home_with(tmp_path, RunStatus.STARTED)
    own = {"HEARTBEAT_JOB_ID": str(JOB), "HEARTBEAT_RUN_ID": "71", "HEARTBEAT_INTENT_ID": "first"}
    answer = call(home, "complete", environment=own)
    assert "it counts once the Jobs API reports the end of the run" in answer.stdout
    (message,) = receive(home / "inbox")
    assert (message.job_id, message.run_id, message.intent_id) == (JOB, 71, "first")
    assert message.attempt is None


@pytest.mark.parametrize("status", [None, RunStatus.SUCCEEDED])
def test_complete_without_a_run_is_refused_where_no_run_goes_on_or_holds_the_job(
    tmp_path: Path, status: RunStatus | None
) -> None:
    home = home_with(tmp_path, status)
    answer = call(home, "complete", "--job", str(JOB))
    assert answer.returncode == ExitCode.USAGE
    assert is_one_sentence(answer.stderr)
    assert "neither running nor held: nothing to complete" in answer.stderr
    assert not (home / "inbox").exists()


def test_a_report_states_what_it_comes_to_for_a_job_that_neither_runs_nor_is_held(
    tmp_path: Path,
) -> None:
    home = home_with(tmp_path, None)
    of_run = ("complete", "--job", str(JOB), "--run", "7")
    by_hand = call(home, *of_run)
    assert by_hand.returncode == ExitCode.DONE
    assert "count as processed if all of them came before the run began" in by_hand.stdout
    late = call(home, *of_run, "--intent", "i")
    assert late.returncode == ExitCode.DONE
    assert "it changes nothing: the job is not held" in late.stdout
    assert {each.job_name for each in receive(home / "inbox")} == {"daily-revenue"}


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (("--job", "999"), "There is no job '999'"),
        (("--job", str(JOB), "--run", str(10**30)), "Invalid value for '--run'"),
    ],
)
def test_complete_refuses_ids_that_cannot_be_meant(
    held: Path, ids: tuple[str, ...], said: str
) -> None:
    answer = call(held, "complete", *ids)
    assert answer.returncode == ExitCode.USAGE
    assert said in answer.stderr
    assert not (held / "inbox").exists()


def test_complete_refuses_a_state_directory_that_is_not_set_up(tmp_path: Path) -> None:
    answer = call(tmp_path, "complete", "--job", str(JOB))
    assert answer.returncode == ExitCode.FAILED
    assert is_one_sentence(answer.stderr)
    assert "python -m harness init" in answer.stderr
    assert not (tmp_path / "inbox").exists()


def test_a_full_disk_is_one_sentence_and_no_half_message_stays(held: Path) -> None:
    limited = (
        f"import resource; resource.setrlimit({resource.RLIMIT_FSIZE}, (0, 0));" + TELL_MODULES
    )
    answer = call(held, "complete", "--job", str(JOB), start=("-c", limited))
    assert answer.returncode == ExitCode.FAILED
    assert "cannot be left in" in answer.stderr
    assert list((held / "inbox").iterdir()) == []

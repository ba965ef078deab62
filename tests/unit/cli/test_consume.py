"""`sense` and `processed` as a shell sees them, over Delta tables on the disk and without a JVM."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness.errors import ExitCode
from harness.store.rows import Ledger
from harness.store.writer.lock import ProcessLock
from tests.support.ledgers import JOB, ORDERS, TEN, control, event, minutes, probe
from tests.unit.cli.test_commands import call, is_one_sentence, set_up

SENSOR = f"sales.orders_{JOB}"
TAGS = pa.map_(pa.string(), pa.string())


def write(home: Path, table: str, row: dict[str, object], **types: pa.DataType) -> None:
    """Write one row; a column that is empty has no type of its own, and is left out."""
    reported = {name: value for name, value in row.items() if value not in (None, ())}
    inferred = pa.Table.from_pylist([reported]).schema
    schema = pa.schema([(each.name, types.get(each.name, each.type)) for each in inferred])
    for name, type_ in types.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, type_))
    content = pa.Table.from_pylist([reported], schema=schema)
    write_deltalake(home / "warehouse" / "heartbeat.db" / table, content, mode="append")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state directory in which the upstream of one pull consumer has one event."""
    set_up(tmp_path, version=1)
    write(tmp_path, Ledger.CONTROLS, asdict(control(1, TEN, "sales.orders")))
    seen = asdict(event(3, minutes(3), ORDERS, "3"))
    texts = {"partition": pa.list_(pa.string()), "prev_snapshot_id": pa.string()}
    pairs = {**seen, "tags": list(seen["tags"].items())}
    write(tmp_path, Ledger.EVENTS, pairs, tags=TAGS, **texts)
    instant = pa.timestamp("us", tz="UTC")
    write(tmp_path, Ledger.PROBES, asdict(probe(3, minutes(3), ORDERS)), failing_since=instant)
    write(tmp_path, "scheduled_jobs", {"job_id": JOB, "note": "four times a day"})
    return tmp_path


def test_sense_prints_the_events_until_they_are_processed_and_then_ends_with_four(
    home: Path,
) -> None:
    first, again = call(home, "sense", SENSOR), call(home, "sense", SENSOR)
    assert first.returncode == again.returncode == ExitCode.DONE, first.stderr
    (payload,) = json.loads(first.stdout)
    assert (payload["event_id"], payload["snapshot_id"]) == ("e3", "3")
    assert payload["tags"] == {"rows_written": "1204"}
    assert again.stdout == first.stdout

    assert call(home, "processed", SENSOR).returncode == ExitCode.DONE
    after = call(home, "sense", SENSOR)
    assert (after.returncode, after.stdout) == (ExitCode.NOTHING_NEW, "")
    assert after.stderr.startswith(f"nothing new at {SENSOR}, as the last tick saw it: ")


def test_both_answer_while_another_process_ticks(home: Path) -> None:
    with ProcessLock(home, command="run"):
        assert call(home, "sense", SENSOR, "--now").returncode == ExitCode.DONE
        assert call(home, "processed", SENSOR).returncode == ExitCode.DONE


def test_sense_answers_while_a_tick_loads_the_edited_seed(home: Path) -> None:
    shutil.rmtree(home / "warehouse" / "heartbeat.db" / "scheduled_jobs")
    refused = call(home, "sense", SENSOR)
    blocker = {"blocker": "on_own_schedule", "reason": "-", "waits_for": "-", "since": None}
    job = {"job_id": str(JOB), "job_name": "daily-revenue", "blockers": [blocker]}
    status = {"tick_id": "3-x", "tick_number": 3, "tick_at": TEN.isoformat(), "jobs": [job]}
    (home / "status.json").write_text(json.dumps(status))
    answered = call(home, "sense", SENSOR)
    assert (refused.returncode, answered.returncode) == (ExitCode.USAGE, ExitCode.DONE)


def test_two_sensors_with_one_id_are_refused_with_two(home: Path) -> None:
    theirs = control(1, TEN, "sales.orders", control_id="sales.orders_7", job_id=7)
    write(home, Ledger.CONTROLS, asdict(theirs))
    answer = call(home, "sense", "sales.orders")
    assert answer.returncode == ExitCode.USAGE
    assert is_one_sentence(answer.stderr)


def test_a_hand_over_that_cannot_be_noted_is_none(home: Path) -> None:
    (home / "inbox").write_text("no folder")
    answer = call(home, "sense", SENSOR)
    assert (answer.returncode, answer.stdout) == (ExitCode.FAILED, "")
    assert is_one_sentence(answer.stderr)

"""What ``register`` and ``emit`` leave in the inbox, and what they refuse."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli.app import app, main
from harness.errors import ConfigurationError, ExitCode, StateError
from harness.record.batch_inbox import receive_batches
from harness.record.registrations import cursor_of
from harness.store.rows import Ledger, ProbeOutcome, ProbeRow
from harness.toolkit.changes import ChangeEvent, TableFormat, register
from tests.support.disk_ledgers import create_ledgers

PROJECT = Path(__file__).parents[4]
EVENT = ChangeEvent(table="sales.orders", table_format=TableFormat.DELTA, snapshot_id="3")
SAID = {"table": "sales.orders", "table_format": "DELTA"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("HEARTBEAT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def _left(home: Path) -> list[ChangeEvent]:
    batches = receive_batches(home / "inbox", at=datetime.now(UTC))
    return [event for batch in batches for event in batch.events]


def _knows(home: Path, table: str, levels: int) -> None:
    """Let a tick have recorded that partitions of a table have so many levels."""
    row = ProbeRow(
        tick_number=1,
        recorded_at=datetime.now(UTC),
        upstream_id=f"registered:{table}",
        outcome=ProbeOutcome.FOUND,
        reason=None,
        failing_since=None,
        position=cursor_of(levels),
        upstream_value=None,
        latest_event_tick=1,
        latest_event_at=None,
        recent_events=(),
    )
    create_ledgers(home / "warehouse").append(Ledger.PROBES, [row])


def test_one_event_is_registered_as_it_is(home: Path) -> None:
    assert register(EVENT) == 1
    assert _left(home) == [EVENT]


def test_a_state_directory_that_is_named_is_the_one(home: Path, tmp_path: Path) -> None:
    register(SAID, home=tmp_path / "other")
    assert (_left(home), len(_left(tmp_path / "other"))) == ([], 1)


def test_many_events_are_one_file(home: Path) -> None:
    assert register({**SAID, "snapshot_id": str(number)} for number in range(1000)) == 1000
    assert len(list((home / "inbox").iterdir())) == 1


def test_a_script_that_registers_loads_neither_spark_nor_the_tables(home: Path) -> None:
    script = (
        "import sys\nfrom harness.toolkit.changes import register\n"
        "register({'table': 'a', 'table_format': 'HIVE'})\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    reported = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert {"pyspark", "deltalake", "dbt", "typer"}.isdisjoint(reported.stdout.split())


def test_nothing_to_register_leaves_no_file(home: Path) -> None:
    assert register([]) == 0
    assert not (home / "inbox").exists()


def test_of_a_batch_with_an_error_nothing_is_registered(home: Path) -> None:
    with pytest.raises(ConfigurationError, match="event 2: unknown field 'partitions'"):
        register([EVENT, {**SAID, "partitions": []}])
    assert _left(home) == []


def test_more_errors_than_a_person_reads_are_counted(home: Path) -> None:
    with pytest.raises(ConfigurationError) as reported:
        register([{"table": "a"}] * 30)
    assert str(reported.value).splitlines()[0] == "30 errors, so nothing is registered:"
    assert str(reported.value).splitlines()[-1] == "and 10 more"


def test_more_events_than_one_go_takes_are_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.toolkit.changes.registration.MOST_EVENTS", 2)
    with pytest.raises(ConfigurationError, match="event 3: there are more than 2 events"):
        register([EVENT] * 3)
    assert _left(home) == []


def test_partitions_have_as_many_levels_as_ticks_have_recorded(home: Path) -> None:
    _knows(home, "sales.orders", 2)
    event = {**SAID, "table": "Sales.Orders", "partition": ["1"]}
    with pytest.raises(ConfigurationError, match="has 2 levels; if its partitioning"):
        register(event)
    assert register(event, repartitioned=True) == 1


def test_a_folder_that_cannot_be_written_is_reported(home: Path) -> None:
    home.parent.mkdir(exist_ok=True)
    home.write_text("a file")
    with pytest.raises(StateError, match="The events cannot be left in"):
        register(EVENT)


def _emitted(*arguments: str, text: str = "") -> str:
    answer = CliRunner().invoke(app, ["emit", *arguments], input=text)
    assert answer.exit_code == ExitCode.DONE, answer.output
    return answer.stdout


def test_emit_prints_in_one_line_how_many_events_it_has_registered(home: Path) -> None:
    output = _emitted(
        "--table", "a.b", "--format", "hive", "--partition", "7", "--partition", '"x"'
    )
    assert output == "1 event registered; the next tick ingests it\n"
    (event,) = _left(home)
    assert (event.table, event.table_format, event.partition) == ("a.b", "HIVE", ("7", '"x"'))


@pytest.mark.parametrize(
    "given",
    [
        ["2026-03-01;7"],
        ['"2026-03-01";7'],
        ['["2026-03-01", 7]'],
        ["2026-03-01", "7"],
        ['"2026-03-01"', "7"],
    ],
)
def test_emit_takes_a_partition_in_every_spelling(home: Path, given: list[str]) -> None:
    options = [part for each in given for part in ("--partition", each)]
    _emitted("--table", "a.b", "--format", "hive", *options)
    (event,) = _left(home)
    assert event.partition == ('"2026-03-01"', "7")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[EU]", "[EU] is not a JSON list with a value for each level"),
        ('["a", [1]]', '[1] in ["a",[1]] is not a value of a level'),
        ("EU;", "level 2 is empty"),
        ('"EU" 7', '"EU" 7 goes on after its closing quote'),
        ('"EU', '"EU begins with a quote and is not a JSON string'),
    ],
)
def test_a_partition_that_cannot_be_meant_is_refused_with_a_sentence(
    home: Path, given: str, said: str
) -> None:
    answer = CliRunner().invoke(
        app, ["emit", "--table", "a", "--format", "hive", "--partition", given]
    )
    assert isinstance(answer.exception, ConfigurationError)
    assert said in str(answer.exception).replace(", [1]]", ",[1]]")


def test_every_option_of_emit_is_a_field(home: Path) -> None:
    snapshot = ["--snapshot-id", "4", "--prev-snapshot-id", "3", "--snapshot-ts", "1772352000000"]
    rest = ["--operation", "append", "--tag", "a=b=c", "--tag", "d=", "--event-id", "mine"]
    assert _emitted("--table", "a", "--format", "DELTA", "--json", *snapshot, *rest) == (
        '{"events": 1}\n'
    )
    (event,) = _left(home)
    assert event == ChangeEvent.from_json(
        {
            "table": "a",
            "table_format": "DELTA",
            "operation_type": "APPEND",
            "snapshot_id": "4",
            "prev_snapshot_id": "3",
            "snapshot_ts": 1772352000000,
            "tags": {"a": "b=c", "d": ""},
            "event_id": "mine",
        }
    )


def test_emit_reads_its_input(home: Path) -> None:
    text = "".join(f"{json.dumps({**SAID, 'snapshot_id': each})}\n\n" for each in "123")
    assert _emitted("--file", "-", text=text).startswith("3 events registered")
    assert [event.snapshot_id for event in _left(home)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--table", "a"], "error: the event: table_format is missing"),
        ([], "error: 2 errors, so nothing is registered:"),
        (["--file", "not there"], "error: --file not there cannot be read (no such file"),
        (
            ["--file", "x", "--table", "a"],
            "error: --file holds complete events: leave out --table",
        ),
        (["--table", "a", "--tag", "b"], "error: --tag b: a tag is KEY=VALUE"),
        (["--table", "a", "--tag", "b=1", "--tag", "b=2"], "error: --tag b has two values"),
    ],
)
def test_a_wrong_call_of_emit_is_one_sentence_and_ends_with_two(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], sentence: str
) -> None:
    assert main(["emit", *arguments]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith(sentence)
    assert _left(home) == []


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"{", "bad.jsonl:2: this is not a JSON object on a line of its own"),
        (b"\xff\xfe", "bad.jsonl:2: this is not UTF-8 text"),
        (b"[" * 100_000, "bad.jsonl:2: this is nested too deeply"),
        (b"7", "bad.jsonl:2: an event is a JSON object with the fields table, partition"),
        (b'{"table": "a\\u0000b", "table_format": "DELTA"}', "has characters that cannot be seen"),
    ],
)
def test_a_line_that_is_no_event_is_reported_with_its_place(
    home: Path, tmp_path: Path, line: bytes, sentence: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_bytes(json.dumps(SAID).encode() + b"\n" + line)
    answer = CliRunner().invoke(app, ["emit", "--file", str(file)])
    assert isinstance(answer.exception, ConfigurationError)
    assert sentence in str(answer.exception)
    assert _left(home) == []

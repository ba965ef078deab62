"""Queries for data-change events, over a ledger on the disk and without a JVM."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from harness.cli.app import main
from harness.errors import ConfigurationError, ExitCode, StateError
from harness.store.local import LocalStore
from harness.store.rows import Ledger
from harness.tick.housekeeping import compact_table
from harness.toolkit import changes
from harness.toolkit.changes.search import Question, find, question_of
from tests.support.disk_ledgers import create_ledgers
from tests.support.event_questions import (
    CASES,
    DAY,
    HOUR,
    INSTANTS,
    MARCH,
    NO_INSTANTS,
    Case,
    row,
    write_rows,
)
from tests.unit.cli.test_commands import is_one_sentence, set_up


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with the events of the queries, which no test changes."""
    folder = tmp_path_factory.mktemp("home")
    create_ledgers(folder / "warehouse")
    write_rows(folder / "warehouse" / "heartbeat.db" / Ledger.EVENTS)
    set_up(folder, version=1)
    return folder


@pytest.fixture(scope="module")
def store(home: Path) -> LocalStore:
    return LocalStore(home / "warehouse", "heartbeat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    code: int
    stdout: str
    stderr: str


QuerySession = Callable[..., Answer]


@pytest.fixture
def ask_on_the_command_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> QuerySession:
    monkeypatch.setenv("HEARTBEAT_HOME", str(home))

    def find(*arguments: str) -> Answer:
        code = main(["events", *arguments])
        output = capsys.readouterr()
        return Answer(code=code, stdout=output.out, stderr=output.err)

    return find


def asked(wanted: Mapping[str, object]) -> Question:
    rest = {key: value for key, value in wanted.items() if key != "table"}
    return question_of(wanted.get("table"), rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=[case.sentence for case in CASES])
def test_question(case: Case, store: LocalStore) -> None:
    found = [event.event_id for event in find(store, asked(case.asked))]
    assert found == [each for each in found if each in case.answer]
    assert sorted(map(str, found)) == sorted(case.answer)


def test_events_come_in_the_order_of_their_registration(store: LocalStore) -> None:
    found = find(store, asked({}))
    assert [event.event_ts for event in found] == sorted(event.event_ts or 0 for event in found)


def test_an_event_that_two_upstreams_have_reported_has_the_tags_of_its_newest_row(
    store: LocalStore,
) -> None:
    (event,) = find(store, asked({"start": MARCH + 48 * HOUR, "end": MARCH + 49 * HOUR}))
    assert (event.event_id, event.tags) == ("told twice", {"files": "1", "complete": "daily"})


@pytest.mark.parametrize(("said", "milliseconds"), INSTANTS)
def test_an_instant_may_be_written_in_several_ways(
    said: datetime | str | int, milliseconds: int
) -> None:
    assert asked({"start": said}).start == milliseconds


@pytest.mark.parametrize(
    "said", [*NO_INSTANTS, datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None), 10**18, True, 1.5]
)
def test_what_is_no_instant_is_reported_in_one_sentence(said: object) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^The start '.*' is not an instant; write "
    ) as reported:
        asked({"start": said})
    assert "\n" not in str(reported.value)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"start": "2026-03-02", "end": "2026-03-01"}, "The range begins at 2026-03-02T00:00:00Z, after"),
        ({"start": "2026-02-30"}, "The start '2026-02-30' is not an instant: day is out of range for month"),
        ({"operation": "MERGE"}, "There is no operation 'MERGE'; allowed are APPEND, DELETE, UPDATE"),
        ({"by": "arrival"}, "Events cannot be selected by 'arrival'; allowed are registration and snapshot"),
        ({"strat": 0}, "Events cannot be selected by 'strat='; allowed beside the table are by, end,"),
        ({"table": " "}, "The table has no name"),
        ({"table": "``"}, "The table has no name"),
        ({"partition": []}, "The partition [] is not a list"),
        ({"partition": {"day": 1}}, "The partition {'day': 1} is not a list"),
        ({"tags": {"rows": 7}}, "The tag 'rows' with the value 7 is not text"),
    ],
)  # fmt: skip
def test_a_wrong_query_is_reported_in_one_sentence(wanted: Mapping[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError) as reported:
        asked(wanted)
    assert str(reported.value).startswith(said)


@pytest.mark.parametrize(
    ("column", "by"), [("event_ts", "registration"), ("snapshot_ts", "snapshot")]
)
def test_a_day_is_read_from_the_files_of_that_day_alone(
    tmp_path: Path, column: str, by: str
) -> None:
    store = create_ledgers(tmp_path)
    ledger = tmp_path / "heartbeat.db" / Ledger.EVENTS
    write_rows(ledger)
    # In the time of snapshots, what one clock has a day before or after may be of the day, too.
    before, after = (0, 0) if by == "registration" else (DAY, DAY)
    actions = pa.table(DeltaTable(ledger).get_add_actions(flatten=True)).to_pylist()
    for each in actions:
        if not MARCH + DAY - before <= (each[f"min.{column}"] or 0) < MARCH + 2 * DAY + after:
            (ledger / each["path"]).unlink()

    wanted = {"start": MARCH + DAY, "end": MARCH + 2 * DAY, "by": by}

    assert "quoted" in [event.event_id for event in find(store, asked(wanted))]
    with pytest.raises(StateError):
        find(store, asked({**wanted, "start": MARCH}))


def test_compacting_keeps_the_days_of_the_ledger_apart(tmp_path: Path) -> None:
    create_ledgers(tmp_path)
    ledger = tmp_path / "heartbeat.db" / Ledger.EVENTS
    schema = pa.schema(DeltaTable(ledger).schema().to_arrow())
    # Of very different sizes, so that an order by size would be another one.
    for hour in range(24):
        reported = [row(f"{hour} {n}", hour, hour) for n in range((1, 700, 40)[hour % 3])]
        plain = [{**each, "tags": []} for each in reported]
        write_deltalake(ledger, pa.Table.from_pylist(plain, schema=schema), mode="append")
        if hour % 8 == 7:
            assert compact_table(ledger, keep_hours=24).failure is None
    DeltaTable(ledger).optimize.compact(target_size=20_000)

    actions = pa.table(DeltaTable(ledger).get_add_actions(flatten=True)).to_pylist()
    spans = sorted((each["min.event_ts"], each["max.event_ts"]) for each in actions)
    assert len(spans) < 24
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_python_code_queries_by_one_function(home: Path) -> None:
    found = changes.events("lake.flights", tags={"complete": "hourly"}, end="2026-03-02", home=home)
    assert [event.event_id for event in found] == ["first"]
    assert found[0].partition == ('"2026-02-28"', '"5"')


def test_a_folder_that_is_not_set_up_is_reported_to_python_code(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="is not set up yet"):
        changes.events(home=tmp_path)


def test_a_script_gets_the_events_as_a_json_list(ask_on_the_command_line: QuerySession) -> None:
    answer = ask_on_the_command_line(
        "--table", "lake.flights", "--partition", "2026-02-28", "--partition", "5",
        "--tag", "complete=hourly", "--operation", "append", "--from", "2026-03-01", "--to", "2026-03-02", "--json",
    )  # fmt: skip
    assert (answer.code, answer.stderr) == (ExitCode.DONE, "")
    (event,) = json.loads(answer.stdout)
    assert list(event) == [
        "event_id", "event_ts", "table", "partition", "snapshot_id", "snapshot_ts",
        "prev_snapshot_id", "table_format", "operation_type", "tags",
    ]  # fmt: skip
    assert (event["event_id"], event["event_ts"]) == ("first", MARCH)


@pytest.mark.parametrize(
    "given", ["2026-02-28;5", '["2026-02-28", 5]', '"2026-02-28";"5"', r'["\"2026-02-28\"", "5"]']
)
def test_events_are_requested_by_a_partition_in_every_spelling(
    ask_on_the_command_line: QuerySession, given: str
) -> None:
    answer = ask_on_the_command_line(
        "--table", "lake.flights", "--partition", given, "--to", "2026-03-02", "--json"
    )
    assert [event["event_id"] for event in json.loads(answer.stdout)] == ["first"]


def test_a_person_gets_a_table_of_the_events(ask_on_the_command_line: QuerySession) -> None:
    answer = ask_on_the_command_line("--from", "2026-03-01", "--to", "2026-03-02", "--verbose")
    head, first, several, total = answer.stdout.splitlines()
    assert head.split() == [
        "registered",
        "table",
        "change",
        "partition",
        "snapshot",
        "made",
        "tags",
    ]
    assert first.strip().startswith("2026-03-01 00:00:00Z") and "2026-02-28 / 5" in first
    assert "several" in several
    assert total == "2 events"


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_no_event_ends_with_four(
    ask_on_the_command_line: QuerySession, form: tuple[str, ...]
) -> None:
    answer = ask_on_the_command_line("--table", "lake.nothing", *form)
    assert answer.code == ExitCode.NOTHING_NEW
    assert answer.stdout == ("[]\n" if form else "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--from", "2026-03-02", "--to", "2026-03-01"),
        ("--from", "soon"),
        ("--from", "-2 fortnights"),
        ("--operation", "MERGE"),
        ("--by", "arrival"),
        ("--tag", "complete"),
        ("--tag", "complete=daily", "--tag", "complete=hourly"),
    ],
)
def test_a_wrong_option_ends_with_two_and_one_sentence(
    ask_on_the_command_line: QuerySession, arguments: tuple[str, ...]
) -> None:
    answer = ask_on_the_command_line(*arguments)
    assert (answer.code, answer.stdout) == (ExitCode.USAGE, "")
    assert is_one_sentence(answer.stderr)


def test_a_range_may_begin_so_long_ago() -> None:
    from harness.cli.views.events import instant_from

    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert instant_from("-2h30m", noon) == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert instant_from("-5", noon) == "-5"


def shown(language: str) -> list[str]:
    """Return what the page on events shows of querying, in one language."""
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "register_events.md").read_text()
    section = page.partition("\n## Query events\n")[2].partition("\n### ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def test_the_page_shows_commands_that_answer(ask_on_the_command_line: QuerySession) -> None:
    day, first = shown("sh")
    lines = ask_on_the_command_line(*shlex.split(day)[4:]).stdout.splitlines()
    assert lines[-1] == "2 events"
    (event,) = json.loads(ask_on_the_command_line(*shlex.split(first)[4:]).stdout)
    assert event["event_id"] == "first"


def test_the_page_shows_code_that_answers(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEARTBEAT_HOME", str(home))
    (code,) = shown("python")
    exec(code, {})
    assert capsys.readouterr().out.startswith("several 2 {'partitions':")

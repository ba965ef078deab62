"""The triggers are checked before they are loaded: one sentence for each error, with its line."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.controls.accept import Desk
from harness.controls.findings import Code
from harness.controls.load import CONTROLS, check_controls, every_job_name
from harness.controls.triggers.check import trigger_problems
from harness.controls.triggers.parse import COLUMNS, parse_triggers, read_triggers
from harness.controls.triggers.partitions import LETTERS, partition_problems
from harness.errors import ControlsError
from tests.support.controls_text import HEADER, line
from tests.support.copied import copy_project
from tests.support.memory_store import MemoryStore
from tests.support.triggers_text import row, text

FILE = "seeds/event_triggers.csv"


def told(*rows: str, names: Mapping[int, str] | None = None) -> list[str]:
    """Return the problems of a file with these lines, without the name of the file."""
    return told_of(text(*rows), names)


def told_of(content: str, names: Mapping[int, str] | None = None) -> list[str]:
    problems = trigger_problems(parse_triggers(content), names or {})
    return [f"line {line}: {message}" for line, message in problems]


def snapshot(**cells: str) -> str:
    return row(**{"trigger_type": "SNAPSHOT", "partition": "", **cells})


def test_a_file_with_its_header_alone_is_right() -> None:
    assert told() == []


@pytest.mark.parametrize(
    "cells",
    [
        {"trigger_type": " partition "},
        {"trigger_id": "Sales.daily_2-b", "job_id": str(2**63 - 1)},
        {"partition": "EU;{yyyy-MM-dd};{-1 HOUR HH};{+2 months 'MMMM yyyy' Europe/Berlin}"},
        {"partition": "{ 'yyyy-MM-dd HH:mm' }"},
        {"partition": "{'yyyy-MM-dd HH' America/Los_Angeles}"},
        {"tags": "complete=daily; quality = 99%=ok"},
        {"start_timestamp": "2026-03-01", "time_zone": "America/Los_Angeles"},
        {"start_timestamp": "2026-03-01 06:00:00.5Z"},
        {"start_timestamp": "2026-03-01T06:00:00+05:30"},
        {"frequency": "90", "frequency_unit": "minutes"},
        {"expires_after": "6 hours", "missed_slots": "all", "dependency_flag": "false"},
        {"expires_after": "1 Day", "missed_slots": "NONE", "trigger_state": "paused"},
        {"table": "/data/lake/orders"},
    ],
)
def test_what_is_allowed_is_not_reported(cells: dict[str, str]) -> None:
    assert told(row(**cells)) == []


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            {"trigger_id": "daily sales"},
            "trigger_id: 'daily sales' is not an id; allowed are letters, digits, _, . and -",
        ),
        (
            {"trigger_type": "PARTITON"},
            "trigger_type: 'PARTITON' is not allowed; allowed are PARTITION or SNAPSHOT; did you"
            " mean PARTITION?",
        ),
        (
            {"job_id": "0"},
            "job_id: '0' is not a job id; allowed is an integer from 1 to 9223372036854775807",
        ),
        ({"job_name": ""}, "job_name: it is empty; name the job as people know it"),
        ({"table": ""}, "table: it is empty; name the table as its events have it"),
        (
            {"partition": ""},
            "partition: it is empty; a PARTITION trigger needs the value of each level, with ;"
            " between, such as EU;{yyyy-MM-dd}",
        ),
        (
            {"partition": "EU;"},
            'partition: level 2 is empty; allowed are a JSON list such as ["EU", 7], or the levels'
            " with ; between, such as EU;7",
        ),
        (
            {"partition": "{-1 fortnight yyyy-MM-dd}"},
            "partition: 'fortnight' is not a unit; allowed are minutes, hours, days, weeks or months",
        ),
        (
            {"partition": "{yesterday day yyyy-MM-dd}"},
            "partition: 'yesterday' is not an offset; allowed is an integer such as -1 before day",
        ),
        (
            {"partition": "{00:00}"},
            "partition: the pattern '00:00' never changes; it needs a letter of the date or the"
            " time (y, M, d, D, H, m and s), or write it without braces",
        ),
        (
            {"partition": "{YYYY-MM-dd}"},
            "partition: 'YYYY' in the pattern 'YYYY-MM-dd': allowed are y (up to 4), M (up to 4),"
            " d (up to 2), D (up to 3), H (up to 2), m (up to 2) and s (up to 2)",
        ),
        (
            {"partition": "{yyyy-MM-dd Europe/Berlim}"},
            "partition: 'Europe/Berlim' is not a time zone; allowed are names such as Europe/Berlin"
            " or UTC; did you mean Europe/Berlin?",
        ),
        (
            {"partition": "day={yyyy-MM-dd}"},
            "partition: 'day={yyyy-MM-dd}' is neither a value nor a function of the slot; functions"
            " are {yyyy-MM-dd} and {-1 hour 'yyyy-MM-dd HH' America/Los_Angeles}, with a pattern"
            " that has spaces in it between quotes",
        ),
        (
            {"tags": "complete"},
            "tags: 'complete' is not a tag; allowed is key=value, more of them with ; between",
        ),
        ({"tags": "a=1;a=2"}, "tags: the tag 'a' stands there twice; once is allowed"),
        (
            {"start_timestamp": "1 March 2026"},
            "start_timestamp: '1 March 2026' is not an instant; allowed are 2026-03-01,"
            " 2026-03-01T06:00 (in the time zone of the trigger), 2026-03-01T06:00:00Z and"
            " 2026-03-01T06:00:00+01:00",
        ),
        (
            {"frequency": "0"},
            "frequency: '0' is not a frequency; allowed is an integer from 1 to 100000",
        ),
        (
            {"frequency_unit": "YEARS"},
            "frequency_unit: 'YEARS' is not a unit; allowed are minutes, hours, days, weeks or months",
        ),
        (
            {"time_zone": "+02:00"},
            "time_zone: '+02:00' is not a time zone; allowed are names such as Europe/Berlin or UTC",
        ),
        (
            {"expires_after": "soon"},
            "expires_after: 'soon' is not a length of time; allowed is an integer and a unit, such"
            " as 6 hours, with minutes, hours, days, weeks or months, or an empty cell: never",
        ),
        (
            {"missed_slots": "FIRST"},
            "missed_slots: 'FIRST' is not allowed; allowed are ALL, LATEST or NONE",
        ),
        (
            {"dependency_flag": "maybe"},
            "dependency_flag: 'maybe' is not allowed; allowed are TRUE or FALSE",
        ),
        (
            {"trigger_state": "STOPPED"},
            "trigger_state: 'STOPPED' is not allowed; allowed are PAUSED or UNPAUSED",
        ),
        (
            {"job_name": "re\u200bports"},
            "job_name: 're\\u200bports' has a character that cannot be seen; allowed are visible"
            " ones",
        ),
    ],
)
def test_a_cell_that_is_wrong_is_reported_with_what_is_allowed(
    cells: dict[str, str], said: str
) -> None:
    other = {"trigger_id": "other", "table": "sales.returns", "job_id": "8", **cells}
    assert told(row(), row(**other)) == [f"line 3: {said}"]


@pytest.mark.parametrize("frequency", ["-1", "1.5", "", "100001", "1e3", "٣"])
def test_a_frequency_that_is_no_whole_number_from_one_on_is_reported(frequency: str) -> None:
    (output,) = told(row(frequency=frequency))
    assert output.startswith(f"line 2: frequency: '{frequency}' is not a frequency")


@pytest.mark.parametrize("start", ["2026-02-30", "2026-03-01T25:00", "2026-W01-1", "", "20260301"])
def test_a_start_that_is_no_instant_is_reported(start: str) -> None:
    (output,) = told(row(start_timestamp=start))
    assert output.startswith(f"line 2: start_timestamp: '{start}' is not an instant")


@pytest.mark.parametrize("expiry", ["0 hours", "-1 hours", "6", "6h", "1.5 hours", "6 years"])
def test_an_expiry_that_is_no_length_of_time_is_reported(expiry: str) -> None:
    (output,) = told(row(expires_after=expiry))
    assert output.startswith(f"line 2: expires_after: '{expiry}' is not a length of time")


def test_a_snapshot_trigger_has_neither_a_partition_nor_an_expiry() -> None:
    assert told(snapshot()) == []
    assert told(snapshot(partition="EU", expires_after="1 day")) == [
        "line 2: partition: a SNAPSHOT trigger takes changes of any partition; leave the cell empty",
        "line 2: expires_after: a SNAPSHOT trigger waits for nothing, so nothing expires; leave the"
        " cell empty",
    ]


def test_the_rows_of_a_trigger_agree_in_everything_but_table_partition_and_tags() -> None:
    first = row(missed_slots="LATEST")
    other = row(table="sales.returns", partition="{yyyy}", tags="a=b")
    assert told(first, other) == []
    assert told(first, row(table="sales.returns", frequency="2", missed_slots="none")) == [
        "line 3: frequency: '2' here and '1' on line 2; the rows of one trigger may differ in"
        " table, partition and tags",
        "line 3: missed_slots: 'none' here and 'LATEST' on line 2; the rows of one trigger may"
        " differ in table, partition and tags",
    ]


def test_a_row_that_states_the_same_again_is_reported_however_it_is_spelled() -> None:
    again = row(table="spark_catalog.`Sales`.orders", tags="b=2; a=1")
    assert told(row(tags="a=1;b=2"), again, row(tags="a=1")) == [
        "line 3: it repeats line 2; a table, a partition and tags once is allowed"
    ]


def test_the_partitions_of_one_table_have_the_same_number_of_levels() -> None:
    assert told(row(), row(trigger_id="eu", table="SALES.orders", partition="EU;{yyyy}")) == [
        "line 3: partition: 'SALES.orders' has 2 levels here and 1 on line 2; a partition has a"
        " value for each level of its table"
    ]


def test_a_job_has_one_name_in_the_controls_and_in_the_triggers() -> None:
    assert told(row(), names={7: "reports", 8: "other"}) == []
    assert told(row(), names={7: "daily reports"}) == [
        "line 2: job_name: job 7 is 'reports' here and 'daily reports' in the controls; give it"
        " one name"
    ]
    assert told(row(), row(trigger_id="other", job_name="loads")) == [
        "line 3: job_name: job 7 is 'loads' here and 'reports' on line 2; give it one name"
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", f"line 1: the header has to be {','.join(COLUMNS)}"),
        ("trigger_id,table\n", f"line 1: the header has to be {','.join(COLUMNS)}"),
        (
            text("daily,PARTITION"),
            f"line 2: 2 cells; there have to be 15: {','.join(COLUMNS)}",
        ),
        (
            text("", row(), 'daily,"PART'),
            "line 4: it cannot be read as CSV (unexpected end of data); check its quotes",
        ),
    ],
)
def test_a_file_that_has_another_shape_is_reported(content: str, said: str) -> None:
    assert told_of(content) == [said]


def test_a_cell_with_a_line_break_counts_its_lines() -> None:
    (output, other) = told(
        row(job_name='"re\nports"'), row(trigger_id="b", job_id="8", frequency="0")
    )
    assert output.startswith("line 2: job_name: 're\\nports' has a character")
    assert other.startswith("line 4: frequency")


def test_errors_stop_what_checks_the_controls_and_name_every_line(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_project(project)
    desk = Desk(project, tmp_path / "accepted", MemoryStore())
    before = desk.checksum()
    (project / FILE).write_text(text(row(frequency="0"), row(trigger_id="b", tags="x")))

    assert desk.checksum() != before
    with pytest.raises(ControlsError) as refused:
        check_controls(project, None)
    assert [each.split(":")[0] for each in str(refused.value).splitlines()[1:]] == [
        f"{FILE}, line 2",
        f"{FILE}, line 3",
    ]


def test_a_job_that_only_a_trigger_names_has_a_name(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_project(project)
    (project / CONTROLS).write_text(f"{HEADER}\n{line()}\n")
    (project / FILE).write_text(text(row()))

    assert every_job_name(project) == {111: "revenue", 7: "reports"}
    assert [each.trigger_id for each in check_controls(project, None).triggers.rows] == ["daily"]


def test_controls_may_have_no_rows_where_there_is_a_trigger(tmp_path: Path) -> None:
    project = tmp_path / "project"
    copy_project(project)
    assert [each.code for each in check_controls(project, None).findings] == [Code.NO_ROWS]
    (project / FILE).write_text(text(row()))
    assert check_controls(project, None).findings == ()


def test_a_project_without_the_file_has_no_triggers(tmp_path: Path) -> None:
    assert read_triggers(tmp_path).rows == ()
    (tmp_path / "seeds").mkdir()
    (tmp_path / FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(ControlsError, match=r"event_triggers\.csv cannot be read"):
        read_triggers(tmp_path)


PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "triggers.md").read_text()


def test_the_triggers_that_the_documentation_shows_are_right() -> None:
    (shown,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    file = parse_triggers(shown)
    assert {each.kind for each in file.rows} == {"PARTITION", "SNAPSHOT"}
    assert trigger_problems(file, {101: "load_sales"}) == []


def test_the_levels_that_the_documentation_shows_are_right() -> None:
    levels = re.findall(r"^\| `([^`]+)` \| ", PAGE, re.MULTILINE)
    assert "{-1 hour 'yyyy-MM-dd HH' UTC}" in levels
    assert [list(partition_problems(each)) for each in levels] == [[]] * len(levels)


def test_the_documentation_names_every_letter_of_a_pattern() -> None:
    (sentence,) = re.findall(r"Letters of a\s+pattern:(.*?);", PAGE, re.DOTALL)
    assert re.findall(r"`(\w)`", sentence) == list(LETTERS)

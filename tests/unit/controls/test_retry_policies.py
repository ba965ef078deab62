"""The retry policies are checked before they are loaded: one sentence for each mistake."""

from pathlib import Path

import pytest

from harness.controls.header import COLUMNS as CONTROL_COLUMNS
from harness.controls.load import CONTROLS, check_controls
from harness.controls.optional_seeds import OPTIONAL_SEEDS, examine_seeds
from harness.controls.retry_policies import (
    COLUMNS,
    OUTCOMES,
    RETRY_POLICIES,
)
from harness.errors import ControlsError

HEADER = ",".join(COLUMNS)


def told(project: Path, *lines: str, header: str = HEADER) -> list[str]:
    """Return the problems of a file with these lines, without the name of the file."""
    (project / "seeds").mkdir(exist_ok=True)
    (project / RETRY_POLICIES).write_text("\n".join([header, *lines]) + "\n")
    _, problems = examine_seeds(project, {})
    return [str(each).removeprefix(f"{RETRY_POLICIES}, ") for each in problems]


@pytest.mark.parametrize(
    "line",
    [
        "111111111,4,15,,,",
        "*,3,0.5,1.5,60,",
        " 1 , 1 , 0 , 1 , 0 , ",
        "9223372036854775807,100,525600,10,525600,FAILED TIMED_OUT SKIPPED CANCELED",
        "1,2,5,,,failed  canceled",
        ",,,,,",
    ],
)
def test_a_right_line_has_nothing_reported_about_it(tmp_path: Path, line: str) -> None:
    assert told(tmp_path, line) == []


def test_without_the_file_there_are_no_policies_and_no_mistakes(tmp_path: Path) -> None:
    assert examine_seeds(tmp_path, {})[1] == []


@pytest.mark.parametrize(
    ("line", "column", "said"),
    [
        ("nightly,4,15,,,", "job_id", "'nightly' is not a job id"),
        ("0,4,15,,,", "job_id", "'0' is not a job id"),
        ("9223372036854775808,4,15,,,", "job_id", "'9223372036854775808' is not a job id"),
        (",4,15,,,", "job_id", "'' is not a job id"),
        ("1,,15,,,", "max_attempts", "'' is not a number of attempts"),
        ("1,0,15,,,", "max_attempts", "'0' is not a number of attempts"),
        ("1,101,15,,,", "max_attempts", "'101' is not a number of attempts"),
        ("1,2.5,15,,,", "max_attempts", "'2.5' is not a number of attempts"),
        ("1,4,,,,", "backoff_minutes", "'' is not allowed; allowed is a number from 0 to 525600"),
        ("1,4,-1,,,", "backoff_minutes", "'-1' is not allowed"),
        ("1,4,soon,,,", "backoff_minutes", "'soon' is not allowed"),
        (
            "1,4,15,0.5,,",
            "backoff_factor",
            "'0.5' is not allowed; allowed is a number from 1 to 10",
        ),
        ("1,4,15,11,,", "backoff_factor", "'11' is not allowed"),
        ("1,4,15,nan,,", "backoff_factor", "'nan' is not allowed"),
        ("1,4,15,,525601,", "max_backoff_minutes", "'525601' is not allowed"),
        ("1,4,15,,10,", "max_backoff_minutes", "'10' is less than backoff_minutes"),
        ("1,4,15,,,FAILED REFUSED", "retry_on", "'REFUSED' is not allowed; allowed are FAILED,"),
        ("1,4,15,,,FAILED LOST", "retry_on", "'LOST' is not allowed"),
        ("1,4,15,,,PARKED", "retry_on", "'PARKED' is not allowed"),
    ],
)
def test_a_wrong_cell_is_reported_by_its_line_and_column_and_with_what_is_allowed(
    tmp_path: Path, line: str, column: str, said: str
) -> None:
    (sentence,) = told(tmp_path, "5,4,15,,,", line)
    assert sentence.startswith(f"line 3: {column}: {said}")
    assert "allowed" in sentence


def test_a_misspelled_outcome_is_reported_with_what_it_resembles(tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, "1,4,15,,,TIMEDOUT")
    assert "TIMED_OUT" in sentence.split("with spaces between")[1]


def test_every_mistake_of_a_file_is_reported_at_once(tmp_path: Path) -> None:
    sentences = told(tmp_path, "x,0,y,,,", "1,4", "1,4,15,,,", "", "1,3,15,,,")
    assert [each.split(":")[0] for each in sentences] == [*["line 2"] * 3, "line 3", "line 6"]
    assert sentences[-1] == "line 6: job_id: it repeats line 4; one row for each job is allowed"


def test_another_header_is_reported_and_nothing_else(tmp_path: Path) -> None:
    assert told(tmp_path, "x", header="job_id,max_attempts") == [
        f"line 1: the header has to be {HEADER}"
    ]


def test_an_open_quote_is_reported_where_its_line_begins(tmp_path: Path) -> None:
    (sentence,) = told(tmp_path, "1,4,15,,,", '2,4,15,,,"FAILED')
    assert sentence.startswith("line 3: it cannot be read as CSV")


def test_a_mistake_stops_the_feeding_as_one_in_any_seed_does(tmp_path: Path) -> None:
    told(tmp_path, "1,many,15,,,")
    (tmp_path / CONTROLS).write_text(",".join(CONTROL_COLUMNS))
    with pytest.raises(ControlsError, match="max_attempts: 'many' is not a number of attempts"):
        check_controls(tmp_path, None)


def test_an_edit_of_the_policies_is_an_edit_of_the_controls() -> None:
    assert RETRY_POLICIES in OPTIONAL_SEEDS


def manual() -> str:
    return (Path(__file__).parents[3] / "docs" / "how-to" / "retry_policies.md").read_text()


def test_the_example_of_the_manual_is_right(tmp_path: Path) -> None:
    header, *lines = manual().partition("```csv\n")[2].partition("```")[0].splitlines()
    assert len(lines) == 3
    assert told(tmp_path, *lines, header=header) == []


def test_the_manual_describes_every_column_and_names_every_outcome() -> None:
    rows = [line.split("|") for line in manual().splitlines() if line.startswith("| `")]
    assert tuple(row[1].strip(" `") for row in rows) == COLUMNS
    assert all(outcome in rows[-1][2] for outcome in OUTCOMES)

"""The seeds beside the controls are checked before they are loaded."""

from pathlib import Path

import pytest

from harness.controls import imported_sensors
from harness.controls.imported_sensors import IMPORTED_SENSORS
from harness.controls.optional_seeds import SCHEDULED_JOBS, SENSOR_ASSETS, examine_seeds

PROJECT = Path(__file__).parents[3]
JOBS, ASSETS = SCHEDULED_JOBS.name, SENSOR_ASSETS.name
IMPORTED, HEADER = IMPORTED_SENSORS.name, ",".join(imported_sensors.COLUMNS) + "\n"


def told(project: Path) -> list[str]:
    _, problems = examine_seeds(project, {})
    return [str(each) for each in problems]


def told_of(project: Path, name: str, text: str) -> list[str]:
    (project / "seeds").mkdir()
    (project / "seeds" / name).write_text(text)
    return told(project)


def test_the_seeds_of_the_project_are_right() -> None:
    assert told(PROJECT) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (JOBS, "job_id,note\n111111111,four times a day\n222222222,\n"),
        (ASSETS, "sensor_id,asset\na_1,sales.orders\na_1,sales.returns\n"),
        (IMPORTED, f"{HEADER}a_1,,COMPLETED,2026-03-01T06:00:00Z,,,\na_2,,,,,,\n"),
    ],
)
def test_rows_that_differ_are_fine(tmp_path: Path, name: str, text: str) -> None:
    assert told_of(tmp_path, name, text) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (JOBS, "job,note\n1,\n", "line 1: the header has to be job_id,note"),
        (JOBS, "", "line 1: the header has to be job_id,note"),
        (JOBS, "job_id,note\nnightly,\n", "line 2: job_id 'nightly' has to be the id of a job"),
        (JOBS, "job_id,note\n0,\n", "line 2: job_id '0' has to be the id of a job"),
        (JOBS, "job_id,note\n1\n", "line 2: 1 cells; there have to be 2: job_id,note"),
        (JOBS, "job_id,note\n1,a\n\n 1,b\n", "line 4: it repeats line 2; once is allowed"),
        (ASSETS, "sensor_id,asset\na_1,\n", "line 2: asset is empty; both columns are needed"),
        (ASSETS, "sensor_id,asset\na,b\na,b\n", "line 3: it repeats line 2; once is allowed"),
        (
            IMPORTED,
            f"{HEADER}a_1,,DONE,,,,\n",
            "line 2: status 'DONE' is not allowed; write NEW_EVENT_AVAILABLE, IN_PROGRESS,"
            " COMPLETED, FAILED, or nothing",
        ),
        (
            IMPORTED,
            f"{HEADER}a_1,,COMPLETED,yesterday,,,\n",
            "line 2: latest_event_fetched_timestamp 'yesterday' is not an instant; write"
            " 2026-03-01T06:00:00Z, or nothing",
        ),
        (
            IMPORTED,
            f"{HEADER}a_1,a-1,,,,,\na_2,a-1,,,,,\n",
            "line 3: it repeats line 2; once is allowed",
        ),
    ],
)
def test_a_bad_row_is_reported_with_its_file_and_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    assert told_of(tmp_path, name, text) == [f"seeds/{name}, {said}"]

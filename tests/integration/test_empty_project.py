"""The checkout as it is shipped, whose controls are a header alone: it builds, ticks and answers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.controls.findings import WITHOUT_ROWS
from harness.controls.header import COLUMNS
from tests.support.copied import PROJECT, copy_project
from tests.support.services.connect import Endpoint

Answers = dict[str, subprocess.CompletedProcess[str]]
#: In this order, in a fresh state directory.
STEPS = (
    ("init",),
    ("tick",),
    ("status",),
    ("jobs",),
    ("events",),
    ("explain", "daily-revenue"),
    ("doctor", "--json"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def variables(spark: SparkSession, spark_endpoint: Endpoint, folder: Path) -> dict[str, str]:
    return spark_endpoint.variables(spark, folder / "home")


@pytest.fixture(scope="module")
def answers(variables: dict[str, str], folder: Path) -> Answers:
    copy_project(folder / "project")
    shutil.copy(PROJECT / "heartbeat.yml", folder / "project")
    own = {name: each for name, each in os.environ.items() if not name.startswith("HEARTBEAT")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "harness", *arguments],
            cwd=folder / "project",
            env=own | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    return {step[0]: run(*step) for step in STEPS}


@pytest.mark.parametrize("command", ["init", "tick", "status"])
def test_a_command_ends_well_and_says_once_what_to_do_first(answers: Answers, command: str) -> None:
    answer = answers[command]
    assert answer.returncode == 0, answer.stderr
    assert " ".join(answer.stdout.split()).count(WITHOUT_ROWS) == 1
    assert "harness tick" not in answer.stdout


@pytest.mark.parametrize(
    ("command", "code", "printed"),
    [
        ("jobs", 0, "0 jobs\n"),
        ("events", 4, "no recorded event matches\n"),
        (
            "explain",
            2,
            "error: There is no job 'daily-revenue'; none is recorded yet: add a row for it to "
            "seeds/heartbeat_controls.csv, and run a tick\n",
        ),
    ],
)
def test_what_looks_for_a_job_or_an_event_ends_with_one_line(
    answers: Answers, command: str, code: int, printed: str
) -> None:
    answer = answers[command]
    assert (answer.returncode, answer.stdout + answer.stderr) == (code, printed)


def test_doctor_names_the_remedy_and_nothing_is_broken(answers: Answers) -> None:
    assert answers["doctor"].returncode == 0
    findings = {each["about"]: each for each in json.loads(answers["doctor"].stdout)["findings"]}
    assert findings["controls"]["what"] == WITHOUT_ROWS.rstrip(".")


def test_the_seed_without_rows_has_its_columns_as_text(
    answers: Answers, spark: SparkSession, variables: dict[str, str]
) -> None:
    table = spark.table(f"{variables['HEARTBEAT_SCHEMA']}.heartbeat_controls")
    assert [(each.name, each.dataType.simpleString()) for each in table.schema] == [
        (column, "string") for column in COLUMNS
    ]

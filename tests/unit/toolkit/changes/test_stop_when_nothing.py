"""A job that has nothing to do ends with 4, before Spark is started."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ConfigurationError
from harness.toolkit.changes import ChangeEvent, stop_when_nothing
from harness.toolkit.changes.rows import of_table
from tests.support.change_events import step

PROJECT = Path(__file__).parents[4]
#: Ends with 4 unless the job would have gone on to Spark.
JOB = """
import sys
from examples.incremental.count_rows import main
sys.modules["pyspark"] = None
main(sys.argv[1:])
"""


def job(events: Sequence[ChangeEvent]) -> "subprocess.CompletedProcess[str]":
    payload = json.dumps([event.to_json() for event in events])
    return subprocess.run(
        [sys.executable, "-c", JOB, "sales.orders", payload],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_without_events_of_its_table_ends_with_4_and_starts_no_spark() -> None:
    ran = job([replace(step(4, 5), table="sales.returns")])

    assert (ran.returncode, ran.stdout, ran.stderr) == (4, "", "")


def test_a_job_with_an_event_of_its_table_goes_on_to_spark() -> None:
    ran = job([replace(step(4, 5), table="Sales.`Orders`")])

    assert ran.returncode == 1
    assert "pyspark" in ran.stderr


def test_nothing_is_no_reason_to_stop_when_there_is_an_event() -> None:
    stop_when_nothing([step(4, 5)])
    with pytest.raises(SystemExit) as stop:
        stop_when_nothing([])

    assert stop.value.code == 4


def test_events_of_another_table_are_left_out_however_the_name_is_spelled() -> None:
    mine, other = step(4, 5), replace(step(4, 5), table="sales.returns")

    assert of_table([mine, other], "spark_catalog.SALES.orders") == [mine]


def test_without_a_name_all_events_have_to_be_of_one_table() -> None:
    with pytest.raises(ConfigurationError, match=r"sales\.orders, sales\.returns: name the one"):
        of_table([step(4, 5), replace(step(4, 5), table="sales.returns")], None)

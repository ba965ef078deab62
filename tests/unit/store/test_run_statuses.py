"""What a status means is defined once, in a model; what else refers to statuses agrees with it."""

import re
from pathlib import Path

from harness.store.rows import HOLDING, OPEN, REQUEUING, RunStatus

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "models" / "state" / "run_statuses.sql"
#: name, control_status, is_open, holds_job, gives_back_events
ROW = re.compile(r"'([A-Z_]+)', '[A-Z_]+', (true|false), (true|false), (true|false),")
ROWS = ROW.findall(MODEL.read_text(encoding="utf-8"))


def test_the_harness_recognizes_exactly_the_statuses_of_the_model() -> None:
    assert [name for name, *_ in ROWS] == [status.value for status in RunStatus]


def test_the_harness_and_the_model_agree_on_which_runs_go_on() -> None:
    assert {name for name, is_open, *_ in ROWS if is_open == "true"} == OPEN


def test_the_harness_and_the_model_agree_on_which_runs_hold_their_job() -> None:
    assert {name for name, _, holds_job, _ in ROWS if holds_job == "true"} == HOLDING


def test_the_harness_and_the_model_agree_on_which_runs_give_their_events_back() -> None:
    assert {name for name, *_, gives_back in ROWS if gives_back == "true"} == REQUEUING


def test_the_manual_describes_every_status() -> None:
    page = (ROOT / "docs" / "reference" / "statuses.md").read_text(encoding="utf-8")
    table = page.partition("## job_runs")[2].partition("\n## ")[0]
    reported = re.findall(r"^\| ([A-Z_, ]+) \|", table, flags=re.MULTILINE)
    assert sorted(", ".join(reported).split(", ")) == sorted(status.value for status in RunStatus)

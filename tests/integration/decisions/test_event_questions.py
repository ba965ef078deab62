"""Questions about data-change events as the macro asks them, and a list that is read by Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness import changes
from harness.tables import Ledger
from tests.event_questions import CASES, DAY, MARCH, Case, write_rows
from tests.integration.decisions import world
from tests.integration.decisions.conftest import SCHEMA, Dbt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answers = dict[str, list[str]]


def call_of(case: Case) -> str:
    """The macro's call in a template, with what the case asks."""
    wanted = {"start": None, "end": None, **case.asked}
    return f"data_change_events_between({', '.join(f'{key}={value!r}' for key, value in wanted.items())})"


@pytest.fixture(scope="module")
def ledger(spark: "SparkSession", spark_home: Path, dbt: Dbt) -> Path:
    """The ledger of events, which has those of the questions."""
    dbt("run", "--select", Ledger.EVENTS, Ledger.RUNS, "run_state")
    folder = spark_home / "warehouse" / f"{SCHEMA}.db" / Ledger.EVENTS
    write_rows(folder)
    return folder


@pytest.fixture(scope="module")
def answers(spark: "SparkSession", ledger: Path, dbt: Dbt) -> Answers:
    """What the macro answers to each question: all of them in one query."""
    asked = [
        f"select '{case.sentence}' as sentence, event_id from ({{{{ {call_of(case)} }}}})"
        for case in CASES
    ]
    compiled = dbt("compile", "--inline", " union all ".join(asked))
    found: Answers = {case.sentence: [] for case in CASES}
    for each in spark.sql(compiled.results[0].node.compiled_code).collect():
        found[each.sentence].append(each.event_id)
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.sentence for case in CASES])
def test_the_macro_answers_as_python_does(case: Case, answers: Answers) -> None:
    assert sorted(answers[case.sentence]) == sorted(case.answer)

"""Queries of data-change events by the macro, and a list that is read by Spark."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from harness.store.rows import Ledger
from harness.toolkit import changes
from tests.integration.decide.conftest import SCHEMA, Dbt
from tests.support.decisions import world
from tests.support.event_questions import CASES, DAY, MARCH, Case, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Queries = dict[str, str]
Answers = dict[str, list[str]]

FLIGHTS = "delta_table:lake.flights:ab5c14a4"
PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "register_events.md").read_text()
SHOWN = "as the page shows it"
#: What a case's query ends with; no SQL has it.
END = "-- the end of a question"


def call_of(case: Case) -> str:
    """The macro's call in a template, with the arguments of the case."""
    wanted = {"start": None, "end": None, **case.asked}
    arguments = ", ".join(f"{key}={value!r}" for key, value in wanted.items())
    return f"{{{{ data_change_events_between({arguments}) }}}}"


@pytest.fixture(scope="module")
def ledger(spark: "SparkSession", spark_home: Path, dbt: Dbt) -> Path:
    """The ledger of events, which has those of the cases."""
    dbt("run", "--select", Ledger.EVENTS, Ledger.RUNS)
    folder = spark_home / "warehouse" / f"{SCHEMA}.db" / Ledger.EVENTS
    write_rows(folder)
    return folder


@pytest.fixture(scope="module")
def queries(ledger: Path, dbt: Dbt) -> Queries:
    """What the macro renders for each case."""
    requests = {case.sentence: call_of(case) for case in CASES}
    requests[SHOWN] = PAGE.partition("\n## Query events\n")[2].split("```")[7].removeprefix("sql")
    whole = dbt("compile", "--inline", f"\n{END}\n".join(requests.values()))
    return dict(zip(requests, whole.results[0].node.compiled_code.split(END), strict=True))


@pytest.fixture(scope="module")
def answers(spark: "SparkSession", queries: Queries) -> Answers:
    """What the queries return, all in one go."""
    found: Answers = {sentence: [] for sentence in queries}
    parts = (
        f"select '{sentence}' as sentence, event_id from ({query})"
        for sentence, query in queries.items()
    )
    for each in spark.sql(" union all ".join(parts)).collect():
        found[each.sentence].append(each.event_id)
    return found


@pytest.mark.parametrize("case", CASES, ids=[case.sentence for case in CASES])
def test_the_macro_answers_as_python_does(case: Case, answers: Answers) -> None:
    assert sorted(answers[case.sentence]) == sorted(case.answer)


def test_the_page_shows_a_query_that_runs(answers: Answers) -> None:
    assert answers[SHOWN] == ["first"]


def test_the_macro_reads_a_day_from_the_files_of_that_day_alone(
    spark: "SparkSession", ledger: Path, queries: Queries
) -> None:
    day = queries["a_range_has_its_first_instant_and_not_its_last"]
    actions = pa.table(DeltaTable(ledger).get_add_actions(flatten=True)).to_pylist()
    others = [
        ledger / each["path"] for each in actions if not MARCH <= each["min.event_ts"] < MARCH + DAY
    ]
    assert len(others) > len(actions) / 2
    for file in others:
        file.rename(file.with_suffix(".away"))
    try:
        found = spark.sql(day).collect()
    finally:
        for file in others:
            file.with_suffix(".away").rename(file)
    assert sorted(each.event_id for each in found) == ["first", "several"]


def test_a_job_on_another_machine_reads_a_long_list_from_the_tables_by_its_session(
    spark: "SparkSession", ledger: Path
) -> None:
    run = {
        "tick_number": 40,
        "step_number": 1,
        "recorded_at": world.at(40),
        "job_id": 1,
        "job_name": "of another machine",
        "intent_id": "of another machine",
        "attempt": 1,
        "token": "of another machine",
        "run_status": "SUCCEEDED",
        "consumed": [(FLIGHTS, 0, 3)],
        "event_ids": ["first", "midnight"],
    }
    world.append(spark, f"{SCHEMA}.{Ledger.RUNS}", [run])
    reference = {
        "event_count": 2,
        "events_file": "/another/machine/handed_over/x.json",
        "intent_id": "of another machine",
        "attempt": 1,
        "relation": f"{SCHEMA}.job_runs",
    }
    found = changes.read(json.dumps(reference))
    assert [event.event_id for event in found] == ["first", "midnight"]
    assert found[0].partition == ('"2026-02-28"', '"5"')

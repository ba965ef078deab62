"""Whole decisions: from the controls and the ledgers through every model to the trigger set."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from tests.support.decisions.cases import CASES, Case
from tests.support.decisions.histories import events_within, expectations, random_jobs
from tests.support.decisions.world import FOLDED, Job, Verdict, sensor_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Verdicts = Mapping[int, Verdict]


@pytest.mark.parametrize("case", CASES, ids=[case.sentence for case in CASES])
def test_decision(case: Case, verdicts: Verdicts) -> None:
    verdict = verdicts[case.job.job_id]

    expected = case.consumes and {
        sensor_id(case.job, name): consumed for name, consumed in case.consumes.items()
    }
    names = [blocker for blocker, _ in verdict.blockers]
    assert (verdict.consumed, names) == (expected, sorted(case.waits))
    if case.consumes is not None:
        assert verdict.attempt == case.attempt


def _verdict(sentence: str, verdicts: Verdicts) -> Verdict:
    return verdicts[next(case.job.job_id for case in CASES if case.sentence == sentence)]


def test_the_reason_of_a_paused_sibling_names_the_row(verdicts: Verdicts) -> None:
    sentence = "a_hard_dependency_new_and_its_hard_sibling_paused_is_blocked_with_that_reason"
    ((_, reason),) = _verdict(sentence, verdicts).blockers
    assert reason.startswith("its hard dependency db.b_") and reason.endswith(" is PAUSED")


def test_the_reason_of_a_failed_probe_states_why_it_failed(verdicts: Verdicts) -> None:
    ((_, reason),) = _verdict("a_failed_look_is_no_event", verdicts).blockers
    assert reason.endswith(" cannot be read: no such table")


def test_a_retry_keeps_the_name_of_its_intent(verdicts: Verdicts) -> None:
    verdict = _verdict("a_retry_takes_the_same_events_again_and_those_that_came_since", verdicts)
    assert verdict.intent_id == "first-901"


def test_the_reason_of_a_failed_run_states_what_its_policy_makes_of_it(verdicts: Verdicts) -> None:
    again = "a_run_that_ended_just_now_backs_off_where_its_policy_allows_a_second_attempt"
    last = "the_last_attempt_that_a_policy_allows_holds_its_job_when_it_fails"
    reported = [_verdict(sentence, verdicts).blockers[0][1] for sentence in (again, last)]
    assert reported == [
        "its last run 91200 ended FAILED; attempt 2 of 2 starts by itself",
        "its last run 91400 ended FAILED; that was attempt 2, and its retry policy allows 2",
    ]


def _named(job: Job, by_sensor: Mapping[str, object]) -> dict[str, object]:
    names = {sensor_id(job, each.name): each.name for each in job.dependencies}
    return {names[each]: value for each, value in by_sensor.items()}


def test_random_pasts_fire_exactly_the_events_that_a_keeper_of_single_events_holds(
    verdicts: Verdicts,
) -> None:
    expected = expectations()
    wrong = []
    for job in random_jobs():
        verdict = verdicts[job.job_id]
        fired = verdict.consumed and events_within(job, _named(job, verdict.consumed))  # type: ignore[arg-type]
        if fired != expected[job.job_id].events:
            wrong.append((job, fired, expected[job.job_id].events))
    assert not wrong, f"{len(wrong)} jobs, the first: {wrong[0]}"


def test_random_pasts_are_blocked_by_exactly_the_reasons_that_the_rules_give(
    verdicts: Verdicts,
) -> None:
    expected = expectations()
    wrong = []
    for job in random_jobs():
        names = [blocker for blocker, _ in verdicts[job.job_id].blockers]
        if names != expected[job.job_id].blockers:
            wrong.append((job, names, expected[job.job_id].blockers))
    assert not wrong, f"{len(wrong)} jobs, the first: {wrong[0]}"


def test_random_pasts_show_the_status_that_the_newest_run_and_the_waiting_events_give(
    verdicts: Verdicts,
) -> None:
    expected = expectations()
    wrong = []
    for job in random_jobs():
        statuses = _named(job, verdicts[job.job_id].status)
        if statuses != expected[job.job_id].statuses:
            wrong.append((job, statuses, expected[job.job_id].statuses))
    assert not wrong, f"{len(wrong)} jobs, the first: {wrong[0]}"


def test_random_pasts_hold_both_starts_and_every_kind_of_blocker() -> None:
    expected = list(expectations().values())
    kinds = {blocker for each in expected for blocker in each.blockers}
    assert sum(each.events is not None for each in expected) > 30
    assert sum(each.events is not None and each.is_retry for each in expected) > 0
    assert kinds == {
        "waiting_for_required_event",
        "required_row_paused",
        "nothing_new",
        "job_paused",
        "run_in_progress",
        "last_run_failed",
    }


@pytest.mark.parametrize("model", ["int_upstreams_now", "int_dependency_progress"])
def test_the_files_of_compacted_ledger_rows_are_skipped_by_a_number_in_the_plan(
    model: str, spark: "SparkSession", verdicts: Verdicts
) -> None:
    assert verdicts
    (plan,) = spark.sql(f"explain select * from decisions.{model}").collect()[0]
    assert f" > {FOLDED})" in plan
    assert "subquery" not in plan.lower()

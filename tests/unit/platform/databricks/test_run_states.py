"""What a run's words mean, in both vocabularies."""

from datetime import UTC, datetime

import pytest
from databricks.sdk.service.jobs import (
    RunLifeCycleState,
    RunLifecycleStateV2State,
    RunResultState,
    TerminationCodeCode,
    TerminationTypeType,
)

from harness.platform.databricks import run_states
from harness.platform.databricks.api import Outcome
from harness.platform.databricks.run_states import RunWords, exact_id, outcome_of, report_of
from harness.platform.masking import mask
from tests.support.hostile import EVERYTHING


def run_json(**parts: object) -> dict[str, object]:
    return {"run_id": 9007199254740993, "job_id": 9007199254740995, **parts}


def test_every_life_cycle_state_of_the_sdk_is_known() -> None:
    known = run_states.TERMINAL_LIFE_CYCLES | run_states.ACTIVE_LIFE_CYCLES
    assert {state.value for state in RunLifeCycleState} <= known


def test_every_state_of_the_sdk_is_known() -> None:
    known = run_states.TERMINAL_STATES | run_states.ACTIVE_STATES
    assert {state.value for state in RunLifecycleStateV2State} <= known


def test_every_result_of_the_sdk_has_an_outcome() -> None:
    known = run_states.OUTCOME_OF_RESULT.keys() | {run_states.PARTIAL_SUCCESS}
    assert {state.value for state in RunResultState} <= known


def test_every_termination_code_of_the_sdk_has_an_outcome() -> None:
    known = run_states.OUTCOME_OF_CODE.keys() | {run_states.PARTIAL_SUCCESS}
    assert {code.value for code in TerminationCodeCode} <= known


def test_every_termination_type_of_the_sdk_is_known() -> None:
    assert {kind.value for kind in TerminationTypeType} == run_states.FAILING_TYPES | {"SUCCESS"}


@pytest.mark.parametrize("life_cycle", sorted(run_states.ACTIVE_LIFE_CYCLES))
def test_an_active_life_cycle_has_no_outcome(life_cycle: str) -> None:
    assert outcome_of(RunWords(life_cycle_state=life_cycle)) is None


def test_terminating_is_not_over_even_with_a_result() -> None:
    words = RunWords(life_cycle_state="TERMINATING", result_state="SUCCESS", state="TERMINATING")
    assert outcome_of(words) is None


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("SUCCESS", Outcome.SUCCEEDED),
        ("FAILED", Outcome.FAILED),
        ("TIMEDOUT", Outcome.TIMED_OUT),
        ("CANCELED", Outcome.CANCELED),
        ("MAXIMUM_CONCURRENT_RUNS_REACHED", Outcome.SKIPPED),
        ("UPSTREAM_FAILED", Outcome.FAILED),
    ],
)
def test_the_older_vocabulary_alone_is_enough(result: str, outcome: Outcome) -> None:
    assert outcome_of(RunWords(life_cycle_state="TERMINATED", result_state=result)) is outcome


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("SUCCESS", Outcome.SUCCEEDED),
        ("RUN_EXECUTION_ERROR", Outcome.FAILED),
        ("USER_CANCELED", Outcome.CANCELED),
        ("MAX_CONCURRENT_RUNS_EXCEEDED", Outcome.SKIPPED),
    ],
)
def test_the_newer_vocabulary_alone_is_enough(code: str, outcome: Outcome) -> None:
    assert outcome_of(RunWords(state="TERMINATED", termination_code=code)) is outcome


def test_a_skipped_run_without_a_result_is_skipped() -> None:
    assert outcome_of(RunWords(life_cycle_state="SKIPPED")) is Outcome.SKIPPED


def test_an_internal_error_without_a_result_failed() -> None:
    assert outcome_of(RunWords(life_cycle_state="INTERNAL_ERROR")) is Outcome.FAILED


def test_a_timeout_is_a_timeout_though_its_code_reads_cancelled() -> None:
    words = RunWords(
        life_cycle_state="TERMINATED",
        result_state="TIMEDOUT",
        state="TERMINATED",
        termination_code="CANCELED",
    )
    assert outcome_of(words) is Outcome.TIMED_OUT


def test_the_vocabulary_that_reports_no_success_is_believed() -> None:
    words = RunWords(
        life_cycle_state="TERMINATED",
        result_state="SUCCESS",
        state="TERMINATED",
        termination_code="DRIVER_ERROR",
    )
    assert outcome_of(words) is Outcome.FAILED


def test_an_unknown_result_is_no_outcome() -> None:
    words = RunWords(life_cycle_state="TERMINATED", result_state="BRAND_NEW")
    assert outcome_of(words) is None


def test_an_unknown_result_beside_a_known_success_is_no_outcome() -> None:
    words = RunWords(
        life_cycle_state="TERMINATED",
        result_state="BRAND_NEW",
        state="TERMINATED",
        termination_code="SUCCESS",
    )
    assert outcome_of(words) is None


def test_an_unknown_code_of_a_failing_type_failed() -> None:
    words = RunWords(
        state="TERMINATED", termination_code="BRAND_NEW", termination_type="CLOUD_FAILURE"
    )
    assert outcome_of(words) is Outcome.FAILED


def test_an_unknown_life_cycle_is_not_over() -> None:
    assert outcome_of(RunWords(life_cycle_state="BRAND_NEW", result_state="SUCCESS")) is None


def test_a_run_that_reports_nothing_of_its_state_is_not_over() -> None:
    assert report_of(run_json()).outcome is None


def test_a_success_with_failures_is_a_success_unless_configured_otherwise() -> None:
    words = RunWords(life_cycle_state="TERMINATED", result_state="SUCCESS_WITH_FAILURES")
    assert outcome_of(words) is Outcome.SUCCEEDED
    assert outcome_of(words, partial_success=Outcome.FAILED) is Outcome.FAILED


def test_unknown_words_survive_in_the_report() -> None:
    report = report_of(
        run_json(
            state={"life_cycle_state": "NEW_ONE", "result_state": "NEW_TWO"},
            status={"state": "NEW_THREE", "termination_details": {"code": "NEW_FOUR"}},
        )
    )
    assert (
        report.life_cycle_state,
        report.result_state,
        report.state,
        report.termination_code,
    ) == ("NEW_ONE", "NEW_TWO", "NEW_THREE", "NEW_FOUR")


def test_ids_past_two_to_the_53_stay_exact() -> None:
    report = report_of(run_json())
    assert (report.run_id, report.job_id) == (9007199254740993, 9007199254740995)


def test_an_id_in_digits_is_an_id() -> None:
    assert exact_id("9007199254740993", "run_id") == 9007199254740993


@pytest.mark.parametrize("value", [9007199254740992.0, True, None, "", "12a", "-1", [1]])
def test_anything_but_digits_is_no_id(value: object) -> None:
    with pytest.raises(ValueError, match="run_id"):
        exact_id(value, "run_id")


def test_times_are_utc_and_zero_is_not_yet() -> None:
    report = report_of(run_json(start_time=1_700_000_000_123, end_time=0))
    assert report.started_at == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)
    assert report.ended_at is None


def test_the_parameters_of_a_run_are_read_by_name() -> None:
    reported = [
        {"name": "a", "value": "", "default": "1"},
        {"name": "b", "value": None, "default": "2"},
        {"name": "c"},
        {},
        "odd",
    ]
    assert report_of(run_json(job_parameters=reported)).parameters == {"a": "", "b": "2", "c": ""}


@pytest.mark.parametrize("reported", [None, {}, "text"])
def test_a_run_without_a_list_of_parameters_reports_none(reported: object) -> None:
    assert report_of(run_json(job_parameters=reported)).parameters == {}


def test_the_text_of_the_end_comes_before_the_older_text() -> None:
    report = report_of(
        run_json(
            state={"state_message": "older"},
            status={"termination_details": {"message": "newer"}},
        )
    )
    assert report.message == "newer"


def test_the_last_words_of_a_run_can_be_kept_whatever_they_are() -> None:
    mask("drop table heartbeat")
    words = {"life_cycle_state": "TERMINATED", "state_message": EVERYTHING}
    message = report_of(run_json(state=words)).message
    assert message is not None
    assert message.encode().decode() == message
    assert "drop table" not in message

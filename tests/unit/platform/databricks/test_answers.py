"""What an exception of run-now means."""

import pytest
import requests
from databricks.sdk import errors

from harness.platform.databricks.answers import answer_of_error
from harness.platform.databricks.api import NotAllowed, Refused, Unknown
from harness.platform.masking import mask
from tests.support.hostile import EVERYTHING


def retried(cause: Exception) -> Exception:
    """Build what the SDK raises when its own retry loop gave up."""
    error = TimeoutError("Timed out after 0:00:01")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidParameterValue("Job 1 does not exist.", error_code="INVALID_PARAMETER_VALUE"),
        errors.BadRequest("bad", error_code="BAD_REQUEST"),
        errors.ResourceDoesNotExist("gone", error_code="RESOURCE_DOES_NOT_EXIST"),
        errors.NotFound("no such path", error_code="ENDPOINT_NOT_FOUND"),
    ],
)
def test_a_clear_no_is_a_refusal(error: Exception) -> None:
    assert isinstance(answer_of_error(error), Refused)


@pytest.mark.parametrize(
    "error",
    [
        errors.InternalError("boom", error_code="INTERNAL_ERROR"),
        errors.DeadlineExceeded("late", error_code="DEADLINE_EXCEEDED"),
        errors.NotImplemented("never", error_code="NOT_IMPLEMENTED"),
        errors.Aborted("conflict", error_code="ABORTED"),
        errors.ResourceConflict("conflict", error_code="RESOURCE_CONFLICT"),
        errors.BadRequest("locked", error_code="COULD_NOT_ACQUIRE_LOCK"),
        errors.BadRequest("a proxy said so"),
        errors.NotFound("404 Not Found", error_code="NOT_FOUND"),
        errors.DatabricksError("bad gateway"),
        requests.exceptions.ChunkedEncodingError("half"),
        requests.exceptions.JSONDecodeError("html", "<html>", 0),
        requests.ConnectionError("reset"),
        KeyError("run_id"),
        TypeError("a list came"),
        TimeoutError("timed out"),
        retried(requests.ConnectionError("reset")),
        retried(errors.BadRequest("Unexpected error", error_code="INVALID_PARAMETER_VALUE")),
    ],
    ids=repr,
)
def test_everything_that_may_hide_a_run_is_unknown(error: Exception) -> None:
    assert isinstance(answer_of_error(error), Unknown)


@pytest.mark.parametrize(
    "error",
    [
        errors.Unauthenticated("who?", error_code="UNAUTHENTICATED"),
        errors.PermissionDenied("no", error_code="PERMISSION_DENIED"),
    ],
)
def test_wrong_credentials_prove_nothing_about_a_run(error: Exception) -> None:
    assert isinstance(answer_of_error(error), NotAllowed)


def test_a_wait_that_is_requested_is_kept_within_bounds() -> None:
    answer = answer_of_error(retried(errors.TooManyRequests("slow down", retry_after_secs=3600)))
    assert answer == Unknown(message="slow down", wait_seconds=600.0, is_throttled=True)


def test_the_configuration_that_the_sdk_appends_is_left_out() -> None:
    reported = "Invalid access token. Config: host=https://one, token=***. Env: DATABRICKS_TOKEN"
    answer = answer_of_error(errors.Unauthenticated(reported))
    assert isinstance(answer, NotAllowed)
    assert "Config" not in answer.message


def test_a_message_is_one_line() -> None:
    answer = answer_of_error(errors.InternalError("one\ntwo\r\nthree"))
    assert isinstance(answer, Unknown)
    assert "\n" not in answer.message


def test_no_message_repeats_a_secret_not_even_the_half_of_one_that_it_has_room_for() -> None:
    token = "a-token-" + "x" * 400
    mask(token)
    answer = answer_of_error(errors.PermissionDenied(f"{'no ' * 100}, {token}"))
    assert isinstance(answer, NotAllowed)
    assert "a-token" not in answer.message


@pytest.mark.parametrize("error", [errors.BadRequest, errors.InternalError, ValueError])
def test_a_message_of_any_text_can_be_kept(error: type[Exception]) -> None:
    answer = answer_of_error(error(EVERYTHING))
    assert isinstance(answer, Unknown)
    assert answer.message.encode().decode() == answer.message

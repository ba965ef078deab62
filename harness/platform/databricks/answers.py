"""Classifies the answer of one ``run_now`` call: started, not started, or in doubt."""

from databricks.sdk.errors import (
    Aborted,
    BadRequest,
    DeadlineExceeded,
    InternalError,
    NotFound,
    NotImplemented,
    ResourceConflict,
    TemporarilyUnavailable,
    TooManyRequests,
)
from databricks.sdk.errors.base import DatabricksError

from harness.platform.databricks.api import NotAllowed, Refused, RunNowAnswer, Unknown
from harness.platform.databricks.workspace import described, is_about_login, words_of

#: Codes that come with a refusing status although the request is to be retried.
_TRY_AGAIN_CODES = frozenset(
    {
        "COULD_NOT_ACQUIRE_LOCK",
        "TEMPORARILY_UNAVAILABLE",
        "DEADLINE_EXCEEDED",
        "REQUEST_LIMIT_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "INTERNAL_ERROR",
    }
)
#: 500, 501, 503 and 504.
_THEIR_ERRORS = (InternalError, NotImplemented, TemporarilyUnavailable, DeadlineExceeded)
#: What the SDK calls a 404 page that is no answer of the API, such as a proxy's.
_PAGE_CODES = frozenset({"NOT_FOUND"})


#: The longest wait before a retry, even where a workspace requests a longer one.
LONGEST_WAIT_SECONDS = 600.0
#: What Databricks advises between two tries after an error of its own.
WAIT_AFTER_ERROR_SECONDS = 30.0


def answer_of_error(error: Exception) -> RunNowAnswer:
    """Report what an exception of ``run_now`` means; whatever is not understood is unknown."""
    if isinstance(error, TimeoutError) and error.__cause__ is not None:
        # The SDK would have retried: a lost connection, a throttled or a transient error.
        return _unknown(error.__cause__)
    if is_about_login(error):
        return NotAllowed(message=described(error))
    if isinstance(error, DatabricksError) and _is_refusal(error):
        return Refused(error_code=str(error.error_code), message=words_of(error))
    return _unknown(error)


def _unknown(error: BaseException) -> Unknown:
    return Unknown(
        message=described(error),
        wait_seconds=_wait_seconds(error),
        is_throttled=isinstance(error, TooManyRequests),
    )


def _is_refusal(error: DatabricksError) -> bool:
    if error.error_code is None or error.error_code in _TRY_AGAIN_CODES:
        return False
    if isinstance(error, Aborted | ResourceConflict):
        return False
    if isinstance(error, NotFound):
        return error.error_code not in _PAGE_CODES
    return isinstance(error, BadRequest)


def _wait_seconds(error: BaseException) -> float:
    """Return how long to wait before the next try; nothing after an answer that got lost."""
    requested = getattr(error, "retry_after_secs", None) or 0
    # Plain: a status that the SDK has no class for, such as 502.
    is_their_error = isinstance(error, _THEIR_ERRORS) or type(error) is DatabricksError
    least = WAIT_AFTER_ERROR_SECONDS if is_their_error else 0.0
    return min(max(float(requested), least), LONGEST_WAIT_SECONDS)
